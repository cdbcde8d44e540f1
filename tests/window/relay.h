/* SPDX-License-Identifier: Apache-2.0 */
/* A relay on the connections over which the servers of an ensemble follow their leader. It reads
 * the packets of both directions. So it can pass each PING of the leader late, and with it the
 * follower's answer, which names the sessions that the follower has heard of. It cuts a follower
 * off, and says when the leader last heard of a session.
 *
 *     struct zks_options options = {.nodes = 3, .route = relay_route, .route_arg = relay};
 *
 * The relay holds back nothing except a PING. That is within what a leader may do by itself: its
 * PINGs come from a loop of their own, which may be late.
 *
 * One thread; all calls may be made from any other. Times are those of net_boot_ns. */
#ifndef ZKWINDOW_RELAY_H
#define ZKWINDOW_RELAY_H

#include <stddef.h>
#include <stdint.h>

struct relay;

/* 0 or -1. */
int relay_start(struct relay **relay, size_t nodes);
void relay_stop(struct relay *relay);
/* For zks_options. */
int relay_route(void *relay, size_t from, size_t to, int port);

/* From now on each PING to this follower is handed over up to max_ms late, as it happens. */
void relay_jitter(struct relay *relay, size_t follower, int max_ms, uint64_t seed);
/* The next PING but one stays in the relay, and the one before it is not late. */
void relay_hold(struct relay *relay, size_t follower);
/* When the PING that stays came; 0: not within timeout_ms. */
int64_t relay_wait_held(struct relay *relay, size_t follower, int timeout_ms);
/* Hand it over. */
void relay_pass(struct relay *relay, size_t follower);

/* From now on nothing passes between this follower and any leader, and neither of them learns of
 * it: what comes is lost. Returns when that was so. */
int64_t relay_cut(struct relay *relay, size_t follower);
/* The connections that were cut are closed, and new ones pass. */
void relay_heal(struct relay *relay, size_t follower);

struct relay_seen {
    int64_t ping_ns; /* when the leader's last PING to the follower came to the relay */
    int64_t
        round_ns; /* when the follower's last PING was handed over: what it had heard of by then, the leader knows */
    int64_t
        gap_ns; /* the longest from the passing of a PING to the coming of the answer to the next one, since
                       * relay_reset_gap: within it lies the time in which the follower did not report what it heard */
    int64_t held_ns; /* when the PING that stays came; 0: not yet */
};
struct relay_seen relay_seen(struct relay *relay, size_t follower);
void relay_reset_gap(struct relay *relay, size_t follower);
/* When the leader last heard of the session, from anybody; 0: never. */
int64_t relay_told(struct relay *relay, int64_t session);

#endif
