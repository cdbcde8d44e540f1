/* SPDX-License-Identifier: Apache-2.0 */
/* Memory runs out at every place in the library that asks for some: the call says so or succeeds all
 * the same, and leaves nothing behind.
 *
 * The linker directs malloc and its like to this program first. The test plays a scene again and
 * again and refuses the nth request, for n = 1, 2, 3 ... until a scene ends before its nth request.
 * Only what the library asks for counts: libzookeeper calls malloc by itself, and the test's own
 * thread says when it needs some. The node before ours in the queue belongs to a raw client, so that
 * no fault can keep the test from deleting it. */
#ifndef ZKFAULT_ALLOC_H
#define ZKFAULT_ALLOC_H

#include "fault.h"

#include <zklock/async.h>
#include <zklock/inspect.h>
#include <zklock/guard.h>
#include <zklock/metrics.h>

#include "goods.h"

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

struct fixture *alloc_begin(void);

/* From now on refuse count requests, beginning with number from, and count the public calls. */
void alloc_arm(int from, int count);
/* True if the fault struck. */
bool alloc_disarm(void);
/* The same after a call that said so: it is 0, or the fault excuses it. */
bool alloc_disarm_after(int rc);
/* How often the calling thread has asked since it was armed. */
int alloc_asked_here(void);

/* A code that a refusal excuses. */
bool alloc_refused(int rc);
/* After the fault everything works as before. */
void alloc_check_works(struct fixture *s, struct zkl_client *client, struct zkl_mutex *mutex);
/* So of the fixture's own, at the end of a scene. It returns struck. */
bool alloc_works(struct fixture *s, bool struck);
/* Play a scene with each n, with one refusal and with some in a row. A scene must return what
 * alloc_disarm returned. */
void alloc_play(struct fixture *s, bool (*scene)(struct fixture *, int n, int count));

/* Put a node of the raw client before ours in the queue; delete it. */
void alloc_stand_before(struct fixture *s);
void alloc_step_aside(struct fixture *s);
/* True if a contender of this client waits for its turn, with or without a watch on its own
 * node. */
bool alloc_in_queue(struct zkl_client *client);

/* The test name(struct fixture *s). */
#define ALLOC_TEST(name)                                                                           \
    static void name(struct fixture *s);                                                           \
    WORLD_TEST_OF(name, name(alloc_begin()))                                                       \
    static void name(__attribute__((unused)) struct fixture *s)
#define ALLOC_SCENE(name, scene)                                                                   \
    ALLOC_TEST(name)                                                                               \
    {                                                                                              \
        alloc_play(s, scene);                                                                      \
    }

#endif
