/* SPDX-License-Identifier: Apache-2.0
 *
 * One acquisition in steps: begun, decided by its hold's notifications, proved, canceled or timed
 * out, backed out. A thread takes the steps in a loop, here; operations and multi-locks take them
 * one by one. This is the only file in which a lock call blocks a thread. The steps run with the
 * client's mutex. A thread that blocks sleeps on its hold's condition variable, or, with a cancel
 * object, on descriptors. */
#include <stdio.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "permit_request.h"
#include "core/bundle.h"
#include "counts.h"
#include "driver/clock.h"
#include "error.h"
#include "hold.h"
#include "op.h"
#include "seat.h"
#include "awaited_query.h"

#define MS INT64_C(1000000)
#define RETAINED_MS 200 /* how long a try waits for the release of a node that may have no holder */
#define LOOK_MS 100
#define LAPSED_MS 2 /* a lease of which no more is left is over */

/* --- cancel objects ----------------------------------------------------- */

static void leave_turn(struct zkl_hold *hold, int code)
{
    zkl_local_queue_leave(&hold->mutex->local_queue, &hold->local_waiter);
    hold->phase = ZKL_PHASE_FAILED;
    hold->code = code;
}

static void stop(struct zkl_hold *hold, struct zkl_time now, int code)
{
    struct zkl_core *core = &hold->client->driver->core;
    if (hold->bundle && hold->phase == ZKL_PHASE_WAITING)
        zkl_bundle_stop(core, now, hold->bundle, code);
    else if (hold->request)
        zkl_bundle_stop(core, now, &hold->request->bundle, code);
    else if (hold->local_waiter.waits)
        leave_turn(hold, code);
    else if (hold->phase == ZKL_PHASE_WAITING)
        zkl_core_stop(core, now, &hold->contender, code);
}

static void stop_canceled(struct zkl_client *client, const struct zkl_cancel *cancel)
{
    struct zkl_hold *next;
    for (struct zkl_hold *hold = client->waiting; hold; hold = next) {
        next = hold->wait_next;
        if (hold->cancel != cancel)
            continue;
        stop(hold, zkl_clock_now(), ZKL_ECANCELED);
        zkl_hold_wake(hold);
    }
    zkl_query_wait_wake_canceled(client, cancel);
}

static void on_canceled(void *arg, struct zkl_fd_watch *watch)
{
    struct zkl_cancel_use *use =
        (struct zkl_cancel_use *)((char *)watch - offsetof(struct zkl_cancel_use, watch));
    if (zkl_cancel_is_set(use->cancel)) /* and not just its descriptor, by a forked child */
        stop_canceled(arg, use->cancel);
}

int zkl_cancel_use(struct zkl_client *client, struct zkl_cancel *cancel)
{
    struct zkl_cancel_use *use = client->cancels;
    while (use && use->cancel != cancel)
        use = use->next;
    if (use) {
        use->users++;
        return 0;
    }
    use = calloc(1, sizeof *use);
    if (!use)
        return ZKL_ENOMEM;
    use->cancel = zkl_cancel_ref(cancel);
    use->users = 1;
    use->watch.fd = cancel->fd;
    use->watch.readable = on_canceled;
    int rc = zkl_driver_watch_fd(client->driver, &use->watch);
    if (rc != 0) {
        zkl_cancel_free(cancel);
        free(use);
        return rc;
    }
    use->next = client->cancels;
    client->cancels = use;
    return 0;
}

void zkl_cancel_unuse(struct zkl_client *client, struct zkl_cancel *cancel)
{
    struct zkl_cancel_use **at = &client->cancels;
    while ((*at)->cancel != cancel)
        at = &(*at)->next;
    struct zkl_cancel_use *use = *at;
    if (--use->users > 0)
        return;
    *at = use->next;
    zkl_driver_unwatch_fd(client->driver, &use->watch);
    zkl_cancel_free(use->cancel);
    free(use);
}

/* --- acquire ------------------------------------------------------------ */

/* A thread waits for one hold, or for all those of one request for permits or of one bundle, by the
 * first. */
