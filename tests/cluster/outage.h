/* SPDX-License-Identifier: Apache-2.0 */
/* A test stops the suite's server, and starts it again with its data. */
#ifndef ZKTEST_OUTAGE_H
#define ZKTEST_OUTAGE_H

#include "cluster.h"

/* A server that is starting may never answer a connection that comes too early. libzookeeper gives
 * such a connection up after two thirds of the session timeout. Those two thirds must be less than
 * WAIT_MS. The rest of the session must be longer than a restart on a busy machine. */
#define RESTART_SESSION_MS 18000

void server_down(void);
/* It serves, and the raw connection is a new one. */
void server_back(void);
/* A connected client with this session timeout. */
struct zkl_client *world_client_of(int session_ms);

#define SHORT_SESSION_MS 2400

/* Since took_begin() at least and at most so many milliseconds have passed; a busy machine has more: lag.h. */
int64_t took_begin(void);
void check_took(int64_t start_ms, int least, int most);

/* A holder in this thread, and an actor with a mutex of another client. */
struct scene {
    const char *path;
    struct zkl_client *client, *other;
    struct zkl_mutex *mutex, *others;
    struct actor *actor;
    struct take take;   /* of others */
    struct notes notes; /* what mutex's callback got */
};

/* How often that callback was told of this. */
int state_count(struct scene *s, enum zkl_hold_state state);

struct scene *scene_begin(const char *name, int session_ms);
/* Whatever happened, the path can be locked, and nothing is left. */
void scene_end(struct scene *s);
/* A test in a scene of its own, s. */
#define OUTAGE_TEST(name, session_ms)                                                              \
    static void name##_of(struct scene *s);                                                        \
    WORLD_TEST(name)                                                                               \
    {                                                                                              \
        struct scene *s = scene_begin(#name, session_ms);                                          \
        name##_of(s);                                                                              \
        scene_end(s);                                                                              \
    }                                                                                              \
    static void name##_of(struct scene *s)
/* What a short session's hold ends with where a slow machine let the session, its link or its window end. */
bool was_late(int rc);
/* The actor's unlock, which succeeds but for that. */
void check_others_unlock(struct scene *s);
/* The actor queues. */
void begin_waiting(struct scene *s);

#endif
