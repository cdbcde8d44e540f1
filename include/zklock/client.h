/* SPDX-License-Identifier: Apache-2.0
 *
 * client.h - the connection to an ensemble.
 *
 * A client makes its sessions and keeps them alive, in the background: it survives the loss of the
 * link, of a server and of a session. One client serves all locks and threads of a process.
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

enum zkl_client_state {
    ZKL_CLIENT_CONNECTING = 1, /* no session yet, or the next one after an expiry */
    ZKL_CLIENT_CONNECTED = 2,
    ZKL_CLIENT_SUSPENDED = 3,   /* the link is down; the session may or may not live */
    ZKL_CLIENT_EXPIRED = 4,     /* the session ended: every hold is lost, waiters queue again */
    ZKL_CLIENT_AUTH_FAILED = 5, /* final: the credential was refused */
    ZKL_CLIENT_CLOSED = 6
};

/* Runs on the client's dispatch thread, with no library lock held, in the order of the changes; the
 * state may have changed again since. Calls that wait return ZKL_EINCALLBACK in it. */
typedef void (*zkl_client_state_fn)(struct zkl_client *client, enum zkl_client_state state,
                                    void *arg);

enum zkl_acl {
    ZKL_ACL_OPEN = 0,   /* anybody may do anything: ZooKeeper's usual default */
    ZKL_ACL_CREATOR = 1 /* only this client's identity: by auth_scheme, TLS or SASL */
};

/* Fill with ZKL_CLIENT_OPTIONS_INIT, then set at least servers. All text is copied. */
struct zkl_client_options {
    size_t size;
    /* "host:port[,host:port...][/chroot]"; an IPv6 address in brackets */
    const char *servers;
    int64_t connect_timeout_ms; /* > 0: open waits so long for the first answer */
    /* asked for, 100 to 86400000; the server may grant another, usually 4 to 40 s. 0: 10000. This
     * is how long the locks of a killed process stay held */
    int session_timeout_ms;
    /* the largest tickTime of the servers, if you know it: windows are longer then. Too small a
     * value makes windows wrong. 0: half of the granted timeout is assumed, which no server's
     * tickTime is above, unless its minSessionTimeout was configured below two ticks */
    int tick_ms;
    enum zkl_acl acl;             /* of every node and parent this client makes */
    enum zkl_log_level log_level; /* ZKL_LOG_DEFAULT: ZKL_LOG_INFO */
    const char *auth_scheme;      /* "digest", or NULL for none */
    /* for digest "user:password", or "digest:user:password": with two colons or more "digest:" in
     * front is the scheme, with one it is a user of that name; neither part is empty. Or one of the
     * next two */
    const char *auth_credential;
    /* a file whose first line is the credential; a pipe's writer has 10 s for it */
    const char *auth_file;
    const char *auth_env; /* an environment variable that holds it */
    const char *owner;    /* data of the nodes; NULL: "host pid thread". At most 512 bytes */
    zkl_client_state_fn state_fn;
    void *state_arg;
    zkl_log_fn log_fn; /* what is of log_level or worse; NULL: silent */
    void *log_arg;
    char *errbuf; /* gets open's failure in words; may be NULL */
    size_t errbuf_size;
    /* TLS, both sides with a certificate: the first three, or none; PEM; names without commas.
     * libzookeeper reads them again at each connection, and does not look at the host's name in the
     * server's certificate */
    const char *tls_ca_file;   /* who signs servers' certificates; the system's CAs count, too */
    const char *tls_cert_file; /* this client's, and those between it and its CA */
    const char *tls_key_file;
    const char *tls_passphrase_file; /* a file whose first line opens the key; NULL: it is open */
    /* SASL: "DIGEST-MD5" or "GSSAPI"; NULL: none. Not with TLS */
    const char *sasl_mechanism;
    const char *sasl_user;          /* DIGEST-MD5 needs it and the next one */
    const char *sasl_password_file; /* its first line; libzookeeper reads it at each login */
    const char *sasl_service;       /* NULL: "zookeeper" */
    const char *sasl_host; /* NULL: for DIGEST-MD5 "zk-sasl-md5", else the server's address */
};

