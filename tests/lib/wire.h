/* SPDX-License-Identifier: Apache-2.0 */
/* ZooKeeper's protocol over a plain socket, independent of libzookeeper: for tests to look at a
 * server, to interfere with it, and to end other clients' sessions.
 *
 * A struct wire is one connection with one session, for one thread at a time. Nothing runs in the
 * background: no ping is sent, so ask for a session timeout longer than the pauses between two
 * calls on the slowest machine, as WIRE_LASTING_MS (or call wire_ping). Calls return 0, a ZooKeeper
 * error (below 0, such as WIRE_NONODE), or WIRE_IO when the connection is broken or did not answer
 * in WIRE_TIMEOUT_MS. */
#ifndef ZKTEST_WIRE_H
#define ZKTEST_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_TIMEOUT_MS 60000
#define WIRE_LASTING_MS 600000 /* a session that outlasts a test; max_session_ms of its server */
#define WIRE_PASSWORD 16

enum wire_error {
    WIRE_IO = -10000, /* not one of ZooKeeper's */
    WIRE_NONODE = -101,
    WIRE_NOAUTH = -102,
    WIRE_BADVERSION = -103,
    WIRE_NODEEXISTS = -110,
    WIRE_NOTEMPTY = -111,
    WIRE_SESSIONEXPIRED = -112
};

/* The node's kind, for wire_create. */
enum wire_flags {
    WIRE_PERSISTENT = 0,
    WIRE_EPHEMERAL = 1,
    WIRE_SEQUENTIAL = 2,
    WIRE_EPHEMERAL_SEQUENTIAL = 3,
    WIRE_CONTAINER = 4
};

#define WIRE_PERM_ALL 31

struct wire_stat {
    int64_t czxid, mzxid, ctime_ms, mtime_ms;
    int32_t version, cversion, aversion;
    int64_t ephemeral_owner;
    int32_t data_length, children;
    int64_t pzxid;
};

struct wire_acl {
    int32_t perms;
    const char *scheme;
    const char *id;
};

/* What wire_children gives; to be freed with wire_names_free. Sorted. */
struct wire_names {
    size_t n;
    char **name;
};

struct wire;

/* Connect and start a session. 0 or WIRE_IO. */
int wire_open(struct wire **wire, const char *host, int port, int session_ms);
/* Connect and take over a session. WIRE_SESSIONEXPIRED if it does not live any more. */
int wire_reopen(struct wire **wire, const char *host, int port, int session_ms, int64_t session,
                const char password[WIRE_PASSWORD]);
/* End the session, then the connection. Frees. NULL is ignored. */
void wire_close(struct wire *wire);
/* End the connection only: the session lives until it times out. Frees. */
void wire_abandon(struct wire *wire);

int64_t wire_session(const struct wire *wire);
const char *wire_password(const struct wire *wire); /* WIRE_PASSWORD bytes */
int wire_session_ms(const struct wire *wire);       /* as the server granted it */
int64_t wire_last_zxid(const struct wire *wire);

/* made, if not NULL, receives the path with its number. acl NULL: open to anybody. Text, not
 * bytes. */
int wire_create(struct wire *wire, const char *path, const char *data, int flags, char *made,
                size_t size);
int wire_create_acl(struct wire *wire, const char *path, const char *data, int flags,
                    const struct wire_acl *acl, size_t acl_count, char *made, size_t size);
int wire_delete(struct wire *wire, const char *path, int32_t version);
/* Delete a node and all below it. 0 also if it is not there. */
int wire_delete_tree(struct wire *wire, const char *path);
/* stat may be NULL. */
int wire_exists(struct wire *wire, const char *path, struct wire_stat *stat);
/* The data with a final NUL, cut to size. */
int wire_get(struct wire *wire, const char *path, char *data, size_t size, struct wire_stat *stat);
int wire_set(struct wire *wire, const char *path, const char *data, int32_t version);
/* "PERMS:SCHEME:ID" for each entry, with a comma between them, PERMS in digits:
 * "31:world:anyone". */
int wire_get_acl(struct wire *wire, const char *path, char *text, size_t size);
int wire_set_acl(struct wire *wire, const char *path, const struct wire_acl *acl, size_t acl_count);
int wire_children(struct wire *wire, const char *path, struct wire_names *names);
void wire_names_free(struct wire_names *names);
/* The number of children, or an error. */
int wire_count(struct wire *wire, const char *path);
/* Ephemeral nodes at path and below, at any depth; or an error. */
int wire_ephemerals(struct wire *wire, const char *path);
/* Print a node and all below it on standard error, each with its data. */
void wire_print_tree(struct wire *wire, const char *path);
/* Wait until the server has applied what its leader had committed when the call came. */
int wire_sync(struct wire *wire, const char *path);
int wire_ping(struct wire *wire);
/* For digest: credential is "user:password". */
int wire_auth(struct wire *wire, const char *scheme, const char *credential);

/* Watch a node, as "exists" does: one event for its creation, its deletion or new data. 0 also if
 * the node is not there. */
int wire_watch(struct wire *wire, const char *path);

enum wire_event_type { WIRE_CREATED = 1, WIRE_DELETED = 2, WIRE_CHANGED = 3, WIRE_CHILD = 4 };
/* The next event: its type, and its path if path is not NULL. WIRE_IO: none in that time. */
int wire_wait_event(struct wire *wire, int timeout_ms, char *path, size_t size);

/* One try to end another client's session: the connect request with its id and password and the
 * request to close it, in one write, as the owner comes back immediately and takes the session away
 * from us. 0: ended now. 1: it had ended before, or the password is wrong. WIRE_IO: the owner was
 * faster, or no server; try again. */
int wire_kill_session(const char *host, int port, int64_t session,
                      const char password[WIRE_PASSWORD]);
/* Try until it is ended. 0, or WIRE_IO after the timeout. */
int wire_expire_session(const char *host, int port, int64_t session,
                        const char password[WIRE_PASSWORD], int timeout_ms);

#endif
