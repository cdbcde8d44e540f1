/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy_frame.h"

#include "bytes.h"
#include "tool/net.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH 4
#define FRAME_MAX (16 << 20)
#define XID_EVENT (-1)
#define XID_CONNECT INT32_MIN /* ours, for the pair of frames that have none */

/* --- rules ------------------------------------------------------------------------------------ */

int rules_arm(struct rules *rules, const struct fault *fault)
{
    if (rules->fault_count == FAULTS_MAX || fault->nth < 1)
        return -1;
    rules->faults[rules->fault_count++] = *fault;
    return 0;
}

static void forget_fault(struct rules *rules, size_t i)
{
    rules->faults[i] = rules->faults[--rules->fault_count];
    rules->news = true;
}

void rules_disarm(struct rules *rules, bool holds_only)
{
    for (size_t i = rules->fault_count; i-- > 0;) {
        if (!holds_only || rules->faults[i].kind == FAULT_HOLD)
            forget_fault(rules, i);
    }
}

int rules_pending(const struct rules *rules, bool holds)
{
    int n = holds ? rules->holds_marked : rules->drops_marked;

    for (size_t i = 0; i < rules->fault_count; i++)
        n += (rules->faults[i].kind == FAULT_HOLD) == holds;
    return n;
}

static bool matches(enum proxy_op wanted, int op)
{
    if (wanted == PROXY_ANY)
        return op != PROXY_CONNECT && op != PROXY_EVENT;
    return (int)wanted == op;
}

/* This frame is one more of its type: does one of the faults strike now? */
static enum fault_kind strike(struct rules *rules, enum fault_place place, int op)
{
    enum fault_kind kind = FAULT_NONE;

    for (size_t i = rules->fault_count; i-- > 0;) {
        struct fault *f = &rules->faults[i];
        if (f->place != place || !matches(f->op, op) || --f->nth > 0)
            continue;
        kind = f->kind;
        forget_fault(rules, i);
    }
    return kind;
}

static bool has_place(int op)
{
    return op + COUNT_OFFSET >= 0 && op + COUNT_OFFSET < COUNTS;
}

static void count(struct rules *rules, int op)
{
    if (has_place(op))
        rules->counts[op + COUNT_OFFSET]++;
    if (matches(PROXY_ANY, op))
        rules->counts[PROXY_ANY + COUNT_OFFSET]++;
    rules->news = true;
}

int64_t rules_count(const struct rules *rules, int op)
{
    return has_place(op) ? rules->counts[op + COUNT_OFFSET] : 0;
}

void rules_hang_up_on(struct rules *rules, int op)
{
    if (has_place(op))
        rules->hangs_up[op + COUNT_OFFSET] = true;
}

/* --- requests that wait for their answers ----------------------------------------------------- */

static void mark(struct rules *rules, struct asked_entry *e, enum fault_kind kind)
{
    int *old = e->mark == FAULT_HOLD ? &rules->holds_marked : &rules->drops_marked;
    int *new = kind == FAULT_HOLD ? &rules->holds_marked : &rules->drops_marked;

    if (e->mark != FAULT_NONE)
        --*old;
    if (kind != FAULT_NONE)
        ++*new;
    if (e->mark != kind)
        rules->news = true;
    e->mark = kind;
}

static struct asked_entry *asked_add(struct asked *asked, int32_t xid, int op)
{
    if (asked->n == asked->room) {
        size_t room = asked->room * 2 + 64;
        struct asked_entry *entry = realloc(asked->entry, room * sizeof *entry);
        if (entry == NULL)
            return NULL;
        asked->entry = entry;
        asked->room = room;
    }
    asked->entry[asked->n] = (struct asked_entry){xid, op, FAULT_NONE};
    return &asked->entry[asked->n++];
}