static size_t hold_count(const struct zkl_hold *hold)
{
    if (hold->request)
        return hold->request->count;
    return hold->bundle ? hold->bundle->count : 1;
}

/* For a hold that waited for its turn: the hold that it received. */
static struct zkl_hold *hold_at(struct zkl_hold *hold, size_t i)
{
    if (hold->request)
        return zkl_permit_request_hold(hold->request, i);
    if (hold->bundle)
        return (struct zkl_hold *)hold->bundle->members[i].contender;
    return hold->given ? hold->given : hold;
}

static bool any_lost(struct zkl_hold *hold)
{
    for (size_t i = 0, n = hold_count(hold); i < n; i++) {
        if (zkl_hold_is_lost(hold_at(hold, i)))
            return true;
    }
    return false;
}

/* A try has no deadline of the caller's choice: it waits this long for a lost link, ... */
static int64_t bounded_deadline(const struct zkl_driver *d, const struct zkl_wait *wait,
                                int64_t now_ns)
{
    int64_t bound = now_ns + d->core.session.timeout_ms * MS;
    bool is_bounded = (wait->flags & ZKL_WAIT_TRY) && bound < wait->deadline_ns;
    return is_bounded ? bound : wait->deadline_ns;
}

int64_t zkl_wait_bound(const struct zkl_client *client, const struct zkl_wait *wait)
{
    return bounded_deadline(client->driver, wait, zkl_clock_mono_ns());
}

/* ... and running out of time then means that no server answered. */
static int out_of_time(int rc, const struct zkl_wait *wait, int64_t deadline)
{
    return rc == ZKL_ETIMEDOUT && deadline != wait->deadline_ns ? ZKL_EDISCONNECTED : rc;
}

/* The hold's reference, given up with it. */
static void take_lock_path(struct zkl_hold *hold)
{
    hold->lock_path->refs++;
    hold->has_lock_path = true;
}

static void enter_list(struct zkl_hold *hold, struct zkl_cancel *cancel)
{
    struct zkl_client *client = hold->client;
    hold->cancel = cancel;
    hold->wait_prev = NULL;
    hold->wait_next = client->waiting;
    if (hold->wait_next)
        hold->wait_next->wait_prev = hold;
    client->waiting = hold;
}

static void leave_list(struct zkl_hold *hold)
{
    if (hold->wait_prev)
        hold->wait_prev->wait_next = hold->wait_next;
    else
        hold->client->waiting = hold->wait_next;
    if (hold->wait_next)
        hold->wait_next->wait_prev = hold->wait_prev;
}

/* The holds of a request for permits belong to one handle, which counts one use until the grant. */
static void enter_wait(struct zkl_hold *hold, struct zkl_cancel *cancel, int64_t now_ns)
{
    for (size_t i = 0, n = hold_count(hold); i < n; i++) {
        struct zkl_hold *got = hold_at(hold, i);
        got->fn = got->mutex->fn;
        got->fn_arg = got->mutex->fn_arg;
        got->began_ns = now_ns;
        got->phase = ZKL_PHASE_RELEASED; /* it has not begun */
        if (i > 0 && !hold->bundle)
            continue;
        got->mutex->uses++;
        if (!zkl_roles[got->mutex->naming.role].beside)
            zkl_cached_close(got->mutex); /* a writer must not wait for its own handle's readers */
        enter_list(got, i == 0 ? cancel : NULL);
    }
}

static void leave_wait(struct zkl_hold *hold)
{
    for (size_t i = 0; i < (hold->bundle ? hold->bundle->count : 1); i++)
        leave_list(hold->bundle ? hold_at(hold, i) : hold);
    if (hold->cancel)
        zkl_cancel_unuse(hold->client, hold->cancel);
}

