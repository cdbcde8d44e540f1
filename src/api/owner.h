/* SPDX-License-Identifier: Apache-2.0
 * The holds of one owner: the calling thread, or the owner that it uses (zkl_owner_use). */
#ifndef ZKL_API_OWNER_H
#define ZKL_API_OWNER_H

#include "place.h"

struct zkl_owner;

/* 0 or ZKL_ESYSTEM; before any request to the server. */
int zkl_owner_prepare(void);
/* Without a place yet; the owner's map can have it. 0, ZKL_ENOMEM or ZKL_ESYSTEM, said. */
int zkl_hold_new(struct zkl_hold **hold, struct zkl_mutex *mutex);
void zkl_hold_free(struct zkl_hold *hold);
/* The owner calls this: one more unlock is due. */
static inline void zkl_hold_enter(struct zkl_hold *hold)
{
    hold->reentries += hold->count > 0;
    hold->count++;
}
/* Undoes zkl_hold_enter for a re-entry that was never reported. */
static inline void zkl_hold_leave(struct zkl_hold *hold)
{
    hold->count--;
    hold->reentries -= hold->count > 0;
}

/* The hold through this handle; NULL: there is none. */
struct zkl_hold *zkl_owner_find(const struct zkl_mutex *mutex);
/* That, and one through another handle that would be waited for, or NULL. True: an operation under
 * way will give this owner one. */
bool zkl_owner_look(const struct zkl_mutex *mutex, struct zkl_hold **own, struct zkl_hold **other);
void zkl_owner_add(struct zkl_hold *hold);
/* It was added without a place, and is found from here on. */
void zkl_owner_came(struct zkl_hold *hold, struct zkl_place *place);
void zkl_owner_remove(struct zkl_hold *hold);

/* Its multi-locks. */
struct zkl_multi_hold {
    struct zkl_multi_hold *next;
    struct zkl_multi *multi;
    int count;
    /* of the members that are held once; a semaphore's mutex with a reference of its own */
    struct zkl_permit *permits[];
};
struct zkl_multi_hold *zkl_owner_find_multi(const struct zkl_multi *multi);
void zkl_owner_add_multi(struct zkl_multi_hold *held);
void zkl_owner_remove_multi(struct zkl_multi_hold *held);
/* questions.c: the nth of all holds that the calling owner has by it, with a reference; NULL: there are
 * no more. Or ZKL_ENOTOWNER, ZKL_EFORK. Without the mutex. */
int zkl_multi_nth_hold(struct zkl_multi *multi, size_t n, const char *call,
                       struct zkl_place **place);
/* multi_hold.c: the thread ended. */
void zkl_multi_orphaned(struct zkl_multi_hold *held);

/* As zkl_owner_use, without reading the previous owner: the callback of the operation that it began
 * may have freed it by now. */
void zkl_owner_put_back(struct zkl_owner *before);
/* 0, or why this owner is of no use to call: ZKL_EINVAL, ZKL_EFORK; and (idle) ZKL_EBUSY. */
int zkl_owner_check_idle(const struct zkl_owner *owner, const char *call);
int zkl_owner_check(const struct zkl_owner *owner, const char *call);
/* A multi-lock's operation has an owner for itself: false: another one has. */
bool zkl_owner_make_busy(struct zkl_owner *owner);
void zkl_owner_make_idle(struct zkl_owner *owner);

#endif
