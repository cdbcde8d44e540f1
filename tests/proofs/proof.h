/* SPDX-License-Identifier: Apache-2.0 */
/* What the harnesses here share. A harness is a function without arguments that CBMC looks at for all values of
 * what nondet_... gives; run.py has the list, the bounds, and for each a change of the code that it has to see. */
#ifndef ZKPROOFS_PROOF_H
#define ZKPROOFS_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* To CBMC a function of this prefix gives any value. */
bool nondet_bool(void);
char nondet_char(void);
unsigned char nondet_byte(void);
int32_t nondet_int32(void);
int64_t nondet_int64(void);
size_t nondet_size(void);

#define assume(condition) __CPROVER_assume(condition)
#define prove(condition) __CPROVER_assert(condition, #condition)

static inline int64_t any_between(int64_t low, int64_t high)
{
    int64_t n = nondet_int64();

    assume(n >= low && n <= high);
    return n;
}

/* strlen() takes this text to have this length, and proves wherever it is asked that it has. */
extern const char *known_text;
extern size_t known_length;

#endif
