/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers' addresses. While there is no link the resolver looks all names up four times in a
 * session timeout, so that the client follows an ensemble that moves within one timeout; while
 * there is a link, it does so now and then. The slowest name delays the others for a moment only.
 * This file owns a thread that no other thread waits for, and the text of the addresses. It stores
 * results under the client's mutex and looks names up without it. service.c and handle.c take the
 * addresses. */
#include "resolver.h"

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <zklock/zklock.h>

#include "core/servers.h"
#include "driver.h"

#define MS INT64_C(1000000)
#define LINKED_MS 30000 /* between two looks while there is a link, or a session timeout */
#define UNLINKED_MIN_MS 100
#define UNLINKED_MAX_MS 10000
#define AGAIN_MS 500 /* when there was no memory */

/* --- one host ------------------------------------------------------------ */

/* list and one more, which list is freed for; NULL: no memory. */
static char *append(char *list, const struct addrinfo *one)
{
    char address[INET6_ADDRSTRLEN + IF_NAMESIZE], port[8], *longer = NULL;
    if (getnameinfo(one->ai_addr, one->ai_addrlen, address, sizeof address, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return list;
    if (asprintf(&longer, "%s%s%s:%s", list, *list ? "," : "", address, port) < 0)
        longer = NULL;
    free(list);
    return longer;
}

/* Its addresses, or NULL and why. */
static char *look_up(const struct zkl_host *host, int flags, int *failure)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    *failure = getaddrinfo(host->name, host->port, &hints, &found);
    if (*failure != 0)
        return NULL;
    char *list = strdup("");
    for (const struct addrinfo *one = found; one && list; one = one->ai_next)
        list = append(list, one);
    freeaddrinfo(found);
    if (!list)
        *failure = EAI_MEMORY;
    return list;
}

/* Addresses of a family that this machine has no other address of are left out, unless that is
 * all. */
static char *look_up_usable(const struct zkl_host *host, int *failure)
{
    char *found = look_up(host, AI_ADDRCONFIG, failure);
    if (*failure == EAI_BADFLAGS || *failure == EAI_ADDRFAMILY)
        found = look_up(host, 0, failure);
    return found;
}

/* The resolver's word that there is none, and not that it could not say. */
static bool is_final(int failure)
{
    return failure == EAI_NONAME || failure == EAI_NODATA || failure == EAI_ADDRFAMILY;
}

static void note(struct zkl_driver *d, struct zkl_host *host, char *found, int failure)
{
    bool is_notification = failure != host->failure;
    host->failure = failure;
    if (is_notification && d->config.resolved)
        d->config.resolved(d->config.arg, host->name, failure == 0 ? NULL : gai_strerror(failure));
    if (!found && !is_final(failure))
        return; /* the addresses that it had are the best guess */
    if (found && host->found && strcmp(found, host->found) == 0) {
        free(found);
        return;
    }
    d->resolver.are_new = d->resolver.are_new || found || host->found;
    free(host->found);
    host->found = found;
}

/* --- the thread ---------------------------------------------------------- */

/* False: meanwhile there is another list. */
static bool look(struct zkl_driver *d, struct zkl_host *host)
{
    struct zkl_resolver *resolver = &d->resolver;
    int failure;
    resolver->looking = host;
    zkl_driver_unlock(d);
    char *found = look_up_usable(host, &failure);
    zkl_driver_lock(d);
    resolver->looking = NULL;
    bool is_replaced = resolver->replaced.all != NULL;
    zkl_hosts_free(&resolver->replaced);
    if (is_replaced || d->closing) { /* the object to notify may be freed already */
        free(found);
        return !is_replaced;
    }
    note(d, host, found, failure);
    if (resolver->are_new)
        zkl_driver_kick(d);
    return true;
}

static void look_at_all(struct zkl_driver *d)
{
    struct zkl_resolver *resolver = &d->resolver;
    resolver->wanted = false;
    resolver->round_mono_ns = zkl_clock_mono_ns();
    for (size_t i = 0; i < resolver->hosts.count && !d->closing;) {
        struct zkl_host *host = &resolver->hosts.all[i];
        i = host->is_address || look(d, host) ? i + 1 : 0;
    }
    resolver->round_mono_ns = INT64_MAX;
    if (resolver->are_new)
        zkl_driver_kick(d);
}

static int64_t pause_ms(const struct zkl_driver *d)
{
    int64_t timeout_ms = d->core.session.timeout_ms, quarter_ms = timeout_ms / 4;
    if (d->core.session.state == ZKL_SESSION_CONNECTED)
        return timeout_ms > LINKED_MS ? timeout_ms : LINKED_MS;
    if (quarter_ms < UNLINKED_MIN_MS)
        return UNLINKED_MIN_MS;
    return quarter_ms < UNLINKED_MAX_MS ? quarter_ms : UNLINKED_MAX_MS;
}

static void sleep_until_due(struct zkl_driver *d)
{
    int64_t since = zkl_clock_mono_ns();
    while (!d->closing && !d->resolver.wanted) {
        int64_t until = since + pause_ms(d) * MS;
        if (zkl_clock_mono_ns() >= until)
            return;
        zkl_driver_wait_for(d, &d->resolver.due, until);
    }
}

void zkl_resolver_run(struct zkl_driver *d)
{
    zkl_driver_lock(d);
    while (!d->closing) {
        look_at_all(d);
        sleep_until_due(d);
    }
    zkl_driver_unlock(d);
}

void zkl_resolver_end(struct zkl_driver *d)
{
    if (!d->resolver.has_thread)
        return;
    zkl_driver_lock(d);
    bool is_looking = d->resolver.looking != NULL;
    pthread_cond_signal(&d->resolver.due);
    zkl_driver_unlock(d);
    if (is_looking)
        pthread_detach(d->resolver.thread);
    else
        pthread_join(d->resolver.thread, NULL);
}

/* --- all of them --------------------------------------------------------- */

static int take_server(struct zkl_host *host, const struct zkl_server *server)
{
    int failure;
    host->name = strndup(server->host, server->host_length);
    snprintf(host->port, sizeof host->port, "%.*s", (int)server->port_length, server->port);
    if (!host->name)
        return ZKL_ENOMEM;
    host->found = look_up(host, AI_NUMERICHOST, &failure);
    host->is_address = host->found != NULL;
    if (failure == EAI_MEMORY)
        return ZKL_ENOMEM;
    bool is_in_brackets = strchr(host->name, ':') != NULL;
    return is_in_brackets && !host->is_address ? ZKL_EBADSERVERS : 0;
}

static size_t count_servers(const char *servers)
{
    struct zkl_server server;
    size_t at = 0, count = 0;
    while (zkl_servers_next(servers, &at, &server))
        count++;
    return count;
}

int zkl_hosts_read(struct zkl_hosts *hosts, const char *servers)
{
    struct zkl_server server;
    int rc = 0;
    *hosts = (struct zkl_hosts){.all = calloc(count_servers(servers), sizeof *hosts->all)};
    if (!hosts->all)
        return ZKL_ENOMEM;
    for (size_t at = 0; rc == 0 && zkl_servers_next(servers, &at, &server);)
        rc = take_server(&hosts->all[hosts->count++], &server);
    if (rc != 0)
        zkl_hosts_free(hosts);
    return rc;
}

void zkl_hosts_free(struct zkl_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++) {
        free(hosts->all[i].name);
        free(hosts->all[i].found);
    }
    free(hosts->all);
    *hosts = (struct zkl_hosts){NULL, 0};
}

