/* SPDX-License-Identifier: Apache-2.0
 *
 * The command's requests, as queries of the core. The thread waits by a descriptor, as it waits for
 * its caller's too. Answers arrive with the client's mutex, are copied into the errands, and make
 * the descriptor readable. Only src/tool/ask.c calls this file. */
#include "errand.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "awaited_query.h"
#include "driver/clock.h"
#include "error.h"

/* ZBADVERSION, which means another thing to a lock. */
#define OF_ANOTHER_VERSION (-103)

struct batch {
    struct zkl_client *client;
    int answered; /* a descriptor */
    size_t open;  /* errands without an answer */
};

struct running {
    struct zkl_query query; /* first */
    struct zkl_errand *errand;
    struct batch *batch; /* NULL: answered, or withdrawn */
    int code;
};

/* --- answers, with the mutex ---------------------------------------------- */

static enum zkl_errand_answer answer_of(const struct zkl_reply *reply)
{
    switch ((int)reply->answer) {
    case ZKL_ANSWER_OK:
        return ZKL_ERRAND_OK;
    case ZKL_ANSWER_LINK:
        return ZKL_ERRAND_LOST;
    case ZKL_ANSWER_NONODE:
        return ZKL_ERRAND_NO_NODE;
    case ZKL_ANSWER_EXISTS:
        return ZKL_ERRAND_EXISTS;
    case ZKL_ANSWER_NOTEMPTY:
        return reply->number == OF_ANOTHER_VERSION ? ZKL_ERRAND_BAD_VERSION : ZKL_ERRAND_NOT_EMPTY;
    case ZKL_ANSWER_NOAUTH:
        return ZKL_ERRAND_DENIED;
    case ZKL_ANSWER_BADPATH:
        return ZKL_ERRAND_NO_CHILDREN;
    default:
        return ZKL_ERRAND_OTHER;
    }
}

static void copy_data(struct zkl_errand *errand, const struct zkl_reply *reply)
{
    size_t size = reply->data ? reply->data_size : 0;
    errand->size = size;
    if (errand->room == 0)
        return;
    size = size < errand->room ? size : errand->room - 1;
    if (size > 0)
        memcpy(errand->data, reply->data, size);
    errand->data[size] = '\0';
}

/* A server keeps the number of creates and shows it as cversion = 2 * creates - children, in 32
 * bits. */
static void copy_node(struct zkl_errand *errand, const struct zkl_reply *reply)
{
    errand->mtime_ms = reply->mtime_ms;
    errand->version = reply->version;
    errand->created = ((uint32_t)reply->cversion + (uint32_t)reply->node_children) / 2;
}

/* The core calls this. */
static void answered(struct zkl_query *query, int code, const struct zkl_reply *reply)
{
    const uint64_t one = 1;
    struct running *r = (struct running *)query;
    struct batch *batch = r->batch;
    r->batch = NULL;
    r->code = reply && reply->answer == ZKL_ANSWER_NOMEM ? ZKL_ENOMEM : code;
    if (reply) {
        r->errand->answer = answer_of(reply);
        r->errand->number = reply->number;
        r->errand->blamed = reply->failed_check;
        copy_node(r->errand, reply);
        copy_data(r->errand, reply);
    }
    if (--batch->open == 0 && write(batch->answered, &one, sizeof one) < 0)
        return; /* it is readable */
}

/* --- sending and waiting -------------------------------------------------- */

static void send_all(struct batch *batch, struct running *all, struct zkl_errand *errands,
                     size_t count)
{
    static const enum zkl_request_kind kinds[] = {
        [ZKL_ERRAND_STAT] = ZKL_REQ_STAT,
        [ZKL_ERRAND_GET] = ZKL_REQ_GET,
        [ZKL_ERRAND_ACL] = ZKL_REQ_ACL,
        [ZKL_ERRAND_PARTS] = ZKL_REQ_PARTS,
    };
    struct zkl_driver *d = batch->client->driver;
    batch->open = count;
    zkl_driver_lock(d);
    for (size_t i = 0; i < count; i++) {
        const struct zkl_errand *e = &errands[i];
        all[i] = (struct running){.errand = &errands[i], .batch = batch};
        all[i].query = (struct zkl_query){.kind = kinds[e->kind],
                                          .path = e->path,
                                          .parts = e->parts,
                                          .part_count = e->part_count,
                                          .once = count > 1 || e->kind == ZKL_ERRAND_PARTS,
                                          .answered = answered};
        zkl_core_query(&d->core, zkl_clock_now(), &all[i].query);
    }
    zkl_driver_unlock(d);
}

/* 0: all are answered. */
static int wait_for(const struct batch *batch, int64_t deadline_ns, int stop)
{
    struct pollfd from[] = {{.fd = batch->answered, .events = POLLIN},
                            {.fd = stop, .events = POLLIN}};
    for (;;) {
        int64_t left_ns = deadline_ns - zkl_clock_mono_ns(), left_ms = left_ns / 1000000 + 1;
        int n = poll(from, 2, left_ns <= 0 ? 0 : left_ms > 60000 ? 60000 : (int)left_ms);
        if (n > 0 && from[0].revents)
            return 0;
        if (n > 0 && from[1].revents)
            return zkl_fail(ZKL_ECANCELED, "zkl_errands");
        if (left_ns <= 0)
            return zkl_fail(ZKL_ETIMEDOUT, "zkl_errands");
    }
}

/* The first code that is not 0. */
static int withdraw_all(struct batch *batch, struct running *all, size_t count)
{
    struct zkl_driver *d = batch->client->driver;
    int code = 0;
    zkl_driver_lock(d);
    for (size_t i = 0; i < count; i++) {
        if (all[i].batch)
            zkl_core_withdraw(&d->core, zkl_clock_now(), &all[i].query);
        code = code != 0 ? code : all[i].code;
    }
    zkl_driver_unlock(d);
    return code == 0 ? 0 : zkl_fail_unserved(batch->client, code, "zkl_errands");
}

static int run(struct batch *batch, struct zkl_errand *errands, size_t count, int64_t deadline_ns,
               int stop)
{
    struct running *all = calloc(count, sizeof *all);
    if (!all)
        return zkl_fail(ZKL_ENOMEM, "zkl_errands");
    send_all(batch, all, errands, count);
    int rc = wait_for(batch, deadline_ns, stop);
    int code = withdraw_all(batch, all, count);
    free(all);
    return rc != 0 ? rc : code;
}

int zkl_errands(struct zkl_client *client, struct zkl_errand *errands, size_t count,
                int64_t deadline_ns, int stop)
{
    struct batch batch = {.client = client, .answered = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    int rc = zkl_query_check(client, "zkl_errands");
    if (rc == 0 && batch.answered < 0)
        rc = zkl_fail(ZKL_ESYSTEM, "zkl_errands: no descriptor is available");
    if (rc == 0)
        rc = run(&batch, errands, count, deadline_ns, stop);
    if (batch.answered >= 0)
        close(batch.answered);
    return rc;
}
