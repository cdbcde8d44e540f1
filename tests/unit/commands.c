/* SPDX-License-Identifier: Apache-2.0
 * What the commands of a transcript do with a core. */
#include <ctype.h>

#include "core/bundle.h"
#include "core/opcode.h"
#include "core/place.h"
#include "core/transaction.h"
#include "core/unlisted_grant.h"
#include "driver/zkmap.h"
#include "script.h"

#include "../sim/kinds.h"

/* Memory that the core asks for: the program is linked so that malloc and calloc come here first. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

static bool out_of_memory;

void *__wrap_malloc(size_t size)
{
    return out_of_memory ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return out_of_memory ? NULL : __real_calloc(n, size);
}

/* --- words ---------------------------------------------------------------- */

/* As names are written in a transcript: in one word. */
static bool is_name(const char *name, const char *text)
{
    for (; *name && (*name == *text || (strchr(" -", *name) && *text == '_')); name++)
        text++;
    return !*name && !*text;
}

int index_of(const char *const *names, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i] && is_name(names[i], text))
            return (int)i;
    }
    fail_here("what is %s?", text);
}

/* By its name or its number. */
static enum zkl_request_kind kind(const struct command *c, size_t i)
{
    if (*word(c, i) >= '0' && *word(c, i) <= '9') {
        assert_in_range(number(c, i), 0, ZKL_REQUEST_KINDS - 1);
        return (enum zkl_request_kind)number(c, i);
    }
    return (enum zkl_request_kind)index_of(request_kinds, ZKL_REQUEST_KINDS, word(c, i));
}

static enum zkl_answer answer(const struct command *c, size_t i)
{
    return (enum zkl_answer)index_of(script_answers, ZKL_ANSWER_OTHER + 1, word(c, i));
}

static int code(const char *text)
{
    int value = 0;
    while (value > -100 && strcmp(script_code(value), text) != 0)
        value--;
    if (value == -100)
        fail_here("%s is no code", text);
    return value;
}

/* "key=value" */
const char *value_of(const char *text, const char *key)
{
    size_t length = strlen(key);
    return strncmp(text, key, length) == 0 && text[length] == '=' ? text + length + 1 : NULL;
}

/* A contender's number; "last": of who came last. */
static int who(const struct command *c)
{
    return strcmp(word(c, 1), "last") == 0 ? (int)s->core.last_number : (int)number(c, 1);
}

static struct zkl_contender *contender(const struct command *c)
{
    return script_contender(who(c));
}

const char *keep(const char *text)
{
    static char *kept[500];
    size_t i = 0;
    while (i < sizeof kept / sizeof *kept && kept[i] && strcmp(kept[i], text) != 0)
        i++;
    if (i == sizeof kept / sizeof *kept || (!kept[i] && !(kept[i] = strdup(text))))
        fail_here("too many texts");
    return kept[i];
}

void says_whether(const struct command *c, bool is)
{
    says(c, is ? "yes" : "no");
}

static struct zkl_path *path(const struct command *c, size_t i)
{
    return script_path(keep(word(c, i)));
}

static struct zkl_semaphore_view view; /* of permits at /s */

/* --- what is inside ------------------------------------------------------- */

/* By name: of the script, of its core, of a contender's machine (#1), of a path (/r); of a lock request, a query and a
 * reply. */
