/* SPDX-License-Identifier: Apache-2.0 */
/* What unlock says of a hold whose window was empty: somebody else may have held meanwhile. */
#include "fault.h"

/* --- each kind of hold, as one thread has it -------------------------------------------------- */

enum how { PLAIN, POSTED, KEPT, ANY_THREAD, WRITES, READS, DOWNGRADED, TWICE, OWNED, HOWS };

struct side {
    struct zkl_client *client;
    struct zkl_mutex *mutexes[HOWS];
    struct zkl_rwlock *rwlocks[HOWS]; /* whose half that is, or NULL */
    struct zkl_owner *owner;
    struct zkl_semaphore *semaphore;
    struct zkl_permit *permits[2];
    struct zkl_multi *as_one, *in_turn; /* of two mutexes; of one and a semaphore */
};

static void open_side(struct side *s, struct zkl_client *client)
{
    *s = (struct side){.client = client, .owner = world_owner()};
    for (enum how how = 0; how < HOWS; how++) {
        struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
        char path[32];
        snprintf(path, sizeof path, "/doubt/%d", how);
        options.posted_unlock = how == POSTED;
        options.retain_ms = how == KEPT ? QUIET_MS : 0;
        options.local_handoffs_max = how == KEPT ? 5 : 0;
        if (how == WRITES || how == READS || how == DOWNGRADED)
            s->rwlocks[how] = world_rwlock(client, path, NULL);
        s->mutexes[how] = how == ANY_THREAD ? world_semaphore_mutex(client, path)
                          : how == WRITES   ? zkl_rwlock_writer(s->rwlocks[how])
                          : s->rwlocks[how] ? zkl_rwlock_reader(s->rwlocks[how])
                                            : world_mutex_with(client, path, &options);
    }
    s->semaphore = world_semaphore(client, "/doubt/permits", 2, NULL);
    struct zkl_semaphore *single = world_semaphore(client, "/doubt/single", 1, NULL);
    struct zkl_member of_mutexes[] = {zkl_member_mutex(world_mutex(client, "/doubt/member0")),
                                      zkl_member_mutex(world_mutex(client, "/doubt/member1"))};
    struct zkl_member of_both[] = {zkl_member_mutex(world_mutex(client, "/doubt/member2")),
                                   zkl_member_semaphore(single, 1)};
    s->as_one = world_multi(client, of_mutexes, 2);
    s->in_turn = world_multi(client, of_both, 2);
}

static void lock_seat(struct side *s, enum how how)
{
    struct zkl_owner *before = how == OWNED ? zkl_owner_use(s->owner) : NULL;

    if (how == DOWNGRADED)
        check_ok(zkl_mutex_lock_for(zkl_rwlock_writer(s->rwlocks[how]), WAIT_MS));
    for (int i = 0; i < 1 + (how == TWICE); i++)
        check_ok(zkl_mutex_lock_for(s->mutexes[how], WAIT_MS));
    if (how == DOWNGRADED)
        check_ok(zkl_mutex_unlock(zkl_rwlock_writer(s->rwlocks[how])));
    if (how == OWNED)
        zkl_owner_use(before);
}

static void lock_all(struct side *s)
{
    for (enum how how = 0; how < HOWS; how++)
        lock_seat(s, how);
    check_ok(zkl_semaphore_acquire(s->semaphore, 2, NULL, s->permits));
    check_ok(zkl_multi_lock_for(s->as_one, WAIT_MS));
    check_ok(zkl_multi_lock_for(s->in_turn, WAIT_MS));
}

/* --- in doubt --------------------------------------------------------------------------------- */

static void check_code(int rc, int due)
{
    check_num(rc, ==, due);
    check_num(zkl_error_is_lost(rc), ==, rc == ZKL_EDOUBT);
    check_num(zkl_error_is_retryable(rc), ==, 0);
}

/* Each unlock of it says that. */
static void unlock_seat(struct side *s, enum how how, int due)
{
    struct zkl_mutex *mutex = s->mutexes[how];

    if (how == OWNED) {
        check_code(async_unlock(s->owner, mutex), due);
        return;
    }
    if (due == ZKL_EDOUBT)
        check_num(zkl_mutex_window_ms(mutex), ==, 0);
    for (int left = how == TWICE; left >= 0; left--) {
        int rc = zkl_mutex_unlock(mutex);
        check_code(rc, due);
        check_true(rc == 0 || strlen(zkl_error_detail()) > strlen(zkl_strerror(rc)));
        check_num(zkl_mutex_hold_count(mutex), ==, left);
    }
}

