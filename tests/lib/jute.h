/* SPDX-License-Identifier: Apache-2.0 */
/* Records of jute, ZooKeeper's form of data in requests, answers and snapshot files: numbers are big-endian, a text or a
 * buffer has its length in front, -1 for null. A record is told by a letter for each of its fields:
 *   i int32_t    l int64_t    b bool, one byte    t text    p password, WIRE_PASSWORD bytes with their length
 *   a the entries of an ACL, with their number in front */
#ifndef ZKTEST_JUTE_H
#define ZKTEST_JUTE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"

/* What is written. Without memory it fails, and stays so. */
struct jute_out {
    unsigned char *data;
    size_t n;
    size_t room;
    bool failed;
};

/* What is read. Reading past its end sets failed and gives zeroes. */
struct jute_in {
    unsigned char *data;
    size_t n;
    size_t at;
    bool failed;
};

/* Append. a: const struct wire_acl *, size_t. */
void jute_put(struct jute_out *out, const char *fields, ...);
void jute_vput(struct jute_out *out, const char *fields, va_list args);

/* Read on, each field to where its pointer says, t to char *, size_t, cut to that with a final NUL. NULL and, without
 * an argument, a capital letter: read over. p: only if it has that length. */
void jute_take(struct jute_in *in, const char *fields, ...);
int32_t jute_int(struct jute_in *in);
/* The bytes that come next; NULL: they are not there. */
unsigned char *jute_bytes(struct jute_in *in, size_t n);
/* Of a text or a buffer: its bytes, and how many. Null reads as empty. */
size_t jute_buffer(struct jute_in *in, unsigned char **data);

#endif
