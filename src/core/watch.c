/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches, shared: one on the server for each path and kind, any number of subscriptions behind it.
 * This file owns them in a table by path. The driver knows a watch by its number only, so that a
 * late event finds nothing instead of freed memory. With the client's mutex; feed.c, query.c and
 * unlisted_grant.c subscribe, dispatch_reply.c brings events, link.c and timers.c arm and
 * remove. */
#include "watch.h"

#include <stdlib.h>
#include <string.h>

#include "opcode.h"
#include "requests.h"

static size_t hash(const char *path, enum zkl_watch_type type)
{
    return (zkl_text_hash(path) + (size_t)type) % ZKL_WATCH_BUCKETS;
}

static struct zkl_watch *find_path(struct zkl_core *core, const char *path,
                                   enum zkl_watch_type type)
{
    struct zkl_watch *watch = core->watches[hash(path, type)];
    while (watch && (watch->type != type || strcmp(watch->path, path) != 0))
        watch = watch->next;
    return watch;
}

static struct zkl_watch *find_id(struct zkl_watch *watch, uint64_t id)
{
    while (watch && watch->id != id)
        watch = watch->next;
    return watch;
}

struct zkl_watch *zkl_watch_find(struct zkl_core *core, uint64_t id)
{
    return find_id(core->watches[id % ZKL_WATCH_BUCKETS], id);
}

struct zkl_watch *zkl_watch_fired(struct zkl_core *core, uint64_t id)
{
    struct zkl_watch *wanted = zkl_watch_find(core, id);
    struct zkl_watch *removed = wanted ? NULL : find_id(core->removing, id);
    if (removed)
        removed->fired = true;
    return wanted;
}

/* The first in the bucket behind that number. */
static struct zkl_watch *first_behind(struct zkl_watch *watch, uint64_t after)
{
    struct zkl_watch *first = NULL;
    for (; watch; watch = watch->next) {
        bool waited = watch->state == ZKL_WATCH_ARMED && watch->subscribers;
        if (waited && watch->id > after && (!first || watch->id < first->id))
            first = watch;
    }
    return first;
}

struct zkl_watch *zkl_watch_next(struct zkl_core *core, uint64_t after)
{
    struct zkl_watch *next = first_behind(core->watches[after % ZKL_WATCH_BUCKETS], after);
    for (size_t i = 1; !next && i <= ZKL_WATCH_BUCKETS; i++)
        next = first_behind(core->watches[(after + i) % ZKL_WATCH_BUCKETS], 0);
    return next;
}

/* The size of this watch in the request by which libzookeeper restores all watches after a
 * reconnect. */
static size_t bytes_of(const struct zkl_core *core, const char *path)
{
    return sizeof(int32_t) + core->chroot_length + strlen(path);
}

/* No contender can wait without a watch on the node that it waits for: that watch may use all of
 * the room. A contender can wait without one on its own node. A watch on a path stays while it is
 * unused, and saves only a list. */
static size_t room_for(const struct zkl_core *core, const struct zkl_subscription *sub)
{
    if (sub->unlisted)
        return core->watch_bytes_max / 8;
    return zkl_watch_is_for(sub, ZKL_SUB_OWN) ? core->watch_bytes_max / 2 : core->watch_bytes_max;
}

static struct zkl_watch *add(struct zkl_core *core, const struct zkl_subscription *sub,
                             const char *path, enum zkl_watch_type type, enum zkl_answer *why)
{
    size_t length = strlen(path) + 1;
    *why = ZKL_ANSWER_FULL;
    if (core->watch_bytes + bytes_of(core, path) > room_for(core, sub))
        return NULL;
    *why = ZKL_ANSWER_NOMEM;
    struct zkl_watch *watch = calloc(1, sizeof *watch + length);
    if (!watch)
        return NULL;
    core->watch_bytes += bytes_of(core, path);
    memcpy(watch->path, path, length);
    watch->request = (struct zkl_pending){.awaiter = ZKL_AWAITER_WATCH, .owner = watch};
    watch->type = type;
    watch->state = ZKL_WATCH_PLANNED;
    /* The number names the bucket, so that it is found by number as well as by path; it fits a
     * pointer, which is what libzookeeper hands back. */
    size_t place = hash(path, type);
    watch->id = (uintptr_t)(++core->last_watch * ZKL_WATCH_BUCKETS + place);
    watch->next = core->watches[place];
    core->watches[place] = watch;
    core->watch_count++;
    return watch;
}

