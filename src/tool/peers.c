/* SPDX-License-Identifier: Apache-2.0
 *
 * How other lock libraries interpret a path: docs/wire-format.md, applied to the children that the
 * path has now. This file judges only their names, and owns nothing. One thread; doctor.c and
 * status_text.c call it. */
#include "peers.h"

#include <stdio.h>
#include <string.h>

/* Which libraries' contenders are there, and what else. */
struct mix {
    bool curator, kazoo, recipe;
    bool mutex, rwlock; /* of those with Curator's names */
    bool queue;         /* whatever their names */
    bool foreign;
};

static struct mix mix_of(const struct zkl_inspection *inside)
{
    struct mix m = {0};
    for (size_t i = 0; i < inside->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(inside, i);
        bool curator = strcmp(e->peer, "curator") == 0;
        m.foreign |= e->role == ZKL_ENTRY_ROLE_FOREIGN;
        m.curator |= curator;
        m.kazoo |= strcmp(e->peer, "kazoo") == 0;
        m.recipe |= strcmp(e->peer, "zookeeper") == 0;
        m.queue |= e->access == ZKL_ENTRY_ACCESS_LOCK || e->access == ZKL_ENTRY_ACCESS_READ ||
                   e->access == ZKL_ENTRY_ACCESS_WRITE;
        m.mutex |= curator && e->access == ZKL_ENTRY_ACCESS_LOCK;
        m.rwlock |=
            curator && (e->access == ZKL_ENTRY_ACCESS_READ || e->access == ZKL_ENTRY_ACCESS_WRITE);
    }
    return m;
}

/* --- each of them ------------------------------------------------------- */

static const char *curator(const struct mix *m, bool semaphore)
{
    if (semaphore)
        return "InterProcessSemaphoreV2 with the same number of permits shares it";
    if (m->foreign)
        return "counts every child: the foreign ones can stop it for ever";
    if (m->kazoo)
        return "does not wait for Kazoo's names; zklock waits for both";
    if (m->mutex && m->rwlock)
        return "InterProcessMutex and InterProcessReadWriteLock do not wait for all of these; "
               "zklock "
               "waits for them";
    if (m->rwlock)
        return "InterProcessReadWriteLock shares it; InterProcessMutex does not wait for readers "
               "and "
               "writers";
    return "InterProcessMutex shares it";
}

static const char *kazoo(const struct mix *m, bool semaphore)
{
    if (semaphore)
        return "has no lock that shares it";
    if (m->curator || m->recipe)
        return "Lock, ReadLock and WriteLock wait for these only with extra_lock_patterns "
               "(docs/peers.md)";
    return "Lock and WriteLock share it, ReadLock from 2.9 on";
}

static const char *c_recipe(const struct mix *m, bool semaphore)
{
    if (semaphore)
        return "has no lock that shares it";
    if (m->kazoo)
        return "crashes on names without a dash, as Kazoo's are";
    if (m->foreign)
        return "crashes on foreign children whose names have no dash";
    if (m->rwlock)
        return "does not wait for readers and writers; zklock waits for it";
    return "shares it";
}

void peer_views(struct peer_view views[PEERS], const struct zkl_inspection *inside)
{
    bool semaphore = inside->kind == ZKL_LOCK_KIND_SEMAPHORE;
    struct mix m = mix_of(inside);
    views[0] = (struct peer_view){"Curator", curator(&m, semaphore)};
    views[1] = (struct peer_view){"Kazoo", kazoo(&m, semaphore)};
    views[2] = (struct peer_view){"ZooKeeper's C recipe", c_recipe(&m, semaphore)};
}

/* --- all together ------------------------------------------------------- */

bool peers_share_with_semaphore(const struct zkl_inspection *inside)
{
    return inside->kind == ZKL_LOCK_KIND_SEMAPHORE && mix_of(inside).queue;
}

/* Its InterProcessMutex sorts all children by what is behind the last "lock-", or by the whole
 * name, and the first holds. Numbers only grow. */
bool peers_stops_curator(const struct zkl_inspection *inside, const struct zkl_entry *foreign)
{
    static const char marker[] = "lock-";
    const char *key = strrchr(foreign->node_path, '/') + 1;
    int64_t last = 0;
    for (const char *at = key; (at = strstr(at, marker)) != NULL; key = at)
        at += sizeof marker - 1;
    for (size_t i = 0; i < inside->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(inside, i);
        last = e->sequence > last ? e->sequence : last;
    }
    char number[24];
    snprintf(number, sizeof number, "%010lld", (long long)last);
    return strcmp(key, number) < 0;
}

const char *peers_conflict(const struct zkl_inspection *inside)
{
    struct mix m = mix_of(inside);
    if (inside->kind == ZKL_LOCK_KIND_SEMAPHORE)
        return m.queue ? "a semaphore shares this path with a mutex or a read-write lock, and "
                         "neither waits for the other: give one of them another path"
                       : NULL;
    if (m.kazoo && (m.curator || m.recipe))
        return "Kazoo's names are mixed with others: Kazoo and Curator do not wait for each other "
               "and "
               "can hold at once; use one kind of lock for the path";
    if (m.recipe && m.rwlock)
        return "the C recipe is mixed with readers and writers, for which it does not wait; use "
               "one "
               "kind of lock for the path";
    return NULL;
}
