/* SPDX-License-Identifier: Apache-2.0
 * What stands in for the driver: what the core sends and says, which handles it opens and drops, what it hears of
 * them, and how it begins and ends. One callback at a time, as the client's mutex ensures. When something comes,
 * and whether, is decided by others: a schedule of tests/sim, the search of tests/explore. What they do beside
 * that, such as to count, is in the functions and macros that owners.h names. */
#include <stdarg.h>

#include "sim/kinds.h"
#include "world.h"

static struct client *client_of(struct zkl_port *port)
{
    return (struct client *)((char *)port - offsetof(struct client, port));
}

int name_of(const struct client *c)
{
    return (int)(c - c->world->clients);
}

FILE *say_to;

void say(const char *format, ...)
{
    va_list args;
    if (!say_to)
        return;
    va_start(args, format);
    vfprintf(say_to, format, args);
    va_end(args);
    putc('\n', say_to);
}

/* --- the port ------------------------------------------------------------- */

static enum zkl_answer port_send(struct zkl_port *port, const struct zkl_request *request)
{
    struct client *c = client_of(port);
    enum zkl_answer answer = client_sends(c, request);
    if (saying)
        say("  %d > %s %s%s (%llu)%s", name_of(c), request_kinds[request->kind],
            request->path              ? request->path
            : request->check_count > 0 ? request->checks[0]
                                       : "",
            request->check_count > 1 ? "..." : "", (unsigned long long)request->id,
            answer == ZKL_ANSWER_OK ? "" : " refused");
    return answer;
}

static void port_notification(struct zkl_port *port, struct zkl_contender *contender,
                              const struct zkl_notification *news)
{
    static const char *const names[] = {"granted", "failed", "released", "state", "ended"};
    struct client *c = client_of(port);
    if (c->dead)
        return; /* nobody hears it */
    if (saying)
        say("  %d #%llu: %s %d %d %s", name_of(c), (unsigned long long)contender->number,
            names[news->type], news->code, news->state, news->detail ? news->detail : "");
    owners_notification(c, contender, news);
}

static void drop(struct client *c, struct fake_handle **h, void (*how)(struct fake_handle *h))
{
    if (*h) {
        handle_goes(c, *h);
        how(*h);
    }
    *h = NULL;
}

void client_drop_handles(struct client *c, void (*how)(struct fake_handle *h))
{
    drop(c, &c->current, how);
    drop(c, &c->probe, how);
}

static void port_session(struct zkl_port *port, unsigned actions)
{
    struct client *c = client_of(port);
    if (actions & ZKL_SA_LEAVE_SERVER)
        wrong("a server was left that has no data of its own");
    if (actions & (ZKL_SA_REPLACE_HANDLE | ZKL_SA_DROP_HANDLE | ZKL_SA_ADOPT_PROBE | ZKL_SA_CLOSED))
        drop(c, &c->current, fake_close);
    if (actions & ZKL_SA_FAIL)
        drop(c, &c->current, fake_kill); /* libzookeeper ends without the session's end */
    if (actions & ZKL_SA_REPLACE_HANDLE)
        c->open_current = true;
    if (actions & ZKL_SA_ADOPT_PROBE) {
        c->current = c->probe;
        c->probe = NULL;
    }
    if (actions & ZKL_SA_DROP_PROBE) {
        drop(c, &c->probe, fake_close);
        c->open_probe = false;
    }
    if (actions & ZKL_SA_OPEN_PROBE)
        c->open_probe = true;
}

bool client_opens(struct client *c)
{
    bool current = c->open_current && !c->current, probe = c->open_probe && !c->probe;
    if (current)
        c->current = handle_opens(c);
    if (probe)
        c->probe = handle_opens(c);
    c->open_current = c->open_probe = false;
    return current || probe;
}

static void port_random(struct zkl_port *port, unsigned char bytes[16])
{
    client_draws(client_of(port), bytes);
}

static void note_move(void *arg, const struct zkl_contender_machine *m,
                      enum zkl_contender_state from, const char *why)
{
    struct client *c = arg;
    const struct zkl_contender *contender = (const struct zkl_contender *)m;
    if (saying)
        say("  %d #%llu %s -> %s: %s", name_of(c), (unsigned long long)contender->number,
            zkl_contender_state_name(from), zkl_contender_state_name(m->state), why);
    bool numbered = strcmp(why, "nobody came between") == 0;
    bool member = m->lock_request.together || is_of_a_transaction(c, m);
    contender_moved(c, m, from, numbered, member);
    /* Those of one transaction are granted once the zxid is known, without another look at each node: whoever
     * deletes one by hand meanwhile has deleted that of a holder. */
    if (m->state == ZKL_CONTENDER_HOLDING && from != ZKL_CONTENDER_CONFIRMING &&
        !(numbered && member))
        check_hold(c, m);
}

