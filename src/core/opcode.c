/* SPDX-License-Identifier: Apache-2.0
 *
 * What the server at the other end does not know: the requests that it hung up on or refused, and
 * the operations that replace them. The core keeps what it learned: a session that such a server
 * ends says nothing new. With the client's mutex. feed.c and requests.c ask before they send; core.c
 * reports links that broke. */
#include "opcode.h"

#define HUNG_UP_MAX 2
#define USELESS_FROM 6 /* links in a row: one can break at any moment, soon after another */
/* What is unknown is tried once more over the first link after this: servers are replaced, and two
 * links can break for another reason. */
#define LEARNED_NS (600 * INT64_C(1000000000))

/* A heartbeat is the first to be sent over each new link, and the first to be lost with it; and
 * nothing takes the place of transactions: so no broken link is a sign that they are unknown, and
 * the server's word alone is. Where there is another way than an operation a mistake costs little,
 * and the next server may be one that does not know it: those are cleared for a link. */

static const char *const unknown_why[ZKL_OPCODES] = {
    [ZKL_OPCODE_CREATE2] = "the server does not know create2: a create and an exists instead",
    [ZKL_OPCODE_CONTAINER] = "the server does not know containers: persistent parents instead",
    [ZKL_OPCODE_REMOVE_WATCHES] = "the server does not know removeWatches: they are left to fire",
    [ZKL_OPCODE_MULTI] = "the server does not know transactions, without which nothing works",
};

/* A transaction's parts are plain creates, deletes and checks. */
static bool is_multi(const struct zkl_request *request)
{
    enum zkl_request_kind kind = request->kind;
    return kind == ZKL_REQ_CHECK_ALL || kind == ZKL_REQ_CREATE_ALL || kind == ZKL_REQ_DELETE_ALL ||
           kind == ZKL_REQ_PARTS || (kind == ZKL_REQ_CREATE && request->check_count > 0);
}

enum zkl_opcode zkl_opcode_choose(const struct zkl_core *core, struct zkl_request *request)
{
    bool make = request->kind == ZKL_REQ_MAKE;
    if (is_multi(request))
        return ZKL_OPCODE_MULTI;
    if (request->kind == ZKL_REQ_UNWATCH)
        return ZKL_OPCODE_REMOVE_WATCHES;
    if (request->kind == ZKL_REQ_LIST && request->flag)
        return ZKL_OPCODE_CHILDREN2;
    if (!make && request->kind != ZKL_REQ_CREATE)
        return ZKL_OPCODE_OTHER;
    request->flag = request->flag || (make && zkl_opcode_is_unknown(core, ZKL_OPCODE_CONTAINER));
    if (make && !request->flag)
        return ZKL_OPCODE_CONTAINER;
    request->plain = zkl_opcode_is_unknown(core, ZKL_OPCODE_CREATE2);
    return request->plain ? ZKL_OPCODE_OTHER : ZKL_OPCODE_CREATE2;
}

static void learn(struct zkl_core *core, enum zkl_opcode opcode)
{
    enum zkl_session_state state = core->session.state;
    if (core->opcodes[opcode].unknown)
        return;
    core->opcodes[opcode].unknown = true;
    core->learned_mono_ns = core->now.mono_ns;
    zkl_core_trace(core, (struct zkl_trace){.kind = ZKL_TRACE_SESSION,
                                            .from = state,
                                            .to = state,
                                            .why = unknown_why[opcode]});
}

/* Without the others there is another way. */
static bool is_indispensable(enum zkl_opcode opcode)
{
    return opcode == ZKL_OPCODE_OTHER || opcode == ZKL_OPCODE_CHILDREN2 ||
           opcode == ZKL_OPCODE_MULTI;
}

/* A request that was answered over this link did not break it. */
static bool is_doubtful(const struct zkl_core *core, enum zkl_opcode opcode)
{
    return !is_indispensable(opcode) && !core->opcodes[opcode].answered &&
           !core->opcodes[opcode].unknown;
}

_Static_assert(ZKL_REQUEST_KINDS + ZKL_OPCODES <= 32, "each has a bit");

/* Of a request as the server sees it: all transactions are one, and lists are of two kinds. */
static uint32_t bit_of(const struct zkl_pending *slot)
{
    bool is_own = slot->opcode == ZKL_OPCODE_MULTI || slot->opcode == ZKL_OPCODE_CHILDREN2;
    return 1u << (is_own ? ZKL_REQUEST_KINDS + (int)slot->opcode : (int)slot->kind);
}

