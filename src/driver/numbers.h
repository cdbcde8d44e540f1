/* SPDX-License-Identifier: Apache-2.0
 * libzookeeper's request numbers. The process has one row of them: 32 bits with a sign, from the
 * wall clock's time upwards, and over 2^31 to the negative ones. A negative number is as good as
 * any, but for the last eight: an answer that carries -8, -4, -2 or -1 counts as that of a watch, a
 * credential or a ping. It ends the link, the handle or the process (ZOOKEEPER-3286). */
#ifndef ZKL_DRIVER_NUMBERS_H
#define ZKL_DRIVER_NUMBERS_H

#include <stdatomic.h>

/* How many are left before the special ones, if nobody else in the process takes any; below 0 while
 * the library passes them by. */
extern atomic_llong zkl_numbers_left;

/* Before each request: libzookeeper is going to take a number for it. From any thread; in the zone
 * around the special numbers it uses up some first, for a millisecond. */
void zkl_numbers_take(void);

#endif
