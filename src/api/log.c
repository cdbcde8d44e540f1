/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: reports of the core and of the holds, queued for the dispatch thread, which passes each
 * to the user's callback as an event with one line of text. This file owns the queue, which is
 * bounded: it counts the events that did not fit. client.c and place.c queue lines with the client's
 * mutex; the callback runs without it. */
#include "log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/clock.h"
#include "place.h"

#define MS INT64_C(1000000)
#define MESSAGE_MAX (ZKL_TRACE_MAX + ZKL_PATH_MAX + 1 + ZKL_NODE_NAME_MAX)

struct zkl_log_record {
    struct zkl_log_event event; /* text is static, or behind this */
    struct zkl_trace trace;     /* of the kinds that have one */
    char text[];                /* path, NUL, node, NUL */
};

/* --- levels ------------------------------------------------------------- */

/* The state stays: the server was found not to do something. */
static bool is_about_the_server(const struct zkl_trace *trace)
{
    return trace->from == trace->to;
}

static enum zkl_log_level level_of_session(const struct zkl_trace *trace)
{
    if (is_about_the_server(trace))
        return ZKL_LOG_WARNING;
    switch ((enum zkl_session_state)trace->to) {
    case ZKL_SESSION_FAILED:
        return ZKL_LOG_ERROR;
    case ZKL_SESSION_STARTING: /* anew: the one before has ended */
    case ZKL_SESSION_SUSPENDED:
    case ZKL_SESSION_PROBING:
    case ZKL_SESSION_PROBED:
        return ZKL_LOG_WARNING;
    case ZKL_SESSION_CONNECTED:
    case ZKL_SESSION_CLOSED:
    case ZKL_SESSION_STATES:
        break;
    }
    return ZKL_LOG_INFO;
}

/* A code that an acquire or an unlock may ordinarily return says nothing about the service; a loss
 * has its own event. */
static enum zkl_log_level level_of_code(int code)
{
    bool usual = code == 0 || code == ZKL_EBUSY || code == ZKL_ETIMEDOUT || code == ZKL_ECANCELED ||
                 code == ZKL_ECLOSED || code == ZKL_ELOST || code == ZKL_EUNPROVED;
    return usual ? ZKL_LOG_DEBUG : ZKL_LOG_WARNING;
}

static enum zkl_log_level level_of_hold(int state)
{
    if (state == ZKL_HOLD_LOST)
        return ZKL_LOG_ERROR;
    return state == ZKL_HOLD_SUSPECT ? ZKL_LOG_WARNING : ZKL_LOG_INFO;
}

/* --- the queue ---------------------------------------------------------- */

static struct zkl_log_record *new_record(const struct zkl_log_event *event)
{
    size_t path_size = strlen(event->path) + 1, node_size = strlen(event->node) + 1;
    struct zkl_log_record *record = calloc(1, sizeof *record + path_size + node_size);
    if (!record)
        return NULL;
    memcpy(record->text, event->path, path_size);
    memcpy(record->text + path_size, event->node, node_size);
    record->event = *event;
    record->event.path = record->text;
    record->event.node = record->text + path_size;
    return record;
}

/* trace NULL: it is not of a kind that has one. */
static void enqueue(struct zkl_client *client, struct zkl_log_event event,
                    const struct zkl_trace *trace)
{
    struct zkl_log *log = &client->log;
    if ((int)event.level > log->level)
        return;
    event.size = sizeof event;
    event.time_ns = client->driver->core.now.mono_ns;
    event.session = client->driver->core.session.id;
    struct zkl_log_record *record = log->count < ZKL_LOG_RECORDS ? new_record(&event) : NULL;
    if (record && trace)
        record->trace = *trace;
    if (record) {
        log->records[log->count++] = record;
    } else {
        log->dropped++;
        log->dropped_total++;
    }
    if (zkl_driver_post(client->driver, &log->note))
        zkl_client_ref(client);
}

/* --- reports ------------------------------------------------------------ */

static struct zkl_log_event new_event(enum zkl_log_kind kind, enum zkl_log_level level)
{
    return (struct zkl_log_event){
        .kind = kind, .level = level, .path = "", .node = "", .from = "", .to = "", .why = ""};
}

