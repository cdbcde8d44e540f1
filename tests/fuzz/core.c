/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target core: a schedule of the simulation (tests/sim), with all that it asks. The first bytes choose its
 * world, each one behind them one step of chaos: what happens in a step follows from its byte alone. So the fuzzer
 * looks for worlds and orders of steps that lead to where no other has been.
 *
 * More comes than the simulation has. In some worlds the core's requests for memory are refused now and then. In
 * others its server answers with what can't be: other codes, lists without some, other numbers and data, an answer
 * that comes twice, an event of some watch, or of the session. In odd ones, too, names are of all kinds, handles don't
 * know the number of permits, and a first read is wanted. There nothing is asked, from the first lie on, that only the
 * truth can answer; but owners still get their notifications in an order that makes sense, nobody holds by a list that
 * shows somebody before, the core counts right, and when the clients close all of it is gone.
 *
 * Asserts in the core are part of it. With FUZZ_TRACE in the environment a replay prints what happens. */
#include <stdarg.h>

#include "core/queue.h"
#include "sim/world.h"

#define HEAD 4 /* bytes that choose the world */
#define LIES_ONCE_IN 8
#define SCARCE_ONCE_IN 16
#define LISTED_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    bool lies, scarce, odd; /* what may happen */
    bool lied, refused;     /* what has */
    struct fake_prng prng;
    int step;              /* that this draws for */
    const char *list_path; /* NULL: the answer that comes is no list; */
    const struct zkl_reply *list;
} liar;

void wrong(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs(" (not true)\n", stderr);
    abort();
}

/* By the step's byte, too. */
static unsigned draw(unsigned n)
{
    int step = schedule_step();

    if (step != liar.step)
        liar.prng.state = (uint64_t)step << 8 | (step < schedule_steps ? schedule_bytes[step] : 0);
    liar.step = step;
    return fake_random(&liar.prng, n);
}

/* What the linker puts in the place of a function of that name (meson.build). */
#define WRAP(type, name, parameters)                                                               \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters

/* --- memory --------------------------------------------------------------- */

static int spare = -1; /* this many allocations succeed before one fails; negative: all do */

static bool is_refused(void)
{
    bool refused = spare >= 0 && spare-- == 0;

    liar.refused = liar.refused || refused;
    return refused;
}

/* The core's come here, those of the tests' own files do not. */
WRAP(void *, malloc, (size_t size))
{
    return is_refused() ? NULL : malloc(size);
}

WRAP(void *, calloc, (size_t n, size_t size))
{
    return is_refused() ? NULL : calloc(n, size);
}

/* --- lies ----------------------------------------------------------------- */

/* What an answer points to; good until the next one. */
static const char *listed[LISTED_MAX];
static char renamed[ZKL_NODE_NAME_MAX + 12];

/* A number that is used up, or not to be expected. */
static const char *with_another_number(const char *name)
{
    static const int32_t odd[] = {0,  1,        ZKL_SEQUENCE_HARD - 1, ZKL_SEQUENCE_HARD, INT32_MAX,
                                  -1, INT32_MIN};
    size_t length = strlen(name);

    snprintf(renamed, sizeof renamed, "%.*s%010d", length > 10 ? (int)length - 10 : 0, name,
             odd[draw(sizeof odd / sizeof *odd)]);
    return renamed;
}

static void lie_about_children(struct zkl_reply *reply)
{
    unsigned without = liar.list_path ? draw(256) : 0, other = draw(8);
    size_t count = 0;

    for (size_t i = 0; i < reply->child_count && count < LISTED_MAX; i++) {
        if (without >> i % 8 & 1)
            continue;
        listed[count++] = i == other ? with_another_number(reply->children[i]) : reply->children[i];
    }
    reply->children = listed;
    reply->child_count = count;
}

static void lie_about_data(struct zkl_reply *reply)
{
    static const char *const data[] = {"3", "2", "1", "100000", "", "note", ZKL_REVOCATION, NULL};

    reply->data = data[draw(sizeof data / sizeof *data)];
    reply->data_size = reply->data ? strlen(reply->data) : 0;
    reply->version = (int32_t)draw(3);
}

static void lie_about_code(struct zkl_reply *reply)
{
    static const enum zkl_answer answers[] = {
        ZKL_ANSWER_LINK,   ZKL_ANSWER_NONODE,        ZKL_ANSWER_EXISTS,    ZKL_ANSWER_NOTEMPTY,
        ZKL_ANSWER_NOAUTH, ZKL_ANSWER_UNIMPLEMENTED, ZKL_ANSWER_NOWATCHER, ZKL_ANSWER_QUOTA,
        ZKL_ANSWER_NOMEM,  ZKL_ANSWER_ROLLED_BACK,   ZKL_ANSWER_OTHER};

    *reply = (struct zkl_reply){.id = reply->id,
                                .answer = answers[draw(sizeof answers / sizeof *answers)],
                                .stamp = reply->stamp,
                                .failed_check = draw(MEMBERS + 1)};
}