static const struct field {
    char of;
    const char *name;
    size_t offset, size;
} fields[] = {
#define NAMED(of, name, type, member) {of, name, offsetof(type, member), sizeof((type *)0)->member},
#define SCRIPT(name) NAMED('s', #name, struct script, name)
#define CORE(name) NAMED('s', #name, struct script, core.name)
#define MACHINE(name) NAMED('#', #name, struct zkl_contender, machine.name)
#define CONTENDER(name) NAMED('#', #name, struct zkl_contender, name)
#define VIEW(name) NAMED('v', #name, struct zkl_semaphore_view, name)
#define PATH(name) NAMED('/', #name, struct zkl_path, name)
#define REQUEST(name, member) NAMED('l', name, struct zkl_lock_request, member)
#define QUERY(name) NAMED('q', #name, struct zkl_query, name)
#define REPLY(name, member) NAMED('r', name, struct zkl_reply, member)
    /* clang-format off */
    SCRIPT(keepalives) SCRIPT(quiet) SCRIPT(unprovable) SCRIPT(young) SCRIPT(zxid)
    SCRIPT(port.trace) SCRIPT(request_count)
    CORE(first) CORE(first_read_wanted) CORE(group_commit.under_way) CORE(leftovers.count)
    CORE(pending_count) CORE(removals_due) CORE(removing) CORE(share_from) CORE(unlisted_from)
    CORE(sent[ZKL_REQ_KEEPALIVE]) CORE(session.born.boot_ns) CORE(session.born.mono_ns)
    CORE(session.useless) CORE(session.waits) CORE(chroot_length) CORE(suspicions)
    CORE(opcodes[ZKL_OPCODE_CREATE2].unknown) CORE(opcodes[ZKL_OPCODE_CONTAINER].unknown)
    CORE(group_commit.credit) CORE(group_commit.from) CORE(group_commit.held)
    CORE(opcodes[ZKL_OPCODE_MULTI].unknown) CORE(ephemeral_bytes) CORE(ephemeral_bytes_max)
    CORE(watch_bytes) CORE(watch_bytes_max) CORE(watch_count)
    MACHINE(contended) MACHINE(revoked) MACHINE(suspect) MACHINE(czxid) MACHINE(lease_end_boot)
    MACHINE(limit.out) MACHINE(list_out) MACHINE(limit.permits) MACHINE(on_server)
    MACHINE(pred_is_by_number) MACHINE(lock_request.posted)
    CONTENDER(delete_sent) CONTENDER(heir) CONTENDER(transaction)
    VIEW(agreed) VIEW(permits)
    PATH(unlisted.last) PATH(unlisted.live_count) PATH(unlisted.next_number) PATH(unlisted.streak)
    PATH(view.calm) PATH(view.cversion) PATH(view.czxid) PATH(view.link) PATH(view.own)
    PATH(view.singly_until_mono_ns) PATH(unlisted.row)
    REQUEST("try", try_only) REQUEST("sync", try_sync)
    REQUEST("behind_retained", try_behind_retained) REQUEST("watched", watch_own)
    REQUEST("unlisted", unlisted) REQUEST("retained", retained) REQUEST("posted", posted)
    REQUEST("views", views) REQUEST("together", together)
    QUERY(czxid) QUERY(version) QUERY(flag) QUERY(once)
    REPLY("check", failed_check) REPLY("session", node_session) REPLY("czxid", czxid)
    REPLY("version", version) REPLY("cversion", cversion) REPLY("pzxid", pzxid)
    REPLY("number", number)
    /* clang-format on */
};

static const struct field *find_field(char of, const char *name, size_t length)
{
    const struct field *end = fields + sizeof fields / sizeof *fields;
    for (const struct field *f = fields; f < end; f++) {
        bool right = f->of == of || (of == 's' && f->of == 'v');
        if (right && strncmp(f->name, name, length) == 0 && f->name[length] == '\0')
            return f;
    }
    fail_here("what is %.*s?", (int)length, name);
}

static void store(const struct field *f, void *place, int64_t value)
{
    int32_t half = (int32_t)value;
    bool flag = value != 0;
    memcpy(place,
           f->size == sizeof value  ? (void *)&value
           : f->size == sizeof half ? (void *)&half
                                    : &flag,
           f->size);
}

/* Into a lock request, a query or a reply: NAME or NAME=NUMBER. */
static void put(char of, void *base, const char *text)
{
    size_t length = strcspn(text, "=");
    const struct field *f = find_field(of, text, length);
    store(f, (char *)base + f->offset, text[length] ? number_in(text + length + 1) : 1);
}

/* [#N|/PATH] NAME VALUE: where it is, and which word is the value. */
static const struct field *field(const struct command *c, void **place, size_t *value)
{
    char of = *word(c, 1);
    char *base = of == '#'   ? (char *)script_contender((int)number_in(word(c, 1) + 1))
                 : of == '/' ? (char *)path(c, 1)
                             : (char *)s;
    *value = of == '#' || of == '/' ? 3 : 2;
    const char *name = word(c, *value - 1);
    const struct field *f = find_field(*value == 3 ? of : 's', name, strlen(name));
    *place = (f->of == 'v' ? (char *)&view : base) + f->offset;
    return f;
}

static void set(const struct command *c)
{
    void *place;
    size_t i;
    const struct field *f = field(c, &place, &i);
    store(f, place, number(c, i));
}

/* VALUE: a number; "some": anything but 0. */
static void check(const struct command *c)
{
    void *place;
    size_t i;
    const struct field *f = field(c, &place, &i);
    int64_t value = 0;
    int32_t half;
    if (f->size == sizeof half) {
        memcpy(&half, place, sizeof half);
        value = half;
    } else if (f->size == sizeof(bool)) {
        value = *(bool *)place;
    } else {
        memcpy(&value, place, sizeof value);
    }
    bool right = strcmp(word(c, i), "some") == 0 ? value != 0 : value == number(c, i);
    if (!right)
        fail_here("it is %lld", (long long)value);
}

/* --- the owner ------------------------------------------------------------ */

static void add_to_request(struct zkl_lock_request *r, const char *text)
{
    if (value_of(text, "lease"))
        r->lease_ns = number_in(value_of(text, "lease")) * MS;
    else if (strcmp(text, "read") == 0)
        r->naming.role = ZKL_ROLE_READ;
    else if (strcmp(text, "write") == 0)
        r->naming.role = ZKL_ROLE_WRITE;
    else
        put('l', r, text);
}

