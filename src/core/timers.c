/* SPDX-License-Identifier: Apache-2.0
 *
 * What a core does by the clock: heartbeats, ends of leases and of the window, the small reads that
 * keep a link active, and second attempts at requests that could not be sent. It keeps no timer: it
 * returns when it must be called next. With the client's mutex; core.c calls it when the driver's
 * timer has fired, bundle.c for leases that begin. */
#include "timers.h"

#include "feed.h"
#include "heartbeat.h"
#include "leftovers.h"
#include "link.h"
#include "requests.h"
#include "query.h"
#include "local_queue.h"
#include "read_cache.h"
#include "watch.h"

#define MS INT64_C(1000000)

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- leases ------------------------------------------------------------- */

static bool is_holding(const struct zkl_contender_machine *m)
{
    return m->state == ZKL_CONTENDER_HOLDING;
}

bool zkl_timers_begin_lease(struct zkl_core *core, struct zkl_contender *c, int64_t lease_ns)
{
    bool begun = zkl_contender_renew(&c->machine, core->now, core->now.boot_ns + lease_ns);
    zkl_timers_note_lease(core, c);
    return begun;
}

static void end_leases(struct zkl_core *core)
{
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_LEASE_ENDED}, is_holding);
    core->lease_boot = INT64_MAX;
    for (const struct zkl_contender *c = core->first; c; c = c->next) {
        if (is_holding(&c->machine))
            zkl_timers_note_lease(core, c);
    }
}

/* --- keepalive ---------------------------------------------------------- */

static int64_t part_of_timeout(const struct zkl_core *core, int part)
{
    return zkl_session_timeout_ns(&core->session) / part;
}

/* A proof rests on answers over this link, close to each other. Servers can also hold back an
 * answer or an event, even from one client alone. And they can use a watch up in silence, if the
 * right to read its node is taken meanwhile (ZOOKEEPER-4799). So keepalives read the nodes by which
 * contenders wait, one after the other. One that is deleted, denied or changed without an event is
 * read again. */
static int64_t keepalive_interval(const struct zkl_core *core)
{
    size_t own = (core->keepalive.id != 0) + (core->watched_read.id != 0);
    bool is_awaiting = core->counts[ZKL_COUNT_WAITS] > 0 || core->pending_count > own;
    int64_t interval = part_of_timeout(core, core->counts[ZKL_COUNT_HEARTBEATS] > 0 ? 16 : 4);
    return is_awaiting ? earlier(interval, ZKL_KEEPALIVE_MS * MS) : interval;
}

/* Without a link one is kept under way: it comes back with each attempt that fails, and the link
 * that is made in the end began after that. */
static int64_t keepalive_at(const struct zkl_core *core)
{
    enum zkl_session_state state = core->session.state;
    if (state == ZKL_SESSION_CONNECTED) {
        int64_t at = core->last_send_mono_ns + keepalive_interval(core);
        int64_t look = core->looked_mono_ns + part_of_timeout(core, 1); /* however busy */
        return core->watch_count > 0 ? earlier(at, look) : at;
    }
    if (state == ZKL_SESSION_FAILED || state == ZKL_SESSION_CLOSED || core->keepalive.id != 0)
        return INT64_MAX;
    return core->last_send_mono_ns + part_of_timeout(core, 16);
}

/* A server can show a node that the leader does not have (ZOOKEEPER-4837, -5010), and no event ever
 * comes for that. So once in a session timeout the leader is asked, in one transaction, for nodes
 * that contenders waited for at the time before already, each at every second time. */
static void check_by_leader(struct zkl_core *core)
{
    const char *paths[ZKL_LEADER_CHECKS_MAX];
    size_t n = 0, start = core->checked[0] % ZKL_WATCH_BUCKETS + 1;
    core->check_mono_ns = core->now.mono_ns + part_of_timeout(core, 1);
    for (size_t i = 0; i < ZKL_WATCH_BUCKETS; i++) {
        struct zkl_watch *w = core->watches[(start + i) % ZKL_WATCH_BUCKETS];
        for (; w; w = w->next) {
            bool is_asked = w->was_there && n < ZKL_LEADER_CHECKS_MAX &&
                            w->type == ZKL_WATCH_DATA && zkl_watch_is_waited_by(w);
            w->was_there = !is_asked;
            if (!is_asked)
                continue;
            core->checked[n] = w->id;
            paths[n++] = w->path;
        }
    }
    if (n > 0)
        zkl_pending_send(
            core, &core->leader_check,
            &(struct zkl_request){.kind = ZKL_REQ_CHECK_ALL, .checks = paths, .check_count = n});
}

static int64_t leader_check_at(const struct zkl_core *core)
{
    bool none = core->watch_count == 0 || core->leader_check.id != 0;
    return none || !zkl_core_connected(core) ? INT64_MAX : core->check_mono_ns;
}

