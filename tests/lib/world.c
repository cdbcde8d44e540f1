/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "closed.h"
#include "tool/fourlw.h"

enum { ENDS_WITHIN_MS = 60000, STACK_APART = 256 * 1024 };

/* --- the list --------------------------------------------------------------------------------- */

struct thing {
    struct thing *next; /* the one made before it */
    unsigned long number;
    enum world_rank rank;
    int (*free)(void *it);
    void *it;
};

static struct thing *things;
static unsigned long made;

void *world_keep(void *it, enum world_rank rank, int (*free)(void *))
{
    struct thing *thing = malloc(sizeof *thing);

    check_true(thing != NULL);
    *thing = (struct thing){things, ++made, rank, free, it};
    things = thing;
    return it;
}

/* Off the list. */
static struct thing taken(struct thing **at)
{
    struct thing *found = *at, copy = *found;

    *at = found->next;
    free(found);
    return copy;
}

static struct thing take(const void *it)
{
    struct thing **at = &things;

    while (*at && (*at)->it != it)
        at = &(*at)->next;
    check_true(*at != NULL);
    return taken(at);
}

void world_forget(void *it)
{
    take(it);
}

void world_drop(void *it)
{
    check_ok(take(it).free(it));
}

/* --- what the library makes ------------------------------------------------------------------- */

#define FREES(kind)                                                                                \
    static int free_##kind(void *it)                                                               \
    {                                                                                              \
        return zkl_##kind##_free(it);                                                              \
    }

FREES(client)
FREES(mutex)
FREES(rwlock)
FREES(semaphore)
FREES(multi)
FREES(owner)

static int free_cancel(void *cancel)
{
    zkl_cancel_free(cancel);
    return 0;
}

/* The call that made it must have returned 0, or its sentence is shown. */
static void check_made(int rc)
{
    if (rc != 0)
        fail_msg("%s: %s", zkl_error_name(rc), zkl_error_detail());
}

struct zkl_client *world_client_with(const struct zkl_client_options *options)
{
    struct zkl_client *client = NULL;

    check_made(zkl_client_open(&client, options));
    return world_keep(client, WORLD_CLIENT, free_client);
}

struct zkl_mutex *world_mutex_with(struct zkl_client *client, const char *path,
                                   const struct zkl_mutex_options *options)
{
    struct zkl_mutex *mutex = NULL;

    check_made(zkl_mutex_new(&mutex, client, path, options));
    return world_keep(mutex, WORLD_LOCK, free_mutex);
}

struct zkl_mutex *world_mutex(struct zkl_client *client, const char *path)
{
    return world_mutex_with(client, path, NULL);
}

struct zkl_rwlock *world_rwlock(struct zkl_client *client, const char *path,
                                const struct zkl_lock_options *options)
{
    struct zkl_rwlock *rwlock = NULL;

    check_made(zkl_rwlock_new(&rwlock, client, path, options));
    return world_keep(rwlock, WORLD_LOCK, free_rwlock);
}

struct zkl_semaphore *world_semaphore(struct zkl_client *client, const char *path, int permits,
                                      const struct zkl_lock_options *options)
{
    struct zkl_semaphore *semaphore = NULL;

    check_made(zkl_semaphore_new(&semaphore, client, path, permits, options));
    return world_keep(semaphore, WORLD_LOCK, free_semaphore);
}

struct zkl_mutex *world_semaphore_mutex(struct zkl_client *client, const char *path)
{
    struct zkl_mutex *mutex = NULL;

    check_made(zkl_semaphore_mutex_new(&mutex, client, path, NULL));
    return world_keep(mutex, WORLD_LOCK, free_mutex);
}

struct zkl_multi *world_multi(struct zkl_client *client, const struct zkl_member *members,
                              size_t count)
{
    struct zkl_multi *multi = NULL;

    check_made(zkl_multi_new(&multi, client, members, count));
    return world_keep(multi, WORLD_MULTI, free_multi);
}

struct zkl_cancel *world_cancel(void)
{
    struct zkl_cancel *cancel = NULL;

    check_made(zkl_cancel_new(&cancel));
    return world_keep(cancel, WORLD_LOCK, free_cancel);
}

struct zkl_owner *world_owner(void)
{
    struct zkl_owner *owner = NULL;

    check_made(zkl_owner_new(&owner));
    return world_keep(owner, WORLD_LOCK, free_owner);
}

/* --- links and memory ------------------------------------------------------------------------- */

static int stop_proxy(void *proxy)
{
    proxy_stop(proxy);
    return 0;
}

struct proxy *world_proxy_to(struct zks *zks, size_t node)
{
    struct proxy *proxy = NULL;

