/* SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include "../sim/kinds.h"

#define HOUR_NS (3600000 * MS)
#define BOOT_AHEAD_MS 5000000

static struct script the_script;
struct script *const s = &the_script;

struct zkl_time script_now(void)
{
    return (struct zkl_time){s->now_ms * MS, (s->now_ms + BOOT_AHEAD_MS) * MS};
}

/* --- recording ------------------------------------------------------------ */

/* The n-th GUID is made of bytes n: only its first two digits matter here. */
static void short_names(const char *from, char *out, size_t size)
{
    const char *node = strstr(from, "_c_");
    char digits[3] = {0};
    if (!node || strlen(node) < 3 + ZKL_GUID_LEN + 6) {
        snprintf(out, size, "%s", from);
        return;
    }
    memcpy(digits, node + 3, 2);
    int n = snprintf(out, size, "%.*sG%ld-%s", (int)(node - from), from, strtol(digits, NULL, 16),
                     node + 3 + ZKL_GUID_LEN + 6);
    assert_true(n > 0 && (size_t)n < size);
}

void script_record(const char *format, ...)
{
    va_list args;
    if (s->quiet)
        return;
    va_start(args, format);
    size_t room = sizeof s->text - s->length;
    int n = vsnprintf(s->text + s->length, room, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n + 2 < room);
    s->length += (size_t)n;
    s->text[s->length++] = '\n';
    s->text[s->length] = '\0';
}

void script_forget(void)
{
    s->length = 0;
    s->text[0] = '\0';
}

/* --- the port ------------------------------------------------------------- */

static void record_checks(const struct zkl_request *r, char *out, size_t size)
{
    char names[3][SCRIPT_NAME_MAX] = {"", "", ""}, more[SCRIPT_NAME_MAX] = "";
    for (size_t i = 0; i < r->check_count && i < 3; i++)
        short_names(r->checks[i], names[i], sizeof names[i]);
    if (r->check_count > 3)
        snprintf(more, sizeof more, " and %zu more", r->check_count - 3);
    snprintf(out, size, "%s%s%s%s%s%s", names[0], r->check_count > 1 ? " " : "", names[1],
             r->check_count > 2 ? " " : "", names[2], more);
}

static void record_request(const struct zkl_request *r, const char *how)
{
    char text[ZKL_PATH_MAX * 2] = "";
    if (r->path)
        short_names(r->path, text, sizeof text);
    else
        record_checks(r, text, sizeof text);
    if (r->kind == ZKL_REQ_SET)
        snprintf(text + strlen(text), sizeof text - strlen(text), " to %s", r->data);
    if ((r->kind == ZKL_REQ_SET || r->kind == ZKL_REQ_DELETE) && r->flag)
        snprintf(text + strlen(text), sizeof text - strlen(text), " (version %d)", r->version);
    script_record("  > %s %s%s%s%s", request_kinds[r->kind], text,
                  r->kind == ZKL_REQ_MAKE && r->flag ? " (persistent)" : "",
                  r->plain ? " (plain)" : "", how);
}

static enum zkl_answer port_send(struct zkl_port *port, const struct zkl_request *r)
{
    assert_ptr_equal(port, &s->port);
    assert_true(zkl_session_connected(&s->core.session) || r->kind == ZKL_REQ_KEEPALIVE);
    if (s->refuse[r->kind] != ZKL_ANSWER_OK) {
        assert_true(++s->refusals < 1000); /* a loop */
        record_request(r, s->refuse[r->kind] == ZKL_ANSWER_LINK ? " (refused: link)"
                                                                : " (refused: no memory)");
        return s->refuse[r->kind];
    }
    assert_true(s->request_count < sizeof s->requests / sizeof *s->requests);
    struct script_request *request = &s->requests[s->request_count++];
    request->id = r->id;
    request->kind = r->kind;
    request->watch_id = r->watch_id;
    request->stamp = r->stamp;
    snprintf(request->path, sizeof request->path, "%s", r->path ? r->path : "");
    if (s->keepalives || r->kind != ZKL_REQ_KEEPALIVE)
        record_request(r, "");
    return ZKL_ANSWER_OK;
}

