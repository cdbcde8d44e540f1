/* SPDX-License-Identifier: Apache-2.0
 * Public structs of other sizes than this library's: of programs that were built with an older or a
 * newer header. The rule is in zklock.h, the test in tests/package/sizes.py.
 */
#ifndef ZKL_API_SIZED_H
#define ZKL_API_SIZED_H

#include <stdbool.h>
#include <stddef.h>

/* The size of a struct of type in 1.0, when field was its last one: no program has a smaller
 * one. */
#define ZKL_SIZED_LEAST(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* The size in theirs is plausible: not less than least, nor more than any struct will ever have, as
 * if it was not set, and a multiple of the alignment, so that another struct can follow in an
 * array. */
bool zkl_sized_is_good(const void *theirs, size_t least);

/* Likewise, and the bytes behind ours are 0: it sets no field that this library does not know. */
bool zkl_sized_is_known(const void *theirs, size_t least, size_t our_size);

/* theirs, which is known, in ours: what theirs has not is 0. */
void zkl_sized_read(void *ours, size_t our_size, const void *theirs);

/* ours in theirs, up to the size that theirs begins with, and that stays. What ours has not is
 * 0. */
void zkl_sized_write(void *theirs, const void *ours, size_t our_size);

#endif