void zkl_log_trace(void *arg, const struct zkl_trace *trace)
{
    static const enum zkl_log_kind kinds[] = {[ZKL_TRACE_SESSION] = ZKL_LOG_KIND_SESSION,
                                              [ZKL_TRACE_CONTENDER] = ZKL_LOG_KIND_CONTENDER,
                                              [ZKL_TRACE_PERMITS] = ZKL_LOG_KIND_PERMITS};
    struct zkl_client *client = arg;
    if (trace->kind == ZKL_TRACE_LOCAL_QUEUE || trace->kind == ZKL_TRACE_CACHE)
        return; /* as many as there are locks, where there are no requests */
    struct zkl_log_event event = new_event(kinds[trace->kind], ZKL_LOG_DEBUG);
    if (trace->kind == ZKL_TRACE_SESSION)
        event.level = level_of_session(trace);
    if (trace->kind == ZKL_TRACE_CONTENDER) {
        event.path = trace->contender->machine.lock_request.path->text;
        event.node = trace->contender->machine.node;
    }
    if (trace->kind == ZKL_TRACE_PERMITS)
        event.path = ((const struct zkl_place *)trace->contender)->lock_path->path;
    event.contender = trace->number;
    event.from = zkl_trace_state_name(trace->kind, trace->from);
    event.to = zkl_trace_state_name(trace->kind, trace->to);
    event.why = trace->why;
    enqueue(client, event, trace);
}

void zkl_log_resolver(void *arg, const char *host, const char *why)
{
    struct zkl_log_event event =
        new_event(ZKL_LOG_KIND_RESOLVER, why ? ZKL_LOG_WARNING : ZKL_LOG_INFO);
    event.node = host;
    event.why = why ? why : "";
    enqueue(arg, event, NULL);
}

static struct zkl_log_event hold_event(const struct zkl_place *place, enum zkl_log_kind kind,
                                       enum zkl_log_level level)
{
    struct zkl_log_event event = new_event(kind, level);
    event.path = place->lock_path->path;
    event.node = place->contender.machine.node;
    event.contender = place->contender.number;
    return event;
}

void zkl_log_notification(const struct zkl_place *place,
                          const struct zkl_notification *notification)
{
    static const enum zkl_log_kind kinds[] = {[ZKL_NOTIFY_GRANTED] = ZKL_LOG_KIND_GRANTED,
                                              [ZKL_NOTIFY_FAILED] = ZKL_LOG_KIND_FAILED,
                                              [ZKL_NOTIFY_RELEASED] = ZKL_LOG_KIND_RELEASED};
    if (notification->type == ZKL_NOTIFY_STATE || notification->type == ZKL_NOTIFY_ENDED)
        return; /* zkl_log_state reports states, from the caller's view */
    struct zkl_log_event event =
        hold_event(place, kinds[notification->type], level_of_code(notification->code));
    event.code = notification->code;
    event.why = zkl_strerror(notification->code);
    if (notification->type == ZKL_NOTIFY_GRANTED)
        event.token = (uint64_t)place->contender.machine.czxid;
    enqueue(place->client, event, NULL);
}

void zkl_log_state(const struct zkl_place *place, int state, int reason)
{
    static const char *const names[] = {[ZKL_HOLD_HELD] = "HELD",
                                        [ZKL_HOLD_SUSPECT] = "SUSPECT",
                                        [ZKL_HOLD_LOST] = "LOST",
                                        [ZKL_HOLD_REVOKE_REQUESTED] = "REVOKED"};
    static const char *const reasons[] = {[ZKL_REASON_NONE] = "",
                                          [ZKL_REASON_LINK] = "the connection broke",
                                          [ZKL_REASON_WINDOW] =
                                              "no write was answered for too long",
                                          [ZKL_REASON_EXPIRED] = "the session ended",
                                          [ZKL_REASON_NODE_DELETED] = "the node was deleted",
                                          [ZKL_REASON_LEASE_ENDED] = "the lease ended",
                                          [ZKL_REASON_CLOSED] = "the client was closed",
                                          [ZKL_REASON_OWNER_EXITED] = "its thread ended",
                                          [ZKL_REASON_UNCHECKED] = "the node cannot be checked"};
    struct zkl_log_event event = hold_event(place, ZKL_LOG_KIND_HOLD, level_of_hold(state));
    event.node = place->node;
    event.to = names[state];
    event.why = reasons[reason];
    event.state = state;
    event.reason = reason;
    event.token = place->token;
    enqueue(place->client, event, NULL);
}

