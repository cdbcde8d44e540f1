/* SPDX-License-Identifier: Apache-2.0
 *
 * client.h - the connection to an ensemble.
 *
 * A client makes sessions and keeps them alive in the background. It survives the loss of the link,
 * of a server and of a session. One client serves all locks and threads of a process.
 *
 *     struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
 *     struct zkl_client *opened;
 *     options.servers = "zk1:2181,zk2:2181,zk3:2181/app";
 *     options.connect_timeout_ms = 5000;
 *     if (zkl_client_open(&opened, &options) != 0) {
 *         fprintf(stderr, "%s\n", zkl_error_detail());
 *         exit(EXIT_FAILURE);
 *     }
 *     work();
 *     zkl_client_close(opened, 10000);
 *     zkl_client_free(opened);
 *
 * Illegal: a client in a forked child (ZKL_EFORK; open one there, after the fork); calls that wait
 * in a callback of the library (ZKL_EINCALLBACK); any call with a client that was freed.
 * A process that exits without zkl_client_close leaves its locks held until its session times out.
 */
#ifndef ZKLOCK_CLIENT_H
#define ZKLOCK_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <zklock/error.h>
#include <zklock/log.h>

#ifdef __cplusplus
extern "C" {
#endif

struct zkl_client;

/* --- open a client, a lasting connection to an ensemble ------------------- */

enum zkl_client_state {
    ZKL_CLIENT_CONNECTING = 1, /* there is no session yet, or none after an expiry */
    ZKL_CLIENT_CONNECTED = 2,
    ZKL_CLIENT_SUSPENDED = 3, /* the link is down; the session may or may not live */
    /* the session ended: every hold is lost, waiters queue again. Only the callback receives it */
    ZKL_CLIENT_EXPIRED = 4,
    ZKL_CLIENT_AUTH_FAILED = 5, /* final: the server refused the credential */
    ZKL_CLIENT_CLOSED = 6
};

/* Runs on the client's dispatch thread, with no library lock held, in the order of the changes. The
 * state may have changed again since. Calls that wait return ZKL_EINCALLBACK in it. */
typedef void (*zkl_client_state_fn)(struct zkl_client *client, enum zkl_client_state state,
                                    void *arg);

enum zkl_acl {
    ZKL_ACL_OPEN = 0,   /* anybody may do anything: ZooKeeper's usual default */
    ZKL_ACL_CREATOR = 1 /* only this client's identity: by auth_scheme, TLS or SASL */
};

/* Fill with ZKL_CLIENT_OPTIONS_INIT, then set at least servers. The library copies all text. */
struct zkl_client_options {
    size_t size;
    /* "host:port[,host:port...][/chroot]"; an IPv6 address must be in brackets, as in "[::1]:2181".
     * The chroot is that of all servers */
    const char *servers;
    /* > 0: how long open waits for the first answer. 0: it does not wait, and the state shows later
     * whether a server can be reached */
    int64_t connect_timeout_ms;
    /* the session timeout that the client asks for, 100 to 86400000; the server may grant another,
     * usually 4 to 40 s (zkl_client_get_metrics has it). 0: 10000. The locks of a killed process
     * stay held for this time */
    int session_timeout_ms;
    /* the largest tickTime of all servers that may come to lead, if you know it: windows are longer
     * then. Too small a value makes windows wrong. 0: the library assumes half of the granted
     * timeout, which no server's tickTime exceeds unless its minSessionTimeout was configured below
     * two ticks. At most session_timeout_ms */
    int tick_ms;
    enum zkl_acl acl;             /* of every node and parent that this client makes */
    enum zkl_log_level log_level; /* ZKL_LOG_DEFAULT: ZKL_LOG_INFO */
    /* "digest", or NULL for none; with it exactly one of the next three fields */
    const char *auth_scheme;
    /* for digest "user:password", or "digest:user:password": with two or more colons a leading
     * "digest:" is the scheme, with one colon it is a user of that name; neither part may be
     * empty */
    const char *auth_credential;
    /* a file whose first line is the credential, at most 4096 bytes, and which open reads; a pipe's
     * writer has 10 s for it, and a pipe without a writer is empty */
    const char *auth_file;
    const char *auth_env; /* an environment variable that holds it, at most 4096 bytes */
    const char *owner;    /* data of the nodes; NULL: "host pid thread". At most 512 bytes */
    /* receives the changes of the state; while it is slow, the newest 32 */
    zkl_client_state_fn state_fn;
    void *state_arg;
    zkl_log_fn log_fn; /* receives events of log_level or worse; NULL: silent */
    void *log_arg;
    char *errbuf; /* receives a sentence if open fails; may be NULL */
    size_t errbuf_size;
    /* TLS, both sides with a certificate: set the first three fields, or none. Files are PEM, and
     * their names must not contain commas; they must be regular files, as libzookeeper reads them
     * again at each connection. It does not check the host name in the server's certificate */

    /* the CA of the servers' certificates; the system's CAs count, too */
    const char *tls_ca_file;
    const char *tls_cert_file; /* this client's, and those between it and its CA */
    const char *tls_key_file;
    /* a file whose first line, without commas, decrypts the key; open reads it. NULL: the key is
     * not encrypted */
    const char *tls_passphrase_file;
    /* SASL: "DIGEST-MD5" or "GSSAPI"; NULL: none. Not together with TLS */
    const char *sasl_mechanism;
    const char *sasl_user; /* DIGEST-MD5 needs this field and the next one */
    /* its first line, at most 4096 bytes; a regular file, as the library reads it at each login */
    const char *sasl_password_file;
    const char *sasl_service; /* NULL: "zookeeper" */
    const char *sasl_host;    /* NULL: for DIGEST-MD5 "zk-sasl-md5", else the server's address */
    /* not 0: the client reads the ensemble's own list of servers (/zookeeper/config), with each
     * link and at each change, and uses that in place of servers. This machine must reach the
     * addresses that the servers name there for clients. A list that can't be read, or lacks a
     * client port, changes nothing; the log says so */
    int64_t follow_ensemble;
    /* how many bytes the paths of the session's ephemeral nodes may come to, each with 5 more and
     * with the chroot: a lock beyond that gets ZKL_EFULL. The server ends a session by one
     * transaction with all of these paths, which no server can read above jute.maxbuffer twice; one
     * that has written a longer one does not start again. So give more only where the servers'
     * jute.maxbuffer is larger than usual, or their closeSessionTxn.enabled is false; and less
     * where it is smaller. 0: 1000000 */
    int64_t ephemeral_bytes_max;
};

#define ZKL_CLIENT_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct zkl_client_options), NULL, 0, 0, 0, ZKL_ACL_OPEN, ZKL_LOG_DEFAULT, NULL,     \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, \
            NULL, NULL, NULL, NULL, 0, 0                                                           \
    }

