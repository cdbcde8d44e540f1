/* SPDX-License-Identifier: Apache-2.0 */
/* The library of an old commit and this one at the same paths: the wire format and its rules are what they
 * were, with every option. */
#include "fleet.h"

#include <stdio.h>
#include <string.h>

#include "snapshot.h"

#define HARD 0x7ff00000 /* from here on no number is granted (docs/wire-format.md) */

/* --- paths whose counter is near its end ------------------------------------------------------ */

struct edge {
    const char *path;
    int32_t next;
    int kind; /* of the node */
};

/* Persistent ones stay when they are empty; what the library makes is a container. */
static const struct edge edges[] = {
    {"/edge-hard", HARD - 20, WIRE_CONTAINER},
    {"/edge-end", INT32_MAX - 4, WIRE_PERSISTENT},
    {"/edge-last", INT32_MAX, WIRE_PERSISTENT},
    {"/edge-rw", HARD - 20, WIRE_PERSISTENT},
    {"/edge-rw-end", INT32_MAX - 4, WIRE_PERSISTENT},
    {"/edge-named", HARD - 20, WIRE_PERSISTENT},
    {"/edge-multi-a", HARD - 20, WIRE_PERSISTENT},
    {"/edge-multi-b", INT32_MAX - 4, WIRE_PERSISTENT},
    {"/edge-sem/locks", HARD - 20, WIRE_PERSISTENT},
    {"/edge-sem/leases", HARD - 40, WIRE_PERSISTENT},
    {"/edge-single/locks", INT32_MAX - 4, WIRE_PERSISTENT},
    {"/edge-single/leases", HARD - 20, WIRE_PERSISTENT},
    {"/edge-local", HARD - 20, WIRE_PERSISTENT},
};
#define EDGES (sizeof edges / sizeof *edges)

