/* SPDX-License-Identifier: Apache-2.0 */
#include "draw.h"

struct place draw_half(uint64_t *state, int path)
{
    bool reads = path >= SOAK_MUTEXES && chance(state, 50);

    return (struct place){path, reads ? READING : WRITING};
}

struct set draw_set(uint64_t *state)
{
    struct set set = {.count = chance_between(state, 1, SOAK_PATHS)};
    int paths[SOAK_PATHS];

    for (int i = 0; i < SOAK_PATHS; i++)
        paths[i] = i;
    for (int i = 0; i < set.count; i++) {
        int at = chance_between(state, i, SOAK_PATHS - 1), path = paths[at];
        paths[at] = paths[i];
        set.place[i] = draw_half(state, path);
    }
    return set;
}

void sort_set(struct set *set)
{
    for (int i = 1; i < set->count; i++) {
        for (int at = i; at > 0 && set->place[at].path < set->place[at - 1].path; at--) {
            struct place place = set->place[at];
            set->place[at] = set->place[at - 1];
            set->place[at - 1] = place;
        }
    }
}

/* Half of the waits have no end but the grant: a deadlock among those is for ever. */
enum patience draw_patience(uint64_t *state)
{
    static const enum patience often[] = {FOREVER,  FOREVER,  FOREVER, FOREVER, FOREVER,
                                          DEADLINE, DEADLINE, CANCEL,  CANCEL,  TRY};

    return often[chance_between(state, 0, 9)];
}
