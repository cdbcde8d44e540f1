/* SPDX-License-Identifier: Apache-2.0
 *
 * A place: a node in a queue, and the wait for it. This file receives the core's notifications of
 * the contender, keeps what callers ask for, and queues the callbacks. References keep a place while
 * a hold, a thread, an operation or a callback may use it. Under the client's mutex, except the few
 * fields that say that they are atomic. All files of src/api that lock call it. */
#include "place.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counts.h"
#include "driver/clock.h"
#include "error.h"
#include "op.h"

static void run_note(struct zkl_note *note);
static void post_state(struct zkl_place *place, int state, int reason);
static void woken(struct zkl_waker *waker);

static void add_number(char *text, long number)
{
    char digits[24], *at = digits + sizeof digits - 1;
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    strcat(text, at);
}

/* Without a system call for each place; a child's only thread has another number. */
static pid_t thread_number(void)
{
    static _Thread_local pid_t number;
    static _Thread_local unsigned generation;
    if (number == 0 || generation != zkl_fork_generation()) {
        number = gettid();
        generation = zkl_fork_generation();
    }
    return number;
}

/* Every acquisition makes one: without printf. */
static void owner_text(const struct zkl_mutex *mutex, char *out)
{
    const char *owner = mutex->owner ? mutex->owner : mutex->client->owner;
    zkl_text_copy(out, ZKL_OWNER_MAX + 1, owner ? owner : mutex->client->self);
    if (!owner)
        add_number(out, thread_number());
}

/* --- memory ------------------------------------------------------------- */

/* A place is too large for what malloc keeps at hand, and most that end are followed by another one,
 * so ZKL_SPARE_PLACES of each client are kept. */
static struct zkl_place *take_spare(struct zkl_client *client)
{
    struct zkl_place *place = NULL;
    for (int i = 0; ZKL_KEEPS_SPARES && i < ZKL_SPARE_PLACES && !place; i++) {
        if (atomic_load_explicit(&client->spare_places[i], memory_order_relaxed))
            place = atomic_exchange(&client->spare_places[i], NULL);
    }
    return place;
}

static struct zkl_place *allocate(struct zkl_client *client, size_t size)
{
    struct zkl_place *place = take_spare(client);
    if (place && place->data_room >= size) {
        size = place->data_room;
        memset(place, 0, sizeof *place);
    } else {
        free(place);
        place = calloc(1, sizeof *place + size);
    }
    if (place)
        place->data_room = size;
    return place;
}

static void deallocate(struct zkl_place *place)
{
    struct zkl_client *client = place->client;
    for (int i = 0; ZKL_KEEPS_SPARES && i < ZKL_SPARE_PLACES; i++) {
        struct zkl_place *none = NULL;
        if (!atomic_load_explicit(&client->spare_places[i], memory_order_relaxed) &&
            atomic_compare_exchange_strong(&client->spare_places[i], &none, place))
            return;
    }
    free(place);
}

static void ref(struct zkl_place *place)
{
    atomic_fetch_add(&place->refs, 1);
}

struct zkl_place *zkl_place_new(struct zkl_mutex *mutex, struct zkl_place *under)
{
    char data[ZKL_OWNER_MAX + 1];
    owner_text(mutex, data);
    size_t size = strlen(data) + 1;
    struct zkl_place *place = allocate(mutex->client, size);
    if (!place)
        return NULL;
    memcpy(place->data, data, size);
    place->client = mutex->client;
    place->lock_path = mutex->lock_path;
    place->mutex = mutex;
    atomic_init(&place->refs, 1);
    atomic_init(&place->lost, false);
    atomic_init(&place->revoked, false);
    atomic_init(&place->lease_end_boot, 0);
    zkl_waker_init(&place->waker, woken);
    place->ended = true;
    place->downgrade_from = under;
    if (under)
        ref(under);
    place->note.run = run_note;
    place->note.owner = mutex;
    zkl_client_ref(place->client);
    return place;
}

void zkl_place_unref(struct zkl_place *place)
{
    int refs = atomic_fetch_sub(&place->refs, 1);
    assert(refs > 0);
    if (refs > 1)
        return;
    struct zkl_client *client = place->client;
    if (place->downgrade_from)
        zkl_place_unref(place->downgrade_from);
    zkl_waker_fini(&place->waker);
    if (place->has_lock_path)
        zkl_lock_path_put(client, place->lock_path);
    deallocate(place);
    zkl_client_unref(client);
}

