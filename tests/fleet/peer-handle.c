/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"
#include "../lib/lock_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_LEASE_MS 20000

/* --- options ---------------------------------------------------------------------------------- */

struct wish {
    struct settings settings;
    struct zkl_mutex_options options;
};

static void set_flags(struct wish *w, const char *word)
{
    struct settings *s = &w->settings;
    struct zkl_mutex_options *o = &w->options;

    s->tries |= strcmp(word, "try") == 0;
    s->syncs |= strcmp(word, "sync") == 0;
    s->naps |= strcmp(word, "nap") == 0;
    s->timed |= strcmp(word, "timed") == 0;
    s->downgrades |= strcmp(word, "downgrade") == 0;
    s->ends_late |= strcmp(word, "late") == 0;
    o->posted_unlock |= strcmp(word, "posted") == 0;
    o->revocable |= strcmp(word, "revocable") == 0;
    o->metrics |= strcmp(word, "metrics") == 0;
    if (strcmp(word, "kazoo") == 0)
        o->names = ZKL_NAMES_KAZOO;
    if (strcmp(word, "lease") == 0)
        s->lease_ms = SHORT_LEASE_MS;
}

/* "posted", or "local=3". */
static void set_option(struct wish *w, const char *word)
{
    const char *value = strchr(word, '=');

    if (value == NULL) {
        set_flags(w, word);
    } else if (strncmp(word, "named=", 6) == 0) {
        snprintf(w->settings.name, sizeof w->settings.name, "%s", value + 1);
        w->options.names = ZKL_NAMES_NAMED;
    } else if (strncmp(word, "local=", 6) == 0) {
        w->options.local_handoffs_max = atoi(value + 1);
        w->settings.access = 's';
    } else if (strncmp(word, "retain=", 7) == 0) {
        w->options.retain_ms = atoi(value + 1);
        w->settings.access = 's';
    } else if (strncmp(word, "threads=", 8) == 0) {
        w->settings.threads = atoi(value + 1);
    } else if (strncmp(word, "count=", 6) == 0) {
        w->settings.count = atoi(value + 1);
    } else if (strncmp(word, "permits=", 8) == 0) {
        w->settings.permits = atoi(value + 1);
    }
}

/* --- what is held ----------------------------------------------------------------------------- */

static bool held_mutex(struct zkl_mutex *mutex, const char *path, const char *name, char *place,
                       uint64_t *token, char *node)
{
    snprintf(place, PLACE_SIZE, "%s%s%s", path, *name ? "#" : "", name);
    *token = zkl_mutex_token(mutex);
    return zkl_mutex_node_path(mutex, node, NODE_SIZE) > 0;
}

static bool mutex_held(struct handle *h, const struct hold *hold, int n, char *place,
                       uint64_t *token, char *node)
{
    return n == 0 && held_mutex(hold->mutex, h->paths[0], h->settings.name, place, token, node);
}

static bool semaphore_held(struct handle *h, const struct hold *hold, int n, char *place,
                           uint64_t *token, char *node)
{
    if (n >= h->settings.count)
        return false;
    snprintf(place, PLACE_SIZE, "%s", h->paths[0]);
    *token = zkl_permit_token(hold->permits[n]);
    return zkl_permit_node_path(hold->permits[n], node, NODE_SIZE) > 0;
}

/* The paths were named last first. */
static bool multi_held(struct handle *h, const struct hold *hold, int n, char *place,
                       uint64_t *token, char *node)
{
    (void)hold;
    if (n >= h->paths_count)
        return false;
    size_t member = (size_t)(h->paths_count - 1 - n);
    snprintf(place, PLACE_SIZE, "%s", h->paths[n]);
    *token = zkl_multi_token(h->multi, member);
    return zkl_multi_node_path(h->multi, member, node, NODE_SIZE) > 0;
}

/* --- mutex ------------------------------------------------------------------------------------ */

static int mutex_make(struct handle *h, struct zkl_client *client,
                      const struct zkl_mutex_options *o)
{
    return zkl_mutex_new(&h->mutex, client, h->paths[0], o);
}

/* Of a semaphore. */
static int single_make(struct handle *h, struct zkl_client *client,
                       const struct zkl_mutex_options *o)
{
    struct zkl_lock_options of_all = lock_options_of(o);
    return zkl_semaphore_mutex_new(&h->mutex, client, h->paths[0], &of_all);
}

static int mutex_lock(struct handle *h, const struct zkl_wait *wait, struct hold *hold)
{
    hold->mutex = h->mutex;
    return zkl_mutex_acquire(h->mutex, wait, NULL);
}

static int mutex_unlock(struct handle *h, struct hold *hold)
{
    (void)h;
    return zkl_mutex_unlock(hold->mutex);
}

static int mutex_free(struct handle *h)
{
    return zkl_mutex_free(h->mutex);
}

/* --- halves of a read-write lock -------------------------------------------------------------- */

static int rwlock_make(struct handle *h, struct zkl_client *client,
                       const struct zkl_mutex_options *o)
{
    struct zkl_lock_options of_all = lock_options_of(o);
    return zkl_rwlock_new(&h->rwlock, client, h->paths[0], &of_all);
}

static int read_make(struct handle *h, struct zkl_client *client, const struct zkl_mutex_options *o)
{
    h->settings.access = 'r';
    return rwlock_make(h, client, o);
}

static int read_lock(struct handle *h, const struct zkl_wait *wait, struct hold *hold)
{
    hold->mutex = zkl_rwlock_reader(h->rwlock);
    return zkl_mutex_acquire(hold->mutex, wait, NULL);
}

static int write_lock(struct handle *h, const struct zkl_wait *wait, struct hold *hold)
{
    hold->mutex = zkl_rwlock_writer(h->rwlock);
    return zkl_mutex_acquire(hold->mutex, wait, NULL);
}

