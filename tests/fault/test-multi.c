/* SPDX-License-Identifier: Apache-2.0 */
/* Multi-locks while an answer of the server is lost, sessions end and members are held by others: all or none is
 * held, nothing is left. The client is behind a frame proxy; a second one, the
 * competitor, is not. */
#include "bench.h"

#define SESSION_MS lag_session_ms(2000)
#define REST_MS 1000
#define LONG_MS lag_session_ms(4000) /* half of it is enough for one member after the other */
#define MEMBERS 3

static const char *const paths[MEMBERS] = {"/group/a", "/group/b", "/group/rw"};
static struct zkl_mutex *mutexes[MEMBERS], *rivals[MEMBERS]; /* the last is a writer */
static struct zkl_multi *multi;                              /* of the mutexes */

static struct bench *begin(void)
{
    struct bench *b = bench_make_path(bench_begin(paths[0], SESSION_MS, QUIET_MS));
    struct zkl_rwlock *rwlock = world_rwlock(b->client, paths[MEMBERS - 1], NULL);
    struct zkl_member members[MEMBERS];

    for (int i = 0; i < MEMBERS; i++) {
        rivals[i] = world_mutex(b->direct, paths[i]);
        mutexes[i] = i < MEMBERS - 1 ? world_mutex(b->client, paths[i]) : zkl_rwlock_writer(rwlock);
        members[MEMBERS - 1 - i] = zkl_member_mutex(mutexes[i]);
        check_ok(i > 0 ? wire_create(b->wire, paths[i], "", WIRE_PERSISTENT, NULL, 0) : 0);
    }
    multi = world_multi(b->client, members, MEMBERS);
    return b;
}

#define MULTI_TEST(name) BENCH_TEST_OF(name, begin())

static void check_rest(struct bench *b)
{
    check_wait(fault_connected(b->client), WAIT_MS);
    for (int i = 0; i < MEMBERS; i++)
        fault_check_rest(b->client, b->wire, paths[i], REST_MS);
}

ACT(act_multi_lock_for_long, zkl_multi_lock_for(arg, LONG_MS))

/* Each member but the last one becomes free when most of the time is over. */
static void check_one_deadline(struct bench *b, struct zkl_multi *all)
{
    for (int i = 0; i < MEMBERS; i++)
        check_ok(zkl_mutex_lock(rivals[i]));
    int64_t start = net_now_ms();
    lag_begin();
    act_begin(b->actor, act_multi_lock_for_long, NULL, all);
    for (int i = 0; i < MEMBERS - 1; i++) {
        check_wait(fault_children(b->wire, paths[i]) == 2, WAIT_MS);
        for (int behind = i + 1; behind < MEMBERS; behind++)
            check_wait(fault_children(b->wire, paths[behind]) == 1, WAIT_MS);
        check_wait(net_now_ms() - start > LONG_MS / 2 + 200 * i, WAIT_MS);
        check_ok(zkl_mutex_unlock(rivals[i]));
    }
    check_num(act_end(b->actor, WAIT_MS), ==, ZKL_ETIMEDOUT);
    check_num(lag_end_ms(), <, LONG_MS * 3 / 2); /* the second member's own time would end here */
    check_num(net_now_ms() - start, >=, LONG_MS);
    for (int i = 0; i < MEMBERS; i++)
        check_wait(fault_children(b->wire, paths[i]) == (i == MEMBERS - 1), WAIT_MS);
    check_ok(zkl_mutex_unlock(rivals[MEMBERS - 1]));
    check_rest(b);
}

/* And the client does not queue for the members behind one that is not free. This is so in one
 * transaction, and one by one, as with a semaphore among them. Modes: F24. */
MULTI_TEST(one_deadline_is_for_all_members)
{
    struct zkl_member members[MEMBERS + 1];

    check_one_deadline(b, multi);
    members[MEMBERS] = zkl_member_mutex(world_semaphore_mutex(b->client, "/group/0"));
    for (int i = 0; i < MEMBERS; i++)
        members[i] = zkl_member_mutex(mutexes[i]);
    check_one_deadline(b, world_multi(b->client, members, MEMBERS + 1));
}
