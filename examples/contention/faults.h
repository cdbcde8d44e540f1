/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons for a bad end: each, not only the first. */
#ifndef CONTENTION_FAULTS_H
#define CONTENTION_FAULTS_H

#include "checker.h"
#include "options.h"

enum { FAULTS_MAX = 16 };

struct fault {
    uint64_t number;
    const char *text; /* goes on after the number */
};

struct faults {
    size_t count; /* 0: all is well */
    struct fault all[FAULTS_MAX];
};

void faults_find(struct faults *faults, const struct options *options,
                 const struct verdict *verdict, unsigned odd);

#endif
