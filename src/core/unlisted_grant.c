/* SPDX-License-Identifier: Apache-2.0
 *
 * Grants without a list: what a client keeps of a path at which it locks alone, and whether its
 * next number makes it the first. Why that is sure stands in unlisted_grant.h. The record belongs
 * to the path's record of src/api.
 * With the client's mutex; batch.c, requests.c and feed.c ask before a create, dispatch_reply.c
 * and batch_reply.c tell of answers. */
#include "unlisted_grant.h"

#include "watch.h"

/* Of the watch on the path's node; 0: what it would tell may have been missed. */
static uint64_t lock_path_watch_id(const struct zkl_core *core,
                                   const struct zkl_unlisted_grant *unlisted)
{
    const struct zkl_watch *watch = unlisted->lock_path.watch;
    return zkl_watch_is_reliable(core, watch) ? watch->id : 0;
}

static bool number_of(const struct zkl_contender *c, const char *name, int32_t *number)
{
    struct zkl_node_name place;
    bool known = zkl_name_parse(name, &c->machine.asked.naming, &place);
    *number = known ? place.sequence : 0;
    return known;
}

/* A new one where it was armed over an earlier link; one that is being armed is taken up again. */
static void watch_lock_path(struct zkl_core *core, struct zkl_unlisted_grant *unlisted,
                            const char *path)
{
    enum zkl_answer why;
    zkl_watch_unsubscribe(core, &unlisted->lock_path);
    unlisted->lock_path.unlisted = unlisted;
    if (zkl_watch_data(core, &unlisted->lock_path, NULL, path, &why) == ZKL_SUBSCRIBED_REFUSED)
        zkl_unlisted_unsure(unlisted);
}

bool zkl_unlisted_expects(const struct zkl_core *core, const struct zkl_contender *c)
{
    const struct zkl_unlisted_grant *unlisted = c->machine.asked.unlisted;
    bool busy = core->pending_count > 0 || c->machine.asked.batch;
    return unlisted && busy && unlisted->streak >= core->unlisted_from &&
           unlisted->live_count == 0 && lock_path_watch_id(core, unlisted) != 0;
}

bool zkl_unlisted_created(struct zkl_core *core, struct zkl_contender *c, const char *name)
{
    struct zkl_unlisted_grant *unlisted = c->machine.asked.unlisted;
    int32_t number;
    if (!unlisted || !name || !number_of(c, name, &number))
        return false;
    bool next = number > 0 && number == unlisted->next_number;
    uint64_t release_watch_id = lock_path_watch_id(core, unlisted);
    unlisted->streak = next ? unlisted->streak + 1 : 0;
    if (next && unlisted->streak >= core->unlisted_from && release_watch_id == 0)
        watch_lock_path(core, unlisted, c->machine.asked.lock_path);
    return next && release_watch_id != 0 && release_watch_id == unlisted->release_watch_id;
}

void zkl_unlisted_leaves(const struct zkl_core *core, struct zkl_contender *c)
{
    if (c->machine.asked.unlisted)
        c->release_watch_id = lock_path_watch_id(core, c->machine.asked.unlisted);
}

void zkl_unlisted_left(struct zkl_contender *c)
{
    struct zkl_unlisted_grant *unlisted = c->machine.asked.unlisted;
    int32_t number;
    if (!unlisted || !c->machine.was_first || !number_of(c, c->machine.node, &number))
        return;
    unlisted->next_number = number + 1; /* the last number is never granted */
    unlisted->release_watch_id = c->release_watch_id;
}

void zkl_unlisted_unsure(struct zkl_unlisted_grant *unlisted)
{
    unlisted->streak = 0;
}
