/* SPDX-License-Identifier: Apache-2.0
 * The driver: a core, a ZooKeeper handle, and the two threads of a client. One mutex guards the
 * core and everything that depends on it. These threads take the mutex: application threads,
 * libzookeeper's completion thread, the service thread (timers, opening of handles, cancel
 * objects), the dispatch thread (user callbacks, which run without it), and two that no thread
 * waits for: the undertaker closes handles, resolver.c looks names up. The driver calls
 * libzookeeper with the mutex held, except to open and close a handle. libzookeeper holds none of
 * its own locks when it calls us. */
#ifndef ZKL_DRIVER_DRIVER_H
#define ZKL_DRIVER_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "clock.h"
#include "core/core.h"
#include "resolver.h"
#include "secure.h"

/* Something for the dispatch thread to run; embedded in what it is about. */
struct zkl_note {
    struct zkl_note *next;
    bool queued;
    const void *owner;                  /* zkl_driver_quiesce waits for the notes of an owner */
    void (*run)(struct zkl_note *note); /* without the mutex */
};

/* A task to run before the mutex is released, with it; embedded in the object that it concerns. */
struct zkl_task {
    struct zkl_task *next;
    bool queued;
    void (*run)(struct zkl_task *task);
};

/* A thread to wake after the mutex is released; embedded in a waiting call. */
struct zkl_waker {
    struct zkl_waker *next;
    bool queued;
    pthread_cond_t cond;                    /* waits with the driver's mutex, on CLOCK_MONOTONIC */
    void (*woken)(struct zkl_waker *waker); /* without the mutex, after the signal; may be NULL */
};

/* A descriptor the service thread looks after until it becomes readable. */
struct zkl_fd_watch {
    struct zkl_fd_watch *next;
    /* Events find it by this number: its descriptor may belong to another object when they
     * arrive. */
    uint64_t number;
    int fd;
    void (*readable)(void *arg, struct zkl_fd_watch *watch); /* with the mutex; once */
};

struct zkl_driver_config {
    char *servers; /* without the chroot */
    char *chroot;  /* empty: none */
    int session_timeout_ms;
    int tick_ms;                  /* 0: unknown */
    uint64_t ephemeral_bytes_max; /* 0: the core's own */
    char *auth_scheme;
    char *auth_credential;
    struct zkl_security security;
    bool creator_acl;
    bool first_read; /* one read at the first link: zkl_core's first_read_answer */
    bool follow_ensemble;
    /* All with the mutex held. */
    void (*notification)(struct zkl_port *port, struct zkl_contender *contender,
                         const struct zkl_notification *notification);
    void (*session)(void *arg, unsigned actions);
    void (*log)(void *arg, const struct zkl_trace *trace); /* may be NULL */
    /* A server's name could not be looked up, and why; NULL: now it could. May be NULL. */
    void (*resolved)(void *arg, const char *host, const char *why);
    void (*due)(void *arg, int64_t mono_ns); /* due_ns has come */
    /* The session's end is confirmed, or given up; may be NULL. */
    void (*closed)(void *arg, bool confirmed);
    /* The last of the driver's threads has ended: the driver does not use arg any more. Without the
     * mutex. Not called when zkl_driver_new fails. */
    void (*gone)(void *arg);
    void *arg;
};

struct zkl_handle;

struct zkl_driver {
    pthread_mutex_t mu;
    _Atomic(const void *) has_mu; /* the thread that has it, for assertions */
    struct zkl_core core;
    struct zkl_port port;
    struct zkl_driver_config config;

    struct zkl_handle *current, *probe; /* NULL while none is open */
    struct zkl_handle *graveyard;       /* to be closed */
    bool open_current, open_probe;
    int64_t open_not_before; /* after a failed open; CLOCK_MONOTONIC */
    struct zkl_resolver resolver;
    char *ensemble; /* the list that the servers gave, if it counts now; see ensemble.c */
    const char *ensemble_fault; /* why what they say does not count; NULL: it does, or none said */

    pthread_t service, undertaker;
    bool burying, undertaken; /* the undertaker runs; must be joined */
    int epoll_fd, wake_fd;
    int64_t service_until; /* when the service thread wakes by itself */
    struct zkl_fd_watch *fds;
    uint64_t last_fd_watch; /* a number; 0 stands for wake_fd */
    bool closing, closed, joined;
    bool end_unconfirmed;   /* a session's end was not confirmed while closing */
    pthread_cond_t changed; /* calls, closed, dispatch_idle */

