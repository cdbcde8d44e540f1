/* SPDX-License-Identifier: Apache-2.0 */
/* What the fault tests share: a server, clients whose internals the tests may read, threads that do
 * one call after the other, and the state that everything must return to.
 *
 * ZKL_TEST_LONG=1 runs the full length. ZKL_FAULT_TRACE=1 shows the traces of all clients. */
#ifndef ZKFAULT_FAULT_H
#define ZKFAULT_FAULT_H

#include "actor.h"
#include "check.h"
#include "closed.h"
#include "completion.h"
#include "tool/fourlw.h"
#include "length.h"
#include "proxy_before.h"
#include "wire.h"
#include "world.h"
#include "zkserver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zklock/async.h>
#include <zklock/inspect.h>
#include <zklock/metrics.h>
#include <zklock/zklock.h>

#include "api/client.h"
#include "driver/handle.h"

#define WAIT_MS 60000 /* for what must come; a busy machine under a sanitizer takes its time */
#define QUIET_MS 60000

/* What unlock returns if no answer came. On a busy machine the hold's window may be empty: then it is in
 * doubt. */
#define is_unanswered(rc) ((rc) == ZKL_EUNCONFIRMED || (rc) == ZKL_EDOUBT)

/* main: starts the server (options NULL: one node, containers are collected every 300 ms), runs
 * the tests. 77 without java. argv[1]: only the tests of that name, with wildcards. */
int fault_main(int argc, char **argv, const struct zks_options *options);
struct zks_options fault_options(void);
/* The main of a program whose server has other options: FAULT_MAIN(options.nodes = 3) */
#define FAULT_MAIN(...)                                                                            \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        struct zks_options options = fault_options();                                              \
        __VA_ARGS__;                                                                               \
        return fault_main(argc, argv, &options);                                                   \
    }
