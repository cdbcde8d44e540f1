/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals in which somebody acted as the holder, and which of them overlap.
 *
 * An interval lasts from its first line in the journal to its own last one; that of a killed
 * process ends with the last thing that it is known to have done. Two intervals overlap if the
 * second begins before the first has ended. That alone proves nothing against the lock: a holder
 * whose session is over does not know that, and goes on until it meets the fence. An overlap
 * counts if both were taken for holders:
 *   - the first, because the fence accepted its write after the second had entered, or because its
 *     unlock, later still, said that the hold had been whole;
 *   - the second, because the fence accepted its entry, or because its unlock said the same. */
#ifndef CONTENTION_OVERLAP_H
#define CONTENTION_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
    uint64_t first; /* numbers of lines in the journal */
    uint64_t last;
    uint64_t write; /* the accepted one; 0: none */
    bool accepted;  /* the fence accepted its entry */
    bool whole;     /* its unlock said so */
};

struct overlap_pair {
    size_t a;
    size_t b; /* began later */
};

struct overlaps {
    struct interval *all;
    size_t count, room;
    size_t *open;
    size_t open_count, open_room;
    struct overlap_pair *pairs;
    size_t pair_count, pair_room;
};

/* All zeros is a valid start. The index stays valid; the address of all[index] does not. */
size_t overlap_begin(struct overlaps *overlaps, uint64_t line, bool accepted);
void overlap_end(struct overlaps *overlaps, size_t index);
uint64_t overlap_count(const struct overlaps *overlaps);
void overlap_free(struct overlaps *overlaps);

/* Room for one more element; ends the program if there is no memory. */
void *grow(void *array, size_t count, size_t *room, size_t size);

#endif
