/* SPDX-License-Identifier: Apache-2.0
 * One zhandle and the registry of the calls that libzookeeper has accepted for it. libzookeeper
 * loses completions at expiry and at close, and watch contexts always (ZOOKEEPER-2802, -3868). So
 * this code relies on none of them, and frees their memory after zookeeper_close has returned. */
#ifndef ZKL_DRIVER_HANDLE_H
#define ZKL_DRIVER_HANDLE_H

#include "driver.h"
#include "io_thread.h"
#include "zkmap.h"

#include "older.h"

struct zkl_call;
struct zkl_login;

/* The state of the credential. */
enum zkl_auth {
    ZKL_AUTH_FINE,   /* accepted, or there is none */
    ZKL_AUTH_DUE,    /* the server's first answer is still to come */
    ZKL_AUTH_UNHEARD /* it was lost with its link */
};
#define ZKL_AUTH_ASKED_MAX 16

struct zkl_handle {
    struct zkl_driver *driver;
    zhandle_t *zh;
    struct zkl_handle *next; /* in the graveyard */
    struct zkl_io io;
    unsigned serial; /* of the resolver's list that it was given or offered */
    struct zkl_call *calls;
    size_t awaited; /* how many of them; no caller waits for the read that is always under way */
    bool opening;   /* libzookeeper makes it, without the mutex: no thread may close it yet */
    bool buried;
    int64_t opened_boot_ns; /* read before it was opened */
    unsigned links;         /* how often it connected */
    bool linked;            /* the link is up, by the last report */
    /* set up: its session events count; earlier events are reported then: */
    bool ready;
    bool was_up;               /* it connected, */
    enum zkl_link_event early; /* and this came last */
    /* A link counts once the server is known to have accepted the credential: until then a refusal
     * may end the session at any moment, see zkl_call_multi. */
    atomic_int auth;           /* enum zkl_auth */
    int auth_asked;            /* how often again, as the answer was lost */
    bool up_held;              /* a link that is up waits for that */
    bool told_failed;          /* see zkl_handle_look */
    int64_t handshake_mono_ns; /* since when one of TLS is under way; 0: none */
    struct zkl_login *login;   /* of SASL; NULL: none */
};

/* What renew.c knows of the node that it makes again. */
struct zkl_renewal {
    char *path;
    char *data;
    int length;
    int version;
    struct ACL_vector acl;
    zoo_op_t ops[3];
    char created[ZKL_PATH_MAX + 64];
};

/* One accepted call; libzookeeper's completion gets a pointer to it. */
struct zkl_call {
    struct zkl_call *next, *prev;
    struct zkl_handle *handle;
    uint64_t id;
    bool is_awaited;
    zoo_op_result_t *results; /* of a transaction */
    size_t result_count;
    char *paths;      /* that it makes: room for result_count of them; NULL: it makes none */
    size_t path_room; /* for each, bytes */
    /* of a transaction that is no lock's: what its last SET answers; or NULL */
    struct Stat *stat;
    struct zkl_renewal *renewal;
    struct zkl_stamp stamp; /* the request's */
};

/* With the mutex. NULL: no memory. */
struct zkl_call *zkl_call_new(struct zkl_handle *h, const struct zkl_request *request);
void zkl_call_free(struct zkl_call *call);
/* With the mutex. A completion: the call leaves the registry, and its answer reaches the core if
 * the handle is still the current one. */
void zkl_call_answered(struct zkl_call *call, struct zkl_reply *reply);
/* The completion's frame: takes the mutex. */
struct zkl_call *zkl_call_enter(const void *data);
void zkl_call_leave(struct zkl_call *call, struct zkl_reply *reply);

/* zoo_amulti, unless the link is down: ZCONNECTIONLOSS. If the session has ended other calls just
 * return that, but zoo_amulti continues with paths that it never set (3.8.0): it leaks, and frees
 * memory that is not its own. With a link that was up just now, a session ends within the call only
 * if this thread stands still while a new link is made, or if a server refuses a credential that it
 * accepted before. */
int zkl_call_multi(struct zkl_call *call, int count, const zoo_op_t *ops, void_completion_t then);

/* A zoo_a* call returned rc, not ZOK: true if the call record must not be freed yet. */
bool zkl_call_is_kept(struct zkl_call *call, int rc);
/* The core's name for this result. If the session has ended, zoo_amulti returns that there is no
 * memory. */
enum zkl_answer zkl_handle_refusal(const struct zkl_handle *h, int rc);

/* renew.c: several calls in a row that the core sees as one. */
int zkl_renew_start(struct zkl_call *call, const char *path); /* a ZooKeeper code */

const struct ACL_vector *zkl_handle_acl(const struct zkl_driver *d);

/* With the mutex: libzookeeper does not report a failed SASL login, it only ends its I/O thread. */
void zkl_handle_look(struct zkl_handle *h);

/* secure.c: make its zhandle, with the handle for the context. addresses is taken over; errno says
 * why it returns NULL. */
zhandle_t *zkl_secure_init(struct zkl_handle *h, char *addresses, watcher_fn watcher);
/* secure.c, with the mutex: with TLS, end a handshake that takes too long. */
void zkl_secure_watch_handshake(const struct zkl_driver *d, struct zkl_handle *h,
                                int64_t now_mono_ns);
/* secure.c: zookeeper_close, which a server that is silent in the handshake does not hold up, with
 * its result. Without the mutex. */
int zkl_secure_close(struct zkl_handle *h);

#endif
