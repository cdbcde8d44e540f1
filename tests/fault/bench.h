/* SPDX-License-Identifier: Apache-2.0 */
/* A client behind a frame proxy, a competitor that is not, and a raw client that looks on: one mutex
 * each, of the same path. */
#ifndef ZKFAULT_BENCH_H
#define ZKFAULT_BENCH_H

#include "fault.h"

struct bench {
    const char *path;
    struct proxy *proxy;
    struct zkl_client *client; /* through the proxy */
    struct zkl_mutex *mutex;
    struct zkl_client *direct; /* the competitor */
    struct zkl_mutex *rival;
    struct wire *wire;
    struct told told; /* for a callback, if the test sets one */
};

/* For the set-up of a test: *state is the bench. path is "/TOP/NAME", and stays valid. 0, or -1: the proxy did not
 * start. */
int bench_set_up(void **state, const char *path, int session_ms);
/* The path is there, and does not go before the end. */
void bench_make_path(struct bench *b);
/* All goes, with what is below TOP. */
int bench_tear_down(void **state);

#endif
