/* SPDX-License-Identifier: Apache-2.0 */
/* A holder's process is stopped for longer than its session lives, and goes on; and answers that
 * come late. */
#include "fault.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define SESSION_MS 1000
#define MS INT64_C(1000000)

/* What parent and child share. The child writes all of it, except go and quit. */
static struct shared {
    atomic_int go;      /* the round that the child may lock for */
    atomic_int holding; /* the round that it holds in */
    atomic_int woken;   /* the round whose pause it has noticed */
    atomic_int through; /* the round that it has unlocked */
    atomic_bool quit;
    atomic_ullong token;
    atomic_llong window_ms; /* at the first look after the pause */
    atomic_int early;       /* callbacks that had begun when that look was over */
    struct told told;
    atomic_int lock_rc, still_held, unlock_rc, owed_rc;
    atomic_int rc; /* of the manual's example */
} * b;

/* --- the child -------------------------------------------------------------------------------- */

static struct zkl_mutex *its; /* the child's */

/* Reads the clock without a break, until it has jumped. */
static void work_until_paused(void)
{
    int64_t before = net_boot_ns(), now;

    b->token = zkl_mutex_token(its);
    b->holding = b->go;
    while ((now = net_boot_ns()) - before <= SESSION_MS * MS && !b->quit)
        before = now;
}

/* The window is looked at before anything else: what the thread does for a living would come next. */
static void look_and_unlock(void)
{
    b->told = (struct told){0};
    b->lock_rc = zkl_mutex_lock(its);
    work_until_paused();
    b->window_ms = zkl_mutex_window_ms(its);
    b->early = b->told.lost + b->told.suspect + b->told.held;
    b->still_held = zkl_mutex_still_held(its, 0);
    b->woken = b->go;
    int64_t end = net_now_ms() + WAIT_MS;
    while (b->told.lost == 0 && net_now_ms() < end)
        net_nap_ms(2);
    b->unlock_rc = zkl_mutex_unlock(its);
    b->owed_rc = zkl_mutex_unlock(its);
}

/* The example of zkl_mutex_unlock(3), and what its unlock said beside. */
static int do_locked(struct zkl_mutex *mutex, void (*work)(void))
{
    int rc = zkl_mutex_lock(mutex);
    if (rc != 0)
        return rc;
    work();
    rc = zkl_mutex_unlock(mutex);
    b->unlock_rc = rc;
    return zkl_error_is_lost(rc) ? rc : 0;
}

/* It looks at nothing but the clock, and is done as soon as it has been stopped. */
static void do_the_example(void)
{
    b->told.held = 0;
    b->rc = do_locked(its, work_until_paused);
}

static void child_main(void (*one_round)(void))
{
    struct zkl_client_options options =
        fault_client_options(zks_connect_string(server), SESSION_MS);
    struct zkl_client *client;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (zkl_client_open(&client, &options) != 0 || zkl_mutex_new(&its, client, "/pause", NULL) != 0)
        _exit(1);
    zkl_mutex_set_callback(its, told_fn, &b->told);
    while (!b->quit) {
        if (b->go > b->through) {
            one_round();
            b->through = b->go;
        }
        net_nap_ms(2);
    }
    _exit(zkl_mutex_free(its) == 0 && zkl_client_free(client) == 0 ? 0 : 2);
}

/* --- the parent ------------------------------------------------------------------------------- */

static pid_t begin_child(void (*one_round)(void))
{
    b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check_true(b != MAP_FAILED);
    pid_t pid = fork();
    if (pid == 0)
        child_main(one_round);
    check_num(pid, >, 0);
    return pid;
}

static void end_child(pid_t pid)
{
    int status = 0;

    b->quit = true;
    check_wait(waitpid(pid, &status, WNOHANG) == pid, WAIT_MS);
    check_num(status, ==, 0);
    munmap(b, sizeof *b);
}

/* The child holds and is stopped, until its session has ended and the rival has the lock. How often it had heard that its
 * hold is proved again. */
static int stop_and_go_on(pid_t pid, struct zkl_mutex *rival, int round)
{
    int status = 0;

    b->go = round;
    check_wait(b->holding == round, WAIT_MS);
    check_ok(b->lock_rc);
    uint64_t token = b->token;
    net_nap_ms(37 * round % 250); /* somewhere between two heartbeats */
    check_ok(kill(pid, SIGSTOP));
    check_num(waitpid(pid, &status, WUNTRACED), ==, pid);
    int64_t stopped_ms = net_now_ms();
    int held = b->told.held; /* again, before it was stopped */
    check_true(held == 0 || lag_is_slow());
    check_ok(zkl_mutex_lock_for(rival, WAIT_MS)); /* once the session has ended */
    check_num(zkl_mutex_token(rival), >, token);
    check_wait(net_now_ms() > stopped_ms + SESSION_MS + 100, WAIT_MS); /* a jump it can't miss */
    check_ok(kill(pid, SIGCONT));
    return held;
}

static void pause_once(pid_t pid, struct zkl_mutex *rival, int round)
{
    int held = stop_and_go_on(pid, rival, round);

    check_wait(b->woken == round, WAIT_MS);
    check_num(b->window_ms, ==, 0);
    check_num(b->still_held, ==, 0);
    check_wait(b->through == round, WAIT_MS);
    check_num(b->told.lost, ==, 1);
    check_true(b->told.reason == ZKL_REASON_EXPIRED || b->told.reason == ZKL_REASON_NODE_DELETED);
    check_num(b->told.held, ==, held);
    check_num(b->unlock_rc, ==, ZKL_ELOST);
    check_num(b->owed_rc, ==, ZKL_ENOTOWNER);
    check_num(zkl_mutex_still_held(rival, 1), ==, 1);
    check_ok(zkl_mutex_unlock(rival));
}