/* Whatever it is: a link is of no use that ends by a request that it never answered, as those
 * before it, be it the same or another. But a kind that was answered over this link did not end
 * it: it was lost with it. All others may have: an answer that ends a link can overtake (B117). */
static void suspect(struct zkl_core *core, const struct zkl_pending *slot)
{
    if (!slot || slot->kind == ZKL_REQ_KEEPALIVE || (core->answered_kinds & bit_of(slot)))
        return;
    core->suspects |= bit_of(slot);
    if (core->is_suspected)
        return;
    core->is_suspected = true;
    core->suspicions += core->suspicions < USELESS_FROM;
    core->session.useless |= core->suspicions >= USELESS_FROM;
}

static void suspect_nothing(struct zkl_core *core)
{
    core->suspects = 0;
    core->suspicions = 0;
    core->session.useless = false;
}

/* Whatever ended those before it: this one is used, and as old as a session's timeout. */
static bool lasts(const struct zkl_core *core)
{
    int64_t age_ns = core->now.boot_ns - core->session.proof.settled_boot;
    return age_ns >= zkl_session_timeout_ns(&core->session);
}

static void clear_suspect(struct zkl_core *core, const struct zkl_pending *slot)
{
    core->answered_kinds |= bit_of(slot);
    core->is_useful |= zkl_core_connected(core); /* not by keepalives before its use */
    if (core->suspects == 0)
        return;
    core->suspects &= ~bit_of(slot);
    if (core->suspects != 0 && !lasts(core))
        return;
    core->is_suspected = true; /* this link was of use */
    suspect_nothing(core);
}

void zkl_opcode_hung_up(struct zkl_core *core, struct zkl_pending *slot)
{
    enum zkl_opcode opcode = slot ? slot->opcode : ZKL_OPCODE_OTHER;
    suspect(core, slot);
    core->is_useful &= slot != NULL; /* what nobody awaits any more may be what ended it */
    if (core->is_blamed || !is_doubtful(core, opcode))
        return;
    core->is_blamed = true; /* those that were sent after it are not asked */
    slot->doubted |= 1u << opcode;
    if (++core->opcodes[opcode].hung_up >= HUNG_UP_MAX)
        learn(core, opcode);
}

static void try_once_more(struct zkl_core *core)
{
    for (int opcode = 0; opcode < ZKL_OPCODES; opcode++) {
        if (core->opcodes[opcode].unknown)
            core->opcodes[opcode].hung_up = HUNG_UP_MAX - 1;
        core->opcodes[opcode].unknown = false;
    }
}

void zkl_opcode_link_comes(struct zkl_core *core)
{
    if (core->is_useful && !core->is_suspected)
        suspect_nothing(core);
}

void zkl_opcode_link_up(struct zkl_core *core)
{
    core->is_blamed = core->is_suspected = core->is_useful = false;
    core->answered_kinds = 0;
    for (int opcode = 0; opcode < ZKL_OPCODES; opcode++)
        core->opcodes[opcode].answered = false;
    if (core->now.mono_ns - core->learned_mono_ns >= LEARNED_NS)
        try_once_more(core);
}

void zkl_opcode_carried_out(struct zkl_core *core, struct zkl_pending *slot)
{
    if (slot->doubted == 0)
        return;
    for (int opcode = 0; opcode < ZKL_OPCODES; opcode++) {
        if (slot->doubted & 1u << opcode)
            core->opcodes[opcode].hung_up = 0;
    }
    slot->doubted = 0;
    suspect_nothing(core); /* the link that lost its answer was of use */
}

bool zkl_opcode_answered(struct zkl_core *core, const struct zkl_pending *slot,
                         enum zkl_answer answer)
{
    enum zkl_opcode opcode = slot->opcode;
    bool known = answer != ZKL_ANSWER_UNIMPLEMENTED, has_other_way = !is_indispensable(opcode);
    core->opcodes[opcode].hung_up = 0;
    core->opcodes[opcode].answered |= known;
    core->opcodes[opcode].unknown &= answer != ZKL_ANSWER_OK;
    if (known)
        clear_suspect(core, slot);
    else if (!has_other_way)
        suspect(core, slot); /* the server hangs up behind that answer */
    if (!known && unknown_why[opcode])
        learn(core, opcode);
    return !known && has_other_way;
}

void zkl_opcode_session_ended(struct zkl_core *core)
{
    bool at_once = core->session.state == ZKL_SESSION_STARTING && core->session.pause_ns > 0;
    for (int opcode = 0; opcode < ZKL_OPCODES; opcode++) {
        core->opcodes[opcode].answered = false;
        if (at_once && core->opcodes[opcode].hung_up > 0)
            learn(core, opcode);
    }
}
