/* SPDX-License-Identifier: Apache-2.0 */
/* The zklock peer. peers.h has its commands and answers. */
#include "handle.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zklock/inspect.h>

#include "calls.h"

#define SESSION_MS 30000
#define RUN_MS 60000
#define INSPECT_MS 10000
#define NAP_NS 100000
#define PERMIT_NAP_NS 2000000 /* so that permits are out at the same time */
#define WORDS_MAX 12
#define WORKERS_MAX 8
#define LINE_MAX_ 512

struct worker {
    char name[8];
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t cond;
    char order[LINE_MAX_]; /* under mu; "": none */
    unsigned long random;
    struct held held; /* what its last lock gave */
};

static struct zkl_client *client;
static int journal;

static void answer(const struct worker *w, const char *text, const char *more)
{
    printf("%s %s%s%s\n", w->name, text, *more ? " " : "", more);
}

/* The answer to a call; "no" is an answer too. */
static void answer_code(const struct worker *w, int rc)
{
    if (rc == 0)
        answer(w, "ok", "");
    else if (rc == ZKL_EBUSY || rc == ZKL_ETIMEDOUT)
        answer(w, "no", "");
    else
        answer(w, "error", *zkl_error_detail() ? zkl_error_detail() : zkl_strerror(rc));
}

/* --- what a worker does ----------------------------------------------------------------------- */

static int lock(struct worker *w, struct handle *h, int ms)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.flags = ms == 0 ? ZKL_WAIT_TRY : 0;
    if (ms > 0)
        wait.deadline_ns = zkl_now_ns() + ms * INT64_C(1000000);
    return h->kind->lock(h, &wait, &w->held);
}

/* --- the record of calls, for tests/linear: all languages write it by CLOCK_MONOTONIC ---------- */

static size_t places_of(const struct handle *h)
{
    return h->paths_count * (size_t)h->count;
}

static void write_places(struct calls_line *line, const struct handle *h)
{
    char half[20] = "alone";

    if (h->access == 'p')
        snprintf(half, sizeof half, "permit%d", h->permits);
    else if (h->access == 'r')
        snprintf(half, sizeof half, "%s", h->shares_node ? "cached" : "read");
    for (size_t i = 0; i < places_of(h); i++)
        calls_add(line, " %s=%s", half, h->paths[i % h->paths_count]);
    calls_write(line);
}

static struct calls_line record_line(const struct worker *w, char way, int64_t ns)
{
    return calls_line(way, ns, atoi(w->name + 1));
}

static void record(const struct worker *w, const struct handle *h, const char *verb)
{
    struct calls_line line = record_line(w, '?', zkl_now_ns());

    calls_add(&line, " %s", verb);
    write_places(&line, h);
}

/* The last path is named first: see multi_make. */
static uint64_t token_of(const struct worker *w, const struct handle *h, size_t i)
{
    if (h->semaphore != NULL)
        return zkl_permit_token(w->held.permits[i]);
    if (h->multi != NULL)
        return zkl_multi_token(h->multi, h->paths_count - 1 - i);
    return h->mutex != NULL ? zkl_mutex_token(h->mutex) : 0;
}

static int64_t window_of(const struct worker *w, const struct handle *h)
{
    if (h->semaphore != NULL)
        return zkl_permit_window_ms(w->held.permits[0]);
    if (h->multi != NULL)
        return zkl_multi_window_ms(h->multi);
    return h->mutex != NULL ? zkl_mutex_window_ms(h->mutex) : 0;
}

static void record_grant(const struct worker *w, const struct handle *h, int rc)
{
    int64_t now = zkl_now_ns();
    struct calls_line line = record_line(w, '!', now), look;

    calls_add(&line, " %d", rc);
    for (size_t i = 0; rc == 0 && i < places_of(h); i++)
        calls_add(&line, " %llx:1", (unsigned long long)token_of(w, h, i));
    calls_write(&line);
    int64_t window = rc == 0 ? window_of(w, h) : 0;
    look = record_line(w, '~', now + window * INT64_C(1000000));
    if (window > 0)
        write_places(&look, h);
}

static void record_codes(const struct worker *w, const struct handle *h, int rc)
{
    struct calls_line line = record_line(w, '!', zkl_now_ns());

    for (size_t i = 0; i < places_of(h); i++)
        calls_add(&line, " %d", rc);
    calls_write(&line);
}

