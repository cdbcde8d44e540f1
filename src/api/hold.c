/* SPDX-License-Identifier: Apache-2.0
 *
 * A hold: what an owner has from its first lock call to its last unlock, and the wait before it.
 * This file receives the core's notifications of the contender, keeps what callers ask for, and
 * queues the callbacks. References keep a hold while a thread, an operation or a callback may use
 * it. Under the client's mutex, except the few fields that say that they are atomic. All files of
 * src/api that lock call it. */
#include "hold.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counts.h"
#include "driver/clock.h"
#include "error.h"
#include "op.h"
#include "seat.h"

static void run_note(struct zkl_note *note);
static void post_state(struct zkl_hold *hold, int state, int reason);
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

/* Without a system call for each hold; a child's only thread has another number. */
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

/* A hold is too large for what malloc keeps at hand, and most that end are followed by another one,
 * so ZKL_SPARE_HOLDS of each client are kept. */
static struct zkl_hold *take_spare(struct zkl_client *client)
{
    struct zkl_hold *hold = NULL;
    for (int i = 0; ZKL_KEEPS_SPARES && i < ZKL_SPARE_HOLDS && !hold; i++) {
        if (atomic_load_explicit(&client->spare_holds[i], memory_order_relaxed))
            hold = atomic_exchange(&client->spare_holds[i], NULL);
    }
    return hold;
}

static struct zkl_hold *allocate(struct zkl_client *client, size_t size)
{
    struct zkl_hold *hold = take_spare(client);
    if (hold && hold->data_room >= size) {
        size = hold->data_room;
        memset(hold, 0, sizeof *hold);
    } else {
        free(hold);
        hold = calloc(1, sizeof *hold + size);
    }
    if (hold)
        hold->data_room = size;
    return hold;
}

static void deallocate(struct zkl_hold *hold)
{
    struct zkl_client *client = hold->client;
    for (int i = 0; ZKL_KEEPS_SPARES && i < ZKL_SPARE_HOLDS; i++) {
        struct zkl_hold *none = NULL;
        if (!atomic_load_explicit(&client->spare_holds[i], memory_order_relaxed) &&
            atomic_compare_exchange_strong(&client->spare_holds[i], &none, hold))
            return;
    }
    free(hold);
}

struct zkl_hold *zkl_hold_new(struct zkl_mutex *mutex)
{
    char data[ZKL_OWNER_MAX + 1];
    owner_text(mutex, data);
    size_t size = strlen(data) + 1;
    struct zkl_hold *hold = allocate(mutex->client, size);
    if (!hold)
        return NULL;
    memcpy(hold->data, data, size);
    hold->client = mutex->client;
    hold->lock_path = mutex->lock_path;
    hold->mutex = mutex;
    atomic_init(&hold->refs, 1);
    atomic_init(&hold->lost, false);
    atomic_init(&hold->revoked, false);
    atomic_init(&hold->lease_end_boot, 0);
    zkl_waker_init(&hold->waker, woken);
    hold->ended = true;
    hold->note.run = run_note;
    hold->note.owner = mutex;
    zkl_client_ref(hold->client);
    return hold;
}

static void ref(struct zkl_hold *hold)
{
    atomic_fetch_add(&hold->refs, 1);
}

void zkl_hold_unref(struct zkl_hold *hold)
{
    int refs = atomic_fetch_sub(&hold->refs, 1);
    assert(refs > 0);
    if (refs > 1)
        return;
    struct zkl_client *client = hold->client;
    zkl_waker_fini(&hold->waker);
    if (hold->has_lock_path)
        zkl_lock_path_put(client, hold->lock_path);
    deallocate(hold);
    zkl_client_unref(client);
}

static void woken(struct zkl_waker *waker)
{
    zkl_hold_unref((struct zkl_hold *)((char *)waker - offsetof(struct zkl_hold, waker)));
}

void zkl_hold_wake(struct zkl_hold *hold)
{
    while (hold->leader)
        hold = hold->leader;
    if (hold->op) {
        zkl_op_wake(hold->op);
        return;
    }
    if (hold->waker.queued)
        return;
    ref(hold);
    zkl_driver_wake(hold->client->driver, &hold->waker);
}

void zkl_hold_put(struct zkl_hold *hold)
{
    zkl_hold_wake(hold);  /* its reference keeps the hold until the mutex is released, */
    zkl_hold_unref(hold); /* so this one can be dropped here */
}

