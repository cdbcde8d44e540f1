/* SPDX-License-Identifier: Apache-2.0
 * A place: a node in a queue, from the call that waits for it until the core is done with it. What
 * an owner has is a hold (owner.h), which points to a place; that of readers that share a node is
 * one place for many holds. */
#ifndef ZKL_API_PLACE_H
#define ZKL_API_PLACE_H

#include "client.h"

struct zkl_permit_request;
struct zkl_op;

#define ZKL_RETAIN_MAX_MS 3600000

/* Whether freed places and holds are kept for the next ones. Not under sanitizers, where each must
 * be a block of its own so that they see a use of an old one. */
#if defined(__SANITIZE_ADDRESS__)
#define ZKL_KEEPS_SPARES false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ZKL_KEEPS_SPARES false
#endif
#endif
#ifndef ZKL_KEEPS_SPARES
#define ZKL_KEEPS_SPARES true
#endif

enum zkl_place_phase { ZKL_PHASE_WAITING, ZKL_PHASE_GRANTED, ZKL_PHASE_FAILED, ZKL_PHASE_RELEASED };

#define ZKL_HOLD_EVENTS 8

/* A call that waits for places: a thread, which sleeps on the condition variable of one of them, or
 * an operation. Under the driver's mutex. All of its places point to it, until it ends. */
struct zkl_caller {
    struct zkl_place *sleeps_on;
    struct zkl_op *op;         /* NULL: a thread */
    struct zkl_cancel *cancel; /* NULL: none */
    bool canceled;             /* the operation was */
    bool alone;                /* it waits for one lock only */
};

struct zkl_place {
    struct zkl_contender contender; /* first: news come with a pointer to it */
    struct zkl_client *client;
    struct zkl_lock_path *lock_path;
    struct zkl_mutex *mutex;
    atomic_int refs; /* its hold or handle, the core, a queued note, a queued waker */

    /* under the driver's mutex */
    struct zkl_waker waker;
    struct zkl_caller *caller; /* NULL: nobody waits for it */
    enum zkl_place_phase phase;
    int code;
    int number; /* ZooKeeper's, if an answer of it decided */
    char detail[160];
    int reason;                /* why it is suspect or lost, by the last report */
    struct zkl_bundle *bundle; /* that it waits with, and is confirmed with; NULL: alone */
    struct zkl_place *wait_next, *wait_prev;
    /* of a multi-lock that is being released: its member, and the next place */
    size_t member;
    struct zkl_place *release_next;
    bool ended;         /* the core is done with it, or does not have it yet */
    bool has_lock_path; /* a reference of its own */
    /* the caller has it: from here on the library reports its states */
    bool returned;
    bool told_suspect;               /* SUSPECT was reported, so HELD is due */
    bool given_back;                 /* its release has begun */
    bool is_members;                 /* a permit that a multi-lock has; since before it began */
    struct zkl_lock_metrics *counts; /* where it counts, from the grant until its release */
    int64_t began_ns, got_ns;        /* the wait; got_ns 0: its time as a hold is over */

    /* of a mutex with a local queue: its place in that */
    struct zkl_local_waiter local_waiter;
    struct zkl_place *given; /* what it got there instead of its own, until its call returns */
    /* the request for permits that it is part of, while that is waited for */
    struct zkl_permit_request *request;
    /* if it is granted its node may become that of all readers of the handle */
    bool caches;
    struct zkl_place *downgrade_from; /* a read lock's: the owner's write lock; with a reference */

    /* written before the grant is returned, or atomic: for the owner without the mutex */
    uint64_t token;
    char node[ZKL_NODE_NAME_MAX + 1];
    atomic_bool lost, revoked, unchecked;
    atomic_llong lease_end_boot; /* 0: none */
    uint64_t reentries;          /* of the hold that has ended */

    /* the state callback, as it was when the wait began */
    zkl_hold_fn fn;
    void *fn_arg;
    struct zkl_note note;
    struct {
        int state, reason;
    } events[ZKL_HOLD_EVENTS];
    size_t event_count;

    size_t data_room;
    char data[]; /* of the node */
};

/* --- place.c ------------------------------------------------------------- */

