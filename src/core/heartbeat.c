/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of our own nodes, which prove the session and show which nodes were deleted: when they
 * are due, what they contain, and what an answer says. Nodes that the server does not let us check
 * are left out, and tried again apart from the others. With the client's mutex; timers.c and core.c
 * ask for heartbeats, dispatch_reply.c brings the answers. */
#include "heartbeat.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "feed.h"
#include "requests.h"

#define MS INT64_C(1000000)

/* --- sending ------------------------------------------------------------ */

/* The contenders that this one checks: in turn, if there are more than it can carry. */
static size_t choose_checked(struct zkl_core *core, const struct zkl_heartbeat *heartbeat,
                             enum zkl_count count, struct zkl_contender **chosen)
{
    size_t n = 0, max = ZKL_HEARTBEAT_CHECKS_MAX;
    for (int pass = 0; pass < 2 && n < max; pass++) {
        for (struct zkl_contender *c = core->first; c && n < max; c = c->next) {
            if ((c->number > heartbeat->round) == (pass == 0) &&
                zkl_contender_counts_for(c, count) && c->machine.on_server)
                chosen[n++] = c;
        }
    }
    return n;
}

static void send(struct zkl_core *core, struct zkl_heartbeat *heartbeat,
                 struct zkl_contender **chosen, size_t n)
{
    const char *checks[ZKL_HEARTBEAT_CHECKS_MAX];
    char one[ZKL_NODE_PATH_MAX + 1];
    char *many = n > 1 ? malloc(n * sizeof one) : NULL;
    if (!many)
        n = 1; /* one node proves the session too */
    heartbeat->serial = ++core->heartbeats_sent;
    for (size_t i = 0; i < n; i++) {
        char *path = many ? many + i * sizeof one : one;
        zkl_core_node_path(chosen[i], chosen[i]->machine.node, path);
        checks[i] = path;
        chosen[i]->heartbeat_serial = heartbeat->serial;
        chosen[i]->heartbeat_index = i;
    }
    struct zkl_request request = {.kind = ZKL_REQ_CHECK_ALL, .checks = checks, .check_count = n};
    zkl_pending_send(core, &heartbeat->pending, &request);
    free(many);
}

/* A node that is deleted or may not be checked hides those behind it, and a failure proves nothing.
 * So after two failures in a row the nodes are divided among several transactions: one that has
 * only good ones proves the session in the same round trip, however many bad ones the others
 * have. */
static size_t checks_per_heartbeat(struct zkl_core *core, size_t n)
{
    core->heartbeat_failures = core->heartbeat_failed ? core->heartbeat_failures + 1 : 0;
    core->heartbeat_failed = false;
    return core->heartbeat_failures < 2 ? n : (n + ZKL_HEARTBEATS_MAX - 1) / ZKL_HEARTBEATS_MAX;
}

static void send_heartbeats(struct zkl_core *core)
{
    struct zkl_contender *chosen[ZKL_HEARTBEAT_CHECKS_MAX];
    struct zkl_heartbeat *heartbeat = core->heartbeats;
    size_t n = choose_checked(core, heartbeat, ZKL_COUNT_HEARTBEATS, chosen),
           each = checks_per_heartbeat(core, n);
    core->heartbeat_wanted = false;
    heartbeat->round = n < ZKL_HEARTBEAT_CHECKS_MAX ? 0 : chosen[n - 1]->number;
    assert(n > 0); /* a contender that needs the window has a node */
    for (size_t at = 0; at < n; at += each)
        send(core, heartbeat++, chosen + at, n - at < each ? n - at : each);
}

static void send_recheck(struct zkl_core *core)
{
    struct zkl_contender *chosen[ZKL_HEARTBEAT_CHECKS_MAX];
    size_t n = choose_checked(core, &core->recheck, ZKL_COUNT_UNCHECKED, chosen);
    send(core, &core->recheck, chosen, n);
}

/* --- answers ------------------------------------------------------------ */

static void put_recheck_off(struct zkl_core *core)
{
    core->recheck_mono_ns = core->now.mono_ns + zkl_session_timeout_ns(&core->session) / 8;
}

static bool is_checked_by(const struct zkl_contender *c, const struct zkl_heartbeat *heartbeat)
{
    unsigned either = 1u << ZKL_COUNT_HEARTBEATS | 1u << ZKL_COUNT_UNCHECKED;
    return c->heartbeat_serial == heartbeat->serial && (c->counted & either) &&
           c->machine.on_server;
}

/* The parts before the one to blame succeeded; the server did not execute those behind it. */
static void feed_checked(struct zkl_core *core, const struct zkl_heartbeat *heartbeat,
                         size_t failed)
{
    struct zkl_contender *next;
    for (struct zkl_contender *c = core->first; c; c = next) {
        next = c->next;
        if (is_checked_by(c, heartbeat) && c->heartbeat_index < failed &&
            zkl_contender_counts_for(c, ZKL_COUNT_UNCHECKED))
            zkl_core_feed_type(core, c, ZKL_EV_CHECKED);
    }
}

