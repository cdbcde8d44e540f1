/* SPDX-License-Identifier: Apache-2.0 */
/* The log as events: what is in them, what a level leaves out, and what a slow callback misses. */
#include "inside.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include <zklock/metrics.h>

#include "nodes.h"
#include "proxy.h"
#include "check_error.h"

#define KEPT_MAX 4000
#define USER "alice"
#define PASSWORD "0penSesame"

struct kept {
    struct zkl_log_event event;
    char path[64], node[96], message[256];
};

/* Events in their order. */
struct book {
    pthread_mutex_t mu;
    size_t count, odd;
    char last_odd[256];
    sem_t *gate; /* not NULL: each event waits here */
    struct kept kept[KEPT_MAX];
};

static struct book book;

static struct book *new_book(void)
{
    memset(&book, 0, sizeof book);
    pthread_mutex_init(&book.mu, NULL);
    return &book;
}

static bool is_well_formed(const struct zkl_log_event *e)
{
    return e->size == sizeof *e && e->level >= ZKL_LOG_ERROR && e->level <= ZKL_LOG_DEBUG &&
           e->kind >= ZKL_LOG_KIND_SESSION && e->kind <= ZKL_LOG_KIND_DROPPED && e->time_ns > 0 &&
           e->time_ns <= zkl_now_ns() && strlen(e->message) > 10 && !strchr(e->message, '\n') &&
           !strstr(e->message, PASSWORD) && !strstr(e->why, PASSWORD);
}

static void on_event(const struct zkl_log_event *event, void *arg)
{
    struct book *b = arg;

    if (b->gate)
        sem_wait(b->gate);
    pthread_mutex_lock(&b->mu);
    if (b->count < KEPT_MAX) {
        struct kept *k = &b->kept[b->count];
        k->event = *event;
        snprintf(k->path, sizeof k->path, "%s", event->path);
        snprintf(k->node, sizeof k->node, "%s", event->node);
        snprintf(k->message, sizeof k->message, "%s", event->message);
    }
    b->count++;
    if (!is_well_formed(event)) {
        b->odd++;
        snprintf(b->last_odd, sizeof b->last_odd, "%s", event->message);
    }
    pthread_mutex_unlock(&b->mu);
}

/* The first event of this kind (and state) from the nth on, or NULL if there is none yet. */
static const struct kept *find(struct book *b, size_t from, enum zkl_log_kind kind, int state)
{
    const struct kept *found = NULL;

    pthread_mutex_lock(&b->mu);
    for (size_t i = from; !found && i < b->count && i < KEPT_MAX; i++) {
        if (b->kept[i].event.kind == kind && (state == 0 || b->kept[i].event.state == state))
            found = &b->kept[i];
    }
    pthread_mutex_unlock(&b->mu);
    return found;
}

static size_t so_far(struct book *b)
{
    pthread_mutex_lock(&b->mu);
    size_t n = b->count;
    pthread_mutex_unlock(&b->mu);
    return n;
}

static void check_book(const struct book *b)
{
    if (b->odd > 0)
        fail_msg("%zu odd events, the last: %s", b->odd, b->last_odd);
}

static struct zkl_client_options options_with(struct book *b, enum zkl_log_level level)
{
    struct zkl_client_options options = cluster_options();

    options.log_fn = on_event;
    options.log_arg = b;
    options.log_level = level;
    return options;
}

/* --- what is in them -------------------------------------------------------------------------- */

/* Goal: each kind of event has its particulars, and they stand in its message, which is one line. */
WORLD_TEST(events_have_their_particulars)
{
    const char *path = cluster_path("particulars");
    struct book *b = new_book();
    struct zkl_client_options options = options_with(b, ZKL_LOG_DEBUG);
    struct zkl_grant grant = ZKL_GRANT_INIT;
    char node[200];

    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *actor = world_actor();
    check_ok(zkl_mutex_acquire(mutex, NULL, &grant));
    check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
    check_num(actor_do(actor, do_trylock, mutex), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(mutex));
    world_clear(); /* every event has been reported then */
    const struct kept *granted = find(b, 0, ZKL_LOG_KIND_GRANTED, 0);
    const struct kept *failed = find(b, 0, ZKL_LOG_KIND_FAILED, 0);
    const struct kept *released = find(b, 0, ZKL_LOG_KIND_RELEASED, 0);
    const struct kept *moved = find(b, 0, ZKL_LOG_KIND_CONTENDER, 0);
    check_true(granted && failed && released && moved && find(b, 0, ZKL_LOG_KIND_SESSION, 0));
    check_true(granted->event.token == grant.token);
    check_text(granted->path, path);
    check_text(granted->node, strrchr(node, '/') + 1);
    check_true(granted->event.session != 0);
    check_num(granted->event.contender, ==, moved->event.contender);
    check_true(strstr(granted->message, "granted") && strstr(granted->message, node));
    check_num(failed->event.code, ==, ZKL_EBUSY);
    check_num(failed->event.level, ==, ZKL_LOG_DEBUG);
    check_true(strstr(failed->message, zkl_strerror(ZKL_EBUSY)) != NULL);
    check_num(released->event.code, ==, 0);
    check_text(released->node, granted->node);
    check_text(moved->event.from, "NEW");
    check_text(moved->event.to, "QUEUEING");
    check_num(strlen(moved->event.why), >, 0);
    check_true(strstr(moved->message, "NEW -> QUEUEING") &&
               strstr(moved->message, moved->event.why));
    check_book(b);
}

