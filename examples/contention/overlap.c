/* SPDX-License-Identifier: Apache-2.0 */
#include "overlap.h"

#include <stdio.h>
#include <stdlib.h>

void *grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    *room = *room ? *room * 2 : 64;
    array = realloc(array, *room * size);
    if (!array) {
        fputs("contention: no memory to check the journal: make the run shorter\n", stderr);
        exit(1);
    }
    return array;
}

static void pair_up(struct overlaps *o, size_t a, size_t b)
{
    o->pairs = grow(o->pairs, o->pair_count, &o->pair_room, sizeof *o->pairs);
    o->pairs[o->pair_count++] = (struct overlap_pair){a, b};
}

size_t overlap_begin(struct overlaps *o, uint64_t line, bool accepted)
{
    size_t index = o->count;
    o->all = grow(o->all, o->count, &o->room, sizeof *o->all);
    o->all[o->count++] = (struct interval){.first = line, .last = line, .accepted = accepted};
    for (size_t i = 0; i < o->open_count; i++)
        pair_up(o, o->open[i], index);
    o->open = grow(o->open, o->open_count, &o->open_room, sizeof *o->open);
    o->open[o->open_count++] = index;
    return index;
}

void overlap_end(struct overlaps *o, size_t index)
{
    for (size_t i = 0; i < o->open_count; i++) {
        if (o->open[i] == index) {
            o->open[i] = o->open[--o->open_count];
            return;
        }
    }
}

static bool counts(const struct interval *a, const struct interval *b)
{
    return a->last > b->first && (a->whole || a->write > b->first) && (b->whole || b->accepted);
}

uint64_t overlap_count(const struct overlaps *o)
{
    uint64_t n = 0;
    for (size_t i = 0; i < o->pair_count; i++)
        n += counts(&o->all[o->pairs[i].a], &o->all[o->pairs[i].b]);
    return n;
}

void overlap_free(struct overlaps *o)
{
    free(o->all);
    free(o->open);
    free(o->pairs);
}