static void lie_about(struct zkl_reply *reply)
{
    unsigned what = reply->answer == ZKL_ANSWER_OK ? draw(6) : 0;

    if (what == 0)
        lie_about_code(reply);
    else if (what == 1)
        reply->node_session++;
    else if (what == 2)
        reply->czxid = draw(2);
    else if (reply->name)
        reply->name = with_another_number(reply->name);
    else if (reply->children)
        lie_about_children(reply);
    else
        lie_about_data(reply);
}

static void lie_about_session(struct client *c)
{
    static const enum zkl_session_event_type types[] = {
        ZKL_SE_UP, ZKL_SE_UP, ZKL_SE_DOWN, ZKL_SE_EXPIRED, ZKL_SE_PROBE_UP, ZKL_SE_PROBE_DOWN};
    struct zkl_session_event event = {.type = types[draw(6)],
                                      .now = now_of(c),
                                      .session = c->core.session.id + draw(2),
                                      .timeout_ms = FAKE_TIMEOUT_MS,
                                      .opened_boot_ns = now_of(c).boot_ns,
                                      .first = c->core.session.id == 0};

    say("  a lie: session event %d", event.type);
    zkl_core_session_event(&c->core, &event);
}

static void begin_to_lie(struct world *w)
{
    liar.lied = true;
    w->denied = w->strangers = true; /* by a lie, a node is denied, and order is lost */
}

WRAP(void, zkl_core_reply,
     (struct zkl_core * core, struct zkl_time now, const struct zkl_reply *reply))
{
    struct world *w = ((struct client *)core)->world;
    struct zkl_reply told = *reply;
    bool lies = liar.lies && !w->healing && draw(LIES_ONCE_IN) == 0;

    if (w->healing) {
        spare = -1;
    } else if (liar.scarce && draw(SCARCE_ONCE_IN) == 0) {
        w->out_of_memory = true;
        spare = (int)draw(4);
    }
    if (lies) {
        begin_to_lie(w);
        lie_about(&told);
        say("  a lie: %d, %zu children", told.answer, told.child_count);
    }
    liar.list = &told;
    __real_zkl_core_reply(core, now, &told);
    liar.list_path = NULL;
    if (lies && draw(4) == 0)
        __real_zkl_core_reply(core, now, &(struct zkl_reply){.id = told.id});
    if (lies && draw(4) == 0)
        zkl_core_fired(core, now, 1 + draw(64), draw(2) ? ZKL_FIRED_DELETED : ZKL_FIRED_OTHER);
    if (lies && draw(8) == 0 && !client_is_gone((struct client *)core))
        lie_about_session((struct client *)core);
}

WRAP(void, client_begin, (struct client * c, int timeout_ms, int declared_ms))
{
    __real_client_begin(c, timeout_ms, declared_ms);
    if (!liar.odd)
        return;
    begin_to_lie(c->world);
    c->core.first_read_wanted = true;
    c->view.permits = 0;
}

WRAP(void, owner_start, (struct owner * o, struct zkl_lock_request *lock_request))
{
    struct zkl_naming *naming = &lock_request->naming;

    if (liar.odd && o->kind == PART_LOCK && naming->role == ZKL_ROLE_LOCK) {
        naming->names = (enum zkl_names)draw(3);
        if (naming->names == ZKL_NAMES_NAMED)
            strcpy(naming->name, "mine");
        lock_request->unlisted = lock_request->unlisted && naming->names != ZKL_NAMES_NAMED;
    }
    __real_owner_start(o, lock_request);
}

/* --- what is asked instead of what only the truth can answer --------------- */

/* Not the checks, once a lie was told. */
#define TRUTH(name, parameters, arguments)                                                         \
    WRAP(void, name, parameters)                                                                   \
    {                                                                                              \
        if (!liar.lied)                                                                            \
            __real_##name arguments;                                                               \
    }

TRUTH(check_grant, (struct world * w, const struct place *place), (w, place))
TRUTH(check_hold, (const struct client *c, const struct zkl_contender_machine *m), (c, m))
TRUTH(check_loss, (struct world * w, const struct place *place, int reason), (w, place, reason))
TRUTH(check_expiry, (struct world * w, int64_t session), (w, session))
TRUTH(check_opening, (struct client * c), (c))
TRUTH(check_world, (struct world * w), (w))
TRUTH(reader_came_in, (struct client * c), (c))
TRUTH(permits_were_granted, (struct owner * o), (o))

WRAP(void, check_process, (struct client * c))
{
    if (!liar.lied) {
        __real_check_process(c);
    } else if (!c->dead) {
        check_figures(c, true);
        queries_check(c);
    }
}

