/* SPDX-License-Identifier: Apache-2.0 */
#include "pace.h"

#include <assert.h>
#include <stdlib.h>

#include "feed.h"
#include "pending.h"
#include "query.h"
#include "turns.h"
#include "watch.h"

#define MS INT64_C(1000000)

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- heartbeat ---------------------------------------------------------- */

static bool beats_for(const struct zkl_contender *c)
{
    return zkl_contender_needs_window(&c->machine) && c->machine.on_server;
}

/* The contenders that this beat checks: in turn, where there are more than one beat can carry. */
static size_t choose_checked(struct zkl_core *core, struct zkl_contender **chosen, size_t max)
{
    size_t n = 0;
    for (int pass = 0; pass < 2 && n < max; pass++) {
        for (struct zkl_contender *c = core->first; c && n < max; c = c->next) {
            if ((c->number > core->beat_round) == (pass == 0) && beats_for(c))
                chosen[n++] = c;
        }
    }
    if (n > 0)
        core->beat_round = n < max ? 0 : chosen[n - 1]->number;
    return n;
}

static void send_heartbeat(struct zkl_core *core)
{
    struct zkl_contender *chosen[ZKL_HEARTBEAT_CHECKS_MAX];
    const char *checks[ZKL_HEARTBEAT_CHECKS_MAX];
    char one[ZKL_NODE_PATH_MAX + 1];
    size_t n = choose_checked(core, chosen, ZKL_HEARTBEAT_CHECKS_MAX);
    core->heartbeat_wanted = false;
    assert(n > 0); /* who needs the window has a node */
    char *many = n > 1 ? malloc(n * sizeof one) : NULL;
    if (!many)
        n = 1; /* one node proves the session too */
    core->beats++;
    for (size_t i = 0; i < n; i++) {
        char *path = many ? many + i * sizeof one : one;
        zkl_core_node_path(chosen[i], chosen[i]->machine.node, path);
        checks[i] = path;
        chosen[i]->beat = core->beats;
        chosen[i]->beat_index = i;
    }
    struct zkl_request request = {.kind = ZKL_REQ_HEARTBEAT, .checks = checks, .check_count = n};
    zkl_pending_send(core, &core->heartbeat, &request);
    free(many);
}

void zkl_pace_heartbeat_answered(struct zkl_core *core, const struct zkl_reply *reply)
{
    if (reply->answer == ZKL_ANSWER_OK)
        return;
    core->heartbeat_hold_off = core->now.mono_ns + core->session.timeout_ms * MS / 16;
    if (reply->answer != ZKL_ANSWER_NONODE)
        return;
    struct zkl_contender *next;
    for (struct zkl_contender *c = core->first; c; c = next) {
        next = c->next;
        if (c->beat == core->beats && c->beat_index == reply->failed_check && beats_for(c)) {
            zkl_core_feed_type(core, c, ZKL_EV_NODE_GONE);
            break;
        }
    }
    core->heartbeat_hold_off = core->now.mono_ns;
    core->heartbeat_wanted = true; /* the others are not proved yet */
}

/* --- leases ------------------------------------------------------------- */

static bool is_holding(const struct zkl_contender_machine *m)
{
    return m->state == ZKL_HOLDING;
}

void zkl_pace_note_lease(struct zkl_core *core, const struct zkl_contender *c)
{
    int64_t end = c->machine.lease_end_boot;
    if (end != 0 && end < core->lease_boot)
        core->lease_boot = end;
}

bool zkl_pace_begin_lease(struct zkl_core *core, struct zkl_contender *c, int64_t lease_ns)
{
    bool begun = zkl_contender_renew(&c->machine, core->now, core->now.boot_ns + lease_ns);
    zkl_pace_note_lease(core, c);
    return begun;
}

static void end_leases(struct zkl_core *core)
{
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_LEASE_ENDED}, is_holding);
    core->lease_boot = INT64_MAX;
    for (const struct zkl_contender *c = core->first; c; c = c->next) {
        if (is_holding(&c->machine))
            zkl_pace_note_lease(core, c);
    }
}

static int64_t to_mono(struct zkl_time now, int64_t boot_ns)
{
    return boot_ns - now.boot_ns + now.mono_ns;
}

/* INT64_MAX: none is wanted now. */
static int64_t heartbeat_at(const struct zkl_core *core, struct zkl_time now)
{
    if (!zkl_session_connected(&core->session) || core->heartbeat.id != 0)
        return INT64_MAX;
    if (core->need_window == 0)
        return INT64_MAX;
    const struct zkl_proof *proof = &core->session.proof;
    int64_t due = zkl_proof_heartbeat_due(proof);
    if (core->hopeful > 0)
        due = earlier(due, zkl_proof_enough_at(proof, now.boot_ns));
    due = core->heartbeat_wanted ? now.mono_ns : to_mono(now, due);
    return due > core->heartbeat_hold_off ? due : core->heartbeat_hold_off;
}

