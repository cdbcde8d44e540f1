/* SPDX-License-Identifier: Apache-2.0
 *
 * The top of a contender's machine: passes one event to the function of its state. The states
 * before the grant are in queueing.c (a permit's in permit_limit.c, the used-up counter's in
 * exhausted.c), those from the grant on in holding.c, and the way out of all of them in leaving.c;
 * step.c is below them all. feed.c calls this file. */
#include "contender.h"

#include <assert.h>

#include "step.h"

/* Before the grant; false: it is not. */
static bool step_with_lock_request(struct zkl_step *s)
{
    switch ((int)s->m->state) {
    case ZKL_CONTENDER_NEW:
        zkl_step_begin(s, "started");
        break;
    case ZKL_CONTENDER_PARKED:
        zkl_in_parked(s);
        break;
    case ZKL_CONTENDER_LOOKING:
        zkl_in_looking(s);
        break;
    case ZKL_CONTENDER_MAKING:
        zkl_in_making(s);
        break;
    case ZKL_CONTENDER_QUEUEING:
        zkl_in_queueing(s);
        break;
    case ZKL_CONTENDER_RECOVERING:
        zkl_in_recovering(s);
        break;
    case ZKL_CONTENDER_LISTING:
        zkl_in_listing(s);
        break;
    case ZKL_CONTENDER_WAITING:
        s->kind->in_waiting(s);
        break;
    case ZKL_CONTENDER_CONFIRMING:
        zkl_in_confirming(s);
        break;
    case ZKL_CONTENDER_EXHAUSTED:
        zkl_in_exhausted(s);
        break;
    default:
        return false;
    }
    return true;
}

/* From the grant on, or on the way out. */
static void step_from_grant_on(struct zkl_step *s)
{
    switch ((int)s->m->state) {
    case ZKL_CONTENDER_HOLDING:
        zkl_in_holding(s);
        break;
    case ZKL_CONTENDER_LOSTHOLD:
        zkl_in_losthold(s);
        break;
    case ZKL_CONTENDER_RELEASING:
        zkl_in_releasing(s);
        break;
    case ZKL_CONTENDER_LEAVING:
        zkl_in_leaving(s);
        break;
    default:
        assert(!"an ended contender gets no event");
    }
}

void zkl_contender_step(const struct zkl_core *core, struct zkl_contender_machine *m,
                        const struct zkl_event *event, struct zkl_actions *actions)
{
    struct zkl_step s = {core, m, zkl_kind_of(m), event, actions};
    actions->count = 0;
    /* A list of the path that another one asked for decides as well; the own one, which may be out,
     * is older than what is done now, and must not decide again. */
    if (event->type == ZKL_EV_LOCK_PATH_LISTED && m->state == ZKL_CONTENDER_LISTING)
        zkl_step_forget_list(&s);
    if (event->type == ZKL_EV_LISTED || event->type == ZKL_EV_LOCK_PATH_LISTED)
        m->list_out = false;
    if (event->type == ZKL_EV_STATTED)
        m->stat_out = false;
    if (event->type == ZKL_EV_RENEWED)
        m->renew_out = false;
    if (event->type == ZKL_EV_LIMIT || event->type == ZKL_EV_LIMIT_SET)
        m->limit.out = false;
    if (!step_with_lock_request(&s))
        step_from_grant_on(&s);
}

/* --- what it counts for -------------------------------------------------- */

static unsigned bit(enum zkl_count count, bool is)
{
    return (unsigned)is << count;
}

/* Heartbeats are sent for it if its node may be checked. */
static unsigned with_heartbeats(const struct zkl_contender_machine *m)
{
    return bit(m->unchecked ? ZKL_COUNT_UNCHECKED : ZKL_COUNT_HEARTBEATS, true);
}

static unsigned as_a_holder(const struct zkl_contender_machine *m)
{
    bool is_proved_soon = m->suspect && !m->unchecked && !m->unprovable;
    return with_heartbeats(m) | bit(ZKL_COUNT_WINDOW_LIMITED, !m->suspect) |
           bit(ZKL_COUNT_AWAITS_PROOF, is_proved_soon);
}

static unsigned by_state(const struct zkl_contender_machine *m)
{
    switch ((int)m->state) {
    case ZKL_CONTENDER_WAITING:
        return bit(ZKL_COUNT_WAITS, true) | (zkl_contender_is_next(m) ? with_heartbeats(m) : 0);
    case ZKL_CONTENDER_CONFIRMING:
        return bit(ZKL_COUNT_AWAITS_PROOF, true) | with_heartbeats(m);
    case ZKL_CONTENDER_EXHAUSTED:
        return bit(ZKL_COUNT_WAITS, !m->on_server);
    case ZKL_CONTENDER_HOLDING:
        return as_a_holder(m);
    case ZKL_CONTENDER_LOSTHOLD:
        return bit(ZKL_COUNT_RETRIES, m->on_server && !m->delete_out);
    case ZKL_CONTENDER_RELEASING:
        return bit(ZKL_COUNT_WINDOW_LIMITED, true);
    case ZKL_CONTENDER_LEAVING:
        return bit(ZKL_COUNT_RETRIES, !m->create_out && !m->list_out && !m->delete_out);
    default:
        return 0;
    }
}

unsigned zkl_contender_counts(const struct zkl_contender_machine *m)
{
    bool is_here = m->state >= ZKL_CONTENDER_QUEUEING && m->state <= ZKL_CONTENDER_HOLDING;
    bool may_own = m->create_out || m->on_server || m->maybe_on_server;
    return by_state(m) | bit(ZKL_COUNT_HERE, is_here) |
           bit(ZKL_COUNT_OWNS, may_own && m->state != ZKL_CONTENDER_ENDED);
}
