/* SPDX-License-Identifier: Apache-2.0
 * Counts the trials of each kind, over all schedules, in memory that the workers share. */
#ifndef ZKL_SIM_TALLY_H
#define ZKL_SIM_TALLY_H

#include <stdint.h>

#include "fake.h"

/* What happens to clients, or what their owners do to the core, besides enum fake_fault. */
#define SIM_FAULT_LIST(X)                                                                          \
    X(SIM_HOLE, "link that loses everything") /* both ways, unnoticed so far */                    \
    X(SIM_STALL, "server sits on its answers")                                                     \
    X(SIM_ISOLATED, "server cut off from the others")                                              \
    X(SIM_DEPOSED, "deposed leader")                                                               \
    X(SIM_ELECTION, "leader elected")                                                              \
    X(SIM_OUTAGE, "no server for a while")                                                         \
    X(SIM_PROBE_CUT, "second handle cut")                                                          \
    X(SIM_CONNECT_FAILED, "connection refused")                                                    \
    X(SIM_REFUSED, "credential refused")                                                           \
    X(SIM_DATA_LOSS, "data lost")                                                                  \
    X(SIM_PAUSE, "process paused")                                                                 \
    X(SIM_SUSPEND, "machine suspended") /* CLOCK_MONOTONIC stands still */                         \
    X(SIM_KILL, "process killed")                                                                  \
    X(SIM_REBIRTH, "process started again")                                                        \
    X(SIM_CLOSE, "client closed")                                                                  \
    X(SIM_NO_MEMORY, "request without memory")                                                     \
    X(SIM_NO_WATCH, "no more watches")                                                             \
    X(SIM_NO_ROOM, "session owns too much") /* for another node of the session */                  \
    X(SIM_TRY, "try")                                                                              \
    X(SIM_DEADLINE, "deadline passed")                                                             \
    X(SIM_CANCEL, "cancelled")                                                                     \
    X(SIM_THREAD_EXIT, "owner exits holding")                                                      \
    X(SIM_LEASE, "lease")                                                                          \
    X(SIM_LEASE_RENEWED, "lease renewed")                                                          \
    X(SIM_LEASE_ENDED, "lease ended")                                                              \
    X(SIM_DOWNGRADE, "read lock under the write lock")                                             \
    X(SIM_ALONE, "grant by the node's number")                                                     \
    X(SIM_ALONE_MULTI, "the same in a transaction")                                                \
    X(SIM_GROUP_COMMIT, "creates and deletes in one transaction")                                  \
    X(SIM_MADE_ANEW, "path made anew in the middle of its count")                                  \
    X(SIM_BEHIND_OWN, "place by the node's number")                                                \
    X(SIM_SEVERAL_PERMITS, "several permits in one request")                                       \
    X(SIM_MULTI, "multi-lock")                                                                     \
    X(SIM_MULTI_STOPPED, "multi-lock stopped")                                                     \
    X(SIM_QUERY, "query")                                                                          \
    X(SIM_REVOKED, "request to release")                                                           \
    X(SIM_OVERWRITTEN, "node's data overwritten")                                                  \
    X(SIM_DELETED, "node deleted by an administrator")                                             \
    X(SIM_DENIED, "node that its owner may not check")                                             \
    X(SIM_ALLOWED, "node that its owner may check again")                                          \
    X(SIM_COLLECTED, "empty container removed")                                                    \
    X(SIM_STRANGER, "child that is no contender")                                                  \
    X(SIM_COUNTER_ZONE, "counter in the zone not granted")                                         \
    X(SIM_COUNTER_END, "counter at its end")                                                       \
    X(SIM_NO_CONTAINERS, "server without containers")                                              \
    X(SIM_NO_CREATE2, "server without create2")                                                    \
    X(SIM_NO_REMOVE_WATCHES, "server without removeWatches")                                       \
    X(SIM_LIMIT_CHANGED, "number of permits changed")                                              \
    X(SIM_MISMATCH, "other number of permits")                                                     \
    X(SIM_LATE_ANSWERS, "completion thread stands still")   /* and events */                       \
    X(SIM_RELINKED_UNHEARD, "link lost and remade unheard") /* while they are late */              \
    X(SIM_CLOSE_CALL, "server cut off where the window is nearly too long")                        \
    X(SIM_EXPIRED_CLOSE, "session expires right after its window")                                 \
    X(SIM_READERS_NODE, "a reader's node is kept for all of a handle")                             \
    X(SIM_READER_CAME_IN, "a reader comes in without a request")                                   \
    X(SIM_GONE_AT_UNLOCK, "unlock of a hold that is lost unheard")                                 \
    X(SIM_DOUBTED, "unlock of a hold in doubt")

enum sim_fault { SIM_FAULT_LIST(FAKE_ENUM) SIM_FAULTS };

#define TALLY_STEPS 4096 /* core steps per schedule are counted up to here */
#define TALLY_CODES 34

#define TALLY_MACHINES (ZKL_TRACE_CACHE + 1)
#define TALLY_STATES 16

struct tally {
    uint64_t schedules, grants, losses,
        margins; /* sessions that expired after a window of theirs */
    uint64_t faults[SIM_FAULTS], fake[FAKE_FAULTS], failures[TALLY_CODES], steps[TALLY_STEPS];
    uint64_t moves[TALLY_MACHINES][TALLY_STATES][TALLY_STATES];
    /* No sums: */
    uint64_t longest_heal_ms;
    int64_t margin_ns; /* the least time between such a window and its session's end */
};

void tally_add(struct tally *sum, const struct tally *one);
/* What was tried how often per million schedules; returns how many kinds or allowed transitions came
 * less often than at_least. */
int tally_print(const struct tally *tally, unsigned at_least);
/* Which state may follow which, of each machine. */
void tally_print_moves(void);
/* Core steps per schedule. */
unsigned tally_median(const struct tally *tally);

#endif
