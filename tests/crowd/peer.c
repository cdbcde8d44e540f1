/* SPDX-License-Identifier: Apache-2.0 */
/* The zklock peer. conductor.py has its commands and answers. Suite fleet compiles this source and handle.c a second
 * time, with the headers and objects of an old library: so they use nothing newer than what that one has, except
 * names in fleet/old_names.h. */
#include "peer.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zklock/inspect.h>

#define SESSION_MS 30000
#define CLOSE_MS 30000
#define RUN_MS 120000
#define LATE_LEASE_MS 1000
#define LATE_EACH 50 /* rounds */
#define INSPECT_MS 10000
#define NAP_NS 100000
#define PERMIT_NAP_NS 2000000 /* so that permits are out at the same time */
#define LEAK (64 << 10)
#define WORDS_MAX 256
#define WORKERS_MAX 24
#define PLACE_SIZE 120
#define NODE_SIZE 1300

static const char *servers, *credential;
static struct zkl_client *client;
static int journal;

void answer(const struct worker *w, const char *text, const char *more)
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

int peer_open(struct zkl_client **opened)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = servers;
    options.session_timeout_ms = SESSION_MS;
    options.connect_timeout_ms = SESSION_MS;
    if (peer_prepare != NULL) {
        peer_prepare(&options, journal, atoi(credential));
    } else if (credential != NULL) {
        options.auth_scheme = "digest";
        options.auth_credential = credential;
        options.acl = ZKL_ACL_CREATOR;
    }
    return zkl_client_open(opened, &options);
}

/* --- the record of calls, for tests/linear: all languages write it by CLOCK_MONOTONIC ---------- */

static void record_place(struct calls_line *line, const struct handle *h, size_t n)
{
    char half[20] = "alone";

    h = handle_place(h, n);
    if (h->access == 'p')
        snprintf(half, sizeof half, "permit%d", h->permits);
    else if (h->access == 'r')
        snprintf(half, sizeof half, "%s", h->shares_node ? "cached" : "read");
    else if (h->access == 's')
        snprintf(half, sizeof half, "shared");
    else if (strcmp(h->kind->name, "single") == 0)
        snprintf(half, sizeof half, "once");
    calls_add(line, " %s=%s%s%s", half, h->paths[n % h->paths_count], *h->lock_name ? "#" : "",
              h->lock_name);
}

static struct calls_line record_line(const struct worker *w, char way, int64_t ns)
{
    const char *dot = strchr(w->name, '.');

    return calls_line(way, ns, atoi(dot != NULL ? dot + 1 : w->name + 1)); /* "o1.3", "c3" */
}

void record(const struct worker *w, char way, int64_t ns, const char *verb, const struct handle *h)
{
    struct calls_line line = record_line(w, way, ns);

    calls_add(&line, "%s", verb);
    for (size_t i = 0; i < handle_places(h); i++)
        record_place(&line, h, i);
    calls_write(&line);
}

static void record_grant(const struct worker *w, const struct handle *h, int rc,
                         const struct held *held)
{
    int64_t now = zkl_now_ns(), window = rc == 0 ? handle_window_ms(h, held) : 0;
    struct calls_line line = record_line(w, '!', now);

    calls_add(&line, " %d", rc);
    for (size_t i = 0; rc == 0 && i < handle_places(h); i++)
        calls_add(&line, " %llx:%lld", (unsigned long long)held->grants[i].token,
                  (long long)held->grants[i].hold_count);
    calls_write(&line);
    if (window > 0)
        record(w, '~', now + window * INT64_C(1000000), "", h);
}

static void record_codes(const struct worker *w, const struct handle *h, const struct held *held)
{
    struct calls_line line = record_line(w, '!', zkl_now_ns());

    for (size_t i = 0; i < handle_places(h); i++)
        calls_add(&line, " %d", held->codes[i]);
    calls_write(&line);
}

/* --- one lock, one unlock ---------------------------------------------------------------------- */

struct zkl_wait wait_for(int64_t ms)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.flags = ms == 0 ? ZKL_WAIT_TRY : 0;
    if (ms > 0)
        wait.deadline_ns = zkl_now_ns() + ms * INT64_C(1000000);
    return wait;
}

int lock(struct worker *w, struct handle *h, const struct zkl_wait *wait, struct held *held)
{
    record(w, '?', zkl_now_ns(),
           wait->flags & ZKL_WAIT_SYNC  ? " acquire try sync"
           : wait->flags & ZKL_WAIT_TRY ? " acquire try"
                                        : " acquire",
           h);
    int rc = handle_lock(h, wait, held);

    record_grant(w, h, rc, held);
    return rc;
}