WRAP(void, check_unlocked, (struct world * w, const struct unlocked *unlocked, int code))
{
    if (!liar.lied)
        __real_check_unlocked(w, unlocked, code);
    must(code == ZKL_OK || code == ZKL_ELOST || code == ZKL_EUNCONFIRMED || code == ZKL_EDOUBT ||
         code == ZKL_EACCES);
}

WRAP(void, check_answer,
     (const struct client *c, const struct zkl_query *query, int code,
      const struct zkl_reply *reply))
{
    if (!liar.lied)
        __real_check_answer(c, query, code, reply);
    must(reply || code == ZKL_ECLOSED || code == ZKL_EAUTH);
    must((reply != NULL) == (code == 0));
    must(!reply || reply->answer != ZKL_ANSWER_LINK || query->once);
}

/* A lie may be why, except for what the owner or the client does itself. */
WRAP(bool, may_fail, (const struct client *c, int code))
{
    if (!liar.lied)
        return __real_may_fail(c, code);
    return code < 0 && code != ZKL_ETIMEDOUT && code != ZKL_ECANCELED && code != ZKL_EBUSY &&
           code != ZKL_EUNPROVED && (code != ZKL_ECLOSED || c->closed) &&
           (code != ZKL_EAUTH || c->refused);
}

/* Whom a lie keeps waiting leaves as its client closes; or a node of which the core could keep no note, for want of
 * memory (src/core/leftovers.c). */
WRAP(bool, check_done, (const struct world *w))
{
    for (int i = 0; (liar.lied || liar.refused) && i < w->client_count; i++)
        proc_close((struct client *)&w->clients[i]);
    return __real_check_done(w);
}

WRAP(void, reply_comes, (struct client * c, const struct fake_message *message))
{
    enum zkl_request_kind kind = message->request.kind;
    bool is_list = kind == ZKL_REQ_LIST || kind == ZKL_REQ_LIST_LOCK_PATH;

    liar.list_path = is_list ? message->request.path : NULL;
    __real_reply_comes(c, message);
}

WRAP(void, check_nothing_left, (struct world * w))
{
    if (!liar.lied && !liar.refused)
        __real_check_nothing_left(w);
}

static bool is_first(enum zkl_contender_state state)
{
    return state == ZKL_CONTENDER_CONFIRMING || state == ZKL_CONTENDER_HOLDING;
}

/* By the list that came, whatever it says, nobody was before; or without one, where that is enough. */
WRAP(void, contender_moved,
     (struct client * c, const struct zkl_contender_machine *m, enum zkl_contender_state from,
      bool numbered, bool member))
{
    const struct zkl_naming *naming = &m->lock_request.naming;

    __real_contender_moved(c, m, from, numbered, member);
    if (!is_first(m->state) || is_first(from) || m->downgrade_from[0])
        return;
    if (!liar.list_path || strcmp(liar.list_path, m->lock_request.path->text) != 0) {
        must(numbered || member ||
             (from == ZKL_CONTENDER_WAITING && naming->role == ZKL_ROLE_LOCK &&
              m->pred_is_exclusive_mutex));
        return;
    }
    struct zkl_look look =
        zkl_queue_position(naming, liar.list->children, liar.list->child_count, m->node);
    must(look.present);
    must(naming->role == ZKL_ROLE_PERMIT ? look.contenders <= (size_t)m->limit.permits
                                         : look.before == 0);
}

static void check_path(const struct zkl_request *request, const char *path)
{
    bool whole = strcmp(path, "/") == 0 &&
                 (request->kind == ZKL_REQ_KEEPALIVE || request->kind == ZKL_REQ_STAT);
    must(whole || !zkl_node_path_fault(path));
}

/* The core asks for nothing that can't be asked for. */
WRAP(enum zkl_answer, client_sends, (struct client * c, const struct zkl_request *request))
{
    must(zkl_session_connected(&c->core.session) || request->kind == ZKL_REQ_KEEPALIVE);
    must(request->path || request->check_count > 0);
    if (request->path)
        check_path(request, request->path);
    for (size_t i = 0; i < request->check_count; i++)
        check_path(request, request->checks[i]);
    return __real_client_sends(c, request);
}

/* --- from the beginning to the end ---------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tally tally;
    uint8_t head[HEAD] = {0};

    memcpy(head, data, size < HEAD ? size : HEAD);
    schedule_bytes = data + HEAD;
    schedule_steps = size < HEAD ? 0 : (int)(size - HEAD);
    liar = (typeof(liar)){
        .lies = head[0] & 1, .scarce = head[0] & 2, .odd = (head[0] & 5) == 5, .step = -2};
    spare = -1;
    say_to = getenv("FUZZ_TRACE") ? stderr : NULL;
    schedule_run(head[1] | (uint64_t)head[2] << 8 | (uint64_t)head[3] << 16, NULL, &tally);
    spare = -1;
    return 0;
}