static void woken(struct zkl_waker *waker)
{
    zkl_place_unref((struct zkl_place *)((char *)waker - offsetof(struct zkl_place, waker)));
}

void zkl_place_wake(struct zkl_place *place)
{
    const struct zkl_caller *caller = place->caller;
    if (!caller)
        return;
    if (caller->op) {
        zkl_op_wake(caller->op);
        return;
    }
    if (caller->sleeps_on->waker.queued)
        return;
    ref(caller->sleeps_on);
    zkl_driver_wake(place->client->driver, &caller->sleeps_on->waker);
}

void zkl_place_put(struct zkl_place *place)
{
    if (place->waker.queued)
        zkl_place_unref(place); /* not the last one: the waker has one */
    else
        zkl_driver_wake(place->client->driver, &place->waker);
}

/* --- the state callback ------------------------------------------------- */

static struct zkl_place *of_note(struct zkl_note *note)
{
    return (struct zkl_place *)((char *)note - offsetof(struct zkl_place, note));
}

void zkl_place_drop_notes(struct zkl_note *notes)
{
    while (notes) {
        struct zkl_place *place = of_note(notes);
        notes = notes->next;
        zkl_place_unref(place);
    }
}

static bool is_permit(const struct zkl_place *place)
{
    return place->mutex->semaphore && !place->mutex->kind;
}

/* The oldest event. False: there is none, or the user freed the mutex, or released the permit and
 * so has its handle no more, perhaps in the last callback. */
static bool take_event(struct zkl_place *place, struct zkl_hold_event *event)
{
    zkl_driver_lock(place->client->driver);
    bool some = place->event_count > 0 && !place->client->driver->running_quiesced &&
                !(is_permit(place) && place->given_back);
    if (some) {
        event->state = (enum zkl_hold_state)place->events[0].state;
        event->reason = (enum zkl_reason)place->events[0].reason;
        place->event_count--;
        memmove(&place->events[0], &place->events[1], sizeof place->events[0] * place->event_count);
    }
    zkl_driver_unlock(place->client->driver);
    return some;
}

static void run_note(struct zkl_note *note)
{
    struct zkl_place *place = of_note(note);
    char path[ZKL_PATH_MAX + 1 + ZKL_NODE_NAME_MAX + 1];
    snprintf(path, sizeof path, "%s/%s", place->lock_path->path, place->node);
    bool permit = is_permit(place);
    struct zkl_hold_event event = {.size = sizeof event,
                                   .mutex = permit ? NULL : place->mutex,
                                   .permit = permit ? (struct zkl_permit *)place : NULL,
                                   .token = place->token,
                                   .node_path = path};
    while (take_event(place, &event))
        place->fn(&event, place->fn_arg);
    zkl_place_unref(place);
}

static void note_unchecked(struct zkl_place *place)
{
    atomic_store(&place->unchecked, place->contender.machine.unchecked);
}

void zkl_place_returned(struct zkl_place *place)
{
    assert(zkl_driver_is_locked(place->client->driver));
    if (place->returned)
        return;
    place->returned = true;
    zkl_count_acquired(place);
    note_unchecked(place);
    if (place->contender.machine.suspect) /* since the grant, so it was not reported */
        post_state(place, ZKL_HOLD_SUSPECT,
                   place->contender.machine.unchecked    ? ZKL_REASON_UNCHECKED
                   : place->contender.machine.unprovable ? ZKL_REASON_WINDOW
                                                         : ZKL_REASON_LINK);
    if (place->contender.machine.revoked) {
        atomic_store(&place->revoked, true); /* a member of several may not have been notified */
        post_state(place, ZKL_HOLD_REVOKE_REQUESTED, ZKL_REASON_NONE);
    }
}

/* SUSPECT and HELD may alternate faster than the callback runs. The oldest two of them then say
 * nothing that the newest do not. A loss and a request to release come once and are never
 * dropped. */
static void drop_pair(struct zkl_place *place)
{
    size_t kept = 0, dropped = 0;
    for (size_t i = 0; i < place->event_count; i++) {
        bool flaps =
            place->events[i].state == ZKL_HOLD_SUSPECT || place->events[i].state == ZKL_HOLD_HELD;
        if (flaps && dropped < 2)
            dropped++;
        else
            place->events[kept++] = place->events[i];
    }
    place->event_count = kept;
}

