/* SPDX-License-Identifier: Apache-2.0 */
#include "question.h"

#include <stdlib.h>
#include <string.h>

#include "driver/clock.h"
#include "error.h"

int zkl_question_check(const struct zkl_client *client, const char *call)
{
    int rc = zkl_client_check(client, true, call);
    return rc == 0 && zkl_driver_in_callback() ? zkl_fail(ZKL_EINCALLBACK, "%s", call) : rc;
}

/* --- answers ------------------------------------------------------------ */

static bool copy_data(struct zkl_question *q, const struct zkl_reply *reply)
{
    if (!reply->data)
        return true;
    size_t kept = reply->data_size < ZKL_ANSWER_DATA_MAX ? reply->data_size : ZKL_ANSWER_DATA_MAX;
    q->data = malloc(kept + 1);
    if (!q->data)
        return false;
    memcpy(q->data, reply->data, kept);
    q->data[kept] = '\0';
    q->data_size = reply->data_size;
    return true;
}

static bool copy_children(struct zkl_question *q, const struct zkl_reply *reply)
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

static void keep(struct zkl_question *q, const struct zkl_reply *reply)
{
    q->answer = reply->answer;
    q->number = reply->number;
    q->czxid = reply->czxid;
    q->session = reply->node_session;
    q->ctime_ms = reply->ctime_ms;
    q->version = reply->version;
    q->node_children = reply->node_children;
    if (reply->answer == ZKL_ANSWER_NOMEM || !copy_data(q, reply) || !copy_children(q, reply))
        q->code = ZKL_ENOMEM;
    else if (reply->answer == ZKL_ANSWER_FULL)
        q->code = ZKL_ESYSTEM;
}

void zkl_question_clear(struct zkl_question *questions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct zkl_question *q = &questions[i];
        while (q->child_count > 0)
            free(q->children[--q->child_count]);
        free(q->children);
        free(q->data);
        *q = (struct zkl_question){.query = q->query};
    }
}

/* --- who waits for them ------------------------------------------------- */

void zkl_inquiry_put(struct zkl_inquiry *inquiry)
{
    if (atomic_fetch_sub(&inquiry->refs, 1) > 1)
        return;
    zkl_waker_fini(&inquiry->waker);
    free(inquiry);
}

static void woken(struct zkl_waker *waker)
{
    zkl_inquiry_put((struct zkl_inquiry *)waker);
}

static void wake(struct zkl_inquiry *inquiry)
{
    if (inquiry->waker.queued)
        return;
    atomic_fetch_add(&inquiry->refs, 1);
    zkl_driver_wake(inquiry->client->driver, &inquiry->waker);
}

void zkl_inquiry_wake_canceled(struct zkl_client *client, const struct zkl_cancel *cancel)
{
    for (struct zkl_inquiry *inquiry = client->inquiries; inquiry; inquiry = inquiry->next) {
        if (inquiry->cancel == cancel)
            wake(inquiry);
    }
}

struct zkl_inquiry *zkl_inquiry_new(struct zkl_client *client, struct zkl_cancel *cancel)
{
    struct zkl_inquiry *inquiry = calloc(1, sizeof *inquiry);
    if (!inquiry)
        return NULL;
    zkl_waker_init(&inquiry->waker, woken);
    inquiry->client = client;
    inquiry->cancel = cancel;
    atomic_init(&inquiry->refs, 1);
    return inquiry;
}

/* What the core calls. */
static void answered(struct zkl_query *query, int code, const struct zkl_reply *reply)
{
    struct zkl_question *q = (struct zkl_question *)query;
    struct zkl_inquiry *inquiry = q->inquiry;
    q->inquiry = NULL;
    q->code = code;
    if (reply)
        keep(q, reply);
    if (--inquiry->open == 0)
        wake(inquiry);
}

void zkl_inquiry_ask(struct zkl_inquiry *inquiry, struct zkl_question *questions, size_t count)
{
    struct zkl_client *client = inquiry->client;
    inquiry->next = client->inquiries;
    if (inquiry->next)
        inquiry->next->prev = inquiry;
    client->inquiries = inquiry;
    inquiry->open = count;
    for (size_t i = 0; i < count; i++) {
        questions[i].inquiry = inquiry;
        questions[i].query.answered = answered;
        zkl_core_ask(&client->driver->core, zkl_clock_now(), &questions[i].query);
    }
}

int zkl_inquiry_withdraw(struct zkl_inquiry *inquiry, struct zkl_question *questions, size_t count)
{
    struct zkl_client *client = inquiry->client;
    int code = 0;
    for (size_t i = 0; i < count; i++) {
        if (questions[i].inquiry)
            zkl_core_withdraw(&client->driver->core, zkl_clock_now(), &questions[i].query);
        questions[i].inquiry = NULL;
        code = code != 0 ? code : questions[i].code;
    }
    *(inquiry->prev ? &inquiry->prev->next : &client->inquiries) = inquiry->next;
    if (inquiry->next)
        inquiry->next->prev = inquiry->prev;
    return code;
}