static struct zkl_lock_request lock_request_of(const struct zkl_hold *hold,
                                               const struct zkl_wait *wait)
{
    return (struct zkl_lock_request){
        .path = &hold->lock_path->core,
        .data = hold->data,
        .naming = hold->mutex->naming,
        .try_only = (wait->flags & ZKL_WAIT_TRY) != 0,
        .try_sync = (wait->flags & ZKL_WAIT_SYNC) != 0,
        .watch_own = hold->fn != NULL || hold->mutex->revocable,
        .retained = hold->mutex->local_queue.retain_ns > 0 || hold->caches,
        .posted = hold->mutex->posted_unlock,
        .lease_ns = wait->lease_ms * MS,
        .downgrade_from = hold->downgrade_from ? &hold->downgrade_from->contender : NULL};
}

/* The record of the path, for contenders that wait for every other one there. */
static bool is_unlisted(const struct zkl_hold *hold)
{
    const struct zkl_naming *naming = &hold->mutex->naming;
    return zkl_roles[naming->role].mutual && naming->names != ZKL_NAMES_NAMED;
}

/* An idle node of the handle is given up, and not waited for: a thread that waits for one lock must
 * not keep another one. */
static void prepare_member(const struct zkl_acquisition *a, struct zkl_bundle_member *member)
{
    struct zkl_hold *hold = (struct zkl_hold *)member->contender;
    if (hold->mutex->has_local_queue)
        zkl_local_queue_drop(&hold->client->driver->core, zkl_clock_now(),
                             &hold->mutex->local_queue);
    hold->phase = ZKL_PHASE_WAITING;
    zkl_hold_begin(hold);
    member->lock_request = lock_request_of(hold, &a->wait);
    member->lock_request.views = true;
    member->lock_request.unlisted = is_unlisted(hold);
    member->lock_request.lease_ns = 0; /* it begins when all are held */
}

static void start_bundle(const struct zkl_acquisition *a)
{
    struct zkl_bundle *bundle = a->hold->bundle;
    for (size_t i = 0; i < bundle->count; i++)
        prepare_member(a, &bundle->members[i]);
    bundle->lease_ns = a->wait.lease_ms * MS;
    zkl_bundle_acquire(&a->hold->client->driver->core, zkl_clock_now(), bundle);
}

static void start_one(struct zkl_acquisition *a)
{
    struct zkl_hold *hold = a->hold;
    hold->caches = hold->may_cache && zkl_cached_wants(hold, &a->wait);
    struct zkl_lock_request lock_request = lock_request_of(hold, &a->wait);
    lock_request.try_behind_retained = true;
    lock_request.views = true;
    lock_request.unlisted = is_unlisted(hold);
    hold->phase = ZKL_PHASE_WAITING;
    if (lock_request.try_only)
        a->busy_at = zkl_clock_mono_ns() + RETAINED_MS * MS;
    if (hold->mutex->has_local_queue) {
        zkl_hold_join_local_queue(hold, &lock_request, a->stage == ZKL_ACQ_ENDS);
        return;
    }
    zkl_hold_begin(hold);
    zkl_core_acquire(&hold->client->driver->core, zkl_clock_now(), &hold->contender, &lock_request);
}

static void start(struct zkl_acquisition *a)
{
    if (a->hold->bundle)
        start_bundle(a);
    else if (a->hold->request)
        zkl_permit_request_begin(a->hold->request, &a->wait);
    else
        start_one(a);
}

/* A try that asked for a node without a holder has waited long enough for it. */
static bool is_busy(const struct zkl_acquisition *a, int64_t now_ns)
{
    const struct zkl_hold *hold = a->hold;
    return hold->request
               ? zkl_permit_request_is_busy(hold->request, now_ns)
               : now_ns >= a->busy_at && zkl_contender_awaits_retained(&hold->contender.machine);
}

static int64_t next_look(const struct zkl_acquisition *a, int64_t now_ns)
{
    int64_t at = a->deadline;
    if (a->hold->request)
        at = zkl_permit_request_next_look(a->hold->request, now_ns);
    else if (a->hold->contender.machine.lock_request.try_only)
        at = now_ns < a->busy_at ? a->busy_at : now_ns + LOOK_MS * MS;
    return at < a->deadline ? at : a->deadline;
}

/* Grant or failure, whichever the core decides first; the deadline is one of its events. True: it
 * has. */
