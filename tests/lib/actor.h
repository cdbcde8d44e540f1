/* SPDX-License-Identifier: Apache-2.0 */
/* An actor is a thread that runs the functions that a test gives it, one after another. With actors
 * a test can order what several threads do, one step a line. Only the test's thread asserts.
 * For suites that call the library: each compiles actor.c with its own shared parts. */
#ifndef ZKTEST_ACTOR_H
#define ZKTEST_ACTOR_H

#include <pthread.h>
#include <stdbool.h>

struct actor;
typedef int (*actor_fn)(void *arg);

struct actor *actor_new(void);
struct actor *world_actor(void); /* idle when the test returns */
/* Begin; the actor must be idle. */
void actor_begin(struct actor *actor, actor_fn fn, void *arg);
/* 1 once what was begun is done. */
bool actor_is_done(struct actor *actor);
/* Wait until the actor is done, and return its result. The test fails if that takes longer than
 * a minute. */
int actor_result(struct actor *actor);
int actor_do(struct actor *actor, actor_fn fn, void *arg);
/* Room for four pointers of whoever begins it. */
void *actor_own(struct actor *actor);
pthread_t actor_thread(const struct actor *actor);
/* The thread ends. */
void actor_end(struct actor *actor);

#endif