static void unlock_all(struct side *s, int due)
{
    struct zkl_multi *multis[] = {s->as_one, s->in_turn};
    struct completion done = {0};
    int codes[2];

    for (enum how how = 0; how < HOWS; how++)
        unlock_seat(s, how, due);
    check_code(zkl_permit_release(s->permits[0]), due);
    check_ok(zkl_permit_release_async(s->permits[1], note_completion, &done));
    check_code(completion_code(&done), due);
    for (int i = 0; i < 2; i++) {
        check_code(zkl_multi_unlock(multis[i], codes), due);
        check_code(codes[0], due);
        check_code(codes[1], due);
    }
}

/* The client hears nothing from the server, and another one may have held. Modes: F9. */
WORLD_TEST(each_kind_is_in_doubt)
{
    struct side late, rival;

    struct proxy *proxy = world_proxy();
    open_side(&late, world_through(proxy, lag_session_ms(2000)));
    open_side(&rival, world_direct(lag_session_ms(10000)));
    /* A reader does not exclude a reader. */
    rival.mutexes[READS] = zkl_rwlock_writer(rival.rwlocks[READS]);
    lock_all(&late);
    proxy_hole(proxy, PROXY_BOTH);
    lock_all(&rival);
    unlock_all(&late, ZKL_EDOUBT);
    unlock_all(&rival, 0); /* it has held all the time */
    proxy_cut(proxy);
    proxy_heal(proxy);
}

/* --- not in doubt ----------------------------------------------------------------------------- */

/* The codes of all that was unlocked; false: the window was over before all of it had begun, on a busy
 * machine. */
static bool unlock_in_time(struct side *s, struct proxy *proxy, struct zkl_owner *const *owners,
                           int *codes)
{
    struct completion dones[5] = {0};

    proxy_hole(proxy, PROXY_BOTH);
    check_ok(zkl_mutex_unlock_async(s->owner, s->mutexes[OWNED], note_completion, &dones[0]));
    check_ok(zkl_permit_release_async(s->permits[0], note_completion, &dones[1]));
    check_ok(zkl_permit_release_async(s->permits[1], note_completion, &dones[2]));
    check_ok(zkl_multi_unlock_async(owners[0], s->as_one, &codes[5], note_completion, &dones[3]));
    check_ok(zkl_multi_unlock_async(owners[1], s->in_turn, &codes[7], note_completion, &dones[4]));
    bool in_time = zkl_mutex_window_ms(s->mutexes[PLAIN]) > 0;
    for (int i = 0; i < 5; i++)
        codes[i] = completion_code(&dones[i]);
    check_wait(zkl_mutex_window_ms(s->mutexes[PLAIN]) == 0, WAIT_MS);
    check_num(zkl_error_is_lost(zkl_mutex_unlock(s->mutexes[PLAIN])), ==, 1);
    return in_time;
}

static bool try_in_time(int session_ms, int *codes)
{
    struct zkl_owner *owners[2];
    struct side s;

    struct proxy *proxy = world_proxy();
    open_side(&s, world_through(proxy, session_ms));
    for (int i = 0; i < 2; i++) {
        owners[i] = world_owner();
        zkl_owner_use(owners[i]);
        check_ok(zkl_multi_lock_for(i == 0 ? s.as_one : s.in_turn, WAIT_MS));
        zkl_owner_use(NULL);
    }
    lock_seat(&s, PLAIN);
    lock_seat(&s, OWNED);
    check_ok(zkl_semaphore_acquire(s.semaphore, 2, NULL, s.permits));
    int64_t held_ms = net_now_ms();
    check_wait(net_now_ms() - held_ms > session_ms, WAIT_MS); /* the first window is longer */
    bool in_time = unlock_in_time(&s, proxy, owners, codes);
    proxy_cut(proxy);
    proxy_heal(proxy);
    world_clear(); /* the next try begins anew */
    return in_time;
}

/* What ran empty only while unlock waited is not in doubt: what the hold was for had ended by then. The window ends
 * before the client notices that the link is dead. Beside, a hold that is unlocked after all of that is in doubt. */
WORLD_TEST(an_open_window_is_no_doubt)
{
    int codes[9], tries = 0;

    while (!try_in_time(lag_session_ms(3000), codes))
        check_num(++tries, <, 10);
    for (int i = 0; i < 9; i++) {
        check_num(codes[i], ==, ZKL_EUNCONFIRMED);
        check_num(zkl_error_is_lost(codes[i]), ==, 0);
    }
}

/* The server asks for the right first. */
WORLD_TEST(a_denied_delete_says_nothing_of_the_node)
{
    static const struct wire_acl no_delete = {1 | 4, "world", "anyone"}; /* READ, CREATE */
    struct wire *wire = world_wire();

    check_ok(wire_create_acl(wire, "/denied", "", WIRE_PERSISTENT, &no_delete, 1, NULL, 0));
    check_num(wire_delete(wire, "/denied/none", -1), ==, WIRE_NOAUTH);
    check_num(wire_delete(wire, "/none", -1), ==, WIRE_NONODE);
}