/* lock PATH [try] ... */
static void lock(const struct command *c, size_t from)
{
    struct zkl_lock_request request = {.path = path(c, 1)};
    for (size_t i = from; i < c->count; i++)
        add_to_request(&request, word(c, i));
    script_acquire(request);
}

/* hold PATH NUMBER [try] ...: likewise, and it gets it by a list, uncontended. */
static void hold(const struct command *c)
{
    char child[40];
    lock(c, 3);
    snprintf(child, sizeof child, "%d:%s", s->guids, word(c, 2));
    script_created((int32_t)number(c, 2), s->zxid++);
    script_listed(ZKL_REQ_LIST, 0, child);
}

/* ask KIND PATH [czxid=N] [version=N] [data=TEXT] [flag] [once] */
static void ask(const struct command *c)
{
    struct zkl_query query = {.kind = kind(c, 1), .path = keep(word(c, 2))};
    for (size_t i = 3; i < c->count; i++) {
        const char *data = value_of(word(c, i), "data");
        if (data)
            query.data = keep(data);
        else
            put('q', &query, word(c, i));
    }
    script_ask(query);
}

static void withdraw(int number)
{
    zkl_core_withdraw(&s->core, script_now(), &s->queries[number - 1]);
    memset(&s->queries[number - 1], 0xee, sizeof s->queries[0]);
}

static void set_data(struct zkl_contender *c, size_t size)
{
    static char data[100 * 1024];
    assert_true(size < sizeof data);
    memset(data, 'x', size);
    data[size] = '\0';
    c->machine.lock_request.data = data;
}

static void stop(int number, int code)
{
    zkl_core_stop(&s->core, script_now(), script_contender(number), code);
}

static void unlock(int number)
{
    zkl_core_release(&s->core, script_now(), script_contender(number));
}

/* If it is there: as its state wants it. */
static void let_go(int number)
{
    enum zkl_contender_state state = s->contenders[number - 1].machine.state;
    if (!s->live[number - 1])
        return;
    if (state == ZKL_CONTENDER_HOLDING || state == ZKL_CONTENDER_LOSTHOLD)
        unlock(number);
    else
        stop(number, ZKL_ECANCELED);
}

/* The session ends, and whoever is there goes. */
static void all_go(void)
{
    script_event(ZKL_SE_EXPIRED, 0);
    for (int i = 1; i <= SCRIPT_CONTENDERS; i++)
        let_go(i);
}

static bool owner_does(const struct command *c)
{
    DO("lock", lock(c, 2));
    DO("hold", hold(c));
    DO("queue", script_queue(keep(word(c, 1)), (int32_t)number(c, 2), rest(c, 3)));
    DO("wait", script_wait(keep(word(c, 1)), (int32_t)number(c, 2), rest(c, 3)));
    DO("stop", stop(who(c), code(word(c, 2))));
    DO("unlock", unlock(who(c)));
    DO("let_go", let_go(who(c)));
    DO("abandon", zkl_core_abandon(&s->core, script_now(), contender(c), ZKL_REASON_OWNER_EXITED));
    DO("data", set_data(contender(c), (size_t)number(c, 2))); /* of the node to be: so many bytes */
    DO("look_at", /* the path was read, and has this czxid */
       zkl_transaction_look_at(&s->core, contender(c), &(struct zkl_reply){.czxid = number(c, 2)}));
    DO("renew",
       assert_true(zkl_core_renew(&s->core, s->core.now, contender(c), number(c, 2) * MS)));
    DO("close", script_close());
    DO("all_go", all_go());
    DO("ask", ask(c));
    DO("withdraw", withdraw(c->count > 1 ? (int)number(c, 1) : s->asked));
    DO("end_path", zkl_unlisted_end(&s->core, s->core.now, &path(c, 1)->unlisted));
    return false;
}

/* --- several at once ------------------------------------------------------ */

static struct zkl_bundle bundle;
static char said[100]; /* to the owner of the bundle */
static bool is_given_back;

/* Its memory may be the owner's again, who uses it for something else at once. */
static void told(struct zkl_bundle *b, const struct zkl_notification *news)
{
    const char *const what[] = {"granted", "failed", "", "", "ended"};
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s %d %d;", what[news->type],
             news->code, news->number);
    if (is_given_back && news->type == ZKL_NOTIFY_ENDED) {
        assert_false(b->due.listed);
        *b = (struct zkl_bundle){.state = ZKL_BUNDLE_TAKING, .count = 1};
    }
}