/* --- the state callback ------------------------------------------------- */

static struct zkl_hold *of_note(struct zkl_note *note)
{
    return (struct zkl_hold *)((char *)note - offsetof(struct zkl_hold, note));
}

void zkl_hold_drop_notes(struct zkl_note *notes)
{
    while (notes) {
        struct zkl_hold *hold = of_note(notes);
        notes = notes->next;
        zkl_hold_unref(hold);
    }
}

static bool is_permit(const struct zkl_hold *hold)
{
    return hold->mutex->semaphore && !hold->mutex->kind;
}

/* The oldest event. False: there is none, or the user freed the mutex, or released the permit and
 * so has its handle no more, perhaps in the last callback. */
static bool take_event(struct zkl_hold *hold, struct zkl_hold_event *event)
{
    zkl_driver_lock(hold->client->driver);
    bool some = hold->event_count > 0 && !hold->client->driver->running_quiesced &&
                !(is_permit(hold) && hold->given_back);
    if (some) {
        event->state = (enum zkl_hold_state)hold->events[0].state;
        event->reason = (enum zkl_reason)hold->events[0].reason;
        hold->event_count--;
        memmove(&hold->events[0], &hold->events[1], sizeof hold->events[0] * hold->event_count);
    }
    zkl_driver_unlock(hold->client->driver);
    return some;
}

static void run_note(struct zkl_note *note)
{
    struct zkl_hold *hold = of_note(note);
    char path[ZKL_PATH_MAX + 1 + ZKL_NODE_NAME_MAX + 1];
    snprintf(path, sizeof path, "%s/%s", hold->lock_path->path, hold->node);
    bool permit = is_permit(hold);
    struct zkl_hold_event event = {.size = sizeof event,
                                   .mutex = permit ? NULL : hold->mutex,
                                   .permit = permit ? (struct zkl_permit *)hold : NULL,
                                   .token = hold->token,
                                   .node_path = path};
    while (take_event(hold, &event))
        hold->fn(&event, hold->fn_arg);
    zkl_hold_unref(hold);
}

static void note_unchecked(struct zkl_hold *hold)
{
    atomic_store(&hold->unchecked, hold->contender.machine.unchecked);
}

void zkl_hold_returned(struct zkl_hold *hold)
{
    assert(zkl_driver_is_locked(hold->client->driver));
    if (hold->returned)
        return;
    hold->returned = true;
    zkl_count_acquired(hold);
    note_unchecked(hold);
    if (hold->contender.machine.suspect) /* since the grant, so it was not reported */
        post_state(hold, ZKL_HOLD_SUSPECT,
                   hold->contender.machine.unchecked    ? ZKL_REASON_UNCHECKED
                   : hold->contender.machine.unprovable ? ZKL_REASON_WINDOW
                                                        : ZKL_REASON_LINK);
    if (hold->contender.machine.revoked) {
        atomic_store(&hold->revoked, true); /* a member of several may not have been notified */
        post_state(hold, ZKL_HOLD_REVOKE_REQUESTED, ZKL_REASON_NONE);
    }
}

/* SUSPECT and HELD may alternate faster than the callback runs. The oldest two of them then say
 * nothing that the newest do not. A loss and a request to release come once and are never
 * dropped. */
static void drop_pair(struct zkl_hold *hold)
{
    size_t kept = 0, dropped = 0;
    for (size_t i = 0; i < hold->event_count; i++) {
        bool flaps =
            hold->events[i].state == ZKL_HOLD_SUSPECT || hold->events[i].state == ZKL_HOLD_HELD;
        if (flaps && dropped < 2)
            dropped++;
        else
            hold->events[kept++] = hold->events[i];
    }
    hold->event_count = kept;
}

/* For readers that share a node, or its owner. A reader that enters at this moment is counted here,
 * or finds the gate closed: it stays closed until the core has settled, which checks the node after
 * each event of it. */
static bool nobody_is_in(struct zkl_hold *hold)
{
    struct zkl_read_cache *cache = hold->contender.machine.lock_request.read_cache;
    return cache && zkl_read_gate_close(&cache->gate);
}

/* A reader that received SUSPECT and has left must receive HELD too: the next one that enters has
 * the node in that state. */
static bool concerns_nobody(struct zkl_hold *hold, int state)
{
    bool closes_it = state == ZKL_HOLD_HELD && hold->told_suspect;
    return nobody_is_in(hold) && !closes_it;
}