static bool is_decided(struct zkl_acquisition *a, int64_t *next_ns)
{
    struct zkl_hold *hold = a->hold;
    while (hold->phase == ZKL_PHASE_WAITING) {
        struct zkl_time now = zkl_clock_now();
        if (now.mono_ns >= a->deadline) {
            stop(hold, now, ZKL_ETIMEDOUT);
        } else if (is_busy(a, now.mono_ns)) {
            stop(hold, now, ZKL_EBUSY);
        } else {
            *next_ns = next_look(a, now.mono_ns);
            return false;
        }
    }
    return true;
}

static bool is_canceled(const struct zkl_hold *hold)
{
    return hold->canceled || zkl_cancel_is_set(hold->cancel);
}

enum proof { PROVED, NOT_PROVED, WAITS_FOR_PROOF };

/* The server does not let this client check one of its nodes: there would be no window. */
static bool any_unchecked(struct zkl_hold *hold)
{
    for (size_t i = 0, n = hold_count(hold); i < n; i++) {
        if (hold_at(hold, i)->contender.machine.unchecked)
            return true;
    }
    return false;
}

/* The lease was so short, or the caller got the processor so late, that too little of the lease is
 * left for a grant. */
static bool is_lapsed(struct zkl_hold *hold)
{
    int64_t soon = zkl_clock_boot_ns() + LAPSED_MS * MS;
    for (size_t i = 0, n = hold_count(hold); i < n; i++) {
        int64_t lease = hold_at(hold, i)->contender.machine.lease_end_boot;
        if (lease != 0 && lease <= soon)
            return true;
    }
    return false;
}

/* Whoever waits may get the processor long after the grant: what he gets must be proved now. */
static enum proof look_at_window(struct zkl_hold *hold, int64_t deadline, int64_t *next_ns)
{
    struct zkl_driver *d = hold->client->driver;
    struct zkl_time now = zkl_clock_now();
    if (any_lost(hold) || any_unchecked(hold) || is_lapsed(hold))
        return NOT_PROVED;
    /* Where nothing can be proved, waiting for it is of no use. */
    if (d->core.session.unprovable || now.boot_ns + MS < zkl_session_window_end(&d->core.session)) {
        for (size_t i = 0, n = hold_count(hold); i < n; i++)
            hold_at(hold, i)->got_ns = now.mono_ns;
        return PROVED;
    }
    if (now.mono_ns >= deadline || is_canceled(hold))
        return NOT_PROVED;
    zkl_core_timer(&d->core, now); /* marks the contender as suspect: its proof wakes us */
    /* In the window's last millisecond the contender is not suspect yet, and no notification of a
     * proof comes. */
    *next_ns = now.mono_ns + 2 * MS;
    if (hold_at(hold, 0)->contender.machine.suspect || *next_ns > deadline)
        *next_ns = deadline;
    return any_lost(hold) || any_unchecked(hold) ? NOT_PROVED : WAITS_FOR_PROOF;
}

/* A semaphore's mutex has one hold at a time: a lost one that no thread has unlocked is in the
 * way. */
static enum proof look_at_handle(struct zkl_acquisition *a, int64_t *next_ns)
{
    const struct zkl_semaphore *semaphore = a->hold->mutex->semaphore;
    enum proof proof = look_at_window(a->hold, a->deadline, next_ns);
    if (proof != PROVED || !semaphore || !semaphore->hold)
        return proof;
    if (zkl_clock_mono_ns() >= a->deadline || is_canceled(a->hold))
        return NOT_PROVED;
    *next_ns = a->deadline;
    return WAITS_FOR_PROOF;
}

static void release_bundle(const struct zkl_bundle *bundle, struct zkl_core *core)
{
    struct zkl_contender *contenders[ZKL_MULTI_MEMBERS_MAX];
    for (size_t i = 0; i < bundle->count; i++)
        contenders[i] = bundle->members[i].contender;
    zkl_bundle_release(core, zkl_clock_now(), contenders, bundle->count);
}

