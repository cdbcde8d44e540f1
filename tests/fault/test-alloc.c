/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, threads and descriptors run out at every place in the library where something is asked
 * for: the call says so or succeeds all the same, and what is left behind is nothing.
 *
 * The program is linked so that malloc and its like come here first. A scene is played again and
 * again with the nth request refused, for n = 1, 2, 3 ... until one is played to its end without
 * meeting it. Only what the library asks for counts: libzookeeper calls malloc by itself, and the
 * test's own thread says when it needs some. Who stands before us in the queue is a node of a raw
 * client, which no fault can keep from leaving. */
#include "fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "api/client.h"

#define SESSION_MS 5000
#define N_MAX 400 /* a scene that asks more often than this never ends */

/* --- the fault -------------------------------------------------------------------------------- */

static atomic_bool armed;
static atomic_int asked;     /* since it was armed */
static atomic_int fail_from; /* the first that is refused */
static atomic_int fail_count;
static atomic_int thread_asked, thread_fails;
static _Thread_local bool exempt; /* the test itself */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *text);
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static bool refused(void)
{
    if (!armed || exempt)
        return false;
    int n = atomic_fetch_add(&asked, 1) + 1;
    if (n < fail_from || n >= fail_from + fail_count)
        return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refused() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return refused() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *text)
{
    return refused() ? NULL : __real_strdup(text);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg)
{
    if (thread_fails != 0 && ++thread_asked == thread_fails)
        return EAGAIN;
    return __real_pthread_create(thread, attr, main, arg);
}

static void arm(int from, int count)
{
    asked = 0;
    fail_from = from;
    fail_count = count;
    armed = true;
}

/* True if the fault struck. */
static bool disarm(void)
{
    armed = false;
    return asked >= fail_from;
}

/* --- scenes ----------------------------------------------------------------------------------- */

struct bench {
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct wire *wire;
    char before[200]; /* the node before us */
    struct actor *actor;
    struct told told;
};

static const char *const path = "/alloc/a/b";