static void post_state(struct zkl_hold *hold, int state, int reason)
{
    if (!hold->returned || concerns_nobody(hold, state))
        return;
    hold->told_suspect =
        state == ZKL_HOLD_SUSPECT || (hold->told_suspect && state == ZKL_HOLD_REVOKE_REQUESTED);
    zkl_count_state(hold, state, reason);
    if (zkl_log_is_on(&hold->client->log))
        zkl_log_state(hold, state, reason);
    if (!hold->fn)
        return;
    if (hold->event_count == ZKL_HOLD_EVENTS)
        drop_pair(hold);
    hold->events[hold->event_count].state = state;
    hold->events[hold->event_count].reason = reason;
    hold->event_count++;
    if (zkl_driver_post(hold->client->driver, &hold->note))
        ref(hold);
}

/* --- news --------------------------------------------------------------- */

static void end_wait(struct zkl_hold *hold, enum zkl_hold_phase phase,
                     const struct zkl_notification *notification)
{
    /* A release because the call fails is no news: the call says why it fails. */
    bool backed_out = phase == ZKL_PHASE_RELEASED && !hold->returned;
    hold->phase = phase;
    if (!backed_out) {
        hold->code = notification->code;
        hold->number = notification->number;
        zkl_text_copy(hold->detail, sizeof hold->detail, notification->detail);
    }
    zkl_hold_wake(hold);
}

static void on_state(struct zkl_hold *hold, const struct zkl_notification *notification)
{
    if (notification->state == ZKL_HOLD_REVOKE_REQUESTED)
        atomic_store(&hold->revoked, true);
    if (notification->state == ZKL_HOLD_LOST) {
        if (atomic_exchange(&hold->lost, true))
            return; /* reported before */
    }
    if (notification->state != ZKL_HOLD_REVOKE_REQUESTED)
        hold->reason = notification->reason;
    note_unchecked(hold);
    post_state(hold, notification->state, notification->reason);
    zkl_hold_wake(hold); /* a call that waits for the window, if any */
}

void zkl_hold_notification(struct zkl_port *port, struct zkl_contender *contender,
                           const struct zkl_notification *notification)
{
    assert(zkl_driver_is_locked(((struct zkl_hold *)contender)->client->driver));
    struct zkl_hold *hold = (struct zkl_hold *)contender;
    (void)port;
    if (zkl_log_is_on(&hold->client->log))
        zkl_log_notification(hold, notification);
    switch (notification->type) {
    case ZKL_NOTIFY_GRANTED:
        hold->token = (uint64_t)contender->machine.czxid;
        memcpy(hold->node, contender->machine.node, sizeof hold->node);
        atomic_store(&hold->lease_end_boot, contender->machine.lease_end_boot);
        end_wait(hold, ZKL_PHASE_GRANTED, notification);
        break;
    case ZKL_NOTIFY_FAILED:
        end_wait(hold, ZKL_PHASE_FAILED, notification);
        break;
    case ZKL_NOTIFY_RELEASED:
        end_wait(hold, ZKL_PHASE_RELEASED, notification);
        break;
    case ZKL_NOTIFY_STATE:
        on_state(hold, notification);
        break;
    case ZKL_NOTIFY_ENDED:
        hold->ended = true;
        zkl_hold_put(hold); /* the core's reference */
        break;
    }
}

/* --- for the owner ------------------------------------------------------ */

int64_t zkl_hold_window_ns(const struct zkl_hold *hold)
{
    hold = zkl_hold_told(hold);
    /* The end first, then the loss: the other way round the window of the next session could be
     * taken for that of a lost hold. */
    int64_t end =
        atomic_load_explicit(&hold->client->driver->window_end_boot, memory_order_acquire);
    if (atomic_load_explicit(&hold->lost, memory_order_acquire) ||
        atomic_load_explicit(&hold->unchecked, memory_order_acquire))
        return 0;
    int64_t lease = atomic_load_explicit(&hold->lease_end_boot, memory_order_acquire);
    int64_t left = (lease != 0 && lease < end ? lease : end) - zkl_clock_boot_ns();
    return left > 0 ? left : 0;
}

int64_t zkl_hold_window_ms(const struct zkl_hold *hold)
{
    return zkl_hold_window_ns(hold) / 1000000;
}

