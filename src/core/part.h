/* SPDX-License-Identifier: Apache-2.0
 * A part of a transaction that is no lock's. */
#ifndef ZKL_CORE_PART_H
#define ZKL_CORE_PART_H

#include <stdint.h>

struct zkl_part {
    enum { ZKL_PART_CHECK, ZKL_PART_MAKE, ZKL_PART_SET, ZKL_PART_DELETE } what;
    const char *path;
    const char *data; /* MAKE: of a persistent node, SET; text, NULL: none */
    int32_t version;  /* the others, and SET: only if it has this one; -1: any */
};

#endif