/* Open a client. The library makes the connection in the background and keeps it: a client survives
 * the loss of the link, of a server and of its session. A client has two threads of its own beside
 * libzookeeper's two, and a third where a server is given by name, or with follow_ensemble. All
 * signals are blocked in these threads. (libzookeeper aborts the process if it cannot make its
 * threads. zkl_client_open checks for that first and returns ZKL_ESYSTEM, unless another thread
 * takes the last ones at that very moment.)
 * The library looks names up in the background, and again while no server answers: no call waits
 * for the resolver, and the client follows servers that change their addresses. A name without an
 * address counts as a server that does not answer.
 * Callbacks may run before this call returns. If the call fails, it waits for the callbacks that
 * are due, however long they take; no callback runs after that, and their client no longer exists.
 * If a session had begun, the library ends it in the background.
 * A client has nothing but its session on the servers before it has a lock.
 * 0: the caller must free *client with zkl_client_free.
 * Otherwise *client is untouched and errbuf says why (zkl_error_detail does too, also where options
 * are NULL or without their initializer): ZKL_EINVAL: NULL, options without their initializer, out
 * of range or not to be had together, or a file or variable without a credential, key or
 * certificate; ZKL_EBADSERVERS; ZKL_EBADTIMEOUT (connect_timeout_ms); ZKL_EUNSUPPORTED
 * (libzookeeper was built without TLS or SASL, or the options want both); ZKL_ENOMEM; ZKL_ESYSTEM:
 * no thread or descriptor.
 * With connect_timeout_ms also: ZKL_EDISCONNECTED: no server answered in that time; errbuf names
 * servers without an address; ZKL_EAUTH, ZKL_ENOCHROOT, ZKL_EINCALLBACK. */
