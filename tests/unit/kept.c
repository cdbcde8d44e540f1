/* SPDX-License-Identifier: Apache-2.0
 * Commands for nodes that outlive a hold: owners that take turns on one node (local_queue.c), and the node of all readers
 * of a handle (read_cache.c). */
#include "core/local_queue.h"
#include "core/read_cache.h"
#include "script.h"

#define OWNERS 6

static struct zkl_local_queue locals, others; /* others: of another handle */
static struct zkl_local_waiter
    owners[OWNERS + 1]; /* from 1; each has the contender of its number */
static struct zkl_read_cache cache;
static atomic_llong fresh;
static int dropped_count;

/* --- owners ----------------------------------------------------------------- */

static void queues(struct zkl_local_queue *t, struct zkl_local_waiter *turn)
{
    assert_ptr_equal(t, &locals);
    s->live[turn->contender - s->contenders] = true;
}

static void given(struct zkl_local_queue *t, struct zkl_local_waiter *turn)
{
    assert_ptr_equal(t, &locals);
    assert_non_null(turn->given);
    assert_false(turn->waits);
}

static void dropped(struct zkl_local_queue *t, struct zkl_contender *c)
{
    assert_null(c->machine.lock_request.local_queue);
    dropped_count += t == &locals;
}

/* owners HANDOFFS RETAIN_MS: of a mutex at /r */
static void begin_owners(unsigned handoffs_max, int64_t retain_ms)
{
    memset(owners, 0, sizeof owners);
    locals = (struct zkl_local_queue){.handoffs_max = handoffs_max,
                                      .retain_ns = retain_ms * MS,
                                      .queues = queues,
                                      .given = given,
                                      .dropped = dropped};
    others = locals;
    others.retain_ns = 60000 * MS;
}

/* join OWNER [try] [first] -> what it does from then on */
static void join(const struct command *c)
{
    static const char *const answers[] = {"queues", "waits", "given", "busy"};
    struct zkl_local_waiter *owner = &owners[number(c, 1)];
    bool ahead = c->count > 2 && strcmp(word(c, c->count - 1), "first") == 0;
    *owner = (struct zkl_local_waiter){
        .contender = &s->contenders[number(c, 1) - 1],
        .lock_request = {.path = script_path("/r"),
                         .data = "owner",
                         .try_only = c->count > 2 && strcmp(word(c, 2), "try") == 0,
                         .retained = true}};
    says(c, "%s", answers[zkl_local_queue_join(&s->core, script_now(), &locals, owner, ahead)]);
}

static struct zkl_contender *held(const struct command *c)
{
    const struct zkl_local_waiter *owner = &owners[number(c, 1)];
    return owner->given ? owner->given : script_contender((int)number(c, 1));
}

/* pass OWNER -> was it handed on, or does it stay? Else it is unlocked. */
static void pass(const struct command *c)
{
    bool passed = zkl_local_queue_pass(&s->core, script_now(), &locals, held(c));
    if (!passed)
        zkl_core_release(&s->core, script_now(), held(c));
    says_whether(c, passed);
}

/* Another handle's, whose time is over before. */
static struct zkl_local_queue sooner;

static void put_sooner(int64_t ms)
{
    sooner = (struct zkl_local_queue){.timed = true, .next_timed = s->core.timed_local_queues};
    s->core.timed_local_queues = &sooner;
    s->core.local_queues_mono_ns = ms * MS;
}

static bool owners_do(const struct command *c)
{
    DO("owners", begin_owners((unsigned)number(c, 1), number(c, 2)));
    DO("join", join(c));
    DO("pass", pass(c));
    DO("release", zkl_core_release(&s->core, script_now(), held(c)));
    DO("look_to_pass",
       says_whether(c, zkl_local_queue_pass(&s->core, script_now(), &locals, held(c))));
    DO("pass_other", /* the contender of that number, and the other handle */
       says_whether(c, zkl_local_queue_pass(&s->core, script_now(), &others,
                                            script_contender((int)number(c, 1)))));
    DO("leave_owners", zkl_local_queue_leave(&locals, &owners[number(c, 1)]));
    DO("has_contender", says(c, "%d", (int)(held(c) - s->contenders) + 1));
    DO("holder", says(c, "%d", (int)(locals.holder - s->contenders) + 1));
    DO("stop_owner", zkl_core_stop(&s->core, script_now(), held(c), ZKL_ETIMEDOUT));
    DO("renew_owner", assert_true(zkl_core_renew(&s->core, script_now(), held(c), 1000 * MS)));
    DO("revoke_owner", held(c)->machine.revoked = true);
    DO("drop", zkl_local_queue_drop(&s->core, script_now(), &locals));
    DO("locals", says(c, "%s", zkl_local_queue_state_name(locals.state)));
    DO("handoffs", says(c, "%u", locals.handoffs));
    DO("timer_at", says(c, "%d", (int)(s->core.local_queues_mono_ns / MS)));
    DO("sooner", put_sooner(number(c, 1)));
    DO("sooner_was", assert_false(sooner.timed));
    return false;
}

/* --- readers ---------------------------------------------------------------- */

static void emptied(struct zkl_read_cache *of, struct zkl_contender *contender)
{
    assert_ptr_equal(of, &cache);
    assert_null(contender->machine.lock_request.read_cache);
    dropped_count++;
}

/* A reader goes out. True: the last one, of a closed gate. */
static bool go_out(void)
{
    bool last = zkl_read_gate_leave(&cache.gate);
    if (last)
        zkl_read_cache_left(&s->core, script_now(), &cache);
    return last;
}

/* enter -> did it come in? Else it has to queue. */
static void enter(const struct command *c)
{
    atomic_store(&fresh, zkl_proof_fresh_until(&s->core.session.proof));
    bool in = script_now().boot_ns < zkl_read_gate_enter(&cache.gate, &fresh);
    if (!in)
        go_out();
    says_whether(c, in);
}

static bool readers_do(const struct command *c)
{
    DO("cache", cache = (struct zkl_read_cache){.age_ns = number(c, 1) * MS, .dropped = emptied});
    DO("keep_none", cache.age_ns = 0);
    DO("open", says_whether(c, zkl_read_cache_open(&s->core, script_now(), &cache,
                                                   script_contender((int)number(c, 1)))));
    DO("enter", enter(c));
    DO("go_out", go_out());
    DO("leave_gate", says_whether(c, zkl_read_gate_leave(&cache.gate)));
    DO("left", zkl_read_cache_left(&s->core, script_now(), &cache));
    DO("shut", zkl_read_cache_close(&s->core, script_now(), &cache));
    DO("cached", says(c, "%s", zkl_read_cache_state_name(cache.state)));
    DO("may_begin", says_whether(c, zkl_read_cache_may_begin(&cache, script_now())));
    DO("end_cache", zkl_read_cache_fini(&s->core, script_now(), &cache));
    return false;
}

bool obey_kept(const struct command *c)
{
    DO("dropped", says(c, "%d", dropped_count));
    return owners_do(c) || readers_do(c);
}

void end_kept(void)
{
    if (locals.queues) {
        zkl_local_queue_fini(&s->core, script_now(), &others);
        zkl_local_queue_fini(&s->core, script_now(), &locals);
        assert_int_equal(locals.state, ZKL_LOCAL_QUEUE_FREE);
        locals.queues = NULL;
    }
    if (cache.dropped)
        zkl_read_cache_fini(&s->core, script_now(), &cache);
    cache.dropped = NULL;
    dropped_count = 0;
}
