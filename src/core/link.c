/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which everything that waited for a link continues: the first read of a new client,
 * watches to remove, nodes to delete, and only then new requests. core.c calls this file when a
 * link comes up, and timers.c when the client asks a server again that refused something. */
#include "link.h"

#include "feed.h"
#include "leftovers.h"
#include "requests.h"
#include "query.h"
#include "list_coalescing.h"
#include "watch.h"

static bool is_leaving(const struct zkl_contender_machine *m)
{
    return m->state == ZKL_CONTENDER_LEAVING;
}

static bool is_not_leaving(const struct zkl_contender_machine *m)
{
    return m->state != ZKL_CONTENDER_LEAVING;
}

static void send_first_read(struct zkl_core *core)
{
    struct zkl_request request = {.kind = ZKL_REQ_STAT, .path = "/"};
    if (core->first_read_wanted && core->first_read.id == 0)
        zkl_pending_send(core, &core->first_read, &request);
}

static void go_on(struct zkl_core *core, bool (*who)(const struct zkl_contender_machine *m))
{
    send_first_read(core);
    /* Removals and deletions come before new requests. */
    zkl_watch_retry(core);
    zkl_leftovers_link_up(core);
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_LINK_UP}, is_leaving);
    zkl_shared_list_begin(core);
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_LINK_UP}, who);
    zkl_shared_list_end(core);
    zkl_query_link_up(core);
}

void zkl_link_go_on(struct zkl_core *core)
{
    go_on(core, is_not_leaving);
}

/* Whoever only waits or holds, with its watches armed, has had its answers. */
static bool may_miss_an_answer(const struct zkl_contender_machine *m)
{
    const struct zkl_contender *c =
        (const struct zkl_contender *)((const char *)m - offsetof(struct zkl_contender, machine));
    bool rests = m->state == ZKL_CONTENDER_WAITING || m->state == ZKL_CONTENDER_HOLDING;
    bool wants[ZKL_SUBS] = {[ZKL_SUB_PRED] = m->state == ZKL_CONTENDER_WAITING,
                            [ZKL_SUB_OWN] = m->lock_request.watch_own,
                            [ZKL_SUB_LOCK_PATH] = m->watches_contention && !m->contended};
    for (int i = 0; rests && i < ZKL_SUBS; i++) {
        const struct zkl_watch *watch = c->subs[i].watch;
        rests = watch ? watch->state == ZKL_WATCH_ARMED : !wants[i];
    }
    return m->state != ZKL_CONTENDER_LEAVING && !rests;
}

void zkl_link_ask_again(struct zkl_core *core)
{
    go_on(core, may_miss_an_answer);
}