int unlock(struct worker *w, struct handle *h, struct held *held)
{
    record(w, '?', zkl_now_ns(), " release", h);
    int rc = h->kind->unlock(h, held);

    record_codes(w, h, held);
    return rc;
}

/* --- the journal ------------------------------------------------------------------------------- */

void note_place(const struct worker *w, char way, const struct handle *h, const struct held *held,
                size_t i)
{
    char line[400], node[NODE_SIZE];
    const struct handle *at = handle_place(h, i);
    int n = snprintf(line, sizeof line, "%c%c %s %s%s%s", way, at->access, w->name,
                     at->paths[i % at->paths_count], *at->lock_name ? "#" : "", at->lock_name);

    if (handle_node(h, held, i, node, sizeof node) > 0)
        n += snprintf(line + n, sizeof line - (size_t)n, " %llu %.160s",
                      (unsigned long long)held->grants[i].token, strrchr(node, '/') + 1);
    line[n++] = '\n';
    if (write(journal, line, (size_t)n) != n)
        abort();
}

/* '+' or '-': it has come in with this handle, it leaves. */
static void note(const struct worker *w, char way, const struct handle *h, const struct held *held)
{
    for (size_t i = 0; i < handle_places(h); i++)
        note_place(w, way, h, held, i);
}

/* --- visits ------------------------------------------------------------------------------------ */

static long below(struct worker *w, long n)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (long)((w->random >> 33) % (unsigned long)n);
}

