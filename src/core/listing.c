/* SPDX-License-Identifier: Apache-2.0
 *
 * Holders and waiters: the children of a lock, judged as contenders judge each other. This file
 * works on the caller's array, which it sorts and fills. Pure, without a lock. src/api/inspect.c
 * calls it. */
#include "listing.h"

#include <stdlib.h>
#include <string.h>

#include "queue.h"

/* --- each by itself ----------------------------------------------------- */

static enum zkl_entry_access access_of(const struct zkl_listed *e)
{
    return e->in == ZKL_IN_LOCKS ? ZKL_ENTRY_ACCESS_ENTRY : zkl_roles[e->place.role].access;
}

static void recognise(struct zkl_listed *e)
{
    bool known;
    if (e->in == ZKL_IN_LEASES) {
        e->naming = (struct zkl_naming){.role = ZKL_ROLE_PERMIT};
        known = zkl_name_parse(e->name, &e->naming, &e->place);
    } else {
        known = zkl_name_recognise(e->name, &e->naming, &e->place);
    }
    e->role = known ? ZKL_ENTRY_ROLE_WAITER : ZKL_ENTRY_ROLE_FOREIGN;
    e->access = known ? access_of(e) : ZKL_ENTRY_ACCESS_NONE;
    e->waits_for = ZKL_NO_ENTRY;
}

/* Contenders by their place in the queue, permits before those who ask for one; then the rest. */
static int by_node_name(const void *left, const void *right)
{
    const struct zkl_listed *a = left, *b = right;
    bool foreign_a = a->role == ZKL_ENTRY_ROLE_FOREIGN,
         foreign_b = b->role == ZKL_ENTRY_ROLE_FOREIGN;
    if (foreign_a != foreign_b)
        return foreign_a - foreign_b;
    if (a->in != b->in)
        return a->in < b->in ? -1 : 1;
    return foreign_a ? strcmp(a->name, b->name)
                     : zkl_queue_compare(a->place.sequence, a->name, b->place.sequence, b->name);
}

/* --- against each other ------------------------------------------------- */

static bool same_queue(const struct zkl_listed *a, const struct zkl_listed *b)
{
    return a->in == b->in && zkl_naming_meets(&a->naming, &b->naming);
}

/* The list is in the order of the queue. */
static void judge_queue(struct zkl_listed *list, size_t contenders)
{
    for (size_t i = 0; i < contenders; i++) {
        struct zkl_listed *e = &list[i];
        if (e->in == ZKL_IN_LEASES)
            continue;
        size_t before = i;
        while (before > 0 && !(same_queue(e, &list[before - 1]) &&
                               zkl_queue_waits_for(e->naming.role, e->place.sequence, e->name,
                                                   &list[before - 1].place, list[before - 1].name)))
            before--;
        e->waits_for = before > 0 ? before - 1 : ZKL_NO_ENTRY;
        if (before == 0 && e->in == ZKL_IN_LOCK_PATH)
            e->role = ZKL_ENTRY_ROLE_HOLDER;
    }
}

/* The first in the inner queue has made its node in "leases" before it has the permit. */
static bool is_being_asked_for(const struct zkl_listed *newest, const struct zkl_listed *asker)
{
    return newest->session != 0 && newest->session == asker->session;
}

static void judge_leases(struct zkl_listed *list, size_t contenders, int permits)
{
    size_t first = 0; /* behind a mutex that shares the path by mistake */
    while (first < contenders && list[first].in == ZKL_IN_LOCK_PATH)
        first++;
    size_t end = first;
    while (end < contenders && list[end].in == ZKL_IN_LEASES)
        end++;
    size_t held = end - first;
    if (permits > 0 && held > (size_t)permits)
        held = (size_t)permits;
    if (permits == 0 && held > 0 && end < contenders &&
        is_being_asked_for(&list[end - 1], &list[end]))
        held--;
    for (size_t i = first; i < first + held; i++)
        list[i].role = ZKL_ENTRY_ROLE_HOLDER;
}

static enum zkl_lock_kind kind_of(const struct zkl_listed *list, size_t contenders)
{
    enum zkl_lock_kind kind = ZKL_LOCK_KIND_NONE;
    for (size_t i = 0; i < contenders; i++) {
        if (list[i].in != ZKL_IN_LOCK_PATH)
            return ZKL_LOCK_KIND_SEMAPHORE;
        bool shares =
            list[i].access == ZKL_ENTRY_ACCESS_READ || list[i].access == ZKL_ENTRY_ACCESS_WRITE;
        if (shares || kind == ZKL_LOCK_KIND_NONE)
            kind = shares ? ZKL_LOCK_KIND_RWLOCK : ZKL_LOCK_KIND_MUTEX;
    }
    return kind;
}

/* --- holders first ------------------------------------------------------ */

static int by_role(const void *left, const void *right)
{
    const struct zkl_listed *a = left, *b = right;
    if (a->role != b->role)
        return a->role < b->role ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static size_t find_order(const struct zkl_listed *list, size_t from, size_t to, size_t order)
{
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (list[middle].order < order)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Each part is in the order that waits_for speaks of. */
static void put_holders_first(struct zkl_listed *list, size_t count, size_t contenders)
{
    size_t holders = 0;
    for (size_t i = 0; i < count; i++) {
        list[i].order = i;
        holders += list[i].role == ZKL_ENTRY_ROLE_HOLDER;
    }
    qsort(list, count, sizeof *list, by_role);
    for (size_t i = 0; i < contenders; i++) {
        size_t order = list[i].waits_for;
        if (order == ZKL_NO_ENTRY)
            continue;
        size_t at = find_order(list, 0, holders, order);
        if (at == holders || list[at].order != order)
            at = find_order(list, holders, contenders, order);
        list[i].waits_for = at;
    }
}

enum zkl_lock_kind zkl_listing_judge(struct zkl_listed *list, size_t count, int permits)
{
    size_t contenders = 0;
    for (size_t i = 0; i < count; i++) {
        recognise(&list[i]);
        contenders += list[i].role != ZKL_ENTRY_ROLE_FOREIGN;
    }
    if (count == 0)
        return ZKL_LOCK_KIND_NONE;
    qsort(list, count, sizeof *list, by_node_name);
    judge_queue(list, contenders);
    judge_leases(list, contenders, permits);
    put_holders_first(list, count, contenders);
    return kind_of(list, contenders);
}