bool zkl_hold_begin_release(struct zkl_hold *hold)
{
    assert(zkl_driver_is_locked(hold->client->driver));
    struct zkl_core *core = &hold->client->driver->core;
    if (hold->bundle) {
        release_bundle(hold->bundle, core);
        return true;
    }
    if (!hold->request && zkl_hold_pass(hold_at(hold, 0)))
        return false;
    for (size_t i = hold_count(hold); i-- > 0;) {
        hold_at(hold, i)->given_back = true;
        zkl_core_release(core, zkl_clock_now(), &hold_at(hold, i)->contender);
        zkl_count_released(hold_at(hold, i));
    }
    return true;
}

static bool is_over(struct zkl_hold *hold)
{
    bool over = !hold->request || zkl_permit_request_is_over(hold->request);
    for (size_t i = 0, n = hold_count(hold); i < n; i++)
        over = over && hold_at(hold, i)->ended;
    return over;
}

static int given_up(const struct zkl_hold *hold)
{
    return is_canceled(hold) ? ZKL_ECANCELED : ZKL_ETIMEDOUT;
}

/* The first member whose node cannot be checked is to blame. */
static int fail_unchecked(struct zkl_acquisition *a)
{
    size_t i = 0;
    while (!hold_at(a->hold, i)->contender.machine.unchecked)
        i++;
    a->culprit = i;
    strcpy((a->hold->bundle ? hold_at(a->hold, i) : a->hold)->detail, "READ on its own node");
    return ZKL_EACCES;
}

static int fail_lapsed(struct zkl_hold *hold)
{
    strcpy(hold->detail, "the lease ended before the call could return");
    return ZKL_ETIMEDOUT;
}

/* Lost between the grant and here, not to be checked, or out of time: the caller never had it. */
static int back_out(struct zkl_acquisition *a)
{
    bool lost = any_lost(a->hold), denied = !lost && any_unchecked(a->hold);
    bool lapsed = is_lapsed(a->hold);
    int rc = denied ? fail_unchecked(a) : 0;
    zkl_hold_begin_release(a->hold);
    zkl_hold_put_given(a->hold);
    a->stage = ZKL_ACQ_ENDS;
    if (atomic_load(&a->hold->client->closed))
        return ZKL_ECLOSED;
    if (lapsed && (a->wait.flags & ZKL_WAIT_TRY))
        return fail_lapsed(a->hold);
    if (rc != 0)
        return rc;
    if (!lost && !lapsed)
        return given_up(a->hold);
    return ZKL_GOES_ON;
}

/* A hold that came from another owner has no lease. False: it is lost. */
static bool begin_lease(struct zkl_acquisition *a)
{
    struct zkl_hold *got = a->hold->given;
    if (!got)
        return true;
    got->leader = NULL;
    return a->wait.lease_ms == 0 || zkl_hold_lease(got, a->wait.lease_ms);
}

static int confirm(struct zkl_acquisition *a, int64_t *next_ns)
{
    switch (look_at_handle(a, next_ns)) {
    case PROVED:
        return begin_lease(a) ? 0 : back_out(a);
    case NOT_PROVED:
        return back_out(a);
    case WAITS_FOR_PROOF:
        break;
    }
    return ZKL_GOES_ON;
}

/* The same contender can start again only once the core is done with it. */
static int begin_again(struct zkl_acquisition *a, int64_t *next_ns)
{
    if (a->stage == ZKL_ACQ_ENDS && !is_over(a->hold)) {
        int64_t now_ns = zkl_clock_mono_ns();
        bool over = now_ns >= a->deadline || is_canceled(a->hold);
        *next_ns = a->deadline;
        /* No notification says that this waker is off its list: a thread waits around it, an
         * operation checks. */
        if (a->hold->request && a->hold->request->ending.queued && now_ns + MS < a->deadline)
            *next_ns = now_ns + MS;
        return over ? given_up(a->hold) : ZKL_GOES_ON;
    }
    if (is_canceled(a->hold))
        return ZKL_ECANCELED;
    start(a);
    a->stage = ZKL_ACQ_WAITS;
    return ZKL_GOES_ON;
}