/* take COUNT NUMBER [try] [lease=MS] [given_back]: so many permits at /s, by that number; #1 is the gate. */
static void take(const struct command *c)
{
    static struct zkl_bundle_member members[8];
    size_t count = (size_t)number(c, 1);
    struct zkl_lock_request permit = {.path = script_path("/s/leases"),
                                      .data = "us",
                                      .naming.role = ZKL_ROLE_PERMIT,
                                      .quota.view = &view};
    view = (struct zkl_semaphore_view){.permits = (int)number(c, 2)};
    bundle =
        (struct zkl_bundle){.members = members, .count = 1 + count, .gated = true, .told = told};
    said[0] = '\0';
    is_given_back = false;
    for (size_t i = 3; i < c->count; i++) {
        if (value_of(word(c, i), "lease"))
            bundle.lease_ns = number_in(value_of(word(c, i), "lease")) * 1000000;
        else if (strcmp(word(c, i), "given_back") == 0)
            is_given_back = true;
        else
            add_to_request(&permit, word(c, i));
    }
    for (size_t i = 0; i <= count; i++) {
        members[i] =
            (struct zkl_bundle_member){.contender = &s->contenders[i], .lock_request = permit};
        s->live[i] = true;
    }
    members[0].lock_request =
        (struct zkl_lock_request){.path = script_path("/s/locks"), .data = "us"};
    zkl_bundle_acquire(&s->core, s->core.now, &bundle);
}

/* bundle STATE [CODE] */
static void expect_bundle(const struct command *c)
{
    assert_string_equal(zkl_bundle_state_name(bundle.state), word(c, 1));
    if (c->count > 2)
        assert_int_equal(bundle.code, code(word(c, 2)));
}

/* group COUNT [mixed] [lease=MS] [views] ...: so many mutexes at /a, /b and so on; mixed: the second is a named lock
 * at the first one's path. */
static void take_group(const struct command *c)
{
    static struct zkl_bundle_member members[3];
    static const char *const paths[] = {"/a", "/b", "/c"};
    size_t count = (size_t)number(c, 1), before = (size_t)s->core.last_number;
    bool is_mixed = strcmp(c->count > 2 ? word(c, 2) : "", "mixed") == 0;
    assert_true(count <= 3);
    bundle = (struct zkl_bundle){.members = members, .count = count};
    for (size_t i = 0; i < count; i++) {
        struct zkl_lock_request *r = &members[i].lock_request;
        *r = (struct zkl_lock_request){.path = script_path(paths[i]), .data = "us"};
        for (size_t j = is_mixed ? 3 : 2; j < c->count; j++)
            add_to_request(r, word(c, j));
        bundle.lease_ns = r->lease_ns;
        r->lease_ns = 0;
        if (is_mixed && i == 1) {
            r->path = script_path(paths[0]);
            r->naming = (struct zkl_naming){ZKL_ROLE_LOCK, ZKL_NAMES_NAMED, "x"};
            r->unlisted = false;
        }
        members[i].contender = &s->contenders[before + i];
        s->live[before + i] = true;
    }
    zkl_bundle_acquire(&s->core, s->core.now, &bundle);
}

static void release_group(void)
{
    struct zkl_contender *all[3];
    for (size_t i = 0; i < bundle.count; i++)
        all[i] = bundle.members[i].contender;
    zkl_bundle_release(&s->core, s->core.now, all, bundle.count);
}

static bool bundle_does(const struct command *c)
{
    DO("take", take(c));
    DO("group", take_group(c));
    DO("unlock_all", release_group());
    DO("stop_all", zkl_bundle_stop(&s->core, s->core.now, &bundle, code(word(c, 1))));
    DO("said", assert_string_equal(said, rest(c, 1)));
    DO("ahead",
       assert_true(
           contender(c)
               ->transaction->ahead)); /* a list that is out will show the zxid of its create */
    DO("bundle", expect_bundle(c));
    DO("culprit", assert_int_equal(bundle.culprit, number(c, 1)));
    return false;
}

/* --- the link and the time ------------------------------------------------ */

static int64_t window_end_ms(void)
{
    return (zkl_session_window_end(&s->core.session) - script_now().boot_ns) / MS + s->now_ms;
}

/* Time passes until such a request is out; all else is answered. */
static void await(enum zkl_request_kind of)
{
    enum zkl_request_kind next;
    for (int i = 0; i < 20000; i++, script_at(s->now_ms + 1)) {
        while (script_next(&next) && next != of)
            script_reply(next, (struct zkl_reply){.answer = ZKL_ANSWER_OK});
        if (next == of)
            return;
    }
    fail_here("there is none");
}

static bool link_does(const struct command *c)
{
    static const char *const events[ZKL_SESSION_EVENT_TYPES] = {
        "up", "down", "expired", "probe up", "probe down", "timer", "auth failed", "close"};
    DO("event",
       enum zkl_session_event_type type = (enum zkl_session_event_type)INDEX_OF(events, word(c, 1));
       script_event(type, type == ZKL_SE_PROBE_UP ? SCRIPT_SESSION + 1 : 0));
    DO("up", script_event(ZKL_SE_UP, c->count > 1 ? number(c, 1) : SCRIPT_SESSION));
    DO("down", script_down(false));
    DO("hang_up", script_down(true));
    DO("at", script_at(number(c, 1)));
    DO("after", script_at(s->now_ms + number(c, 1)));
    DO("after_window", script_at(window_end_ms() + number(c, 1)));
    /* The process is stopped until then: no timer runs meanwhile. */
    DO("sleep_until", s->now_ms = number(c, 1));
    DO("sleep", s->now_ms += number(c, 1));
    DO("sleep_past_window", s->now_ms = window_end_ms() + number(c, 1));
    DO("await", await(kind(c, 1)));
    DO("now", says(c, "%d", (int)s->now_ms));
    DO("no_writes", /* which would prove something */
       for (size_t i = 0; i < s->request_count; i++) assert_false(s->requests[i].stamp.writes));
    return false;
}