/* --- visits ----------------------------------------------------------------------------------- */

static void note(const struct worker *w, char way, const struct handle *h)
{
    for (size_t i = 0; i < h->paths_count * (size_t)h->count; i++) {
        char line[100];
        int n = snprintf(line, sizeof line, "%c%c %s %s\n", way, h->access, w->name,
                         h->paths[i % h->paths_count]);
        if (write(journal, line, (size_t)n) != n)
            abort();
    }
}

static int visit_once(struct worker *w, struct handle *h)
{
    record(w, h, "acquire");
    int rc = lock(w, h, RUN_MS);

    record_grant(w, h, rc);
    if (rc != 0)
        return rc;
    note(w, '+', h);
    nanosleep(&(struct timespec){.tv_nsec = h->access == 'p' ? PERMIT_NAP_NS : NAP_NS}, NULL);
    note(w, '-', h);
    record(w, h, "release");
    rc = h->kind->unlock(h, &w->held);
    record_codes(w, h, rc);
    return rc;
}

static int percent(struct worker *w)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (int)((w->random >> 33) % 100);
}

static int visit(struct worker *w, const char *name, int rounds, int writers)
{
    char half[40];
    int rc = 0;

    for (int i = 0; rc == 0 && i < rounds; i++) {
        snprintf(half, sizeof half, "%s.%s", name, percent(w) < writers ? "write" : "read");
        struct handle *h = handle_find(name);
        if (h == NULL)
            h = handle_find(half);
        rc = h != NULL ? visit_once(w, h) : ZKL_EINVAL;
    }
    return rc;
}

static void tell_node(const struct worker *w, struct handle *h)
{
    char path[700];
    int rc = h->semaphore != NULL ? zkl_permit_node_path(w->held.permits[0], path, sizeof path)
                                  : zkl_mutex_node_path(h->mutex, path, sizeof path);

    if (rc < 0)
        answer_code(w, rc);
    else
        answer(w, "ok", path);
}

/* By its callback if it has one, and by asking, which only the holder can. */
static bool is_asked(const struct worker *w, struct handle *h)
{
    if (h->has_callback && h->asked == 0)
        return false;
    if (h->semaphore != NULL)
        return zkl_permit_revoke_requested(w->held.permits[0]) == 1;
    return zkl_mutex_revoke_requested(h->mutex) == 1;
}

static void await_request(const struct worker *w, struct handle *h, int ms)
{
    int64_t end_ns = zkl_now_ns() + ms * INT64_C(1000000);
    bool asked;

    while (!(asked = is_asked(w, h)) && zkl_now_ns() < end_ns)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    if (asked)
        h->asked = 0;
    answer(w, asked ? "ok" : "no", "");
}

/* "KIND|ROLE ACCESS PEER OWNER|...". For a waiter also the place in this list of the contender
 * for which it waits: "... >0". */
static void describe(const struct zkl_inspection *seen, char *text, size_t size)
{
    static const char *const kinds[] = {"none", "mutex", "rwlock", "semaphore"};
    static const char *const roles[] = {"", "holder", "waiter", "foreign"};
    static const char *const accesses[] = {"none", "lock", "read", "write", "permit", "entry"};
    size_t n = (size_t)snprintf(text, size, "%s", kinds[seen->kind]);

    for (size_t i = 0; i < seen->count && n < size; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(seen, i);
        n += (size_t)snprintf(text + n, size - n, "|%s %s %s %s", roles[e->role],
                              accesses[e->access], e->peer, e->owner);
        if (e->waits_for != ZKL_NO_ENTRY && n < size)
            n += (size_t)snprintf(text + n, size - n, " >%zu", e->waits_for);
    }
}

static void list(const struct worker *w, const struct handle *h)
{
    const struct zkl_inspection *seen;
    char text[1500];
    int rc = zkl_inspect(client, h->paths[0], INSPECT_MS, &seen);

    if (rc != 0) {
        answer_code(w, rc);
        return;
    }
    describe(seen, text, sizeof text);
    zkl_inspection_free(seen);
    answer(w, "ok", text);
}

static int ask_to_let_go(const char *path, int ms)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.deadline_ns = zkl_now_ns() + ms * INT64_C(1000000);
    return zkl_revoke(client, path, &wait, 0);
}