static void nap(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* A short deadline is longer after each one that passed: else such a worker would never get in
 * on a busy machine. */
static struct zkl_wait wait_of(struct worker *w, const struct habits *habits, int64_t lease_ms,
                               int passed)
{
    struct zkl_wait wait =
        wait_for(habits->timed ? 2 + below(w, 20 << (passed < 10 ? passed : 10)) : RUN_MS);

    wait.flags = (habits->tries ? ZKL_WAIT_TRY : 0) | (habits->syncs ? ZKL_WAIT_SYNC : 0);
    wait.lease_ms = lease_ms;
    return wait;
}

/* What a try, a short deadline, and a semaphore that does not say its number meet. */
static bool is_to_try_again(const struct handle *h, int rc)
{
    return (h->habits.tries && (rc == ZKL_EBUSY || rc == ZKL_EUNPROVED)) ||
           (h->habits.timed && rc == ZKL_ETIMEDOUT) ||
           (h->semaphore != NULL && h->permits == 0 &&
            rc == ZKL_EMISMATCH); /* nobody has said how many, yet */
}

static int come_in(struct worker *w, struct handle *h, int64_t lease_ms)
{
    for (int passed = 0;; passed++) {
        struct zkl_wait wait = wait_of(w, &h->habits, lease_ms, passed);
        int rc = lock(w, h, &wait, &w->held);
        if (rc == 0 || !is_to_try_again(h, rc))
            return rc;
        nap(200000 + below(w, 1800000));
    }
}

static int leave(struct worker *w, struct handle *h, struct held *held)
{
    note(w, '-', h, held);
    return unlock(w, h, held);
}

/* Reads before the writer has left: nobody is between. */
static int downgrade(struct worker *w, struct handle *writer, struct handle *reader)
{
    struct zkl_wait wait = wait_for(RUN_MS);
    struct held held;
    int rc = lock(w, reader, &wait, &held);

    if (rc != 0)
        return rc;
    note(w, '+', reader, &held);
    rc = leave(w, writer, &w->held);
    nap(NAP_NS);
    int last = leave(w, reader, &held);
    return rc == 0 ? last : rc;
}

/* The lease runs out before the unlock. *in_time: it had been granted with a part of it left, and was noted. */
static int stay_too_long(struct worker *w, struct handle *h, bool *in_time)
{
    int rc = come_in(w, h, LATE_LEASE_MS);

    if (rc != 0)
        return rc;
    *in_time = zkl_mutex_still_held(h->mutex, LATE_LEASE_MS / 2) == 1;
    if (*in_time) {
        note(w, '+', h, &w->held);
        note(w, '-', h, &w->held);
    }
    while (zkl_mutex_still_held(h->mutex, 0) == 1)
        nap(10000000);
    nap(2000000); /* "no" is said in the last millisecond, too, in which unlock is in time */
    rc = unlock(w, h, &w->held);
    return rc == ZKL_ELOST ? 0 : rc == 0 ? ZKL_EINVAL : rc;
}

static int visit_once(struct worker *w, struct handle *h, struct handle *reader, bool late)
{
    bool in_time = false;
    int rc = 0;

    while (late && rc == 0 && !in_time)
        rc = stay_too_long(w, h, &in_time);
    if (late)
        return rc;
    rc = come_in(w, h, h->habits.lease_ms);
    if (rc != 0)
        return rc;
    note(w, '+', h, &w->held);
    nap(h->access == 'p' ? PERMIT_NAP_NS : NAP_NS);
    return h->habits.downgrades ? downgrade(w, h, reader) : leave(w, h, &w->held);
}

static int visit(struct worker *w, const char *name, int rounds, int writers)
{
    char read[40], write[40];
    int rc = 0;

    snprintf(read, sizeof read, "%s.read", name);
    snprintf(write, sizeof write, "%s.write", name);
    struct handle *whole = handle_find(name), *reader = handle_find(read),
                  *writer = handle_find(write);
    for (int i = 0; rc == 0 && i < rounds; i++) {
        struct handle *h = whole != NULL ? whole : below(w, 100) < writers ? writer : reader;
        if (h == NULL)
            return ZKL_EINVAL;
        rc = visit_once(w, h, reader, h->habits.late && i % LATE_EACH == 0);
        if (h->habits.naps)
            nap(below(w, 6000000));
    }
    return rc;
}

/* --- what a worker does for a test step by step -------------------------------------------------- */

static void tell_node(const struct worker *w, struct handle *h)
{
    char path[NODE_SIZE];
    int rc = handle_node(h, &w->held, 0, path, sizeof path);

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
        nap(NAP_NS);
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

static int lock_within(struct worker *w, struct handle *h, int ms)
{
    struct zkl_wait wait = wait_for(ms);

    return handle_lock(h, &wait, &w->held);
}

static void obey_handle(struct worker *w, struct handle *h, char **words)
{
    if (strcmp(words[1], "lock") == 0)
        answer_code(w, lock_within(w, h, atoi(words[3])));
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

/* What this peer has in use, or, for the test's own test, does not give back. */
static void tell_heap(const struct worker *w)
{
    struct mallinfo2 heap = mallinfo2();
    char bytes[24];

    snprintf(bytes, sizeof bytes, "%zu", heap.uordblks + heap.hblkhd);
    answer(w, "ok", bytes);
}

static void *sleep_on(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void leak(const struct worker *w, const char *what)
{
    static char *volatile last; /* a compiler must not leave it out */
    pthread_t thread;

    if (strcmp(what, "memory") == 0 && (last = malloc(LEAK)) != NULL)
        memset(last, 1, LEAK);
    bool failed = (strcmp(what, "descriptors") == 0 && dup(STDERR_FILENO) < 0) ||
                  (strcmp(what, "threads") == 0 && pthread_create(&thread, NULL, sleep_on, NULL));
    answer(w, failed ? "error" : "ok", "");
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
    else if (strcmp(words[1], "play") == 0 && peer_play != NULL)
        peer_play(w, words[2]);
    else if (strcmp(words[1], "do") == 0)
        steps_do(w, words + 2);
    else if (strcmp(words[1], "weigh") == 0)
        tell_heap(w);
    else if (strcmp(words[1], "leak") == 0)
        leak(w, words[2]);
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
    for (size_t i = 0; i < length; i++)
        w->random = w->random * 31 + (unsigned char)name[i];
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
        if (strcmp(line + strlen(w->name), " cancel\n") == 0)
            zkl_cancel_set(w->cancel);
        else
            strcpy(w->order, line);
        pthread_cond_signal(&w->cond);
        pthread_mutex_unlock(&w->mu);
    }
}

struct zkl_client *peer_client(void)
{
    return client;
}

int main(int argc, char **argv)
{
    servers = argv[1];
    credential = argc > 3 ? argv[3] : NULL;
    journal = argc > 2 ? open(argv[2], O_RDWR | O_APPEND | O_CLOEXEC) : -1;
    if (argc < 3 || argc > 4 || peer_open(&client) != 0) {
        fprintf(stderr, "%s\n",
                argc == 3 || argc == 4 ? zkl_error_detail() : "peer SERVERS JOURNAL [CREDENTIAL]");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    serve();
    _exit(zkl_client_close(client, CLOSE_MS) != 0 ||
          zkl_client_free(client) != 0); /* the workers may be anywhere */
}
