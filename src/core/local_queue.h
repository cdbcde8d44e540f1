/* SPDX-License-Identifier: Apache-2.0
 * The local queue of a mutex handle with local_handoffs_max or retain_ms: its owners take turns on
 * one node. The contender knows nothing of them, and stays HOLDING. What moves from one owner to
 * the next is the hold, with its contender (the same node and token) and its flags, out of one
 * owner's map into another's. So neither handing on nor taking needs memory. Each call below is
 * one transition that decides. The owner that is next is woken, alone, after the client's mutex
 * was given back.
 *
 * An unlock decides in this order:
 * 1. An owner waits, and the hold may stay (HOLDING, not suspect, not revoked, no lease, a fresh
 *    window): the one that has waited longest gets it.
 * 2. No owner waits, the hold may stay, the handle retains, and the node is not contended: it
 *    stays on the server without a holder.
 * 3. Otherwise the node is deleted, and the next owner's create is sent behind the delete.
 *
 * The rest is decided when an event is over. What is IDLE and may not stay any more, or is
 * contended, is given up. An owner that waited for a hold that is lost, or for a contender that
 * failed, queues immediately. So no thread has to wake up for any of it.
 *
 * Which others queue. A lock that was waited for is contended from the start: the others will be
 * back, most likely, and a hand-off to them is as quick as without all this. Otherwise a list of
 * the path with a child watch shows it. It is asked for once for a node, when that is kept for the
 * first time or was handed on handoffs_max times in a row, and again after each reconnect. Another
 * contender in the list, or the watch's event whatever it means, marks the node contended for
 * good: an idle one is deleted immediately, another one with the next unlock, or after that number
 * of hand-offs. A path that can't be listed counts as contended.
 *
 * When the link breaks, an idle node is given up rather than kept until the link is back. A brief
 * outage then costs one create, and there is no node for which no party can say whether others
 * wait for it.
 *
 * The mark. A try has to know that a node may be idle. The node's name says so, in the version
 * digit of its GUID (zkl_guid_mark_retained), and not its data: the list that the try reads anyway
 * shows it. So a busy lock still costs one read, also for users without retained mutexes. */
#ifndef ZKL_CORE_LOCAL_QUEUE_H
#define ZKL_CORE_LOCAL_QUEUE_H

#include "core.h"

enum zkl_local_queue_state {
    ZKL_LOCAL_QUEUE_FREE,   /* none of ours has it */
    ZKL_LOCAL_QUEUE_QUEUED, /* likewise, but one or more queue for it */
    ZKL_LOCAL_QUEUE_TAKEN,
    ZKL_LOCAL_QUEUE_IDLE, /* its node exists, without a holder */
    ZKL_LOCAL_QUEUE_STATES
};

/* An owner that wants it; the caller's memory, and with all it points to unchanged until it is
 * answered. */
struct zkl_local_waiter {
    struct zkl_contender *contender; /* to queue with, if it is not handed another one */
    struct zkl_lock_request lock_request;

    /* The core's. */

    /* another owner's hold, which belongs to this one from here on; or NULL */
    struct zkl_contender *given;
    bool waits; /* for that, or for its turn to queue */
    struct zkl_local_waiter *next, *prev;
};

struct zkl_local_queue {
    struct zkl_due due; /* first, see due.h */

    /* The handle's. */

    /* so often in a row while others queue; 0: each owner queues by itself */
    unsigned handoffs_max;
    int64_t retain_ns; /* 0: the last unlock deletes the node */

    /* The handle's, too; none of them may call the core. */

    /* its contender begins now */
    void (*queues)(struct zkl_local_queue *local_queue, struct zkl_local_waiter *local_waiter);
    /* it has the hold in its given */
    void (*given)(struct zkl_local_queue *local_queue, struct zkl_local_waiter *local_waiter);
    /* the core gives the idle one up: the handle has it no more */
    void (*dropped)(struct zkl_local_queue *local_queue, struct zkl_contender *contender);

    /* The core's. */
    enum zkl_local_queue_state state;
    struct zkl_contender *holder;          /* TAKEN, IDLE */
    struct zkl_local_waiter *first, *last; /* the waiters, in their order */
    size_t queueing;                       /* how many queue */
    unsigned handoffs;                     /* how many there were in a row */
    int64_t idle_until;                    /* CLOCK_MONOTONIC */
    struct zkl_local_queue *next_timed;
    bool timed;
};

