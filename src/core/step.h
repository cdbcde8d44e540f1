/* SPDX-License-Identifier: Apache-2.0
 * One step of a contender: what its parts share. Each file calls only those above it here. */
#ifndef ZKL_CORE_STEP_H
#define ZKL_CORE_STEP_H

#include "core.h"

struct zkl_step;

/* What a kind of lock does in its own way while it asks for a place and waits; NULL: nothing. A row
 * of kind.c. */
struct zkl_kind {
    /* Its owner holds the lock already: it is granted as soon as its node is made, with that hold's
     * token, and ends with that hold's session. */
    bool within_hold;
    void (*before_list)(struct zkl_step *s); /* before the step asks for a list */
    /* true: the event was for this kind, and is dealt with */
    bool (*own_event)(struct zkl_step *s);
    /* a try's list, before it has a node: is another contender in the way? */
    void (*on_first_look)(struct zkl_step *s);
    void (*on_list)(struct zkl_step *s);    /* with its node: grant, wait or start over */
    void (*in_waiting)(struct zkl_step *s); /* each event of that state */
};

struct zkl_step {
    const struct zkl_core *core; /* for the time and the session */
    struct zkl_contender_machine *m;
    const struct zkl_kind *kind;
    const struct zkl_event *ev;
    struct zkl_actions *out;
};

/* --- step.c ------------------------------------------------------------- */

/* The only place that assigns a state. */
void zkl_step_move(struct zkl_step *s, enum zkl_contender_state to, const char *why);
struct zkl_action *zkl_step_emit(struct zkl_step *s, enum zkl_action_type type);
void zkl_step_emit_code(struct zkl_step *s, enum zkl_action_type type, int code,
                        const char *detail);
void zkl_step_emit_reason(struct zkl_step *s, enum zkl_action_type type, int state, int reason);
bool zkl_step_window_open(const struct zkl_step *s);
/* Proved well enough for a grant. */
bool zkl_step_window_fresh(const struct zkl_step *s);
/* True if the answer leaves open whether the request was carried out. */
bool zkl_step_outcome_unknown(enum zkl_answer answer);
static inline bool zkl_step_own_event(struct zkl_step *s)
{
    return s->kind->own_event && s->kind->own_event(s);
}
/* name NULL: the one that was asked for, under the write node. */
void zkl_step_know_node(struct zkl_step *s, const char *name, int64_t czxid);
/* The list of this event, seen from the place of own (NULL: from the end of the queue). */
struct zkl_look zkl_step_look(const struct zkl_step *s, const char *own);
/* Our node in the list of this event, by its GUID; NULL: it is not there. */
const char *zkl_step_find_own(const struct zkl_step *s);
/* A create has no answer that says what became of it. */
void zkl_step_lose_create(struct zkl_step *s);
/* Our node is not there, and is not looked for any more. */
void zkl_step_give_up_create(struct zkl_step *s);
void zkl_step_forget_list(struct zkl_step *s);

/* --- leaving.c ---------------------------------------------------------- */

/* There is nothing left to do about the node: it is deleted, or stays whatever we do. After any
 * other answer a later try may succeed. */
bool zkl_step_is_deleted(enum zkl_answer answer);
void zkl_step_send_delete(struct zkl_step *s);
void zkl_step_look_for_leftover(struct zkl_step *s);
/* Nothing is left. */
void zkl_step_end(struct zkl_step *s, const char *why);
/* The owner has its answer; what may be on the server is the janitor's from here on. */
void zkl_step_leave(struct zkl_step *s, const char *why);
/* Notify the owner that there will be no grant, and leave. */
void zkl_step_fail(struct zkl_step *s, int code, const char *detail, const char *why);
void zkl_step_fail_denied(struct zkl_step *s, const char *detail);
/* An answer that nothing else accounts for. */
void zkl_step_fail_odd(struct zkl_step *s, const char *what);
void zkl_in_leaving(struct zkl_step *s);

/* --- holding.c ---------------------------------------------------------- */

void zkl_in_holding(struct zkl_step *s);
void zkl_in_losthold(struct zkl_step *s);
void zkl_in_releasing(struct zkl_step *s);

/* --- lock_request.c ----------------------------------------------------- */

/* Ask for the semaphore's number. */
void zkl_step_get_limit(struct zkl_step *s);
/* The same unless it is known. */
void zkl_step_need_limit(struct zkl_step *s);
/* Ask for a new place at the end of the queue. */
void zkl_step_enqueue(struct zkl_step *s, const char *why);
/* Our node vanished while we wanted it: drop the watches, and start over with a new GUID. */
void zkl_step_requeue(struct zkl_step *s, const char *why);
void zkl_step_begin(struct zkl_step *s, const char *why);
/* Every contender may get our number. */
void zkl_step_exhaust(struct zkl_step *s, const char *why);
void zkl_step_look_at_lock_path(struct zkl_step *s);
/* It is ours; the session is proved. */
void zkl_step_hold(struct zkl_step *s, const char *why);
/* It is ours, if the session is. */
void zkl_step_grant(struct zkl_step *s, const char *why);
/* A list, and then the predicate. */
void zkl_step_list_again(struct zkl_step *s, const char *why);
/* A list was asked for, and none came. */
void zkl_step_on_unlisted(struct zkl_step *s);
/* How every state that wants the lock handles an event that it does not treat itself. */
void zkl_step_common_lock_request(struct zkl_step *s);

/* --- permit_limit.c ----------------------------------------------------- */

/* True: the event was about the number and is done with. */
bool zkl_step_limit(struct zkl_step *s);
/* A try's look at this list. */
void zkl_step_look_for_room(struct zkl_step *s);
/* The predicate. */
void zkl_step_decide_permit(struct zkl_step *s);
void zkl_in_waiting_for_permit(struct zkl_step *s);

/* --- exhausted.c -------------------------------------------------------- */

void zkl_in_exhausted(struct zkl_step *s);

/* --- queueing.c --------------------------------------------------------- */

void zkl_in_parked(struct zkl_step *s);
void zkl_in_looking(struct zkl_step *s);
void zkl_in_making(struct zkl_step *s);
void zkl_in_queueing(struct zkl_step *s);
void zkl_in_recovering(struct zkl_step *s);
void zkl_in_listing(struct zkl_step *s);
void zkl_in_waiting(struct zkl_step *s);
void zkl_step_look_for_others(struct zkl_step *s);
void zkl_step_decide_place(struct zkl_step *s);
void zkl_in_confirming(struct zkl_step *s);

/* --- kind.c ------------------------------------------------------------- */

const struct zkl_kind *zkl_kind_of(const struct zkl_contender_machine *m);

#endif