/* The contender whose node the answer names. NULL: the answer concerns the whole request, or
 * nothing. */
static struct zkl_contender *find_blamed(struct zkl_core *core,
                                         const struct zkl_heartbeat *heartbeat,
                                         const struct zkl_reply *reply)
{
    struct zkl_contender *c = core->first;
    if (reply->answer == ZKL_ANSWER_OK || reply->answer == ZKL_ANSWER_LINK || reply->refused)
        return NULL;
    while (c && !(is_checked_by(c, heartbeat) && c->heartbeat_index == reply->failed_check))
        c = c->next;
    return c;
}

static void blame(struct zkl_core *core, struct zkl_contender *c, const struct zkl_reply *reply)
{
    bool gone = reply->answer == ZKL_ANSWER_NONODE;
    if (core->counts[ZKL_COUNT_UNCHECKED] == 0)
        put_recheck_off(core);
    zkl_core_feed_reply(core, c, gone ? ZKL_EV_NODE_GONE : ZKL_EV_UNCHECKED, reply);
}

static void on_recheck(struct zkl_core *core, const struct zkl_reply *reply)
{
    struct zkl_contender *c = find_blamed(core, &core->recheck, reply);
    put_recheck_off(core);
    core->recheck.round = c ? c->number : 0; /* the next one begins behind it */
    if (c || reply->answer == ZKL_ANSWER_OK)
        feed_checked(core, &core->recheck, c ? c->heartbeat_index : ZKL_HEARTBEAT_CHECKS_MAX);
    if (c)
        blame(core, c, reply);
}

static void on_heartbeat(struct zkl_core *core, const struct zkl_heartbeat *heartbeat,
                         const struct zkl_reply *reply)
{
    struct zkl_contender *c = find_blamed(core, heartbeat, reply);
    if (reply->answer == ZKL_ANSWER_OK)
        return;
    bool again = c || reply->answer == ZKL_ANSWER_NONODE; /* the others are not proved yet */
    if (c)
        blame(core, c, reply);
    core->heartbeat_wanted = core->heartbeat_wanted || again;
    core->heartbeat_failed = core->heartbeat_failed || again;
    core->heartbeat_hold_off = core->now.mono_ns + (again ? 0 : core->session.timeout_ms * MS / 16);
}

void zkl_heartbeat_answered(struct zkl_core *core, struct zkl_pending *slot,
                            const struct zkl_reply *reply)
{
    static_assert(offsetof(struct zkl_heartbeat, pending) == 0, "a slot of these is the heartbeat");
    const struct zkl_heartbeat *heartbeat = (const struct zkl_heartbeat *)slot;
    if (heartbeat == &core->recheck)
        on_recheck(core, reply);
    else
        on_heartbeat(core, heartbeat, reply);
}

/* --- when --------------------------------------------------------------- */

static bool is_out(const struct zkl_core *core)
{
    for (const struct zkl_heartbeat *heartbeat = core->heartbeats;
         heartbeat < core->heartbeats + ZKL_HEARTBEATS_MAX; heartbeat++) {
        if (heartbeat->pending.id != 0)
            return true;
    }
    return false;
}

/* INT64_MAX: none is wanted now. */
static int64_t heartbeat_at(const struct zkl_core *core, struct zkl_time now)
{
    if (core->counts[ZKL_COUNT_HEARTBEATS] == 0 || !zkl_core_connected(core) || is_out(core))
        return INT64_MAX;
    const struct zkl_proof *proof = &core->session.proof;
    int64_t due = zkl_proof_heartbeat_due(proof);
    int64_t enough = core->counts[ZKL_COUNT_AWAITS_PROOF] > 0
                         ? zkl_proof_enough_at(proof, now.boot_ns)
                         : INT64_MAX;
    due = core->heartbeat_wanted ? now.mono_ns : zkl_time_mono(now, due < enough ? due : enough);
    return due > core->heartbeat_hold_off ? due : core->heartbeat_hold_off;
}

static int64_t recheck_at(const struct zkl_core *core)
{
    bool none = core->counts[ZKL_COUNT_UNCHECKED] == 0 || core->recheck.pending.id != 0;
    return none || !zkl_core_connected(core) ? INT64_MAX : core->recheck_mono_ns;
}

bool zkl_heartbeat_if_wanted(struct zkl_core *core)
{
    if (!core->heartbeat_wanted || heartbeat_at(core, core->now) > core->now.mono_ns)
        return false;
    send_heartbeats(core);
    return true;
}

void zkl_heartbeat_timer(struct zkl_core *core)
{
    if (heartbeat_at(core, core->now) <= core->now.mono_ns)
        send_heartbeats(core);
    if (recheck_at(core) <= core->now.mono_ns)
        send_recheck(core);
}

int64_t zkl_heartbeat_next(const struct zkl_core *core, struct zkl_time now)
{
    int64_t heartbeat = heartbeat_at(core, now), recheck = recheck_at(core);
    return heartbeat < recheck ? heartbeat : recheck;
}