/* under: the write lock of the same owner, of a read lock below it; or NULL. NULL: no memory. */
struct zkl_place *zkl_place_new(struct zkl_mutex *mutex, struct zkl_place *under);
void zkl_place_unref(struct zkl_place *place); /* without the mutex */
void zkl_place_put(struct zkl_place *place);   /* the same with it: once it is released */
/* The core's notifications: called through the port; with the mutex. */
void zkl_place_notification(struct zkl_port *port, struct zkl_contender *contender,
                            const struct zkl_notification *notification);
/* The caller receives it: from here on the library reports its states. A second call does
 * nothing. With the mutex. */
void zkl_place_returned(struct zkl_place *place);
/* Wake its caller, if there is one, once the mutex is released. */
void zkl_place_wake(struct zkl_place *place);
/* Free what zkl_driver_quiesce returned; without the mutex. */
void zkl_place_drop_notes(struct zkl_note *notes);
/* The thread ended; without the mutex. */
void zkl_place_orphaned(struct zkl_place *place);
/* The rest of the window. Without the mutex. */
int64_t zkl_place_window_ns(const struct zkl_place *place);
int64_t zkl_place_window_ms(const struct zkl_place *place);
/* Lost, or its lease has ended and no event has said so yet. Without the mutex. */
bool zkl_place_is_lost(const struct zkl_place *place);
/* 0, or what is known to be wrong with it by now: ZKL_ELOST; ZKL_EDOUBT: its window is empty.
 * Without the mutex. */
int zkl_place_doubt(const struct zkl_place *place);
/* enum zkl_hold_state, and why: LOST, SUSPECT or HELD. With the mutex. */
int zkl_place_state_now(const struct zkl_place *place, enum zkl_reason *reason);
/* It ends lease_ms from now; false: it is lost. With the mutex. */
bool zkl_place_lease(struct zkl_place *place, int64_t lease_ms);
/* 0 or ZKL_ELOST. Without the mutex. */
int zkl_place_renew(struct zkl_place *place, int64_t lease_ms);
/* Fails with ZKL_EFULL, and says by what. */
int zkl_place_fail_full(const struct zkl_place *place);

/* --- mutex.c ------------------------------------------------------------ */

/* For handles whose holds are the calling thread's or owner's. */
extern const struct zkl_mutex_kind zkl_own_mutex_kind;
/* The caller's options as this library knows them, defaults for NULL; 0 or EINVAL, said for call.
 * theirs: struct zkl_mutex_options *, struct zkl_lock_options *. */
int zkl_mutex_options_take(struct zkl_mutex_options *ours, const void *theirs, const char *call);
int zkl_lock_options_take(struct zkl_mutex_options *ours, const void *theirs, const char *call);
/* A kind of lock: the call that makes a handle, whose options it takes, and how a zeroed handle is
 * set up: 0 or why not, said for call. permits: of a semaphore. */
struct zkl_lock_maker {
    const char *call;
    size_t size;
    int (*take)(struct zkl_mutex_options *ours, const void *theirs, const char *call);
    int (*init)(void *handle, struct zkl_client *client, const char *path, int permits,
                const struct zkl_mutex_options *options, const char *call);
};
/* The body of the call that makes one. *handle is set if it returns 0. out: the caller's pointer,
 * which may be NULL. */
int zkl_lock_new(const struct zkl_lock_maker *maker, const void *out, struct zkl_client *client,
                 const char *path, int permits, const void *options, void **handle);
/* The body of the call that frees a handle, of these mutexes: from here on no thread uses them, and
 * none of their callbacks runs. Or the reason why not: ZKL_EBUSY, ZKL_EFORK, ZKL_EINCALLBACK. */
int zkl_lock_free(void *handle, struct zkl_mutex *const *mutexes, size_t count,
                  void (*fini)(void *handle), const char *call);
/* Set up a zeroed handle; 0 or why not, said for call. */
int zkl_mutex_init(struct zkl_mutex *mutex, struct zkl_client *client, const char *path,
                   const struct zkl_mutex_options *options, const char *call);
void zkl_mutex_fini(void *mutex);
/* Before any request of a thread, an operation, or a multi-lock: may the owner acquire this mutex?
 * 0: *own is to be entered once more; or it is NULL, and *other, if not NULL, is the write lock of
 * the same owner, below which this is the read lock. Or ZKL_EDEADLK, ZKL_ELOST, ZKL_EOVERFLOW. */
int zkl_mutex_check_owner(const struct zkl_mutex *mutex, struct zkl_hold **own,
                          struct zkl_hold **other);