bool zkl_hosts_have_names(const struct zkl_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++) {
        if (!hosts->all[i].is_address)
            return true;
    }
    return false;
}

int zkl_resolver_init(struct zkl_driver *d)
{
    struct zkl_resolver *resolver = &d->resolver;
    resolver->round_mono_ns = INT64_MAX;
    int rc = zkl_hosts_read(&resolver->hosts, d->config.servers);
    if (rc != 0)
        return rc;
    resolver->are_new = true;
    if (zkl_hosts_have_names(&resolver->hosts))
        resolver->round_mono_ns = zkl_clock_mono_ns(); /* the thread makes the first look-up */
    zkl_resolver_publish(d, zkl_clock_mono_ns());
    return resolver->not_before_mono_ns != 0 ? ZKL_ENOMEM : 0;
}

void zkl_resolver_fini(struct zkl_driver *d)
{
    zkl_hosts_free(&d->resolver.hosts);
    zkl_hosts_free(&d->resolver.replaced);
    free(d->resolver.addresses);
}

/* What is known of a name stays known. */
static void inherit(struct zkl_hosts *hosts, const struct zkl_hosts *former)
{
    for (size_t i = 0; i < hosts->count; i++) {
        struct zkl_host *host = &hosts->all[i];
        for (size_t k = 0; k < former->count && !host->found; k++) {
            const struct zkl_host *same = &former->all[k];
            if (same->found && strcmp(same->name, host->name) == 0 &&
                strcmp(same->port, host->port) == 0)
                host->found = strdup(same->found);
        }
    }
}