/* All in one go: each patch is two starts of the server. */
static void set_counters(void)
{
    static bool done;
    char err[512] = "", guard[160];

    if (done)
        return;
    done = true;
    crowd_keep_raw();
    check_ok(wire_create(raw, "/edge-sem", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/edge-single", "", WIRE_PERSISTENT, NULL, 0));
    for (size_t i = 0; i < EDGES; i++) {
        check_ok(wire_create(raw, edges[i].path, "", edges[i].kind, NULL, 0));
        snprintf(guard, sizeof guard, "%s/" GUARD, edges[i].path);
        if (edges[i].kind == WIRE_CONTAINER)
            check_ok(wire_create(raw, guard, "", WIRE_PERSISTENT, NULL, 0));
    }
    wire_close(raw);
    raw = NULL;
    check_ok(zks_restart_node(crowd_server, 0)); /* writes a snapshot */
    check_ok(zks_stop_node(crowd_server, 0));
    for (size_t i = 0; i < EDGES; i++) {
        if (snap_set_counter(zks_data_dir(crowd_server, 0), edges[i].path, edges[i].next, err,
                             sizeof err) != 0)
            fail_msg("%s: %s", edges[i].path, err);
    }
    check_ok(zks_start_node(crowd_server, 0));
    check_ok(zks_wait_ready(crowd_server, ZKS_READY_MS));
    crowd_keep_raw();
}

/* --- the runs --------------------------------------------------------------------------------- */

/* Goal: both exclude each other at one path, whatever each thread's options. Method: two processes of each
 * library, a thread for each option, and the witness. */
static void a_mutex_with_every_option(void **state)
{
    (void)state;
    fleet_check(&(struct fleet){
        .title = "mutex",
        .workers = {"mutex /mutex", "mutex /mutex posted", "mutex /mutex", "mutex /mutex posted",
                    "mutex /mutex names=kazoo", "mutex /mutex names=kazoo posted",
                    "mutex /mutex timed", "mutex /mutex revocable=poll metrics",
                    "mutex /mutex lease=20000"},
        .share_min = 20,
    });
}

/* Goal: a lease that runs out lets the other library in, and its holder hears of it. Method: the first
 * hold of some threads, and each 50th after it, is not given back; the witness. */
static void leases_that_run_out(void **state)
{
    (void)state;
    fleet_check(&(struct fleet){
        .title = "leases",
        .workers = {"mutex /leases late", "mutex /leases late names=kazoo",
                    "mutex /leases lease=20000 posted", "mutex /leases threads=4"},
        .share_min = 20,
    });
}

/* Goal: a try is granted beside nobody, whichever library is inside or on its way. Method: tries with and
 * without sync, with pauses, beside threads that queue. */
static void tries_with_and_without_sync(void **state)
{
    (void)state;
    fleet_check(&(struct fleet){
        .title = "tries",
        .workers = {"mutex /tries try nap", "mutex /tries try sync nap",
                    "mutex /tries try sync names=kazoo nap", "mutex /tries nap",
                    "mutex /tries posted nap"},
        .share_min = 10,
    });
}

/* Goal: a lock that is handed round in one process comes to the other library in its time.
 * Method: hand-offs among threads, up to a limit, beside others without them. */
static void local_hand_offs(void **state)
{
    (void)state;
    fleet_check(&(struct fleet){
        .title = "hand-offs",
        .workers = {"mutex /local local=4 threads=3", "mutex /local local=2 posted threads=2",
                    "mutex /local names=kazoo local=3 threads=2", "mutex /local",
                    "mutex /local retain=500 local=2 threads=2"},
        .share_min = 5,
    });
}

/* Goal: a node that stays with nobody in it is removed when the other library queues, or tries.
 * Method: threads that retain and pause. */
static void retained_nodes(void **state)
{
    (void)state;
    fleet_check(&(struct fleet){
        .title = "retained",
        .workers = {"mutex /retained retain=400 nap", "mutex /retained names=kazoo retain=900 nap",
                    "mutex /retained try nap"},
        .share_min = 10,
    });
}

/* Goal: readers, writers and downgrades of both libraries, in both kinds of names, and mutexes at the same
 * path. Method: as above; a reader that was the writer comes in before the writer leaves. */
static void readers_writers_and_downgrades(void **state)
{
    (void)state;
    fleet_check(&(struct fleet){
        .title = "read-write",
        .workers = {"rwlock /rw threads=3 writers=0", "rwlock /rw names=kazoo writers=0",
                    "rwlock /rw posted writers=0", "rwlock /rw writers=100",
                    "rwlock /rw posted writers=100", "rwlock /rw names=kazoo writers=100",
                    "rwlock /rw downgrade writers=100", "rwlock /rw downgrade posted writers=100",
                    "rwlock /rw names=kazoo downgrade writers=100", "mutex /rw",
                    "rwlock /rw try nap writers=0", "mutex /rw"},
        .share_min = 15,
    });
}

/* Goal: named locks of one path exclude their own name only, in both libraries. Method: three names. */
static void named_locks(void **state)
{
    (void)state;
    fleet_check(&(struct fleet){
        .title = "named",
        .workers = {"mutex /named name=a threads=2", "mutex /named name=b posted",
                    "mutex /named name=b", "mutex /named name=a-b try nap",
                    "mutex /named name=a-b local=2 threads=2", "mutex /named name=b retain=300"},
        .share_min = 5,
    });
}

/* Goal: never more permits are out than there are, one at a time or several in one call. Method:
 * permits counted by the witness. The number stays where it stands when those who know it are
 * through first. */
static void permits(void **state)
{
    (void)state;
    crowd_keep_raw();
    check_ok(wire_create(raw, "/sem", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/sem/leases", "", WIRE_PERSISTENT, NULL, 0));
    fleet_check(&(struct fleet){
        .title = "semaphore",
        .workers = {"semaphore /sem permits=4 threads=2", "semaphore /sem permits=4 count=2",
                    "semaphore /sem permits=4 posted", "semaphore /sem permits=4 count=3 posted",
                    "semaphore /sem permits=4 try nap", "semaphore /sem permits=0 metrics"},
        .share_min = 10,
    });
}

static void mutexes_of_semaphores(void **state)
{
    (void)state;
    fleet_check(&(struct fleet){
        .title = "mutex of a semaphore",
        .workers = {"single /single", "single /single posted", "single /single timed"},
        .share_min = 20,
    });
}

/* Goal: multi-locks of both libraries, named in other orders, and single locks of their paths. */
static void multi_locks(void **state)
{
    (void)state;
    fleet_check(&(struct fleet){
        .title = "multi-lock",
        .workers = {"multi /multi-a,/multi-b,/multi-c", "multi /multi-c,/multi-a posted",
                    "multi /multi-b,/multi-c names=kazoo", "multi /multi-b,/multi-a try nap",
                    "mutex /multi-a posted", "mutex /multi-b", "mutex /multi-c names=kazoo",
                    "mutex /multi-c local=3 threads=2", "mutex /multi-a retain=200"},
        .share_min = 5,
    });
}

/* Goal: nodes and parents that only their makers' credential opens are shared by both. */
static void the_creators_acl(void **state)
{
    (void)state;
    fleet_check(&(struct fleet){
        .title = "creator's ACL",
        .workers = {"mutex /acl/mutex posted", "mutex /acl/mutex retain=300", "mutex /acl/mutex",
                    "rwlock /acl/rw downgrade writers=100", "rwlock /acl/rw writers=0",
                    "multi /acl/mutex,/acl/other"},
        .creators_only = true,
        .share_min = 2,
    });
}

/* Goal: both leave a used-up counter behind and meet again on the path that one of them made anew; no
 * number of the last 2^20 is granted. Method: counters patched in the server's snapshot. */
static void mutexes_over_the_edge(void **state)
{
    static const struct {
        const char *path, *workers[4];
    } each[] = {
        {"/edge-hard",
         {"mutex /edge-hard", "mutex /edge-hard posted", "mutex /edge-hard names=kazoo",
          "mutex /edge-hard timed"}},
        {"/edge-end",
         {"mutex /edge-end", "mutex /edge-end posted", "mutex /edge-end names=kazoo",
          "mutex /edge-end try nap"}},
        {"/edge-last",
         {"mutex /edge-last", "mutex /edge-last retain=300 nap", "mutex /edge-last names=kazoo",
          "mutex /edge-last lease=20000"}},
        {"/edge-local",
         {"mutex /edge-local local=3 threads=2", "mutex /edge-local retain=300 nap",
          "mutex /edge-local names=kazoo posted", "mutex /edge-local try sync nap"}},
    };

    (void)state;
    set_counters();
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        struct fleet fleet = {.title = "counter's end", .renewed = {each[i].path}, .share_min = 5};
        for (int k = 0; k < 4; k++)
            fleet.workers[k] = each[i].workers[k];
        fleet.guarded = i == 0 ? each[i].path : NULL;
        fleet_check(&fleet);
    }
}

static void readers_and_writers_over_the_edge(void **state)
{
    (void)state;
    set_counters();
    fleet_check(&(struct fleet){
        .title = "counter's end",
        .workers = {"rwlock /edge-rw writers=0", "rwlock /edge-rw writers=100",
                    "rwlock /edge-rw downgrade writers=100",
                    "rwlock /edge-rw names=kazoo writers=0",
                    "rwlock /edge-rw names=kazoo posted writers=100",
                    "rwlock /edge-rw-end writers=0",
                    "rwlock /edge-rw-end downgrade posted writers=100", "mutex /edge-rw-end"},
        .renewed = {"/edge-rw", "/edge-rw-end"},
        .share_min = 5,
    });
}

static void named_and_multi_locks_over_the_edge(void **state)
{
    (void)state;
    set_counters();
    fleet_check(&(struct fleet){
        .title = "counter's end",
        .workers = {"mutex /edge-named name=a", "mutex /edge-named name=b posted",
                    "multi /edge-multi-a,/edge-multi-b", "multi /edge-multi-b,/edge-multi-a posted",
                    "mutex /edge-multi-a", "mutex /edge-multi-b"},
        .renewed = {"/edge-named", "/edge-multi-a", "/edge-multi-b"},
        .share_min = 5,
    });
}

static void permits_over_the_edge(void **state)
{
    (void)state;
    set_counters();
    fleet_check(&(struct fleet){
        .title = "counter's end",
        .workers = {"semaphore /edge-sem permits=3", "semaphore /edge-sem permits=3 count=2",
                    "semaphore /edge-sem permits=3 posted"},
        .renewed = {"/edge-sem/locks"}, /* the other one needs no order */
        .share_min = 5,
    });
    fleet_check(&(struct fleet){
        .title = "counter's end",
        .workers = {"single /edge-single", "single /edge-single posted"},
        .renewed = {"/edge-single/locks"},
        .share_min = 5,
    });
}

/* Goal: the witness sees a worker that does not lock. */
static void the_witness_sees_who_does_not_lock(void **state)
{
    const char *fault;

    (void)state;
    fault = fleet_run(&(struct fleet){
        .title = "a trespasser",
        .workers = {"mutex /seen"},
        .trespasser = "none /seen nap", /* so that it is there when they are */
    });
    if (fault == NULL || strncmp(fault, "visit ", 6) != 0)
        fail_msg("not seen, but: %s", fault != NULL ? fault : "nothing");
    print_message("seen: %s\n", fault);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mutex_with_every_option),
        cmocka_unit_test(leases_that_run_out),
        cmocka_unit_test(tries_with_and_without_sync),
        cmocka_unit_test(local_hand_offs),
        cmocka_unit_test(retained_nodes),
        cmocka_unit_test(readers_writers_and_downgrades),
        cmocka_unit_test(named_locks),
        cmocka_unit_test(permits),
        cmocka_unit_test(mutexes_of_semaphores),
        cmocka_unit_test(multi_locks),
        cmocka_unit_test(the_creators_acl),
        cmocka_unit_test(mutexes_over_the_edge),
        cmocka_unit_test(readers_and_writers_over_the_edge),
        cmocka_unit_test(named_and_multi_locks_over_the_edge),
        cmocka_unit_test(permits_over_the_edge),
        cmocka_unit_test(the_witness_sees_who_does_not_lock),
    };

    return fleet_main(argc, argv, "fleet", tests, sizeof tests / sizeof *tests);
}
