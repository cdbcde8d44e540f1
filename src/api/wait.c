/* SPDX-License-Identifier: Apache-2.0
 *
 * One part of an attempt in steps: begun, decided by its place's notifications, proved, canceled or
 * timed out, backed out; and releases, of one place or several. attempt.c takes the steps. This is
 * the only file in which a lock call blocks a thread. The steps run with the client's mutex. A
 * thread that blocks sleeps on its place's condition variable, or, with a cancel object, on
 * descriptors. */
#include <stdio.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "permit_request.h"
#include "cached_reader.h"
#include "core/bundle.h"
#include "counts.h"
#include "driver/clock.h"
#include "error.h"
#include "place.h"
#include "op.h"
#include "awaited_query.h"

#define MS INT64_C(1000000)
#define RETAINED_MS 200 /* how long a try waits for the release of a node that may have no holder */
#define LOOK_MS 100
#define LAPSED_MS 2 /* a lease of which no more is left is over */

/* --- cancel objects ----------------------------------------------------- */

static void leave_turn(struct zkl_place *place, int code)
{
    zkl_local_queue_leave(&place->mutex->local_queue, &place->local_waiter);
    place->phase = ZKL_PHASE_FAILED;
    place->code = code;
}

static void stop(struct zkl_place *place, struct zkl_time now, int code)
{
    struct zkl_core *core = &place->client->driver->core;
    if (place->bundle && place->phase == ZKL_PHASE_WAITING)
        zkl_bundle_stop(core, now, place->bundle, code);
    else if (place->request)
        zkl_bundle_stop(core, now, &place->request->bundle, code);
    else if (place->local_waiter.waits)
        leave_turn(place, code);
    else if (place->phase == ZKL_PHASE_WAITING)
        zkl_core_stop(core, now, &place->contender, code);
}

/* Of a bundle the first one stops all. */
static bool is_first(const struct zkl_place *place)
{
    return !place->bundle || place->bundle->members[0].contender == &place->contender;
}

