/* SPDX-License-Identifier: Apache-2.0
 *
 * Passing by libzookeeper's special request numbers. Nothing tells the next number, so this file
 * counts what the library takes. A call that libzookeeper refuses takes a number too: around the
 * special ones, where nothing else may, such calls use the numbers up. The zone is wide, as others
 * in the process take numbers unseen. No lock: the count is atomic. call.c takes a number for each
 * request. */
#include "numbers.h"

#include <stdint.h>
#include <time.h>

#include "handle.h"

#define FIRST_SPECIAL (-8)
/* Numbers before and behind the first special one. */
#define ZONE (INT64_C(1) << 27)      /* here each request uses up some first: */
#define AT_A_TIME (INT64_C(1) << 16) /* so many, of which at most one can be the next request's */
#define CORE (INT64_C(1) << 21)      /* here, where they are if only the library takes any, all */

atomic_llong zkl_numbers_left;

/* libzookeeper begins with the time, when it is loaded and again instead of -1. */
static int64_t left_at_first(void)
{
    return (uint32_t)FIRST_SPECIAL - (uint32_t)time(NULL);
}

static __attribute__((constructor)) void begin(void)
{
    atomic_store(&zkl_numbers_left, left_at_first());
}

static void count(int64_t taken)
{
    int64_t before = atomic_fetch_sub(&zkl_numbers_left, taken);
    if (before > -ZONE && before - taken <= -ZONE)
        atomic_fetch_add(&zkl_numbers_left, left_at_first());
}

static void use_up(int64_t numbers)
{
    for (int64_t i = 0; i < numbers; i++)
        zoo_adelete(NULL, "/", -1, NULL, NULL);
    count(numbers);
}

void zkl_numbers_take(void)
{
    int64_t left = atomic_load(&zkl_numbers_left);
    if (left < ZONE)
        use_up(left < CORE && left > -CORE ? 2 * CORE : AT_A_TIME);
    count(1);
}