const char *script_code(int code)
{
#define CODE(name)                                                                                 \
    {                                                                                              \
        ZKL_##name, #name                                                                          \
    }
    static const struct {
        int code;
        const char *name;
    } all[] = {CODE(OK),        CODE(ECLOSED),    CODE(EBUSY),
               CODE(ETIMEDOUT), CODE(ECANCELED),  CODE(EUNCONFIRMED),
               CODE(ELOST),     CODE(ESYSTEM),    CODE(EFULL),
               CODE(ENOMEM),    CODE(EACCES),     CODE(EAUTH),
               CODE(ENOCHROOT), CODE(EEXHAUSTED), CODE(EPROTO),
               CODE(EUNPROVED), CODE(EDOUBT),     CODE(EBADPATH),
               CODE(EQUOTA),    CODE(EREADONLY),  CODE(EUNIMPLEMENTED)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].code == code)
            return all[i].name;
    }
    return "another code";
}

static const char *const state_names[] = {"", "HELD", "SUSPECT", "LOST", "REVOKED"};
static const char *const reason_names[] = {"",           " (link)",         " (window)",
                                           " (expired)", " (node deleted)", " (lease)",
                                           " (closed)",  " (exited)",       " (unchecked)"};

static void port_notification(struct zkl_port *port, struct zkl_contender *c,
                              const struct zkl_notification *news)
{
    assert_ptr_equal(port, &s->port);
    int number = (int)c->number, index = (int)(c - s->contenders);
    char detail[SCRIPT_NAME_MAX] = "";
    assert_true(s->live[index]);
    if (news->detail)
        short_names(news->detail, detail, sizeof detail);
    switch (news->type) {
    case ZKL_NOTIFY_GRANTED:
        script_record("  #%d granted %lld", number, (long long)c->machine.czxid);
        break;
    case ZKL_NOTIFY_FAILED:
    case ZKL_NOTIFY_RELEASED:
        script_record("  #%d %s %s%s%s", number,
                      news->type == ZKL_NOTIFY_FAILED ? "failed" : "released",
                      script_code(news->code), detail[0] ? ": " : "", detail);
        break;
    case ZKL_NOTIFY_STATE:
        s->lost[index] += news->state == ZKL_HOLD_LOST;
        script_record("  #%d %s%s", number, state_names[news->state], reason_names[news->reason]);
        break;
    case ZKL_NOTIFY_ENDED:
        s->live[index] = false;
        script_record("  #%d ended", number);
        break;
    }
}

const char *script_actions(unsigned actions)
{
    static const char *const names[] = {"link up",    "link down",  "expired",     "replace handle",
                                        "open probe", "drop probe", "adopt probe", "failed",
                                        "closed",     "hello",      "drop handle", "leave server"};
    static char text[SCRIPT_NAME_MAX];
    text[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (actions & (1u << i))
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", text[0] ? ", " : "",
                     names[i]);
    }
    return text;
}

static void port_session(struct zkl_port *port, unsigned actions)
{
    assert_ptr_equal(port, &s->port);
    script_record("  session: %s", script_actions(actions));
}

static void port_random(struct zkl_port *port, unsigned char bytes[16])
{
    assert_ptr_equal(port, &s->port);
    memset(bytes, ++s->guids, 16);
}

static void port_trace(struct zkl_port *port, const struct zkl_trace *trace)
{
    char line[ZKL_TRACE_MAX];
    zkl_trace_format(trace, line);
    assert_ptr_equal(port, &s->port);
    script_record("%s", line);
}

/* --- life ----------------------------------------------------------------- */

