/* SPDX-License-Identifier: Apache-2.0 */
/* A client behind a frame proxy, a competitor that is not, and a raw client that looks on: one mutex
 * each, of the same path. */
#ifndef ZKFAULT_BENCH_H
#define ZKFAULT_BENCH_H

#include "fault.h"

struct bench {
    struct proxy *proxy;
    struct zkl_client *client; /* through the proxy */
    struct zkl_mutex *mutex;
    struct zkl_client *direct; /* the competitor */
    struct zkl_mutex *rival;
    struct wire *wire;
    struct told told; /* for a callback, if the test sets one */
};

/* NULL: the proxy did not start. */
struct bench *bench_open(const char *path, int session_ms);
/* All goes, with what is below top. */
void bench_close(struct bench *b, const char *top);

#endif
