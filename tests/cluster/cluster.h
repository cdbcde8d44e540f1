/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this suite share: one private server for each program, clients and handles
 * that are sure to be there, a raw connection to look at nodes and to interfere, and actors. */
#ifndef ZKTEST_CLUSTER_H
#define ZKTEST_CLUSTER_H

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zklock/async.h>
#include <zklock/inspect.h>
#include <zklock/zklock.h>

#include "actor.h"
#include "check.h"
#include "closed.h"
#include "tool/fourlw.h"
#include "length.h"
#include "sanitizer.h"
#include "wire.h"
#include "world.h"
#include "zkserver.h"

#define WAIT_MS 60000    /* for what comes immediately, on a busy machine too */
#define SESSION_MS 30000 /* nothing expires by itself, and no ping disturbs a count */
#define CONTAINER_CHECK_MS 200

extern struct zks_options cluster_server; /* to be changed before main's last call */
extern struct wire *raw;                  /* a session of the test's own, made anew for each test */

/* What is to end before the server does; NULL: nothing. */
extern void (*cluster_before_stop)(void);

/* For main: skip without java, else run the tests (those that a wildcard names) on a new server. */
int cluster_main(int argc, char **argv);
/* A test with a raw connection. */
#define CLUSTER_TEST(name) TEST_IN(name, cluster_raw_open, cluster_raw_close)
int cluster_raw_open(void **state);
int cluster_raw_close(void **state);
/* The same, in a world of its own. */
#define WORLD_TEST(name) WORLD_TEST_IN(name, cluster_raw_open, cluster_world_end)
int cluster_world_end(void **state);

/* ZKL_TEST_CHROOT=/a/b: every client of cluster_options() lives below that node, which is there.
 * What a client calls path is at cluster_at(path) for the raw connection, and cluster_servers(list)
 * is what a client is given. Static memory, good for some more calls. */
const char *cluster_at(const char *path);
const char *cluster_servers(const char *servers);

/* Options for the server, SESSION_MS, with a connection waited for. */
struct zkl_client_options cluster_options(void);
/* A connected client, from options or with cluster_options(). */
struct zkl_client *cluster_client_with(const struct zkl_client_options *options);
struct zkl_client *cluster_client(void);
struct zkl_client *world_client(void);
struct zkl_mutex *cluster_mutex(struct zkl_client *client, const char *path);
/* Free the mutexes (up to a NULL), then the client. Each call must return 0. */
#define cluster_free(client, ...)                                                                  \
    cluster_free_all(client, (struct zkl_mutex *[]){__VA_ARGS__, NULL})
void cluster_free_all(struct zkl_client *client, struct zkl_mutex *mutexes[]);

/* A path of the calling test's own: "/NAME-n". Static memory, good for some more calls. */
const char *cluster_path(const char *name);
/* The number of children of a client's path; 0 if that node is not there. */
int cluster_children(const char *path);
/* The nth child (0: the first by number) as a whole path for the raw connection. */
void cluster_child(const char *path, size_t nth, char *out, size_t size);
const char *child_of(const char *path, size_t nth); /* the same, good for some more calls */

/* --- actors ----------------------------------------------------------------------------------- */

/* Many of them do the same, each with a member of an array as its argument; of size 0: all with one. */
struct crowd {
    size_t count;
    struct actor **actors;
};
struct crowd crowd_of(actor_fn fn, void *members, size_t size, size_t count);
#define crowd_begin(fn, members)                                                                   \
    crowd_of(fn, members, sizeof(members)[0], sizeof(members) / sizeof(members)[0])
/* Wait for all; each has said 0. */
void crowd_end(struct crowd *crowd);

/* For actors; arg is the mutex. */
int do_lock(void *mutex);
int do_trylock(void *mutex);
int do_unlock(void *mutex);
int do_cycle(void *mutex); /* both */
int do_multi_lock(void *multi);
int do_multi_unlock(void *multi);

/* A wait that nothing but the cancel object ends; for actors: do_lock_cancel(cancel_wait). */
struct cancel_wait {
    struct zkl_mutex *mutex;
    struct zkl_cancel *cancel;
};
int do_lock_cancel(void *cancel_wait);

/* An acquire with everything there is; also for actors: do_acquire(take). */
struct take {
    struct zkl_mutex *mutex;
    struct zkl_wait wait;
    struct zkl_grant grant;
};
struct take take_of(struct zkl_mutex *mutex);
int do_acquire(void *take);

/* Who locks a path: a client, its mutex there, and an actor. */
struct locker {
    const char *path;
    struct proxy *proxy; /* before the client, or NULL */
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct actor *actor;
    struct take take; /* how the actor waits, and what it got */
};
/* options: of the mutex, or NULL. */
struct locker locker_of(const char *path, const struct zkl_mutex_options *options);
struct locker locker_behind(const char *path, const struct zkl_mutex_options *options,
                            int session_ms);
/* The actor waits, as the nth contender of the path. */
void locker_queues(struct locker *locker, int n);
/* It comes to have the lock, and unlocks. */
void locker_passes(struct locker *locker);

/* What fn gives, as the exit status of a child, 0 to 98; 99: it did not end by itself. */
int in_child(int (*fn)(void *arg), void *arg);

#define skip_where(condition, why)                                                                 \
    do {                                                                                           \
        if (condition) {                                                                           \
            print_message("skipped: %s\n", why);                                                   \
            skip();                                                                                \
        }                                                                                          \
    } while (0)
/* gcc's thread sanitizer ends a forked child that starts threads ("dup thread with used id"), and has a
 * thread of its own that takes signals: such a test is skipped there, and says so. */
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define skip_under_gcc_tsan() skip_where(true, "gcc's thread sanitizer can't run this")
#else
#define skip_under_gcc_tsan() ((void)0)
#endif
/* Address sanitizers leave the locks of their own allocator taken in a child that is forked while another thread
 * allocates. */
#define skip_under_asan()                                                                          \
    skip_where(UNDER_ASAN, "children of a busy process hang under the address sanitizer")

#ifndef __cplusplus
#include "completion.h"
#include "nodes.h"
#include "notes.h"
#endif

#endif
