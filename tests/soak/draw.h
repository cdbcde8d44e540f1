/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread does next, by chance. */
#ifndef ZKSOAK_DRAW_H
#define ZKSOAK_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include "shared.h"
#include "chance.h"

/* One half of one path. */
struct place {
    int path;
    enum access access;
};

/* Places in a random order, each path at most once. */
struct set {
    int count;
    struct place place[SOAK_PATHS];
};

/* How a wait may end. */
enum patience { FOREVER, DEADLINE, CANCEL, TRY, PATIENCES };

struct place draw_half(uint64_t *state, int path);
struct set draw_set(uint64_t *state);
/* By the paths. */
void sort_set(struct set *set);
enum patience draw_patience(uint64_t *state);

#endif