/* --- the server ----------------------------------------------------------- */

/* Into a reply: names with commas, as for "listed", or #1: that contender's node. */
static void add_children(struct zkl_reply *r, const char *text)
{
    static char copy[LINE_SIZE], names[8][SCRIPT_NAME_MAX];
    static const char *list[8];
    snprintf(copy, sizeof copy, "%s", text);
    r->children = list;
    for (char *one = strtok(copy, ","); one && r->child_count < 8; one = strtok(NULL, ",")) {
        list[r->child_count] = *one == '#' ? script_contender(atoi(one + 1))->machine.node
                                           : script_child(one, names[r->child_count]);
        r->child_count++;
    }
}

/* answer KIND ANSWER|CODE [check=N] [session=N] [czxid=N] [version=N] [number=N] [name=TEXT] [data=TEXT] */
static void reply(const struct command *c)
{
    static char data[TEXT_MAX];
    struct zkl_reply r = {0};
    if (*word(c, 2) == '-') { /* a code of libzookeeper's */
        r.number = (int)number(c, 2);
        r.answer = zkl_map_rc(r.number);
    } else {
        r.answer = answer(c, 2);
    }
    for (size_t i = 3; i < c->count; i++) {
        const char *text = word(c, i), *value;
        if ((value = value_of(text, "name"))) {
            r.name = value;
        } else if ((value = value_of(text, "children"))) {
            add_children(&r, value);
        } else if ((value = value_of(text, "data"))) {
            r.data_size = read_text(value, data);
            r.data = data;
        } else {
            put('r', &r, text);
        }
    }
    script_reply(kind(c, 1), r);
}

/* Alone: all that is awaited is answered with OK; else, as "answer" is, what is of that kind and before any other. */
static void serve(const struct command *c)
{
    bool all = c->count == 1;
    enum zkl_request_kind next, of = all ? ZKL_REQUEST_KINDS : kind(c, 1);
    rest(c, 2);
    while (script_next(&next) && (all || next == of)) {
        if (all)
            script_reply(next, (struct zkl_reply){.answer = ZKL_ANSWER_OK});
        else
            reply(c);
    }
}

/* Every heartbeat is answered until then. */
static void prove_until(int64_t ms)
{
    enum zkl_request_kind next;
    while (s->now_ms < ms) {
        script_at(s->now_ms + 1);
        while (script_next(&next) && next == ZKL_REQ_CHECK_ALL)
            script_reply(ZKL_REQ_CHECK_ALL, (struct zkl_reply){.answer = ZKL_ANSWER_OK});
    }
}

/* out KIND|any N: so many are awaited. */
static void count_out(const struct command *c)
{
    bool any = strcmp(word(c, 1), "any") == 0;
    enum zkl_request_kind next;
    int64_t count = 0;
    script_next(&next); /* which drops what is forgotten */
    for (size_t i = 0; i < s->request_count; i++)
        count += any || s->requests[i].kind == kind(c, 1);
    if (count != number(c, 2))
        fail_here("%lld are out", (long long)count);
}

/* made DELETES N[:SEQUENCE] ...: the answer to a transaction of so many deletes and then the creates of these
 * contenders, each with this number, or the next at its path. */
static void made_all(const struct command *c)
{
    static char names[WORDS_MAX][ZKL_NODE_NAME_MAX + 12];
    const char *children[WORDS_MAX];
    size_t deletes = (size_t)number(c, 1), count = deletes + c->count - 2;
    for (size_t i = 0; i < count; i++) {
        names[i][0] = '\0';
        children[i] = names[i];
        if (i < deletes)
            continue;
        const char *one = word(c, 2 + i - deletes), *colon = strchr(one, ':');
        const struct zkl_contender_machine *m = &script_contender(atoi(one))->machine;
        zkl_name_prefix(&m->lock_request.naming, m->guid, names[i]);
        sprintf(names[i] + strlen(names[i]), "%010d",
                colon ? atoi(colon + 1) : m->lock_request.path->unlisted.next_number);
    }
    script_reply(ZKL_REQ_CREATE_ALL,
                 (struct zkl_reply){.children = children, .child_count = count});
}

