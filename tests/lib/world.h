/* SPDX-License-Identifier: Apache-2.0 */
/* What a test makes, and what frees it: clients, locks, threads, proxies. Everything that is made by a world_ function
 * is on one list, and is freed when the test returns: threads first, then multi-locks, locks, cancel objects and owners,
 * clients, proxies and raw connections, memory last; of one kind the newest first. Each free must return 0 and each
 * client's end be confirmed, and before that no client's session may have a node left. A test that fails is cleaned up
 * as far as that goes, without checks, so that the next one begins anew. For suites that call the library: each compiles
 * world.c with its own shared parts. */
#ifndef ZKTEST_WORLD_H
#define ZKTEST_WORLD_H

#include <zklock/async.h>
#include <zklock/zklock.h>

#include "check.h"
#include "proxy.h"
#include "tests.h"
#include "wire.h"
#include "zkserver.h"

extern struct zks *server; /* of the running test program */

struct world_case {
    void (*test)(void);
};

/* The test name(void), in a world of its own. begin may be NULL, end must call world_end. */
#define WORLD_TEST_IN(name, begin, end)                                                            \
    static void name(void);                                                                        \
    static struct world_case name##_case = {name};                                                 \
    TEST_OF(name, world_run, begin, end, &name##_case)                                             \
    static void name(void)
void world_run(void **state);
int world_end(void **state);

/* Each fails the test if there is none. options may be NULL, but for a client. */
struct zkl_client *world_client_with(const struct zkl_client_options *options);
struct zkl_mutex *world_mutex_with(struct zkl_client *client, const char *path,
                                   const struct zkl_mutex_options *options);
struct zkl_mutex *world_mutex(struct zkl_client *client, const char *path);
struct zkl_rwlock *world_rwlock(struct zkl_client *client, const char *path,
                                const struct zkl_lock_options *options);
struct zkl_semaphore *world_semaphore(struct zkl_client *client, const char *path, int permits,
                                      const struct zkl_lock_options *options);
struct zkl_mutex *world_semaphore_mutex(struct zkl_client *client, const char *path);
struct zkl_multi *world_multi(struct zkl_client *client, const struct zkl_member *members,
                              size_t count);
struct zkl_cancel *world_cancel(void);
struct zkl_owner *world_owner(void);
struct zks *world_server(const struct zks_options *options); /* of the test's own */
/* In front of a node; of the program's server. */
struct proxy *world_proxy_to(struct zks *zks, size_t node);
struct proxy *world_proxy(void);
/* Its link breaks, and there is no other until proxy_refuse(proxy, false). */
void lose_link(struct proxy *proxy);
/* A raw connection to a node; to node 0 of the program's server: with it all nodes are deleted in the end, but the
 * server's own. */
struct wire *world_wire_to(struct zks *zks, size_t node, int session_ms);
struct wire *world_wire(void);
void *world_alloc(size_t size); /* zeros */

/* In which order things are freed. */
enum world_rank { WORLD_THREAD, WORLD_MULTI, WORLD_LOCK, WORLD_CLIENT, WORLD_LINK, WORLD_MEMORY };
/* Something else, which the test has just made: 0 from free is good. Returns it. */
void *world_keep(void *thing, enum world_rank rank, int (*free)(void *thing));

/* What its callbacks use must last as long: static, or of world_alloc. */

/* Now instead of in the end: one thing, all, or what was made after a mark (the end of a round). Each free must
 * return 0, and what is checked in the end is checked but for one thing alone. */
void world_drop(void *thing);
void world_clear(void);
unsigned long world_mark(void);
void world_clear_since(unsigned long mark);
/* The test has freed it itself, as its subject. */
void world_forget(void *thing);

#endif
