/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver from its creation to its end: the core with its port to the outside, the threads, and
 * the references that keep it until the last thread and the last contender have ended. Creation and
 * end run without a lock. The core's port runs with the client's mutex. src/api/client.c calls this
 * file. */
#include "driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <zklock/zklock.h>

/* --- the core's port ---------------------------------------------------- */

static void port_session(struct zkl_port *port, unsigned actions)
{
    struct zkl_driver *d = zkl_driver_of(port);
    if (actions & (ZKL_SA_REPLACE_HANDLE | ZKL_SA_DROP_HANDLE))
        zkl_handle_bury(d, &d->current);
    if (actions & ZKL_SA_REPLACE_HANDLE)
        d->open_current = true;
    if (actions & ZKL_SA_ADOPT_PROBE) {
        zkl_handle_bury(d, &d->current);
        d->current = d->probe;
        d->probe = NULL;
        zkl_ensemble_ask(d->current);
    }
    if (actions & ZKL_SA_DROP_PROBE) {
        d->open_probe = false;
        zkl_handle_bury(d, &d->probe);
    }
    if (actions & ZKL_SA_OPEN_PROBE)
        d->open_probe = true;
    if (actions & ZKL_SA_LEAVE_SERVER)
        zkl_handle_leave(d->current);
    if (actions & (ZKL_SA_REPLACE_HANDLE | ZKL_SA_DROP_HANDLE | ZKL_SA_ADOPT_PROBE |
                   ZKL_SA_DROP_PROBE | ZKL_SA_OPEN_PROBE))
        zkl_driver_kick(d);
    d->config.session(d->config.arg, actions);
}

static void port_random(struct zkl_port *port, unsigned char bytes[16])
{
    /* The kernel draws each number: a fork or a cloned virtual machine would repeat any state of
     * our own. */
    ssize_t got;
    do
        got = getrandom(bytes, 16, 0); /* so few bytes come whole, or not at all */
    while (got < 0 && errno == EINTR);
    if (got == 16)
        return;
    /* Forbidden in this process: time, thread and address are at least not another contender's. */
    uint64_t parts[2] = {(uint64_t)zkl_clock_boot_ns(), (uint64_t)gettid() << 40 ^ (uintptr_t)port ^
                                                            zkl_driver_of(port)->core.last_id};
    memcpy(bytes, parts, 16);
}

static void port_trace(struct zkl_port *port, const struct zkl_trace *trace)
{
    struct zkl_driver *d = zkl_driver_of(port);
    d->config.log(d->config.arg, trace);
}

/* --- life --------------------------------------------------------------- */

void zkl_driver_config_free(struct zkl_driver_config *config)
{
    if (config->auth_credential)
        explicit_bzero(config->auth_credential, strlen(config->auth_credential));
    free(config->servers);
    free(config->chroot);
    free(config->auth_scheme);
    free(config->auth_credential);
    zkl_security_fini(&config->security);
}

static void destroy(struct zkl_driver *d)
{
    void (*gone)(void *arg) = d->config.gone;
    void *arg = d->config.arg;
    zkl_core_fini(&d->core);
    zkl_resolver_fini(d);
    free(d->ensemble);
    zkl_descriptors_fini(d);
    pthread_cond_destroy(&d->changed);
    pthread_cond_destroy(&d->has_notes);
    pthread_cond_destroy(&d->resolver.due);
    pthread_mutex_destroy(&d->mu);
    zkl_driver_config_free(&d->config);
    free(d);
    if (gone)
        gone(arg);
}

void zkl_driver_unref(struct zkl_driver *d)
{
    if (atomic_fetch_sub(&d->refs, 1) == 1)
        destroy(d);
}

/* With the mutex: join both threads if they are through. False if they are not. */
static bool join_threads(struct zkl_driver *d)
{
    if (!d->closed || !d->dispatch_done)
        return false;
    if (!d->joined) {
        d->joined = true;
        zkl_driver_unlock(d);
        pthread_join(d->service, NULL);
        pthread_join(d->dispatch, NULL);
        zkl_driver_lock(d);
    }
    return true;
}

void zkl_driver_free(struct zkl_driver *d)
{
    zkl_driver_lock(d);
    bool joined = join_threads(d);
    zkl_driver_unlock(d);
    if (!joined) {
        pthread_detach(d->service);
        pthread_detach(d->dispatch);
    }
    zkl_resolver_end(d);
    zkl_driver_unref(d);
}

static struct zkl_driver *allocate(struct zkl_driver_config *config)
{
    struct zkl_driver *d = calloc(1, sizeof *d);
    if (!d) {
        zkl_driver_config_free(config);
        return NULL;
    }
    d->config = *config;
    d->port = (struct zkl_port){.send = zkl_handle_port_send,
                                .notification = config->notification,
                                .session = port_session,
                                .random = port_random,
                                .trace = config->log ? port_trace : NULL};
    pthread_mutex_init(&d->mu, NULL);
    zkl_cond_init(&d->changed);
    zkl_cond_init(&d->has_notes);
    zkl_cond_init(&d->resolver.due);
    d->notes_end = &d->notes;
    d->tasks_end = &d->tasks;
    d->due_ns = INT64_MAX;
    d->refs = 1;
    d->epoll_fd = d->wake_fd = d->event_fd = -1;
    zkl_core_init(&d->core, &d->port, config->session_timeout_ms, config->tick_ms);
    d->core.first_read_wanted = config->first_read;
    d->core.chroot_length = strlen(config->chroot);
    if (config->ephemeral_bytes_max > 0)
        d->core.ephemeral_bytes_max = config->ephemeral_bytes_max;
    return d;
}