/* Take out the oldest with this xid (pings share one). False: there was no request. */
static bool asked_take(struct rules *rules, struct asked *asked, int32_t xid,
                       struct asked_entry *taken)
{
    for (size_t i = 0; i < asked->n; i++) {
        if (asked->entry[i].xid != xid)
            continue;
        *taken = asked->entry[i];
        mark(rules, &asked->entry[i], FAULT_NONE);
        asked->n--;
        memmove(&asked->entry[i], &asked->entry[i + 1], (asked->n - i) * sizeof *asked->entry);
        return true;
    }
    return false;
}

void asked_forget(struct rules *rules, struct asked *asked, bool holds_only)
{
    for (size_t i = 0; i < asked->n; i++) {
        if (!holds_only || asked->entry[i].mark == FAULT_HOLD)
            mark(rules, &asked->entry[i], FAULT_NONE);
    }
}

void asked_free(struct rules *rules, struct asked *asked)
{
    asked_forget(rules, asked, false);
    free(asked->entry);
}

/* --- lanes ------------------------------------------------------------------------------------ */

void lane_init(struct lane *lane, enum proxy_dir dir)
{
    memset(lane, 0, sizeof *lane);
    lane->dir = dir;
    lane->first = true;
    lane->tail = &lane->head;
}

void lane_pop(struct lane *lane)
{
    struct frame *f = lane->head;

    lane->head = f->next;
    if (lane->head == NULL)
        lane->tail = &lane->head;
    free(f);
}

void lane_kill(struct lane *lane)
{
    while (lane->head != NULL)
        lane_pop(lane);
    lane->dead = true;
}

void lane_free(struct lane *lane)
{
    lane_kill(lane);
    free(lane->in);
}

struct frame *lane_due(const struct lane *lane, int64_t now_ms)
{
    struct frame *f = lane->head;

    return f != NULL && !f->barrier && f->due_ms <= now_ms ? f : NULL;
}

void lane_release(struct lane *lane)
{
    for (struct frame *f = lane->head; f != NULL; f = f->next)
        f->barrier = false;
}

/* --- judging frames --------------------------------------------------------------------------- */

/* A request: its type, and its fate. The fate of its answer is noted for later. */
static enum fault_kind judge_request(struct rules *rules, struct link *link, int32_t xid, int op)
{
    struct asked_entry *e = asked_add(&link->asked, xid, op);
    enum fault_kind kind;

    count(rules, op);
    if (link->to_server.dead)
        return FAULT_NONE;
    kind = strike(rules, AT_REPLY, op);
    if (e != NULL)
        mark(rules, e, kind);
    kind = strike(rules, AT_REQUEST, op);
    return has_place(op) && rules->hangs_up[op + COUNT_OFFSET] ? FAULT_CUT : kind;
}

static enum fault_kind judge_event(struct rules *rules, const struct lane *lane)
{
    count(rules, PROXY_EVENT);
    return lane->dead ? FAULT_NONE : strike(rules, AT_REPLY, PROXY_EVENT);
}

static size_t run_hook(struct rules *rules, const struct lane *lane, int op, unsigned char *data,
                       size_t n)
{
    size_t changed;

    if (rules->hook == NULL)
        return n;
    changed = rules->hook(lane->dir, op, data, n, rules->hook_arg);
    return changed <= n ? changed : n;
}

/* The xid of a frame, and for a request its type. */
static void read_header(const struct lane *lane, const unsigned char *data, size_t n, int32_t *xid,
                        int *op)
{
    *xid = lane->first || n < 4 ? XID_CONNECT : bytes_get32(data);
    *op = lane->first || n < 8 ? PROXY_CONNECT : bytes_get32(data + 4);
}

static enum fault_kind judge(struct rules *rules, struct link *link, struct lane *lane,
                             unsigned char *data, size_t *n)
{
    struct asked_entry asked = {0, PROXY_EVENT, FAULT_NONE};
    int32_t xid;
    int op;

    read_header(lane, data, *n, &xid, &op);
    lane->first = false;
    if (lane->dir == PROXY_TO_SERVER) {
        *n = run_hook(rules, lane, op, data, *n);
        return judge_request(rules, link, xid, op);
    }
    if (xid != XID_EVENT)
        asked_take(rules, &link->asked, xid, &asked);
    *n = run_hook(rules, lane, asked.op, data, *n);
    return xid == XID_EVENT ? judge_event(rules, lane) : asked.mark;
}