/* first KIND PATH: that request is answered before the others of its kind. */
static void put_first(const struct command *c)
{
    size_t i = 0;
    while (i < s->request_count &&
           (s->requests[i].kind != kind(c, 1) || strcmp(s->requests[i].path, word(c, 2)) != 0))
        i++;
    if (i == s->request_count)
        fail_here("there is none");
    struct script_request request = s->requests[i];
    memmove(&s->requests[1], &s->requests[0], i * sizeof request);
    s->requests[0] = request;
}

/* A server that does all it is asked, until nothing is asked any more. Before our node are these children, as long as
 * there is one. */
static int made; /* the GUID of our node; 0: it is not there */

static void serve_well(const char *before)
{
    enum zkl_request_kind next;
    char children[100];
    for (int i = 0; i < 100 && script_next(&next); i++) {
        struct zkl_reply r = {
            .answer = ZKL_ANSWER_OK, .node_session = SCRIPT_SESSION, .czxid = 101};
        snprintf(children, sizeof children, made ? "%s %d:9" : "%s x", before, made);
        if (next == ZKL_REQ_DELETE)
            made = 0;
        if (next == ZKL_REQ_CREATE) {
            made = s->guids;
            script_created(9, s->zxid++);
        } else if (next == ZKL_REQ_LIST) {
            script_listed(next, 0, children);
        } else if (next == ZKL_REQ_LIST_LOCK_PATH) {
            script_listed(next, 500, before);
        } else {
            script_reply(next, r);
        }
    }
    assert_false(script_next(&next));
}

static bool is_over(void)
{
    return !s->core.first && !s->core.queries && !s->core.removing &&
           (s->core.watch_count == 0 || s->core.opcodes[ZKL_OPCODE_REMOVE_WATCHES].unknown) &&
           s->core.pending_count <=
               (size_t)(s->core.keepalive.id != 0) + (s->core.watched_read.id != 0);
}

/* So the first contender gets it, is let go once it has, and nothing is left. */
static void serve_to_the_end(void)
{
    enum zkl_request_kind next;
    for (int i = 0; i < 200 && !is_over(); i++) {
        if (s->live[0] && (s->contenders[0].machine.state == ZKL_CONTENDER_HOLDING ||
                           s->contenders[0].machine.state == ZKL_CONTENDER_LOSTHOLD))
            unlock(1);
        else if (script_next(&next))
            serve_well("");
        else
            script_at(s->now_ms + 50);
    }
    if (!is_over())
        fail_here("it does not end:\n%s", s->text);
}

/* serve_but KIND ANSWER: those are answered so, others well. */
static void serve_but(const struct command *c)
{
    enum zkl_request_kind next;
    for (rest(c, 2); script_next(&next);) {
        if (next == kind(c, 1))
            reply(c);
        else
            script_reply(next, (struct zkl_reply){.answer = ZKL_ANSWER_OK});
    }
}

/* Of the nodes 7 that are watched that in /p is deleted, that in /q denied and that in /r changed, and no event came. With
 * late the keepalives, and what is behind them, have to wait. */
static void serve_silently(bool late)
{
    enum zkl_request_kind next;
    while (script_next(&next) && !(late && next == ZKL_REQ_KEEPALIVE)) {
        const char *of = s->requests[0].path;
        struct zkl_reply r = {.answer = next == ZKL_REQ_KEEPALIVE || next == ZKL_REQ_CHECK_ALL
                                            ? ZKL_ANSWER_OK
                                            : ZKL_ANSWER_NOMEM};
        if (next == ZKL_REQ_KEEPALIVE && strstr(of, "0000000007")) {
            r.answer = *of && of[1] == 'p'   ? ZKL_ANSWER_NONODE
                       : *of && of[1] == 'q' ? ZKL_ANSWER_NOAUTH
                                             : ZKL_ANSWER_OK;
            r.version = of[1] == 'r';
        }
        script_reply(next, r);
    }
}

/* Of the nodes that the oldest heartbeat checks its answer names the first that is denied. */
static void deny_in_one(int good)
{
    const struct script_request *request = s->requests;
    const struct zkl_heartbeat *heartbeat = s->core.heartbeats;
    size_t denied = ZKL_HEARTBEAT_CHECKS_MAX;
    while (request->kind != ZKL_REQ_CHECK_ALL)
        request++;
    while (heartbeat->pending.id != request->id)
        heartbeat++;
    for (const struct zkl_contender *c = s->core.first; c; c = c->next) {
        if (c->heartbeat_serial == heartbeat->serial && c != script_contender(good) &&
            c->heartbeat_index < denied)
            denied = c->heartbeat_index;
    }
    bool any = denied < ZKL_HEARTBEAT_CHECKS_MAX;
    script_reply(ZKL_REQ_CHECK_ALL,
                 (struct zkl_reply){.answer = any ? ZKL_ANSWER_NOAUTH : ZKL_ANSWER_OK,
                                    .failed_check = any ? denied : 0});
}

/* deny_all_but N TRIPS: in fewer round trips the session is proved as of now. In each all heartbeats that are out are
 * answered. */
