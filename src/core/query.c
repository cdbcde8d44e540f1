/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries: one thing that a caller wants to know or done, apart from any contender. A query is out
 * (its slot awaits an answer), or it watches (WATCH alone), or it is parked: it has no outstanding
 * request, and is sent with the next link. It is its owner's memory, and leaves the core's list
 * when it ends. With the client's mutex; core.c, dispatch_reply.c, link.c and timers.c call this
 * file. */
#include "query.h"

#include "requests.h"
#include "watch.h"

static void park(struct zkl_core *core, struct zkl_query *q)
{
    core->parked += !q->parked;
    q->parked = true;
}

static void unpark(struct zkl_core *core, struct zkl_query *q)
{
    core->parked -= q->parked;
    q->parked = false;
}

/* --- sending ------------------------------------------------------------ */

static void send_one(struct zkl_core *core, struct zkl_query *q, enum zkl_request_kind kind)
{
    struct zkl_request request = {.kind = kind,
                                  .path = q->path,
                                  .data = q->data,
                                  .flag = q->flag,
                                  .version = q->version,
                                  .parts = q->parts,
                                  .part_count = q->part_count};
    zkl_pending_send(core, &q->slot, &request);
}

/* The watch, which others may share, and behind it a look: the node that the look finds is watched,
 * as ZooKeeper answers in order. */
static void watch(struct zkl_core *core, struct zkl_query *q)
{
    enum zkl_answer why;
    if (zkl_watch_data(core, &q->sub, NULL, q->path, &why) == ZKL_SUBSCRIBED_REFUSED)
        zkl_pending_refuse(core, &q->slot, ZKL_REQ_STAT, why);
    else
        send_one(core, q, ZKL_REQ_STAT);
}

static void send_query(struct zkl_core *core, struct zkl_query *q)
{
    unpark(core, q);
    if (!zkl_core_connected(core))
        park(core, q);
    else if (q->kind == ZKL_REQ_WATCH)
        watch(core, q);
    else
        send_one(core, q, q->kind);
}

/* --- ending ------------------------------------------------------------- */

static void leave(struct zkl_core *core, struct zkl_query *q)
{
    unpark(core, q);
    zkl_pending_forget(core, &q->slot);
    zkl_watch_unsubscribe(core, &q->sub);
    *(q->prev ? &q->prev->next : &core->queries) = q->next;
    if (q->next)
        q->next->prev = q->prev;
    core->counts[ZKL_COUNT_WAITS]--;
}

static void end(struct zkl_core *core, struct zkl_query *q, int code, const struct zkl_reply *reply)
{
    leave(core, q);
    q->answered(q, code, reply);
}

static void end_with(struct zkl_core *core, struct zkl_query *q, enum zkl_answer answer, int number)
{
    end(core, q, 0, &(struct zkl_reply){.answer = answer, .number = number});
}

/* --- what happens to one ------------------------------------------------ */

void zkl_query_begin(struct zkl_core *core, struct zkl_query *q)
{
    q->parked = false;
    q->slot = (struct zkl_pending){.awaiter = ZKL_AWAITER_QUERY, .owner = q};
    q->sub = (struct zkl_subscription){.query = q};
    q->prev = NULL;
    q->next = core->queries;
    if (q->next)
        q->next->prev = q;
    core->queries = q;
    core->counts[ZKL_COUNT_WAITS]++;
    if (core->session.state == ZKL_SESSION_FAILED)
        end(core, q, ZKL_EAUTH, NULL);
    else if (core->session.state == ZKL_SESSION_CLOSED)
        end(core, q, ZKL_ECLOSED, NULL);
    else
        send_query(core, q);
}

void zkl_query_withdraw(struct zkl_core *core, struct zkl_query *q)
{
    leave(core, q);
}

static bool is_another(const struct zkl_query *q, const struct zkl_reply *reply)
{
    return q->czxid != 0 && reply->czxid != q->czxid;
}

void zkl_query_answer(struct zkl_core *core, struct zkl_query *q, const struct zkl_reply *reply)
{
    bool watching = q->kind == ZKL_REQ_WATCH;
    if (reply->answer == ZKL_ANSWER_LINK && !q->once)
        park(core, q);
    else if (reply->otherwise)
        send_query(core, q);
    else if (watching && reply->answer == ZKL_ANSWER_OK && is_another(q, reply))
        end_with(core, q, ZKL_ANSWER_NONODE, 0);
    else if (!watching || reply->answer != ZKL_ANSWER_OK)
        end(core, q, 0, reply);
}

void zkl_query_watched(struct zkl_core *core, struct zkl_query *q, bool deleted,
                       const struct zkl_event *event)
{
    if (deleted)
        end_with(core, q, ZKL_ANSWER_NONODE, 0);
    else if (event->type == ZKL_EV_PRED_FIRED)
        send_query(core, q); /* a node that was deleted and made again is reported as changed */
    else if (event->reply->answer == ZKL_ANSWER_LINK)
        park(core, q);
    else
        end_with(core, q, event->reply->answer, event->reply->number);
}

/* --- what happens to all ------------------------------------------------ */

/* The list has the newest first, and they go out in their order: a read behind its sync. */
static struct zkl_query *oldest(const struct zkl_core *core)
{
    struct zkl_query *q = core->queries;
    while (q && q->next)
        q = q->next;
    return q;
}

void zkl_query_link_up(struct zkl_core *core)
{
    for (struct zkl_query *q = oldest(core); q; q = q->prev) {
        if (q->slot.id == 0)
            /* a watch too: what it reports after a reconnect is not the whole truth */
            send_query(core, q);
    }
}

void zkl_query_retry(struct zkl_core *core)
{
    for (struct zkl_query *q = oldest(core); q; q = q->prev) {
        if (q->parked)
            send_query(core, q);
    }
}

void zkl_query_expired(struct zkl_core *core)
{
    struct zkl_query *next;
    for (struct zkl_query *q = core->queries; q; q = next) {
        next = q->next;
        if (q->once && !q->parked)
            end_with(core, q, ZKL_ANSWER_LINK, 0);
        else
            park(core, q);
    }
}

void zkl_query_end_all(struct zkl_core *core, int code)
{
    while (core->queries)
        end(core, core->queries, code, NULL);
}