void zkl_resolver_replace(struct zkl_driver *d, struct zkl_hosts hosts)
{
    struct zkl_resolver *resolver = &d->resolver;
    struct zkl_hosts former = resolver->hosts;
    inherit(&hosts, &former);
    resolver->hosts = hosts;
    if (resolver->looking && !resolver->replaced.all)
        resolver->replaced = former;
    else
        zkl_hosts_free(&former);
    resolver->are_new = true;
    if (zkl_hosts_have_names(&hosts) && resolver->round_mono_ns == INT64_MAX)
        resolver->round_mono_ns = zkl_clock_mono_ns(); /* the thread looks them up now */
    zkl_resolver_want(d);
    zkl_driver_kick(d);
}

void zkl_resolver_want(struct zkl_driver *d)
{
    if (!d->resolver.has_thread)
        return;
    d->resolver.wanted = true;
    pthread_cond_signal(&d->resolver.due);
}

int64_t zkl_resolver_due(const struct zkl_driver *d)
{
    const struct zkl_resolver *resolver = &d->resolver;
    int64_t at = resolver->not_before_mono_ns;
    if (!resolver->are_new)
        return INT64_MAX;
    if (resolver->round_mono_ns == INT64_MAX)
        return at;
    /* How long the others wait for the slowest name. */
    int64_t patience_ns = d->core.session.timeout_ms * MS / 16;
    return resolver->round_mono_ns + patience_ns > at ? resolver->round_mono_ns + patience_ns : at;
}

static char *merge(const struct zkl_resolver *resolver)
{
    const char **lists = calloc(resolver->hosts.count, sizeof *lists);
    for (size_t i = 0; lists && i < resolver->hosts.count; i++)
        lists[i] = resolver->hosts.all[i].found;
    char *merged = lists ? zkl_addresses_merge(lists, resolver->hosts.count) : NULL;
    free(lists);
    return merged;
}

void zkl_resolver_publish(struct zkl_driver *d, int64_t now_mono_ns)
{
    struct zkl_resolver *resolver = &d->resolver;
    if (now_mono_ns < zkl_resolver_due(d))
        return;
    char *merged = merge(resolver);
    if (!merged) {
        resolver->not_before_mono_ns = now_mono_ns + AGAIN_MS * MS;
        return;
    }
    resolver->are_new = false;
    if (*merged == '\0' || (resolver->addresses && strcmp(merged, resolver->addresses) == 0)) {
        free(merged); /* none at all is no better than the old ones */
        return;
    }
    free(resolver->addresses);
    resolver->addresses = merged;
    resolver->serial++;
}

void zkl_resolver_trouble(const struct zkl_driver *d, char *text, size_t size)
{
    const struct zkl_resolver *resolver = &d->resolver;
    text[0] = '\0';
    for (size_t i = 0; i < resolver->hosts.count && text[0] == '\0'; i++) {
        const struct zkl_host *host = &resolver->hosts.all[i];
        if (!host->found && host->failure != 0)
            snprintf(text, size, "; no address for %s: %s", host->name,
                     gai_strerror(host->failure));
        else if (!host->found && resolver->looking == host)
            snprintf(text, size, "; the lookup of the address of %s has not finished", host->name);
    }
}
