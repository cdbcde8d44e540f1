/* SPDX-License-Identifier: Apache-2.0 */
#include "handle.h"
#include "peer.h"
#include "lock_options.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct handle handles[HANDLES_MAX]; /* under mu; name "": unused */

/* --- options ---------------------------------------------------------------------------------- */

/* The value of "name=value", or NULL. */
static const char *option(const char *const *options, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; options[i] != NULL; i++) {
        if (strncmp(options[i], name, length) == 0 && options[i][length] == '=')
            return options[i] + length + 1;
    }
    return NULL;
}

/* "name" or "name=value". */
static bool has(const char *const *options, const char *name)
{
    for (size_t i = 0; options[i] != NULL; i++) {
        if (strcmp(options[i], name) == 0)
            return true;
    }
    return option(options, name) != NULL;
}

static int number(const char *value, int otherwise)
{
    return value != NULL ? atoi(value) : otherwise;
}

static bool is(const char *value, const char *text)
{
    return value != NULL && strcmp(value, text) == 0;
}

static struct zkl_mutex_options lock_options(const char *const *options)
{
    struct zkl_mutex_options o = ZKL_MUTEX_OPTIONS_INIT;

    o.name = option(options, "name");
    if (o.name != NULL)
        o.names = ZKL_NAMES_NAMED;
    else if (is(option(options, "names"), "kazoo"))
        o.names = ZKL_NAMES_KAZOO;
    o.owner = option(options, "owner");
    o.revocable = is(option(options, "revocable"), "poll");
    o.posted_unlock = has(options, "posted");
    o.metrics = has(options, "metrics");
    return o;
}

static struct habits habits(const char *const *options)
{
    return (struct habits){.tries = has(options, "try"),
                           .syncs = has(options, "sync"),
                           .naps = has(options, "nap"),
                           .downgrades = has(options, "downgrade"),
                           .timed = has(options, "timed"),
                           .late = has(options, "late"),
                           .lease_ms = number(option(options, "lease"), 0)};
}

static void count_requests(const struct zkl_hold_event *event, void *arg)
{
    struct handle *h = arg;

    h->asked += event->state == ZKL_HOLD_REVOKE_REQUESTED;
    h->lost += event->state == ZKL_HOLD_LOST;
    if (event->state == ZKL_HOLD_LOST && peer_told_lost != NULL)
        peer_told_lost(event);
}

/* Sets the callback that counts requests to release. */
static int listen_to(struct handle *h, const char *const *options)
{
    h->has_callback = is(option(options, "revocable"), "callback");
    if (!h->has_callback)
        return 0;
    return h->semaphore != NULL ? zkl_semaphore_set_callback(h->semaphore, count_requests, h)
                                : zkl_mutex_set_callback(h->mutex, count_requests, h);
}

/* --- mutex ------------------------------------------------------------------------------------ */

static int mutex_make(struct handle *h, struct zkl_client *client, const char *const *options)
{
    struct zkl_mutex_options o = lock_options(options);

    o.local_handoffs_max = number(option(options, "local"), 0);
    o.retain_ms = number(option(options, "retain"), 0);
    h->access = has(options, "local") || has(options, "retain") ? 's' : 'x';
    int rc = zkl_mutex_new(&h->mutex, client, h->paths[0], &o);
    return rc == 0 ? listen_to(h, options) : rc;
}

static int mutex_lock(struct handle *h, const struct zkl_wait *wait, struct held *held)
{
    return zkl_mutex_acquire(h->mutex, wait, &held->grants[0]);
}

static int mutex_unlock(struct handle *h, struct held *held)
{
    return held->codes[0] = zkl_mutex_unlock(h->mutex);
}

static int mutex_free(struct handle *h)
{
    return zkl_mutex_free(h->mutex);
}

/* --- read-write lock: two handles, freed with the first one ------------------------------------ */

