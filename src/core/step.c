/* SPDX-License-Identifier: Apache-2.0
 *
 * Common parts of a contender's machine: the table of its states and the only function that assigns
 * one, the actions of a step, and what the machine knows of its own node. Nothing here decides. All
 * files above call it; it has no memory of its own, as the machine is the caller's.
 * The queue protocol is the lock recipe of the ZooKeeper documentation with Curator's names: an
 * ephemeral sequential child for each contender, the smallest number holds, each waiter watches the
 * child just before its own. Additions: create and list in one round trip, recovery of a create
 * whose answer was lost, the validity window, the renewal of an exhausted counter, and a way out of
 * every state. */
#include "step.h"

#include <assert.h>
#include <string.h>

#include <zklock/zklock.h>

#define BIT(state) (1u << (state))

/* state -> the states it may be followed by. ENDED and LEAVING are listed where they can really
 * come. */
static const unsigned allowed[ZKL_CONTENDER_STATES] = {
    [ZKL_CONTENDER_NEW] = BIT(ZKL_CONTENDER_PARKED) | BIT(ZKL_CONTENDER_LOOKING) |
                          BIT(ZKL_CONTENDER_QUEUEING) | BIT(ZKL_CONTENDER_ENDED),
    [ZKL_CONTENDER_PARKED] =
        BIT(ZKL_CONTENDER_LOOKING) | BIT(ZKL_CONTENDER_QUEUEING) | BIT(ZKL_CONTENDER_ENDED),
    [ZKL_CONTENDER_LOOKING] =
        BIT(ZKL_CONTENDER_PARKED) | BIT(ZKL_CONTENDER_QUEUEING) | BIT(ZKL_CONTENDER_ENDED),
    [ZKL_CONTENDER_MAKING] =
        BIT(ZKL_CONTENDER_PARKED) | BIT(ZKL_CONTENDER_QUEUEING) | BIT(ZKL_CONTENDER_ENDED),
    [ZKL_CONTENDER_QUEUEING] =
        BIT(ZKL_CONTENDER_PARKED) | BIT(ZKL_CONTENDER_QUEUEING) | BIT(ZKL_CONTENDER_MAKING) |
        BIT(ZKL_CONTENDER_RECOVERING) | BIT(ZKL_CONTENDER_LISTING) | BIT(ZKL_CONTENDER_WAITING) |
        BIT(ZKL_CONTENDER_CONFIRMING) | BIT(ZKL_CONTENDER_EXHAUSTED) | BIT(ZKL_CONTENDER_HOLDING) |
        BIT(ZKL_CONTENDER_LEAVING) | BIT(ZKL_CONTENDER_ENDED),
    [ZKL_CONTENDER_RECOVERING] = BIT(ZKL_CONTENDER_HOLDING) | BIT(ZKL_CONTENDER_CONFIRMING) |
                                 BIT(ZKL_CONTENDER_ENDED) | BIT(ZKL_CONTENDER_PARKED) |
                                 BIT(ZKL_CONTENDER_QUEUEING) | BIT(ZKL_CONTENDER_LISTING) |
                                 BIT(ZKL_CONTENDER_EXHAUSTED) | BIT(ZKL_CONTENDER_LEAVING),
    [ZKL_CONTENDER_LISTING] = BIT(ZKL_CONTENDER_PARKED) | BIT(ZKL_CONTENDER_QUEUEING) |
                              BIT(ZKL_CONTENDER_WAITING) | BIT(ZKL_CONTENDER_CONFIRMING) |
                              BIT(ZKL_CONTENDER_HOLDING) | BIT(ZKL_CONTENDER_LEAVING),
    [ZKL_CONTENDER_WAITING] = BIT(ZKL_CONTENDER_PARKED) | BIT(ZKL_CONTENDER_QUEUEING) |
                              BIT(ZKL_CONTENDER_LISTING) | BIT(ZKL_CONTENDER_HOLDING) |
                              BIT(ZKL_CONTENDER_LEAVING),
    [ZKL_CONTENDER_CONFIRMING] = BIT(ZKL_CONTENDER_ENDED) | BIT(ZKL_CONTENDER_PARKED) |
                                 BIT(ZKL_CONTENDER_QUEUEING) | BIT(ZKL_CONTENDER_HOLDING) |
                                 BIT(ZKL_CONTENDER_LISTING) | BIT(ZKL_CONTENDER_LEAVING),
    [ZKL_CONTENDER_EXHAUSTED] = BIT(ZKL_CONTENDER_PARKED) | BIT(ZKL_CONTENDER_QUEUEING) |
                                BIT(ZKL_CONTENDER_LEAVING) | BIT(ZKL_CONTENDER_ENDED),
    [ZKL_CONTENDER_HOLDING] =
        BIT(ZKL_CONTENDER_LOSTHOLD) | BIT(ZKL_CONTENDER_RELEASING) | BIT(ZKL_CONTENDER_LEAVING),
    [ZKL_CONTENDER_LOSTHOLD] = BIT(ZKL_CONTENDER_LEAVING) | BIT(ZKL_CONTENDER_ENDED),
    [ZKL_CONTENDER_RELEASING] = BIT(ZKL_CONTENDER_LEAVING) | BIT(ZKL_CONTENDER_ENDED),
    [ZKL_CONTENDER_LEAVING] = BIT(ZKL_CONTENDER_ENDED),
};