ZKL_API int zkl_client_open(struct zkl_client **client, const struct zkl_client_options *options);

/* Returns the state now, for information only: a connected client may hold a lost lock. This call
 * and the next three wait for nothing, and are legal in callbacks.
 * Otherwise: ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_client_get_state(struct zkl_client *client);

/* Returns the number of the client's current session, by which the servers' logs and the nodes know
 * it. The number stays the same while the link is down. 0: the client has no session yet, or none
 * since an expiry; or the call is wrong, and zkl_error_detail says why: NULL, a closed client, a
 * forked child. */
ZKL_API int64_t zkl_client_session_id(struct zkl_client *client);
/* Copy the address of the connected server, "address:port" as in options.servers, into buf with a
 * final NUL. The call looks up no name. Returns the length as snprintf does (cut if >= size).
 * Otherwise: ZKL_EDISCONNECTED: there is no link; ZKL_EINVAL, ZKL_ECLOSED, ZKL_EFORK. */
ZKL_API int zkl_client_server(struct zkl_client *client, char *buf, size_t size);

/* Give an open client another list of servers, as in options.servers, with the same chroot: when
 * the ensemble gets other machines, all of one ensemble (a list of another one ends the session
 * with the next link). The client keeps its session, and what it holds. It stays with the server
 * that it is connected to until that link ends; from then on it uses the new list alone, so replace
 * servers one by one, and give the list before the last one of the old list stops. With
 * options.follow_ensemble the ensemble's next list replaces this one. Names are looked up in the
 * background, and until one has an address the client uses those that it had.
 * 0: the client has the new list.
 * It keeps the servers that it had: ZKL_EBADSERVERS; ZKL_EINVAL (a NULL, or another chroot);
 * ZKL_ENOMEM; ZKL_ESYSTEM (no thread to look names up); ZKL_ECLOSED, ZKL_EFORK. */
ZKL_API int zkl_client_set_servers(struct zkl_client *client, const char *servers);

/* --- end a client's session and free the client --------------------------- */

/* End the session: every hold is lost (reason CLOSED), every waiting call returns ZKL_ECLOSED, and
 * the server removes every node. The call waits at most timeout_ms for the server's answer and for
 * running callbacks. Later calls that make or acquire a lock return ZKL_ECLOSED, unlock returns
 * ZKL_ELOST, so that unlocks stay paired, and queries answer as for a lost hold. The free calls
 * remain legal.
 * 0: the server hung up, as it does once the session has ended, or it had ended before. A server
 * that dies just then, a link that breaks and an event that comes then look the same, and the nodes
 * stay until the session times out. A release that returned 0 needs no close to be sure, but for a
 * posted one or a node that is kept (retain_ms, zkl_rwlock_retain_readers): the close ends these
 * with the session.
 * ZKL_ETIMEDOUT: the client is closed on this side, but time was up or no server answered; the
 * library finishes in the background, and the server removes the nodes when the session times out.
 * Nothing done: ZKL_EBADTIMEOUT, ZKL_EINVAL, ZKL_EFORK, ZKL_EINCALLBACK. */
ZKL_API int zkl_client_close(struct zkl_client *client, int64_t timeout_ms);

/* Close the client if it is still open (waiting at most 10 s), then free the handle. Must be the
 * last call with it. The call does not wait for a callback that takes longer than that: this
 * callback, and those behind it, still run after the call has returned, and what they use must
 * outlive them. Locks of this client may be freed before or after. In a forked child the call does
 * not touch the inherited client, memory included.
 * 0: freed; a session that has not ended yet ends as after ZKL_ETIMEDOUT of zkl_client_close.
 * Nothing done: ZKL_EINVAL, ZKL_EFORK, ZKL_EINCALLBACK. */
ZKL_API int zkl_client_free(struct zkl_client *client);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
