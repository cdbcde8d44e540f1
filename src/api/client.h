/* SPDX-License-Identifier: Apache-2.0
 * The objects behind the public handles, and what the files of src/api share. */
#ifndef ZKL_API_CLIENT_H
#define ZKL_API_CLIENT_H

#include <stdatomic.h>

#include <zklock/metrics.h>

#include "cancel.h"
#include "core/local_queue.h"
#include "core/read_cache.h"
#include "driver/driver.h"
#include "log.h"

/* A path of a client, one object for all handles that name it: a thread's holds are found by it. */
struct zkl_lock_path {
    struct zkl_lock_path *next;
    /* under the driver's mutex */
    size_t refs;
    struct zkl_path core;            /* what the core knows of it; its text is: */
    struct zkl_lock_metrics *counts; /* NULL: they are the client's */

    char path[];
};

#define ZKL_OWNER_MAX ZKL_OWNER_TEXT_MAX
#define ZKL_LOCK_PATH_BUCKETS 256
#define ZKL_STATES_QUEUED 32

/* A cancel object that waits of this client use. */
struct zkl_cancel_use {
    struct zkl_cancel_use *next;
    struct zkl_fd_watch watch;
    struct zkl_cancel *cancel;
    size_t users;
};

/* Operations under way: by their number, and those with a next look, the earliest first. */
struct zkl_ops {
    struct zkl_op **slots; /* where none is: NULL */
    struct zkl_op **heap;
    size_t room, count, heap_count;
    size_t next; /* slot to try first */
    uint64_t serial;
};

#define ZKL_SPARE_PLACES 16

struct zkl_client {
    struct zkl_driver *driver;
    unsigned fork_generation;
    atomic_int refs; /* the user's handle, and each mutex and hold */
    atomic_bool closed;
    char *owner;     /* NULL: "host pid thread" */
    char self[96];   /* "host pid " */
    char number[32]; /* "pid.n", the n-th client of its process */
    /* Memory for the next ones, or NULL. */
    _Atomic(struct zkl_place *) spare_places[ZKL_SPARE_PLACES];

    /* All below: under the driver's mutex. */
    struct zkl_lock_path *lock_paths[ZKL_LOCK_PATH_BUCKETS];
    struct zkl_place *waiting;          /* calls that wait for a grant, for cancel objects */
    struct zkl_query_wait *query_waits; /* calls that wait for answers */
    struct zkl_ops ops;
    struct zkl_cancel_use *cancels;
    struct zkl_waker opener; /* zkl_client_open, waiting for the first connection */
    bool opening;

    zkl_client_state_fn state_fn;
    void *state_arg;
    struct zkl_note state_note;
    enum zkl_client_state states[ZKL_STATES_QUEUED];
    size_t state_count;

    struct zkl_log log;
    struct zkl_lock_metrics counts; /* what no lock path counts, or any more */
    uint64_t links, links_lost, expiries;
};

/* What an owner has of a lock. It has a reference on its place; or (shared) it is counted in by the
 * gate of the node that the readers of a handle share, and has none. */
struct zkl_hold {
    struct zkl_hold *next; /* in the owner's map */
    struct zkl_mutex *mutex;
    struct zkl_place *place; /* NULL: an operation will acquire it */
    bool shared;
    int count; /* unlocks due */
    uint64_t reentries;
};

/* The owner of a mutex's holds, and the calls that depend on it: the calling thread or owner
 * (mutex.c), or the handle (semaphore.c). */
struct zkl_mutex_kind {
    int (*acquire)(struct zkl_mutex *mutex, const struct zkl_wait *wait, struct zkl_grant *grant);
    /* What the caller has, until put; its place is NULL: nothing. */
    struct zkl_hold (*find)(struct zkl_mutex *mutex);
    void (*put)(const struct zkl_hold *hold);
    /* For an unlock: the caller must release *place. NULL: the code is that of the unlock. */
    int (*give_up)(struct zkl_mutex *mutex, struct zkl_place **place);
    void (*fini)(void *mutex); /* what is to be freed next */
};

struct zkl_mutex {
    const struct zkl_mutex_kind *kind; /* NULL: a semaphore's permits */
    struct zkl_client *client;
    struct zkl_lock_path *lock_path;
    struct zkl_naming naming;
    struct zkl_rwlock *rwlock;       /* whose half it is, or NULL */
    struct zkl_semaphore *semaphore; /* whose permits its holds are, or NULL */
    char *owner;                     /* NULL: the client's */
    bool revocable, posted_unlock;
    bool has_local_queue; /* turns are used */

    /* under the driver's mutex */
    struct zkl_local_queue local_queue;
    size_t uses; /* threads that hold or wait */
    zkl_hold_fn fn;
    void *fn_arg;
};

struct zkl_rwlock {
    struct zkl_mutex read, write;
    struct zkl_read_cache cache; /* of the reader's handle */
    /* under the driver's mutex: the reader that queues with a node which may become that of all;
     * NULL: none does */
    const struct zkl_place *candidate;
};

/* Or a mutex made of one, whose handle is base: that has a kind then. */
struct zkl_semaphore {
    struct zkl_mutex base;             /* its lock path is <path>/leases, its holds are permits */
    struct zkl_lock_path *path, *gate; /* the gate's is <path>/locks */
    /* under the driver's mutex */
    struct zkl_semaphore_view view;
    struct zkl_place *place; /* a mutex's, for all threads; with a reference */
};

/* 0, ZKL_EFORK or ZKL_ECLOSED (closed_too). */
int zkl_client_check(const struct zkl_client *client, bool closed_too, const char *call);
int zkl_client_state_locked(const struct zkl_client *client); /* with the mutex */
void zkl_client_ref(struct zkl_client *client);
void zkl_client_unref(struct zkl_client *client);
struct zkl_lock_path *zkl_lock_path_get(struct zkl_client *client, const char *path);
void zkl_lock_path_put(struct zkl_client *client, struct zkl_lock_path *lock_path);

/* The failure of a call that has waited, with the reason if no server was of use. Without the
 * mutex. */
int zkl_fail_unserved(struct zkl_client *client, int rc, const char *what);

#endif