const char *zkl_contender_state_name(enum zkl_contender_state state)
{
    static const char *const names[ZKL_CONTENDER_STATES] = {
        [ZKL_CONTENDER_NEW] = "NEW",
        [ZKL_CONTENDER_PARKED] = "PARKED",
        [ZKL_CONTENDER_LOOKING] = "LOOKING",
        [ZKL_CONTENDER_MAKING] = "MAKING",
        [ZKL_CONTENDER_QUEUEING] = "QUEUEING",
        [ZKL_CONTENDER_RECOVERING] = "RECOVERING",
        [ZKL_CONTENDER_LISTING] = "LISTING",
        [ZKL_CONTENDER_WAITING] = "WAITING",
        [ZKL_CONTENDER_CONFIRMING] = "CONFIRMING",
        [ZKL_CONTENDER_EXHAUSTED] = "EXHAUSTED",
        [ZKL_CONTENDER_HOLDING] = "HOLDING",
        [ZKL_CONTENDER_LOSTHOLD] = "LOSTHOLD",
        [ZKL_CONTENDER_RELEASING] = "RELEASING",
        [ZKL_CONTENDER_LEAVING] = "LEAVING",
        [ZKL_CONTENDER_ENDED] = "ENDED",
    };
    return names[state];
}

bool zkl_contender_may_move(enum zkl_contender_state from, enum zkl_contender_state to)
{
    return (allowed[from] & BIT(to)) != 0;
}

/* --- the only place that assigns a state -------------------------------- */

void zkl_step_move(struct zkl_step *s, enum zkl_contender_state to, const char *why)
{
    enum zkl_contender_state from = s->m->state;
    assert(zkl_contender_may_move(from, to));
    s->m->state = to;
    if (s->core->tracer.moved)
        s->core->tracer.moved(s->core->tracer.arg, s->m, from, why);
}

struct zkl_action *zkl_step_emit(struct zkl_step *s, enum zkl_action_type type)
{
    assert(s->out->count < ZKL_ACTIONS_MAX);
    struct zkl_action *action = &s->out->list[s->out->count++];
    *action = (struct zkl_action){.type = type, .number = s->ev->reply->number};
    return action;
}

void zkl_step_emit_code(struct zkl_step *s, enum zkl_action_type type, int code, const char *detail)
{
    struct zkl_action *action = zkl_step_emit(s, type);
    action->code = code;
    action->detail = detail;
}

void zkl_step_emit_reason(struct zkl_step *s, enum zkl_action_type type, int state, int reason)
{
    struct zkl_action *action = zkl_step_emit(s, type);
    action->state = state;
    action->reason = reason;
}

