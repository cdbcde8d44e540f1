/* SPDX-License-Identifier: Apache-2.0
 *
 * The locks of one zklock run, as one multi-lock: made from the words of the command line,
 * acquired, queried and released as one. This file owns the handles of all members. One thread;
 * run.c calls it, and record.c asks for its nodes to check. */
#include "claim.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <zklock/metrics.h>

#include "clock.h"
#include "launch.h"

enum { NODE_PATH_MAX = 1024 };

/* --- the locks ----------------------------------------------------------- */

static void on_hold(const struct zkl_hold_event *event, void *arg)
{
    struct claim *claim = arg;
    uint64_t one = 1;
    if (event->state == ZKL_HOLD_LOST)
        atomic_store(&claim->lost, true);
    if (event->state == ZKL_HOLD_REVOKE_REQUESTED)
        atomic_store(&claim->revoked, true);
    if (write(claim->events, &one, sizeof one) < 0)
        return; /* full: it is readable */
}

static int make_semaphore(struct claim *claim, size_t i, struct zkl_member *member)
{
    const struct claim_options *o = &claim->options;
    int rc = zkl_semaphore_new(&claim->semaphores[i], claim->client, o->paths[i], o->permits, NULL);
    if (rc == 0)
        rc = zkl_semaphore_set_callback(claim->semaphores[i], on_hold, claim);
    *member = zkl_member_semaphore(claim->semaphores[i], 1);
    return rc;
}

static int make_reader(struct claim *claim, size_t i, struct zkl_member *member)
{
    struct zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    options.names = claim->options.names;
    int rc = zkl_rwlock_new(&claim->rwlocks[i], claim->client, claim->options.paths[i], &options);
    *member = zkl_member_mutex(zkl_rwlock_reader(claim->rwlocks[i]));
    return rc == 0 ? zkl_mutex_set_callback(member->mutex, on_hold, claim) : rc;
}

static int make_mutex(struct claim *claim, size_t i, struct zkl_member *member)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    options.names = claim->options.names;
    int rc = zkl_mutex_new(&claim->mutexes[i], claim->client, claim->options.paths[i], &options);
    *member = zkl_member_mutex(claim->mutexes[i]);
    return rc == 0 ? zkl_mutex_set_callback(member->mutex, on_hold, claim) : rc;
}

static int make_member(struct claim *claim, size_t i, struct zkl_member *member)
{
    if (claim->options.permits > 0)
        return make_semaphore(claim, i, member);
    return claim->options.shared ? make_reader(claim, i, member) : make_mutex(claim, i, member);
}

int claim_init(struct claim *claim, struct zkl_client *client, const struct claim_options *options)
{
    struct zkl_member members[ZKL_MULTI_MEMBERS_MAX];
    *claim = (struct claim){
        .client = client, .options = *options, .events = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    int rc = claim->events < 0 ? ZKL_ESYSTEM : 0;
    for (size_t i = 0; rc == 0 && i < options->count; i++)
        rc = make_member(claim, i, &members[i]);
    if (rc == 0)
        rc = zkl_multi_new(&claim->multi, client, members, options->count);
    return rc;
}

int claim_acquire(struct claim *claim, const struct zkl_wait *wait)
{
    return zkl_multi_acquire(claim->multi, wait, NULL);
}

static int waiting(const struct claim *claim, size_t i, struct zkl_standing *place)
{
    if (claim->semaphores[i])
        return zkl_semaphore_waiting(claim->semaphores[i], place);
    return zkl_mutex_waiting(
        claim->rwlocks[i] ? zkl_rwlock_reader(claim->rwlocks[i]) : claim->mutexes[i], place);
}

/* None before it: the place is not known yet, except that of the first one who waits for permits. */
int claim_waits_at(const struct claim *claim, struct zkl_standing *place)
{
    int first = -1;
    for (size_t i = 0; i < claim->options.count; i++) {
        struct zkl_standing one = ZKL_STANDING_INIT;
        if (waiting(claim, i, &one) == 0 ||
            (one.before == 0 && (first >= 0 || !claim->semaphores[i])))
            continue;
        first = (int)i;
        *place = one;
        if (one.before > 0)
            break;
    }
    return first;
}

int64_t claim_window_end_ns(const struct claim *claim)
{
    int64_t now = boot_ns(); /* before the query: rather too early than too late */
    int64_t window = zkl_multi_window_ms(claim->multi);
    return window > 0 ? now + window * MS_NS : 0;
}

int64_t claim_timeout_ns(const struct claim *claim)
{
    struct zkl_client_metrics metrics = ZKL_CLIENT_METRICS_INIT;
    if (zkl_client_get_metrics(claim->client, &metrics) != 0)
        return 0;
    return metrics.session_timeout_ms * MS_NS;
}

int claim_release(struct claim *claim)
{
    return zkl_multi_unlock(claim->multi, NULL);
}

void claim_fini(struct claim *claim)
{
    zkl_multi_free(claim->multi);
    for (size_t i = 0; i < claim->options.count; i++) {
        zkl_mutex_free(claim->mutexes[i]);
        zkl_rwlock_free(claim->rwlocks[i]);
        zkl_semaphore_free(claim->semaphores[i]);
    }
    if (claim->events >= 0)
        close(claim->events);
}

/* --- what the command gets to know --------------------------------------- */

typedef void (*print_fn)(const struct claim *claim, size_t i, FILE *to);

static void print_path(const struct claim *claim, size_t i, FILE *to)
{
    fputs(claim->options.paths[i], to);
}

static void print_token(const struct claim *claim, size_t i, FILE *to)
{
    fprintf(to, "%llu", (unsigned long long)zkl_multi_token(claim->multi, i));
}

static void print_node(const struct claim *claim, size_t i, FILE *to)
{
    char node[NODE_PATH_MAX];
    if (zkl_multi_node_path(claim->multi, i, node, sizeof node) > 0)
        fputs(node, to);
}

/* NAME=one two three */
static char *describe(const struct claim *claim, const char *name, print_fn print)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    for (size_t i = 0; i < claim->options.count; i++) {
        fputs(i == 0 ? name : " ", to);
        print(claim, i, to);
    }
    return fclose(to) == 0 ? text : NULL;
}

bool claim_describe(const struct claim *claim, char *variables[])
{
    static const struct {
        const char *name;
        print_fn print;
    } known[LAUNCH_VARIABLES] = {
        {"ZKLOCK_PATH=", print_path}, {"ZKLOCK_TOKEN=", print_token}, {"ZKLOCK_NODE=", print_node}};
    bool all = true;
    for (int i = 0; i < LAUNCH_VARIABLES; i++) {
        variables[i] = describe(claim, known[i].name, known[i].print);
        all = all && variables[i];
    }
    return all;
}
