/* SPDX-License-Identifier: Apache-2.0 */
#include "share.h"

#include <assert.h>
#include <string.h>

#include "feed.h"

static void unlink_sharer(struct zkl_contender *c)
{
    struct zkl_contender **at = &c->shares_list->sharers;
    while (*at != c)
        at = &(*at)->next_sharer;
    *at = c->next_sharer;
    c->shares_list = c->next_sharer = NULL;
}

void zkl_share_join(struct zkl_contender *owner, struct zkl_contender *contender)
{
    if (contender->shares_list) /* of an earlier list, which does not count any more */
        unlink_sharer(contender);
    contender->shares_list = owner;
    contender->next_sharer = owner->sharers;
    owner->sharers = contender;
}

static struct zkl_contender **leader_of(struct zkl_core *core, const struct zkl_contender *c)
{
    return &core->leaders[zkl_text_hash(c->machine.root) % ZKL_SHARE_BUCKETS];
}

void zkl_share_leave(struct zkl_core *core, struct zkl_contender *c)
{
    struct zkl_contender *other, *next = c->sharers;
    if (c->shares_list)
        unlink_sharer(c);
    assert(!core->sharing || *leader_of(core, c) != c); /* it has just begun to list */
    if (!next)
        return;
    unlink_sharer(next);
    while ((other = c->sharers)) {
        unlink_sharer(other);
        zkl_share_join(next, other);
    }
    zkl_core_send_list(core, next);
}

void zkl_share_answer(struct zkl_core *core, struct zkl_contender *owner, struct zkl_event event)
{
    struct zkl_contender *other;
    while ((other = owner->sharers)) {
        unlink_sharer(other);
        zkl_core_feed(core, other, event);
    }
}

void zkl_share_reset(struct zkl_contender *c)
{
    c->shares_list = c->sharers = c->next_sharer = NULL;
}

void zkl_share_begin(struct zkl_core *core)
{
    memset(core->leaders, 0, sizeof core->leaders);
    core->sharing = true;
}

bool zkl_share_list(struct zkl_core *core, struct zkl_contender *c)
{
    /* Others look for something: only this state wants no more than to see the queue again. */
    if (!core->sharing || c->machine.state != ZKL_LISTING)
        return false;
    struct zkl_contender **leader = leader_of(core, c);
    bool same = *leader && strcmp((*leader)->machine.root, c->machine.root) == 0;
    if (same)
        zkl_share_join(*leader, c);
    else
        *leader = c;
    return same;
}

void zkl_share_end(struct zkl_core *core)
{
    core->sharing = false;
}