static void deny_all_but(int good, int trips)
{
    while (s->core.session.proof.newest_proof_boot < s->core.now.boot_ns) {
        int out = 0;
        assert_true(--trips > 0);
        for (int i = 0; i < ZKL_HEARTBEATS_MAX; i++)
            out += s->core.heartbeats[i].pending.id != 0;
        for (; out > 0; out--)
            deny_in_one(good);
    }
}

/* choose KIND plain|flag|checks hung_up|answered: by which of the servers operations it goes, and what becomes of it. */
static void choose(const struct command *c)
{
    struct zkl_request request = {.kind = kind(c, 1), .path = "/q"};
    struct zkl_pending pending = {.kind = request.kind};
    request.flag = strcmp(word(c, 2), "flag") == 0;
    request.check_count = strcmp(word(c, 2), "checks") == 0;
    if (strcmp(word(c, 2), "plain") != 0)
        pending.opcode = zkl_opcode_choose(&s->core, &request);
    assert_true(!request.check_count || pending.opcode == ZKL_OPCODE_MULTI);
    if (strcmp(word(c, 3), "hung_up") == 0)
        zkl_opcode_hung_up(&s->core, &pending);
    else
        zkl_opcode_answered(&s->core, &pending, ZKL_ANSWER_OK);
}

static void fire(uint64_t id, enum zkl_fired what)
{
    zkl_core_fired(&s->core, s->core.now, id, what);
}

/* Of a watch that is not there any more: wherever it may have been. */
static void fire_late(uint64_t id)
{
    for (uint64_t place = 0; place < ZKL_WATCH_BUCKETS; place++)
        fire(id * ZKL_WATCH_BUCKETS + place, ZKL_FIRED_DELETED);
}

/* The watch that this contender has for that. */
static struct zkl_watch *watch_of(const struct command *c)
{
    static const char *const subs[ZKL_SUBS] = {[ZKL_SUB_PRED] = "pred",
                                               [ZKL_SUB_OWN] = "own",
                                               [ZKL_SUB_LOCK_PATH] = "children",
                                               [ZKL_SUB_LIMIT] = "number"};
    return contender(c)->subs[INDEX_OF(subs, word(c, 2))].watch;
}

static uint64_t noted_watch;
static const char *noted_path;

static bool server_does(const struct command *c)
{
    static const char *const ways[] = {"deleted", "other"};
    DO("answer", reply(c));
    DO("created", script_created((int32_t)number(c, 1), s->zxid++));
    DO("created_plain", script_created((int32_t)number(c, 1), 0)); /* its czxid is not known */
    DO("listed", script_listed(ZKL_REQ_LIST, 0, rest(c, 1)));
    DO("lock_path_listed", script_listed(ZKL_REQ_LIST_LOCK_PATH, number(c, 1), rest(c, 2)));
    DO("statted", script_reply(ZKL_REQ_STAT, (struct zkl_reply){.node_session = number(c, 1),
                                                                .czxid = number(c, 2)}));
    DO("missing", /* a heartbeat found this one of its nodes missing */
       script_reply(ZKL_REQ_CHECK_ALL, (struct zkl_reply){.answer = ZKL_ANSWER_NONODE,
                                                          .failed_check = (size_t)number(c, 1)}));
    DO("made", made_all(c));
    DO("first", put_first(c));
    DO("serve", serve(c));
    DO("serve_well", serve_well(rest(c, 1)));
    DO("serve_to_the_end", serve_to_the_end());
    DO("has_node", made = (int)number(c, 1));
    DO("deny_all_but", deny_all_but((int)number(c, 1), (int)number(c, 2)));
    DO("serve_but", serve_but(c));
    DO("serve_silently", serve_silently(number(c, 1) != 0));
    DO("choose", choose(c));
    DO("clear_suspects", zkl_opcode_link_up(&s->core));
    DO("link_comes", zkl_opcode_link_comes(&s->core));
    DO("nobody_hung_up", zkl_opcode_hung_up(&s->core, NULL));
    DO("prove_until", prove_until(number(c, 1)));
    DO("out", count_out(c));
    DO("fired", script_fired(word(c, 1), (enum zkl_fired)INDEX_OF(ways, word(c, 2))));
    DO("fired_for", fire(watch_of(c)->id, ZKL_FIRED_OTHER));
    DO("gone_before",
       struct zkl_watch *watch = s->live[0] ? s->contenders[0].subs[ZKL_SUB_PRED].watch : NULL;
       if (watch) fire(watch->id,
                       ZKL_FIRED_DELETED)); /* #1, if it is there, hears so of its predecessor */
    DO("note", noted_watch = watch_of(c)->id; noted_path = keep(watch_of(c)->path));
    DO("plan", /* a watch on that path, by this contender for its own node */
       zkl_watch_plan(&s->core, &contender(c)->subs[ZKL_SUB_OWN], contender(c), noted_path,
                      ZKL_WATCH_DATA));
    DO("watched", says(c, "%zu", strlen(watch_of(c)->path))); /* how long its path is */
    DO("owner_kept", /* bytes of the owner that is kept with its predecessor's watch */
       const char *owner = contender(c)->subs[ZKL_SUB_PRED].watch->owner;
       says(c, "%d", owner ? (int)strlen(owner) : -1));
    DO("fired_noted", fire(noted_watch, ZKL_FIRED_OTHER));
    DO("fired_late", fire_late(noted_watch / ZKL_WATCH_BUCKETS));
    /* what sending such a request leads to; OK: it is sent */
    DO("refuse", s->refuse[kind(c, 1)] = answer(c, 2));
    return false;
}