static int rwlock_free(struct handle *h)
{
    return zkl_rwlock_free(h->rwlock);
}

/* --- semaphore -------------------------------------------------------------------------------- */

static int semaphore_make(struct handle *h, struct zkl_client *client,
                          const struct zkl_mutex_options *o)
{
    h->settings.access = 'p';
    struct zkl_lock_options of_all = lock_options_of(o);
    return zkl_semaphore_new(&h->semaphore, client, h->paths[0], h->settings.permits, &of_all);
}

static int semaphore_lock(struct handle *h, const struct zkl_wait *wait, struct hold *hold)
{
    return zkl_semaphore_acquire(h->semaphore, h->settings.count, wait, hold->permits);
}

static int semaphore_unlock(struct handle *h, struct hold *hold)
{
    int rc = 0;

    for (int i = 0; i < h->settings.count; i++) {
        int each = zkl_permit_release(hold->permits[i]);
        rc = rc == 0 ? each : rc;
    }
    return rc;
}

static int semaphore_free(struct handle *h)
{
    return zkl_semaphore_free(h->semaphore);
}

/* --- multi-lock ------------------------------------------------------------------------------- */

static int multi_make(struct handle *h, struct zkl_client *client,
                      const struct zkl_mutex_options *o)
{
    struct zkl_member members[PATHS_MAX];
    int rc = 0;

    for (int i = 0; rc == 0 && i < h->paths_count; i++) {
        rc = zkl_mutex_new(&h->members[i], client, h->paths[i], o);
        members[h->paths_count - 1 - i] = zkl_member_mutex(h->members[i]);
    }
    return rc == 0 ? zkl_multi_new(&h->multi, client, members, (size_t)h->paths_count) : rc;
}

static int multi_lock(struct handle *h, const struct zkl_wait *wait, struct hold *hold)
{
    (void)hold;
    return zkl_multi_acquire(h->multi, wait, NULL);
}

static int multi_unlock(struct handle *h, struct hold *hold)
{
    (void)hold;
    return zkl_multi_unlock(h->multi, NULL);
}

static int multi_free(struct handle *h)
{
    int rc = zkl_multi_free(h->multi);

    for (int i = 0; rc == 0 && i < h->paths_count; i++)
        rc = zkl_mutex_free(h->members[i]);
    return rc;
}

/* --- one that does not lock ------------------------------------------------------------------- */

static int none_make(struct handle *h, struct zkl_client *client, const struct zkl_mutex_options *o)
{
    (void)h, (void)client, (void)o;
    return 0;
}

static int none_lock(struct handle *h, const struct zkl_wait *wait, struct hold *hold)
{
    (void)h, (void)wait, (void)hold;
    return 0;
}

static int none_unlock(struct handle *h, struct hold *hold)
{
    (void)h, (void)hold;
    return 0;
}

/* With a token that nobody can find fault with. */
static bool none_held(struct handle *h, const struct hold *hold, int n, char *place,
                      uint64_t *token, char *node)
{
    (void)hold;
    snprintf(place, PLACE_SIZE, "%s", h->paths[0]);
    snprintf(node, NODE_SIZE, "0");
    *token = (uint64_t)zkl_now_ns();
    return n == 0;
}

static int none_free(struct handle *h)
{
    (void)h;
    return 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

static const struct kind kinds[] = {
    {"mutex", mutex_make, mutex_lock, mutex_unlock, mutex_held, mutex_free},
    {"single", single_make, mutex_lock, mutex_unlock, mutex_held, mutex_free},
    {"read", read_make, read_lock, mutex_unlock, mutex_held, rwlock_free},
    {"write", rwlock_make, write_lock, mutex_unlock, mutex_held, rwlock_free},
    {"semaphore", semaphore_make, semaphore_lock, semaphore_unlock, semaphore_held, semaphore_free},
    {"multi", multi_make, multi_lock, multi_unlock, multi_held, multi_free},
    {"none", none_make, none_lock, none_unlock, none_held, none_free},
};

static void split_paths(struct handle *h, char *paths)
{
    for (char *path = strtok_r(paths, ",", &paths); path != NULL && h->paths_count < PATHS_MAX;
         path = strtok_r(NULL, ",", &paths))
        snprintf(h->paths[h->paths_count++], sizeof h->paths[0], "%s", path);
}

static void read_worker(struct handle *h, struct wish *wish, const char *worker)
{
    char text[200], *rest = text;

    snprintf(text, sizeof text, "%s", worker);
    const char *kind = strtok_r(rest, " ", &rest);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kind != NULL && strcmp(kind, kinds[i].name) == 0)
            h->kind = &kinds[i];
    }
    char *paths = strtok_r(NULL, " ", &rest);
    if (paths != NULL)
        split_paths(h, paths);
    for (char *word = strtok_r(NULL, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        set_option(wish, word);
}

int handle_make(struct handle *h, struct zkl_client *client, const char *worker)
{
    struct wish wish = {.settings = {.threads = 1, .count = 1, .permits = 1, .access = 'x'},
                        .options = ZKL_MUTEX_OPTIONS_INIT};

    memset(h, 0, sizeof *h);
    read_worker(h, &wish, worker);
    if (h->kind == NULL || h->paths_count == 0 || wish.settings.count > PERMITS_MAX) {
        fprintf(stderr, "not a worker: %s\n", worker);
        return ZKL_EINVAL;
    }
    h->settings = wish.settings;
    wish.options.name = *h->settings.name ? h->settings.name : NULL;
    int rc = h->kind->make(h, client, &wish.options);
    if (rc != 0)
        fprintf(stderr, "%s: %s: %s\n", worker, zkl_strerror(rc), zkl_error_detail());
    return rc;
}
