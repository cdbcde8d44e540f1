/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures as users read them: for the calls of zklock/metrics.h and for the text of
 * prometheus.c. This file owns nothing: each call copies the figures for the caller, with the
 * client's mutex. Users call it from any thread. */
#include "metrics.h"
#include "sized.h"

#include <stdlib.h>

#include "permit_request.h"
#include "driver/clock.h"
#include "driver/numbers.h"
#include "error.h"

#define MS INT64_C(1000000)

/* --- what is so now ----------------------------------------------------- */

/* A call that waits at this path; the list has the last one first, but of each path any may. */
static void look_at_waiter(const struct zkl_place *place, struct zkl_lock_metrics *m)
{
    const struct zkl_contender_machine *machine = &zkl_contender_in_queue(place)->machine;
    m->waiting++;
    if (machine->state == ZKL_CONTENDER_WAITING && machine->before > m->queue_before)
        m->queue_before = machine->before;
}

/* lock_path NULL: all of them. */
static void look_at_waiters(const struct zkl_client *client, const struct zkl_lock_path *lock_path,
                            struct zkl_lock_metrics *m)
{
    for (const struct zkl_place *place = client->waiting; place; place = place->wait_next) {
        if (!lock_path || zkl_mutex_metrics_path(place->mutex) == lock_path)
            look_at_waiter(place, m);
    }
}

static void read_lock(const struct zkl_client *client, const struct zkl_lock_path *lock_path,
                      struct zkl_lock_metrics *m)
{
    *m = *lock_path->counts;
    m->size = sizeof *m;
    m->held = m->acquisitions - m->hold.count; /* each has one end */
    look_at_waiters(client, lock_path, m);
}

static uint64_t count_leaving(const struct zkl_core *core)
{
    uint64_t leaving = 0;
    for (const struct zkl_contender *c = core->first; c; c = c->next)
        leaving += c->machine.state == ZKL_CONTENDER_LEAVING;
    return leaving;
}

/* --- of a client -------------------------------------------------------- */

static void read_locks(struct zkl_client *client, struct zkl_lock_metrics *m)
{
    *m = client->counts;
    for (size_t i = 0; i < ZKL_LOCK_PATH_BUCKETS; i++) {
        for (const struct zkl_lock_path *lock_path = client->lock_paths[i]; lock_path;
             lock_path = lock_path->next) {
            if (lock_path->counts)
                zkl_counts_fold(m, lock_path->counts);
        }
    }
    m->size = sizeof *m;
    m->held = m->acquisitions - m->hold.count;
    look_at_waiters(client, NULL, m);
}

static void read_requests(const struct zkl_core *core, uint64_t *requests)
{
    static const int request_of[ZKL_REQUEST_KINDS] = {
        [ZKL_REQ_CREATE] = ZKL_METRICS_REQUEST_CREATE,
        [ZKL_REQ_CREATE_ALL] = ZKL_METRICS_REQUEST_CREATE,
        [ZKL_REQ_DELETE] = ZKL_METRICS_REQUEST_DELETE,
        [ZKL_REQ_DELETE_ALL] = ZKL_METRICS_REQUEST_DELETE,
        [ZKL_REQ_LIST] = ZKL_METRICS_REQUEST_LIST,
        [ZKL_REQ_LIST_LOCK_PATH] = ZKL_METRICS_REQUEST_LIST,
        [ZKL_REQ_WATCH] = ZKL_METRICS_REQUEST_WATCH,
        [ZKL_REQ_UNWATCH] = ZKL_METRICS_REQUEST_UNWATCH,
        [ZKL_REQ_CHECK_ALL] = ZKL_METRICS_REQUEST_HEARTBEAT,
        [ZKL_REQ_KEEPALIVE] = ZKL_METRICS_REQUEST_KEEPALIVE,
        [ZKL_REQ_MAKE] = ZKL_METRICS_REQUEST_PARENT,
        [ZKL_REQ_RENEW] = ZKL_METRICS_REQUEST_PARENT,
        [ZKL_REQ_STAT] = ZKL_METRICS_REQUEST_READ,
        [ZKL_REQ_GET] = ZKL_METRICS_REQUEST_READ,
        [ZKL_REQ_ACL] = ZKL_METRICS_REQUEST_READ,
        [ZKL_REQ_SET] = ZKL_METRICS_REQUEST_WRITE,
        [ZKL_REQ_PARTS] = ZKL_METRICS_REQUEST_WRITE,
        [ZKL_REQ_SYNC] = ZKL_METRICS_REQUEST_SYNC,
    };
    for (size_t i = 0; i < ZKL_REQUEST_KINDS; i++)
        requests[request_of[i]] += core->sent[i];
}

static int64_t window_ms(const struct zkl_core *core)
{
    int64_t left = zkl_session_proved_until(&core->session) - zkl_clock_boot_ns();
    return left > 0 ? left / MS : 0;
}

static void read_client(struct zkl_client *client, struct zkl_client_metrics *m)
{
    const struct zkl_core *core = &client->driver->core;
    m->connections = client->links;
    m->reconnects = client->links > 0 ? client->links - 1 : 0;
    m->disconnections = client->links_lost;
    m->expiries = client->expiries;
    m->heartbeats = core->heartbeats_sent;
    read_requests(core, m->requests);
    m->log_dropped = client->log.dropped_total;
    m->writes = core->writes;
    m->state = zkl_client_state_locked(client);
    m->session_timeout_ms = (int)(zkl_session_timeout_ns(&core->session) / MS);
    m->window_ms = window_ms(core);
    m->outstanding = core->pending_count;
    m->janitor_backlog = count_leaving(core);
    m->watches = core->watch_count;
    m->watch_bytes = core->watch_bytes;
    int64_t numbers = atomic_load(&zkl_numbers_left);
    m->request_numbers_left = numbers > 0 ? (uint64_t)numbers : 0;
    m->ephemeral_bytes = core->ephemeral_bytes;
}