/* --- passing frames on ------------------------------------------------------------------------ */

/* Of an opaque stream without the length in front. */
void lane_append(struct rules *rules, struct lane *lane, const void *data, size_t n, bool barrier)
{
    size_t head = rules->opaque ? 0 : LENGTH;
    struct frame *f = malloc(sizeof *f + head + n);

    if (f == NULL) { /* as good as lost, and then nothing may follow */
        lane->dead = lane->cut = true;
        return;
    }
    memset(f, 0, sizeof *f);
    f->due_ms = net_now_ms() + rules->delay_ms;
    f->barrier = barrier;
    f->size = head + n;
    if (head > 0)
        bytes_put32(f->data, (int32_t)n);
    memcpy(f->data + head, data, n);
    *lane->tail = f;
    lane->tail = &f->next;
}

/* Bytes that came together count as a request, or as an event. */
static enum fault_kind judge_opaque(struct rules *rules, struct lane *lane, unsigned char *data,
                                    size_t *n)
{
    bool asks = lane->dir == PROXY_TO_SERVER;
    int op = asks ? PROXY_ANY : PROXY_EVENT;

    *n = run_hook(rules, lane, op, data, *n);
    rules->counts[op + COUNT_OFFSET]++;
    rules->news = true;
    return lane->dead ? FAULT_NONE : strike(rules, asks ? AT_REQUEST : AT_REPLY, op);
}

static void take_frame(struct rules *rules, struct link *link, struct lane *lane,
                       unsigned char *data, size_t n)
{
    enum fault_kind kind =
        rules->opaque ? judge_opaque(rules, lane, data, &n) : judge(rules, link, lane, data, &n);

    if (lane->dead)
        return;
    switch (kind) {
    case FAULT_CUT:
        lane->cut = true;
        lane->dead = true;
        break;
    case FAULT_SILENT:
        lane->dead = true;
        break;
    case FAULT_HOLD:
    case FAULT_NONE:
        lane_append(rules, lane, data, n, kind == FAULT_HOLD);
        break;
    }
}

static bool keep_bytes(struct lane *lane, const void *data, size_t n)
{
    if (lane->in_size + n > lane->in_room) {
        size_t room = (lane->in_size + n) * 2;
        unsigned char *in = realloc(lane->in, room);
        if (in == NULL)
            return false;
        lane->in = in;
        lane->in_room = room;
    }
    memcpy(lane->in + lane->in_size, data, n);
    lane->in_size += n;
    return true;
}

void lane_take(struct rules *rules, struct link *link, struct lane *lane, const void *data,
               size_t n)
{
    size_t at = 0;

    if (!keep_bytes(lane, data, n))
        lane->dead = lane->cut = true;
    while (rules->opaque && at < lane->in_size) {
        size_t left = lane->in_size - at;
        size_t size = rules->size_of ? rules->size_of(lane->in + at, left) : left;
        if (size == 0)
            break;
        take_frame(rules, link, lane, lane->in + at, size);
        at += size;
    }
    while (!rules->opaque && lane->in_size - at >= LENGTH) {
        int32_t size = bytes_get32(lane->in + at);
        if (size < 0 || size > FRAME_MAX) { /* not ZooKeeper's protocol */
            lane->dead = lane->cut = true;
            at = lane->in_size;
            break;
        }
        if (lane->in_size - at - LENGTH < (size_t)size)
            break;
        take_frame(rules, link, lane, lane->in + at + LENGTH, (size_t)size);
        at += LENGTH + (size_t)size;
    }
    lane->in_size -= at;
    if (at > 0)
        memmove(lane->in, lane->in + at, lane->in_size);
}