/* Before any callback has run. Its callback reports LOST exactly once. The process owes one unlock, which
 * says lost, and locks again with the same handle. Meanwhile another client had the lock with a larger
 * token. The scheduler decides whether the look or the callback comes first: rounds go on until the look did
 * often enough, up to ten times as many. Modes: F9. */
WORLD_TEST(stopped_holder_sees_it_at_the_first_look)
{
    pid_t pid = begin_child(look_and_unlock);
    int rounds = test_length(20, 4), first = 0;
    struct zkl_mutex *rival = world_mutex(world_direct(10000), "/pause");

    for (int round = 1; first < rounds && round <= 10 * rounds; round++) {
        pause_once(pid, rival, round);
        first += b->early == 0;
    }
    end_child(pid);
    if (first == 0) {
        print_message("the scheduler let no look come before the callback\n");
        skip();
    }
}

/* Its unlock says so, and the manual's example returns that code, even if the client has not heard of the end yet.
 * Modes: F9. */
WORLD_TEST(stopped_holder_is_not_told_that_all_is_well)
{
    pid_t pid = begin_child(do_the_example);
    int rounds = test_length(20, 4), doubts = 0;
    struct zkl_mutex *rival = world_mutex(world_direct(lag_session_ms(10000)), "/pause");

    for (int round = 1; round <= rounds; round++) {
        stop_and_go_on(pid, rival, round);
        check_wait(b->through == round, WAIT_MS);
        check_true(b->unlock_rc == ZKL_EDOUBT || b->unlock_rc == ZKL_ELOST);
        check_num(b->rc, ==, b->unlock_rc);
        check_ok(zkl_mutex_unlock(rival));
        doubts += b->unlock_rc == ZKL_EDOUBT;
    }
    print_message("%d of %d in doubt, the others lost\n", doubts, rounds);
    end_child(pid);
}

/* Not from the answer. That to the next heartbeat would prove more, and is dropped. */
WORLD_TEST(late_answer_proves_from_its_sending)
{
    enum {
        TIMEOUT_MS = 4000,
        /* P + 2 D: the server must have answered something before. */
        OLD_MS = TIMEOUT_MS / 4 + TIMEOUT_MS / 8,
        WINDOW_MS = TIMEOUT_MS * 15 / 16 - OLD_MS /* so much a proof shows from its sending on */
    };

    struct proxy *proxy = world_proxy();
    struct zkl_client *client = world_through(proxy, TIMEOUT_MS);
    struct zkl_mutex *mutex = world_mutex(client, "/late");
    check_ok(zkl_mutex_lock(mutex));
    proxy_reset_counts(proxy);
    check_ok(proxy_hold_reply(proxy, PROXY_MULTI, 6));
    check_ok(proxy_drop_reply(proxy, PROXY_MULTI, 7, PROXY_THEN_SILENT));
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    int64_t held_ms = net_now_ms();
    check_wait(net_now_ms() - held_ms >= TIMEOUT_MS / 5, WAIT_MS);
    proxy_release(proxy);
    check_ok(proxy_wait_count(proxy, PROXY_MULTI, 7, WAIT_MS)); /* so the one before was answered */
    int64_t since_ms = net_now_ms() - held_ms;
    int64_t window_ms = zkl_mutex_window_ms(mutex);
    check_num(window_ms, <=, WINDOW_MS - since_ms + 1);
    check_num(window_ms, >, 0);
    proxy_cut(proxy);
    check_wait(zkl_mutex_window_ms(mutex) > WINDOW_MS - 600, WAIT_MS);
    check_ok(zkl_mutex_unlock(mutex));
}

/* No grant has less than T/8 of window, also where the node was kept (retain_ms). */
WORLD_TEST(a_kept_lock_has_an_eighth)
{
    enum { TIMEOUT_MS = 2000, MARGIN_MS = 20 };
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    int64_t least_ms = TIMEOUT_MS, grants = 0;

    options.retain_ms = QUIET_MS;
    struct proxy *proxy = world_proxy();
    struct zkl_client *client = world_through(proxy, TIMEOUT_MS);
    struct zkl_mutex *mutex = world_mutex_with(client, "/kept", &options);
    int64_t end_ms = net_now_ms() + TIMEOUT_MS;
    while (net_now_ms() < end_ms) { /* until heartbeats keep the window open */
        check_ok(zkl_mutex_lock(mutex));
        check_ok(zkl_mutex_unlock(mutex));
        net_nap_ms(5);
    }
    proxy_hole(proxy, PROXY_BOTH);
    while (zkl_mutex_trylock(mutex) == 0) {
        int64_t window_ms = zkl_mutex_window_ms(mutex);
        least_ms = window_ms < least_ms ? window_ms : least_ms;
        grants++;
        if (zkl_mutex_unlock(mutex) != 0)
            break;
        net_nap_ms(1);
    }
    print_message("%lld grants, the least window %lld ms of %d\n", (long long)grants,
                  (long long)least_ms, TIMEOUT_MS);
    check_num(least_ms, >=, TIMEOUT_MS / 8 - MARGIN_MS);
    proxy_cut(proxy);
    proxy_heal(proxy);
}
