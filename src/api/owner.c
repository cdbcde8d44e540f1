/* SPDX-License-Identifier: Apache-2.0
 * The ownership map: each thread's own holds, in thread-local memory, so that a re-entry takes no
 * lock and no other thread, not even one that gets the same pthread_t later, can be taken for the
 * owner. */
#include <pthread.h>

#include "hold.h"

#define BUCKETS 64

static _Thread_local struct zkl_hold *holds[BUCKETS];
static _Thread_local struct zkl_multi_hold *multis;
static _Thread_local bool prepared;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_error;

static struct zkl_hold **bucket(const struct zkl_root *root)
{
    return &holds[((uintptr_t)root >> 5) % BUCKETS];
}

/* Runs when a thread ends: what it still holds is given up. */
static void thread_exits(void *unused)
{
    (void)unused;
    prepared = false; /* another destructor may lock again: then this one is due once more */
    while (multis) {
        struct zkl_multi_hold *held = multis;
        multis = held->next;
        zkl_multi_orphaned(held);
    }
    for (size_t i = 0; i < BUCKETS; i++) {
        while (holds[i]) {
            struct zkl_hold *hold = holds[i];
            holds[i] = hold->next;
            if (hold->client->fork_generation == zkl_fork_generation())
                zkl_hold_orphaned(hold);
        }
    }
}

struct zkl_multi_hold *zkl_owner_find_multi(const struct zkl_multi *multi)
{
    struct zkl_multi_hold *held = multis;
    while (held && held->multi != multi)
        held = held->next;
    return held;
}

void zkl_owner_add_multi(struct zkl_multi_hold *held)
{
    held->next = multis;
    multis = held;
}

void zkl_owner_remove_multi(struct zkl_multi_hold *held)
{
    struct zkl_multi_hold **at = &multis;
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
}

static void make_key(void)
{
    key_error = pthread_key_create(&key, thread_exits);
}

int zkl_owner_prepare(void)
{
    if (prepared)
        return 0;
    pthread_once(&once, make_key);
    if (key_error != 0 || pthread_setspecific(key, holds) != 0)
        return ZKL_ESYSTEM;
    prepared = true;
    return 0;
}

struct zkl_hold *zkl_owner_find(const struct zkl_root *root, const struct zkl_mutex *mutex)
{
    struct zkl_hold *hold = *bucket(root);
    while (hold && (hold->root != root || hold->mutex != mutex))
        hold = hold->next;
    return hold;
}

struct zkl_hold *zkl_owner_find_other(const struct zkl_mutex *mutex)
{
    struct zkl_hold *hold = *bucket(mutex->root);
    while (hold && (hold->root != mutex->root || hold->mutex == mutex ||
                    !zkl_naming_meets(&hold->mutex->naming, &mutex->naming)))
        hold = hold->next;
    return hold;
}

void zkl_owner_add(struct zkl_hold *hold)
{
    struct zkl_hold **head = bucket(hold->root);
    hold->next = *head;
    *head = hold;
}

void zkl_owner_remove(struct zkl_hold *hold)
{
    struct zkl_hold **at = bucket(hold->root);
    while (*at != hold)
        at = &(*at)->next;
    *at = hold->next;
}