static int read_make(struct handle *h, struct zkl_client *client, const char *const *options)
{
    struct zkl_mutex_options all = lock_options(options);
    struct zkl_lock_options o = lock_options_of(&all);

    h->access = 'r';
    int rc = zkl_rwlock_new(&h->rwlock, client, h->paths[0], &o);
    const char *retain_ms = option(options, "retain");
    h->shares_node = retain_ms != NULL;
    if (rc == 0 && retain_ms)
        rc = zkl_rwlock_retain_readers(h->rwlock, atoi(retain_ms));
    if (rc != 0)
        return rc;
    h->mutex = zkl_rwlock_reader(h->rwlock);
    return listen_to(h, options);
}

static int write_make(struct handle *h, struct zkl_client *client, const char *const *options)
{
    (void)client;
    h->access = 'x';
    h->mutex = zkl_rwlock_writer(h->rwlock);
    return listen_to(h, options);
}

static int read_free(struct handle *h)
{
    return zkl_rwlock_free(h->rwlock);
}

/* --- semaphore, and the mutex made of one ------------------------------------------------------ */

static int semaphore_make(struct handle *h, struct zkl_client *client, const char *const *options)
{
    struct zkl_mutex_options all = lock_options(options);
    struct zkl_lock_options o = lock_options_of(&all);

    h->access = 'p';
    h->count = number(option(options, "count"), 1);
    if (h->count > HANDLE_PERMITS_MAX)
        return ZKL_EINVAL;
    h->permits = number(option(options, "permits"), 1);
    int rc = zkl_semaphore_new(&h->semaphore, client, h->paths[0], h->permits, &o);
    return rc == 0 ? listen_to(h, options) : rc;
}

static int semaphore_lock(struct handle *h, const struct zkl_wait *wait, struct held *held)
{
    int rc = zkl_semaphore_acquire(h->semaphore, h->count, wait, held->permits);

    for (int i = 0; rc == 0 && i < h->count; i++) {
        held->grants[i].token = zkl_permit_token(held->permits[i]);
        held->grants[i].hold_count = 1;
    }
    return rc;
}

static int semaphore_unlock(struct handle *h, struct held *held)
{
    int rc = 0;

    for (int i = 0; i < h->count; i++) {
        held->codes[i] = zkl_permit_release(held->permits[i]);
        rc = rc == 0 ? held->codes[i] : rc;
    }
    return rc;
}

static int semaphore_free(struct handle *h)
{
    return zkl_semaphore_free(h->semaphore);
}

static int single_make(struct handle *h, struct zkl_client *client, const char *const *options)
{
    struct zkl_mutex_options all = lock_options(options);
    struct zkl_lock_options o = lock_options_of(&all);

    h->access = 'x';
    int rc = zkl_semaphore_mutex_new(&h->mutex, client, h->paths[0], &o);
    return rc == 0 ? listen_to(h, options) : rc;
}

/* --- multi-lock --------------------------------------------------------------------------------- */

static int free_members(struct handle *h)
{
    int rc = 0;

    for (size_t i = 0; h->owns_members && i < h->members_count; i++) {
        rc = rc == 0 ? h->members[i]->kind->free(h->members[i]) : rc;
        free(h->members[i]);
    }
    return rc;
}

static const struct handle_kind *kind_named(const char *name);

/* The mutex at one of the paths; the last one can be made of a semaphore: "last=single". */
static int make_member(struct handle *h, size_t i, struct zkl_client *client,
                       const char *const *options)
{
    bool single = i == h->paths_count - 1 && is(option(options, "last"), "single");
    struct handle *member = calloc(1, sizeof *member);

    if (member == NULL)
        return ZKL_ENOMEM;
    member->kind = kind_named(single ? "single" : "mutex");
    member->paths_count = 1;
    member->count = 1;
    memcpy(member->lock_name, h->lock_name, sizeof member->lock_name);
    memcpy(member->paths[0], h->paths[i], sizeof member->paths[0]);
    int rc = member->kind->make(member, client, options);
    if (rc == 0)
        h->members[h->members_count++] = member;
    else
        free(member);
    return rc;
}

int handle_of(struct handle *multi, struct zkl_client *client, struct handle *const *members,
              size_t n)
{
    struct zkl_member each[HANDLE_PATHS_MAX];

    *multi = (struct handle){.kind = kind_named("multi"), .members_count = n};
    for (size_t i = 0; i < n; i++) {
        multi->members[i] = members[i];
        each[i] = members[i]->semaphore != NULL ? zkl_member_semaphore(members[i]->semaphore, 1)
                                                : zkl_member_mutex(members[i]->mutex);
    }
    return zkl_multi_new(&multi->multi, client, each, n);
}

