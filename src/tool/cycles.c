/* SPDX-License-Identifier: Apache-2.0
 *
 * Cycles of waiting across locks: threads that wait for each other in a circle. Known only for
 * contenders whose data says "host pid thread". This file owns the graph for the length of one
 * search. One thread; doctor.c calls it. */
#include "cycles.h"

#include <stdlib.h>
#include <string.h>

#define NOWHERE ((size_t)-1)

/* One for each place in a queue, sorted by owner: the places of one thread are adjacent. */
struct place {
    const struct seen *lock;
    const struct zkl_entry *entry;
    bool entered; /* on the way that is being followed */
    bool left;    /* all ways from here were followed */
};

struct search {
    struct place *places;
    size_t count;
    struct waiting *way;
    size_t way_count;
    cycle_fn *fn;
    void *arg;
};

static int by_owner(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    return strcmp(a->entry->owner, b->entry->owner);
}

/* The first place of that owner, or NOWHERE. */
static size_t find(const struct search *s, const char *owner)
{
    size_t from = 0, to = s->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(s->places[middle].entry->owner, owner) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    bool found = from < s->count && strcmp(s->places[from].entry->owner, owner) == 0;
    return found ? from : NOWHERE;
}

/* --- following the waits ------------------------------------------------ */

static void follow(struct search *s, size_t first);

static void step(struct search *s, struct place *from, const struct zkl_entry *to)
{
    size_t next = to->host[0] ? find(s, to->owner) : NOWHERE;
    if (next == NOWHERE || s->places[next].left)
        return;
    s->way[s->way_count++] = (struct waiting){from->lock, from->entry};
    follow(s, next);
    s->way_count--;
}

/* An entry names one contender whose end it waits for. The others that share a read lock with that
 * one, and that it waits for as well, are those that hold. */
static void step_to_all(struct search *s, struct place *from)
{
    const struct zkl_inspection *inside = from->lock->inside;
    size_t told = from->entry->waits_for;
    if (told == ZKL_NO_ENTRY)
        return;
    step(s, from, zkl_inspection_entry(inside, told));
    if (from->entry->access != ZKL_ENTRY_ACCESS_WRITE)
        return;
    for (size_t i = 0;
         i < inside->count && zkl_inspection_entry(inside, i)->role == ZKL_ENTRY_ROLE_HOLDER; i++) {
        if (i != told)
            step(s, from, zkl_inspection_entry(inside, i));
    }
}

/* The way has come to where it has been. */
static void tell(const struct search *s, const char *owner)
{
    size_t first = s->way_count;
    while (first > 0 && strcmp(s->way[first - 1].waiter->owner, owner) != 0)
        first--;
    if (first > 0)
        s->fn(s->arg, &s->way[first - 1], s->way_count - first + 1);
}

static void follow(struct search *s, size_t first)
{
    const char *owner = s->places[first].entry->owner;
    if (s->places[first].entered) {
        tell(s, owner);
        return;
    }
    s->places[first].entered = true;
    for (size_t i = first; i < s->count && strcmp(s->places[i].entry->owner, owner) == 0; i++) {
        if (s->places[i].entry->role == ZKL_ENTRY_ROLE_WAITER)
            step_to_all(s, &s->places[i]);
    }
    s->places[first].entered = false;
    s->places[first].left = true;
}

/* From the front of the queue: the paths of earlier entries are known then, and none gets long. */
static void follow_all(struct search *s, const struct seen *lock)
{
    for (size_t i = 0; lock->inside && i < lock->inside->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(lock->inside, i);
        size_t first = e->host[0] ? find(s, e->owner) : NOWHERE;
        if (first != NOWHERE && !s->places[first].left)
            follow(s, first);
    }
}

/* --- the places --------------------------------------------------------- */

static size_t count_entries(const struct look *look)
{
    size_t count = 0;
    for (size_t i = 0; i < look->count; i++)
        count += look->all[i].inside ? look->all[i].inside->count : 0;
    return count;
}

static void add_places(struct search *s, const struct seen *lock)
{
    for (size_t i = 0; lock->inside && i < lock->inside->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(lock->inside, i);
        if (e->role != ZKL_ENTRY_ROLE_FOREIGN && e->host[0])
            s->places[s->count++] = (struct place){.lock = lock, .entry = e};
    }
}

int cycles_find(const struct look *look, cycle_fn *fn, void *arg)
{
    size_t room = count_entries(look) + 1;
    struct search s = {.places = calloc(room, sizeof *s.places),
                       .way = calloc(room, sizeof *s.way),
                       .fn = fn,
                       .arg = arg};
    bool memory = s.places && s.way;
    for (size_t i = 0; memory && i < look->count; i++)
        add_places(&s, &look->all[i]);
    if (memory)
        qsort(s.places, s.count, sizeof *s.places, by_owner);
    for (size_t i = 0; memory && i < look->count; i++)
        follow_all(&s, &look->all[i]);
    free(s.places);
    free(s.way);
    return memory ? 0 : -1;
}
