/* SPDX-License-Identifier: Apache-2.0
 * The ownership map: the holds of one owner. A thread's own map is in thread-local memory, so a
 * re-entry takes no lock, and no other thread can be mistaken for the owner, not even one that gets
 * the same pthread_t later. An owner that belongs to no thread (async.h) has a lock, because its
 * operations end on other threads than those that use it. */
#include <zklock/async.h>

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "cached_reader.h"
#include "error.h"
#include "owner.h"

#define BUCKETS 64

struct map {
    struct zkl_hold *holds[BUCKETS];
    struct zkl_multi_hold *multis;
    pthread_mutex_t *mu; /* NULL: a thread's own */
};

struct zkl_owner {
    struct map map;
    pthread_mutex_t mu;
    unsigned fork_generation;
    atomic_bool busy; /* a multi-lock's operation */
};

static _Thread_local struct {
    struct map own;
    struct zkl_owner *in_use; /* instead */
    bool prepared;
    struct zkl_hold *spare; /* memory for the next hold, or NULL */
} self;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_error;

/* The owner that the calling thread uses; NULL: none. A forked child uses none of its parent's,
 * whose lock may have been another thread's in that moment. */
static struct zkl_owner *in_use(void)
{
    struct zkl_owner *owner = self.in_use;
    return owner && owner->fork_generation == zkl_fork_generation() ? owner : NULL;
}

static struct map *lock_map(void)
{
    struct zkl_owner *owner = in_use();
    struct map *map = owner ? &owner->map : &self.own;
    if (map->mu)
        pthread_mutex_lock(map->mu);
    return map;
}

static void unlock_map(struct map *map)
{
    if (map->mu)
        pthread_mutex_unlock(map->mu);
}

static struct zkl_hold **bucket(struct map *map, const struct zkl_lock_path *lock_path)
{
    return &map->holds[((uintptr_t)lock_path >> 5) % BUCKETS];
}

/* --- owners ------------------------------------------------------------- */

int zkl_owner_new(struct zkl_owner **owner)
{
    if (!owner)
        return zkl_fail(ZKL_EINVAL, "zkl_owner_new: owner is NULL");
    struct zkl_owner *o = calloc(1, sizeof *o);
    if (!o)
        return zkl_fail(ZKL_ENOMEM, "zkl_owner_new");
    zkl_fork_watch();
    o->fork_generation = zkl_fork_generation();
    pthread_mutex_init(&o->mu, NULL);
    atomic_init(&o->busy, false);
    o->map.mu = &o->mu;
    *owner = o;
    return 0;
}

static bool has_something(struct zkl_owner *owner)
{
    pthread_mutex_lock(&owner->mu);
    bool some = owner->map.multis || atomic_load(&owner->busy);
    for (size_t i = 0; i < BUCKETS; i++)
        some = some || owner->map.holds[i];
    pthread_mutex_unlock(&owner->mu);
    return some;
}

int zkl_owner_free(struct zkl_owner *owner)
{
    if (!owner)
        return 0;
    int rc = zkl_owner_check(owner, "zkl_owner_free");
    if (rc != 0)
        return rc;
    if (owner == in_use())
        return zkl_fail(
            ZKL_EBUSY,
            "zkl_owner_free: the calling thread uses the owner: restore the previous one first");
    if (has_something(owner))
        return zkl_fail(
            ZKL_EBUSY,
            "zkl_owner_free: the owner holds a lock, or an operation is acquiring one for it");
    pthread_mutex_destroy(&owner->mu);
    free(owner);
    return 0;
}

struct zkl_owner *zkl_owner_use(struct zkl_owner *owner)
{
    struct zkl_owner *before = in_use();
    self.in_use = owner;
    return before;
}

void zkl_owner_put_back(struct zkl_owner *before)
{
    self.in_use = before;
}

int zkl_owner_check(const struct zkl_owner *owner, const char *call)
{
    if (!owner)
        return zkl_fail(ZKL_EINVAL, "%s: owner is NULL", call);
    if (owner->fork_generation != zkl_fork_generation())
        return zkl_fail(ZKL_EFORK, "%s: the parent process created the owner", call);
    return 0;
}

bool zkl_owner_make_busy(struct zkl_owner *owner)
{
    return !atomic_exchange(&owner->busy, true);
}

void zkl_owner_make_idle(struct zkl_owner *owner)
{
    bool was_busy = atomic_exchange(&owner->busy, false);
    assert(was_busy);
    (void)was_busy;
}

int zkl_owner_check_idle(const struct zkl_owner *owner, const char *call)
{
    int rc = zkl_owner_check(owner, call);
    if (rc == 0 && atomic_load(&((struct zkl_owner *)owner)->busy))
        rc = zkl_fail(ZKL_EBUSY, "%s: the operation of a multi-lock uses the owner", call);
    return rc;
}

/* --- threads ------------------------------------------------------------ */