/* The last path is named first, because the order of the names must not matter. */
static int multi_make(struct handle *h, struct zkl_client *client, const char *const *options)
{
    struct handle whole;
    int rc = 0;

    h->access = 'x';
    h->owns_members = true;
    for (size_t i = h->paths_count; rc == 0 && i-- > 0;)
        rc = make_member(h, i, client, options);
    if (rc == 0)
        rc = handle_of(&whole, client, h->members, h->members_count);
    if (rc == 0)
        h->multi = whole.multi;
    else
        free_members(h);
    return rc;
}

static int multi_lock(struct handle *h, const struct zkl_wait *wait, struct held *held)
{
    return zkl_multi_acquire(h->multi, wait, held->grants);
}

static int multi_unlock(struct handle *h, struct held *held)
{
    return zkl_multi_unlock(h->multi, held->codes);
}

static int multi_free(struct handle *h)
{
    int rc = zkl_multi_free(h->multi);

    return rc == 0 ? free_members(h) : rc;
}

/* --- nothing: lets everybody in --------------------------------------------------------------- */

static int none_make(struct handle *h, struct zkl_client *client, const char *const *options)
{
    (void)client, (void)options;
    h->access = 'x';
    return 0;
}

static int none_lock(struct handle *h, const struct zkl_wait *wait, struct held *held)
{
    (void)wait;
    for (size_t i = 0; i < h->paths_count; i++)
        held->grants[i].hold_count = 1;
    return 0;
}

static int none_unlock(struct handle *h, struct held *held)
{
    (void)h;
    memset(held->codes, 0, sizeof held->codes);
    return 0;
}

static int none_free(struct handle *h)
{
    (void)h;
    return 0;
}

static const struct handle_kind write_half = {"write", write_make, mutex_lock, mutex_unlock,
                                              none_free};

static const struct handle_kind kinds[] = {
    {"mutex", mutex_make, mutex_lock, mutex_unlock, mutex_free},
    {"rwlock", read_make, mutex_lock, mutex_unlock, read_free},
    {"semaphore", semaphore_make, semaphore_lock, semaphore_unlock, semaphore_free},
    {"single", single_make, mutex_lock, mutex_unlock, mutex_free},
    {"multi", multi_make, multi_lock, multi_unlock, multi_free},
    {"none", none_make, none_lock, none_unlock, none_free},
};

/* --- what is held ----------------------------------------------------------------------------- */

int handle_lock(struct handle *h, const struct zkl_wait *wait, struct held *held)
{
    *held = (struct held){.codes = {0}};
    for (size_t i = 0; i < HANDLE_PATHS_MAX; i++)
        held->grants[i] = (struct zkl_grant)ZKL_GRANT_INIT;
    return h->kind->lock(h, wait, held);
}

size_t handle_places(const struct handle *h)
{
    return h->multi != NULL ? h->members_count : h->paths_count * (size_t)h->count;
}

const struct handle *handle_place(const struct handle *h, size_t n)
{
    return h->multi != NULL ? h->members[n] : h;
}

int64_t handle_window_ms(const struct handle *h, const struct held *held)
{
    int64_t least = INT64_MAX;

    for (int i = 0; h->semaphore != NULL && i < h->count; i++) {
        int64_t one = zkl_permit_window_ms(held->permits[i]);
        least = one < least ? one : least;
    }
    if (h->semaphore != NULL)
        return least;
    if (h->multi != NULL)
        return zkl_multi_window_ms(h->multi);
    return h->mutex != NULL ? zkl_mutex_window_ms(h->mutex) : 0;
}