/* --- all figures together ----------------------------------------------- */

static size_t count_paths(const struct zkl_client *client)
{
    size_t count = 0;
    for (size_t i = 0; i < ZKL_LOCK_PATH_BUCKETS; i++) {
        for (const struct zkl_lock_path *lock_path = client->lock_paths[i]; lock_path;
             lock_path = lock_path->next)
            count += lock_path->counts != NULL;
    }
    return count;
}

static void read_paths(struct zkl_client *client, struct zkl_snapshot *snapshot)
{
    for (size_t i = 0; i < ZKL_LOCK_PATH_BUCKETS; i++) {
        for (struct zkl_lock_path *lock_path = client->lock_paths[i]; lock_path;
             lock_path = lock_path->next) {
            if (!lock_path->counts)
                continue;
            struct zkl_path_metrics *path = &snapshot->paths[snapshot->path_count++];
            path->lock_path = lock_path;
            lock_path->refs++;
            read_lock(client, lock_path, &path->figures);
        }
    }
}

int zkl_snapshot_take(struct zkl_client *client, struct zkl_snapshot *snapshot)
{
    *snapshot = (struct zkl_snapshot){.path_count = 0};
    zkl_driver_lock(client->driver);
    /* One too many, so that nothing is not refused. */
    snapshot->paths = calloc(count_paths(client) + 1, sizeof *snapshot->paths);
    if (snapshot->paths) {
        read_client(client, &snapshot->client);
        read_locks(client, &snapshot->locks);
        read_paths(client, snapshot);
    }
    zkl_driver_unlock(client->driver);
    return snapshot->paths ? 0 : ZKL_ENOMEM;
}

void zkl_snapshot_drop(struct zkl_client *client, struct zkl_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->path_count; i++)
        zkl_lock_path_put(client, snapshot->paths[i].lock_path);
    free(snapshot->paths);
}

/* --- the calls ---------------------------------------------------------- */

int zkl_client_get_metrics(struct zkl_client *client, struct zkl_client_metrics *metrics)
{
    ZKL_SHIELDED();
    static const char call[] = "zkl_client_get_metrics";
    if (!client || !metrics)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, client ? "metrics" : "client");
    if (!zkl_sized_is_good(metrics, ZKL_SIZED_LEAST(struct zkl_client_metrics, watch_bytes)))
        return zkl_fail(ZKL_EINVAL, "%s: initialize metrics with ZKL_CLIENT_METRICS_INIT", call);
    int rc = zkl_client_check(client, false, call);
    if (rc != 0)
        return rc;
    struct zkl_client_metrics ours = ZKL_CLIENT_METRICS_INIT;
    zkl_driver_lock(client->driver);
    read_client(client, &ours);
    zkl_driver_unlock(client->driver);
    zkl_sized_write(metrics, &ours, sizeof ours);
    return 0;
}

/* The figures of all of a client's locks together, or of the path of one handle: path, or NULL. */
static int read_figures(struct zkl_client *client, const struct zkl_lock_path *path,
                        struct zkl_lock_metrics *ours, const char *call)
{
    int rc = 0;
    zkl_driver_lock(client->driver);
    if (!path)
        read_locks(client, ours);
    else if (path->counts)
        read_lock(client, path, ours);
    else
        rc = zkl_fail(ZKL_EINVAL, "%s: %s has no figures: set metrics in its options", call,
                      path->path);
    zkl_driver_unlock(client->driver);
    return rc;
}

static int get_lock_metrics(struct zkl_client *client, const struct zkl_lock_path *path,
                            struct zkl_lock_metrics *metrics, const char *call)
{
    if (!metrics)
        return zkl_fail(ZKL_EINVAL, "%s: metrics is NULL", call);
    if (!zkl_sized_is_good(metrics, ZKL_SIZED_LEAST(struct zkl_lock_metrics, queue_before)))
        return zkl_fail(ZKL_EINVAL, "%s: initialize metrics with ZKL_LOCK_METRICS_INIT", call);
    int rc = zkl_client_check(client, false, call);
    if (rc != 0)
        return rc;
    struct zkl_lock_metrics ours = ZKL_LOCK_METRICS_INIT;
    ZKL_SHIELDED();
    rc = read_figures(client, path, &ours, call);
    if (rc == 0)
        zkl_sized_write(metrics, &ours, sizeof ours);
    return rc;
}

int zkl_client_get_lock_metrics(struct zkl_client *client, struct zkl_lock_metrics *metrics)
{
    static const char call[] = "zkl_client_get_lock_metrics";
    if (!client)
        return zkl_fail(ZKL_EINVAL, "%s: client is NULL", call);
    return get_lock_metrics(client, NULL, metrics, call);
}

int zkl_mutex_get_metrics(struct zkl_mutex *mutex, struct zkl_lock_metrics *metrics)
{
    static const char call[] = "zkl_mutex_get_metrics";
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "%s: mutex is NULL", call);
    return get_lock_metrics(mutex->client, zkl_mutex_metrics_path(mutex), metrics, call);
}

int zkl_semaphore_get_metrics(struct zkl_semaphore *semaphore, struct zkl_lock_metrics *metrics)
{
    static const char call[] = "zkl_semaphore_get_metrics";
    if (!semaphore)
        return zkl_fail(ZKL_EINVAL, "%s: semaphore is NULL", call);
    return get_lock_metrics(semaphore->base.client, zkl_mutex_metrics_path(&semaphore->base),
                            metrics, call);
}
