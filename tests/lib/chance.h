/* SPDX-License-Identifier: Apache-2.0 */
/* Random choices that one seed decides: SplitMix64. */
#ifndef ZKTEST_CHANCE_H
#define ZKTEST_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t chance_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* From low to high, both included. */
static inline int chance_between(uint64_t *state, int low, int high)
{
    return low + (int)(chance_next(state) % (uint64_t)(high - low + 1));
}

static inline bool chance(uint64_t *state, int percent)
{
    return chance_between(state, 1, 100) <= percent;
}

#endif