static void orphan(struct zkl_hold *hold)
{
    if (hold->shared) {
        zkl_cached_leave_gate(hold->mutex);
        return;
    }
    hold->place->reentries = hold->reentries;
    zkl_place_orphaned(hold->place);
}

/* Runs when a thread ends: what it still holds is given up. */
static void thread_exits(void *unused)
{
    (void)unused;
    self.prepared = false; /* another destructor may lock again: then this one is due once more */
    free(self.spare);
    self.spare = NULL;
    while (self.own.multis) {
        struct zkl_multi_hold *held = self.own.multis;
        self.own.multis = held->next;
        zkl_multi_orphaned(held);
    }
    for (size_t i = 0; i < BUCKETS; i++) {
        while (self.own.holds[i]) {
            struct zkl_hold *hold = self.own.holds[i];
            self.own.holds[i] = hold->next;
            if (hold->mutex->client->fork_generation == zkl_fork_generation())
                orphan(hold);
            free(hold);
        }
    }
}

static void make_key(void)
{
    key_error = pthread_key_create(&key, thread_exits);
}

int zkl_owner_prepare(void)
{
    if (self.prepared || in_use())
        return 0;
    pthread_once(&once, make_key);
    if (key_error != 0 || pthread_setspecific(key, &self) != 0)
        return ZKL_ESYSTEM;
    self.prepared = true;
    return 0;
}

/* --- multi-locks -------------------------------------------------------- */

struct zkl_multi_hold *zkl_owner_find_multi(const struct zkl_multi *multi)
{
    struct map *map = lock_map();
    struct zkl_multi_hold *held = map->multis;
    while (held && held->multi != multi)
        held = held->next;
    unlock_map(map);
    return held;
}

void zkl_owner_add_multi(struct zkl_multi_hold *held)
{
    struct map *map = lock_map();
    held->next = map->multis;
    map->multis = held;
    unlock_map(map);
}

void zkl_owner_remove_multi(struct zkl_multi_hold *held)
{
    struct map *map = lock_map();
    struct zkl_multi_hold **at = &map->multis;
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    unlock_map(map);
}

/* --- holds -------------------------------------------------------------- */

int zkl_hold_new(struct zkl_hold **hold, struct zkl_mutex *mutex)
{
    int rc = zkl_owner_prepare();
    if (rc != 0)
        return zkl_fail(rc, "%s: the system has no thread-specific key left",
                        mutex->lock_path->path);
    struct zkl_hold *h = self.spare ? self.spare : malloc(sizeof *h);
    if (!h)
        return zkl_fail(ZKL_ENOMEM, "%s", mutex->lock_path->path);
    self.spare = NULL;
    *h = (struct zkl_hold){.mutex = mutex};
    *hold = h;
    return 0;
}

/* A thread keeps one for the next time: the end of a thread that was prepared frees it. */
void zkl_hold_free(struct zkl_hold *hold)
{
    if (ZKL_KEEPS_SPARES && self.prepared && !self.spare)
        self.spare = hold;
    else
        free(hold);
}

struct zkl_hold *zkl_owner_find(const struct zkl_mutex *mutex)
{
    struct map *map = lock_map();
    struct zkl_hold *hold = *bucket(map, mutex->lock_path);
    while (hold && (hold->mutex != mutex || !hold->place))
        hold = hold->next;
    unlock_map(map);
    return hold;
}

static bool meets(const struct zkl_hold *hold, const struct zkl_mutex *mutex)
{
    return hold->mutex->lock_path == mutex->lock_path &&
           zkl_naming_meets(&hold->mutex->naming, &mutex->naming);
}

/* In one go: what comes meanwhile is seen as to come, or as there. */
bool zkl_owner_look(const struct zkl_mutex *mutex, struct zkl_hold **own, struct zkl_hold **other)
{
    struct map *map = lock_map();
    bool comes = false;
    *own = *other = NULL;
    for (struct zkl_hold *hold = *bucket(map, mutex->lock_path); hold; hold = hold->next) {
        if (!meets(hold, mutex))
            continue;
        if (!hold->place)
            comes = true;
        else if (hold->mutex == mutex)
            *own = hold;
        else if (!*other)
            *other = hold;
    }
    unlock_map(map);
    return comes;
}

void zkl_owner_add(struct zkl_hold *hold)
{
    struct map *map = lock_map();
    struct zkl_hold **head = bucket(map, hold->mutex->lock_path);
    hold->next = *head;
    *head = hold;
    unlock_map(map);
}

void zkl_owner_came(struct zkl_hold *hold, struct zkl_place *place)
{
    struct map *map = lock_map();
    hold->place = place;
    unlock_map(map);
}

void zkl_owner_remove(struct zkl_hold *hold)
{
    struct map *map = lock_map();
    struct zkl_hold **at = bucket(map, hold->mutex->lock_path);
    while (*at != hold)
        at = &(*at)->next;
    *at = hold->next;
    unlock_map(map);
}
