/* SPDX-License-Identifier: Apache-2.0 */
/* A client behind a frame proxy, and a competitor without one: one mutex each, of the same path. A raw client
 * looks on. There is a second thread, too. All of it is freed when the test returns. */
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
    struct actor *actor;
    struct told told; /* for a callback, if the test sets one */
};

/* path is "/TOP/NAME", and stays valid. A session timeout of 0: the bench has no such client and mutex. */
struct bench *bench_begin(const char *path, int client_ms, int direct_ms);
/* Make the path; it exists to the end of the test. */
struct bench *bench_make_path(struct bench *b);

/* The test name(struct bench *b); begin makes the bench. */
#define BENCH_TEST_OF(name, begin)                                                                 \
    static void name(struct bench *b);                                                             \
    WORLD_TEST_OF(name, name(begin))                                                               \
    static void name(__attribute__((unused)) struct bench *b)
#define BENCH_TEST(name, path, client_ms, direct_ms)                                               \
    BENCH_TEST_OF(name, bench_begin(path, client_ms, direct_ms))

#endif
