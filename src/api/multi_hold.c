/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of an owner's multi-lock that belongs to no thread: permits, and mutexes of semaphores.
 * This file releases them when a thread that held them ends (owner.c). The other members are holds
 * in the owner's own map. The caller holds no lock. */
#include "multi.h"

#include <stdlib.h>

struct zkl_permit **zkl_multi_permits(const struct zkl_multi *multi, size_t i,
                                      struct zkl_multi_hold *held)
{
    return &held->permits[multi->permit_at[multi->order[i]]];
}

bool zkl_multi_has_handle(const struct zkl_multi *multi, size_t i, struct zkl_multi_hold *held)
{
    const struct zkl_place *own = (const struct zkl_place *)*zkl_multi_permits(multi, i, held);
    return zkl_multi_member_at(multi, i)->mutex->semaphore->place == own;
}

/* This owner must not release what another thread has locked through the handle since then. */
struct zkl_place *zkl_multi_take_handle(const struct zkl_multi *multi, size_t i,
                                        struct zkl_multi_hold *held)
{
    struct zkl_place *own = (struct zkl_place *)*zkl_multi_permits(multi, i, held);
    struct zkl_place *taken = zkl_semaphore_take(zkl_multi_member_at(multi, i)->mutex, own);
    zkl_place_unref(own);
    return taken;
}

static void let_handle_go(const struct zkl_multi *multi, size_t i, struct zkl_multi_hold *held)
{
    struct zkl_place *place = zkl_multi_take_handle(multi, i, held);
    if (!place)
        return;
    zkl_place_let_go(place);
    zkl_place_unref(place);
}

static void let_go(const struct zkl_multi *multi, size_t i, struct zkl_multi_hold *held)
{
    const struct zkl_member *member = zkl_multi_member_at(multi, i);
    if (!zkl_member_is_semaphore(member)) {
        let_handle_go(multi, i, held);
        return;
    }
    for (int n = member->count; n-- > 0;) {
        struct zkl_place *place = (struct zkl_place *)zkl_multi_permits(multi, i, held)[n];
        zkl_place_let_go(place);
        zkl_place_unref(place);
    }
}

/* Mutexes are released as the holds that they are; members that belong to no thread are released
 * here. */
void zkl_multi_orphaned(struct zkl_multi_hold *held)
{
    struct zkl_multi *multi = held->multi;
    if (multi->client->fork_generation == zkl_fork_generation()) {
        for (size_t i = multi->count; i-- > 0;) {
            if (zkl_member_is_held_once(zkl_multi_member_at(multi, i)))
                let_go(multi, i, held);
        }
        atomic_fetch_sub(&multi->uses, 1);
    }
    free(held);
}