static void stop_canceled(struct zkl_client *client, const struct zkl_cancel *cancel)
{
    struct zkl_place *next;
    for (struct zkl_place *place = client->waiting; place; place = next) {
        next = place->wait_next;
        if (place->caller->cancel != cancel || !is_first(place))
            continue;
        stop(place, zkl_clock_now(), ZKL_ECANCELED);
        zkl_place_wake(place);
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

/* A thread waits for one place, or for all those of one request for permits or of one bundle, by
 * the first. */
static size_t place_count(const struct zkl_place *place)
{
    if (place->request)
        return place->request->count;
    return place->bundle ? place->bundle->count : 1;
}

/* For a place that waited for its turn: the place that it received. */
static struct zkl_place *place_at(struct zkl_place *place, size_t i)
{
    if (place->request)
        return zkl_permit_request_place(place->request, i);
    if (place->bundle)
        return (struct zkl_place *)place->bundle->members[i].contender;
    return place->given ? place->given : place;
}

static bool any_lost(struct zkl_place *place)
{
    for (size_t i = 0, n = place_count(place); i < n; i++) {
        if (zkl_place_is_lost(place_at(place, i)))
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

/* The place's reference, given up with it. */
static void take_lock_path(struct zkl_place *place)
{
    place->lock_path->refs++;
    place->has_lock_path = true;
}

static void enter_list(struct zkl_place *place)
{
    struct zkl_client *client = place->client;
    place->wait_prev = NULL;
    place->wait_next = client->waiting;
    if (place->wait_next)
        place->wait_next->wait_prev = place;
    client->waiting = place;
}

static void leave_list(struct zkl_place *place)
{
    if (place->wait_prev)
        place->wait_prev->wait_next = place->wait_next;
    else
        place->client->waiting = place->wait_next;
    if (place->wait_next)
        place->wait_next->wait_prev = place->wait_prev;
}

/* The places of a request for permits belong to one handle, which counts one use until the grant. */
static void enter_wait(struct zkl_place *place, struct zkl_caller *caller, int64_t now_ns)
{
    for (size_t i = 0, n = place_count(place); i < n; i++) {
        struct zkl_place *got = place_at(place, i);
        got->caller = caller;
        got->fn = got->mutex->fn;
        got->fn_arg = got->mutex->fn_arg;
        got->began_ns = now_ns;
        got->phase = ZKL_PHASE_RELEASED; /* it has not begun */
        if (i > 0 && !place->bundle)
            continue;
        got->mutex->uses++;
        if (!zkl_roles[got->mutex->naming.role].beside)
            zkl_cached_close(got->mutex); /* a writer must not wait for its own handle's readers */
        enter_list(got);
    }
}

static void leave_wait(struct zkl_place *place)
{
    for (size_t i = 0; i < (place->bundle ? place->bundle->count : 1); i++)
        leave_list(place->bundle ? place_at(place, i) : place);
}

static struct zkl_lock_request lock_request_of(const struct zkl_place *place,
                                               const struct zkl_wait *wait)
{
    return (struct zkl_lock_request){
        .path = &place->lock_path->core,
        .data = place->data,
        .naming = place->mutex->naming,
        .try_only = (wait->flags & ZKL_WAIT_TRY) != 0,
        .try_sync = (wait->flags & ZKL_WAIT_SYNC) != 0,
        .watch_own = place->fn != NULL || place->mutex->revocable,
        .retained = place->mutex->local_queue.retain_ns > 0 || place->caches,
        .posted = place->mutex->posted_unlock,
        .lease_ns = wait->lease_ms * MS,
        .downgrade_from = place->downgrade_from ? &place->downgrade_from->contender : NULL};
}

/* The record of the path, for contenders that wait for every other one there. */
static bool is_unlisted(const struct zkl_place *place)
{
    const struct zkl_naming *naming = &place->mutex->naming;
    return zkl_roles[naming->role].mutual && naming->names != ZKL_NAMES_NAMED;
}

/* An idle node of the handle is given up, and not waited for: a thread that waits for one lock must
 * not keep another one. */
static void prepare_member(const struct zkl_acquisition *a, struct zkl_bundle_member *member)
{
    struct zkl_place *place = (struct zkl_place *)member->contender;
    if (place->mutex->has_local_queue)
        zkl_local_queue_drop(&place->client->driver->core, zkl_clock_now(),
                             &place->mutex->local_queue);
    place->phase = ZKL_PHASE_WAITING;
    zkl_place_begin(place);
    member->lock_request = lock_request_of(place, &a->wait);
    member->lock_request.views = true;
    member->lock_request.unlisted = is_unlisted(place);
    member->lock_request.lease_ns = 0; /* it begins when all are held */
}

static void start_bundle(const struct zkl_acquisition *a)
{
    struct zkl_bundle *bundle = a->place->bundle;
    for (size_t i = 0; i < bundle->count; i++)
        prepare_member(a, &bundle->members[i]);
    bundle->lease_ns = a->wait.lease_ms * MS;
    zkl_bundle_acquire(&a->place->client->driver->core, zkl_clock_now(), bundle);
}

static void start_one(struct zkl_acquisition *a)
{
    struct zkl_place *place = a->place;
    bool may_cache = a->caller->alone && !a->caller->op;
    place->caches = may_cache && zkl_cached_wants(place, &a->wait);
    struct zkl_lock_request lock_request = lock_request_of(place, &a->wait);
    lock_request.try_behind_retained = true;
    lock_request.views = true;
    lock_request.unlisted = is_unlisted(place);
    place->phase = ZKL_PHASE_WAITING;
    if (lock_request.try_only)
        a->busy_at = zkl_clock_mono_ns() + RETAINED_MS * MS;
    if (place->mutex->has_local_queue) {
        zkl_place_join_local_queue(place, &lock_request, a->stage == ZKL_ACQ_ENDS);
        return;
    }
    zkl_place_begin(place);
    zkl_core_acquire(&place->client->driver->core, zkl_clock_now(), &place->contender,
                     &lock_request);
}

static void start(struct zkl_acquisition *a)
{
    if (a->place->bundle)
        start_bundle(a);
    else if (a->place->request)
        zkl_permit_request_begin(a->place->request, &a->wait);
    else
        start_one(a);
}

/* A try that asked for a node without a holder has waited long enough for it. */
static bool is_busy(const struct zkl_acquisition *a, int64_t now_ns)
{
    const struct zkl_place *place = a->place;
    return place->request
               ? zkl_permit_request_is_busy(place->request, now_ns)
               : now_ns >= a->busy_at && zkl_contender_awaits_retained(&place->contender.machine);
}

static int64_t next_look(const struct zkl_acquisition *a, int64_t now_ns)
{
    int64_t at = a->deadline;
    if (a->place->request)
        at = zkl_permit_request_next_look(a->place->request, now_ns);
    else if (a->place->contender.machine.lock_request.try_only)
        at = now_ns < a->busy_at ? a->busy_at : now_ns + LOOK_MS * MS;
    return at < a->deadline ? at : a->deadline;
}

/* Grant or failure, whichever the core decides first; the deadline is one of its events. True: it
 * has. */
static bool is_decided(struct zkl_acquisition *a, int64_t *next_ns)
{
    struct zkl_place *place = a->place;
    while (place->phase == ZKL_PHASE_WAITING) {
        struct zkl_time now = zkl_clock_now();
        if (now.mono_ns >= a->deadline) {
            stop(place, now, ZKL_ETIMEDOUT);
        } else if (is_busy(a, now.mono_ns)) {
            stop(place, now, ZKL_EBUSY);
        } else {
            *next_ns = next_look(a, now.mono_ns);
            return false;
        }
    }
    return true;
}

static bool is_canceled(const struct zkl_place *place)
{
    return place->caller->canceled || zkl_cancel_is_set(place->caller->cancel);
}

enum proof { PROVED, NOT_PROVED, WAITS_FOR_PROOF };

/* The server does not let this client check one of its nodes: there would be no window. */
static bool any_unchecked(struct zkl_place *place)
{
    for (size_t i = 0, n = place_count(place); i < n; i++) {
        if (place_at(place, i)->contender.machine.unchecked)
            return true;
    }
    return false;
}

/* The lease was so short, or the caller got the processor so late, that too little of the lease is
 * left for a grant. */
static bool is_lapsed(struct zkl_place *place)
{
    int64_t soon = zkl_clock_boot_ns() + LAPSED_MS * MS;
    for (size_t i = 0, n = place_count(place); i < n; i++) {
        int64_t lease = place_at(place, i)->contender.machine.lease_end_boot;
        if (lease != 0 && lease <= soon)
            return true;
    }
    return false;
}

/* Whoever waits may get the processor long after the grant: what he gets must be proved now. */
static enum proof look_at_window(struct zkl_place *place, int64_t deadline, int64_t *next_ns)
{
    struct zkl_driver *d = place->client->driver;
    struct zkl_time now = zkl_clock_now();
    if (any_lost(place) || any_unchecked(place) || is_lapsed(place))
        return NOT_PROVED;
    /* Where nothing can be proved, waiting for it is of no use. */
    if (d->core.session.unprovable || now.boot_ns + MS < zkl_session_window_end(&d->core.session)) {
        for (size_t i = 0, n = place_count(place); i < n; i++)
            place_at(place, i)->got_ns = now.mono_ns;
        return PROVED;
    }
    if (now.mono_ns >= deadline || is_canceled(place))
        return NOT_PROVED;
    zkl_core_timer(&d->core, now); /* marks the contender as suspect: its proof wakes us */
    /* In the window's last millisecond the contender is not suspect yet, and no notification of a
     * proof comes. */
    *next_ns = now.mono_ns + 2 * MS;
    if (place_at(place, 0)->contender.machine.suspect || *next_ns > deadline)
        *next_ns = deadline;
    return any_lost(place) || any_unchecked(place) ? NOT_PROVED : WAITS_FOR_PROOF;
}

/* A semaphore's mutex has one hold at a time: a lost one that no thread has unlocked is in the
 * way. */
static enum proof look_at_handle(struct zkl_acquisition *a, int64_t *next_ns)
{
    const struct zkl_semaphore *semaphore = a->place->mutex->semaphore;
    enum proof proof = look_at_window(a->place, a->deadline, next_ns);
    if (proof != PROVED || !semaphore || !semaphore->place)
        return proof;
    if (zkl_clock_mono_ns() >= a->deadline || is_canceled(a->place))
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

bool zkl_place_begin_release(struct zkl_place *place)
{
    assert(zkl_driver_is_locked(place->client->driver));
    struct zkl_core *core = &place->client->driver->core;
    if (place->bundle) {
        release_bundle(place->bundle, core);
        return true;
    }
    if (!place->request && zkl_place_pass(place_at(place, 0)))
        return false;
    for (size_t i = place_count(place); i-- > 0;) {
        place_at(place, i)->given_back = true;
        zkl_core_release(core, zkl_clock_now(), &place_at(place, i)->contender);
        zkl_count_released(place_at(place, i));
    }
    return true;
}

static bool is_over(struct zkl_place *place)
{
    bool over = !place->request || zkl_permit_request_is_over(place->request);
    for (size_t i = 0, n = place_count(place); i < n; i++)
        over = over && place_at(place, i)->ended;
    return over;
}

static int given_up(const struct zkl_place *place)
{
    return is_canceled(place) ? ZKL_ECANCELED : ZKL_ETIMEDOUT;
}

/* The first member whose node cannot be checked is to blame. */
static int fail_unchecked(struct zkl_acquisition *a)
{
    size_t i = 0;
    while (!place_at(a->place, i)->contender.machine.unchecked)
        i++;
    a->culprit = i;
    strcpy((a->place->bundle ? place_at(a->place, i) : a->place)->detail, "READ on its own node");
    return ZKL_EACCES;
}

static int fail_lapsed(struct zkl_place *place)
{
    strcpy(place->detail, "the lease ended before the call could return");
    return ZKL_ETIMEDOUT;
}

/* Lost between the grant and here, not to be checked, or out of time: the caller never had it. */
static int back_out(struct zkl_acquisition *a)
{
    bool lost = any_lost(a->place), denied = !lost && any_unchecked(a->place);
    bool lapsed = is_lapsed(a->place);
    int rc = denied ? fail_unchecked(a) : 0;
    zkl_place_begin_release(a->place);
    zkl_place_put_given(a->place);
    a->stage = ZKL_ACQ_ENDS;
    if (atomic_load(&a->place->client->closed))
        return ZKL_ECLOSED;
    if (lapsed && (a->wait.flags & ZKL_WAIT_TRY))
        return fail_lapsed(a->place);
    if (rc != 0)
        return rc;
    if (!lost && !lapsed)
        return given_up(a->place);
    return ZKL_GOES_ON;
}

/* A place that came from another owner has no lease. False: it is lost. */
static bool begin_lease(struct zkl_acquisition *a)
{
    struct zkl_place *got = a->place->given;
    return !got || a->wait.lease_ms == 0 || zkl_place_lease(got, a->wait.lease_ms);
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
    if (a->stage == ZKL_ACQ_ENDS && !is_over(a->place)) {
        int64_t now_ns = zkl_clock_mono_ns();
        bool over = now_ns >= a->deadline || is_canceled(a->place);
        *next_ns = a->deadline;
        /* No notification says that this waker is off its list: a thread waits around it, an
         * operation checks. */
        if (a->place->request && a->place->request->ending.queued && now_ns + MS < a->deadline)
            *next_ns = now_ns + MS;
        return over ? given_up(a->place) : ZKL_GOES_ON;
    }
    if (is_canceled(a->place))
        return ZKL_ECANCELED;
    start(a);
    a->stage = ZKL_ACQ_WAITS;
    return ZKL_GOES_ON;
}

/* A bundle of which one was held and lost again says nothing, and begins anew. */
static int on_failed(struct zkl_acquisition *a)
{
    const struct zkl_bundle *bundle = a->place->bundle;
    if (bundle)
        a->culprit = bundle->culprit;
    if (!bundle || !bundle->lost)
        return a->place->code;
    a->culprit = a->count;
    a->stage = ZKL_ACQ_ENDS;
    return atomic_load(&a->place->client->closed) ? ZKL_ECLOSED : ZKL_GOES_ON;
}

int zkl_acquisition_step(struct zkl_acquisition *a, int64_t *next_ns)
{
    assert(zkl_driver_is_locked(a->place->client->driver));
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
            rc = a->place->phase == ZKL_PHASE_FAILED ? on_failed(a) : ZKL_GOES_ON;
        }
    } while (rc == ZKL_GOES_ON && (int)a->stage != stage);
    return rc == ZKL_GOES_ON ? rc : out_of_time(rc, &a->wait, a->deadline);
}

void zkl_acquisition_begin(struct zkl_acquisition *a, struct zkl_place *place,
                           struct zkl_caller *caller, const struct zkl_wait *wait)
{
    assert(zkl_driver_is_locked(place->client->driver));
    struct zkl_client *client = place->client;
    int64_t now_ns = zkl_clock_mono_ns();
    *a = (struct zkl_acquisition){.place = place,
                                  .bundle = place->bundle,
                                  .count = place_count(place),
                                  .culprit = place->bundle ? place_count(place) : 0,
                                  .caller = caller,
                                  .wait = *wait,
                                  .deadline = bounded_deadline(client->driver, wait, now_ns),
                                  .stage = ZKL_ACQ_BEGINS};
    for (size_t i = 0; i < a->count && !place->request; i++)
        take_lock_path(place_at(place, i));
    enter_wait(place, caller, now_ns);
}

void zkl_acquisition_end(struct zkl_acquisition *a, int rc)
{
    assert(zkl_driver_is_locked(a->place->client->driver));
    struct zkl_place *place = a->place;
    leave_wait(place);
    if (rc != 0)
        zkl_cached_want_no_more(place);
    for (size_t i = 0; rc == 0 && i < a->count; i++)
        zkl_place_returned(place_at(place, i));
    place->caller = NULL;
    for (size_t i = a->count; i-- > 0;) {
        struct zkl_place *got = place_at(place, i);
        got->caller = NULL;
        got->bundle = NULL;
    }
    if (place->request)
        zkl_permit_request_returned(place->request, rc);
}

void zkl_acquisition_settle(struct zkl_acquisition *a, int rc)
{
    if (!a->bundle) /* drop its own use; each hold is one */
        a->place->mutex->uses = a->place->mutex->uses + (rc == 0 ? a->count : 0) - 1;
    for (size_t i = 0; a->bundle && rc != 0 && i < a->count; i++)
        ((struct zkl_place *)a->bundle->members[i].contender)->mutex->uses--;
}

void zkl_acquisition_cancel(struct zkl_acquisition *a)
{
    stop(a->place, zkl_clock_now(), ZKL_ECANCELED);
    zkl_place_wake(a->place);
}

void zkl_acquisition_back_out(struct zkl_acquisition *a)
{
    if (a->stage == ZKL_ACQ_BEGINS || a->stage == ZKL_ACQ_ENDS)
        return; /* it has nothing, or nothing any more: what it had may be in the core still */
    if (a->place->phase == ZKL_PHASE_GRANTED) {
        zkl_place_begin_release(a->place);
        zkl_place_put_given(a->place);
    } else {
        stop(a->place, zkl_clock_now(), ZKL_ECANCELED);
    }
    a->stage = ZKL_ACQ_ENDS;
}

bool zkl_acquisition_is_lost(const struct zkl_acquisition *a)
{
    const struct zkl_semaphore *semaphore = a->place->mutex->semaphore;
    return any_lost(a->place) || (semaphore && semaphore->place);
}

int zkl_acquisition_confirm(struct zkl_acquisition *a, int64_t lease_ms)
{
    int64_t now_ns = zkl_clock_mono_ns();
    if (any_unchecked(a->place))
        return fail_unchecked(a);
    for (size_t i = 0; i < a->count; i++) {
        struct zkl_place *place = place_at(a->place, i);
        place->got_ns = now_ns;
        if (lease_ms > 0 && !zkl_place_lease(place, lease_ms))
            return ZKL_ELOST;
    }
    return 0;
}

void zkl_place_wait(struct zkl_place *place, int64_t until_ns)
{
    zkl_driver_wait(place->client->driver, &place->waker, until_ns);
}

/* 0, or what the core said. */
static int give_back(struct zkl_place *place)
{
    if (!zkl_place_begin_release(place))
        return 0;
    struct zkl_caller caller = {.sleeps_on = place};
    place->caller = &caller;
    while (place->phase == ZKL_PHASE_GRANTED)
        zkl_place_wait(place, ZKL_NO_DEADLINE);
    place->caller = NULL;
    return place->code;
}

void zkl_place_let_go(struct zkl_place *place)
{
    struct zkl_driver *d = place->client->driver;
    zkl_driver_lock(d);
    zkl_place_begin_release(place);
    zkl_count_end(place);
    place->mutex->uses--;
    zkl_driver_unlock(d);
}

/* --- release ------------------------------------------------------------ */

int zkl_place_release(struct zkl_place *place)
{
    struct zkl_driver *d = place->client->driver;
    zkl_driver_lock(d);
    int rc = give_back(place); /* bounded by the core: the link breaks, or the window ends */
    zkl_count_end(place);
    place->mutex->uses--;
    zkl_driver_unlock(d);
    return rc;
}

/* --- several places together --------------------------------------------- */

void zkl_release_add(struct zkl_release *r, struct zkl_place *place, size_t member)
{
    place->member = member;
    place->release_next = r->first;
    r->first = place;
}

/* Puts as many as fit into one transaction, the first in the list as the first of them. */
static struct zkl_place *release_some(struct zkl_core *core, struct zkl_place *place)
{
    struct zkl_contender *contenders[ZKL_TRANSACTION_MAX];
    size_t at = ZKL_TRANSACTION_MAX;
    for (; place && at > 0; place = place->release_next)
        contenders[--at] = &place->contender;
    zkl_bundle_release(core, zkl_clock_now(), contenders + at, ZKL_TRANSACTION_MAX - at);
    return place;
}

/* A place that another owner has from here on is not waited for. */
static void pass_some(struct zkl_release *r)
{
    struct zkl_place **at = &r->first;
    while (*at) {
        struct zkl_place *place = *at;
        if (!zkl_place_pass(place)) {
            at = &place->release_next;
            continue;
        }
        *at = place->release_next;
        place->mutex->uses--;
        zkl_place_put(place);
    }
}

void zkl_release_begin(struct zkl_release *r, struct zkl_op *op)
{
    pass_some(r);
    if (!r->first)
        return;
    struct zkl_core *core = &r->first->client->driver->core;
    r->caller = (struct zkl_caller){.sleeps_on = r->first, .op = op};
    for (struct zkl_place *place = r->first; place; place = place->release_next)
        place->caller = &r->caller;
    for (struct zkl_place *place = r->first; place;)
        place = release_some(core, place);
    for (struct zkl_place *place = r->first; place; place = place->release_next)
        zkl_count_released(place);
}

bool zkl_release_is_over(const struct zkl_release *r)
{
    const struct zkl_place *place = r->first;
    while (place && place->phase != ZKL_PHASE_GRANTED)
        place = place->release_next;
    return !place;
}

void zkl_release_end(struct zkl_release *r)
{
    for (struct zkl_place *place = r->first; place; place = place->release_next) {
        place->caller = NULL;
        zkl_count_end(place);
        place->mutex->uses--;
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