static void obey_handle(struct worker *w, struct handle *h, char **words)
{
    if (strcmp(words[1], "lock") == 0)
        answer_code(w, lock(w, h, atoi(words[3])));
    else if (strcmp(words[1], "unlock") == 0)
        answer_code(w, h->kind->unlock(h, &w->held));
    else if (strcmp(words[1], "node") == 0)
        tell_node(w, h);
    else if (strcmp(words[1], "revoked") == 0)
        await_request(w, h, atoi(words[3]));
    else if (strcmp(words[1], "list") == 0)
        list(w, h);
    else
        answer(w, "error", "no such verb");
}

static void obey(struct worker *w, char **words)
{
    if (strcmp(words[1], "new") == 0)
        answer_code(
            w, handle_new(client, words[2], words[3], words[4], (const char *const *)words + 5));
    else if (strcmp(words[1], "drop") == 0)
        answer_code(w, handle_drop(words[2]));
    else if (strcmp(words[1], "revoke") == 0)
        answer_code(w, ask_to_let_go(words[2], atoi(words[3])));
    else if (strcmp(words[1], "run") == 0)
        answer_code(w, visit(w, words[2], atoi(words[3]), atoi(words[4])));
    else if (handle_find(words[2]) != NULL)
        obey_handle(w, handle_find(words[2]), words);
    else
        answer(w, "error", "no such handle");
}

/* --- workers ---------------------------------------------------------------------------------- */

static void split_words(char *line, char *words[WORDS_MAX + 1])
{
    size_t n = 0;

    for (char *word = strtok_r(line, " \n", &line); word != NULL && n < WORDS_MAX;
         word = strtok_r(NULL, " \n", &line))
        words[n++] = word;
    while (n <= WORDS_MAX)
        words[n++] = NULL;
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    char line[LINE_MAX_];
    char *words[WORDS_MAX + 1];

    for (;;) {
        pthread_mutex_lock(&w->mu);
        while (w->order[0] == '\0')
            pthread_cond_wait(&w->cond, &w->mu);
        strcpy(line, w->order);
        w->order[0] = '\0';
        pthread_mutex_unlock(&w->mu);
        split_words(line, words);
        if (words[1] == NULL || words[2] == NULL)
            answer(w, "error", "too few words");
        else
            obey(w, words);
    }
    return NULL;
}

static void start(struct worker *w, const char *name, size_t length)
{
    snprintf(w->name, sizeof w->name, "%.*s", (int)length, name);
    w->random = (unsigned long)name[1];
    pthread_mutex_init(&w->mu, NULL);
    pthread_cond_init(&w->cond, NULL);
    if (pthread_create(&w->thread, NULL, worker_main, w) != 0)
        abort();
}

static struct worker *worker_of(const char *line)
{
    static struct worker workers[WORKERS_MAX];
    size_t length = strcspn(line, " ");

    for (size_t i = 0; i < WORKERS_MAX; i++) {
        if (workers[i].name[0] == '\0')
            start(&workers[i], line, length);
        if (strlen(workers[i].name) == length && strncmp(workers[i].name, line, length) == 0)
            return &workers[i];
    }
    abort(); /* the driver has fewer */
}

/* --- the program ------------------------------------------------------------------------------ */

static void serve(void)
{
    char line[LINE_MAX_];

    while (fgets(line, sizeof line, stdin) != NULL) {
        struct worker *w = worker_of(line);
        pthread_mutex_lock(&w->mu);
        strcpy(w->order, line);
        pthread_cond_signal(&w->cond);
        pthread_mutex_unlock(&w->mu);
    }
}

static int open_client(const char *servers)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = servers;
    options.session_timeout_ms = SESSION_MS;
    options.connect_timeout_ms = SESSION_MS;
    return zkl_client_open(&client, &options);
}

int main(int argc, char **argv)
{
    if (argc != 3 || open_client(argv[1]) != 0) {
        fprintf(stderr, "%s\n", argc == 3 ? zkl_error_detail() : "peer SERVERS JOURNAL");
        return 1;
    }
    journal = open(argv[2], O_WRONLY | O_APPEND | O_CLOEXEC);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    serve();
    zkl_client_close(client, 5000);
    _exit(0); /* the workers may be anywhere */
}
