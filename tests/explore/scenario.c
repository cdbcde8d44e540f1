/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

const char *const root_paths[ROOTS] = {"/a", "/b", "/c", "/leases"};

#define PART(what, of, times, ...)                                                                 \
    {                                                                                              \
        .kind = PART_##what, .client = (of), .cycles = (times), __VA_ARGS__                        \
    }
#define LOCK(of, times, ...) PART(LOCK, of, times, __VA_ARGS__)
#define READ(of, times, ...) PART(LOCK, of, times, .role = ZKL_ROLE_READ, __VA_ARGS__)
#define WRITE(of, times, ...) PART(LOCK, of, times, .role = ZKL_ROLE_WRITE, __VA_ARGS__)

/* Behind the parts of two clients those of a third. */
#define LIST(...) __VA_ARGS__
#define SCENARIO(called, about, what, options, ...)                                                \
    {                                                                                              \
        .name = (called), .says = (about), .faults = (what), .parts = {__VA_ARGS__}, LIST options  \
    }
const struct scenario scenarios[] = {
    SCENARIO("mutex", "a mutex, default options; the first client twice", USUAL, (), LOCK(0, 2),
             LOCK(1, 1), LOCK(2, 1)),
    SCENARIO("fresh", "a mutex whose path is not there", USUAL, (.rootless = true), LOCK(0, 1),
             LOCK(1, 1), LOCK(2, 1)),
    SCENARIO("posted", "posted unlock", USUAL, (), LOCK(0, 2, .posted = true),
             LOCK(1, 1, .posted = true), LOCK(2, 1)),
    SCENARIO("event", "grants by event: own nodes watched", USUAL | BIT(FAULT_WRITE), (),
             LOCK(0, 1, .watch_own = true), LOCK(1, 2, .watch_own = true), LOCK(2, 1)),
    SCENARIO("unlisted", "grants by the number alone, from the first lock on", USUAL, (),
             LOCK(0, 3, .unlisted = true, .posted = true), LOCK(1, 1), LOCK(2, 1)),
    SCENARIO("rwlock", "a writer that downgrades, a writer, a reader", USUAL, (), WRITE(0, 1),
             READ(0, 1, .downgrade_from = 1), WRITE(1, 1), READ(2, 1)),
    SCENARIO("readers", "a reader behind a writer, twice", USUAL | BIT(FAULT_WRITE), (),
             WRITE(0, 1), READ(1, 2), WRITE(2, 1)),
    SCENARIO("multi", "a multi-lock of two paths, single lockers", USUAL, (),
             PART(MULTI, 0, 1, .count = 2), LOCK(1, 1, .root = 1), LOCK(2, 1, .root = 0)),
    SCENARIO("try", "a try beside a lock", USUAL, (), LOCK(0, 2, .try_only = true), LOCK(1, 1),
             LOCK(2, 1, .try_only = true, .try_sync = true)),
    SCENARIO("retained", "a lock that is kept with nobody in it, and others", USUAL,
             (.retain_ms = 1000), PART(TURN, 0, 2), LOCK(1, 1), LOCK(2, 1, .try_only = true)),
    SCENARIO("cached", "two threads that read in a node of their client's, and a writer",
             USUAL | BIT(FAULT_EXIT) | BIT(FAULT_WRITE), (.retain_ms = 1000), PART(READER, 0, 2),
             PART(READER, 0, 1), WRITE(1, 1), WRITE(2, 1, .try_only = true)),
    SCENARIO("turns", "two threads that hand a lock on, and others", USUAL | BIT(FAULT_EXIT),
             (.handoffs_max = 1), PART(TURN, 0, 1), PART(TURN, 0, 1), LOCK(1, 1), LOCK(2, 1)),

    /* Aimed: one client, or few steps, so that the search gets deeper. */
    SCENARIO("window", "one that holds while its links and its threads come and go",
             BIT(FAULT_MUTE) | BIT(FAULT_DEAF) | BIT(FAULT_RAISE), (), LOCK(0, 1), LOCK(1, 1)),
    SCENARIO("starved", "one that holds while its threads come and go, each by itself",
             BIT(FAULT_MUTE) | BIT(FAULT_DEAF) | BIT(FAULT_STARVE), (), LOCK(0, 1)),
    SCENARIO("crowd", "readers of one client behind a writer", BIT(FAULT_MUTE), (), READ(0, 1),
             READ(0, 1), READ(0, 1), READ(0, 1), WRITE(1, 1)),
    SCENARIO("line", "two threads and a third contender, one behind the other",
             BIT(FAULT_MUTE) | BIT(FAULT_CANCEL), (), LOCK(0, 1), LOCK(0, 1), LOCK(1, 1)),
    SCENARIO("row", "two threads, one behind the other without a list, and a third contender",
             USUAL, (), LOCK(0, 1, .unlisted = true), LOCK(0, 1, .unlisted = true), LOCK(1, 1)),
    SCENARIO("row3", "three threads, one behind the other without a list, one of them posted",
             USUAL, (), LOCK(0, 1, .unlisted = true), LOCK(0, 1, .unlisted = true, .posted = true),
             LOCK(0, 1, .unlisted = true)),
    SCENARIO("anew",
             "two threads, one behind the other without a list, at a path that is made anew",
             BIT(FAULT_ANEW) | BIT(FAULT_MUTE), (), LOCK(0, 1, .unlisted = true),
             LOCK(0, 1, .unlisted = true), LOCK(1, 1)),
    SCENARIO("several", "three locks of one client", BIT(FAULT_DELETE) | BIT(FAULT_DENY), (),
             LOCK(0, 1), LOCK(0, 1, .root = 1), LOCK(0, 1, .root = 2)),
    SCENARIO("grouped", "locks of one client whose creates and deletes go together",
             BIT(FAULT_MUTE) | BIT(FAULT_CANCEL) | BIT(FAULT_DELETE),
             (.counter = 1, .grouped = true), LOCK(0, 2, .unlisted = true, .posted = true),
             LOCK(0, 2, .root = 1, .unlisted = true, .posted = true),
             LOCK(0, 2, .root = 2, .unlisted = true), LOCK(1, 1)),
    SCENARIO(
        "multi2",
        "a multi-lock with watches on its nodes, twice, behind a single locker of its first path",
        BIT(FAULT_MUTE) | BIT(FAULT_CANCEL) | BIT(FAULT_DELETE), (),
        PART(MULTI, 0, 2, .count = 2, .watch_own = true), LOCK(1, 1, .root = 0)),
    SCENARIO("multideaf",
             "a multi-lock, twice, whose client does not hear that its link and its session end",
             BIT(FAULT_MUTE) | BIT(FAULT_DEAF), (), PART(MULTI, 0, 2, .count = 2)),
    SCENARIO("multiworn",
             "a multi-lock whose first path is at the end of its counter, and single lockers",
             BIT(FAULT_MUTE) | BIT(FAULT_CANCEL) | BIT(FAULT_DELETE),
             (.counter = 0x7ff00000, .worn_first = true), PART(MULTI, 0, 1, .count = 2),
             LOCK(1, 1, .root = 0), LOCK(1, 1, .root = 1)),
    SCENARIO("multirw", "a multi-lock of write locks, a reader", BIT(FAULT_MUTE), (),
             PART(MULTI, 0, 1, .count = 2, .role = ZKL_ROLE_WRITE), READ(1, 1, .root = 1)),
    SCENARIO("lease", "a lock with a lease", BIT(FAULT_MUTE) | BIT(FAULT_RENEW), (.lease_ms = 200),
             LOCK(0, 1, .leases = 1), LOCK(1, 1)),
    SCENARIO("leases", "a lock with a lease, and one with a shorter one", BIT(FAULT_RENEW),
             (.lease_ms = 200), LOCK(0, 1, .leases = 3), LOCK(0, 1, .root = 1, .leases = 1)),
    SCENARIO("begin", "a writer before its client has heard of its first link",
             BIT(FAULT_MUTE) | BIT(FAULT_DEAF) | BIT(FAULT_RAISE), (.unlinked = true), WRITE(0, 1)),
    SCENARIO("denied", "a holder that also waits, next in line", BIT(FAULT_DENY), (),
             LOCK(0, 1, .root = 1), LOCK(0, 1), LOCK(1, 1)),
    SCENARIO("busy", "a reader that tries behind a sync, and a writer", BIT(FAULT_REFUSE), (),
             READ(0, 1, .try_only = true, .try_sync = true), WRITE(1, 1)),
    SCENARIO("old", "a server that can't remove watches", BIT(FAULT_CANCEL), (.unremoving = true),
             LOCK(0, 1), LOCK(1, 2, .watch_own = true)),
    SCENARIO("query", "a lock, and a question of the same client",
             BIT(FAULT_MUTE) | BIT(FAULT_ALONE), (), LOCK(0, 1),
             PART(QUERY, 0, 1, .query = ZKL_REQ_GET), LOCK(1, 1)),
    SCENARIO("sync", "a lock, and a try of the same client behind a sync", BIT(FAULT_DEPOSED), (),
             LOCK(0, 1), LOCK(0, 1, .root = 1, .try_only = true, .try_sync = true), LOCK(1, 1)),
    SCENARIO("permits", "three permits of three, and one of them",
             BIT(FAULT_MUTE) | BIT(FAULT_CANCEL) | BIT(FAULT_REFUSE), (.permits = 3),
             PART(PERMITS, 0, 1, .count = 1), PART(PERMITS, 1, 1, .count = 3)),
    SCENARIO("unsaid", "a try for permits whose number only the server knows",
             BIT(FAULT_MUTE) | BIT(FAULT_DEAF), (.permits = 3, .unsaid = true),
             PART(PERMITS, 0, 1, .count = 1, .try_only = true)),
    SCENARIO("scarce", "permits that are taken one by one, for want of memory",
             BIT(FAULT_MUTE) | BIT(FAULT_CANCEL), (.permits = 3, .scarce = true),
             PART(PERMITS, 0, 1, .count = 2), PART(PERMITS, 1, 1, .count = 2)),
    SCENARIO("four", "four threads that take turns", BIT(FAULT_CANCEL) | BIT(FAULT_EXIT),
             (.handoffs_max = 1), PART(TURN, 0, 1), PART(TURN, 0, 1), PART(TURN, 0, 1),
             PART(TURN, 0, 1), LOCK(1, 1)),
    SCENARIO("kept", "two threads that hand a lock on, and keep it", BIT(FAULT_MUTE),
             (.handoffs_max = 2, .retain_ms = 100000000), PART(TURN, 0, 2), PART(TURN, 0, 1),
             LOCK(1, 1)),
    SCENARIO("beside", "two threads that queue each by itself, and keep the lock", BIT(FAULT_MUTE),
             (.retain_ms = 100000000), PART(TURN, 0, 1), PART(TURN, 0, 1)),
    SCENARIO("ten", "writers with the numbers 9 and 10", USUAL, (.counter = 9), WRITE(0, 1),
             WRITE(1, 1)),
    SCENARIO("worn", "a reader, a writer and a mutex at the end of the counter",
             BIT(FAULT_MUTE) | BIT(FAULT_DELETE), (.counter = 0x7ff00000), READ(0, 1),
             LOCK(1, 1, .root = 1), WRITE(1, 1)),
    SCENARIO("below", "a writer with a negative number", BIT(FAULT_MUTE),
             (.counter = INT32_MIN + 3), WRITE(0, 1), WRITE(1, 1)),
};
const size_t scenario_count = sizeof scenarios / sizeof *scenarios;

const struct scenario *scenario_find(const char *name)
{
    for (size_t i = 0; i < scenario_count; i++) {
        if (strcmp(scenarios[i].name, name) == 0)
            return &scenarios[i];
    }
    return NULL;
}