/* --- the dispatch thread ------------------------------------------------ */

static void format_hold(const struct zkl_log_event *e, char *line, size_t size)
{
    static const char *const verbs[] = {[ZKL_LOG_KIND_GRANTED] = "granted",
                                        [ZKL_LOG_KIND_FAILED] = "failed",
                                        [ZKL_LOG_KIND_RELEASED] = "released"};
    bool is_state = e->kind == ZKL_LOG_KIND_HOLD;
    snprintf(line, size, "[%6lld] #%llu %s: %s%s%s%s%s", (long long)(e->time_ns / MS),
             (unsigned long long)e->contender, is_state ? e->to : verbs[e->kind], e->path,
             *e->node ? "/" : "", e->node, *e->why && (is_state || e->code != 0) ? ": " : "",
             is_state || e->code != 0 ? e->why : "");
}

static void format(const struct zkl_log_record *record, char *line, size_t size)
{
    if (record->event.kind == ZKL_LOG_KIND_DROPPED)
        snprintf(line, size, "%llu lines were dropped: the log callback is slow",
                 (unsigned long long)record->event.dropped);
    else if (record->event.kind == ZKL_LOG_KIND_RESOLVER)
        snprintf(line, size, "[%6lld] %s address for %s%s%s",
                 (long long)(record->event.time_ns / MS), *record->event.why ? "no" : "again an",
                 record->event.node, *record->event.why ? ": " : "", record->event.why);
    else if (record->event.kind <= ZKL_LOG_KIND_PERMITS)
        zkl_trace_format(&record->trace, line);
    else
        format_hold(&record->event, line, size);
}

static void deliver(const struct zkl_log *log, const struct zkl_log_record *record)
{
    char line[MESSAGE_MAX];
    struct zkl_log_event event = record->event;
    format(record, line, sizeof line);
    event.message = line;
    log->fn(&event, log->arg);
}

static void deliver_dropped(const struct zkl_log *log, uint64_t dropped)
{
    if (log->level < ZKL_LOG_WARNING)
        return;
    struct zkl_log_record record = {.event = new_event(ZKL_LOG_KIND_DROPPED, ZKL_LOG_WARNING)};
    record.event.size = sizeof record.event;
    record.event.time_ns = zkl_clock_mono_ns();
    record.event.dropped = dropped;
    deliver(log, &record);
}

static void run(struct zkl_note *note)
{
    struct zkl_log *log = (struct zkl_log *)((char *)note - offsetof(struct zkl_log, note));
    struct zkl_client *client =
        (struct zkl_client *)((char *)log - offsetof(struct zkl_client, log));
    struct zkl_log_record *records[ZKL_LOG_RECORDS];
    zkl_driver_lock(client->driver);
    size_t count = log->count;
    uint64_t dropped = log->dropped;
    memcpy(records, log->records, count * sizeof records[0]);
    log->count = 0;
    log->dropped = 0;
    zkl_driver_unlock(client->driver);
    for (size_t i = 0; i < count; i++) {
        deliver(log, records[i]);
        free(records[i]);
    }
    if (dropped > 0)
        deliver_dropped(log, dropped);
    zkl_client_unref(client);
}

void zkl_log_init(struct zkl_client *client, const struct zkl_client_options *o)
{
    struct zkl_log *log = &client->log;
    log->fn = o->log_fn;
    log->arg = o->log_arg;
    log->level = o->log_level ? (int)o->log_level : ZKL_LOG_INFO;
    log->note.run = run;
    log->note.owner = client;
}

void zkl_log_fini(struct zkl_client *client)
{
    for (size_t i = 0; i < client->log.count; i++)
        free(client->log.records[i]);
}
