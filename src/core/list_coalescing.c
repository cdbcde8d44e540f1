/* SPDX-License-Identifier: Apache-2.0
 *
 * Which contenders wait for whose list: while some first lists of one path are out, others follow
 * the last of them and share the next. The lists of requests are the contenders' own links, and
 * begin at their path. With the client's mutex. feed.c calls this file when a contender wants a
 * list or wants none any more, transaction.c for contenders of one path, dispatch_reply.c to distribute an
 * answer. */
#include "list_coalescing.h"

#include <assert.h>

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

/* Among those that list again now; NULL: none yet. */
static struct zkl_contender *leader_of(const struct zkl_core *core, const struct zkl_contender *c)
{
    const struct zkl_shared_list *lists = &c->machine.lock_request.path->lists;
    return core->sharing && lists->round == core->share_round ? lists->leader : NULL;
}

/* Its first list goes out. */
static void count_first_list(struct zkl_contender *c)
{
    struct zkl_shared_list *lists = &c->machine.lock_request.path->lists;
    assert(!c->first_list_is_out);
    c->first_list_is_out = true;
    lists->out++;
    lists->last = c;
}

static void uncount_first_list(struct zkl_contender *c)
{
    struct zkl_shared_list *lists = &c->machine.lock_request.path->lists;
    if (!c->first_list_is_out)
        return;
    c->first_list_is_out = false;
    lists->out--;
    if (lists->last == c)
        lists->last = NULL;
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
    for (struct zkl_contender *c = core->first; c; c = c->next) {
        c->machine.lock_request.path->lists = (struct zkl_shared_list){0};
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
    if (leader) {
        zkl_shared_list_join(leader, c);
    } else {
        c->machine.lock_request.path->lists.leader = c;
        c->machine.lock_request.path->lists.round = core->share_round;
    }
    return leader != NULL;
}

/* Contenders whose lists are out are before this one, so its own list is not urgent. */
static bool follow(const struct zkl_core *core, struct zkl_contender *c)
{
    const struct zkl_shared_list *lists = &c->machine.lock_request.path->lists;
    bool follows = lists->out >= core->share_from && lists->last;
    if (follows)
        zkl_shared_list_join(lists->last, c);
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
