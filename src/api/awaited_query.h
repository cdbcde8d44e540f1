/* SPDX-License-Identifier: Apache-2.0
 * Queries to the server by a thread that waits for the answers: the core's queries, with a deadline
 * and a cancel object.
 *
 *     struct zkl_awaited_query q = zkl_awaited_query_of(ZKL_REQ_GET, path);
 *     int rc = zkl_query_all(client, &q, 1, deadline_ns, cancel);
 *     if (rc == 0 && q.answer == ZKL_ANSWER_OK)
 *         use(q.data, q.data_size, q.czxid);
 *     zkl_awaited_query_clear(&q, 1);
 */
#ifndef ZKL_API_AWAITED_QUERY_H
#define ZKL_API_AWAITED_QUERY_H

#include "client.h"

struct zkl_query_wait;

struct zkl_awaited_query {
    struct zkl_query query; /* first */
    size_t data_max;        /* of the data so many bytes are kept; 0: ZKL_ANSWER_DATA_MAX */

    struct zkl_query_wait *query_wait; /* the wait for it; NULL: answered, or given up */
    int code; /* not 0: there is no answer: ZKL_ECLOSED, ZKL_EAUTH, ZKL_ENOMEM */

    /* The answer: what it was, and the node as in a reply. */
    enum zkl_answer answer;
    int number; /* ZooKeeper's name for it */
    int64_t czxid;
    int64_t session;
    int64_t ctime_ms, mtime_ms;
    int32_t version, cversion;
    int32_t node_children;
    size_t failed_check;
    char *data;       /* at most data_max bytes of it, then a NUL; NULL: none */
    size_t data_size; /* all of it */
    char **children;
    size_t child_count;
};

#define ZKL_ANSWER_DATA_MAX ZKL_OWNER_MAX

static inline struct zkl_awaited_query zkl_awaited_query_of(enum zkl_request_kind kind,
                                                            const char *path)
{
    return (struct zkl_awaited_query){.query = {.kind = kind, .path = path}};
}

/* 0, or why call can't be made with this client (ZKL_EFORK, ZKL_ECLOSED) or here
 * (ZKL_EINCALLBACK). */
int zkl_query_check(const struct zkl_client *client, const char *call);
/* Free what the answers hold; the same may be asked again. */
void zkl_awaited_query_clear(struct zkl_awaited_query *queries, size_t count);

/* In wait.c: send all queries together, in this order, and wait until all are answered. 0: each has
 * its answer, whatever that is. ZKL_ETIMEDOUT; ZKL_EDISCONNECTED: the deadline found no link;
 * ZKL_ECANCELED, ZKL_ECLOSED, ZKL_EAUTH, ZKL_ENOMEM, ZKL_ESYSTEM. Whether a write was carried out
 * is then unknown. The call sends nothing if the deadline had passed or cancel (NULL: none) was set
 * before. */
int zkl_query_all(struct zkl_client *client, struct zkl_awaited_query *queries, size_t count,
                  int64_t deadline_ns, struct zkl_cancel *cancel);

/* --- for wait.c, with the mutex ----------------------------------------- */

/* A call that waits for answers. */
struct zkl_query_wait {
    struct zkl_waker waker; /* first */
    struct zkl_client *client;
    struct zkl_cancel *cancel;
    size_t open;     /* queries without an answer */
    atomic_int refs; /* the call, a queued waker */
    struct zkl_query_wait *next, *prev;
};

struct zkl_query_wait *zkl_query_wait_new(struct zkl_client *client,
                                          struct zkl_cancel *cancel); /* without the mutex */
void zkl_query_wait_send(struct zkl_query_wait *query_wait, struct zkl_awaited_query *queries,
                         size_t count);
/* Queries without an answer will get none. Returns the first code that is not 0. */
int zkl_query_wait_withdraw(struct zkl_query_wait *query_wait, struct zkl_awaited_query *queries,
                            size_t count);
void zkl_query_wait_put(struct zkl_query_wait *query_wait); /* without the mutex */
/* Wake all that wait with this cancel object. */
void zkl_query_wait_wake_canceled(struct zkl_client *client, const struct zkl_cancel *cancel);

#endif
