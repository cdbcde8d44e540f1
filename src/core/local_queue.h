/* SPDX-License-Identifier: Apache-2.0
 * The owners of one handle take turns on one node. An unlock hands it on to the owner that has
 * waited longest in this process, or leaves it on the server without a holder. From there an owner
 * can take it again, or the handle gives it up when another client queues for it. The hold moves
 * from one owner to the next with its contender: the same node and token. Each call below is one
 * transition that decides. */
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
    /* None of these three may call the core. The first: its contender begins now. */
    void (*queues)(struct zkl_local_queue *local_queue, struct zkl_local_waiter *local_waiter);
    void (*given)(struct zkl_local_queue *local_queue, struct zkl_local_waiter *local_waiter);
    /* The core gives the idle one up: the handle has it no more. */
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
 * caller must release it, by the very next call into the core: the waiters then queue behind
 * that. */
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
/* As zkl_local_queue_join; true of this one: the idle one was given up. */
bool zkl_local_queue_give_up(struct zkl_core *core, struct zkl_local_queue *local_queue);
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
void zkl_local_queue_settle(struct zkl_core *core, struct zkl_local_queue *local_queue);
/* core->local_queues_mono_ns has come. */
void zkl_local_queue_timer(struct zkl_core *core);

#endif
