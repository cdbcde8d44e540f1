/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared node of the readers of one handle, from its grant to its end: when the gate is open,
 * when the client lists others again, and when it deletes the node. read_cache.h has the argument.
 * core.c calls this file, for a handle or when something is due, and timers.c, with the client's
 * mutex. */
#include "read_cache.h"

#include <assert.h>

#include "due.h"
#include "feed.h"

#define BIT(state) (1u << (state))

static const unsigned allowed[ZKL_READ_CACHE_STATES] = {
    [ZKL_READ_CACHE_EMPTY] = BIT(ZKL_READ_CACHE_OPEN),
    [ZKL_READ_CACHE_OPEN] = BIT(ZKL_READ_CACHE_CLOSING),
    [ZKL_READ_CACHE_CLOSING] = BIT(ZKL_READ_CACHE_EMPTY),
};

const char *zkl_read_cache_state_name(enum zkl_read_cache_state state)
{
    static const char *const names[ZKL_READ_CACHE_STATES] = {
        [ZKL_READ_CACHE_EMPTY] = "EMPTY",
        [ZKL_READ_CACHE_OPEN] = "OPEN",
        [ZKL_READ_CACHE_CLOSING] = "CLOSING",
    };
    return names[state];
}

bool zkl_read_cache_may_move(enum zkl_read_cache_state from, enum zkl_read_cache_state to)
{
    return (allowed[from] & BIT(to)) != 0;
}

/* The only place that assigns a state. */
static void move(struct zkl_core *core, struct zkl_read_cache *cache, enum zkl_read_cache_state to,
                 const char *why)
{
    enum zkl_read_cache_state from = cache->state;
    assert(zkl_read_cache_may_move(from, to));
    cache->state = to;
    zkl_core_trace(core,
                   (struct zkl_trace){.kind = ZKL_TRACE_CACHE, .from = from, .to = to, .why = why});
}

/* --- how long ------------------------------------------------------------- */

static int64_t part_of_timeout(const struct zkl_core *core, int part)
{
    return zkl_session_timeout_ns(&core->session) / part;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A list shows that no other contender queued when it was sent. The client lists others each T/4;
 * if an answer does not come in another T/4, the last one loses its value. */
static int64_t until(const struct zkl_core *core, const struct zkl_read_cache *cache)
{
    const struct zkl_contender_machine *m = &cache->holder->machine;
    if (m->uncontended_boot == 0 || m->suspect)
        return 0;
    return earlier(m->uncontended_boot + part_of_timeout(core, 2), cache->ends_boot);
}

/* Why no reader may come in any more; NULL: nothing speaks against it. */
static const char *over(const struct zkl_core *core, const struct zkl_read_cache *cache)
{
    const struct zkl_contender_machine *m = &cache->holder->machine;
    if (m->state != ZKL_CONTENDER_HOLDING || m->unchecked || m->lease_end_boot != 0)
        return "not sure";
    if (m->contended || m->revoked || !zkl_contender_hears(cache->holder))
        return "wanted elsewhere";
    return core->now.boot_ns >= cache->ends_boot ? "for long enough" : NULL;
}

static void note_time(struct zkl_core *core, const struct zkl_read_cache *cache)
{
    int64_t ends = zkl_time_mono(core->now, cache->ends_boot);
    core->caches_mono_ns = earlier(core->caches_mono_ns, earlier(ends, cache->look_mono_ns));
}

/* --- its life --------------------------------------------------------------- */

bool zkl_read_cache_begin(struct zkl_core *core, struct zkl_read_cache *cache,
                          struct zkl_contender *c)
{
    bool fresh = core->now.boot_ns < zkl_proof_fresh_until(&core->session.proof);
    if (!zkl_read_cache_may_begin(cache, core->now) || !fresh ||
        !zkl_contender_may_stay(&c->machine))
        return false;
    cache->holder = c;
    c->machine.lock_request.read_cache = cache;
    cache->ends_boot = core->now.boot_ns + cache->age_ns;
    cache->look_mono_ns = core->now.mono_ns + part_of_timeout(core, 4);
    cache->next = core->caches;
    core->caches = cache;
    zkl_read_gate_begin(&cache->gate);
    move(core, cache, ZKL_READ_CACHE_OPEN, "granted");
    note_time(core, cache);
    zkl_core_feed(core, c, (struct zkl_event){.type = ZKL_EV_STAY, .idle = true});
    return true;
}

void zkl_read_cache_end(struct zkl_core *core, struct zkl_read_cache *cache, const char *why)
{
    if (cache->state == ZKL_READ_CACHE_OPEN)
        move(core, cache, ZKL_READ_CACHE_CLOSING, why);
    if (cache->state == ZKL_READ_CACHE_CLOSING)
        zkl_due_add(core, &cache->due,
                    ZKL_DUE_CACHE); /* the last one out may not have said so yet */
}

static void drop(struct zkl_core *core, struct zkl_read_cache *cache)
{
    struct zkl_contender *c = cache->holder;
    struct zkl_read_cache **at = &core->caches;
    while (*at != cache)
        at = &(*at)->next;
    *at = cache->next;
    c->machine.lock_request.read_cache = NULL;
    cache->holder = NULL;
    move(core, cache, ZKL_READ_CACHE_EMPTY, "nobody is in");
    zkl_core_feed_type(core, c, ZKL_EV_RELEASE);
    cache->dropped(cache, c);
}

void zkl_read_cache_settle(struct zkl_core *core, struct zkl_due *due)
{
    struct zkl_read_cache *cache = (struct zkl_read_cache *)due;
    if (cache->state == ZKL_READ_CACHE_EMPTY)
        return;
    const char *why = over(core, cache);
    if (cache->holder->machine.crowded) /* a try costs a list and a deletion */
        cache->again_mono_ns = core->now.mono_ns + part_of_timeout(core, 1);
    if (cache->state == ZKL_READ_CACHE_OPEN && why)
        move(core, cache, ZKL_READ_CACHE_CLOSING, why);
    if (cache->state == ZKL_READ_CACHE_OPEN)
        zkl_read_gate_open(&cache->gate, until(core, cache));
    else if (zkl_read_gate_close(&cache->gate))
        drop(core, cache);
}

/* The server can use up watches in silence; a list each T/4 shows it, even on a busy path. */
void zkl_read_cache_timer(struct zkl_core *core)
{
    struct zkl_read_cache *next;
    core->caches_mono_ns = INT64_MAX;
    for (struct zkl_read_cache *cache = core->caches; cache; cache = next) {
        next = cache->next;
        if (cache->state != ZKL_READ_CACHE_OPEN)
            continue;
        if (core->now.boot_ns >= cache->ends_boot) {
            zkl_due_add(core, &cache->due, ZKL_DUE_CACHE);
            continue;
        }
        if (core->now.mono_ns >= cache->look_mono_ns) {
            cache->look_mono_ns = core->now.mono_ns + part_of_timeout(core, 4);
            zkl_core_feed_type(core, cache->holder, ZKL_EV_LOCK_PATH_FIRED);
        }
        note_time(core, cache);
    }
}