/* For readers that share a node, or its owner. A reader that enters at this moment is counted here,
 * or finds the gate closed: it stays closed until the core has settled, which checks the node after
 * each event of it. */
static bool nobody_is_in(struct zkl_place *place)
{
    struct zkl_read_cache *cache = place->contender.machine.lock_request.read_cache;
    return cache && zkl_read_gate_close(&cache->gate);
}

/* A reader that received SUSPECT and has left must receive HELD too: the next one that enters has
 * the node in that state. */
static bool concerns_nobody(struct zkl_place *place, int state)
{
    bool closes_it = state == ZKL_HOLD_HELD && place->told_suspect;
    return nobody_is_in(place) && !closes_it;
}

static void post_state(struct zkl_place *place, int state, int reason)
{
    if (!place->returned || concerns_nobody(place, state))
        return;
    place->told_suspect =
        state == ZKL_HOLD_SUSPECT || (place->told_suspect && state == ZKL_HOLD_REVOKE_REQUESTED);
    zkl_count_state(place, state, reason);
    if (zkl_log_is_on(&place->client->log))
        zkl_log_state(place, state, reason);
    if (!place->fn)
        return;
    if (place->event_count == ZKL_HOLD_EVENTS)
        drop_pair(place);
    place->events[place->event_count].state = state;
    place->events[place->event_count].reason = reason;
    place->event_count++;
    if (zkl_driver_post(place->client->driver, &place->note))
        ref(place);
}

/* --- news --------------------------------------------------------------- */

static void end_wait(struct zkl_place *place, enum zkl_place_phase phase,
                     const struct zkl_notification *notification)
{
    /* A release because the call fails is no news: the call says why it fails. */
    bool backed_out = phase == ZKL_PHASE_RELEASED && !place->returned;
    place->phase = phase;
    if (!backed_out) {
        place->code = notification->code;
        place->number = notification->number;
        zkl_text_copy(place->detail, sizeof place->detail, notification->detail);
    }
    zkl_place_wake(place);
}

static void on_state(struct zkl_place *place, const struct zkl_notification *notification)
{
    if (notification->state == ZKL_HOLD_REVOKE_REQUESTED)
        atomic_store(&place->revoked, true);
    if (notification->state == ZKL_HOLD_LOST) {
        if (atomic_exchange(&place->lost, true))
            return; /* reported before */
    }
    if (notification->state != ZKL_HOLD_REVOKE_REQUESTED)
        place->reason = notification->reason;
    note_unchecked(place);
    post_state(place, notification->state, notification->reason);
    zkl_place_wake(place); /* a call that waits for the window, if any */
}

void zkl_place_notification(struct zkl_port *port, struct zkl_contender *contender,
                            const struct zkl_notification *notification)
{
    assert(zkl_driver_is_locked(((struct zkl_place *)contender)->client->driver));
    struct zkl_place *place = (struct zkl_place *)contender;
    (void)port;
    if (zkl_log_is_on(&place->client->log))
        zkl_log_notification(place, notification);
    switch (notification->type) {
    case ZKL_NOTIFY_GRANTED:
        place->token = (uint64_t)contender->machine.czxid;
        memcpy(place->node, contender->machine.node, sizeof place->node);
        atomic_store(&place->lease_end_boot, contender->machine.lease_end_boot);
        end_wait(place, ZKL_PHASE_GRANTED, notification);
        break;
    case ZKL_NOTIFY_FAILED:
        end_wait(place, ZKL_PHASE_FAILED, notification);
        break;
    case ZKL_NOTIFY_RELEASED:
        end_wait(place, ZKL_PHASE_RELEASED, notification);
        break;
    case ZKL_NOTIFY_STATE:
        on_state(place, notification);
        break;
    case ZKL_NOTIFY_ENDED:
        place->ended = true;
        zkl_place_wake(place);
        zkl_place_put(place); /* the core's reference */
        break;
    }
}

/* --- for the owner ------------------------------------------------------ */

int64_t zkl_place_window_ns(const struct zkl_place *place)
{
    /* The end first, then the loss: the other way round the window of the next session could be
     * taken for that of a lost hold. */
    int64_t end =
        atomic_load_explicit(&place->client->driver->window_end_boot, memory_order_acquire);
    if (atomic_load_explicit(&place->lost, memory_order_acquire) ||
        atomic_load_explicit(&place->unchecked, memory_order_acquire))
        return 0;
    int64_t lease = atomic_load_explicit(&place->lease_end_boot, memory_order_acquire);
    int64_t left = (lease != 0 && lease < end ? lease : end) - zkl_clock_boot_ns();
    return left > 0 ? left : 0;
}

