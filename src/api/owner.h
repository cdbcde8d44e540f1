/* SPDX-License-Identifier: Apache-2.0
 * The holds of one owner: the calling thread, or the owner that it uses (zkl_owner_use). */
#ifndef ZKL_API_OWNER_H
#define ZKL_API_OWNER_H

#include "place.h"

struct zkl_owner;

/* The hold of this path through this handle, and one through another handle that would be waited
 * for. */
struct zkl_place *zkl_owner_find(const struct zkl_lock_path *lock_path,
                                 const struct zkl_mutex *mutex);
struct zkl_place *zkl_owner_find_other(const struct zkl_mutex *mutex);
/* An operation under way will give this owner a hold that the mutex would wait for. */
bool zkl_owner_awaits(const struct zkl_mutex *mutex);
/* 0 or ZKL_ESYSTEM; before any request to the server. */
int zkl_owner_prepare(void);
/* The owner is the calling thread itself, whose end the library notices. */
bool zkl_owner_is_thread(void);
void zkl_owner_add(struct zkl_place *place);
/* It was added with to_come, and is found from here on. */
void zkl_owner_came(struct zkl_place *place);
void zkl_owner_remove(struct zkl_place *place);
/* The operation will give another hold. */
void zkl_owner_replace(struct zkl_place *place, struct zkl_place *other);

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
/* multi.c: the nth of all holds that the calling owner has by it, with a reference; NULL: there are
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