    pthread_t dispatch;
    struct zkl_note *notes, **notes_end;
    pthread_cond_t has_notes;
    const void *running_owner;
    bool running_quiesced; /* the running note must not call anybody any more */
    bool dispatch_done;
    bool notes_refused; /* no thread will run notes any more */
    int event_fd; /* >= 0: notes are run by zkl_driver_dispatch only; readable while some are due */
    size_t owed;  /* notes that are sure to come yet */

    struct zkl_waker *wakers;
    struct zkl_task *tasks, **tasks_end;
    /* When the service thread must call config.due; CLOCK_MONOTONIC, INT64_MAX: never. */
    int64_t due_ns;
    atomic_int refs;
    /* For readers without the mutex: the end of the session's window, and the time until which a
     * grant has enough of it. */
    atomic_llong window_end_boot, fresh_until_boot;
    atomic_bool unprovable; /* why the former is 0, for a sentence */
};
/* The driver of the port through which the core calls. */
static inline struct zkl_driver *zkl_driver_of(struct zkl_port *port)
{
    return (struct zkl_driver *)((char *)port - offsetof(struct zkl_driver, port));
}

/* 0, ZKL_EBADSERVERS, ZKL_ENOMEM, ZKL_ESYSTEM (*driver is NULL then). *driver is set before the
 * first callback. config's text is taken over in any case. */
int zkl_driver_new(struct zkl_driver **driver, struct zkl_driver_config *config);
void zkl_driver_config_free(struct zkl_driver_config *config);

void zkl_driver_lock(struct zkl_driver *d);
/* Release the mutex, then wake the threads on the list of wakers. */
void zkl_driver_unlock(struct zkl_driver *d);
/* For assertions: the calling thread has the mutex. */
bool zkl_driver_is_locked(const struct zkl_driver *d);
/* With the mutex: wait for cond; INT64_MAX: without a bound. ETIMEDOUT or 0; may wake for
 * nothing. */
int zkl_driver_wait_for(struct zkl_driver *d, pthread_cond_t *cond, int64_t deadline_mono_ns);
/* With the mutex: wait for the waker or the deadline. ETIMEDOUT or 0; may wake for nothing. */
int zkl_driver_wait(struct zkl_driver *d, struct zkl_waker *waker, int64_t deadline_mono_ns);
void zkl_waker_init(struct zkl_waker *waker, void (*woken)(struct zkl_waker *waker));
void zkl_waker_fini(struct zkl_waker *waker);

/* The rest: with the mutex. */
void zkl_driver_wake(struct zkl_driver *d, struct zkl_waker *waker);
void zkl_driver_defer(struct zkl_driver *d, struct zkl_task *task);
/* False: the note is queued already, or no thread will run it any more. */
bool zkl_driver_post(struct zkl_driver *d, struct zkl_note *note);
/* Take the queued notes of owner, returned as a list, and wait until none of them runs, unless
 * called from within it. */
struct zkl_note *zkl_driver_quiesce(struct zkl_driver *d, const void *owner);
int zkl_driver_watch_fd(struct zkl_driver *d, struct zkl_fd_watch *watch);
void zkl_driver_unwatch_fd(struct zkl_driver *d, struct zkl_fd_watch *watch);
/* From now on these are the servers, for the next link: a list without a fault, and without a
 * chroot. 0; ZKL_EBADSERVERS, ZKL_ENOMEM, ZKL_ESYSTEM (no thread to look names up) and ZKL_ECLOSED
 * leave those that were. */
int zkl_driver_set_servers(struct zkl_driver *d, const char *servers);
/* End the session, and do not wait for it. */
void zkl_driver_begin_close(struct zkl_driver *d);
/* Without the mutex: likewise, and wait: true if the server confirmed its end and all was done by
 * the deadline. */
bool zkl_driver_close(struct zkl_driver *d, int64_t deadline_mono_ns);

/* After close: let the threads end, and free the driver with the last reference (contenders that
 * still exist hold some). Without the mutex. */
void zkl_driver_free(struct zkl_driver *d);
void zkl_driver_unref(struct zkl_driver *d);

/* From now on only zkl_driver_dispatch runs notes, and the dispatch thread runs none any more; not
 * from within one. *fd is readable while some are due. 0 or ZKL_ESYSTEM. */
int zkl_driver_use_events(struct zkl_driver *d, int *fd);
/* Without the mutex: run as many of the notes that are due, on this thread; how many there were.
 * ZKL_EINVAL: without zkl_driver_use_events; ZKL_EBUSY: another thread is at it; ZKL_EFORK: in a
 * child that one of them forked. */
