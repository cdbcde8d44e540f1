/* SPDX-License-Identifier: Apache-2.0
 *
 * Releases a multi-lock. One transaction deletes what the owner releases for the last time, the
 * last path first, and the release ends when the server has answered for all of it. A member that
 * another lock call still holds is left once. multi.c calls this file for a thread and
 * async.c for an operation, without any lock held except where a comment says so. */
#include "multi.h"

#include <stdlib.h>

#include "error.h"

/* 0, and the worse the higher. */
static int badness(int code)
{
    static const int order[] = {0,          ZKL_ENOTOWNER, ZKL_EUNCONFIRMED,
                                ZKL_EACCES, ZKL_EDOUBT,    ZKL_ELOST};
    int at = 0;
    while (order[at] != code && order[at] != ZKL_ELOST)
        at++;
    return at;
}

static void give_up_permits(struct zkl_unlocking *u, size_t i, struct zkl_multi_hold *held)
{
    struct zkl_permit *const *permits = zkl_multi_permits(u->multi, i, held);
    for (int n = 0; n < zkl_multi_member_at(u->multi, i)->count; n++)
        zkl_release_add(&u->release, (struct zkl_place *)permits[n], i);
}

/* ZKL_ENOTOWNER: it was unlocked singly, before. */
static int give_up_handle(struct zkl_unlocking *u, size_t i, struct zkl_multi_hold *held)
{
    struct zkl_place *place = zkl_multi_take_handle(u->multi, i, held);
    if (place)
        zkl_release_add(&u->release, place, i);
    return place ? 0 : ZKL_ENOTOWNER;
}

/* Likewise. */
static int give_up_mutex(struct zkl_unlocking *u, size_t i)
{
    struct zkl_mutex *mutex = zkl_multi_member_at(u->multi, i)->mutex;
    struct zkl_place *place;
    int rc = mutex->kind->give_up(mutex, &place);
    if (place)
        zkl_release_add(&u->release, place, i);
    return rc;
}

void zkl_unlocking_collect(struct zkl_unlocking *u, struct zkl_multi *multi)
{
    struct zkl_multi_hold *held = zkl_owner_find_multi(multi);
    u->multi = multi;
    u->last = held->count == 1;
    u->release = (struct zkl_release){0};
    for (size_t i = 0; i < multi->count; i++) {
        const struct zkl_member *member = zkl_multi_member_at(multi, i);
        u->codes[i] = 0;
        if (zkl_member_is_held_once(member) && !u->last)
            continue;
        if (zkl_member_is_semaphore(member))
            give_up_permits(u, i, held);
        else if (zkl_member_is_held_once(member))
            u->codes[i] = give_up_handle(u, i, held);
        else
            u->codes[i] = give_up_mutex(u, i);
    }
    if (--held->count == 0) {
        zkl_owner_remove_multi(held);
        free(held);
    }
}

void zkl_unlocking_begin(struct zkl_unlocking *u, struct zkl_op *op)
{
    zkl_release_begin(&u->release, op);
}

bool zkl_unlocking_is_over(const struct zkl_unlocking *u)
{
    return zkl_release_is_over(&u->release);
}

void zkl_unlocking_wait(struct zkl_unlocking *u)
{
    struct zkl_driver *d = u->multi->client->driver;
    zkl_driver_lock(d);
    zkl_release_begin(&u->release, NULL);
    while (!zkl_release_is_over(&u->release)) /* bounded by the core: a lost link, or the window */
        zkl_place_wait(u->release.first, ZKL_NO_DEADLINE);
    zkl_driver_unlock(d);
}

int zkl_unlocking_end(struct zkl_unlocking *u, int *codes)
{
    struct zkl_driver *d = u->multi->client->driver;
    struct zkl_place *next;
    int worst = 0;
    zkl_driver_lock(d);
    zkl_release_end(&u->release);
    zkl_driver_unlock(d);
    for (struct zkl_place *place = u->release.first; place; place = place->release_next) {
        int *code = &u->codes[place->member];
        *code = badness(place->code) > badness(*code) ? place->code : *code;
    }
    for (size_t i = 0; i < u->multi->count; i++) {
        if (badness(u->codes[i]) > badness(worst)) {
            worst = u->codes[i];
            zkl_fail(worst, "%s", zkl_member_path(zkl_multi_member_at(u->multi, i)));
        }
        if (codes)
            codes[u->multi->order[i]] = u->codes[i];
    }
    for (struct zkl_place *place = u->release.first; place; place = next) {
        next = place->release_next;
        if (worst != 0 && place->code == worst)
            zkl_mutex_fail_unlock(place, worst);
        zkl_place_unref(place);
    }
    if (u->last)
        atomic_fetch_sub(&u->multi->uses, 1);
    return worst;
}