/* The session never was: no service thread runs. */
static void abort_new(struct zkl_driver *d, bool dispatch)
{
    zkl_driver_lock(d);
    d->config.gone = NULL;
    zkl_handle_bury(d, &d->current);
    struct zkl_handle *h = d->graveyard;
    d->graveyard = NULL;
    zkl_driver_unlock(d);
    if (h)
        zkl_handle_close(d, h);
    zkl_driver_lock(d);
    d->closing = d->closed = true;
    pthread_cond_signal(&d->has_notes);
    zkl_driver_unlock(d);
    if (dispatch)
        pthread_join(d->dispatch, NULL);
    zkl_resolver_end(d);
    zkl_driver_unref(d);
}

/* --- threads: each has a reference on the driver --- */

static void *dispatch_main(void *driver)
{
    zkl_dispatch_run(driver);
    zkl_driver_unref(driver);
    return NULL;
}

static void *service_main(void *driver)
{
    zkl_service_run(driver);
    zkl_driver_unref(driver);
    return NULL;
}

static void *resolver_main(void *driver)
{
    zkl_resolver_run(driver);
    zkl_driver_unref(driver);
    return NULL;
}

static bool start(struct zkl_driver *d, pthread_t *thread, void *(*main)(void *))
{
    atomic_fetch_add(&d->refs, 1);
    if (zkl_thread_start(thread, main, d) == 0)
        return true;
    atomic_fetch_sub(&d->refs, 1);
    return false;
}

/* A thread for the names of these, if there are any, and of those that the ensemble may give. With
 * the mutex: a callback may give the client servers before it is open, and there is one thread. */
static bool start_resolver(struct zkl_driver *d, const struct zkl_hosts *hosts)
{
    if (d->resolver.has_thread || !(d->config.follow_ensemble || zkl_hosts_have_names(hosts)))
        return true;
    return d->resolver.has_thread = start(d, &d->resolver.thread, resolver_main);
}

int zkl_driver_new(struct zkl_driver **driver, struct zkl_driver_config *config)
{
    zkl_fork_watch();
    struct zkl_driver *d = *driver = allocate(config);
    if (!d)
        return ZKL_ENOMEM;
    int rc = zkl_descriptors_init(d);
    if (rc == 0)
        rc = zkl_resolver_init(d);
    d->open_current = true;
    bool dispatch = rc == 0 && start(d, &d->dispatch, dispatch_main);
    if (rc == 0 && !dispatch)
        rc = ZKL_ESYSTEM;
    if (rc == 0 && d->resolver.addresses)
        rc = zkl_handle_open(d, false);
    zkl_driver_lock(d);
    if (rc == 0 && !start_resolver(d, &d->resolver.hosts))
        rc = ZKL_ESYSTEM;
    zkl_driver_unlock(d);
    if (rc == 0 && !start(d, &d->service, service_main))
        rc = ZKL_ESYSTEM;
    if (rc != 0) {
        abort_new(d, dispatch);
        *driver = NULL;
    }
    return rc;
}

int zkl_driver_set_servers(struct zkl_driver *d, const char *servers)
{
    struct zkl_hosts hosts;
    if (d->closing)
        return ZKL_ECLOSED;
    int rc = zkl_hosts_read(&hosts, servers);
    if (rc == 0 && !start_resolver(d, &hosts)) {
        zkl_hosts_free(&hosts);
        rc = ZKL_ESYSTEM;
    }
    if (rc != 0)
        return rc;
    zkl_resolver_replace(d, hosts);
    free(d->ensemble);
    d->ensemble = NULL;
    return 0;
}

void zkl_driver_begin_close(struct zkl_driver *d)
{
    if (d->closing)
        return;
    zkl_core_close(&d->core, zkl_clock_now());
    d->closing = true;
    d->end_unconfirmed = false;
    d->open_current = d->open_probe = false;
    zkl_handle_bury(d, &d->current);
    zkl_handle_bury(d, &d->probe);
    zkl_driver_kick(d);
    zkl_resolver_want(d); /* to end */
}

bool zkl_driver_close(struct zkl_driver *d, int64_t deadline_mono_ns)
{
    int rc = 0;
    zkl_driver_lock(d);
    zkl_driver_begin_close(d);
    zkl_driver_unlock(d); /* wakes those whose waits have just ended */
    zkl_driver_lock(d);
    while (!(d->closed && d->dispatch_done) && rc == 0)
        rc = zkl_driver_wait_for(d, &d->changed, deadline_mono_ns);
    bool done = join_threads(d) && !d->end_unconfirmed;
    zkl_driver_unlock(d);
    return done;
}
