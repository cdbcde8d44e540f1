/* SPDX-License-Identifier: Apache-2.0 */
/* Big-endian numbers in memory, the form of ZooKeeper's wire protocol and of its snapshot files. */
#ifndef ZKTEST_BYTES_H
#define ZKTEST_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline int32_t bytes_get32(const void *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return (int32_t)be32toh(v);
}

static inline int64_t bytes_get64(const void *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return (int64_t)be64toh(v);
}

static inline void bytes_put32(void *at, int32_t value)
{
    uint32_t v = htobe32((uint32_t)value);
    memcpy(at, &v, sizeof v);
}

static inline void bytes_put64(void *at, int64_t value)
{
    uint64_t v = htobe64((uint64_t)value);
    memcpy(at, &v, sizeof v);
}

#endif