#define ZKL_CLIENT_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct zkl_client_options), NULL, 0, 0, 0, ZKL_ACL_OPEN, ZKL_LOG_DEFAULT, NULL,     \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, \
            NULL, NULL, NULL, NULL                                                                 \
    }

/* Open a client. The connection is made in the background and kept: a client survives the loss of
 * the link, of a server and of its session. It has two threads of its own beside libzookeeper's
 * two, and a third where a server is a name; all have every signal blocked. (libzookeeper aborts
 * the process where its own can't be made: ZKL_ESYSTEM comes before that, unless somebody takes the
 * last ones at that very moment.)
 * 0: the caller frees *client with zkl_client_free. Otherwise *client is untouched and errbuf says
 * why: ZKL_EINVAL, ZKL_EBADSERVERS, ZKL_EBADTIMEOUT (connect_timeout_ms), ZKL_EUNSUPPORTED (TLS or
 * SASL that libzookeeper was built without, or both at once), ZKL_ENOMEM, ZKL_ESYSTEM;
 * with connect_timeout_ms also ZKL_EDISCONNECTED, ZKL_EAUTH, ZKL_ENOCHROOT, ZKL_EINCALLBACK. Names
 * are looked up in the background, again while no server answers: no call waits for the resolver,
 * and a name that has no address is as a server that does not answer (ZKL_EDISCONNECTED, with
 * connect_timeout_ms; errbuf names it). Callbacks may run before this returns; once it has failed
 * none does any more: those that are due are waited for, however long they take, and the client
 * they were given is gone. */
ZKL_API int zkl_client_open(struct zkl_client **client, const struct zkl_client_options *options);

/* The state now, or ZKL_EINVAL, ZKL_EFORK. Information only: a connected client may hold a lost
 * lock. */
ZKL_API int zkl_client_get_state(struct zkl_client *client);

/* The number of the session that the client has now, by which the servers' logs and the nodes know
 * it; it stays while the link is down. 0: there is none yet, or not again after an expiry; or a
 * wrong call, and zkl_error_detail says why: NULL, a closed client, a forked child. */
ZKL_API int64_t zkl_client_session_id(struct zkl_client *client);
/* Copy the address of the server that the link is to now, "address:port" as options.servers has it,
 * into buf with a final NUL. Returns its length as snprintf does (cut if >= size);
 * ZKL_EDISCONNECTED: there is no link; ZKL_EINVAL, ZKL_ECLOSED, ZKL_EFORK. No name is looked up. */
ZKL_API int zkl_client_server(struct zkl_client *client, char *buf, size_t size);

/* End the session: every hold is lost (reason CLOSED), every waiting call returns ZKL_ECLOSED,
 * every node goes. Waits at most timeout_ms for the server's answer and for running callbacks.
 * Later calls that make or acquire a lock return ZKL_ECLOSED, unlock returns ZKL_ELOST, and the
 * questions answer as for a lost hold; the free calls remain.
 * 0: the server confirmed that the session ended, or it had ended before. ZKL_ETIMEDOUT: closed on
 * this side, but the time was up or no server answered; what is left of the work goes on in the
 * background, and the nodes go when the session times out at the latest. ZKL_EBADTIMEOUT,
 * ZKL_EINVAL, ZKL_EFORK, ZKL_EINCALLBACK. */
ZKL_API int zkl_client_close(struct zkl_client *client, int64_t timeout_ms);

/* Close if still open (waiting at most 10 s), then give the handle up. A callback that takes longer
 * than that is not waited for: it, and those behind it, run on after this has returned, and what
 * they use must outlive them. Locks of this client may be freed before or after. In a forked
 * child: the inherited client is left alone, memory included.
 * 0, ZKL_EINVAL, ZKL_EFORK, ZKL_EINCALLBACK (nothing done). */
ZKL_API int zkl_client_free(struct zkl_client *client);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