static int set_up(void **state)
{
    struct bench *b = calloc(1, sizeof *b);

    if (b == NULL)
        return -1;
    b->client = fault_open(zks_connect_string(server), SESSION_MS);
    b->mutex = fault_mutex(b->client, path);
    b->wire = fault_wire();
    /* The path is there, and does not go before the end. */
    check_ok(wire_create(b->wire, "/alloc", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(b->wire, "/alloc/a", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(b->wire, path, "", WIRE_PERSISTENT, NULL, 0));
    b->actor = actor_new();
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    zkl_mutex_free(b->mutex);
    zkl_client_free(b->client);
    wire_delete_tree(b->wire, "/alloc");
    wire_close(b->wire);
    actor_free(b->actor);
    free(b);
    return 0;
}

static bool no_memory(int rc)
{
    return rc == ZKL_ENOMEM || rc == ZKL_ESYSTEM;
}

/* After the fault all is as ever. */
static void check_works(struct bench *b, struct zkl_client *client, struct zkl_mutex *mutex)
{
    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    check_num(fault_children(b->wire, path), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
    fault_check_rest(client, b->wire, path, 3000);
}

/* Play a scene with each n, with one refusal and with some in a row. */
static void play(struct bench *b, bool (*scene)(struct bench *, int n, int count))
{
    static const int counts[] = {1, 3, 1000};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int n = 1;
        while (n < N_MAX && scene(b, n, counts[i]))
            n++;
        print_message("    %d at a time: %d places\n", counts[i], n - 1);
        check_num(n, <, N_MAX);
        check_num(n, >, 1);
        check_ok(wire_ping(b->wire));
    }
}

/* --- opening ---------------------------------------------------------------------------------- */

static bool open_it(struct bench *b, int n, int count)
{
    struct zkl_client_options options =
        fault_client_options(zks_connect_string(server), SESSION_MS);
    struct zkl_client *client = NULL;

    options.owner = "somebody";
    options.auth_scheme = "digest";
    options.auth_credential = "user:password";
    options.connect_timeout_ms = 1000;
    int threads = fault_threads();
    arm(n, count);
    int rc = zkl_client_open(&client, &options);
    bool struck = disarm();
    check_true(rc == 0 || no_memory(rc) || (struck && rc == ZKL_EDISCONNECTED));
    check_true((client != NULL) == (rc == 0));
    if (client != NULL) {
        struct zkl_mutex *mutex = fault_mutex(client, path);
        check_works(b, client, mutex);
        check_ok(zkl_mutex_free(mutex));
        check_ok(zkl_client_free(client));
    }
    check_wait(fault_threads() == threads, WAIT_MS);
    return struck;
}

/* Each request for memory in zkl_client_open is refused in turn: no client and no thread, or one
 * that works. */
static void no_memory_while_opening(void **state)
{
    play(*state, open_it);
}

static bool new_mutex(struct bench *b, int n, int count)
{
    struct zkl_mutex *mutex = NULL;

    arm(n, count);
    int rc = zkl_mutex_new(&mutex, b->client, "/alloc/another");
    bool struck = disarm();
    check_num(rc, ==, struck ? ZKL_ENOMEM : 0);
    check_true((mutex != NULL) == (rc == 0));
    check_ok(zkl_mutex_free(mutex));
    return struck;
}

static void no_memory_for_a_mutex(void **state)
{
    play(*state, new_mutex);
}

/* --- locking ---------------------------------------------------------------------------------- */

/* By hand with a callback, so that there is a watch too. */
static bool lock_and_unlock(struct bench *b, int n, int count)
{
    arm(n, count);
    int rc = zkl_mutex_lock_for(b->mutex, WAIT_MS);
    int unlock_rc = rc == 0 ? zkl_mutex_unlock(b->mutex) : 0;
    bool struck = disarm();
    check_true(rc == 0 || (struck && no_memory(rc)));
    check_true(unlock_rc == 0 || (struck && unlock_rc == ZKL_EUNCONFIRMED));
    check_works(b, b->client, b->mutex);
    return struck;
}

/* Each request for memory in lock and unlock, on the calling thread or behind it, is refused in
 * turn: the lock fails with ENOMEM or is held, the unlock is done or goes on in the background. */
static void no_memory_while_locking(void **state)
{
    play(*state, lock_and_unlock);
}

static void no_memory_while_locking_with_a_callback(void **state)
{
    struct bench *b = *state;

    check_ok(zkl_mutex_set_callback(b->mutex, told_fn, &b->told));
    play(b, lock_and_unlock);
    check_num(b->told.lost, ==, 0);
}

/* The path is not there yet. */
static bool lock_a_new_path(struct bench *b, int n, int count)
{
    check_ok(wire_delete_tree(b->wire, "/alloc"));
    return lock_and_unlock(b, n, count);
}

static void no_memory_while_making_the_path(void **state)
{
    play(*state, lock_a_new_path);
}

static bool trylock(struct bench *b, int n, int count)
{
    arm(n, count);
    int rc = zkl_mutex_trylock(b->mutex);
    bool struck = disarm();
    check_true(rc == 0 || (struck && no_memory(rc)));
    if (rc == 0)
        check_ok(zkl_mutex_unlock(b->mutex));
    check_works(b, b->client, b->mutex);
    return struck;
}

static void no_memory_while_trying(void **state)
{
    play(*state, trylock);
}

static void stand_before_us(struct bench *b)
{
    check_ok(wire_create(b->wire, "/alloc/a/b/_c_00000000-0000-4000-8000-000000000000-lock-", "",
                         WIRE_EPHEMERAL_SEQUENTIAL, b->before, sizeof b->before));
}

static void step_aside(struct bench *b)
{
    exempt = true;
    check_ok(wire_delete(b->wire, b->before, -1));
    exempt = false;
}

static bool try_in_vain(struct bench *b, int n, int count)
{
    stand_before_us(b);
    arm(n, count);
    int rc = zkl_mutex_trylock(b->mutex);
    bool struck = disarm();
    check_true(rc == ZKL_EBUSY || (struck && no_memory(rc)));
    step_aside(b);
    check_works(b, b->client, b->mutex);
    return struck;
}

static void no_memory_while_trying_in_vain(void **state)
{
    play(*state, try_in_vain);
}

/* Somebody of this client waits for his turn, with or without a watch on his own node. */
static bool in_queue(struct zkl_client *client)
{
    zkl_driver_lock(client->driver);
    const struct zkl_contender *first = client->driver->core.first;
    bool queued = first != NULL && first->machine.state == ZKL_WAITING;
    zkl_driver_unlock(client->driver);
    return queued;
}

static bool wait_and_be_granted(struct bench *b, int n, int count)
{
    stand_before_us(b);
    arm(n, count);
    actor_begin(b->actor, act_lock, b->mutex, NULL);
    check_wait(!actor_busy(b->actor) || in_queue(b->client), WAIT_MS);
    step_aside(b);
    int rc = actor_end(b->actor, WAIT_MS);
    bool struck = disarm();
    check_true(rc == 0 || (struck && no_memory(rc)));
    if (rc == 0)
        check_ok(actor_do(b->actor, act_unlock, b->mutex, NULL));
    check_works(b, b->client, b->mutex);
    return struck;
}

/* The wait behind somebody else, whose unlock wakes it, is short of memory. */
static void no_memory_while_waiting(void **state)
{
    play(*state, wait_and_be_granted);
}

static bool wait_and_give_up(struct bench *b, int n, int count)
{
    struct zkl_cancel *cancel = NULL;

    stand_before_us(b);
    arm(n, count);
    int rc = zkl_cancel_new(&cancel);
    check_true(rc == 0 || (n == 1 && rc == ZKL_ENOMEM));
    actor_begin(b->actor, act_lock_cancel, b->mutex, cancel);
    check_wait(!actor_busy(b->actor) || in_queue(b->client), WAIT_MS);
    if (cancel == NULL)
        step_aside(b);
    zkl_cancel_set(cancel);
    int wait_rc = actor_end(b->actor, WAIT_MS);
    bool struck = disarm();
    check_true(wait_rc == (cancel ? ZKL_ECANCELED : 0) || (struck && no_memory(wait_rc)));
    if (wait_rc == 0)
        check_ok(actor_do(b->actor, act_unlock, b->mutex, NULL));
    if (cancel != NULL)
        step_aside(b);
    zkl_cancel_free(cancel);
    check_works(b, b->client, b->mutex);
    return struck;
}

/* A wait is cancelled, and the janitor that clears up after it is short of memory. */
static void no_memory_while_giving_up(void **state)
{
    play(*state, wait_and_give_up);
}

/* --- closing ---------------------------------------------------------------------------------- */

static bool close_it(struct bench *b, int n, int count)
{
    struct zkl_client *client = fault_open(zks_connect_string(server), SESSION_MS);
    struct zkl_mutex *mutex = fault_mutex(client, path);

    stand_before_us(b);
    arm(n, count);
    actor_begin(b->actor, act_lock, mutex, NULL);
    check_wait(!actor_busy(b->actor) || in_queue(client), WAIT_MS);
    int close_rc = zkl_client_close(client, WAIT_MS);
    int rc = actor_end(b->actor, WAIT_MS);
    bool struck = disarm();
    check_num(close_rc, ==, 0);
    check_true(rc == ZKL_ECLOSED || (struck && no_memory(rc)));
    check_ok(zkl_mutex_free(mutex));
    check_ok(zkl_client_free(client));
    step_aside(b);
    check_works(b, b->client, b->mutex);
    return struck;
}

/* The client is closed while somebody waits: closing needs no memory. */
static void no_memory_while_closing(void **state)
{
    play(*state, close_it);
}

static bool expire_it(struct bench *b, int n, int count)
{
    int64_t session = fault_session(b->client);
    fault_expire(b->client, 0);
    arm(n, count);
    int rc = zkl_mutex_lock_for(b->mutex, WAIT_MS);
    bool struck = disarm();
    check_true(rc == 0 || (struck && (no_memory(rc) || rc == ZKL_ETIMEDOUT)));
    if (rc == 0)
        rc = zkl_mutex_unlock(b->mutex);
    check_wait(fault_session(b->client) != session && fault_session(b->client) != 0, WAIT_MS);
    check_works(b, b->client, b->mutex);
    return struck;
}

/* The session has ended, and memory is short while the next one is made. */
static void no_memory_for_the_next_session(void **state)
{
    struct bench *b = *state;

    for (int n = 1; n < 12; n++)
        expire_it(b, n, n % 2 ? 1 : 3);
}

/* --- threads and descriptors ------------------------------------------------------------------ */

static int open_plain(struct zkl_client **client)
{
    struct zkl_client_options options =
        fault_client_options(zks_connect_string(server), SESSION_MS);

    options.connect_timeout_ms = 1000;
    return zkl_client_open(client, &options);
}

/* A thread of the library can't be made: open fails with ESYSTEM, and leaves neither threads nor a
 * session behind. */
static void no_thread_while_opening(void **state)
{
    struct bench *b = *state;
    int threads = fault_threads();
    int sessions = flw_connections(zks_host(), zks_port(server, 0));

    for (int n = 1; n <= 2; n++) {
        struct zkl_client *client = NULL;
        thread_asked = 0;
        thread_fails = n;
        int rc = open_plain(&client);
        thread_fails = 0;
        check_num(rc, ==, ZKL_ESYSTEM);
        check_true(client == NULL);
        check_true(strstr(zkl_error_detail(), zkl_strerror(ZKL_ESYSTEM)) != NULL);
        check_wait(fault_threads() == threads, WAIT_MS);
        check_wait(flw_connections(zks_host(), zks_port(server, 0)) == sessions, WAIT_MS);
    }
    check_works(b, b->client, b->mutex);
}

static int count_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");

    check_true(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* but the folder's own */
}

/* Below the result so many numbers are free. */
static rlim_t number_above(int more)
{
    rlim_t fd = 0;

    for (; more > 0; fd++)
        more -= fcntl((int)fd, F_GETFD) < 0;
    return fd;
}

/* New descriptors only below this number. */
static void limit_descriptors(rlim_t n)
{
    struct rlimit limit;

    check_ok(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = n;
    check_ok(setrlimit(RLIMIT_NOFILE, &limit));
}

/* Without descriptors the thread sanitizer can't name functions, so that libzookeeper's race, which is
 * suppressed by name, would be reported: the test is skipped there, and says so. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

/* Descriptors run out at every place of an open in turn: it fails and leaves none, or the client
 * works once there are some again. */
static void no_descriptor_while_opening(void **state)
{
    struct bench *b = *state;
    struct rlimit limit;
    int threads = fault_threads(), before = count_descriptors();

    if (UNDER_TSAN) {
        print_message("skipped: the thread sanitizer can't run this\n");
        skip();
    }
    check_ok(getrlimit(RLIMIT_NOFILE, &limit));
    for (int more = 0; more < 12; more++) {
        struct zkl_client *client = NULL;
        limit_descriptors(number_above(more));
        int rc = open_plain(&client);
        limit_descriptors(limit.rlim_cur);
        print_message("    %d more: %d\n", more, rc);
        check_true(rc == 0 || rc == ZKL_ESYSTEM || rc == ZKL_EDISCONNECTED);
        check_true(rc == 0 || more < 11);
        check_true(rc != 0 || more > 0);
        if (rc == 0) {
            struct zkl_mutex *mutex = fault_mutex(client, path);
            check_works(b, client, mutex);
            check_ok(zkl_mutex_free(mutex));
            check_ok(zkl_client_free(client));
        }
        check_wait(fault_threads() == threads, WAIT_MS);
        check_wait(count_descriptors() == before, WAIT_MS);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(no_memory_while_opening),         TEST(no_memory_for_a_mutex),
        TEST(no_memory_while_locking),         TEST(no_memory_while_locking_with_a_callback),
        TEST(no_memory_while_making_the_path), TEST(no_memory_while_trying),
        TEST(no_memory_while_trying_in_vain),  TEST(no_memory_while_waiting),
        TEST(no_memory_while_giving_up),       TEST(no_memory_while_closing),
        TEST(no_memory_for_the_next_session),  TEST(no_thread_while_opening),
        TEST(no_descriptor_while_opening),
    };
    return fault_main(argc, argv, tests, NULL);
}