int handle_node(const struct handle *h, const struct held *held, size_t n, char *node, size_t size)
{
    if (h->semaphore != NULL)
        return zkl_permit_node_path(held->permits[n], node, size);
    if (h->multi != NULL)
        return zkl_multi_node_path(h->multi, n, node, size);
    return h->mutex != NULL ? zkl_mutex_node_path(h->mutex, node, size) : 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

static const struct handle_kind *kind_named(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return NULL;
}

/* "/a,/b" */
static void split_paths(struct handle *h, const char *paths)
{
    while (*paths != '\0' && h->paths_count < HANDLE_PATHS_MAX) {
        size_t length = strcspn(paths, ",");
        char *path = h->paths[h->paths_count++];
        snprintf(path, sizeof h->paths[0], "%.*s", (int)length, paths);
        paths += length + (paths[length] == ',');
    }
}

static struct handle *find(const char *name)
{
    for (size_t i = 0; i < HANDLES_MAX; i++) {
        if (strcmp(handles[i].name, name) == 0)
            return &handles[i];
    }
    return NULL;
}

struct handle *handle_find(const char *name)
{
    pthread_mutex_lock(&mu);
    struct handle *h = find(name);
    pthread_mutex_unlock(&mu);
    return h;
}

/* With a name that has nothing after it, or ".read" and the like. */
static int make(struct handle *h, const struct handle_kind *kind, const char *name,
                const char *half, struct zkl_client *client, const char *const *options)
{
    h->kind = kind;
    h->count = 1;
    h->habits = habits(options);
    snprintf(h->lock_name, sizeof h->lock_name, "%s",
             has(options, "name") ? option(options, "name") : "");
    int rc = kind->make(h, client, options);
    if (rc == 0)
        snprintf(h->name, sizeof h->name, "%s%s", name, half);
    else
        *h = (struct handle){.name = ""};
    return rc;
}

static int make_halves(struct handle *read, const char *name, struct zkl_client *client,
                       const char *const *options)
{
    int rc = make(read, read->kind, name, ".read", client, options);
    struct handle *write = find("");

    if (rc != 0 || write == NULL)
        return rc != 0 ? rc : ZKL_ENOMEM;
    memcpy(write->paths, read->paths, sizeof write->paths);
    write->paths_count = read->paths_count;
    write->rwlock = read->rwlock;
    return make(write, &write_half, name, ".write", client, options);
}

int handle_new(struct zkl_client *client, const char *name, const char *kind, const char *paths,
               const char *const *options)
{
    int rc = ZKL_EINVAL;

    pthread_mutex_lock(&mu);
    struct handle *h = find("");
    if (h != NULL && (h->kind = kind_named(kind)) != NULL) {
        split_paths(h, paths);
        rc = h->kind->make == read_make ? make_halves(h, name, client, options)
                                        : make(h, h->kind, name, "", client, options);
    }
    pthread_mutex_unlock(&mu);
    return rc;
}

int handle_join(struct zkl_client *client, const char *name, char *members)
{
    struct handle *each[HANDLE_PATHS_MAX];
    size_t n = 0;

    for (char *member = strtok_r(members, ",", &members); member != NULL && n < HANDLE_PATHS_MAX;
         member = strtok_r(NULL, ",", &members)) {
        if ((each[n++] = handle_find(member)) == NULL)
            return ZKL_EINVAL;
    }
    pthread_mutex_lock(&mu);
    struct handle *multi = find("");
    int rc = multi == NULL ? ZKL_ENOMEM : handle_of(multi, client, each, n);
    if (rc == 0)
        snprintf(multi->name, sizeof multi->name, "%s", name);
    pthread_mutex_unlock(&mu);
    return rc;
}

static int drop(struct handle *h)
{
    int rc = h->kind->free(h);

    if (rc == 0)
        *h = (struct handle){.name = ""};
    return rc;
}

int handle_drop(const char *name)
{
    static const char *const halves[] = {"", ".write", ".read"}; /* read, which frees both, last */
    int rc = 0, dropped = 0;

    pthread_mutex_lock(&mu);
    for (size_t i = 0; rc == 0 && i < 3; i++) {
        char whole[40];
        snprintf(whole, sizeof whole, "%s%s", name, halves[i]);
        struct handle *h = find(whole);
        rc = h != NULL ? drop(h) : 0;
        dropped += h != NULL;
    }
    pthread_mutex_unlock(&mu);
    return rc == 0 && dropped == 0 ? ZKL_EINVAL : rc;
}