/* --- nudge -------------------------------------------------------------- */

static int64_t part_of_timeout(const struct zkl_core *core, int part)
{
    return zkl_session_timeout_ns(&core->session) / part;
}

/* What a proof rests on: answers over this link, close to each other. Servers can also sit on an answer or an
 * event, and on those of one client alone. */
static int64_t nudge_interval(const struct zkl_core *core)
{
    bool is_awaiting = core->waiting > 0 || core->pending_count > (core->nudge.id != 0);
    int64_t interval = part_of_timeout(core, core->need_window > 0 ? 16 : 4);
    return is_awaiting ? earlier(interval, ZKL_NUDGE_MS * MS) : interval;
}

/* Without a link one is kept under way: it comes back with each attempt that fails, and the link that is
 * made in the end began after that. */
static int64_t nudge_at(const struct zkl_core *core)
{
    enum zkl_session_state state = core->session.state;
    if (state == ZKL_SESSION_CONNECTED)
        return core->last_send_mono_ns + nudge_interval(core);
    if (state == ZKL_SESSION_FAILED || state == ZKL_SESSION_CLOSED || core->nudge.id != 0)
        return INT64_MAX;
    return core->last_send_mono_ns + part_of_timeout(core, 16);
}

/* INT64_MAX: nothing is left to be sent again. */
static int64_t retry_at(const struct zkl_core *core)
{
    bool none = core->stranded == 0 && core->removals_due == 0 && core->parked == 0;
    if (!zkl_session_connected(&core->session) || none)
        return INT64_MAX;
    return core->last_retry_mono_ns + ZKL_RETRY_MS * MS;
}

static void retry(struct zkl_core *core)
{
    core->last_retry_mono_ns = core->now.mono_ns;
    zkl_watch_retry(core);
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_LINK_UP}, zkl_contender_is_stranded);
    zkl_query_retry(core);
}

/* --- what waiters put off ----------------------------------------------- */

/* One time for all: who came last waits the shortest. */
void zkl_pace_put_off(struct zkl_core *core)
{
    if (core->put_off_mono_ns == INT64_MAX)
        core->put_off_mono_ns = core->now.mono_ns + ZKL_PUT_OFF_MS * MS;
}

static void do_what_was_put_off(struct zkl_core *core)
{
    core->put_off_mono_ns = INT64_MAX;
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_WAITED}, zkl_contender_puts_off);
}

/* --- all together ------------------------------------------------------- */

bool zkl_pace_heartbeat_if_wanted(struct zkl_core *core)
{
    if (!core->heartbeat_wanted || heartbeat_at(core, core->now) > core->now.mono_ns)
        return false;
    send_heartbeat(core);
    return true;
}

static bool window_ended(const struct zkl_core *core)
{
    return core->now.boot_ns >= zkl_session_window_end(&core->session);
}

void zkl_pace_timer(struct zkl_core *core)
{
    struct zkl_time now = core->now;
    if (core->bounded > 0 && window_ended(core))
        zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_WINDOW_ENDED},
                          zkl_contender_is_bounded);
    if (now.boot_ns >= core->lease_boot)
        end_leases(core);
    if (heartbeat_at(core, now) <= now.mono_ns)
        send_heartbeat(core);
    if (core->put_off_mono_ns <= now.mono_ns)
        do_what_was_put_off(core);
    if (core->turns_mono_ns <= now.mono_ns)
        zkl_turns_timer(core);
    if (core->last_send_mono_ns == 0 && !zkl_session_connected(&core->session))
        core->last_send_mono_ns = now.mono_ns; /* the first handle is given some time */
    if (nudge_at(core) <= now.mono_ns) {
        struct zkl_request request = {.kind = ZKL_REQ_NUDGE, .path = "/"};
        zkl_pending_send(core, &core->nudge, &request);
        core->last_send_mono_ns = now.mono_ns; /* sent or refused: not again at once */
    }
    if (retry_at(core) <= now.mono_ns)
        retry(core);
}

int64_t zkl_pace_next(const struct zkl_core *core, struct zkl_time now)
{
    int64_t at = earlier(heartbeat_at(core, now), earlier(nudge_at(core), retry_at(core)));
    at = earlier(at, earlier(core->put_off_mono_ns, core->turns_mono_ns));
    if (core->lease_boot != INT64_MAX)
        at = earlier(at, to_mono(now, core->lease_boot));
    if (core->bounded > 0)
        at = earlier(at, to_mono(now, zkl_session_window_end(&core->session)));
    return at;
}