/* Goal: at the level INFO the log is silent about a lock that a thread acquires and releases. It
 * reports what becomes of the link, the session and a hold, with the reason. No event has the
 * password. */
WORLD_TEST(levels_leave_out_what_is_usual)
{
    const char *path = cluster_path("levels");
    struct book *b = new_book();
    struct zkl_client_options options = options_with(b, 0);

    struct proxy *proxy = world_proxy_for(&options);
    options.auth_scheme = "digest";
    options.auth_credential = USER ":" PASSWORD;
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, path);
    check_wait(find(b, 0, ZKL_LOG_KIND_SESSION, 0) != NULL, WAIT_MS);
    check_num(find(b, 0, ZKL_LOG_KIND_SESSION, 0)->event.level, ==, ZKL_LOG_INFO);
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_mutex_lock(mutex));
    uint64_t token = zkl_mutex_token(mutex);
    size_t before = so_far(b);
    check_num(before, ==, 1);
    proxy_cut(proxy);
    check_wait(find(b, before, ZKL_LOG_KIND_HOLD, ZKL_HOLD_SUSPECT) != NULL, WAIT_MS);
    check_wait(find(b, before, ZKL_LOG_KIND_HOLD, ZKL_HOLD_HELD) != NULL, WAIT_MS);
    check_ok(proxy_refuse(proxy, true));
    proxy_cut(proxy);
    inside_expire(client);
    check_wait(cluster_children(path) == 0, WAIT_MS);
    check_ok(proxy_refuse(proxy, false));
    check_wait(find(b, before, ZKL_LOG_KIND_HOLD, ZKL_HOLD_LOST) != NULL, WAIT_MS);
    const struct kept *lost = find(b, before, ZKL_LOG_KIND_HOLD, ZKL_HOLD_LOST);
    const struct kept *suspect = find(b, before, ZKL_LOG_KIND_HOLD, ZKL_HOLD_SUSPECT);
    check_num(lost->event.level, ==, ZKL_LOG_ERROR);
    check_num(lost->event.reason, ==, ZKL_REASON_EXPIRED);
    check_true(lost->event.token == token);
    check_text(lost->path, path);
    check_true(strstr(lost->message, "LOST") && strstr(lost->message, "the session ended"));
    check_num(suspect->event.level, ==, ZKL_LOG_WARNING);
    check_num(suspect->event.reason, ==, ZKL_REASON_LINK);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    world_clear();
    for (size_t i = 0; i < b->count; i++)
        check_num(b->kept[i].event.level, <=, ZKL_LOG_INFO);
    check_book(b);
}

/* --- a slow callback -------------------------------------------------------------------------- */

#define LOCKS 100

/* Goal: a callback that hangs costs events, not memory or time. When it returns, an event and the
 * figures say how many were dropped. */
WORLD_TEST(a_slow_callback_misses_some)
{
    struct book *b = new_book();
    struct zkl_client_options options = options_with(b, ZKL_LOG_DEBUG);
    struct zkl_client_metrics m = ZKL_CLIENT_METRICS_INIT;
    uint64_t dropped = 0;
    sem_t gate;

    check_ok(sem_init(&gate, 0, 0));
    b->gate = &gate;
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, cluster_path("slow"));
    for (int i = 0; i < LOCKS; i++) {
        check_ok(zkl_mutex_lock(mutex));
        check_ok(zkl_mutex_unlock(mutex));
    }
    check_num(so_far(b), ==, 0);
    check_ok(zkl_client_get_metrics(client, &m));
    check_num(m.log_dropped, >, LOCKS);
    for (int i = 0; i < KEPT_MAX; i++)
        sem_post(&gate);
    check_wait(find(b, 0, ZKL_LOG_KIND_DROPPED, 0) != NULL, WAIT_MS);
    check_num(find(b, 0, ZKL_LOG_KIND_DROPPED, 0)->event.level, ==, ZKL_LOG_WARNING);
    for (size_t i = 0; i < so_far(b); i++)
        dropped += b->kept[i].event.dropped;
    check_num(dropped, ==, m.log_dropped);
    world_clear();
    check_book(b);
    sem_destroy(&gate);
}

/* Goal: a level that does not exist is refused. */
WORLD_TEST(a_level_is_one_of_four)
{
    struct zkl_client_options options = options_with(new_book(), (enum zkl_log_level)5);
    struct zkl_client *client = NULL;

    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "log_level");
    options.log_level = (enum zkl_log_level) - 1;
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "log_level");
    check_true(client == NULL);
}
