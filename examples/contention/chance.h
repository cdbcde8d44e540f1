/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-random numbers (splitmix64) and the clock: everything that differs between two runs. */
#ifndef CONTENTION_CHANCE_H
#define CONTENTION_CHANCE_H

#include <stdint.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t chance_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A number from low to high, both included. */
static inline uint64_t chance_between(uint64_t *state, uint64_t low, uint64_t high)
{
    return low + chance_next(state) % (high - low + 1);
}

/* The same clock in all processes of this machine. */
static inline uint64_t clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline void nap_us(uint64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

static inline uint64_t chance_seed(void)
{
    uint64_t state = clock_us() ^ (uint64_t)getpid() << 32;
    return chance_next(&state);
}

#endif
