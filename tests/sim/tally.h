/* SPDX-License-Identifier: Apache-2.0
 * Counts the trials of each kind, over all schedules, in memory that the workers share. */
#ifndef ZKL_SIM_TALLY_H
#define ZKL_SIM_TALLY_H

#include <stdint.h>

#include "core/contender.h"
#include "core/bundle.h"
#include "core/session.h"
#include "core/local_queue.h"
#include "core/read_cache.h"
#include "fake.h"

/* What happens to clients, or what their owners do to the core, besides enum fake_fault. */
enum sim_fault {
    SIM_HOLE, /* packets get lost both ways, unnoticed so far */
    SIM_STALL,
    SIM_ISOLATED,
    SIM_DEPOSED,
    SIM_ELECTION,
    SIM_OUTAGE,
    SIM_PROBE_CUT,
    SIM_CONNECT_FAILED,
    SIM_REFUSED, /* the credential */
    SIM_DATA_LOSS,
    SIM_PAUSE,
    SIM_SUSPEND, /* of the machine: CLOCK_MONOTONIC stands still */
    SIM_KILL,
    SIM_REBIRTH,
    SIM_CLOSE,
    SIM_NO_MEMORY,
    SIM_NO_WATCH,
    SIM_NO_ROOM, /* for another node of the session */
    SIM_TRY,
    SIM_DEADLINE,
    SIM_CANCEL,
    SIM_THREAD_EXIT,
    SIM_LEASE,
    SIM_LEASE_RENEWED,
    SIM_LEASE_ENDED,
    SIM_DOWNGRADE,
    SIM_ALONE, /* a grant by the node's number */
    SIM_ALONE_MULTI,
    SIM_GROUP_COMMIT, /* creates and deletes of several locks in one transaction */
    SIM_MADE_ANEW,
    SIM_BEHIND_OWN, /* a place by the node's number */
    SIM_SEVERAL_PERMITS,
    SIM_MULTI,
    SIM_MULTI_STOPPED,
    SIM_QUERY,
    SIM_REVOKED,
    SIM_OVERWRITTEN,
    SIM_DELETED, /* a node, by an administrator */
    SIM_DENIED,  /* its owner may not check it, */
    SIM_ALLOWED, /* and may again */
    SIM_COLLECTED,
    SIM_STRANGER, /* a child that is no contender */
    SIM_COUNTER_ZONE,
    SIM_COUNTER_END,
    SIM_NO_CONTAINERS,
    SIM_NO_CREATE2,
    SIM_NO_REMOVE_WATCHES,
    SIM_LIMIT_CHANGED,
    SIM_MISMATCH,
    SIM_LATE_ANSWERS,     /* and events */
    SIM_RELINKED_UNHEARD, /* while they are late */
    SIM_CLOSE_CALL,       /* a server is cut off from the others as it matters most */
    SIM_EXPIRED_CLOSE,
    SIM_READERS_NODE,   /* becomes that of all threads of a handle */
    SIM_READER_CAME_IN, /* without a request */
    SIM_GONE_AT_UNLOCK, /* the node, and the owner has not heard of it */
    SIM_DOUBTED,        /* a hold, by its unlock */
    SIM_FAULTS
};

#define TALLY_STEPS 4096 /* core steps per schedule are counted up to here */
#define TALLY_CODES 34

struct tally {
    uint64_t schedules, grants, losses, longest_heal_ms;
    uint64_t margins;  /* sessions that expired after a window of theirs, */
    int64_t margin_ns; /* and the least time in between */
    uint64_t faults[SIM_FAULTS], fake[FAKE_FAULTS], failures[TALLY_CODES];
    uint64_t contender[ZKL_CONTENDER_STATES][ZKL_CONTENDER_STATES];
    uint64_t session[ZKL_SESSION_STATES][ZKL_SESSION_STATES];
    uint64_t permits[ZKL_BUNDLE_STATES][ZKL_BUNDLE_STATES];
    uint64_t local_queue[ZKL_LOCAL_QUEUE_STATES][ZKL_LOCAL_QUEUE_STATES];
    uint64_t cache[ZKL_READ_CACHE_STATES][ZKL_READ_CACHE_STATES];
    uint32_t steps[TALLY_STEPS];
};

/* A move of the session or of a request for permits. */
void tally_move(struct tally *tally, const struct zkl_trace *trace);
void tally_add(struct tally *sum, const struct tally *one);
/* What was tried how often per million schedules; returns how many kinds or allowed transitions came
 * less often than at_least. */
int tally_print(const struct tally *tally, unsigned at_least);
/* Core steps per schedule. */
unsigned tally_median(const struct tally *tally);

#endif
