/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: each ends in one callback, as the call it is the twin of would have returned. */
#include "check_error.h"

#include <poll.h>
#include <sched.h>

#define MS INT64_C(1000000)

/* One client, one path, some owners. */
struct scene {
    const char *path;
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct zkl_owner *a, *b;
};

static struct scene scene_with(struct zkl_client *client, const char *name)
{
    struct scene s = {.path = cluster_path(name), .client = client};

    s.mutex = world_mutex(s.client, s.path);
    s.a = world_owner();
    s.b = world_owner();
    return s;
}

static struct scene scene_open(const char *name)
{
    return scene_with(world_client(), name);
}

static int start(struct zkl_owner *owner, struct zkl_mutex *mutex, struct completion *done,
                 uint64_t *op)
{
    return zkl_mutex_acquire_async(owner, mutex, NULL, NULL, note_completion, done, op);
}

/* --- acquire and unlock ---------------------------------------------------------------------- */

struct short_life {
    struct zkl_owner *owner;
    int freed; /* what zkl_owner_free said */
    atomic_bool over;
};

static void free_owner(int code, void *arg)
{
    struct short_life *life = arg;

    (void)code;
    life->freed = zkl_owner_free(life->owner);
    atomic_store(&life->over, true);
}

/* A thread and those that it starts get one processor: a thread that is woken then often runs
 * immediately. */
