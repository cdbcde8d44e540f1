/* SPDX-License-Identifier: Apache-2.0
 * A reader's node that stays: the threads of one handle enter and leave without a request, through
 * read_gate.h, as long as nothing forbids it. This code finds the reasons that do: a contender
 * queues that must not be beside a reader, the link is another one and no list has come over it,
 * the last list is old, the node is, or the hold is not sure. */
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
void zkl_read_cache_settle(struct zkl_core *core, struct zkl_read_cache *cache);
/* core->caches_mono_ns has come. */
void zkl_read_cache_timer(struct zkl_core *core);

#endif