static void unlink_from(struct zkl_watch **at, struct zkl_watch *watch)
{
    while (*at && *at != watch)
        at = &(*at)->next;
    if (*at)
        *at = watch->next;
    watch->next = NULL;
}

void zkl_watch_detach(struct zkl_core *core, struct zkl_watch *watch)
{
    unlink_from(&core->watches[hash(watch->path, watch->type)], watch);
    core->watch_count--;
}

void zkl_watch_gone(struct zkl_core *core, struct zkl_watch *watch)
{
    zkl_pending_forget(core, &watch->request);
    core->watch_bytes -= bytes_of(core, watch->path);
}

void zkl_watch_free(struct zkl_watch *watch)
{
    free(watch->owner);
    free(watch);
}

static void drop(struct zkl_core *core, struct zkl_watch *watch)
{
    zkl_watch_gone(core, watch);
    zkl_watch_free(watch);
}

static void send_removal(struct zkl_core *core, struct zkl_watch *watch)
{
    struct zkl_request request = {
        .kind = ZKL_REQ_UNWATCH, .path = watch->path, .flag = watch->type == ZKL_WATCH_CHILD};
    zkl_pending_send(core, &watch->request, &request);
}

/* No subscriber wants this watch. While it is being armed nothing can be removed yet: its answer
 * returns here. */
static void remove_unwanted(struct zkl_core *core, struct zkl_watch *watch)
{
    bool planned = watch->state == ZKL_WATCH_PLANNED;
    if (watch->subscribers || (watch->state != ZKL_WATCH_ARMED && !planned))
        return;
    if (!planned && zkl_opcode_is_unknown(core, ZKL_OPCODE_REMOVE_WATCHES))
        return; /* left to fire; the next subscriber to the same path shares it */
    zkl_watch_detach(core, watch);
    if (planned) {
        drop(core, watch);
        return;
    }
    watch->state = ZKL_WATCH_REMOVING;
    watch->next = core->removing;
    core->removing = watch;
    if (zkl_core_connected(core))
        send_removal(core, watch);
    else
        core->removals_due++;
}

static bool join(struct zkl_core *core, struct zkl_subscription *sub,
                 struct zkl_contender *contender, const char *path, enum zkl_watch_type type,
                 enum zkl_answer *why)
{
    if (sub->watch && sub->watch->type == type && strcmp(sub->watch->path, path) == 0)
        return true;
    zkl_watch_unsubscribe(core, sub);
    sub->contender = contender;
    struct zkl_watch *watch = find_path(core, path, type);
    if (!watch)
        watch = add(core, sub, path, type, why);
    if (!watch)
        return false;
    sub->watch = watch;
    sub->prev = NULL;
    sub->next = watch->subscribers;
    if (sub->next)
        sub->next->prev = sub;
    watch->subscribers = sub;
    return true;
}

enum zkl_subscribed zkl_watch_subscribe(struct zkl_core *core, struct zkl_subscription *sub,
                                        struct zkl_contender *contender, const char *path,
                                        enum zkl_watch_type type, enum zkl_answer *why)
{
    if (!join(core, sub, contender, path, type, why))
        return ZKL_SUBSCRIBED_REFUSED;
    if (sub->watch->state != ZKL_WATCH_PLANNED)
        return ZKL_SUBSCRIBED_SHARED;
    sub->watch->state = ZKL_WATCH_ARMING;
    return ZKL_SUBSCRIBED_NEW;
}

enum zkl_subscribed zkl_watch_data(struct zkl_core *core, struct zkl_subscription *sub,
                                   struct zkl_contender *contender, const char *path,
                                   enum zkl_answer *why)
{
    enum zkl_subscribed result =
        zkl_watch_subscribe(core, sub, contender, path, ZKL_WATCH_DATA, why);
    if (result == ZKL_SUBSCRIBED_NEW) {
        struct zkl_request request = {
            .kind = ZKL_REQ_WATCH, .path = path, .watch_id = sub->watch->id};
        zkl_pending_send(core, &sub->watch->request, &request);
    }
    return result;
}

void zkl_watch_plan(struct zkl_core *core, struct zkl_subscription *sub,
                    struct zkl_contender *contender, const char *path, enum zkl_watch_type type)
{
    enum zkl_answer why;
    (void)join(core, sub, contender, path, type, &why);
}

