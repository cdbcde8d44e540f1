/* SPDX-License-Identifier: Apache-2.0
 *
 * log.h - what a client does and why, as events for the program's own log.
 *
 *     static void print_line(const struct zkl_log_event *event, void *file)
 *     {
 *         fprintf(file, "%s\n", event->message);
 *     }
 *     ...
 *     struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
 *     options.log_fn = print_line;
 *     options.log_arg = stderr;
 *     options.connect_timeout_ms = 5000;
 *     options.servers = "127.0.0.1:2181";
 *     if (zkl_client_open(&client, &options) != 0)
 *         exit(EXIT_FAILURE);
 *
 * Without a log_fn the library is silent: it prints nothing by itself.
 * Illegal in the callback: calls that wait (ZKL_EINCALLBACK); keeping the event, or its text,
 * beyond the callback.
 */
#ifndef ZKLOCK_LOG_H
#define ZKLOCK_LOG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- open a client, a lasting connection to an ensemble ------------------- */

enum zkl_log_level {
    ZKL_LOG_DEFAULT = 0,
    ZKL_LOG_ERROR = 1,   /* a hold was lost, or the client cannot continue */
    ZKL_LOG_WARNING = 2, /* the link, a proof, an answer or a right is missing */
    ZKL_LOG_INFO = 3,    /* the session and the holds are well again; requests to release */
    ZKL_LOG_DEBUG = 4    /* every decision, grant and unlock */
};

enum zkl_log_kind {
    /* the session's state changed: from, to; where they are the same, other than STARTING, why is
     * about the server */
    ZKL_LOG_KIND_SESSION = 1,
    ZKL_LOG_KIND_CONTENDER = 2, /* the state of one place in one queue changed: from, to */
    ZKL_LOG_KIND_PERMITS = 3,   /* the state of a request for permits changed: from, to */
    ZKL_LOG_KIND_GRANTED = 4,   /* token */
    ZKL_LOG_KIND_FAILED = 5,    /* code: there will be no grant */
    ZKL_LOG_KIND_RELEASED = 6,  /* code, of the unlock */
    ZKL_LOG_KIND_HOLD = 7,      /* state and reason, of a caller's hold */
    ZKL_LOG_KIND_DROPPED = 8,   /* dropped */
    /* node: a server's name that has no address, and why; "": it has one now */
    ZKL_LOG_KIND_RESOLVER = 9
};

/* One event. Fields that do not belong to its kind are 0 or "". The event is valid during the
 * callback only, except from, to and why, which are static text. It contains no credential. */
struct zkl_log_event {
    size_t size;
    enum zkl_log_level level;
    enum zkl_log_kind kind;
    int64_t time_ns;       /* zkl_now_ns's clock */
    int64_t session;       /* ZooKeeper's id; 0: none yet */
    const char *path;      /* of the queue, without the chroot; a semaphore has two below its own */
    const char *node;      /* name of the contender's child there; of RESOLVER: the server's */
    uint64_t contender;    /* its number in this client */
    const char *from, *to; /* names of states, in docs/states.md */
    const char *why;       /* a short reason */
    int code;              /* enum zkl_error */
    int state;             /* enum zkl_hold_state */
    int reason;            /* enum zkl_reason */
    uint32_t dropped;      /* how many events are missing here, as the callback was slow */
    uint64_t token;
    const char *message; /* the whole event as one line of text, without a newline */
};

/* Runs on the same thread, by the same rules, as zkl_client_state_fn. */
typedef void (*zkl_log_fn)(const struct zkl_log_event *event, void *arg);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
