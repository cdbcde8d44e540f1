/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures in Prometheus' text format: families of samples, each with its HELP and TYPE. This
 * file owns the text while it grows, and passes it to the caller at the end. Users call it from any
 * thread, without a lock held; metrics.c copies the figures under the client's mutex. */
#include <stdarg.h>
#include <stdio.h>

#include "error.h"
#include "metrics.h"

#define NS INT64_C(1000000000)

/* --- text --------------------------------------------------------------- */

struct text {
    char *buf;
    size_t size, length; /* what there would be with room for it */
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *t, const char *format, ...)
{
    size_t room = t->length < t->size ? t->size - t->length : 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(room > 0 ? t->buf + t->length : NULL, room, format, args);
    va_end(args);
    t->length += n > 0 ? (size_t)n : 0;
}

static void put_escaped(struct text *t, const char *value)
{
    for (; *value; value++) {
        if (*value == '\n')
            put(t, "\\n");
        else
            put(t, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
    }
}

/* --- samples ------------------------------------------------------------ */

/* The common labels of all samples of one lock, or of the client. */
struct source {
    struct text *text;
    const char *client; /* label */
    const char *prefix; /* of the names */
    const char *path;   /* label; NULL: none */
};

static void put_family(const struct source *s, const char *name, const char *type, const char *help)
{
    put(s->text, "# HELP %s%s %s\n# TYPE %s%s %s\n", s->prefix, name, help, s->prefix, name, type);
}

/* suffix: of the family's name; label and value: one more, or NULL. */
static void put_name(const struct source *s, const char *name, const char *suffix,
                     const char *label, const char *value)
{
    put(s->text, "%s%s%s{client=\"", s->prefix, name, suffix);
    put_escaped(s->text, s->client);
    if (s->path) {
        put(s->text, "\",lock=\"");
        put_escaped(s->text, s->path);
    }
    if (label)
        put(s->text, "\",%s=\"%s", label, value);
    put(s->text, "\"} ");
}

static void put_count(const struct source *s, const char *name, const char *label,
                      const char *value, uint64_t count)
{
    put_name(s, name, "", label, value);
    put(s->text, "%llu\n", (unsigned long long)count);
}

static void put_seconds(const struct source *s, const char *name, const char *suffix, uint64_t ns)
{
    put_name(s, name, suffix, NULL, NULL);
    put(s->text, "%llu.%09llu\n", (unsigned long long)(ns / NS), (unsigned long long)(ns % NS));
}

/* Every second bucket: the doublings, from a microsecond to the last but one, and what is above. */
#define FIRST_SHOWN 1

static void put_histogram(const struct source *s, const char *name, const struct zkl_histogram *h)
{
    uint64_t below = 0;
    char bound[32];
    for (size_t i = 0; i < ZKL_HISTOGRAM_BUCKETS - 1; i++) {
        uint64_t ns = (uint64_t)zkl_histogram_bound_ns(i);
        below += h->buckets[i];
        if (i % 2 != FIRST_SHOWN)
            continue;
        snprintf(bound, sizeof bound, "%llu.%06llu", (unsigned long long)(ns / NS),
                 (unsigned long long)(ns % NS / 1000));
        put_name(s, name, "_bucket", "le", bound);
        put(s->text, "%llu\n", (unsigned long long)below);
    }
    put_name(s, name, "_bucket", "le", "+Inf");
    put(s->text, "%llu\n", (unsigned long long)h->count);
    put_seconds(s, name, "_sum", h->sum_ns);
    put_name(s, name, "_count", NULL, NULL);
    put(s->text, "%llu\n", (unsigned long long)h->count);
}

/* --- what a lock has, and a client of all its locks --------------------- */

/* Codes that acquire calls end with. */
static const struct {
    int code;
    const char *name;
} codes[] = {
    {ZKL_ETIMEDOUT, "timedout"}, {ZKL_ECANCELED, "canceled"},
    {ZKL_EBUSY, "busy"},         {ZKL_EDISCONNECTED, "disconnected"},
    {ZKL_ECLOSED, "closed"},     {ZKL_ELOST, "lost"},
    {ZKL_EDEADLK, "deadlk"},     {ZKL_EOVERFLOW, "overflow"},
    {ZKL_ENOMEM, "nomem"},       {ZKL_ESYSTEM, "system"},
    {ZKL_EACCES, "acces"},       {ZKL_EAUTH, "auth"},
    {ZKL_ENOCHROOT, "nochroot"}, {ZKL_EEXHAUSTED, "exhausted"},
    {ZKL_EPROTO, "proto"},       {ZKL_EMISMATCH, "mismatch"},
    {ZKL_EUNPROVED, "unproved"}, {ZKL_EQUOTA, "quota"},
    {ZKL_EREADONLY, "readonly"}, {ZKL_EUNIMPLEMENTED, "unimplemented"},
    {ZKL_EFULL, "full"},
};

static const struct {
    int reason;
    const char *name;
} reasons[] = {
    {ZKL_REASON_EXPIRED, "expired"},           {ZKL_REASON_NODE_DELETED, "node_deleted"},
    {ZKL_REASON_LEASE_ENDED, "lease_ended"},   {ZKL_REASON_CLOSED, "closed"},
    {ZKL_REASON_OWNER_EXITED, "owner_exited"},
};

/* A family that both have. */
struct lock_family {
    const char *name, *type, *help;
    size_t offset;       /* of its one value, or its histogram; or */
    bool codes, reasons; /* it has a sample for each */
};

#define AT(field) offsetof(struct zkl_lock_metrics, field)
static const struct lock_family lock_families[] = {
    {"acquisitions_total", "counter", "Holds acquired, without re-entries.", AT(acquisitions), 0,
     0},
    {"reentries_total", "counter", "Re-entries of holds that have ended.", AT(reentries), 0, 0},
    {"failures_total", "counter", "Acquire calls that acquired nothing, by code.", 0, true, false},
    {"releases_total", "counter", "Holds released.", AT(releases), 0, 0},
    {"unconfirmed_total", "counter", "Holds released without the server's answer.", AT(unconfirmed),
     0, 0},
    {"passed_total", "counter", "Holds handed on in this process, or retained.", AT(passed), 0, 0},
    {"losses_total", "counter", "Holds lost, by reason.", 0, false, true},
    {"suspects_total", "counter", "How often a hold was suspect.", AT(suspects), 0, 0},
    {"revocations_total", "counter", "Requests to release a hold.", AT(revocations), 0, 0},
    {"wait_seconds", "histogram", "From the acquire call to the hold.", AT(wait), 0, 0},
    {"hold_seconds", "histogram", "From the acquisition to the last unlock, or the loss.", AT(hold),
     0, 0},
    {"held", "gauge", "Holds now.", AT(held), 0, 0},
    {"waiting", "gauge", "Acquire calls that wait now.", AT(waiting), 0, 0},
    {"queue_before", "gauge", "Contenders before the last of these, as of its last list.",
     AT(queue_before), 0, 0},
};
#undef AT

static void put_lock(const struct source *s, const struct lock_family *f,
                     const struct zkl_lock_metrics *m)
{
    const void *value = (const char *)m + f->offset;
    if (f->codes) {
        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
            put_count(s, f->name, "code", codes[i].name, m->failures[-codes[i].code]);
    } else if (f->reasons) {
        for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
            put_count(s, f->name, "reason", reasons[i].name, m->losses[reasons[i].reason]);
    } else if (f->type[0] == 'h') {
        put_histogram(s, f->name, value);
    } else {
        put_count(s, f->name, NULL, NULL, *(const uint64_t *)value);
    }
}

static void put_locks(struct text *t, const char *client, const struct zkl_snapshot *snapshot)
{
    for (size_t i = 0; i < sizeof lock_families / sizeof lock_families[0]; i++) {
        const struct lock_family *f = &lock_families[i];
        struct source all = {t, client, "zklock_", NULL}, one = {t, client, "zklock_lock_", NULL};
        put_family(&all, f->name, f->type, f->help);
        put_lock(&all, f, &snapshot->locks);
        if (snapshot->path_count > 0)
            put_family(&one, f->name, f->type, f->help);
        for (size_t p = 0; p < snapshot->path_count; p++) {
            one.path = snapshot->paths[p].lock_path->path;
            put_lock(&one, f, &snapshot->paths[p].figures);
        }
    }
}

/* --- what only a client has --------------------------------------------- */

static void put_requests(const struct source *s, const uint64_t *requests)
{
    static const char *const names[ZKL_METRICS_REQUESTS] = {
        [ZKL_METRICS_REQUEST_CREATE] = "create",
        [ZKL_METRICS_REQUEST_DELETE] = "delete",
        [ZKL_METRICS_REQUEST_LIST] = "list",
        [ZKL_METRICS_REQUEST_WATCH] = "watch",
        [ZKL_METRICS_REQUEST_UNWATCH] = "unwatch",
        [ZKL_METRICS_REQUEST_HEARTBEAT] = "heartbeat",
        [ZKL_METRICS_REQUEST_KEEPALIVE] = "keepalive",
        [ZKL_METRICS_REQUEST_PARENT] = "parent",
        [ZKL_METRICS_REQUEST_READ] = "read",
        [ZKL_METRICS_REQUEST_WRITE] = "write",
        [ZKL_METRICS_REQUEST_SYNC] = "sync",
    };
    put_family(s, "requests_total", "counter", "Requests sent, by kind.");
    for (size_t i = 0; i < ZKL_METRICS_REQUESTS; i++)
        put_count(s, "requests_total", "kind", names[i], requests[i]);
}

static void put_one(const struct source *s, const char *name, const char *type, const char *help,
                    uint64_t count)
{
    put_family(s, name, type, help);
    put_count(s, name, NULL, NULL, count);
}

static void put_client(struct text *t, const char *client, const struct zkl_client_metrics *m)
{
    const struct source s = {t, client, "zklock_", NULL};
    put_one(&s, "connected", "gauge", "1 if there is a session and a link.",
            m->state == ZKL_CLIENT_CONNECTED);
    put_one(&s, "connections_total", "counter", "How often a link came up.", m->connections);
    put_one(&s, "reconnects_total", "counter", "How often a link came up after the first time.",
            m->reconnects);
    put_one(&s, "disconnections_total", "counter", "How often a link was lost.", m->disconnections);
    put_one(&s, "expiries_total", "counter", "Sessions that ended.", m->expiries);
    put_one(&s, "heartbeats_total", "counter", "Heartbeats.", m->heartbeats);
    put_requests(&s, m->requests);
    put_family(&s, "write_seconds", "histogram",
               "Time that the ensemble took to answer a write, including heartbeats.");
    put_histogram(&s, "write_seconds", &m->writes);
    put_one(&s, "outstanding_requests", "gauge", "Requests without an answer.", m->outstanding);
    put_one(&s, "janitor_backlog", "gauge", "Nodes that are not yet known to be deleted.",
            m->janitor_backlog);
    put_one(&s, "watches", "gauge", "Paths watched.", m->watches);
    put_one(&s, "watch_bytes", "gauge", "Bytes of these paths; at most 1000000.", m->watch_bytes);
    put_one(&s, "request_numbers_left", "gauge",
            "Requests of this process before libzookeeper's special numbers.",
            m->request_numbers_left);
    put_one(&s, "ephemeral_bytes", "gauge", "Bytes of the paths of the session's nodes.",
            m->ephemeral_bytes);
    put_one(&s, "log_dropped_total", "counter", "Log events that a slow callback missed.",
            m->log_dropped);
    put_family(&s, "session_timeout_seconds", "gauge", "Negotiated session timeout.");
    put_seconds(&s, "session_timeout_seconds", "", (uint64_t)m->session_timeout_ms * 1000000);
    put_family(&s, "window_seconds", "gauge", "Time for which the session is proved.");
    put_seconds(&s, "window_seconds", "", (uint64_t)m->window_ms * 1000000);
}

/* --- the call ----------------------------------------------------------- */

int zkl_metrics_prometheus(struct zkl_client *client, char *buf, size_t size)
{
    ZKL_SHIELDED();
    static const char call[] = "zkl_metrics_prometheus";
    struct text text = {buf, size, 0};
    struct zkl_snapshot snapshot;
    if (!client || (!buf && size > 0))
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, client ? "buf" : "client");
    int rc = zkl_client_check(client, false, call);
    if (rc != 0)
        return rc;
    if (zkl_snapshot_take(client, &snapshot) != 0)
        return zkl_fail(ZKL_ENOMEM, "%s", call);
    const char *label = client->owner ? client->owner : client->number;
    put_client(&text, label, &snapshot.client);
    put_locks(&text, label, &snapshot);
    zkl_snapshot_drop(client, &snapshot);
    return (int)text.length;
}
