/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target core: the bytes are events for one core, with everything that can own something
 * there. The server may answer requests with anything, in their order; links may break and
 * sessions end at any time; owners keep to the rules. Each event is checked: owners get their
 * notifications in an order that makes sense, nobody gets a lock unless a list showed that it
 * was theirs, counters are what they count, and the core asks for nothing that can't be asked
 * for. At the end every owner leaves, once, and neither memory nor a watch nor a request stays.
 * Asserts in the core are part of it. With FUZZ_TRACE in the environment a replay prints what
 * happens. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/due.h"
#include "core/opcode.h"
#include "core/watch.h"
#include "stream.h"

#define BOOT_AHEAD_NS (5000 * 1000 * MS)
#define EVENTS 2000

static struct stream the_stream;

void say(const struct stream *s, const char *format, ...)
{
    va_list args;
    if (!s->verbose)
        return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* --- memory --------------------------------------------------------------- */

/* The program is linked so that the core's malloc and calloc come here. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

static int spare = -1; /* this many allocations succeed before one fails; negative: all do */

static bool is_refused(void)
{
    return spare >= 0 && spare-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return is_refused() ? NULL : __real_calloc(n, size);
}

/* --- the port ------------------------------------------------------------- */

static struct stream *stream_of(struct zkl_port *port)
{
    return (struct stream *)((char *)port - offsetof(struct stream, port));
}

static void check_path(const struct zkl_request *r, const char *path)
{
    bool whole =
        strcmp(path, "/") == 0 && (r->kind == ZKL_REQ_KEEPALIVE || r->kind == ZKL_REQ_STAT);
    must(whole || !zkl_node_path_fault(path));
}

static enum zkl_answer port_send(struct zkl_port *port, const struct zkl_request *r)
{
    struct stream *s = stream_of(port);
    must(zkl_session_connected(&s->core.session) || r->kind == ZKL_REQ_KEEPALIVE);
    must(r->path || r->check_count > 0);
    if (r->path)
        check_path(r, r->path);
    for (size_t i = 0; i < r->check_count; i++)
        check_path(r, r->checks[i]);
    return server_send(s, r);
}

static void port_notification(struct zkl_port *port, struct zkl_contender *c,
                              const struct zkl_notification *news)
{
    owners_notification(stream_of(port), c, news);
}

static void port_session(struct zkl_port *port, unsigned actions)
{
    struct stream *s = stream_of(port);
    say(s, "  session: %#x", actions);
    if (actions & (ZKL_SA_EXPIRE | ZKL_SA_CLOSED | ZKL_SA_FAIL))
        server_forget(s);
    if (actions & ZKL_SA_ADOPT_PROBE)
        s->session = s->core.session.id;
}

static void port_random(struct zkl_port *port, unsigned char bytes[16])
{
    unsigned number = ++stream_of(port)->guids;
    memset(bytes, 0, 16);
    memcpy(bytes, &number, sizeof number);
}

static void port_trace(struct zkl_port *port, const struct zkl_trace *trace)
{
    char line[ZKL_TRACE_MAX];
    zkl_trace_format(trace, line);
    must(line[0] == '[' && strlen(line) < ZKL_TRACE_MAX - 1);
    say(stream_of(port), "%s", line);
}

/* --- what is true after each event ---------------------------------------- */

static size_t count_awaited(const struct zkl_core *core)
{
    size_t awaited = 0;
    for (size_t i = 0; i < ZKL_PENDING_BUCKETS; i++) {
        for (const struct zkl_pending *slot = core->pending[i]; slot; slot = slot->next)
            awaited++;
    }
    return awaited;
}

/* One for each path and kind. */
static size_t count_watches(const struct zkl_core *core)
{
    size_t watches = 0;
    for (size_t i = 0; i < ZKL_WATCH_BUCKETS; i++) {
        for (const struct zkl_watch *w = core->watches[i]; w; w = w->next) {
            watches++;
            for (const struct zkl_watch *other = w->next; other; other = other->next)
                must(w->type != other->type || strcmp(w->path, other->path) != 0);
        }
    }
    return watches;
}

static void check_contenders(const struct zkl_core *core, size_t questions)
{
    size_t counts[ZKL_COUNTS] = {[ZKL_COUNT_WAITS] = questions};
    for (const struct zkl_contender *c = core->first; c; c = c->next) {
        const struct zkl_contender_machine *m = &c->machine;
        must(m->state != ZKL_CONTENDER_ENDED && (c->next ? c->next->prev == c : core->last == c));
        for (unsigned i = 0; i < ZKL_COUNTS; i++)
            counts[i] += zkl_contender_counts(m) >> i & 1;
    }
    must(memcmp(counts, core->counts, sizeof counts) == 0);
}

static void check_all(struct stream *s)
{
    const struct zkl_core *core = &s->core;
    size_t questions = 0, parked = 0;
    s->left_watches = s->left_watches || zkl_opcode_is_unknown(core, ZKL_OPCODE_REMOVE_WATCHES);
    for (const struct zkl_query *q = core->queries; q; q = q->next) {
        questions++;
        parked += q->parked;
    }
    check_contenders(core, questions);
    must(parked == core->parked);
    must(count_awaited(core) == core->pending_count);
    must(count_watches(core) == core->watch_count);
    must(core->watch_bytes <= core->watch_bytes_max);
    must(core->ephemeral_bytes <= core->ephemeral_bytes_max);
    must(!core->refused && !zkl_due_any(core));
    owners_check(s);
}

/* --- time ----------------------------------------------------------------- */

/* The timer is called whenever it is due, and is not due again immediately for ever. */
static void run_until(struct stream *s, int64_t mono_ns)
{
    int calls = 0;
    while (zkl_core_next_timeout(&s->core, s->now) <= mono_ns) {
        int64_t due = zkl_core_next_timeout(&s->core, s->now), step = due - s->now.mono_ns;
        if (step > 0) {
            s->now.mono_ns += step;
            s->now.boot_ns += step;
            calls = 0;
        }
        must(++calls < 20);
        owners_note_states(s);
        zkl_core_timer(&s->core, s->now);
        check_all(s);
    }
    s->now.boot_ns += mono_ns - s->now.mono_ns;
    s->now.mono_ns = mono_ns;
}

static void pass_time(struct stream *s)
{
    static const int64_t steps[] = {1, 20, 100, 300, 1000, 3000};
    int64_t ms = steps[fuzz_below(&s->in, sizeof steps / sizeof *steps)];
    run_until(s, s->now.mono_ns + ms * MS);
}

/* The machine sleeps: one clock stands still, and no timer runs. */
static void sleep_on(struct stream *s)
{
    int64_t ms = 100 * (int64_t)fuzz_byte(&s->in);
    s->now.boot_ns += ms * MS;
    s->now.mono_ns += fuzz_flag(&s->in) ? ms * MS : 0;
}

/* --- the session ---------------------------------------------------------- */

static void session_event(struct stream *s, enum zkl_session_event_type type, int64_t session)
{
    struct zkl_session_event event = {.type = type,
                                      .now = s->now,
                                      .session = session,
                                      .timeout_ms = TIMEOUT_MS,
                                      .opened_boot_ns = s->now.boot_ns,
                                      .first = s->core.session.id == 0};
    zkl_core_session_event(&s->core, &event);
}

static void link_up(struct stream *s, bool same)
{
    server_tell_lost(s);
    s->session += !same;
    session_event(s, ZKL_SE_UP, s->session);
}

static void link_down(struct stream *s)
{
    session_event(s, ZKL_SE_DOWN, 0);
    server_lose(s);
    if (fuzz_flag(&s->in))
        server_tell_lost(s);
}

static void refuse_credential(struct stream *s)
{
    s->failed = true;
    session_event(s, ZKL_SE_AUTH_FAILED, 0);
}

static void close_core(struct stream *s)
{
    s->closed = true;
    zkl_core_close(&s->core, s->now);
}

static void act_as_link(struct stream *s)
{
    switch (fuzz_below(&s->in, 16)) {
    case 0:
        session_event(s, ZKL_SE_EXPIRED, 0);
        break;
    case 1:
        session_event(s, ZKL_SE_PROBE_UP, s->session + 1000);
        break;
    case 2:
        session_event(s, ZKL_SE_PROBE_DOWN, 0);
        break;
    case 3:
        link_up(s, false);
        break;
    case 4:
        if (fuzz_byte(&s->in) == 'x') /* what follows is short */
            refuse_credential(s);
        break;
    case 5:
        if (fuzz_byte(&s->in) == 'x')
            close_core(s);
        break;
    case 6:
    case 7:
    case 8:
        link_down(s);
        break;
    default:
        link_up(s, true);
        break;
    }
}

/* Requests, and memory. */
static void refuse(struct stream *s)
{
    static const enum zkl_answer answers[] = {ZKL_ANSWER_OK, ZKL_ANSWER_OK, ZKL_ANSWER_NOMEM,
                                              ZKL_ANSWER_LINK};
    s->server.refuse = answers[fuzz_below(&s->in, 4)];
    spare = (int)fuzz_below(&s->in, 8) - 4;
}

/* An answer that came before, and comes again. */
static void answer_again(struct stream *s)
{
    for (size_t i = 0; i < s->server.request_count; i++) {
        if (s->server.requests[i].id == s->server.answered)
            return;
    }
    zkl_core_reply(&s->core, s->now, &(struct zkl_reply){.id = s->server.answered});
}

static void one_event(struct stream *s)
{
    unsigned what = fuzz_below(&s->in, 32);
    say(s, "event %u", what);
    owners_note_states(s);
    if (what < 12)
        server_answer(s, false);
    else if (what < 21)
        owners_act(s);
    else if (what < 24)
        act_as_link(s);
    else if (what < 27)
        pass_time(s);
    else if (what < 28)
        server_fire(s);
    else if (what < 29)
        server_interfere(s);
    else if (what < 30)
        refuse(s);
    else if (what < 31)
        sleep_on(s);
    else
        answer_again(s);
    check_all(s);
}

/* --- from the beginning to the end ---------------------------------------- */

static void begin(struct stream *s, struct fuzz_bytes in)
{
    unsigned how = fuzz_byte(&in);
    memset(s, 0, offsetof(struct stream, server));
    memset(s->owners, 0, sizeof *s - offsetof(struct stream, owners));
    s->server.request_count = s->server.node_count = 0;
    s->server.watch_count = s->server.answered = 0;
    s->server.zxid = 100;
    s->server.counter = (int32_t)(how / 16 % 4) * (ZKL_SEQUENCE_HARD / 3 - 2);
    s->server.refuse = ZKL_ANSWER_OK;
    memset(s->server.watches, 0, sizeof s->server.watches);
    for (size_t i = 0; i < ASKS; i++)
        s->asks[i].owners = &s->owners[SINGLES + MEMBERS * (i + 1)];
    s->verbose = getenv("FUZZ_TRACE") != NULL;
    s->in = in;
    s->session = 10;
    s->now = (struct zkl_time){1000 * MS, 1000 * MS + BOOT_AHEAD_NS};
    s->view.permits = (int)(how / 4 % 4);
    s->port = (struct zkl_port){.send = port_send,
                                .notification = port_notification,
                                .session = port_session,
                                .random = port_random,
                                .trace = port_trace};
    zkl_core_init(&s->core, &s->port, TIMEOUT_MS, 0);
    owners_init(s);
    s->core.first_read_wanted = how & 1;
    if (how >> 6 == 3)
        s->core.watch_bytes_max = 200; /* a few watches */
    s->core.share_from = 1 + how % 4;
    s->core.unlisted_from = how % 3;
    if (how & 2)
        link_up(s, true);
}

/* The server is well, and answers what is true. */
/* Those that the server did not remove stay until they fire, also if it would now. */
static bool watches_are_gone(const struct stream *s)
{
    return s->core.watch_count == 0 || s->left_watches;
}

static void leave_in_peace(struct stream *s)
{
    for (int i = 0; i < 3000; i++) {
        if (owners_are_gone(s) && s->server.request_count == 0 && s->core.removals_due == 0 &&
            watches_are_gone(s))
            break;
        owners_note_states(s);
        if (!zkl_session_connected(&s->core.session))
            link_up(s, true);
        check_all(s);
        owners_go(s);
        server_answer(s, true);
        run_until(s, s->now.mono_ns + 20 * MS);
        check_all(s);
    }
    must(owners_are_gone(s) && !s->core.first);
    must(s->core.pending_count == 0 && watches_are_gone(s) && !s->core.removing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stream *s = &the_stream;
    struct fuzz_bytes in = {data, data + size};
    bool closes = fuzz_flag(&in);
    spare = -1;
    begin(s, in);
    for (int i = 0; i < EVENTS && fuzz_left(&s->in) > 0; i++)
        one_event(s);

    s->server.refuse = ZKL_ANSWER_OK;
    spare = -1;
    s->in.at = s->in.end;
    owners_note_states(s);
    if (closes)
        close_core(s);
    leave_in_peace(s);
    zkl_core_fini(&s->core);
    return 0;
}
