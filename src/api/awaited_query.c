/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries to the server by a thread that waits for the answers: the core's queries, with a deadline
 * and a cancel object. This file owns the contents of the answers until they are cleared. It begins
 * and withdraws queries with the client's mutex, and their answers arrive with it. inspect.c,
 * revoke.c and errand.c call it, and wait.c, which blocks. */
#include "awaited_query.h"

#include <stdlib.h>
#include <string.h>

#include "driver/clock.h"
#include "error.h"

int zkl_query_check(const struct zkl_client *client, const char *call)
{
    int rc = zkl_client_check(client, true, call);
    return rc == 0 && zkl_driver_in_callback() ? zkl_fail(ZKL_EINCALLBACK, "%s", call) : rc;
}

/* --- answers ------------------------------------------------------------ */

static bool copy_data(struct zkl_awaited_query *q, const struct zkl_reply *reply)
{
    if (!reply->data)
        return true;
    size_t max = q->data_max > 0 ? q->data_max : ZKL_ANSWER_DATA_MAX;
    size_t kept = reply->data_size < max ? reply->data_size : max;
    q->data = malloc(kept + 1);
    if (!q->data)
        return false;
    memcpy(q->data, reply->data, kept);
    q->data[kept] = '\0';
    q->data_size = reply->data_size;
    return true;
}

static bool copy_children(struct zkl_awaited_query *q, const struct zkl_reply *reply)
{
    if (reply->child_count == 0)
        return true;
    q->children = calloc(reply->child_count, sizeof *q->children);
    if (!q->children)
        return false;
    for (; q->child_count < reply->child_count; q->child_count++) {
        q->children[q->child_count] = strdup(reply->children[q->child_count]);
        if (!q->children[q->child_count])
            return false;
    }
    return true;
}

static void keep(struct zkl_awaited_query *q, const struct zkl_reply *reply)
{
    q->answer = reply->answer;
    q->number = reply->number;
    q->czxid = reply->czxid;
    q->session = reply->node_session;
    q->ctime_ms = reply->ctime_ms;
    q->mtime_ms = reply->mtime_ms;
    q->version = reply->version;
    q->cversion = reply->cversion;
    q->node_children = reply->node_children;
    q->failed_check = reply->failed_check;
    if (reply->answer == ZKL_ANSWER_NOMEM || !copy_data(q, reply) || !copy_children(q, reply))
        q->code = ZKL_ENOMEM;
    else if (reply->answer == ZKL_ANSWER_FULL)
        q->code = ZKL_ESYSTEM;
}

void zkl_awaited_query_clear(struct zkl_awaited_query *queries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct zkl_awaited_query *q = &queries[i];
        while (q->child_count > 0)
            free(q->children[--q->child_count]);
        free(q->children);
        free(q->data);
        *q = (struct zkl_awaited_query){.query = q->query, .data_max = q->data_max};
    }
}

/* --- waiting for the answers -------------------------------------------- */

void zkl_query_wait_put(struct zkl_query_wait *query_wait)
{
    if (atomic_fetch_sub(&query_wait->refs, 1) > 1)
        return;
    zkl_waker_fini(&query_wait->waker);
    free(query_wait);
}

static void woken(struct zkl_waker *waker)
{
    zkl_query_wait_put((struct zkl_query_wait *)waker);
}

static void wake(struct zkl_query_wait *query_wait)
{
    if (query_wait->waker.queued)
        return;
    atomic_fetch_add(&query_wait->refs, 1);
    zkl_driver_wake(query_wait->client->driver, &query_wait->waker);
}

void zkl_query_wait_wake_canceled(struct zkl_client *client, const struct zkl_cancel *cancel)
{
    for (struct zkl_query_wait *query_wait = client->query_waits; query_wait;
         query_wait = query_wait->next) {
        if (query_wait->cancel == cancel)
            wake(query_wait);
    }
}

struct zkl_query_wait *zkl_query_wait_new(struct zkl_client *client, struct zkl_cancel *cancel)
{
    struct zkl_query_wait *query_wait = calloc(1, sizeof *query_wait);
    if (!query_wait)
        return NULL;
    zkl_waker_init(&query_wait->waker, woken);
    query_wait->client = client;
    query_wait->cancel = cancel;
    atomic_init(&query_wait->refs, 1);
    return query_wait;
}

/* The core calls this. */
static void answered(struct zkl_query *query, int code, const struct zkl_reply *reply)
{
    struct zkl_awaited_query *q = (struct zkl_awaited_query *)query;
    struct zkl_query_wait *query_wait = q->query_wait;
    q->query_wait = NULL;
    q->code = code;
    if (reply)
        keep(q, reply);
    if (--query_wait->open == 0)
        wake(query_wait);
}

void zkl_query_wait_send(struct zkl_query_wait *query_wait, struct zkl_awaited_query *queries,
                         size_t count)
{
    struct zkl_client *client = query_wait->client;
    query_wait->next = client->query_waits;
    if (query_wait->next)
        query_wait->next->prev = query_wait;
    client->query_waits = query_wait;
    query_wait->open = count;
    for (size_t i = 0; i < count; i++) {
        queries[i].query_wait = query_wait;
        queries[i].query.answered = answered;
        zkl_core_query(&client->driver->core, zkl_clock_now(), &queries[i].query);
    }
}

int zkl_query_wait_withdraw(struct zkl_query_wait *query_wait, struct zkl_awaited_query *queries,
                            size_t count)
{
    struct zkl_client *client = query_wait->client;
    int code = 0;
    for (size_t i = 0; i < count; i++) {
        if (queries[i].query_wait)
            zkl_core_withdraw(&client->driver->core, zkl_clock_now(), &queries[i].query);
        queries[i].query_wait = NULL;
        code = code != 0 ? code : queries[i].code;
    }
    *(query_wait->prev ? &query_wait->prev->next : &client->query_waits) = query_wait->next;
    if (query_wait->next)
        query_wait->next->prev = query_wait->prev;
    return code;
}
