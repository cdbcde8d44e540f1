/* SPDX-License-Identifier: Apache-2.0
 * A reader's node that stays (zkl_rwlock_retain_readers): the threads of one handle enter and
 * leave without a request, a lock or memory, through read_gate.h, as long as nothing forbids it.
 * The contender is one that holds, as ever, so exclusion, token and window are its; only the gate
 * knows which readers are in. When it is closed and none is in, whoever finds that deletes the
 * node, under the client's mutex.
 *
 * How long the gate is open: until the earlier one of two, the node's age, and T/2 after the
 * client asked for the last list that showed no contender that excludes a reader. It is closed
 * while the hold is suspect, and from the loss of a link until a list has come over the next one.
 * A list is sent each T/4, and whenever the child watch reports that a contender joined or left.
 *
 * It closes for good when others queue (a list shows a writer, or a mutex), another client asks
 * for the node, the node is old, the hold is not sure, or the own handle wants to write: then
 * before the writer asks for anything.
 *
 * Which nodes are watched. Otherwise a contender watches the node before it and its own, and no
 * client is woken for others' sake. The child watch departs from that: each client that keeps a
 * reader's node hears of every contender that joins or leaves at the path, and lists it. So this
 * is opt-in, and at most ZKL_CACHED_READERS_MAX nodes of a path are kept. A reader that finds that
 * number with the mark before its own in a list does not keep its node, and for one session
 * timeout neither tries again nor marks a node. As the nodes before one's own can only become
 * fewer, there are never more.
 *
 * The mark is that of a retained mutex (local_queue.h). One reader of a handle at a time queues
 * with it (the candidate): the node of any other would not become that of all, and a try would
 * wait 200 ms for it in vain. A writer's try queues if all before it are readers with the mark. A
 * contender that waits for a used-up counter asks them to release, one after the other.
 *
 * These have a node of their own, also beside one that is kept: an operation, a part of a
 * multi-lock, a downgrade, a caller that wants a lease, and one that comes while the old node is
 * still in use. */
#ifndef ZKL_CORE_READ_CACHE_H
#define ZKL_CORE_READ_CACHE_H

#include "core.h"
#include "read_gate.h"

enum zkl_read_cache_state {
    ZKL_READ_CACHE_EMPTY,
    ZKL_READ_CACHE_OPEN,    /* but its gate is closed while it is unknown whether others queue */
    ZKL_READ_CACHE_CLOSING, /* for good: the last reader that leaves deletes the node */
    ZKL_READ_CACHE_STATES
};

struct zkl_read_cache {
    struct zkl_due due; /* first, see due.h */

    /* The handle's. */

    int64_t age_ns; /* how long a node stays at most, even if busy; 0: none does */
    /* No reader is in, and the core gives the node up: the handle does not have it any more. Must
     * not call the core. */
    void (*dropped)(struct zkl_read_cache *cache, struct zkl_contender *contender);

    /* The core's. */
    enum zkl_read_cache_state state;
    struct zkl_contender *holder; /* unless it is EMPTY; constant while a reader is in */
    int64_t ends_boot;            /* its age, CLOCK_BOOTTIME */
    int64_t look_mono_ns;         /* when the next list is due */
    int64_t again_mono_ns;        /* too many others had one: no node stays before that */
    struct zkl_read_cache *next;  /* in the core's list of those that are not EMPTY */
    struct zkl_read_gate gate;
};

/* May the node of a reader that begins now become that of all? */
static inline bool zkl_read_cache_may_begin(const struct zkl_read_cache *cache, struct zkl_time now)
{
    return cache->age_ns > 0 && cache->state == ZKL_READ_CACHE_EMPTY &&
           now.mono_ns >= cache->again_mono_ns;
}

/* A reader that was granted: its node is that of all readers of the handle from here on, and the
 * caller is in. False: nothing changed. */
bool zkl_read_cache_open(struct zkl_core *core, struct zkl_time now, struct zkl_read_cache *cache,
                         struct zkl_contender *contender);
/* zkl_read_gate_leave said so. */
void zkl_read_cache_left(struct zkl_core *core, struct zkl_time now, struct zkl_read_cache *cache);
/* No reader enters any more. */
void zkl_read_cache_close(struct zkl_core *core, struct zkl_time now, struct zkl_read_cache *cache);
/* The handle ends; no reader is in. */
void zkl_read_cache_fini(struct zkl_core *core, struct zkl_time now, struct zkl_read_cache *cache);

const char *zkl_read_cache_state_name(enum zkl_read_cache_state state);
bool zkl_read_cache_may_move(enum zkl_read_cache_state from, enum zkl_read_cache_state to);

/* --- the steps of these, for core.c, which settles after them ------------- */

bool zkl_read_cache_begin(struct zkl_core *core, struct zkl_read_cache *cache,
                          struct zkl_contender *contender);
void zkl_read_cache_end(struct zkl_core *core, struct zkl_read_cache *cache, const char *why);
void zkl_read_cache_settle(struct zkl_core *core, struct zkl_due *due);
/* core->caches_mono_ns has come. */
void zkl_read_cache_timer(struct zkl_core *core);

#endif