void script_new(void)
{
    memset(s, 0, sizeof *s);
    s->zxid = 101;
    s->port = (struct zkl_port){.send = port_send,
                                .notification = port_notification,
                                .session = port_session,
                                .random = port_random,
                                .trace = port_trace};
    zkl_core_init(&s->core, &s->port, SCRIPT_TIMEOUT_MS, 0);
}

void script_connected(void)
{
    script_new();
    script_event(ZKL_SE_UP, SCRIPT_SESSION);
    script_forget();
}

void script_free(void)
{
    assert_null(s->core.first);
    for (int i = 0; i < ZKL_COUNTS; i++)
        assert_int_equal(s->core.counts[i], 0);
    assert_int_equal(s->core.parked, 0);
    assert_null(s->core.refused);
    zkl_core_fini(&s->core);
}

/* --- the owner ------------------------------------------------------------ */

struct zkl_path *script_path(const char *text)
{
    size_t i = 0;
    while (i < SCRIPT_PATHS && s->paths[i].text && strcmp(s->paths[i].text, text) != 0)
        i++;
    assert_true(i < SCRIPT_PATHS);
    if (!s->paths[i].text)
        s->paths[i] = zkl_path_of(text);
    return &s->paths[i];
}

void script_acquire(struct zkl_lock_request lock_request)
{
    size_t index = (size_t)s->core.last_number;
    assert_true(index < SCRIPT_CONTENDERS);
    lock_request.data = "owner";
    s->live[index] = true;
    zkl_core_acquire(&s->core, script_now(), &s->contenders[index], &lock_request);
}

struct zkl_contender *script_contender(int number)
{
    assert_true(number >= 1 && s->live[number - 1]);
    return &s->contenders[number - 1];
}

void script_close(void)
{
    zkl_core_close(&s->core, script_now());
    s->request_count = 0;
}

/* --- queries -------------------------------------------------------------- */

const char *const script_answers[] = {
    [ZKL_ANSWER_OK] = "OK",
    [ZKL_ANSWER_LINK] = "no answer",
    [ZKL_ANSWER_NONODE] = "no node",
    [ZKL_ANSWER_EXISTS] = "exists",
    [ZKL_ANSWER_NOTEMPTY] = "not empty",
    [ZKL_ANSWER_NOAUTH] = "no auth",
    [ZKL_ANSWER_UNIMPLEMENTED] = "unimplemented",
    [ZKL_ANSWER_NOWATCHER] = "no watcher",
    [ZKL_ANSWER_NOMEM] = "no memory",
    [ZKL_ANSWER_FULL] = "too many watches",
    [ZKL_ANSWER_QUOTA] = "quota",
    [ZKL_ANSWER_READONLY] = "read-only",
    [ZKL_ANSWER_BADPATH] = "bad path",
    [ZKL_ANSWER_AUTH] = "session refused",
    [ZKL_ANSWER_OTHER] = "something else",
};

static void on_query(struct zkl_query *query, int code, const struct zkl_reply *reply)
{
    int number = (int)(query - s->queries) + 1;
    memset(query, 0xee, sizeof *query); /* the core has no use for it any more */
    if (reply)
        script_record("  q%d: %s%s%.*s", number, script_answers[reply->answer],
                      reply->data ? " " : "", (int)reply->data_size,
                      reply->data ? reply->data : "");
    else
        script_record("  q%d: %s", number, script_code(code));
}

void script_ask(struct zkl_query query)
{
    assert_true(s->asked < SCRIPT_QUERIES);
    query.answered = on_query;
    s->queries[s->asked] = query;
    s->asked++;
    zkl_core_query(&s->core, script_now(), &s->queries[s->asked - 1]);
}

/* --- the link ------------------------------------------------------------- */

