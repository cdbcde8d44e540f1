/* SPDX-License-Identifier: Apache-2.0
 *
 * Which contenders wait for whose list: while some first lists of one path are out, others follow
 * the last of them and share the next. The lists of requests are the contenders' own links, in
 * buckets by path. With the client's mutex. feed.c calls this file when a contender wants a list or
 * wants none any more, batch.c for members of one path, dispatch_reply.c to distribute an
 * answer. */
#include "list_coalescing.h"

#include <assert.h>
#include <string.h>

#include "requests.h"

static void unlink_sharer(struct zkl_contender *c)
{
    struct zkl_contender **at = &c->shares_list->sharers;
    while (*at != c)
        at = &(*at)->next_sharer;
    *at = c->next_sharer;
    c->shares_list = c->next_sharer = NULL;
    c->shares_next_list = false;
}

void zkl_shared_list_join(struct zkl_contender *owner, struct zkl_contender *contender)
{
    if (contender->shares_list) /* of an earlier list, which does not count any more */
        unlink_sharer(contender);
    contender->shares_list = owner;
    contender->next_sharer = owner->sharers;
    owner->sharers = contender;
}

void zkl_shared_list_setup(struct zkl_core *core, struct zkl_contender *c)
{
    c->shared_list =
        &core->shares[zkl_text_hash(c->machine.lock_request.lock_path) % ZKL_SHARE_BUCKETS];
}

/* Among those that list again now; NULL: none yet. */
static struct zkl_contender *leader_of(const struct zkl_core *core, const struct zkl_contender *c)
{
    return core->sharing && c->shared_list->round == core->share_round ? c->shared_list->leader
                                                                       : NULL;
}

static bool is_same_lock_path(const struct zkl_contender *a, const struct zkl_contender *b)
{
    return a && strcmp(a->machine.lock_request.lock_path, b->machine.lock_request.lock_path) == 0;
}

/* Its first list goes out. */
static void count_first_list(struct zkl_contender *c)
{
    assert(!c->first_list_is_out);
    c->first_list_is_out = true;
    c->shared_list->out++;
    c->shared_list->last = c;
}

static void uncount_first_list(struct zkl_contender *c)
{
    if (!c->first_list_is_out)
        return;
    c->first_list_is_out = false;
    c->shared_list->out--;
    if (c->shared_list->last == c)
        c->shared_list->last = NULL;
}

/* Contenders (all, or only its followers) that relied on this one get a list of their own, one for
 * all. */
static void list_anew(struct zkl_core *core, struct zkl_contender *c, bool all)
{
    struct zkl_contender *first = NULL, *next;
    for (struct zkl_contender *other = c->sharers; other; other = next) {
        next = other->next_sharer;
        if (!all && !other->shares_next_list)
            continue;
        unlink_sharer(other);
        if (first)
            zkl_shared_list_join(first, other);
        else
            first = other;
    }
    if (!first)
        return;
    if (first->machine.state == ZKL_CONTENDER_QUEUEING)
        count_first_list(first);
    zkl_core_send_list(core, first);
}

void zkl_shared_list_leave(struct zkl_core *core, struct zkl_contender *c)
{
    if (c->shares_list)
        unlink_sharer(c);
    assert(leader_of(core, c) != c); /* it has just begun to list */
    uncount_first_list(c);
    list_anew(core, c, true);
}

void zkl_shared_list_answered(struct zkl_core *core, struct zkl_contender *owner)
{
    uncount_first_list(owner);
    list_anew(core, owner, false);
}

struct zkl_contender *zkl_shared_list_next(struct zkl_contender *owner)
{
    struct zkl_contender *other = owner->sharers;
    if (other)
        unlink_sharer(other);
    return other;
}

void zkl_shared_list_reset(struct zkl_core *core)
{
    memset(core->shares, 0, sizeof core->shares);
    for (struct zkl_contender *c = core->first; c; c = c->next) {
        c->shares_list = c->sharers = c->next_sharer = NULL;
        c->shares_next_list = c->first_list_is_out = false;
    }
}

void zkl_shared_list_begin(struct zkl_core *core)
{
    core->share_round++;
    core->sharing = true;
}

static bool share_with_leader(struct zkl_core *core, struct zkl_contender *c)
{
    struct zkl_contender *leader = leader_of(core, c);
    bool same = is_same_lock_path(leader, c);
    if (same) {
        zkl_shared_list_join(leader, c);
    } else {
        c->shared_list->leader = c;
        c->shared_list->round = core->share_round;
    }
    return same;
}

/* Contenders whose lists are out are before this one, so its own list is not urgent. */
static bool follow(const struct zkl_core *core, struct zkl_contender *c)
{
    const struct zkl_shared_list *shared_list = c->shared_list;
    bool follows = shared_list->out >= core->share_from && is_same_lock_path(shared_list->last, c);
    if (follows)
        zkl_shared_list_join(shared_list->last, c);
    else
        count_first_list(c);
    c->shares_next_list = follows;
    return follows;
}

bool zkl_shared_list_list(struct zkl_core *core, struct zkl_contender *c)
{
    /* Others look for something: only these states want no more than to see the queue. */
    if (c->machine.state == ZKL_CONTENDER_QUEUEING)
        return follow(core, c);
    return core->sharing && c->machine.state == ZKL_CONTENDER_LISTING && share_with_leader(core, c);
}

void zkl_shared_list_end(struct zkl_core *core)
{
    core->sharing = false;
}
