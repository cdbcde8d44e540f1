/* SPDX-License-Identifier: Apache-2.0
 *
 * Cycles of waiting across locks: threads that wait for each other in a circle. A thread is known
 * by its session and by the data of its nodes, "host pid thread": without the session, two
 * containers of one name would be one. The command of a zklock run counts as the thread that holds
 * that lock, if its node's data says "under" and the lock's token. A node says who made it; who has
 * it may be another one, which shows only where the node may stay: such holders are left out. This
 * file owns the graph for the length of one search. One thread; doctor.c calls it. */
#include "cycles.h"

#include <stdlib.h>
#include <string.h>

#include "nested.h"

#define NOWHERE ((size_t)-1)

/* One for each place in a queue, sorted by owner: the places of one thread are adjacent. */
struct place {
    const struct seen *lock;
    const struct zkl_entry *entry;
    const struct zkl_entry *who; /* stands for the owner: entry, or that under which it runs */
    bool entered;                /* on the way that is being followed */
    bool left;                   /* all ways from here were followed */
};

struct search {
    struct place *places;
    size_t count;
    const struct zkl_entry **tokens; /* of all places, sorted by token */
    struct waiting *way;
    size_t way_count;
    cycle_fn *fn;
    void *arg;
};

static int compare_owners(const struct zkl_entry *a, const struct zkl_entry *b)
{
    if (a->session != b->session)
        return a->session < b->session ? -1 : 1;
    return strcmp(a->owner, b->owner);
}

static int by_owner(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    return compare_owners(a->who, b->who);
}

static int by_token(const void *left, const void *right)
{
    const struct zkl_entry *a = *(const struct zkl_entry *const *)left;
    const struct zkl_entry *b = *(const struct zkl_entry *const *)right;
    return a->czxid < b->czxid ? -1 : a->czxid > b->czxid;
}

/* The one that waits for the end of all that runs under its lock. A node is younger than the one
 * that it runs under, whatever its data says. */
static const struct zkl_entry *who_is(const struct search *s, const struct zkl_entry *e)
{
    for (;;) {
        struct zkl_entry key = {.czxid = nested_under(e)}, *wanted = &key;
        const struct zkl_entry **above =
            bsearch(&wanted, s->tokens, s->count, sizeof *s->tokens, by_token);
        if (key.czxid == 0 || key.czxid >= e->czxid || !above)
            return e;
        e = *above;
    }
}

/* The first place of that owner, or NOWHERE. */
static size_t find(const struct search *s, const struct zkl_entry *who)
{
    size_t from = 0, to = s->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (compare_owners(s->places[middle].who, who) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    bool found = from < s->count && compare_owners(s->places[from].who, who) == 0;
    return found ? from : NOWHERE;
}

static size_t find_place(const struct search *s, const struct zkl_entry *e)
{
    return e->host[0] ? find(s, who_is(s, e)) : NOWHERE;
}

/* docs/wire-format.md, "Names": the version of the UUID in the node's name is 8 if the node may stay
 * when its thread has left the lock. */
static bool may_stay(const struct zkl_entry *e)
{
    const char *slash = strrchr(e->node_path, '/'), *name = slash ? slash + 1 : e->node_path;
    if (strncmp(name, "_c_", 3) == 0)
        return strlen(name) > 17 && name[17] == '8';
    return strspn(name, "0123456789abcdef") == 32 && name[12] == '8';
}

/* False: another thread of its process may be in the lock by now. Who waits made the node. */
static bool has_what_its_node_says(const struct zkl_entry *e)
{
    return e->role == ZKL_ENTRY_ROLE_WAITER || !may_stay(e);
}

/* --- following the waits ------------------------------------------------ */

static void follow(struct search *s, size_t first);

static void step(struct search *s, struct place *from, const struct zkl_entry *to)
{
    size_t next = has_what_its_node_says(to) ? find_place(s, to) : NOWHERE;
    if (next == NOWHERE || s->places[next].left)
        return;
    s->way[s->way_count++] = (struct waiting){from->lock, from->entry, to};
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
static void tell(const struct search *s, const struct zkl_entry *who)
{
    size_t first = s->way_count;
    while (first > 0 && compare_owners(who_is(s, s->way[first - 1].waiter), who) != 0)
        first--;
    if (first > 0)
        s->fn(s->arg, &s->way[first - 1], s->way_count - first + 1);
}

static void follow(struct search *s, size_t first)
{
    const struct zkl_entry *who = s->places[first].who;
    if (s->places[first].entered) {
        tell(s, who);
        return;
    }
    s->places[first].entered = true;
    for (size_t i = first; i < s->count && compare_owners(s->places[i].who, who) == 0; i++) {
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
        size_t first = find_place(s, zkl_inspection_entry(lock->inside, i));
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
        if (e->role == ZKL_ENTRY_ROLE_FOREIGN || !e->host[0])
            continue;
        s->tokens[s->count] = e;
        s->places[s->count++] = (struct place){.lock = lock, .entry = e};
    }
}

static void sort(struct search *s)
{
    qsort(s->tokens, s->count, sizeof *s->tokens, by_token);
    for (size_t i = 0; i < s->count; i++)
        s->places[i].who = who_is(s, s->places[i].entry);
    qsort(s->places, s->count, sizeof *s->places, by_owner);
}

int cycles_find(const struct look *look, cycle_fn *fn, void *arg)
{
    size_t room = count_entries(look) + 1;
    struct search s = {.places = calloc(room, sizeof *s.places),
                       .tokens = calloc(room, sizeof *s.tokens),
                       .way = calloc(room, sizeof *s.way),
                       .fn = fn,
                       .arg = arg};
    bool memory = s.places && s.tokens && s.way;
    for (size_t i = 0; memory && i < look->count; i++)
        add_places(&s, &look->all[i]);
    if (memory)
        sort(&s);
    for (size_t i = 0; memory && i < look->count; i++)
        follow_all(&s, &look->all[i]);
    free(s.places);
    free(s.tokens);
    free(s.way);
    return memory ? 0 : -1;
}