void zkl_watch_unlink(struct zkl_subscription *sub)
{
    if (sub->prev)
        sub->prev->next = sub->next;
    else
        sub->watch->subscribers = sub->next;
    if (sub->next)
        sub->next->prev = sub->prev;
    sub->watch = NULL;
    sub->next = sub->prev = NULL;
}

void zkl_watch_unsubscribe(struct zkl_core *core, struct zkl_subscription *sub)
{
    struct zkl_watch *watch = sub->watch;
    if (!watch)
        return;
    zkl_watch_unlink(sub);
    remove_unwanted(core, watch);
}

void zkl_watch_armed(struct zkl_core *core, struct zkl_watch *watch)
{
    watch->state = ZKL_WATCH_ARMED;
    remove_unwanted(core, watch);
}

bool zkl_watch_is_waited_by(const struct zkl_watch *watch)
{
    const struct zkl_subscription *sub = watch->subscribers;
    while (sub && !sub->query && !zkl_watch_is_for(sub, ZKL_SUB_PRED))
        sub = sub->next;
    return sub != NULL;
}

/* Without memory it is not known. */
void zkl_watch_keep_owner(struct zkl_watch *watch, const struct zkl_reply *reply)
{
    size_t size = reply->data_size;
    if (!reply->data || size == 0 || size > ZKL_OWNER_TEXT_MAX || !zkl_watch_is_waited_by(watch) ||
        zkl_is_revocation(reply->data, size) || memchr(reply->data, '\0', size))
        return;
    free(watch->owner);
    watch->owner = malloc(size + 1);
    if (!watch->owner)
        return;
    memcpy(watch->owner, reply->data, size);
    watch->owner[size] = '\0';
}

const char *zkl_watch_owner(const struct zkl_watch *watch)
{
    for (const struct zkl_subscription *sub = watch->subscribers; sub; sub = sub->next) {
        if (zkl_watch_is_for(sub, ZKL_SUB_OWN))
            return sub->contender->machine.lock_request.data;
    }
    return watch->owner;
}

void zkl_watch_removed(struct zkl_core *core, struct zkl_watch *watch, enum zkl_answer answer)
{
    /* Without a good answer libzookeeper keeps the watch and arms it again on the next server: the
     * removal is repeated when the link is back, or after a while. */
    if (answer != ZKL_ANSWER_OK && answer != ZKL_ANSWER_NOWATCHER && answer != ZKL_ANSWER_NONODE) {
        core->removals_due++;
        return;
    }
    unlink_from(&core->removing, watch);
    drop(core, watch);
}

/* A removal that no server carries out: as if no subscriber had left it. */
static void leave_to_fire(struct zkl_core *core, struct zkl_watch *watch)
{
    size_t place = watch->id % ZKL_WATCH_BUCKETS;
    watch->state = ZKL_WATCH_ARMED;
    watch->next = core->watches[place];
    core->watches[place] = watch;
    core->watch_count++;
}

static bool is_on_server(const struct zkl_watch *watch)
{
    return watch->state == ZKL_WATCH_ARMED || watch->armed;
}

void zkl_watch_retry(struct zkl_core *core)
{
    struct zkl_watch *next;
    for (struct zkl_watch *watch = core->removing; watch; watch = next) {
        next = watch->next;
        const struct zkl_watch *wanted = find_path(core, watch->path, watch->type);
        if (wanted && wanted->state == ZKL_WATCH_PLANNED)
            wanted = NULL;
        if (watch->request.id != 0 || (wanted && !is_on_server(wanted)))
            continue; /* arming the new one may still fail: then the old one must be removed */
        core->removals_due--;
        bool stays = zkl_opcode_is_unknown(core, ZKL_OPCODE_REMOVE_WATCHES);
        if (wanted || stays)
            unlink_from(&core->removing, watch);
        if (wanted || (stays && watch->fired))
            /* the server must keep it, if another contender wants the same path again */
            drop(core, watch);
        else if (stays)
            leave_to_fire(core, watch);
        else
            send_removal(core, watch);
    }
}

static void clear_list(struct zkl_core *core, struct zkl_watch **list)
{
    while (*list) {
        struct zkl_watch *watch = *list;
        *list = watch->next;
        while (watch->subscribers)
            zkl_watch_unlink(watch->subscribers);
        drop(core, watch);
    }
}

void zkl_watch_clear(struct zkl_core *core)
{
    for (size_t i = 0; i < ZKL_WATCH_BUCKETS; i++)
        clear_list(core, &core->watches[i]);
    clear_list(core, &core->removing);
    core->watch_count = 0;
    core->removals_due = 0;
}
