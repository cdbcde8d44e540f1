/* SPDX-License-Identifier: Apache-2.0 */
#include "ask.h"

#include <stdlib.h>

#include "driver/clock.h"
#include "error.h"

#define MS INT64_C(1000000)
#define MIDWAY_MS 1000 /* so long a try waits for somebody who is just acquiring */
#define LOOK_MS 100

struct zkl_hold *zkl_ask_hold(const struct zkl_ask *ask, size_t i)
{
    return (struct zkl_hold *)ask->members[i];
}

static void free_ask(struct zkl_ask *ask)
{
    struct zkl_client *client = ask->client;
    for (size_t i = 0; i < ask->count; i++)
        zkl_hold_unref(zkl_ask_hold(ask, i));
    zkl_waker_fini(&ask->ending);
    zkl_root_put(client, ask->gate);
    free(ask);
    zkl_client_unref(client);
}

void zkl_ask_unref(struct zkl_ask *ask)
{
    if (atomic_fetch_sub(&ask->refs, 1) == 1)
        free_ask(ask);
}

static void ended(struct zkl_waker *waker)
{
    zkl_ask_unref((struct zkl_ask *)((char *)waker - offsetof(struct zkl_ask, ending)));
}

static bool add_holds(struct zkl_ask *ask, struct zkl_mutex *mutex, size_t count)
{
    for (; ask->count < count; ask->count++) {
        struct zkl_hold *hold = zkl_hold_new(mutex);
        if (!hold)
            return false;
        hold->ask = ask;
        ask->members[ask->count] = &hold->contender;
        hold->leader = ask->count > 0 ? zkl_ask_hold(ask, 0) : NULL;
    }
    return true;
}

struct zkl_ask *zkl_ask_new(struct zkl_semaphore *semaphore, size_t count)
{
    struct zkl_ask *ask = calloc(1, sizeof *ask + count * sizeof *ask->members);
    if (!ask)
        return NULL;
    struct zkl_client *client = semaphore->base.client;
    ask->client = client;
    ask->semaphore = semaphore;
    ask->gate = semaphore->gate;
    atomic_init(&ask->refs, 1);
    zkl_waker_init(&ask->ending, ended);
    zkl_client_ref(client);
    bool complete = add_holds(ask, &semaphore->base, count);
    zkl_driver_lock(client->driver);
    ask->path = semaphore->path->path;
    ask->declared = semaphore->view.permits;
    ask->gate->refs++;
    semaphore->base.root->refs += ask->count; /* each hold's, given up with it */
    for (size_t i = 0; i < ask->count; i++)
        zkl_ask_hold(ask, i)->has_root = true;
    zkl_driver_unlock(client->driver);
    if (complete)
        return ask;
    zkl_ask_unref(ask);
    return NULL;
}

/* --- what the core says ------------------------------------------------- */

static void told(struct zkl_permits *permits, const struct zkl_news *news)
{
    struct zkl_ask *ask = (struct zkl_ask *)permits;
    if (news->type == ZKL_NEWS_ENDED) {
        /* Of a failure the core has none of them; some may never have begun. */
        for (size_t i = 0; i < ask->count; i++)
            zkl_ask_hold(ask, i)->ended |= zkl_ask_hold(ask, i)->phase == ZKL_PHASE_FAILED;
        zkl_hold_wake(zkl_ask_hold(ask, 0));
        zkl_driver_wake(ask->client->driver, &ask->ending);
        return;
    }
    for (size_t i = 0; i < ask->count; i++) {
        if (news->type == ZKL_NEWS_GRANTED) /* from here on it is the core's by itself */
            atomic_fetch_add(&zkl_ask_hold(ask, i)->refs, 1);
        zkl_hold_news(ask->client, ask->members[i], news);
    }
}

/* --- the call ----------------------------------------------------------- */

