/* SPDX-License-Identifier: Apache-2.0
 * One zhandle and the registry of the calls that libzookeeper has accepted for it. libzookeeper
 * loses completions at expiry and at close, and watch contexts always (ZOOKEEPER-2802, -3868):
 * nothing here waits for them, and what they would have freed is freed once zookeeper_close has
 * returned. */
#ifndef ZKL_DRIVER_HANDLE_H
#define ZKL_DRIVER_HANDLE_H

#include "driver.h"
#include "zkmap.h"

#ifndef THREADED
#define THREADED
#endif
#include <zookeeper/zookeeper.h>

struct zkl_call;

struct zkl_handle {
    struct zkl_driver *driver;
    zhandle_t *zh;
    struct zkl_handle *next; /* in the graveyard */
    struct zkl_call *calls;
    size_t call_count;
    bool buried;
    bool ready;  /* set up: its session events count; what came before is told then: */
    bool was_up; /* it connected, */
    enum zkl_link_event early; /* and this came last */
    /* A link counts once the first answer to the credential is there: until then a refusal may end
     * the session at any moment, see zkl_call_multi. */
    atomic_bool auth_due;
    bool up_held; /* one that is up waits for that */
};

/* One accepted call; libzookeeper's completion gets a pointer to it. */
struct zkl_call {
    struct zkl_call *next, *prev;
    struct zkl_handle *handle;
    uint64_t id;
    zoo_op_result_t *results; /* of a transaction */
    size_t result_count;
    char *paths;      /* that it makes: room for result_count of them; NULL: it makes none */
    size_t path_room; /* for each, bytes */
    struct zkl_renewal *renewal;
};

/* With the mutex. A completion: the call leaves the registry, and its answer goes to the core
 * unless the handle is not the current one any more. */
void zkl_call_answered(struct zkl_call *call, struct zkl_reply *reply);
/* The completion's frame: takes the mutex. */
struct zkl_call *zkl_call_enter(const void *data);
void zkl_call_leave(struct zkl_call *call, struct zkl_reply *reply);

/* zoo_amulti, unless the link is down: ZCONNECTIONLOSS. Where the session has ended others just say so,
 * but zoo_amulti goes on with paths that it never set (3.8.0): it leaks, and frees what is not its own.
 * With a link that was up just now a session ends within the call only if this thread stands still
 * while a new link is made, or if a server refuses a credential that was accepted before. */
int zkl_call_multi(struct zkl_call *call, int count, const zoo_op_t *ops, void_completion_t then);

/* A zoo_a* call returned rc, not ZOK: true if the call record must not be freed yet. */
bool zkl_call_is_kept(struct zkl_call *call, int rc);

/* renew.c: several calls in a row that the core sees as one. */
int zkl_renew_start(struct zkl_call *call, const char *path); /* a ZooKeeper code */
void zkl_renew_free(struct zkl_renewal *renewal);

const struct ACL_vector *zkl_handle_acl(const struct zkl_driver *d);

#endif