/* grant may be NULL. 0 or EINVAL, said for call. */
int zkl_grant_check(const struct zkl_grant *grant, const char *call);
void zkl_grant_give(struct zkl_grant *grant, uint64_t token, int64_t window_ms, int64_t hold_count);
void zkl_mutex_fill_grant(struct zkl_grant *grant, const struct zkl_place *place, int hold_count);
/* Note the failure with what the place knows of it; the code. */
int zkl_place_fail_answer(const struct zkl_place *place, int rc, const char *path);
int zkl_mutex_fail_acquire(const struct zkl_place *place, int rc);
int zkl_mutex_fail_unlock(const struct zkl_place *place, int rc);
/* The last unlock, by a thread that waits for it: the code, noted. Drops the caller's reference. */
int zkl_lock_release(struct zkl_place *place);
/* The caller's wait as this library knows it, defaults for NULL; 0 or EINVAL, said for call. */
int zkl_wait_take(struct zkl_wait *ours, const struct zkl_wait *theirs, const char *call);
/* 0, or what is wrong with the wait, the client, or (blocks) the thread, said for call. */
int zkl_wait_check(const struct zkl_wait *wait, const struct zkl_client *client, const char *call,
                   bool blocks);
/* 0, or how the wait is over before it begins. */
int zkl_wait_check_over(const struct zkl_wait *wait, const char *path);

/* --- questions.c --------------------------------------------------------- */

/* Is that window enough? False too for a wrong need_ms, said for call. */
bool zkl_hold_still_held(int64_t window_ms, int64_t need_ms, const char *call);
/* What to say behind "not proved": why nothing can be here, or "". */
const char *zkl_hold_why_unproved(const struct zkl_client *client);

/* --- semaphore.c -------------------------------------------------------- */

/* Set up a zeroed handle; permits 0: the number that the path has. */
int zkl_semaphore_init(void *semaphore, struct zkl_client *client, const char *path, int permits,
                       const struct zkl_mutex_options *options, const char *call);
void zkl_semaphore_fini(void *semaphore);
/* 0, or the fault in the arguments of call, which acquires permits. */
int zkl_semaphore_check_acquire(struct zkl_semaphore *semaphore, int count,
                                const struct zkl_wait *wait, struct zkl_permit **permits,
                                const char *call, bool blocks);
/* 0, or ZKL_EINVAL: a caller cannot have this many at the same time. */
int zkl_semaphore_check_count(struct zkl_semaphore *semaphore, int count);

/* 0, or the reason why this call, which releases the permit, is illegal: ZKL_EINVAL, ZKL_EFORK. */
int zkl_permit_check_release(struct zkl_permit *permit, const char *call);

/* --- permit_request.c: a mutex handle whose hold is a permit -------------- */

/* Take the place of all threads' hold, with its reference, if it is only that one (NULL: any);
 * NULL: it is not. */
struct zkl_place *zkl_semaphore_take(struct zkl_mutex *mutex, const struct zkl_place *only);
/* The place of all threads' hold, with a reference; NULL: there is none. */
struct zkl_place *zkl_semaphore_find(struct zkl_mutex *mutex);
/* Before any request. 0, or ZKL_EBUSY: this is a try, and the handle has its one hold. */
int zkl_semaphore_check_handle(struct zkl_mutex *mutex, const struct zkl_wait *wait);

/* --- local_queue.c: threads that have one place in turn ------------------------- */

void zkl_local_queue_setup(struct zkl_mutex *mutex, const struct zkl_mutex_options *options);
/* The place that the handle keeps idle, for an owner; NULL: there is none that is surely good, or
 * taking it is not that simple. Without the mutex. */
struct zkl_place *zkl_local_queue_take_idle(struct zkl_mutex *mutex, const struct zkl_wait *wait);
/* The same for all of these. If one is not available this way, the idle ones are given up: a thread
 * that waits for one lock must not keep others that stand behind it. */
bool zkl_local_queue_take_all(struct zkl_mutex *const *mutexes, size_t count,
                              const struct zkl_wait *wait, struct zkl_place **places);
/* The result of the call: place, or another one instead, and place is freed. Without the mutex. */
struct zkl_place *zkl_place_exchange(struct zkl_place *place);
/* The rest with the mutex. Begin to wait for a turn. */
void zkl_place_join_local_queue(struct zkl_place *place,
                                const struct zkl_lock_request *lock_request, bool ahead);
