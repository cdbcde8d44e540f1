/* SPDX-License-Identifier: Apache-2.0
 * A hold: what a thread has from its first lock call to its last unlock, and the wait before it. */
#ifndef ZKL_API_HOLD_H
#define ZKL_API_HOLD_H

#include "client.h"

enum zkl_hold_phase { ZKL_PHASE_WAITING, ZKL_PHASE_GRANTED, ZKL_PHASE_FAILED, ZKL_PHASE_RELEASED };

#define ZKL_HOLD_EVENTS 8

struct zkl_hold {
    struct zkl_contender contender; /* first: news come with a pointer to it */
    struct zkl_client *client;
    struct zkl_root *root;
    struct zkl_mutex *mutex;
    atomic_int refs; /* its thread, the core, a queued note, a queued waker */

    /* under the driver's mutex */
    struct zkl_waker waker;
    enum zkl_hold_phase phase;
    int code;
    int number; /* ZooKeeper's, if an answer of it decided */
    char detail[160];
    struct zkl_cancel *cancel;
    struct zkl_hold *wait_next, *wait_prev;
    bool ended;    /* the core is done with it */
    bool returned; /* the caller has it: from here on its states are told */

    /* written before the grant is returned, or atomic: for the owner without the mutex */
    uint64_t token;
    char node[ZKL_NODE_NAME_MAX + 1];
    atomic_bool lost;
    int count;             /* the owner's */
    struct zkl_hold *next; /* in the owner's map */

    /* the state callback, as it was when the wait began */
    zkl_hold_fn fn;
    void *fn_arg;
    struct zkl_note note;
    struct {
        int state, reason;
    } events[ZKL_HOLD_EVENTS];
    size_t event_count;

    char data[]; /* of the node */
};

/* --- owner.c: the calling thread's holds -------------------------------- */

struct zkl_hold *zkl_owner_find(const struct zkl_root *root);
/* 0 or ZKL_ESYSTEM; before anything is asked of the server. */
int zkl_owner_prepare(void);
void zkl_owner_add(struct zkl_hold *hold);
void zkl_owner_remove(struct zkl_hold *hold);

/* --- hold.c ------------------------------------------------------------- */

struct zkl_hold *zkl_hold_new(struct zkl_mutex *mutex);
void zkl_hold_unref(struct zkl_hold *hold); /* without the mutex */
/* What the core says; with the mutex. */
void zkl_hold_news(void *client, struct zkl_contender *contender, const struct zkl_news *news);
/* The caller gets it: from here on its states are told. With the mutex. */
void zkl_hold_returned(struct zkl_hold *hold);
/* Wake its thread once the mutex is given back. */
void zkl_hold_wake(struct zkl_hold *hold);
/* What zkl_driver_quiesce returned; without the mutex. */
void zkl_hold_drop_notes(struct zkl_note *notes);
/* The thread ended; without the mutex. */
void zkl_hold_orphaned(struct zkl_hold *hold);
/* Milliseconds of the window left. Without the mutex. */
int64_t zkl_hold_window_ms(const struct zkl_hold *hold);

/* --- wait.c: the only place that blocks --------------------------------- */

int zkl_hold_acquire(struct zkl_hold *hold, const struct zkl_wait *wait);
int zkl_hold_release(struct zkl_hold *hold);

#endif
