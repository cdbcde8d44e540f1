/* SPDX-License-Identifier: Apache-2.0 */
/* A client behind a frame proxy, and a competitor without one: one mutex each, of the same path. A raw client
 * looks on. There is a second thread, too. */
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
    struct zkl_cancel *cancel; /* for the actor, if the test makes one */
    struct told told;          /* for a callback, if the test sets one */
};

/* For the set-up of a test: *state is the bench. path is "/TOP/NAME", and stays valid. 0. */
int bench_set_up(void **state, const char *path, int session_ms);
/* With these session timeouts; 0: the bench has no such client and mutex. */
int bench_set_up_with(void **state, const char *path, int client_ms, int direct_ms);
/* Make the path; it exists to the end of the test. */
void bench_make_path(struct bench *b);
/* Free everything, and delete what is below TOP. */
int bench_tear_down(void **state);

#endif