static struct zkl_wish wish_of(const struct zkl_ask *ask, const struct zkl_wait *wait)
{
    const struct zkl_mutex *base = &ask->semaphore->base;
    return (struct zkl_wish){.root = base->root->path,
                             .data = zkl_ask_hold(ask, 0)->data,
                             .naming = base->naming,
                             .try_only = (wait->flags & ZKL_WAIT_TRY) != 0,
                             .try_sync = (wait->flags & ZKL_WAIT_SYNC) != 0,
                             .watch_own = base->fn != NULL || base->revocable,
                             .posted = base->posted_unlock,
                             .lease_ns = wait->lease_ms * MS};
}

void zkl_ask_begin(struct zkl_ask *ask, const struct zkl_wait *wait)
{
    struct zkl_time now = zkl_clock_now();
    for (size_t i = 0; i < ask->count; i++) {
        struct zkl_hold *hold = zkl_ask_hold(ask, i);
        hold->phase = ZKL_PHASE_WAITING;
        hold->ended = false;
        atomic_store(&hold->lost, false);
        atomic_store(&hold->revoked, false);
    }
    if (wait->flags & ZKL_WAIT_TRY)
        ask->busy_at = now.mono_ns + MIDWAY_MS * MS;
    ask->permits.gate_root = ask->gate->path;
    ask->permits.wish = wish_of(ask, wait);
    ask->permits.members = ask->members;
    ask->permits.count = ask->count;
    ask->permits.view = &ask->semaphore->view;
    ask->permits.told = told;
    atomic_fetch_add(&ask->refs, 1); /* the core's, until ENDED */
    zkl_permits_acquire(&ask->client->driver->core, now, &ask->permits);
}

bool zkl_ask_is_over(const struct zkl_ask *ask)
{
    return ask->permits.state == ZKL_PERMITS_IDLE && !ask->ending.queued;
}

bool zkl_ask_is_busy(const struct zkl_ask *ask, int64_t now_ns)
{
    return ask->busy_at != 0 && now_ns >= ask->busy_at && zkl_permits_is_behind(&ask->permits);
}

int64_t zkl_ask_next_look(const struct zkl_ask *ask, int64_t now_ns)
{
    if (ask->busy_at == 0)
        return INT64_MAX;
    return now_ns < ask->busy_at ? ask->busy_at : now_ns + LOOK_MS * MS;
}

void zkl_ask_returned(struct zkl_ask *ask, int rc)
{
    if (rc == 0 && ask->semaphore->is_mutex)
        ask->semaphore->hold = zkl_ask_hold(ask, 0); /* with the owner's reference */
    ask->semaphore = NULL;
    for (size_t i = 0; i < ask->count; i++) {
        struct zkl_hold *hold = zkl_ask_hold(ask, i);
        hold->ask = NULL;
        hold->leader = NULL;
        hold->count = 1;
        if (rc == 0)
            atomic_fetch_add(&hold->refs, 1); /* the owner's */
    }
}

int zkl_ask_fail(const struct zkl_ask *ask, int rc)
{
    const struct zkl_hold *hold = zkl_ask_hold(ask, 0);
    const char *path = ask->path;
    if (rc == ZKL_EMISMATCH && hold->number == 0)
        return zkl_fail(rc, "%s: no number of permits stands there, and none was given", path);
    if (rc == ZKL_EMISMATCH)
        return zkl_fail(rc, "%s has %d permits, not %d", path, hold->number, ask->declared);
    if (rc == ZKL_EINVAL)
        return zkl_fail(rc, "%s has %d permits: %zu at once can't be had", path, hold->number,
                        ask->count);
    if (rc == ZKL_EACCES)
        return zkl_fail(rc, "%s: no %s there or below", path, hold->detail);
    if (rc == ZKL_EEXHAUSTED)
        return zkl_fail(rc, "%s: its inner lock is blocked by %s", path, hold->detail);
    if (zkl_error_is_answer(rc))
        return zkl_fail(rc, "%s: while %s, ZooKeeper said %d", path, hold->detail, hold->number);
    return zkl_fail(rc, "%s", path);
}
