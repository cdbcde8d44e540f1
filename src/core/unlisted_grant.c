/* SPDX-License-Identifier: Apache-2.0
 *
 * Places without a list: what a client knows of a path at which it locks and no other client comes
 * between, and whether its next number makes it the first, or puts it just behind another node of
 * its own. unlisted_grant.h says why that is sure. The record is the path's. With the
 * client's mutex; feed.c asks before a create, dispatch_reply.c and transaction_reply.c report
 * answers. */
#include "unlisted_grant.h"

#include "watch.h"

/* NULL: it does not count there. */
static struct zkl_unlisted_grant *unlisted_of(const struct zkl_contender *c)
{
    const struct zkl_lock_request *request = &c->machine.lock_request;
    return request->unlisted ? &request->path->unlisted : NULL;
}

/* The number of the watch on the path's node; 0: an event may have been missed. */
static uint64_t lock_path_watch_id(const struct zkl_core *core,
                                   const struct zkl_unlisted_grant *unlisted)
{
    const struct zkl_watch *watch = unlisted->lock_path.watch;
    return zkl_watch_is_reliable(core, watch) ? watch->id : 0;
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

/* --- behind one's own node ------------------------------------------------ */

/* The newest node's contender, if by all that is known the node exists and its owner has the lock
 * or will have it. A contender that has just begun to queue, or lists again, does not know its own
 * place. */
static const struct zkl_contender *own_last(const struct zkl_core *core,
                                            const struct zkl_contender *c)
{
    const struct zkl_unlisted_grant *unlisted = unlisted_of(c);
    const struct zkl_contender *last = unlisted->last;
    if (!last || last == c || unlisted->last_link != core->link)
        return NULL;
    const struct zkl_contender_machine *m = &last->machine;
    bool stands = m->state == ZKL_CONTENDER_WAITING || m->state == ZKL_CONTENDER_CONFIRMING ||
                  m->state == ZKL_CONTENDER_HOLDING;
    return stands && m->on_server && !m->delete_out ? last : NULL;
}

/* A try does not wait, and those of one transaction are decided together. */
static bool may_wait_unlisted(const struct zkl_contender *c)
{
    return !c->machine.lock_request.try_only && !zkl_contender_is_together(c);
}

/* At most: the contender with the number before, and those that may be before it. None of them has
 * a number below the one that was first last. */
static size_t before_at_most(const struct zkl_unlisted_grant *unlisted, int32_t number)
{
    const struct zkl_contender_machine *last = &unlisted->last->machine;
    size_t most = last->state == ZKL_CONTENDER_WAITING ? last->before + 1 : 1;
    if (!unlisted->last_is_behind || number <= unlisted->next_number)
        return most;
    size_t apart = (size_t)(number - unlisted->next_number);
    return apart < most ? apart : most;
}

/* The node has this number. */
static void look_behind(const struct zkl_core *core, struct zkl_contender *c, int32_t number,
                        struct zkl_event *event)
{
    struct zkl_unlisted_grant *unlisted = unlisted_of(c);
    const struct zkl_contender *last = own_last(core, c);
    bool follows = last && number > 0 && last->machine.sequence == number - 1;
    if (follows && may_wait_unlisted(c)) {
        event->behind = last->machine.node;
        event->before = before_at_most(unlisted, number);
    }
    unlisted->row = follows ? unlisted->row + 1 : 0;
    unlisted->last_is_behind = follows && unlisted->last_is_behind;
    unlisted->last = c;
    unlisted->last_link = core->link;
}

/* --- what other files ask and report ------------------------------------ */

bool zkl_unlisted_expects(const struct zkl_core *core, const struct zkl_contender *c)
{
    const struct zkl_unlisted_grant *unlisted = unlisted_of(c);
    bool busy = core->pending_count > 0 || c->machine.lock_request.together;
    if (!unlisted)
        return false;
    if (may_wait_unlisted(c) && unlisted->row >= core->unlisted_from && own_last(core, c))
        return true;
    return busy && unlisted->streak >= core->unlisted_from && unlisted->live_count == 0 &&
           lock_path_watch_id(core, unlisted) != 0;
}

void zkl_unlisted_created(struct zkl_core *core, struct zkl_contender *c, const char *name,
                          struct zkl_event *event)
{
    struct zkl_unlisted_grant *unlisted = unlisted_of(c);
    if (!unlisted || !name)
        return;
    int64_t number = zkl_name_sequence(name, &c->machine.lock_request.naming);
    if (number == ZKL_SEQUENCE_NONE)
        return;
    bool next = number > 0 && number == unlisted->next_number;
    uint64_t release_watch_id = lock_path_watch_id(core, unlisted);
    unlisted->streak = next ? unlisted->streak + 1 : 0;
    if (next && unlisted->streak >= core->unlisted_from && release_watch_id == 0)
        watch_lock_path(core, unlisted, c->machine.lock_request.path->text);
    event->first = next && release_watch_id != 0 && release_watch_id == unlisted->release_watch_id;
    look_behind(core, c, (int32_t)number, event);
}

void zkl_unlisted_leaves(const struct zkl_core *core, struct zkl_contender *c)
{
    const struct zkl_unlisted_grant *unlisted = unlisted_of(c);
    if (unlisted)
        c->release_watch_id = lock_path_watch_id(core, unlisted);
}

void zkl_unlisted_left(struct zkl_contender *c)
{
    struct zkl_unlisted_grant *unlisted = unlisted_of(c);
    if (!unlisted || !c->machine.was_first || c->machine.sequence == ZKL_SEQUENCE_NONE)
        return;
    unlisted->next_number = (int32_t)c->machine.sequence + 1; /* the last number is never granted */
    unlisted->release_watch_id = c->release_watch_id;
    /* Ours was there until now, so the path's node is still that of all who were made meanwhile. */
    unlisted->last_is_behind =
        unlisted->last && unlisted->last != c && unlisted->last->machine.on_server;
}

void zkl_unlisted_forget(struct zkl_contender *c)
{
    struct zkl_unlisted_grant *unlisted = unlisted_of(c);
    if (unlisted && unlisted->last == c)
        unlisted->last = NULL;
}

void zkl_unlisted_unsure(struct zkl_unlisted_grant *unlisted)
{
    unlisted->streak = 0;
}