static void share_one_processor(cpu_set_t *before)
{
    cpu_set_t one;
    int cpu = 0;

    check_ok(sched_getaffinity(0, sizeof *before, before));
    while (!CPU_ISSET(cpu, before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    check_ok(sched_setaffinity(0, sizeof one, &one));
}

#define EARLY_WANTED 5
#define EARLY_TRIES 20000

/* Goal: an owner may be freed in the callback of a failed acquisition, also where that comes before the
 * starting call returns, which then does not look at it any more (the address sanitizer sees it). */
WORLD_TEST(an_owner_may_be_freed_in_its_callback)
{
    cpu_set_t before;
    int early = 0, tries = 0;

    share_one_processor(&before);
    struct scene s = scene_open("short");
    struct zkl_wait over = ZKL_WAIT_INIT;
    over.deadline_ns = 1;
    for (; early < EARLY_WANTED && tries < EARLY_TRIES; tries++) {
        struct short_life life = {.owner = new_owner()};
        check_ok(
            zkl_mutex_acquire_async(life.owner, s.mutex, &over, NULL, free_owner, &life, NULL));
        early += atomic_load(&life.over);
        check_wait(atomic_load(&life.over), WAIT_MS);
        check_ok(life.freed);
    }
    check_ok(sched_setaffinity(0, sizeof before, &before));
    check_num(early, ==, EARLY_WANTED);
}

/* Of a mutex that any thread may unlock. */
WORLD_TEST(a_handle_may_go_before_the_callback)
{
    struct zkl_client *client = world_client();
    struct zkl_owner *owner = world_owner();
    struct completion done = {0};

    check_true(zkl_client_event_fd(client) >= 0);
    struct zkl_mutex *mutex = world_semaphore_mutex(client, cluster_path("any"));
    check_ok(start(owner, mutex, &done, NULL));
    check_wait(zkl_mutex_unlock(mutex) == 0, WAIT_MS);
    world_drop(mutex);
    check_num(zkl_client_dispatch(client, 10), ==, 1);
    check_ok(completion_code(&done));
}

/* --- how a wait ends ------------------------------------------------------------------------- */

/* What a deadline may be late by, if the machine is not slow; less than many spread over. */
#define BUSY_MS 2000
#define WAITING 20
#define STEP_MS 150

struct turn {
    int code;
    int64_t deadline_ns, ended_ns;
};
static atomic_int turn_count;

static void note_turn(int code, void *arg)
{
    struct turn *turn = arg;

    turn->code = code;
    turn->ended_ns = zkl_now_ns();
    atomic_fetch_add(&turn_count, 1);
}

WORLD_TEST(deadlines_end_in_their_order)
{
    struct scene s = scene_open("deadlines");
    struct turn mine[WAITING];
    int64_t start_ns;

    check_ok(async_lock(s.a, s.mutex));
    start_ns = zkl_now_ns();
    for (int i = 0; i < WAITING; i++) {
        struct zkl_wait wait = ZKL_WAIT_INIT;
        int place = (i * 7 + 13) % WAITING;
        wait.deadline_ns = start_ns + (500 + STEP_MS * place) * MS;
        mine[i] = (struct turn){.deadline_ns = wait.deadline_ns};
        check_ok(zkl_mutex_acquire_async(world_owner(), s.mutex, &wait, NULL, note_turn, &mine[i],
                                         NULL));
    }
    check_wait(atomic_load(&turn_count) == WAITING, WAIT_MS);
    for (int i = 0; i < WAITING; i++) {
        check_num(mine[i].ended_ns, >=, mine[i].deadline_ns);
        check_true(mine[i].ended_ns - mine[i].deadline_ns < BUSY_MS * MS || lag_is_slow());
        check_num(mine[i].code, ==, ZKL_ETIMEDOUT);
    }
    check_ok(async_unlock(s.a, s.mutex));
}

/* --- semaphores ------------------------------------------------------------------------------ */

/* Goal: at once, or by the callback where only the server knows the number. */
WORLD_TEST(wrong_requests_for_permits_are_refused)
{
    struct zkl_client *client = world_client();
    struct zkl_permit *two[2];
    struct completion done = {0}, none = {0};

    struct zkl_semaphore *semaphore = world_semaphore(client, cluster_path("semaphore"), 2, NULL);
    check_ok(zkl_semaphore_acquire_async(semaphore, 2, NULL, two, note_completion, &done, NULL));
    check_ok(completion_code(&done));
    check_num(zkl_permit_still_held(two[1], 1), ==, 1);
    check_ok(zkl_semaphore_acquire_async(semaphore, 3, NULL, two, note_completion, &none, NULL));
    check_num(completion_code(&none), ==, ZKL_EINVAL);
    check_num(zkl_semaphore_acquire_async(semaphore, 0, NULL, two, note_completion, &none, NULL),
              ==, ZKL_EINVAL);
    check_num(zkl_semaphore_acquire_async(semaphore, 1, NULL, NULL, note_completion, &none, NULL),
              ==, ZKL_EINVAL);
    check_num(none.calls, ==, 0);
    for (int i = 0; i < 2; i++)
        check_ok(zkl_permit_release(two[i]));
}

/* --- callbacks ------------------------------------------------------------------------------- */

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static atomic_int states_elsewhere;

static void note_state(struct zkl_client *client, enum zkl_client_state state, void *thread)
{
    (void)client, (void)state;
    if (!pthread_equal(*(pthread_t *)thread, pthread_self()))
        atomic_fetch_add(&states_elsewhere, 1);
}

static void dispatch_within(int code, void *arg)
{
    struct scene *s = arg;
    (void)code;
    s->path = zkl_client_dispatch(s->client, 1) == ZKL_EINCALLBACK &&
                      zkl_client_event_fd(s->client) == ZKL_EINCALLBACK
                  ? "refused"
                  : "allowed";
}

/* Goal: once the program has asked for the descriptor, every callback of the client runs in
 * zkl_client_dispatch, on its thread. One call runs as many as its argument says at most, in their
 * order. The descriptor is readable while callbacks are due. */
WORLD_TEST(an_event_loop_has_its_callbacks)
{
    static pthread_t here;
    struct zkl_client_options options = cluster_options();
    struct completion a = {0}, b = {0}, none = {0};

    here = pthread_self();
    options.state_fn = note_state;
    options.state_arg = &here;
    struct scene s = scene_with(world_client_with(&options), "loop");
    check_fails(zkl_client_dispatch(s.client, 1), ZKL_EINVAL, "zkl_client_event_fd");
    int fd = zkl_client_event_fd(s.client);
    check_num(fd, >=, 0);
    check_num(zkl_client_event_fd(s.client), ==, fd);
    while (zkl_client_dispatch(s.client, 10) > 0) /* what was queued before: the first connection */
        ;
    atomic_store(&states_elsewhere, 0);
    check_true(!is_readable(fd));
    check_num(zkl_client_dispatch(s.client, 0), ==, ZKL_EINVAL);
    check_ok(start(s.a, s.mutex, &a, NULL));
    check_wait(is_readable(fd), WAIT_MS);
    check_num(start(s.a, s.mutex, &none, NULL), ==, ZKL_EDEADLK);
    check_ok(start(s.b, s.mutex, &b, NULL));
    check_num(a.calls, ==, 0);
    check_num(zkl_client_dispatch(s.client, 10), ==, 1);
    check_true(pthread_equal(a.thread, pthread_self()));
    check_ok(completion_code(&a));
    check_true(!is_readable(fd));
    check_num(zkl_client_dispatch(s.client, 10), ==, 0);
    check_ok(zkl_mutex_unlock_async(s.a, s.mutex, note_completion, &a));
    check_wait(is_readable(fd) && cluster_children(s.path) == 1, WAIT_MS);
    struct zkl_wait passed = ZKL_WAIT_INIT;
    passed.deadline_ns = 1;
    check_ok(zkl_mutex_acquire_async(s.a, s.mutex, &passed, NULL, note_completion, &none, NULL));
    int ran = 0;
    while (a.calls + b.calls + none.calls < 3) { /* one by one */
        check_wait(is_readable(fd), WAIT_MS);
        int n = zkl_client_dispatch(s.client, 1);
        check_num(n, <=, 1);
        ran += n;
    }
    ran += zkl_client_dispatch(s.client, 10);
    check_num(ran, ==, 3);
    check_ok(completion_code(&a));
    check_ok(completion_code(&b));
    check_num(completion_code(&none), ==, ZKL_ETIMEDOUT);
    check_ok(zkl_mutex_unlock_async(s.b, s.mutex, dispatch_within, &s));
    check_wait(is_readable(fd), WAIT_MS);
    check_num(zkl_client_dispatch(s.client, 1), ==, 1);
    check_text(s.path, "refused");
    world_clear();
    check_num(states_elsewhere, ==, 0);
}

/* Goal: after close in a dispatch, or at the latest in zkl_client_free. */
WORLD_TEST(what_is_left_of_a_loop_is_run)
{
    struct completion first = {0}, second = {0};

    for (int dispatched = 0; dispatched < 2; dispatched++) {
        struct scene s = scene_open("left");
        check_num(zkl_client_event_fd(s.client), >=, 0);
        check_ok(start(s.a, s.mutex, &first, NULL));
        check_wait(cluster_children(s.path) == 1, WAIT_MS);
        check_ok(start(s.b, s.mutex, &second, NULL));
        check_closed(zkl_client_close(s.client, WAIT_MS));
        check_num(first.calls + second.calls, ==, 0);
        if (dispatched)
            check_num(zkl_client_dispatch(s.client, 10), >=, 2);
        world_drop(s.client);
        int code = completion_code(&first);
        check_num(completion_code(&second), ==, ZKL_ECLOSED);
        if (code == 0)
            check_num(zkl_mutex_unlock_async(s.a, s.mutex, note_completion, &first), ==, ZKL_ELOST);
    }
}

struct ending {
    struct zkl_client *client;
    struct completion *done;
    int begun;
};

static void close_within(int code, void *arg)
{
    struct ending *e = arg;
    (void)code;
    e->begun = zkl_client_close_async(e->client, note_completion, e->done);
}

static bool is_called(const struct scene *s, bool loop, const struct completion *done)
{
    if (loop)
        check_num(zkl_client_dispatch(s->client, 10), >=, 0);
    return done->calls == 1;
}

/* Goal: a client is closed without a wait, also from a callback and more than once at a time: what is under way ends
 * first, then each of these calls, and nothing is left. Method: with and without an event loop. */
WORLD_TEST(a_close_is_an_operation_too)
{
    for (int loop = 0; loop < 2; loop++) {
        struct scene s = scene_open("closing");
        struct completion first = {0}, second = {0}, none = {0};
        struct ending e = {.client = s.client, .done = &second, .begun = 1};
        check_num(zkl_client_close_async(NULL, note_completion, &none), ==, ZKL_EINVAL);
        check_num(zkl_client_close_async(s.client, NULL, &none), ==, ZKL_EINVAL);
        check_ok(async_lock(s.a, s.mutex));
        if (loop)
            check_num(zkl_client_event_fd(s.client), >=, 0);
        check_ok(zkl_mutex_acquire_async(s.b, s.mutex, NULL, NULL, close_within, &e, NULL));
        check_wait(cluster_children(s.path) == 2, WAIT_MS);
        check_ok(zkl_client_close_async(s.client, note_completion, &first));
        check_num(start(s.b, s.mutex, &none, NULL), ==, ZKL_ECLOSED);
        check_num(zkl_mutex_unlock_async(s.a, s.mutex, note_completion, &none), ==, ZKL_ELOST);
        check_wait(is_called(&s, loop, &first), WAIT_MS);
        check_ok(completion_code(&first));
        check_true(e.begun == 0 || e.begun == ZKL_ECLOSED); /* or that was over before */
        if (e.begun == 0) {
            check_wait(is_called(&s, loop, &second), WAIT_MS);
            check_ok(completion_code(&second));
        }
        check_num(second.calls, ==, 0);
        check_num(cluster_children(s.path), ==, 0);
        check_closed(zkl_client_close(s.client, WAIT_MS));
        check_num(zkl_client_close_async(s.client, note_completion, &none), ==, ZKL_ECLOSED);
        check_num(none.calls, ==, 0);
    }
}
