/* SPDX-License-Identifier: Apache-2.0
 * How long the session is proved to live. Only ZooKeeper's leader ends sessions, and a follower
 * reports only now and then which ones it has heard from: an answered write proves only that the
 * session had not ended yet. The rule, its argument and the server's methods that it rests on are
 * in docs/session.md and docs/evidence/beliefs.md. The core owns one of these, in its session, and
 * stamps each request when it is sent and when it ends. All times are CLOCK_BOOTTIME, in
 * nanoseconds. */
#ifndef ZKL_CORE_PROOF_H
#define ZKL_CORE_PROOF_H

#include <stdbool.h>
#include <stdint.h>

/* Travels with a request and returns with its answer, whichever object awaits that. */
struct zkl_stamp {
    int64_t sent_boot; /* read before the call into libzookeeper; 0: its answer says nothing */
    /* if it succeeds over this link the leader was touched then or later; 0: no proof yet */
    int64_t proves_boot;
    uint64_t link;
    bool writes; /* it creates or checks nodes of this session */
};

/* A request that was answered over the present link. */
struct zkl_answered {
    int64_t sent_boot, at_boot;
};

/* How many are remembered: they lie at least (P + 2 D) / 30 apart. tests/proofs has fewer. */
#ifndef ZKL_ANSWERED_MAX
#define ZKL_ANSWERED_MAX 32
#endif

struct zkl_proof {
    int64_t tick_ns; /* of the servers that may lead; 0: unknown, but at most half a timeout */
    /* Of the session: */
    int64_t timeout_ns;        /* T, the smallest that was announced */
    int64_t touched_boot;      /* the leader was surely touched then or later; 0: not known */
    int64_t newest_proof_boot; /* when the newest proof was sent that succeeded; 0: none */
    bool is_known;             /* a request was answered over the link that announced timeout_ns */
    /* when the newest request was sent that has ended, answered or handed back */
    int64_t ended_boot;
    /* Of the link: */
    uint64_t link; /* its number; one that is down has none of the others */
    bool up;
    int64_t start_boot;   /* the session was created or revalidated then or later, */
    int64_t settled_boot; /* and a proof that is sent from then on may rest on it */
    int64_t old_boot; /* the newest request whose answer is P + 2 D old was sent then; 0: none */
    unsigned first, count;
    struct zkl_answered answered[ZKL_ANSWERED_MAX];
};

/* Another session, none of which is known yet. */
void zkl_proof_begin(struct zkl_proof *proof);
/* A server announced a timeout for the session; a larger one than before is not believed. */
void zkl_proof_announced(struct zkl_proof *proof, int timeout_ms);
/* opened_boot: read before the handle was opened. first: the link that made the session. */
void zkl_proof_link_up(struct zkl_proof *proof, int64_t now_boot, int64_t opened_boot, bool first);
void zkl_proof_link_down(struct zkl_proof *proof);

/* The stamp of a request that is sent now. */
struct zkl_stamp zkl_proof_stamp(struct zkl_proof *proof, int64_t now_boot, bool writes);
/* One without an answer: its link broke, or never came. */
void zkl_proof_handed_back(struct zkl_proof *proof, struct zkl_stamp stamp);
/* A server answered. True if that was a proof: a write over this link that succeeded. */
bool zkl_proof_answered(struct zkl_proof *proof, int64_t now_boot, struct zkl_stamp stamp,
                        bool succeeded);

/* The first moment from now on at which a proof, if it is sent then, will do for a grant;
 * INT64_MAX: not by what has been answered so far. */
int64_t zkl_proof_enough_at(const struct zkl_proof *proof, int64_t now_boot);

/* --- asked for at every step: inline ------------------------------------------------------- */

/* D: how late a follower may report to the leader which sessions it has heard from, and how long
 * the leader may take to end all sessions that time out together. R, for clock rates and rounding,
 * is the same. */
static inline int64_t zkl_proof_late(const struct zkl_proof *proof)
{
    return proof->timeout_ns / 16;
}

/* The window's end; 0: it is empty. */
static inline int64_t zkl_proof_window_end(const struct zkl_proof *proof)
{
    return proof->touched_boot == 0
               ? 0
               : proof->touched_boot + proof->timeout_ns - zkl_proof_late(proof);
}

/* A grant wants more than a window's last moments: T/8. */
static inline int64_t zkl_proof_fresh_end(const struct zkl_proof *proof, int64_t touched_boot)
{
    return touched_boot + proof->timeout_ns - zkl_proof_late(proof) - proof->timeout_ns / 8;
}

/* 0: there is none. */
static inline int64_t zkl_proof_fresh_until(const struct zkl_proof *proof)
{
    return proof->touched_boot == 0 ? 0 : zkl_proof_fresh_end(proof, proof->touched_boot);
}

/* When a heartbeat is due that keeps the window open: each T/8, and as soon as a new link
 * counts. */
static inline int64_t zkl_proof_heartbeat_due(const struct zkl_proof *proof)
{
    return proof->newest_proof_boot < proof->settled_boot
               ? proof->settled_boot
               : proof->newest_proof_boot + proof->timeout_ns / 8;
}

#endif