/* Of the machines that have no tracer. */
static void port_trace(struct zkl_port *port, const struct zkl_trace *trace)
{
    struct client *c = client_of(port);
    char line[ZKL_TRACE_MAX];
    machine_moved(c, trace);
    if (!saying)
        return;
    zkl_trace_format(trace, line);
    must(line[0] == '[' && strlen(line) < ZKL_TRACE_MAX - 1);
    say("  %d %s", name_of(c), line);
}

void client_begin(struct client *c, int timeout_ms, int declared_ms)
{
    c->port = (struct zkl_port){.send = port_send,
                                .notification = port_notification,
                                .session = port_session,
                                .random = port_random,
                                .trace = port_trace};
    zkl_core_init(&c->core, &c->port, timeout_ms, declared_ms);
    c->core.tracer = (struct zkl_tracer){note_move, c};
    for (size_t i = 0; i < sizeof c->paths / sizeof *c->paths; i++)
        c->paths[i] = zkl_path_of(root_paths[i]);
    c->gate = zkl_path_of(GATE);
}

void client_dies(struct client *c)
{
    client_drop_handles(c, fake_kill);
    c->dead = true; /* what follows only frees its memory */
    zkl_core_close(&c->core, now_of(c));
    while (c->core.first)
        zkl_core_abandon(&c->core, now_of(c), c->core.first, ZKL_REASON_OWNER_EXITED);
    zkl_core_fini(&c->core);
    owners_forget(c);
}

/* --- what the core hears -------------------------------------------------- */

static void tell_link(struct client *c, struct fake_handle *h, int type)
{
    static const enum zkl_session_event_type types[] = {
        [FAKE_UP] = ZKL_SE_UP, [FAKE_DOWN] = ZKL_SE_DOWN, [FAKE_EXPIRED] = ZKL_SE_EXPIRED};
    bool up = type == FAKE_UP;
    struct zkl_session_event event = {.type = types[type],
                                      .now = now_of(c),
                                      .session = h->claimed ? h->claimed : h->session,
                                      .timeout_ms = h->timeout_ms,
                                      .opened_boot_ns = boot_of(c, h->opened_ms),
                                      .first = up && ++h->links == 1};
    say("[%6lld] %d < %s%s", (long long)c->world->fake.now_ms, name_of(c),
        up                  ? "up"
        : type == FAKE_DOWN ? "down"
                            : "expired",
        h == c->probe ? " (probe)" : "");
    if (link_is_late(c, h, type))
        event.type = ZKL_SE_DOWN;
    if (h == c->probe)
        event.type = event.type == ZKL_SE_UP ? ZKL_SE_PROBE_UP : ZKL_SE_PROBE_DOWN;
    zkl_core_session_event(core_of(c), &event);
    if (type == FAKE_EXPIRED && h == c->probe) {
        drop(c, &c->probe, fake_close);
        c->open_probe = true;
    }
}

bool client_is_told(struct client *c, struct fake_handle *h)
{
    struct fake_message *message = h ? fake_next(h) : NULL;
    if (!message)
        return false;
    if (message->type == FAKE_REPLY && h == c->current) {
        say("[%6lld] %d < (%llu) %d %s", (long long)c->world->fake.now_ms, name_of(c),
            (unsigned long long)message->reply.id, message->reply.answer,
            message->reply.name ? message->reply.name : "");
        reply_comes(c, message);
        zkl_core_reply(core_of(c), now_of(c), &message->reply);
    } else if (message->type == FAKE_FIRED && h == c->current) {
        say("[%6lld] %d < fired %s", (long long)c->world->fake.now_ms, name_of(c), message->path);
        for (size_t i = 0; i < message->id_count; i++)
            zkl_core_fired(core_of(c), now_of(c), message->ids[i], message->fired);
    } else if (message->type != FAKE_REPLY && message->type != FAKE_FIRED) {
        tell_link(c, h, (int)message->type);
    }
    fake_message_free(message);
    return true;
}