/* --- what is recorded ----------------------------------------------------- */

/* Blanks in a row count as one, those at the ends and behind a bracket as none. */
static void squeeze(const char *text, char *out, size_t size)
{
    size_t n = 0;
    for (; *text && n + 2 < size; text++) {
        if (!isspace((unsigned char)*text))
            out[n++] = *text;
        else if (n > 0 && out[n - 1] != ' ' && out[n - 1] != '[')
            out[n++] = ' ';
    }
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
}

void expect(const char *text)
{
    static char wanted[TEXT_MAX], came[TEXT_MAX];
    squeeze(text, wanted, sizeof wanted);
    squeeze(s->text, came, sizeof came);
    if (strcmp(wanted, came) != 0)
        fail_here("expected:\n%s\ncame:\n%s", text, s->text);
    script_forget();
}

/* Are there such lines, the first of which ends so? "a | b" is two; " ..." at the end: and more. */
static bool has(const char *text)
{
    static char came[TEXT_MAX];
    char wanted[LINE_SIZE], *p;
    size_t n = 0, length;
    squeeze(text, wanted, sizeof wanted);
    while ((p = strstr(wanted, " | "))) {
        *p = '\n';
        memmove(p + 1, p + 3, strlen(p + 3) + 1);
    }
    length = strlen(wanted);
    bool more = length > 4 && strcmp(wanted + length - 4, " ...") == 0;
    wanted[length -= more ? 4 : 0] = '\0';
    for (const char *row = s->text; *row; row += strcspn(row, "\n") + 1) {
        char copy[LINE_SIZE * 4];
        snprintf(copy, sizeof copy, "%.*s", (int)strcspn(row, "\n"), row);
        squeeze(copy, came + n, sizeof came - n - 1);
        n += strlen(came + n);
        came[n++] = '\n';
    }
    came[n] = '\0';
    for (p = came; (p = strstr(p, wanted)); p++) {
        if (more || p[length] == '\n')
            return true;
    }
    return false;
}

/* place N -> how many are before it, behind whom, whose that is */
static void say_place(const struct command *c)
{
    struct zkl_queue_place place = zkl_queue_place_of(contender(c));
    says(c, "%zu %s %s", place.before, place.predecessor ? place.predecessor : "-",
         place.owner ? place.owner : "-");
}

/* --- commands ------------------------------------------------------------- */

static void begin(void (*how)(void))
{
    end_kept();
    script_free();
    made = 0;
    how();
}

static void look_for(const struct command *c, bool wanted)
{
    word(c, 1);
    if (has(rest(c, 1)) != wanted)
        fail_here("%sexpected:\n%s\ncame:\n%s", wanted ? "" : "not ", rest(c, 1), s->text);
}

static bool test_does(const struct command *c)
{
    DO("new", begin(script_new)); /* a core, not connected */
    DO("again", begin(script_connected));
    DO("has", look_for(c, true));
    DO("lacks", look_for(c, false));
    DO("nothing", expect(""));
    DO("forget", script_forget());
    DO("set", set(c));
    DO("memory", static const char *const ways[] = {"there", "out"};
       out_of_memory = INDEX_OF(ways, word(c, 1)));
    DO("check", check(c));
    DO("state",
       assert_string_equal(zkl_contender_state_name(contender(c)->machine.state), word(c, 2)));
    DO("window", /* 0: it is empty */
       assert_int_equal(zkl_session_window_end(&s->core.session) > script_now().boot_ns,
                        number(c, 1)));
    DO("unproved", assert_int_equal(zkl_session_proved_until(&s->core.session), 0));
    DO("place", say_place(c));
    DO("awaits_retained",
       assert_int_equal(zkl_contender_awaits_retained(&contender(c)->machine), number(c, 2)));
    DO("lost",
       assert_int_equal(s->lost[number(c, 1) - 1], number(c, 2))); /* how often it heard LOST */
    DO("live", assert_int_equal(s->live[number(c, 1) - 1], number(c, 2)));
    return false;
}

bool obey(const struct command *c)
{
    return owner_does(c) || bundle_does(c) || link_does(c) || server_does(c) || test_does(c) ||
           obey_kept(c) || obey_machines(c) || obey_texts(c) || obey_tool(c);
}