/* A bundle of which one was held and lost again says nothing, and begins anew. */
static int on_failed(struct zkl_acquisition *a)
{
    const struct zkl_bundle *bundle = a->hold->bundle;
    if (bundle)
        a->culprit = bundle->culprit;
    if (!bundle || !bundle->lost)
        return a->hold->code;
    a->culprit = a->count;
    a->stage = ZKL_ACQ_ENDS;
    return atomic_load(&a->hold->client->closed) ? ZKL_ECLOSED : ZKL_GOES_ON;
}

int zkl_acquisition_step(struct zkl_acquisition *a, int64_t *next_ns)
{
    assert(zkl_driver_is_locked(a->hold->client->driver));
    int rc = ZKL_GOES_ON, stage;
    do {
        stage = a->stage;
        *next_ns = INT64_MAX;
        if (a->stage == ZKL_ACQ_BEGINS || a->stage == ZKL_ACQ_ENDS) {
            rc = begin_again(a, next_ns);
        } else if (a->stage == ZKL_ACQ_CONFIRMS) {
            rc = confirm(a, next_ns);
        } else if (is_decided(a, next_ns)) {
            a->stage = ZKL_ACQ_CONFIRMS;
            rc = a->hold->phase == ZKL_PHASE_FAILED ? on_failed(a) : ZKL_GOES_ON;
        }
    } while (rc == ZKL_GOES_ON && (int)a->stage != stage);
    return rc == ZKL_GOES_ON ? rc : out_of_time(rc, &a->wait, a->deadline);
}

/* The first member of a bundle is notified for the others. */
static void take_lock_paths(struct zkl_hold *hold)
{
    for (size_t i = 0, n = hold_count(hold); i < n; i++) {
        take_lock_path(hold_at(hold, i));
        hold_at(hold, i)->leader = i > 0 ? hold : hold->leader;
    }
}

int zkl_acquisition_begin(struct zkl_acquisition *a, struct zkl_hold *hold,
                          const struct zkl_wait *wait)
{
    assert(zkl_driver_is_locked(hold->client->driver));
    struct zkl_client *client = hold->client;
    int64_t now_ns = zkl_clock_mono_ns();
    *a = (struct zkl_acquisition){.hold = hold,
                                  .bundle = hold->bundle,
                                  .count = hold_count(hold),
                                  .culprit = hold->bundle ? hold_count(hold) : 0,
                                  .wait = *wait,
                                  .deadline = bounded_deadline(client->driver, wait, now_ns),
                                  .stage = ZKL_ACQ_BEGINS};
    if (!hold->request)
        take_lock_paths(hold);
    int rc = wait->cancel ? zkl_cancel_use(client, wait->cancel) : 0;
    if (rc == 0)
        enter_wait(hold, wait->cancel, now_ns);
    return rc;
}

void zkl_acquisition_end(struct zkl_acquisition *a, int rc)
{
    assert(zkl_driver_is_locked(a->hold->client->driver));
    struct zkl_hold *hold = a->hold;
    leave_wait(hold);
    if (rc != 0)
        zkl_cached_want_no_more(hold);
    for (size_t i = 0; rc == 0 && i < a->count; i++)
        zkl_hold_returned(hold_at(hold, i));
    for (size_t i = a->count; a->bundle && i-- > 0;) {
        struct zkl_hold *got = hold_at(hold, i);
        got->leader = NULL;
        got->bundle = NULL;
    }
    if (hold->request)
        zkl_permit_request_returned(hold->request, rc);
}

void zkl_acquisition_settle(struct zkl_acquisition *a, int rc)
{
    if (!a->bundle) /* drop its own use; each hold is one */
        a->hold->mutex->uses = a->hold->mutex->uses + (rc == 0 ? a->count : 0) - 1;
    for (size_t i = 0; a->bundle && rc != 0 && i < a->count; i++)
        ((struct zkl_hold *)a->bundle->members[i].contender)->mutex->uses--;
}