bool zkl_hold_is_lost(const struct zkl_hold *hold)
{
    hold = zkl_hold_told(hold);
    int64_t lease = atomic_load_explicit(&hold->lease_end_boot, memory_order_acquire);
    return atomic_load_explicit(&hold->lost, memory_order_acquire) ||
           (lease != 0 && zkl_clock_boot_ns() >= lease);
}

static int told(enum zkl_reason *out, int state, int reason)
{
    *out = (enum zkl_reason)reason;
    return state;
}

/* A loss that no event has reported yet counts, too. */
int zkl_hold_state_now(const struct zkl_hold *hold, enum zkl_reason *reason)
{
    assert(zkl_driver_is_locked(hold->client->driver));
    hold = zkl_hold_told(hold);
    if (atomic_load(&hold->lost))
        return told(reason, ZKL_HOLD_LOST, hold->reason);
    if (zkl_hold_is_lost(hold))
        return told(reason, ZKL_HOLD_LOST, ZKL_REASON_LEASE_ENDED);
    if (atomic_load(&hold->unchecked))
        return told(reason, ZKL_HOLD_SUSPECT, ZKL_REASON_UNCHECKED);
    if (hold->contender.machine.suspect)
        return told(reason, ZKL_HOLD_SUSPECT, hold->reason ? hold->reason : ZKL_REASON_LINK);
    if (zkl_hold_window_ns(hold) == 0)
        return told(reason, ZKL_HOLD_SUSPECT, ZKL_REASON_WINDOW);
    return told(reason, ZKL_HOLD_HELD, ZKL_REASON_NONE);
}

int zkl_hold_fail_full(const struct zkl_hold *hold)
{
    uint64_t max = hold->client->driver->core.ephemeral_bytes_max; /* constant */
    return zkl_fail(ZKL_EFULL, "%s: with another node the paths of all its nodes exceed %llu bytes",
                    hold->lock_path->path, (unsigned long long)max);
}

int zkl_hold_leave_again(struct zkl_hold *hold)
{
    hold->count--;
    int rc = zkl_hold_is_lost(hold) ? ZKL_ELOST : (zkl_hold_window_ns(hold) == 0 ? ZKL_EDOUBT : 0);
    return rc == 0 ? 0
                   : zkl_fail(rc, "%s: %d more unlock(s) due", hold->lock_path->path, hold->count);
}

bool zkl_hold_lease(struct zkl_hold *hold, int64_t lease_ms)
{
    assert(zkl_driver_is_locked(hold->client->driver));
    bool renewed = !hold->ended && zkl_core_renew(&hold->client->driver->core, zkl_clock_now(),
                                                  &hold->contender, lease_ms * INT64_C(1000000));
    if (renewed)
        atomic_store(&hold->lease_end_boot, hold->contender.machine.lease_end_boot);
    return renewed;
}

int zkl_hold_renew(struct zkl_hold *hold, int64_t lease_ms)
{
    struct zkl_driver *d = hold->client->driver;
    zkl_driver_lock(d);
    bool renewed = zkl_hold_lease(hold, lease_ms);
    zkl_driver_unlock(d);
    return renewed ? 0 : ZKL_ELOST;
}

void zkl_hold_orphaned(struct zkl_hold *hold)
{
    if (hold->base) {
        zkl_seat_leave(hold);
        zkl_seat_free(hold, false);
        return;
    }
    struct zkl_driver *d = hold->client->driver;
    zkl_driver_lock(d);
    hold->mutex->uses--;
    if (!hold->ended)
        zkl_core_abandon(&d->core, zkl_clock_now(), &hold->contender, ZKL_REASON_OWNER_EXITED);
    zkl_count_end(hold);
    zkl_driver_unlock(d);
    zkl_hold_unref(hold);
}

void zkl_hold_begin(struct zkl_hold *hold)
{
    hold->ended = false;
    atomic_store(&hold->lost, false);
    atomic_store(&hold->revoked, false);
    hold->reason = ZKL_REASON_NONE;
    atomic_fetch_add(&hold->refs, 1);
}

/* ZEPHEMERALONLOCALSESSION */
#define OF_A_LOCAL_SESSION (-120)

int zkl_hold_fail_answer(const struct zkl_hold *hold, int rc, const char *path)
{
    const char *why = hold->number == OF_A_LOCAL_SESSION
                          ? ": the session is local to its server, so it can hold no lock: turn "
                            "localSessionsEnabled off at all servers"
                          : "";
    return zkl_fail(rc, "%s: while %s, ZooKeeper returned %d%s", path, hold->detail, hold->number,
                    why);
}