int zkl_driver_dispatch(struct zkl_driver *d, int max);
/* After close, where zkl_driver_dispatch runs the notes: run all that are left, also those that are
 * sure to come. Without the mutex. */
void zkl_driver_drain(struct zkl_driver *d);

/* No note is taken any more, and those that were have run when this returns: on the dispatch
 * thread. Not from within one. Without the mutex. */
void zkl_driver_hush(struct zkl_driver *d);

/* True on a dispatch thread, or in zkl_driver_dispatch: in a callback. */
bool zkl_driver_in_callback(void);
/* True on the dispatch thread of another client, while a callback of owner runs: to wait for it
 * there could be to wait for each other. With the mutex. */
bool zkl_driver_would_cross(const struct zkl_driver *d, const void *owner);
/* Make an eventfd readable, and not readable any more. */
void zkl_event_set(int fd);
void zkl_event_clear(int fd);
/* No pthread cancellation of the calling thread until the block is left that this stands in. */
#define ZKL_SHIELDED()                                                                             \
    __attribute__((cleanup(zkl_shield_end), unused)) int zkl_shield_state = zkl_shield()
int zkl_shield(void);
void zkl_shield_end(const int *state);

/* Generation of this process: changes in a forked child, once it is watched. */
void zkl_fork_watch(void);
unsigned zkl_fork_generation(void);

#define ZKL_OPEN_RETRY_MS 500 /* after a handle could not be made, or was of no use */

/* --- between the files of the driver ------------------------------------------------------- */

/* Open a handle and make it the current one or the probe. Without the mutex. */
int zkl_handle_open(struct zkl_driver *d, bool probe);
/* With the mutex: nothing it says counts any more; it is going to be closed. */
void zkl_handle_bury(struct zkl_driver *d, struct zkl_handle **slot);
/* Without the mutex; can take seconds. */
void zkl_handle_close(struct zkl_driver *d, struct zkl_handle *h);
/* With the mutex: offer it the newest addresses, see io_thread.h. h may be NULL. */
void zkl_handle_follow(struct zkl_driver *d, struct zkl_handle *h);
/* With the mutex: end its link, after which libzookeeper tries the next server. */
void zkl_handle_leave(const struct zkl_handle *h);
struct zkl_handle *zkl_handle_next(const struct zkl_handle *h);
/* Does a caller wait for an answer? May any answer still come? */
bool zkl_handle_is_awaited(const struct zkl_handle *h);
bool zkl_handle_is_owed(const struct zkl_handle *h);
/* With the mutex: if the client is to follow them, ask the servers for their list. */
void zkl_ensemble_ask(struct zkl_handle *h);
/* With the mutex: what the link is to, "address:port", an IPv6 address in brackets; false: there is
 * no link. h may be NULL. */
#define ZKL_SERVER_TEXT_SIZE 80
bool zkl_handle_server(const struct zkl_handle *h, char out[ZKL_SERVER_TEXT_SIZE]);
enum zkl_answer zkl_handle_send(struct zkl_handle *h, const struct zkl_request *request);
/* The port's: by the current one. */
enum zkl_answer zkl_handle_port_send(struct zkl_port *port, const struct zkl_request *request);
/* The bodies of these threads, until the driver is closed. */
void zkl_dispatch_run(struct zkl_driver *d);
void zkl_service_run(struct zkl_driver *d);
/* With the mutex: the service thread looks again what is due. */
void zkl_driver_kick(struct zkl_driver *d);
/* When the core's next timer is due, or that of operations. */
int64_t zkl_driver_next_timeout(const struct zkl_driver *d, struct zkl_time now);
/* 0 or ZKL_ESYSTEM; zkl_descriptors_fini is due in each case. */
int zkl_descriptors_init(struct zkl_driver *d);
void zkl_descriptors_fini(struct zkl_driver *d);
/* On the service thread, with the mutex, which it releases for the time of the sleep. */
void zkl_descriptors_sleep(struct zkl_driver *d, int64_t until_mono_ns);
/* One that waits by CLOCK_MONOTONIC. */
void zkl_cond_init(pthread_cond_t *cond);
/* pthread_create with every signal blocked in the new thread. */
int zkl_thread_start(pthread_t *thread, void *(*main)(void *), void *arg);
/* Could this many threads (at most ZKL_REHEARSED_MAX) be made now? The call makes them all together
 * and ends them. */
#define ZKL_REHEARSED_MAX 3
bool zkl_thread_rehearse(int count);

#endif
