/* SPDX-License-Identifier: Apache-2.0 */
/* The C++ half of test-scope.c. */
#ifndef ZKTEST_SCOPE_H
#define ZKTEST_SCOPE_H

#include <zklock/zklock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The hold count inside a block with a guard, or the guard's rc; left by return, break or throw. */
int scope_left_by_return(struct zkl_mutex *mutex);
int scope_left_by_throw(struct zkl_mutex *mutex);
/* The count after unlock() within the block; and what unlock() said to *rc. */
int scope_left_early(struct zkl_mutex *mutex, int *rc);

#ifdef __cplusplus
}
#endif

#endif