enum zkl_local_queue_answer {
    ZKL_LOCAL_QUEUE_QUEUES, /* its contender does: news come */
    ZKL_LOCAL_QUEUE_WAITS,
    ZKL_LOCAL_QUEUE_GIVEN, /* the idle one */
    ZKL_LOCAL_QUEUE_BUSY   /* a try: some other owner of this handle has it, or is before it */
};

/* An owner joins; ahead: before all who wait, as it has just lost what it was given. */
enum zkl_local_queue_answer zkl_local_queue_join(struct zkl_core *core, struct zkl_time now,
                                                 struct zkl_local_queue *local_queue,
                                                 struct zkl_local_waiter *local_waiter, bool ahead);
/* It gives up while it waits. (A queueing contender is stopped as any other.) */
void zkl_local_queue_leave(struct zkl_local_queue *local_queue,
                           struct zkl_local_waiter *local_waiter);
/* The idle one, without a request; NULL: there is none. */
struct zkl_contender *zkl_local_queue_take(struct zkl_core *core,
                                           struct zkl_local_queue *local_queue);
/* The owner's last unlock. True: the contender is the next owner's already, or stays. False: the
 * caller must release it, by the very next call into the core, or after others were passed: the
 * waiters then queue behind that. */
bool zkl_local_queue_pass(struct zkl_core *core, struct zkl_time now,
                          struct zkl_local_queue *local_queue, struct zkl_contender *contender);
/* c, which will be released next, must not become another owner's: from now on the others do not
 * depend on it. */
void zkl_local_queue_part(struct zkl_core *core, struct zkl_time now,
                          struct zkl_local_queue *local_queue, struct zkl_contender *c);
/* Give up the idle one, if there is one. */
void zkl_local_queue_drop(struct zkl_core *core, struct zkl_time now,
                          struct zkl_local_queue *local_queue);
/* The handle ends: no owner waits, and none has it. */
void zkl_local_queue_fini(struct zkl_core *core, struct zkl_time now,
                          struct zkl_local_queue *local_queue);

const char *zkl_local_queue_state_name(enum zkl_local_queue_state state);
bool zkl_local_queue_may_move(enum zkl_local_queue_state from, enum zkl_local_queue_state to);

/* --- the steps of these, for core.c, which settles after them ------------- */

/* The session is proved well enough for a grant. */
bool zkl_local_queue_is_fresh(const struct zkl_core *core);
/* True: there was an idle one. */
bool zkl_local_queue_give_up(struct zkl_core *core, struct zkl_local_queue *local_queue);
/* As zkl_local_queue_join. */
enum zkl_local_queue_answer zkl_local_queue_begin(struct zkl_core *core,
                                                  struct zkl_local_queue *local_queue,
                                                  struct zkl_local_waiter *local_waiter,
                                                  bool ahead);
/* Before it is handed on: ask now whether other clients queue, if that must be known. */
bool zkl_local_queue_look(struct zkl_core *core, struct zkl_local_queue *local_queue,
                          struct zkl_contender *c);
/* False: no owner waits for it, or the next one cannot have it. */
bool zkl_local_queue_hand_on(struct zkl_core *core, struct zkl_local_queue *local_queue,
                             struct zkl_contender *c);
/* False: it is not kept. */
bool zkl_local_queue_keep(struct zkl_core *core, struct zkl_local_queue *local_queue,
                          struct zkl_contender *c);
void zkl_local_queue_forget(struct zkl_core *core, struct zkl_local_queue *local_queue);
/* News of a contender that has one. */
void zkl_local_queue_notification(struct zkl_core *core, struct zkl_contender *c,
                                  const struct zkl_notification *notification);
/* The fate of its node does not concern the others any more. */
void zkl_local_queue_forget_holder(struct zkl_core *core, struct zkl_local_queue *local_queue,
                                   const char *why);
/* When the event is over: decide. due: the local queue's. */
void zkl_local_queue_settle(struct zkl_core *core, struct zkl_due *due);
/* core->local_queues_mono_ns has come. */
void zkl_local_queue_timer(struct zkl_core *core);

#endif
