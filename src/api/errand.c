/* SPDX-License-Identifier: Apache-2.0
 *
 * The command's requests, as queries of the core whose answers the calling thread waits for
 * (awaited_query.h): what a command needs to know of an answer, in terms that the core's headers
 * are not needed for. Only src/tool/ask.c calls this file. */
#include "errand.h"

#include <stdlib.h>
#include <string.h>

#include "awaited_query.h"
#include "error.h"

/* ZBADVERSION, which means another thing to a lock. */
#define OF_ANOTHER_VERSION (-103)

static enum zkl_errand_answer answer_of(const struct zkl_awaited_query *q)
{
    switch ((int)q->answer) {
    case ZKL_ANSWER_OK:
        return ZKL_ERRAND_OK;
    case ZKL_ANSWER_LINK:
        return ZKL_ERRAND_LOST;
    case ZKL_ANSWER_NONODE:
        return ZKL_ERRAND_NO_NODE;
    case ZKL_ANSWER_EXISTS:
        return ZKL_ERRAND_EXISTS;
    case ZKL_ANSWER_NOTEMPTY:
        return q->number == OF_ANOTHER_VERSION ? ZKL_ERRAND_BAD_VERSION : ZKL_ERRAND_NOT_EMPTY;
    case ZKL_ANSWER_NOAUTH:
        return ZKL_ERRAND_DENIED;
    case ZKL_ANSWER_BADPATH:
        return ZKL_ERRAND_NO_CHILDREN;
    default:
        return ZKL_ERRAND_OTHER;
    }
}

static struct zkl_awaited_query query_of(const struct zkl_errand *e, bool alone)
{
    static const enum zkl_request_kind kinds[] = {
        [ZKL_ERRAND_STAT] = ZKL_REQ_STAT,
        [ZKL_ERRAND_GET] = ZKL_REQ_GET,
        [ZKL_ERRAND_ACL] = ZKL_REQ_ACL,
        [ZKL_ERRAND_PARTS] = ZKL_REQ_PARTS,
    };
    struct zkl_awaited_query q = zkl_awaited_query_of(kinds[e->kind], e->path);
    q.query.parts = e->parts;
    q.query.part_count = e->part_count;
    q.query.once = !alone || e->kind == ZKL_ERRAND_PARTS;
    q.data_max = e->room;
    return q;
}

static void take_data(struct zkl_errand *e, const struct zkl_awaited_query *q)
{
    e->size = q->data_size;
    if (e->room == 0)
        return;
    size_t size = e->size < e->room ? e->size : e->room - 1;
    if (size > 0)
        memcpy(e->data, q->data, size);
    e->data[size] = '\0';
}

/* A server keeps the number of creates and shows it as cversion = 2 * creates - children, in 32
 * bits. */
static void take(struct zkl_errand *e, const struct zkl_awaited_query *q)
{
    e->answer = answer_of(q);
    e->number = q->number;
    e->blamed = q->failed_check;
    e->mtime_ms = q->mtime_ms;
    e->version = q->version;
    e->created = ((uint32_t)q->cversion + (uint32_t)q->node_children) / 2;
    take_data(e, q);
}

static int ask_all(struct zkl_client *client, struct zkl_errand *errands, size_t count,
                   int64_t deadline_ns, struct zkl_cancel *cancel)
{
    struct zkl_awaited_query *queries = calloc(count, sizeof *queries);
    if (!queries)
        return ZKL_ENOMEM;
    for (size_t i = 0; i < count; i++)
        queries[i] = query_of(&errands[i], count == 1);
    int rc = zkl_query_all(client, queries, count, deadline_ns, cancel);
    for (size_t i = 0; i < count && rc == 0; i++)
        take(&errands[i], &queries[i]);
    zkl_awaited_query_clear(queries, count);
    free(queries);
    return rc;
}

int zkl_errands(struct zkl_client *client, struct zkl_errand *errands, size_t count,
                int64_t deadline_ns, struct zkl_cancel *cancel)
{
    int rc = zkl_query_check(client, "zkl_errands");
    if (rc != 0)
        return rc;
    rc = ask_all(client, errands, count, deadline_ns, cancel);
    return rc == 0 ? 0 : zkl_fail_unserved(client, rc, "zkl_errands");
}
