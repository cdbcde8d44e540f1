/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads that do the same, each with a member of an array as its argument. */
#ifndef ZKTEST_CROWD_H
#define ZKTEST_CROWD_H

#include "cluster.h"

#define CROWD_MAX 100

struct crowd {
    size_t count;
    struct actor *actors[CROWD_MAX];
};

void crowd_begin_sized(struct crowd *crowd, actor_fn fn, void *members, size_t size, size_t count);
/* All elements of the array. */
#define crowd_begin(crowd, fn, members)                                                            \
    crowd_begin_sized(crowd, fn, members, sizeof(members)[0], sizeof(members) / sizeof(members)[0])
/* Wait for all; each has said 0. */
void crowd_end(struct crowd *crowd);

#endif