bool zkl_step_outcome_unknown(enum zkl_answer answer)
{
    return answer == ZKL_ANSWER_LINK || answer == ZKL_ANSWER_OTHER;
}

/* An answer that ZooKeeper has a code for is never "not understood". */
int zkl_answer_code(enum zkl_answer answer)
{
    switch (answer) {
    case ZKL_ANSWER_NOMEM:
        return ZKL_ENOMEM;
    case ZKL_ANSWER_FULL:
        return ZKL_ESYSTEM;
    case ZKL_ANSWER_NOAUTH:
        return ZKL_EACCES;
    case ZKL_ANSWER_QUOTA:
        return ZKL_EQUOTA;
    case ZKL_ANSWER_READONLY:
        return ZKL_EREADONLY;
    case ZKL_ANSWER_BADPATH:
        return ZKL_EBADPATH;
    case ZKL_ANSWER_AUTH:
        return ZKL_EAUTH;
    case ZKL_ANSWER_OK:
    case ZKL_ANSWER_LINK:
    case ZKL_ANSWER_NONODE:
    case ZKL_ANSWER_EXISTS:
    case ZKL_ANSWER_NOTEMPTY:
    case ZKL_ANSWER_UNIMPLEMENTED:
    case ZKL_ANSWER_NOWATCHER:
    case ZKL_ANSWER_ROLLED_BACK:
        return ZKL_EUNIMPLEMENTED;
    case ZKL_ANSWER_OTHER:
        break;
    }
    return ZKL_EPROTO;
}

bool zkl_step_window_open(const struct zkl_step *s)
{
    return s->core->now.boot_ns < zkl_session_window_end(&s->core->session);
}

bool zkl_step_window_fresh(const struct zkl_step *s)
{
    return s->core->now.boot_ns < zkl_proof_fresh_until(&s->core->session.proof);
}

/* --- our own node -------------------------------------------------------- */

void zkl_contender_name_downgraded(const struct zkl_contender_machine *m, char *out)
{
    struct zkl_naming writer = m->lock_request.naming;
    writer.role = ZKL_ROLE_WRITE;
    const char *digits = zkl_name_digits(m->downgrade_from, &writer);
    zkl_name_prefix(&m->lock_request.naming, m->guid, out);
    if (digits)
        strcat(out, digits);
}

void zkl_step_know_node(struct zkl_step *s, const char *name, int64_t czxid)
{
    if (name)
        zkl_text_copy(s->m->node, sizeof s->m->node, name);
    else
        zkl_contender_name_downgraded(s->m, s->m->node);
    s->m->sequence = zkl_name_sequence(s->m->node, &s->m->lock_request.naming);
    s->m->czxid = s->kind->within_hold ? s->m->downgrade_from_czxid : czxid;
    s->m->on_server = true;
    s->m->maybe_on_server = false;
}

struct zkl_look zkl_step_look(const struct zkl_step *s, const char *own)
{
    return zkl_queue_position(&s->m->lock_request.naming, s->ev->reply->children,
                              s->ev->reply->child_count, own);
}

const char *zkl_step_find_own(const struct zkl_step *s)
{
    char prefix[ZKL_NODE_NAME_MAX + 1];
    zkl_name_prefix(&s->m->lock_request.naming, s->m->guid, prefix);
    return zkl_queue_find(s->ev->reply->children, s->ev->reply->child_count, prefix);
}

/* An error that a server answers over a link that goes on is the end of that request. */
void zkl_step_lose_create(struct zkl_step *s)
{
    s->m->maybe_on_server = true;
    s->m->may_be_late = !zkl_core_connected(s->core);
}

void zkl_step_give_up_create(struct zkl_step *s)
{
    if (s->m->may_be_late)
        zkl_step_emit(s, ZKL_DO_EXPECT_LATE);
    s->m->may_be_late = false;
}

void zkl_step_forget_list(struct zkl_step *s)
{
    if (s->m->list_out)
        zkl_step_emit(s, ZKL_DO_FORGET_LIST);
    s->m->list_out = false;
}
