/* SPDX-License-Identifier: Apache-2.0
 * What the fuzz targets share. Each is a function of some bytes: libFuzzer makes them up and looks
 * where they lead, replay.c takes them from files. Nothing is kept from one call to the next. */
#ifndef ZKL_TEST_FUZZ_H
#define ZKL_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input, from its beginning; behind its end there are only zeroes. */
struct fuzz_bytes {
    const uint8_t *at, *end;
};

static inline size_t fuzz_left(const struct fuzz_bytes *in)
{
    return (size_t)(in->end - in->at);
}

static inline unsigned fuzz_byte(struct fuzz_bytes *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* 0 to n - 1 */
static inline unsigned fuzz_below(struct fuzz_bytes *in, unsigned n)
{
    return fuzz_byte(in) % n;
}

static inline bool fuzz_flag(struct fuzz_bytes *in)
{
    return fuzz_below(in, 2) == 1;
}

/* Up to max bytes, as far as the next newline, which is taken too. */
static inline size_t fuzz_line(struct fuzz_bytes *in, size_t max, const char **line)
{
    size_t length = 0, room = fuzz_left(in) < max ? fuzz_left(in) : max;
    *line = (const char *)in->at;
    while (length < room && in->at[length] != '\n')
        length++;
    in->at += length;
    if (in->at < in->end && *in->at == '\n')
        in->at++;
    return length;
}

/* Not an assert: it is there in every build. */
#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
