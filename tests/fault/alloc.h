/* SPDX-License-Identifier: Apache-2.0 */
/* Memory runs out at every place in the library where some is asked for: the call says so or succeeds
 * all the same, and what is left behind is nothing.
 *
 * The program is linked so that malloc and its like come here first. A scene is played again and
 * again with the nth request refused, for n = 1, 2, 3 ... until one is played to its end without
 * meeting it. Only what the library asks for counts: libzookeeper calls malloc by itself, and the
 * test's own thread says when it needs some. Who stands before us in the queue is a node of a raw
 * client, which no fault can keep from leaving. */
#ifndef ZKFAULT_ALLOC_H
#define ZKFAULT_ALLOC_H

#include "fault.h"

#include <zklock/async.h>
#include <zklock/inspect.h>
#include <zklock/guard.h>
#include <zklock/metrics.h>

#include "called.h"

#define SESSION_MS 5000
#define N_MAX 400 /* a scene that asks more often than this never ends */

struct fixture {
    struct zkl_client *client;
    struct zkl_mutex *mutex; /* at alloc_path */
    struct wire *wire;
    char before[200]; /* the node before us */
    struct actor *actor;
    struct told told;
    struct zkl_cancel *cancel;
};

extern const char *const alloc_path;

int alloc_set_up(void **state);
int alloc_tear_down(void **state);

/* From now on requests are refused, so many beginning with that one; public calls are counted. */
void alloc_arm(int from, int count);
/* True if the fault struck. */
bool alloc_disarm(void);
/* How often the calling thread has asked since it was armed. */
int alloc_asked_here(void);

/* A code that a refusal excuses. */
bool alloc_refused(int rc);
/* After the fault all is as ever. */
void alloc_check_works(struct fixture *s, struct zkl_client *client, struct zkl_mutex *mutex);
/* Play a scene with each n, with one refusal and with some in a row. A scene is to give what
 * alloc_disarm gave. */
void alloc_play(struct fixture *s, bool (*scene)(struct fixture *, int n, int count));

/* Somebody else's node is before us in the queue; it goes. */
void alloc_stand_before(struct fixture *s);
void alloc_step_aside(struct fixture *s);
/* Somebody of this client waits for his turn, with or without a watch on his own node. */
bool alloc_in_queue(struct zkl_client *client);

/* The tests of each part, for main. */
#define ALLOC_TEST(f) cmocka_unit_test_setup_teardown(f, alloc_set_up, alloc_tear_down)
extern const struct CMUnitTest alloc_mutex_tests[], alloc_kinds_tests[], alloc_ask_tests[],
    alloc_async_tests[];
extern const size_t alloc_mutex_count, alloc_kinds_count, alloc_ask_count, alloc_async_count;

#endif
