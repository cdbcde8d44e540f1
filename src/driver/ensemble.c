/* SPDX-License-Identifier: Apache-2.0
 *
 * The ensemble's own list of servers, for clients that want it: a read of /zookeeper/config over
 * each new link and at each change, which a watch reports. Where it cannot be used the client keeps
 * the servers that it has, and logs why. All of it runs with the client's mutex, and owns nothing:
 * the driver has the list. handle.c and driver.c ask. */
#include "handle.h"

#include <stdlib.h>
#include <string.h>

#include "core/servers.h"
#include "numbers.h"

static const char *const node = "/zookeeper/config";
static const char *const no_room = "there was no memory for it";

static void note_fault(struct zkl_driver *d, const char *fault)
{
    if (d->ensemble_fault == fault)
        return;
    d->ensemble_fault = fault;
    if (d->config.resolved)
        d->config.resolved(d->config.arg, node, fault);
}

/* NULL, or why not. list is taken over. */
static const char *take(struct zkl_driver *d, char *list)
{
    if (d->ensemble && strcmp(d->ensemble, list) == 0) {
        free(list);
        return NULL;
    }
    struct zkl_hosts hosts;
    if (zkl_hosts_read(&hosts, list) != 0) {
        free(list);
        return no_room;
    }
    zkl_resolver_replace(d, hosts);
    free(d->ensemble);
    d->ensemble = list;
    return NULL;
}

static void note_list(struct zkl_driver *d, const char *text, size_t length)
{
    const char *fault = no_room;
    char *list = zkl_servers_of_ensemble(text, length, d->config.security.tls != NULL, &fault);
    note_fault(d, list ? take(d, list) : fault);
}

static const char *fault_of(int rc)
{
    if (rc == ZNOAUTH)
        return "this client may not read it";
    return rc == ZNONODE ? "these servers have no such node" : "it cannot be read";
}

static void on_list(int rc, const char *value, int length, const struct Stat *stat,
                    const void *data)
{
    struct zkl_handle *h = (struct zkl_handle *)data;
    struct zkl_driver *d = h->driver;
    (void)stat;
    zkl_driver_lock(d);
    if (h == d->current && !d->closing && zkl_map_rc(rc) != ZKL_ANSWER_LINK) {
        if (rc == ZOK)
            note_list(d, value, length > 0 ? (size_t)length : 0);
        else
            note_fault(d, fault_of(rc));
    }
    zkl_driver_unlock(d);
}

static void on_changed(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct zkl_handle *h = context;
    (void)zh;
    (void)state;
    (void)path;
    if (type == ZOO_SESSION_EVENT || type == ZOO_NOTWATCHING_EVENT)
        return; /* libzookeeper notifies the session's own watcher too; watches stay */
    zkl_driver_lock(h->driver);
    if (h == h->driver->current)
        zkl_ensemble_ask(h);
    zkl_driver_unlock(h->driver);
}

void zkl_ensemble_ask(struct zkl_handle *h)
{
    if (!h->driver->config.follow_ensemble || h->driver->closing)
        return;
    zkl_numbers_take();
    /* If it is not accepted the link is about to end: the next one asks again. */
    zoo_awget(h->zh, node, on_changed, h, on_list, h);
}