/* False: there is none, or the last one is not answered yet. */
static bool send_look(struct zkl_core *core)
{
    bool may = zkl_core_connected(core) && core->watched_read.id == 0;
    bool is_denied = may && core->denied_link == core->link;
    const struct zkl_watch *watch = is_denied ? zkl_watch_find(core, core->denied_watch) : NULL;
    if (may && !watch)
        watch = zkl_watch_next(core, core->looked_at);
    if (!watch)
        return false;
    core->looked_at = watch->id;
    zkl_pending_send(core, &core->watched_read,
                     &(struct zkl_request){.kind = ZKL_REQ_KEEPALIVE, .path = watch->path});
    return true;
}

static void send_keepalive(struct zkl_core *core)
{
    if (!send_look(core))
        zkl_pending_send(core, &core->keepalive,
                         &(struct zkl_request){.kind = ZKL_REQ_KEEPALIVE, .path = "/"});
    core->looked_mono_ns = core->now.mono_ns;
    core->last_send_mono_ns = core->now.mono_ns; /* sent or refused: not again immediately */
}

/* INT64_MAX: nothing is left to be sent again. */
static int64_t retry_at(const struct zkl_core *core)
{
    bool none =
        core->counts[ZKL_COUNT_RETRIES] == 0 && core->removals_due == 0 && core->parked == 0;
    if (!zkl_core_connected(core) || none)
        return INT64_MAX;
    return core->last_retry_mono_ns + ZKL_RETRY_MS * MS;
}

static void retry(struct zkl_core *core)
{
    core->last_retry_mono_ns = core->now.mono_ns;
    zkl_watch_retry(core);
    zkl_core_feed_counted(core, ZKL_EV_LINK_UP, ZKL_COUNT_RETRIES);
    zkl_query_retry(core);
}

/* --- what a server would not do now --------------------------------------- */

void zkl_timers_ask_again(struct zkl_core *core)
{
    int64_t least = ZKL_RETRY_MS * MS, most = ZKL_AGAIN_MAX_MS * MS;
    if (core->again_mono_ns != INT64_MAX)
        return;
    if (core->again_ns == 0 || core->now.mono_ns - core->last_again_mono_ns > 2 * core->again_ns)
        core->again_ns = least;
    else
        core->again_ns = earlier(2 * core->again_ns, most);
    core->again_mono_ns = core->now.mono_ns + core->again_ns;
    zkl_core_trace(
        core, (struct zkl_trace){.kind = ZKL_TRACE_SESSION,
                                 .from = ZKL_SESSION_CONNECTED,
                                 .to = ZKL_SESSION_CONNECTED,
                                 .why = "a server would not do something now: asked again later"});
}

static void ask_again(struct zkl_core *core)
{
    core->again_mono_ns = INT64_MAX;
    core->last_again_mono_ns = core->now.mono_ns;
    if (zkl_core_connected(core))
        zkl_link_ask_again(core);
}

/* --- what waiters put off ----------------------------------------------- */

static void do_what_was_put_off(struct zkl_core *core)
{
    core->put_off_mono_ns = INT64_MAX;
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_WAITED}, zkl_contender_puts_off);
}

/* --- all together ------------------------------------------------------- */

static bool window_ended(const struct zkl_core *core)
{
    return core->now.boot_ns >= zkl_session_window_end(&core->session);
}

void zkl_timers_timer(struct zkl_core *core)
{
    struct zkl_time now = core->now;
    if (core->counts[ZKL_COUNT_WINDOW_LIMITED] > 0 && window_ended(core))
        zkl_core_feed_counted(core, ZKL_EV_WINDOW_ENDED, ZKL_COUNT_WINDOW_LIMITED);
    if (now.boot_ns >= core->lease_boot)
        end_leases(core);
    zkl_heartbeat_timer(core);
    if (core->put_off_mono_ns <= now.mono_ns)
        do_what_was_put_off(core);
    if (core->again_mono_ns <= now.mono_ns)
        ask_again(core);
    if (core->local_queues_mono_ns <= now.mono_ns)
        zkl_local_queue_timer(core);
    if (core->caches_mono_ns <= now.mono_ns)
        zkl_read_cache_timer(core);
    zkl_leftovers_timer(core);
    if (core->last_send_mono_ns == 0 && !zkl_core_connected(core))
        core->last_send_mono_ns = now.mono_ns; /* the first handle is given some time */
    if (leader_check_at(core) <= now.mono_ns)
        check_by_leader(core);
    if (keepalive_at(core) <= now.mono_ns)
        send_keepalive(core);
    if (retry_at(core) <= now.mono_ns)
        retry(core);
}

int64_t zkl_timers_next(const struct zkl_core *core, struct zkl_time now)
{
    int64_t window_boot = INT64_MAX;
    if (core->counts[ZKL_COUNT_WINDOW_LIMITED] > 0)
        window_boot = zkl_session_window_end(&core->session);
    int64_t first_boot = earlier(core->lease_boot, window_boot);
    const int64_t moments[] = {
        zkl_heartbeat_next(core, now), keepalive_at(core),         retry_at(core),
        leader_check_at(core),         zkl_leftovers_next(core),   core->put_off_mono_ns,
        core->again_mono_ns,           core->local_queues_mono_ns, core->caches_mono_ns,
    };
    int64_t at = first_boot == INT64_MAX ? INT64_MAX : zkl_time_mono(now, first_boot);
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
        at = moments[i] < at ? moments[i] : at;
    return at;
}