int64_t zkl_place_window_ms(const struct zkl_place *place)
{
    return zkl_place_window_ns(place) / 1000000;
}

bool zkl_place_is_lost(const struct zkl_place *place)
{
    int64_t lease = atomic_load_explicit(&place->lease_end_boot, memory_order_acquire);
    return atomic_load_explicit(&place->lost, memory_order_acquire) ||
           (lease != 0 && zkl_clock_boot_ns() >= lease);
}

static int told(enum zkl_reason *out, int state, int reason)
{
    *out = (enum zkl_reason)reason;
    return state;
}

/* A loss that no event has reported yet counts, too. */
int zkl_place_state_now(const struct zkl_place *place, enum zkl_reason *reason)
{
    assert(zkl_driver_is_locked(place->client->driver));
    if (atomic_load(&place->lost))
        return told(reason, ZKL_HOLD_LOST, place->reason);
    if (zkl_place_is_lost(place))
        return told(reason, ZKL_HOLD_LOST, ZKL_REASON_LEASE_ENDED);
    if (atomic_load(&place->unchecked))
        return told(reason, ZKL_HOLD_SUSPECT, ZKL_REASON_UNCHECKED);
    if (place->contender.machine.suspect)
        return told(reason, ZKL_HOLD_SUSPECT, place->reason ? place->reason : ZKL_REASON_LINK);
    if (zkl_place_window_ns(place) == 0)
        return told(reason, ZKL_HOLD_SUSPECT, ZKL_REASON_WINDOW);
    return told(reason, ZKL_HOLD_HELD, ZKL_REASON_NONE);
}

int zkl_place_fail_full(const struct zkl_place *place)
{
    uint64_t max = place->client->driver->core.ephemeral_bytes_max; /* constant */
    return zkl_fail(ZKL_EFULL, "%s: with another node the paths of all its nodes exceed %llu bytes",
                    place->lock_path->path, (unsigned long long)max);
}

int zkl_place_doubt(const struct zkl_place *place)
{
    return zkl_place_is_lost(place) ? ZKL_ELOST
                                    : (zkl_place_window_ns(place) == 0 ? ZKL_EDOUBT : 0);
}

bool zkl_place_lease(struct zkl_place *place, int64_t lease_ms)
{
    assert(zkl_driver_is_locked(place->client->driver));
    bool renewed = !place->ended && zkl_core_renew(&place->client->driver->core, zkl_clock_now(),
                                                   &place->contender, lease_ms * INT64_C(1000000));
    if (renewed)
        atomic_store(&place->lease_end_boot, place->contender.machine.lease_end_boot);
    return renewed;
}

int zkl_place_renew(struct zkl_place *place, int64_t lease_ms)
{
    struct zkl_driver *d = place->client->driver;
    zkl_driver_lock(d);
    bool renewed = zkl_place_lease(place, lease_ms);
    zkl_driver_unlock(d);
    return renewed ? 0 : ZKL_ELOST;
}

void zkl_place_orphaned(struct zkl_place *place)
{
    struct zkl_driver *d = place->client->driver;
    zkl_driver_lock(d);
    place->mutex->uses--;
    if (!place->ended)
        zkl_core_abandon(&d->core, zkl_clock_now(), &place->contender, ZKL_REASON_OWNER_EXITED);
    zkl_count_end(place);
    zkl_driver_unlock(d);
    zkl_place_unref(place);
}

void zkl_place_begin(struct zkl_place *place)
{
    place->ended = false;
    atomic_store(&place->lost, false);
    atomic_store(&place->revoked, false);
    place->reason = ZKL_REASON_NONE;
    atomic_fetch_add(&place->refs, 1);
}

/* ZEPHEMERALONLOCALSESSION */
#define OF_A_LOCAL_SESSION (-120)

int zkl_place_fail_answer(const struct zkl_place *place, int rc, const char *path)
{
    const char *why = place->number == OF_A_LOCAL_SESSION
                          ? ": the session is local to its server, so it can hold no lock: turn "
                            "localSessionsEnabled off at all servers"
                          : "";
    return zkl_fail(rc, "%s: while %s, ZooKeeper returned %d%s", path, place->detail, place->number,
                    why);
}