    check_ok(proxy_start(&proxy, zks_host(), zks_port(zks, node)));
    return world_keep(proxy, WORLD_LINK, stop_proxy);
}

struct proxy *world_proxy(void)
{
    return world_proxy_to(server, 0);
}

void lose_link(struct proxy *proxy)
{
    check_ok(proxy_refuse(proxy, true));
    proxy_cut(proxy);
}

static int stop_server(void *zks)
{
    zks_stop(zks);
    return 0;
}

struct zks *world_server(const struct zks_options *options)
{
    struct zks *zks = NULL;
    char err[512] = "";

    if (zks_start(&zks, options, err, sizeof err) != 0)
        fail_msg("%s", err);
    return world_keep(zks, WORLD_LINK, stop_server);
}

static int delete_all(struct wire *wire)
{
    struct wire_names names;
    char path[512];
    int rc = wire_children(wire, "/", &names);

    if (rc != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        snprintf(path, sizeof path, "/%s", names.name[i]);
        if (strcmp(path, "/zookeeper") != 0)
            rc = wire_delete_tree(wire, path);
    }
    wire_names_free(&names);
    return rc;
}

/* By a connection of its own: the test's may have been silent for too long. */
static int sweep(void *zks)
{
    struct wire *wire = NULL;
    int rc = wire_open(&wire, zks_host(), zks_port(zks, 0), WIRE_LASTING_MS);

    if (rc != 0)
        return rc;
    rc = delete_all(wire);
    wire_close(wire);
    return rc;
}

static int close_wire(void *wire)
{
    wire_close(wire);
    return 0;
}

struct wire *world_wire_to(struct zks *zks, size_t node, int session_ms)
{
    struct wire *wire = NULL;

    check_ok(wire_open(&wire, zks_host(), zks_port(zks, node), session_ms));
    return world_keep(wire, WORLD_LINK, close_wire);
}

struct wire *world_wire(void)
{
    world_keep(server, WORLD_LINK, sweep);
    return world_wire_to(server, 0, WIRE_LASTING_MS);
}

static int free_memory(void *memory)
{
    free(memory);
    return 0;
}

void *world_alloc(size_t size)
{
    void *memory = calloc(1, size);

    check_true(memory != NULL);
    return world_keep(memory, WORLD_MEMORY, free_memory);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Does the server have a node of this session? */
static bool has_nodes(int64_t session)
{
    char *dump = flw_ask(zks_host(), zks_port(server, 0), "dump"), head[32];

    snprintf(head, sizeof head, "0x%llx:\n\t/", (long long)session);
    bool has = !dump || strstr(dump, head);
    free(dump);
    return has;
}

/* Of a client with a link: with all its locks freed it has no node, and the server confirms its end. */
static void check_client_ends(struct zkl_client *client)
{
    if (zkl_client_get_state(client) != ZKL_CLIENT_CONNECTED)
        return;
    check_wait(!has_nodes(zkl_client_session_id(client)), ENDS_WITHIN_MS);
    check_closed(zkl_client_close(client, ENDS_WITHIN_MS));
}

static void free_rank(unsigned long mark, enum world_rank rank, bool checks)
{
    for (struct thing **at = &things; *at && (*at)->number > mark;) {
        if ((*at)->rank != rank) {
            at = &(*at)->next;
            continue;
        }
        struct thing thing = taken(at);
        if (checks && rank == WORLD_CLIENT)
            check_client_ends(thing.it);
        int rc = thing.free(thing.it);
        if (checks)
            check_ok(rc);
    }
}

static void free_since(unsigned long mark, bool checks)
{
    for (enum world_rank rank = WORLD_THREAD; rank <= WORLD_MEMORY; rank++)
        free_rank(mark, rank, checks);
}

unsigned long world_mark(void)
{
    return made;
}

void world_clear_since(unsigned long mark)
{
    free_since(mark, true);
}

void world_clear(void)
{
    world_clear_since(0);
}

/* Deep enough that the frames of a test that fails stay as they are during world_end: threads and callbacks still use
 * what is in them. */
static __attribute__((noinline)) void run_apart(void (*test)(void))
{
    volatile char apart[STACK_APART];

    apart[0] = 0;
    test();
    apart[sizeof apart - 1] = 0;
}

void world_run(void **state)
{
    const struct world_case *world_case = *state;

    run_apart(world_case->test);
    world_clear();
}

/* Of a test that failed: no wait lasts when its client is closed. What can't be freed then stays. */
int world_end(void **state)
{
    (void)state;
    for (struct thing *thing = things; thing; thing = thing->next) {
        if (thing->rank == WORLD_CLIENT)
            zkl_client_close(thing->it, 0);
    }
    free_since(0, false);
    return 0;
}