void script_event(enum zkl_session_event_type type, int64_t session)
{
    if (type == ZKL_SE_EXPIRED)
        s->request_count = 0;
    struct zkl_session_event event = {.type = type,
                                      .now = script_now(),
                                      .session = session,
                                      .timeout_ms = SCRIPT_TIMEOUT_MS,
                                      .opened_boot_ns = script_now().boot_ns,
                                      .unprovable = s->unprovable,
                                      .first = !s->was_up};
    s->was_up = type == ZKL_SE_EXPIRED ? false : s->was_up || type == ZKL_SE_UP;
    zkl_core_session_event(&s->core, &event);
    if (type == ZKL_SE_UP && !s->young)
        s->core.session.born.boot_ns = event.now.boot_ns - HOUR_NS;
}

static void reply_to(size_t index, struct zkl_reply *reply)
{
    reply->id = s->requests[index].id;
    reply->stamp = s->requests[index].stamp;
    memmove(&s->requests[index], &s->requests[index + 1],
            (--s->request_count - index) * sizeof *s->requests);
    zkl_core_reply(&s->core, script_now(), reply);
}

static bool awaited(uint64_t id)
{
    const struct zkl_pending *slot = s->core.pending[id % ZKL_PENDING_BUCKETS];
    while (slot && slot->id != id)
        slot = slot->next;
    return slot != NULL;
}

/* What the core has forgotten may be answered or not. */
static void drop_forgotten(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->request_count; i++) {
        if (awaited(s->requests[i].id))
            s->requests[kept++] = s->requests[i];
    }
    s->request_count = kept;
}

void script_down(bool hung_up)
{
    if (hung_up)
        drop_forgotten();
    size_t lost = s->request_count;
    script_event(ZKL_SE_DOWN, 0);
    while (lost-- > 0)
        reply_to(0, &(struct zkl_reply){.answer = ZKL_ANSWER_LINK, .hung_up = hung_up});
}

/* --- time ----------------------------------------------------------------- */

/* script_lock_path_listed says the czxid of a path's node; no other node has one that a keepalive
 * may query. */
static int64_t looked_at(void)
{
    const struct zkl_watch *watch = zkl_watch_find(&s->core, s->core.looked_at);
    return watch && watch->type == ZKL_WATCH_CHILD ? s->lock_path_czxid : 0;
}

static void answer_keepalives(void)
{
    for (size_t i = s->request_count; i-- > 0;) {
        if (s->requests[i].kind == ZKL_REQ_KEEPALIVE && !s->keepalives)
            reply_to(i, &(struct zkl_reply){.answer = ZKL_ANSWER_OK, .czxid = looked_at()});
    }
}

void script_at(int64_t ms)
{
    int calls = 0;
    for (;;) {
        int64_t due = zkl_core_next_timeout(&s->core, script_now());
        int64_t due_ms = due == INT64_MAX ? INT64_MAX : (due + MS - 1) / MS;
        if (due_ms > ms)
            break;
        assert_true(++calls < 10000); /* the service thread would spin */
        s->now_ms = due_ms > s->now_ms ? due_ms : s->now_ms;
        zkl_core_timer(&s->core, script_now());
        if (s->core.session.state == ZKL_SESSION_CONNECTED)
            answer_keepalives();
    }
    s->now_ms = ms;
}

/* --- the server ----------------------------------------------------------- */

bool script_next(enum zkl_request_kind *kind)
{
    drop_forgotten();
    *kind = s->request_count > 0 ? s->requests[0].kind : ZKL_REQUEST_KINDS;
    return s->request_count > 0;
}

static size_t oldest(enum zkl_request_kind kind)
{
    drop_forgotten();
    for (size_t i = 0; i < s->request_count; i++) {
        if (s->requests[i].kind == kind)
            return i;
    }
    fail_msg("nothing was asked for by %s; recorded:\n%s", request_kinds[kind], s->text);
    return 0;
}

void script_reply(enum zkl_request_kind kind, struct zkl_reply reply)
{
    reply_to(oldest(kind), &reply);
}