void zkl_acquisition_cancel(struct zkl_acquisition *a)
{
    a->hold->canceled = true;
    stop(a->hold, zkl_clock_now(), ZKL_ECANCELED);
    zkl_hold_wake(a->hold);
}

void zkl_acquisition_back_out(struct zkl_acquisition *a)
{
    if (a->stage == ZKL_ACQ_BEGINS || a->stage == ZKL_ACQ_ENDS)
        return; /* it has nothing, or nothing any more: what it had may be in the core still */
    if (a->hold->phase == ZKL_PHASE_GRANTED) {
        zkl_hold_begin_release(a->hold);
        zkl_hold_put_given(a->hold);
    } else {
        stop(a->hold, zkl_clock_now(), ZKL_ECANCELED);
    }
    a->stage = ZKL_ACQ_ENDS;
}

bool zkl_acquisition_is_lost(const struct zkl_acquisition *a)
{
    const struct zkl_semaphore *semaphore = a->hold->mutex->semaphore;
    return any_lost(a->hold) || (semaphore && semaphore->hold);
}

int zkl_acquisition_confirm(struct zkl_acquisition *a, int64_t lease_ms)
{
    int64_t now_ns = zkl_clock_mono_ns();
    if (any_unchecked(a->hold))
        return fail_unchecked(a);
    for (size_t i = 0; i < a->count; i++) {
        struct zkl_hold *hold = hold_at(a->hold, i);
        hold->got_ns = now_ns;
        if (lease_ms > 0 && !zkl_hold_lease(hold, lease_ms))
            return ZKL_ELOST;
    }
    return 0;
}

void zkl_hold_wait(struct zkl_hold *hold, int64_t until_ns)
{
    zkl_driver_wait(hold->client->driver, &hold->waker, until_ns);
}

int zkl_hold_acquire(struct zkl_hold *hold, const struct zkl_wait *wait)
{
    struct zkl_driver *d = hold->client->driver;
    struct zkl_acquisition a;
    int64_t next_ns;

    zkl_driver_lock(d);
    int rc = zkl_acquisition_begin(&a, hold, wait);
    bool begun = rc == 0;
    if (begun) {
        while ((rc = zkl_acquisition_step(&a, &next_ns)) == ZKL_GOES_ON)
            zkl_driver_wait(d, &hold->waker, next_ns);
        zkl_acquisition_end(&a, rc);
    }
    if (rc != 0)
        zkl_count_failed(hold->mutex, rc);
    if (begun) /* after a failure another thread may free the handle from here on */
        zkl_acquisition_settle(&a, rc);
    zkl_driver_unlock(d);
    return rc;
}

int zkl_permit_request_acquire(struct zkl_permit_request *request, const struct zkl_wait *wait)
{
    int rc = zkl_hold_acquire(zkl_permit_request_hold(request, 0), wait);
    return rc == 0 ? 0 : zkl_permit_request_fail(request, rc);
}

/* 0, or what the core said. */
static int give_back(struct zkl_hold *hold)
{
    if (!zkl_hold_begin_release(hold))
        return 0;
    while (hold->phase == ZKL_PHASE_GRANTED)
        zkl_driver_wait(hold->client->driver, &hold->waker, ZKL_NO_DEADLINE);
    return hold->code;
}

void zkl_hold_let_go(struct zkl_hold *hold)
{
    struct zkl_driver *d = hold->client->driver;
    zkl_driver_lock(d);
    zkl_hold_begin_release(hold);
    zkl_count_end(hold);
    hold->mutex->uses--;
    zkl_driver_unlock(d);
}

/* --- release ------------------------------------------------------------ */

int zkl_hold_release(struct zkl_hold *hold)
{
    struct zkl_driver *d = hold->client->driver;
    zkl_driver_lock(d);
    int rc = give_back(hold); /* bounded by the core: the link breaks, or the window ends */
    zkl_count_end(hold);
    hold->mutex->uses--;
    zkl_driver_unlock(d);
    return rc;
}

/* --- several holds together --------------------------------------------- */

void zkl_release_add(struct zkl_release *r, struct zkl_hold *hold, size_t member)
{
    hold->member = member;
    hold->release_next = r->first;
    r->first = hold;
}