#define WORLD_TEST(name) WORLD_TEST_IN(name, NULL, world_end)
/* The test called name does that, in a world of its own. */
#define WORLD_TEST_OF(name, does)                                                                  \
    static void name##_in_a_world(void)                                                            \
    {                                                                                              \
        does;                                                                                      \
    }                                                                                              \
    static struct world_case name##_case = {name##_in_a_world};                                    \
    TEST_OF(name, world_run, NULL, world_end, &name##_case)

/* Read with the driver's mutex. */
#define locked(driver, value)                                                                      \
    ({                                                                                             \
        zkl_driver_lock(driver);                                                                   \
        __typeof__(value) value_ = (value);                                                        \
        zkl_driver_unlock(driver);                                                                 \
        value_;                                                                                    \
    })

/* --- clients ---------------------------------------------------------------------------------- */

/* Open, and wait until connected. The test fails if that fails. */
struct zkl_client *fault_open(const char *servers, int session_ms);
/* The same, freed when the test returns: of these servers, of the test's own, and behind a proxy. */
struct zkl_client *world_open(const char *servers, int session_ms);
struct zkl_client *world_direct(int session_ms);
struct zkl_client *world_through(struct proxy *proxy, int session_ms);
struct zkl_client_options fault_client_options(const char *servers, int session_ms);
struct zkl_mutex *fault_mutex(struct zkl_client *client, const char *path);
int64_t fault_session(struct zkl_client *client); /* 0: none now */
/* The client leaves lists out after row locks without another contender between them; UINT_MAX:
 * never. */
void fault_alone_from(struct zkl_client *client, unsigned row);
bool fault_connected(struct zkl_client *client);
bool fault_is_at(struct zkl_client *client, const char *address); /* its server */
bool fault_proved(struct zkl_client *client); /* is its session's window open? */
/* End its session on this node, whatever it takes. */
void fault_expire(struct zkl_client *client, size_t node);
/* The same on node 0, and it has the next one. */
void fault_renew_session(struct zkl_client *client);
struct zkl_client_metrics fault_metrics(struct zkl_client *client);
/* How many times a link came up, as far as the client has noticed: libzookeeper can be connected anew before the library
 * knows that the old link broke. */
int64_t fault_links(struct zkl_client *client);
/* Wait until it has one more than that. */
void fault_check_reconnect(struct zkl_client *client, int64_t links);
/* Cut its link, and wait for the next one; refuse that, and wait until the client knows that it has none. */
void fault_bounce(struct zkl_client *client, struct proxy *proxy);
void fault_lose_link(struct zkl_client *client, struct proxy *proxy);
size_t fault_calls(struct zkl_client *client);       /* accepted and not completed */
size_t fault_contenders(struct zkl_client *client);  /* of the core */
size_t fault_watches(struct zkl_client *client);     /* except those on paths of handles */
int fault_server_watches(struct zkl_client *client); /* of its session, by node 0 */

/* A fresh path for each test: "/NAME". A raw client that looks at node 0. */
struct wire *fault_wire(void);
/* Wait until the window has ended. It must never reach past end_ms, however late the test reads it. */
void fault_check_window_ends(struct zkl_mutex *mutex, int64_t end_ms);
/* Exactly one node is below the path: of the calling thread's hold, and of the client's session. */
void fault_check_only(struct zkl_client *client, struct zkl_mutex *mutex, struct wire *wire,
                      const char *path);
/* Within ms nothing is left below path, and the client has no contender, call or watch. */
void fault_check_rest(struct zkl_client *client, struct wire *wire, const char *path, int ms);
/* The one node below the path, and what it is like, if stat is not NULL. */
void fault_only_child(struct wire *wire, const char *path, char *node, size_t size,
                      struct wire_stat *stat);
/* Children of path; 0 if it is not there. */
int fault_children(struct wire *wire, const char *path);

/* --- threads ---------------------------------------------------------------------------------- */

/* An actor makes one call after the other, mostly of a mutex, so that a test has several owners. */
typedef int (*act_fn)(struct zkl_mutex *mutex, void *arg);
void act_begin(struct actor *a, act_fn fn, struct zkl_mutex *mutex, void *arg);
bool act_busy(struct actor *a);
/* The result; the test fails if it does not come within ms. */
int act_end(struct actor *a, int ms);
int act_do(struct actor *a, act_fn fn, struct zkl_mutex *mutex, void *arg);

/* It comes to have the lock that it began to wait for, and unlocks. */
void actor_passes(struct actor *a);
uint64_t actor_token(struct actor *a); /* of that lock */

/* What an actor may do: ACT(name, call), a call with mutex and arg. */
#define ACT(name, ...)                                                                             \
    static inline int name(struct zkl_mutex *mutex, void *arg)                                     \
    {                                                                                              \
        (void)mutex, (void)arg;                                                                    \
        return __VA_ARGS__;                                                                        \
    }
ACT(act_lock, zkl_mutex_lock(mutex))
ACT(act_lock_for, zkl_mutex_lock_for(mutex, (intptr_t)arg)) /* (void *)(intptr_t)1000 */
ACT(act_lock_cancel, zkl_mutex_lock_until(mutex, ZKL_NO_DEADLINE, arg))
ACT(act_trylock, zkl_mutex_trylock(mutex))
ACT(act_unlock, zkl_mutex_unlock(mutex))
ACT(act_count, zkl_mutex_hold_count(mutex))
ACT(act_window, (int)zkl_mutex_window_ms(mutex))
ACT(act_multi_lock, zkl_multi_lock(arg))
ACT(act_multi_unlock, zkl_multi_unlock(arg, NULL))
ACT(act_set_cancel, (zkl_cancel_set(arg), 0))
ACT(act_close_client, zkl_client_close(arg, WAIT_MS))

/* What an operation came to, however long that takes; rc: what its start said. For actors too. */
int fault_outcome(int rc, struct completion *done);

/* A place in the library's way: the test arms it, the next thread that comes stalls there until the test sets OFF. */
enum { OFF, ARMED, STALLED };
void fault_stall(atomic_int *place);

/* --- what the callback of a hold reported ----------------------------------------------------- */

struct told {
    atomic_int held, suspect, lost;
    atomic_int reason; /* of the last LOST */
    atomic_int suspect_reason;
};
void told_fn(const struct zkl_hold_event *event, void *told);

/* What the calling thread holds, and how it was from the beginning. */
struct holder {
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct told told; /* of it */
    int64_t session;
    uint64_t token;
};
struct holder *world_holder(struct zkl_client *client, const char *path);
/* It still is: the same hold, of the same session, proved as soon as that can be. */
void fault_check_held(struct holder *h);

/* Of libzookeeper itself, connected; zookeeper_close ends it. */
zhandle_t *fault_handle(int session_ms);

/* Threads of this process. A joined thread counts for another moment, so the first count may be too high:
 * wait for at most that many. */
int fault_threads(void);
/* Descriptors of this process; only its sockets. */
int fault_descriptors(void);
int fault_sockets(void);

#endif