void script_created(int32_t number, int64_t czxid)
{
    char name[SCRIPT_NAME_MAX];
    size_t index = oldest(ZKL_REQ_CREATE);
    snprintf(name, sizeof name, "%s%010d", strrchr(s->requests[index].path, '/') + 1, number);
    reply_to(index, &(struct zkl_reply){.name = name, .czxid = czxid});
}

const char *script_child(const char *word, char *out)
{
    unsigned char bytes[16];
    char guid[ZKL_GUID_LEN + 1], prefix[ZKL_NODE_NAME_MAX + 1];
    const char *colon = strchr(word, ':');
    if (!colon) {
        snprintf(out, SCRIPT_NAME_MAX, "%s", word);
        return out;
    }
    bool marked = *word > '9';
    struct zkl_naming naming = {.role = *word == 'w'                   ? ZKL_ROLE_WRITE
                                        : *word == 'p'                 ? ZKL_ROLE_PERMIT
                                        : *word == 's' || *word == 'S' ? ZKL_ROLE_READ
                                                                       : ZKL_ROLE_LOCK};
    memset(bytes, atoi(word + marked), sizeof bytes);
    zkl_guid_format(bytes, guid);
    if (*word == 'r' || *word == 'S')
        zkl_guid_mark_retained(guid);
    zkl_name_prefix(&naming, guid, prefix);
    snprintf(out, SCRIPT_NAME_MAX, "%s%010d", prefix, atoi(colon + 1));
    return out;
}

void script_listed(enum zkl_request_kind kind, int64_t czxid, const char *children)
{
    static char words[4096], names[64][SCRIPT_NAME_MAX], text[TEXT_MAX];
    const char *list[64];
    size_t count = 0;
    snprintf(words, sizeof words, "%s", children);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        char letter = 0, one[40];
        int first = 0, last = 0, number = 0;
        bool several = sscanf(word, "%c%d..%d:%d", &letter, &first, &last, &number) == 4;
        for (int i = several ? first : 0; i <= (several ? last : 0); i++) {
            assert_true(count < 64);
            snprintf(one, sizeof one, "%c%d:%d", letter, i, number);
            if (strchr(word, '{')) {
                read_text(word, text);
                list[count] = keep(text);
            } else {
                list[count] = script_child(several ? one : word, names[count]);
            }
            count++;
        }
    }
    if (kind == ZKL_REQ_LIST_LOCK_PATH)
        s->lock_path_czxid = czxid;
    script_reply(kind, (struct zkl_reply){.children = list, .child_count = count, .czxid = czxid});
}

static uint64_t watch_on(const char *path)
{
    char name[ZKL_PATH_MAX * 2];
    for (int i = 0; i < ZKL_WATCH_BUCKETS; i++) {
        for (struct zkl_watch *w = s->core.watches[i]; w; w = w->next) {
            short_names(w->path, name, sizeof name);
            if (strcmp(name, path) == 0)
                return w->id;
        }
    }
    fail_msg("no watch on %s; recorded:\n%s", path, s->text);
    return 0;
}

void script_fired(const char *path, enum zkl_fired what)
{
    zkl_core_fired(&s->core, script_now(), watch_on(path), what);
}

/* --- shortcuts ------------------------------------------------------------ */

void script_queue(const char *root, int32_t number, const char *children)
{
    script_acquire((struct zkl_lock_request){.path = script_path(root)});
    char all[256];
    snprintf(all, sizeof all, "%d:%d %s", s->guids, number, children);
    script_created(number, s->zxid++);
    script_listed(ZKL_REQ_LIST, 0, all);
}

void script_wait(const char *root, int32_t number, const char *children)
{
    script_queue(root, number, children);
    while (s->request_count > 0 && s->requests[s->request_count - 1].kind == ZKL_REQ_WATCH)
        reply_to(s->request_count - 1, &(struct zkl_reply){.answer = ZKL_ANSWER_OK});
}
