/* SPDX-License-Identifier: Apache-2.0
 * What the commands of a transcript do. Most are functions of script.h, without their "script_"; what else there is
 * has a comment here. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/bundle.h"
#include "core/place.h"
#include "core/transaction.h"
#include "core/unlisted_grant.h"
#include "core/watch.h"
#include "transcript.h"

#include "../sim/kinds.h"

/* --- words ---------------------------------------------------------------- */

/* As names are written in a transcript: in one word. */
static bool is_name(const char *name, const char *text)
{
    for (; *name && (*name == *text || (strchr(" -", *name) && *text == '_')); name++)
        text++;
    return !*name && !*text;
}

static int index_of(const char *const *names, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i] && is_name(names[i], text))
            return (int)i;
    }
    fail_here("what is %s?", text);
}

static enum zkl_request_kind kind(const struct command *c, size_t i)
{
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
static const char *value_of(const char *text, const char *key)
{
    size_t length = strlen(key);
    return strncmp(text, key, length) == 0 && text[length] == '=' ? text + length + 1 : NULL;
}

/* --- the owner ------------------------------------------------------------ */

/* A contender's number; "last": of who came last. */
static int who(const struct command *c)
{
    return strcmp(word(c, 1), "last") == 0 ? (int)s->core.last_number : (int)number(c, 1);
}

/* The same text in memory that stays. */
static const char *keep(const char *text)
{
    static char *kept[500];
    size_t i = 0;
    while (i < sizeof kept / sizeof *kept && kept[i] && strcmp(kept[i], text) != 0)
        i++;
    if (i == sizeof kept / sizeof *kept || (!kept[i] && !(kept[i] = strdup(text))))
        fail_here("too many texts");
    return kept[i];
}

static void add_to_request(struct zkl_lock_request *r, const char *text)
{
    const char *value = value_of(text, "lease");
    static const char *const names[] = {"try",     "sync",     "behind_retained",
                                        "watched", "unlisted", "retained",
                                        "posted",  "views",    "together"};
    bool *const flags[] = {&r->try_only,  &r->try_sync, &r->try_behind_retained,
                           &r->watch_own, &r->unlisted, &r->retained,
                           &r->posted,    &r->views,    &r->together};
    if (value)
        r->lease_ns = number_in(value) * 1000000;
    else if (strcmp(text, "read") == 0)
        r->naming.role = ZKL_ROLE_READ;
    else if (strcmp(text, "write") == 0)
        r->naming.role = ZKL_ROLE_WRITE;
    else
        *flags[index_of(names, sizeof names / sizeof *names, text)] = true;
}

/* lock PATH [try] ... */
static void lock(const struct command *c, size_t from)
{
    struct zkl_lock_request request = {.path = script_path(s, keep(word(c, 1)))};
    for (size_t i = from; i < c->count; i++)
        add_to_request(&request, word(c, i));
    script_acquire(s, request);
}

/* hold PATH NUMBER [try] ...: likewise, and it gets it by a list, uncontended. */
static void hold(const struct command *c)
{
    char child[40];
    lock(c, 3);
    snprintf(child, sizeof child, "%d:%s", s->guids, word(c, 2));
    script_created(s, (int32_t)number(c, 2));
    script_listed(s, child);
}

/* ask KIND PATH [czxid=N] [version=N] [data=TEXT] [flag] [once] */
static void ask(const struct command *c)
{
    struct zkl_query query = {.kind = kind(c, 1), .path = keep(word(c, 2))};
    for (size_t i = 3; i < c->count; i++) {
        const char *text = word(c, i), *value;
        if ((value = value_of(text, "czxid")))
            query.czxid = number_in(value);
        else if ((value = value_of(text, "version")))
            query.version = (int32_t)number_in(value);
        else if ((value = value_of(text, "data")))
            query.data = keep(value);
        else if (strcmp(text, "flag") == 0)
            query.flag = true;
        else if (strcmp(text, "once") == 0)
            query.once = true;
        else
            fail_here("what is a query's %s?", text);
    }
    script_ask(s, query);
}

static void set_data(struct zkl_contender *c, size_t size)
{
    static char data[100 * 1024];
    assert_true(size < sizeof data);
    memset(data, 'x', size);
    data[size] = '\0';
    c->machine.lock_request.data = data;
}

/* The session ends, and whoever is there goes. */
static void all_go(void)
{
    script_event(s, ZKL_SE_EXPIRED);
    for (int i = 1; i <= SCRIPT_CONTENDERS; i++) {
        if (s->live[i - 1] && s->contenders[i - 1].machine.state == ZKL_CONTENDER_LOSTHOLD)
            script_unlock(s, i);
        else if (s->live[i - 1])
            script_stop(s, i, ZKL_ECANCELED);
    }
}

static bool owner_does(const struct command *c)
{
    const char *name = c->words[0];
    if (strcmp(name, "lock") == 0)
        lock(c, 2);
    else if (strcmp(name, "hold") == 0)
        hold(c);
    else if (strcmp(name, "queue") == 0)
        script_queue(s, keep(word(c, 1)), (int32_t)number(c, 2), rest(c, 3));
    else if (strcmp(name, "wait") == 0)
        script_wait(s, keep(word(c, 1)), (int32_t)number(c, 2), rest(c, 3));
    else if (strcmp(name, "stop") == 0)
        script_stop(s, who(c), code(word(c, 2)));
    else if (strcmp(name, "unlock") == 0)
        script_unlock(s, who(c));
    else if (strcmp(name, "abandon") == 0)
        script_abandon(s, who(c));
    else if (strcmp(name, "data") == 0) /* of the node to be: so many bytes */
        set_data(script_contender(s, (int)number(c, 1)), (size_t)number(c, 2));
    else if (strcmp(name, "look_at") == 0) /* the path was read, and has this czxid */
        zkl_transaction_look_at(&s->core, script_contender(s, (int)number(c, 1)),
                                &(struct zkl_reply){.czxid = number(c, 2)});
    else if (strcmp(name, "renew") == 0)
        assert_true(zkl_core_renew(&s->core, s->core.now, script_contender(s, (int)number(c, 1)),
                                   number(c, 2) * 1000000));
    else if (strcmp(name, "close") == 0)
        script_close(s);
    else if (strcmp(name, "all_go") == 0)
        all_go();
    else if (strcmp(name, "ask") == 0)
        ask(c);
    else if (strcmp(name, "withdraw") == 0)
        script_withdraw(s, c->count > 1 ? (int)number(c, 1) : s->asked);
    else if (strcmp(name, "end_path") == 0)
        zkl_unlisted_end(&s->core, s->core.now, &script_path(s, keep(word(c, 1)))->unlisted);
    else
        return false;
    return true;
}

/* --- several at once ------------------------------------------------------ */

static struct zkl_bundle bundle;
static struct zkl_semaphore_view view;
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
    struct zkl_lock_request permit = {.path = script_path(s, "/s/leases"),
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
        (struct zkl_lock_request){.path = script_path(s, "/s/locks"), .data = "us"};
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
        *r = (struct zkl_lock_request){.path = script_path(s, paths[i]), .data = "us"};
        for (size_t j = is_mixed ? 3 : 2; j < c->count; j++)
            add_to_request(r, word(c, j));
        bundle.lease_ns = r->lease_ns;
        r->lease_ns = 0;
        if (is_mixed && i == 1) {
            r->path = script_path(s, paths[0]);
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
    const char *name = c->words[0];
    if (strcmp(name, "take") == 0)
        take(c);
    else if (strcmp(name, "group") == 0)
        take_group(c);
    else if (strcmp(name, "unlock_all") == 0)
        release_group();
    else if (strcmp(name, "stop_all") == 0)
        zkl_bundle_stop(&s->core, s->core.now, &bundle, code(word(c, 1)));
    else if (strcmp(name, "said") == 0)
        assert_string_equal(said, rest(c, 1));
    else if (strcmp(name, "ahead") == 0) /* a list that is out will show the zxid of its create */
        assert_true(script_contender(s, (int)number(c, 1))->transaction->ahead);
    else if (strcmp(name, "bundle") == 0)
        expect_bundle(c);
    else
        return false;
    return true;
}

/* --- the link and the time ------------------------------------------------ */

static bool link_does(const struct command *c)
{
    static const char *const events[ZKL_SESSION_EVENT_TYPES] = {
        "up", "down", "expired", "probe up", "probe down", "timer", "auth failed", "close"};
    const char *name = c->words[0];
    if (strcmp(name, "event") == 0)
        script_event(
            s, (enum zkl_session_event_type)index_of(events, ZKL_SESSION_EVENT_TYPES, word(c, 1)));
    else if (strcmp(name, "up") == 0)
        script_up(s, c->count > 1 ? number(c, 1) : SCRIPT_SESSION);
    else if (strcmp(name, "down") == 0)
        script_down(s);
    else if (strcmp(name, "hang_up") == 0)
        script_hang_up(s);
    else if (strcmp(name, "at") == 0)
        script_at(s, number(c, 1));
    else if (strcmp(name, "after") == 0)
        script_at(s, s->now_ms + number(c, 1));
    else if (strcmp(name, "sleep_until") == 0)
        script_sleep_until(s, number(c, 1));
    else
        return false;
    return true;
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
        list[r->child_count] = *one == '#' ? script_contender(s, atoi(one + 1))->machine.node
                                           : script_child(one, names[r->child_count]);
        r->child_count++;
    }
}

/* answer KIND ANSWER [check=N] [session=N] [czxid=N] [version=N] [number=N] [name=TEXT] [data=TEXT] */
static void reply(const struct command *c)
{
    struct zkl_reply r = {.answer = answer(c, 2)};
    for (size_t i = 3; i < c->count; i++) {
        const char *text = word(c, i), *value;
        if ((value = value_of(text, "check")))
            r.failed_check = (size_t)number_in(value);
        else if ((value = value_of(text, "session")))
            r.node_session = number_in(value);
        else if ((value = value_of(text, "czxid")))
            r.czxid = number_in(value);
        else if ((value = value_of(text, "version")))
            r.version = (int32_t)number_in(value);
        else if ((value = value_of(text, "cversion")))
            r.cversion = (int32_t)number_in(value);
        else if ((value = value_of(text, "pzxid")))
            r.pzxid = number_in(value);
        else if ((value = value_of(text, "number")))
            r.number = (int)number_in(value);
        else if ((value = value_of(text, "name")))
            r.name = value;
        else if ((value = value_of(text, "children")))
            add_children(&r, value);
        else if ((value = value_of(text, "data"))) {
            r.data = value;
            r.data_size = strlen(value);
        } else
            fail_here("what is an answer's %s?", text);
    }
    script_reply(s, kind(c, 1), r);
}

/* Alone: all that is awaited is answered with OK; else, as "answer" is, what is of that kind and before any other. */
static void serve(const struct command *c)
{
    bool all = c->count == 1;
    enum zkl_request_kind next, of = all ? ZKL_REQUEST_KINDS : kind(c, 1);
    rest(c, 2);
    while (script_next(s, &next) && (all || next == of)) {
        if (all)
            script_answer(s, next, ZKL_ANSWER_OK);
        else
            reply(c);
    }
}

/* Every heartbeat is answered until then. */
static void prove_until(int64_t ms)
{
    enum zkl_request_kind next;
    while (s->now_ms < ms) {
        script_at(s, s->now_ms + 1);
        while (script_next(s, &next) && next == ZKL_REQ_CHECK_ALL)
            script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    }
}

/* out KIND|any N: so many are awaited. */
static void count_out(const struct command *c)
{
    bool any = strcmp(word(c, 1), "any") == 0;
    enum zkl_request_kind next;
    int64_t count = 0;
    script_next(s, &next); /* which drops what is forgotten */
    for (size_t i = 0; i < s->request_count; i++)
        count += any || s->requests[i].kind == kind(c, 1);
    if (count != number(c, 2))
        fail_here("%lld are out", (long long)count);
}

/* made DELETES N[:SEQUENCE] ...: the answer to a transaction of so many deletes and then the creates of these
 * contenders, each with this number, or the next at its path. */
static void made(const struct command *c)
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
        const struct zkl_contender_machine *m = &script_contender(s, atoi(one))->machine;
        zkl_name_prefix(&m->lock_request.naming, m->guid, names[i]);
        sprintf(names[i] + strlen(names[i]), "%010d",
                colon ? atoi(colon + 1) : m->lock_request.path->unlisted.next_number);
    }
    script_reply(s, ZKL_REQ_CREATE_ALL,
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

static bool server_does(const struct command *c)
{
    static const char *const ways[] = {"deleted", "other"};
    static const char *const subs[ZKL_SUBS] = {
        [ZKL_SUB_LOCK_PATH] = "children", [ZKL_SUB_LIMIT] = "number"};
    const char *name = c->words[0];
    if (strcmp(name, "answer") == 0)
        reply(c);
    else if (strcmp(name, "created") == 0)
        script_created(s, (int32_t)number(c, 1));
    else if (strcmp(name, "created_plain") == 0)
        script_created_plain(s, (int32_t)number(c, 1));
    else if (strcmp(name, "listed") == 0)
        script_listed(s, rest(c, 1));
    else if (strcmp(name, "lock_path_listed") == 0)
        script_lock_path_listed(s, number(c, 1), rest(c, 2));
    else if (strcmp(name, "statted") == 0)
        script_statted(s, number(c, 1), number(c, 2));
    else if (strcmp(name, "missing") == 0)
        script_missing(s, (size_t)number(c, 1));
    else if (strcmp(name, "made") == 0)
        made(c);
    else if (strcmp(name, "first") == 0)
        put_first(c);
    else if (strcmp(name, "serve") == 0)
        serve(c);
    else if (strcmp(name, "prove_until") == 0)
        prove_until(number(c, 1));
    else if (strcmp(name, "out") == 0)
        count_out(c);
    else if (strcmp(name, "fired") == 0)
        script_fired(s, word(c, 1), (enum zkl_fired)index_of(ways, 2, word(c, 2)));
    else if (strcmp(name, "fired_for") == 0) /* the watch that this contender has for that */
        zkl_core_fired(&s->core, s->core.now,
                       script_contender(s, (int)number(c, 1))
                           ->subs[index_of(subs, ZKL_SUBS, word(c, 2))]
                           .watch->id,
                       ZKL_FIRED_OTHER);
    else if (strcmp(name, "refuse") == 0) /* what sending such a request leads to; OK: it is sent */
        s->refuse[kind(c, 1)] = answer(c, 2);
    else
        return false;
    return true;
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
    script_forget(s);
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

/* --- what is inside ------------------------------------------------------- */

/* By name: of the script, of its core, of a contender's machine (#1), of a path (/r). */
static const struct field {
    char of;
    const char *name;
    size_t offset, size;
} fields[] = {
#define FIELD(of, type, prefix, name)                                                              \
    {                                                                                              \
        of, #name, offsetof(type, prefix name), sizeof((type *)0)->prefix name                     \
    }
#define SCRIPT(name) FIELD('s', struct script, , name)
#define CORE(name) FIELD('s', struct script, core., name)
#define MACHINE(name) FIELD('#', struct zkl_contender, machine., name)
#define CONTENDER(name) FIELD('#', struct zkl_contender, , name)
#define VIEW(name) FIELD('v', struct zkl_semaphore_view, , name)
#define PATH(name) FIELD('/', struct zkl_path, , name)
    SCRIPT(keepalives),
    SCRIPT(quiet),
    SCRIPT(unprovable),
    SCRIPT(young),
    SCRIPT(zxid),
    SCRIPT(port.trace),
    SCRIPT(request_count),
    CORE(first),
    CORE(first_read_wanted),
    CORE(group_commit.under_way),
    CORE(leftovers.count),
    CORE(pending_count),
    CORE(removals_due),
    CORE(removing),
    CORE(share_from),
    CORE(unlisted_from),
    CORE(sent[ZKL_REQ_KEEPALIVE]),
    CORE(session.born.boot_ns),
    CORE(session.born.mono_ns),
    CORE(session.useless),
    CORE(session.waits),
    CORE(chroot_length),
    CORE(suspicions),
    CORE(opcodes[ZKL_OPCODE_CREATE2].unknown),
    CORE(opcodes[ZKL_OPCODE_CONTAINER].unknown),
    CORE(group_commit.credit),
    CORE(group_commit.from),
    CORE(group_commit.held),
    CORE(opcodes[ZKL_OPCODE_MULTI].unknown),
    CORE(ephemeral_bytes),
    CORE(watch_bytes),
    CORE(watch_bytes_max),
    CORE(watch_count),
    CONTENDER(delete_sent),
    CONTENDER(heir),
    CONTENDER(transaction),
    MACHINE(contended),
    MACHINE(revoked),
    MACHINE(suspect),
    MACHINE(czxid),
    MACHINE(lease_end_boot),
    MACHINE(limit.out),
    MACHINE(list_out),
    MACHINE(limit.permits),
    MACHINE(on_server),
    MACHINE(pred_is_by_number),
    MACHINE(lock_request.posted),
    VIEW(agreed),
    VIEW(permits),
    PATH(unlisted.last),
    PATH(unlisted.live_count),
    PATH(unlisted.next_number),
    PATH(unlisted.streak),
    PATH(view.calm),
    PATH(view.cversion),
    PATH(view.czxid),
    PATH(view.link),
    PATH(view.own),
    PATH(view.singly_until_mono_ns),
    PATH(unlisted.row),
};

/* [#N|/PATH] NAME VALUE: where it is, and which word is the value. */
static const struct field *field(const struct command *c, void **place, size_t *value)
{
    char of = *word(c, 1);
    bool is_own = of != '#' && of != '/';
    char *base = (char *)s;
    if (of == '#')
        base = (char *)script_contender(s, (int)number_in(word(c, 1) + 1));
    if (of == '/')
        base = (char *)script_path(s, keep(word(c, 1)));
    *value = is_own ? 2 : 3;
    for (const struct field *f = fields; f < fields + sizeof fields / sizeof *fields; f++) {
        *place = (f->of == 'v' ? (char *)&view : base) + f->offset;
        if ((is_own ? strchr("sv", f->of) != NULL : f->of == of) &&
            strcmp(f->name, word(c, *value - 1)) == 0)
            return f;
    }
    fail_here("what is %s?", c->words[*value - 1]);
}

static void set(const struct command *c)
{
    void *place;
    size_t i;
    const struct field *f = field(c, &place, &i);
    int64_t value = number(c, i);
    int32_t half = (int32_t)value;
    bool flag = value != 0;
    if (f->size == sizeof value)
        memcpy(place, &value, sizeof value);
    else if (f->size == sizeof half)
        memcpy(place, &half, sizeof half);
    else
        memcpy(place, &flag, sizeof flag);
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

/* place N BEFORE [OWNER]: so many are before it, and whom it waits for; "-": it waits for none of them in particular. */
static void expect_place(const struct command *c)
{
    struct zkl_queue_place place = zkl_queue_place_of(script_contender(s, (int)number(c, 1)));
    assert_int_equal(place.before, number(c, 2));
    if (strcmp(rest(c, 3), "-") == 0)
        assert_null(place.predecessor);
    else if (c->count > 3)
        assert_string_equal(place.owner, rest(c, 3));
}

/* --- commands ------------------------------------------------------------- */

static bool test_does(const struct command *c)
{
    const char *name = c->words[0];
    bool is_new = strcmp(name, "new") == 0, lacks = strcmp(name, "lacks") == 0;
    if (is_new || strcmp(name, "again") == 0) { /* a core, not connected or connected */
        script_free(s);
        s = is_new ? script_new() : script_connected();
    } else if (lacks || strcmp(name, "has") == 0) {
        word(c, 1);
        if (has(rest(c, 1)) == lacks)
            fail_here("%sexpected:\n%s\ncame:\n%s", lacks ? "not " : "", rest(c, 1), s->text);
    } else if (strcmp(name, "nothing") == 0) {
        expect("");
    } else if (strcmp(name, "forget") == 0) {
        script_forget(s);
    } else if (strcmp(name, "set") == 0) {
        set(c);
    } else if (strcmp(name, "check") == 0) {
        check(c);
    } else if (strcmp(name, "state") == 0) {
        const struct zkl_contender *of = script_contender(s, (int)number(c, 1));
        const char *state = zkl_contender_state_name(of->machine.state);
        if (strcmp(state, word(c, 2)) != 0)
            fail_here("it is %s", state);
    } else if (strcmp(name, "window") == 0) { /* 0: it is empty */
        assert_int_equal(zkl_session_window_end(&s->core.session) > s->core.now.boot_ns,
                         number(c, 1));
    } else if (strcmp(name, "unproved") == 0) {
        assert_int_equal(zkl_session_proved_until(&s->core.session), 0);
    } else if (strcmp(name, "place") == 0) {
        expect_place(c);
    } else if (strcmp(name, "lost") == 0) { /* how often it heard LOST */
        assert_int_equal(s->lost[number(c, 1) - 1], number(c, 2));
    } else {
        return false;
    }
    return true;
}

bool obey(const struct command *c)
{
    return owner_does(c) || bundle_does(c) || link_does(c) || server_does(c) || test_does(c);
}
