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

static void check_run(void **state)
{
    const struct fleet *f = *state;

    if (strcmp(f->title, "counter's end") == 0)
        set_counters();
    crowd_keep_raw();
    for (int i = 0; i < PATHS_MAX && f->made[i] != NULL; i++)
        check_ok(wire_create(raw, f->made[i], "", WIRE_PERSISTENT, NULL, 0));
    fleet_check(f);
}

/* Goal: the witness sees a worker that does not lock. */
static void the_witness_sees_who_does_not_lock(void **state)
{
    const char *fault = fleet_run(*state);

    if (fault == NULL || strncmp(fault, "visit ", 6) != 0)
        fail_msg("not seen, but: %s", fault != NULL ? fault : "nothing");
    print_message("seen: %s\n", fault);
}

/* clang-format off */
#define RUN(name, title_, share, ...) \
    static struct fleet name##_run = {.title = title_, .share_min = share, .workers = __VA_ARGS__}; \
    TEST_OF(name, check_run, NULL, NULL, &name##_run)

/* Goal: both exclude each other at one path, whatever each thread's options. Method: two processes of each
 * library, a thread for each option, and the witness. */
RUN(a_mutex_with_every_option, "mutex", 20,
    {"mutex /mutex", "mutex /mutex posted", "mutex /mutex", "mutex /mutex posted", "mutex /mutex names=kazoo",
     "mutex /mutex names=kazoo posted", "mutex /mutex timed", "mutex /mutex revocable=poll metrics",
     "mutex /mutex lease=20000"})
/* Goal: a lease that runs out lets the other library in, and its holder hears of it. Method: the first
 * hold of some threads, and each 50th after it, is not given back; the witness. */
RUN(leases_that_run_out, "leases", 20,
    {"mutex /leases late", "mutex /leases late names=kazoo", "mutex /leases lease=20000 posted",
     "mutex /leases threads=4"})
/* Goal: a try is granted beside nobody, whichever library is inside or on its way. Method: tries with and
 * without sync, with pauses, beside threads that queue. */
RUN(tries_with_and_without_sync, "tries", 10,
    {"mutex /tries try nap", "mutex /tries try sync nap", "mutex /tries try sync names=kazoo nap",
     "mutex /tries nap", "mutex /tries posted nap"})
/* Goal: a lock that is handed round in one process comes to the other library in its time. Method: hand-
 * offs among threads, up to a limit, beside others without them. */
RUN(local_hand_offs, "hand-offs", 5,
    {"mutex /local local=4 threads=3", "mutex /local local=2 posted threads=2",
     "mutex /local names=kazoo local=3 threads=2", "mutex /local", "mutex /local retain=500 local=2 threads=2"})
/* Goal: a node that stays with nobody in it is removed when the other library queues, or tries. Method:
 * threads that retain and pause. */
RUN(retained_nodes, "retained", 10,
    {"mutex /retained retain=400 nap", "mutex /retained names=kazoo retain=900 nap",
     "mutex /retained try nap"})
/* Goal: readers, writers and downgrades of both libraries, in both kinds of names, and mutexes at the same
 * path. Method: as above; a reader that was the writer comes in before the writer leaves. */
RUN(readers_writers_and_downgrades, "read-write", 15,
    {"rwlock /rw threads=3 writers=0", "rwlock /rw names=kazoo writers=0", "rwlock /rw posted writers=0",
     "rwlock /rw writers=100", "rwlock /rw posted writers=100", "rwlock /rw names=kazoo writers=100",
     "rwlock /rw downgrade writers=100", "rwlock /rw downgrade posted writers=100",
     "rwlock /rw names=kazoo downgrade writers=100", "mutex /rw", "rwlock /rw try nap writers=0", "mutex /rw"})
/* Goal: named locks of one path exclude their own name only, in both libraries. Method: three names. */
RUN(named_locks, "named", 5,
    {"mutex /named name=a threads=2", "mutex /named name=b posted", "mutex /named name=b",
     "mutex /named name=a-b try nap", "mutex /named name=a-b local=2 threads=2",
     "mutex /named name=b retain=300"})
/* Goal: never more permits are out than there are, one at a time or several in one call. Method: permits
 * counted by the witness. The number stays where it stands when those who know it are through first. */
RUN(permits, "semaphore", 10,
    {"semaphore /sem permits=4 threads=2", "semaphore /sem permits=4 count=2",
     "semaphore /sem permits=4 posted", "semaphore /sem permits=4 count=3 posted",
     "semaphore /sem permits=4 try nap", "semaphore /sem permits=0 metrics"}, .made = {"/sem", "/sem/leases"})
RUN(mutexes_of_semaphores, "mutex of a semaphore", 20,
    {"single /single", "single /single posted", "single /single timed"})
/* Goal: multi-locks of both libraries, named in other orders, and single locks of their paths. */
RUN(multi_locks, "multi-lock", 5,
    {"multi /multi-a,/multi-b,/multi-c", "multi /multi-c,/multi-a posted",
     "multi /multi-b,/multi-c names=kazoo", "multi /multi-b,/multi-a try nap", "mutex /multi-a posted",
     "mutex /multi-b", "mutex /multi-c names=kazoo", "mutex /multi-c local=3 threads=2",
     "mutex /multi-a retain=200"})
/* Goal: nodes and parents that only their makers' credential opens are shared by both. */
RUN(the_creators_acl, "creator's ACL", 2,
    {"mutex /acl/mutex posted", "mutex /acl/mutex retain=300", "mutex /acl/mutex",
     "rwlock /acl/rw downgrade writers=100", "rwlock /acl/rw writers=0", "multi /acl/mutex,/acl/other"},
     .creators_only = true)
/* Goal: both leave a used-up counter behind and meet again on the path that one of them made anew; no
 * number of the last 2^20 is granted. Method: counters patched in the server's snapshot. */
RUN(mutexes_over_the_edge_hard, "counter's end", 5,
    {"mutex /edge-hard", "mutex /edge-hard posted", "mutex /edge-hard names=kazoo", "mutex /edge-hard timed"},
     .renewed = {"/edge-hard"}, .guarded = "/edge-hard")
RUN(mutexes_over_the_edge_end, "counter's end", 5,
    {"mutex /edge-end", "mutex /edge-end posted", "mutex /edge-end names=kazoo", "mutex /edge-end try nap"},
     .renewed = {"/edge-end"})
RUN(mutexes_over_the_edge_last, "counter's end", 5,
    {"mutex /edge-last", "mutex /edge-last retain=300 nap", "mutex /edge-last names=kazoo",
     "mutex /edge-last lease=20000"}, .renewed = {"/edge-last"})
RUN(mutexes_over_the_edge_local, "counter's end", 5,
    {"mutex /edge-local local=3 threads=2", "mutex /edge-local retain=300 nap",
     "mutex /edge-local names=kazoo posted", "mutex /edge-local try sync nap"}, .renewed = {"/edge-local"})
RUN(readers_and_writers_over_the_edge, "counter's end", 5,
    {"rwlock /edge-rw writers=0", "rwlock /edge-rw writers=100", "rwlock /edge-rw downgrade writers=100",
     "rwlock /edge-rw names=kazoo writers=0", "rwlock /edge-rw names=kazoo posted writers=100",
     "rwlock /edge-rw-end writers=0", "rwlock /edge-rw-end downgrade posted writers=100", "mutex /edge-rw-end"},
     .renewed = {"/edge-rw", "/edge-rw-end"})
RUN(named_and_multi_locks_over_the_edge, "counter's end", 5,
    {"mutex /edge-named name=a", "mutex /edge-named name=b posted", "multi /edge-multi-a,/edge-multi-b",
     "multi /edge-multi-b,/edge-multi-a posted", "mutex /edge-multi-a", "mutex /edge-multi-b"},
     .renewed = {"/edge-named", "/edge-multi-a", "/edge-multi-b"})
RUN(permits_over_the_edge, "counter's end", 5,
    {"semaphore /edge-sem permits=3", "semaphore /edge-sem permits=3 count=2",
     "semaphore /edge-sem permits=3 posted"}, .renewed = {"/edge-sem/locks"})
RUN(mutexes_of_semaphores_over_the_edge, "counter's end", 5,
    {"single /edge-single", "single /edge-single posted"}, .renewed = {"/edge-single/locks"})

/* naps, so that it is there when they are */
static struct fleet trespass = {.title = "a trespasser", .workers = {"mutex /seen"}, .trespasser = "none /seen nap"};
TEST_OF(the_witness_sees_who_does_not_lock, the_witness_sees_who_does_not_lock, NULL, NULL, &trespass)