/* Puts as many as fit into one transaction, the first in the list as the first of them. */
static struct zkl_hold *release_some(struct zkl_core *core, struct zkl_hold *hold)
{
    struct zkl_contender *contenders[ZKL_TRANSACTION_MAX];
    size_t at = ZKL_TRANSACTION_MAX;
    for (; hold && at > 0; hold = hold->release_next)
        contenders[--at] = &hold->contender;
    zkl_bundle_release(core, zkl_clock_now(), contenders + at, ZKL_TRANSACTION_MAX - at);
    return hold;
}

/* A hold that another owner has from here on is not waited for. */
static void pass_some(struct zkl_release *r)
{
    struct zkl_hold **at = &r->first;
    while (*at) {
        struct zkl_hold *hold = *at;
        if (!zkl_hold_pass(hold)) {
            at = &hold->release_next;
            continue;
        }
        *at = hold->release_next;
        hold->mutex->uses--;
        zkl_hold_put(hold);
    }
}

void zkl_release_begin(struct zkl_release *r, struct zkl_op *op)
{
    pass_some(r);
    if (!r->first)
        return;
    struct zkl_core *core = &r->first->client->driver->core;
    for (struct zkl_hold *hold = r->first; hold; hold = hold->release_next)
        hold->leader = hold == r->first ? NULL : r->first;
    r->first->op = op;
    for (struct zkl_hold *hold = r->first; hold;)
        hold = release_some(core, hold);
    for (struct zkl_hold *hold = r->first; hold; hold = hold->release_next)
        zkl_count_released(hold);
}

bool zkl_release_is_over(const struct zkl_release *r)
{
    const struct zkl_hold *hold = r->first;
    while (hold && hold->phase != ZKL_PHASE_GRANTED)
        hold = hold->release_next;
    return !hold;
}

void zkl_release_end(struct zkl_release *r)
{
    for (struct zkl_hold *hold = r->first; hold; hold = hold->release_next) {
        hold->leader = NULL;
        hold->op = NULL;
        zkl_count_end(hold);
        hold->mutex->uses--;
    }
}

/* --- questions ---------------------------------------------------------- */

static int wait_for_answers(struct zkl_query_wait *query_wait, int64_t deadline)
{
    struct zkl_driver *d = query_wait->client->driver;
    while (query_wait->open > 0) {
        if (zkl_cancel_is_set(query_wait->cancel))
            return ZKL_ECANCELED;
        if (zkl_clock_mono_ns() >= deadline)
            return zkl_session_connected(&d->core.session) ? ZKL_ETIMEDOUT : ZKL_EDISCONNECTED;
        zkl_driver_wait(d, &query_wait->waker, deadline);
    }
    return 0;
}

static int send_and_wait(struct zkl_query_wait *query_wait, struct zkl_awaited_query *queries,
                         size_t count, int64_t deadline)
{
    if (zkl_cancel_is_set(query_wait->cancel))
        return ZKL_ECANCELED;
    if (zkl_clock_mono_ns() >= deadline)
        return ZKL_ETIMEDOUT;
    zkl_query_wait_send(query_wait, queries, count);
    int rc = wait_for_answers(query_wait, deadline);
    int said = zkl_query_wait_withdraw(query_wait, queries, count);
    return rc != 0 ? rc : said;
}

int zkl_query_all(struct zkl_client *client, struct zkl_awaited_query *queries, size_t count,
                  int64_t deadline, struct zkl_cancel *cancel)
{
    struct zkl_query_wait *query_wait = zkl_query_wait_new(client, cancel);
    if (!query_wait)
        return ZKL_ENOMEM;
    zkl_driver_lock(client->driver);
    int rc = cancel ? zkl_cancel_use(client, cancel) : 0;
    if (rc == 0) {
        rc = send_and_wait(query_wait, queries, count, deadline);
        if (cancel)
            zkl_cancel_unuse(client, cancel);
    }
    zkl_driver_unlock(client->driver);
    zkl_query_wait_put(query_wait);
    return rc;
}