/* The last unlock: true: the next owner has it, with a reference, or the handle. */
bool zkl_place_pass(struct zkl_place *place);
/* The place that the call got instead of this one does not belong to it any more. */
void zkl_place_put_given(struct zkl_place *place);
/* The handle ends. */
void zkl_local_queue_retire(struct zkl_mutex *mutex);

/* --- wait.c: the only place where a lock call blocks --------------------- */

/* From here on waits with that object end when it is set. 0, ZKL_ENOMEM, ZKL_ESYSTEM. With the
 * mutex. */
int zkl_cancel_use(struct zkl_client *client, struct zkl_cancel *cancel);
void zkl_cancel_unuse(struct zkl_client *client, struct zkl_cancel *cancel);

/* A part of an attempt (attempt.h): of one place; of a request for permits, or a bundle that is made
 * in one transaction, of all their places: place is the first one, whose request or bundle is
 * set. */
struct zkl_acquisition {
    struct zkl_place *place;
    struct zkl_bundle *bundle; /* or NULL */
    size_t count, culprit;     /* places; of a bundle: which one a failure is about, or count */
    struct zkl_caller *caller;
    struct zkl_wait wait;
    int64_t deadline;
    int64_t busy_at; /* a try stops waiting at this time for a node that may have no holder */
    enum { ZKL_ACQ_BEGINS, ZKL_ACQ_WAITS, ZKL_ACQ_CONFIRMS, ZKL_ACQ_ENDS } stage;
};
#define ZKL_GOES_ON 2 /* beside the codes: call again when woken, or then */

/* All with the mutex. */
void zkl_acquisition_begin(struct zkl_acquisition *a, struct zkl_place *place,
                           struct zkl_caller *caller, const struct zkl_wait *wait);
/* A code, or ZKL_GOES_ON with the latest time of the next step. */
int zkl_acquisition_step(struct zkl_acquisition *a, int64_t *next_ns);
/* With that code. The handle is in use still, ... */
void zkl_acquisition_end(struct zkl_acquisition *a, int rc);
/* ... until here, if nothing was acquired. */
void zkl_acquisition_settle(struct zkl_acquisition *a, int rc);
/* Its caller is canceled. */
void zkl_acquisition_cancel(struct zkl_acquisition *a);
/* Part of a multi-lock: a step has returned 0, or not yet, and another part was lost: it is given
 * up, and its next step begins anew. */
void zkl_acquisition_back_out(struct zkl_acquisition *a);
/* After a step has returned 0, while others are waited for. */
bool zkl_acquisition_is_lost(const struct zkl_acquisition *a);
/* All of them are held, and the window is proved: 0, ZKL_EACCES, or ZKL_ELOST. */
int zkl_acquisition_confirm(struct zkl_acquisition *a, int64_t lease_ms);

/* Its contender starts: the core gets its reference, until ENDED. With the mutex. */
void zkl_place_begin(struct zkl_place *place);
/* When a call with this wait is over; of a try: how long it waits for a lost link. With the
 * mutex. */
int64_t zkl_wait_bound(const struct zkl_client *client, const struct zkl_wait *wait);
/* Wait until it is woken, or until then. With the mutex. */
void zkl_place_wait(struct zkl_place *place, int64_t until_ns);
int zkl_place_release(struct zkl_place *place);
/* The same without waiting: it is left to the janitor. */
void zkl_place_let_go(struct zkl_place *place);
/* Only the beginning, with the mutex: RELEASED follows, or came. False: neither, as it is the next
 * owner's already, or stays. */
bool zkl_place_begin_release(struct zkl_place *place);

/* Several places that are released together, each with its owner's reference. All calls but add
 * need the mutex. */
struct zkl_release {
    struct zkl_place *first; /* the first of those to wait for */
    struct zkl_caller caller;
};
/* The transaction deletes the place that was added last first. */
void zkl_release_add(struct zkl_release *r, struct zkl_place *place, size_t member);
/* In one transaction. Holds that are handed on are not in it any more. op: is woken when one has
 * ended; NULL: the thread that waits for the first one is. */
void zkl_release_begin(struct zkl_release *r, struct zkl_op *op);
bool zkl_release_is_over(const struct zkl_release *r);
/* Each has its code from here on, and still its reference. */
void zkl_release_end(struct zkl_release *r);

#endif
