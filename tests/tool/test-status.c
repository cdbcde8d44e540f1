/* SPDX-License-Identifier: Apache-2.0 */
/* zklock status: what it shows of locks and their contenders, for people, for programs and on a terminal. */
#include "nodes.h"
#include "peek.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Goal: status shows each lock below a path with its kind, its holders and its queue in order. The
 * contenders are real ones; one lock is free. */
TOOL_TEST(locks_below_a_path_are_told)
{
    struct worked held = worked_new();

    struct tool tool = tool_line("run /tell/a -- work %s 600000", held.name);
    worked_wait(&held, 1);
    struct tool waits = tool_line("run -w 120 /tell/a -- true");
    check_wait(cluster_children("/tell/a") == 2, WAIT_MS);
    contender("/tell/deep/b", "__READ__", owner_text(1));
    contender("/tell/deep/b", "__READ__", owner_text(2));
    contender("/tell/deep/b", "__WRIT__", "somebody");
    check_ok(wire_create(raw, "/tell/free", "", WIRE_PERSISTENT, NULL, 0));

    check_said(0, "status /tell", "/tell/a  mutex, 1 held, 1 waiting\n  holds  lock ",
               "/tell/deep/b  rwlock, 2 held, 1 waiting\n  holds  read ",
               "  waits  write   somebody ", "/tell/free  free\n");
    check_said(0, "status /not/there", "/not/there  free\n");
    kill(tool.pid, SIGTERM);
    tool_wait(&tool);
    check_num(tool_status(&waits), ==, 0);
}

/* Goal: "/" is everything that can be seen, the server's own nodes aside; below a chroot too. */
TOOL_TEST(all_locks_are_told)
{

    contender("/everything/a", "lock-", owner_text(1));
    contender("/top", "lock-", owner_text(1));
    check_said(0, "status /", "/everything/a  mutex, 1 held, 0 waiting\n",
               "\n/top  mutex, 1 held, 0 waiting\n", "!/zookeeper");
    struct tool tool = tool_line("status --servers %s/everything /", zks_connect_string(server));
    check_num(tool_status(&tool), ==, 0);
    check_true(strncmp(tool_text(&tool), "/a  mutex, 1 held, 0 waiting\n", 29) == 0);
    tool = tool_line("doctor /");
    check_true(tool_status(&tool) <= 1 && tool_says(&tool, "/everything/a  mutex\n"));
}

/* Goal: --busy leaves out paths that nobody holds or waits for, in lines and in JSON. What can't be read, and
 * a lock below an idle one, stay. */
TOOL_TEST(idle_paths_can_be_left_out)
{
    static const struct wire_acl nothing = {1 << 4, "world", "anyone"};

    contender("/busy/held", "lock-", owner_text(1));
    contender("/busy/permits/leases", "lease-", owner_text(1));
    check_ok(wire_create(raw, "/busy/permits/locks", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/busy/idle", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/busy/free-permits", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/busy/free-permits/leases", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/busy/free-permits/locks", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create_acl(raw, "/busy/denied", "", WIRE_PERSISTENT, &nothing, 1, NULL, 0));
    check_said(0, "status /busy", "/busy/idle  free\n", "/busy/free-permits  semaphore, free\n");
    check_said(0, "status --busy /busy", "/busy/held  mutex, 1 held, 0 waiting\n",
               "/busy/permits  semaphore, 1 held, 0 waiting\n", "/busy/denied  cannot be read",
               "!/busy/idle", "!/busy/free-permits");
    check_said(0, "status --busy --json /busy", "!/busy/idle");
    check_said(0, "status --busy /busy/idle");
}

/* Goal: a folder of very many free paths is seen by one list of it, and not by a request for each. */
TOOL_TEST(many_free_paths_are_told_soon)
{
    enum { PATHS = 300 };

    struct proxy *proxy = world_proxy();
    check_ok(wire_create(raw, "/many", "", WIRE_PERSISTENT, NULL, 0));
    for (int i = 0; i < PATHS; i++) {
        check_ok(wire_create(raw, written("/many/%d", i), "", WIRE_PERSISTENT, NULL, 0));
    }
    contender("/many/7", "lock-", owner_text(1));
    check_ok(setenv("ZKLOCK_SERVERS", proxy_address(proxy), 1));
    check_said(0, "status /many", "/many/299  free\n");
    check_num(proxy_counts(proxy, PROXY_CHILDREN) + proxy_counts(proxy, PROXY_CHILDREN2), <=, 3);
    check_num(proxy_counts(proxy, PROXY_GET), <=, PATHS + 5);
    check_said(0, "status --busy /many", "/many/7  mutex, 1 held, 0 waiting\n");
    check_ok(setenv("ZKLOCK_SERVERS", zks_connect_string(server), 1));
}

/* Goal: the parts of a semaphore are shown as that semaphore. A lock that only has the name of such a part is
 * a lock. A mutex at the path of a semaphore hides no permit. */
TOOL_TEST(parts_of_a_semaphore_are_told)
{
    contender("/parts/leases", "lease-", "first");
    contender("/parts/leases", "lease-", "second");
    check_ok(wire_set(raw, "/parts/leases", "2", -1));
    contender("/parts/locks", "lock-", "third");
    check_said(0, "status /parts",
               "/parts  semaphore, 2 of 2 held, 1 waiting\n  holds  permit  first");
    check_said(0, "status /parts/leases",
               "/parts  semaphore, 2 of 2 held, 1 waiting\n  holds  permit  first");
    check_said(0, "status /parts/locks", "/parts  semaphore, 2 of 2 held, 1 waiting\n");
    contender("/parts-app/locks", "lock-", "one");
    contender("/parts-app/other", "lock-", "two");
    check_said(0, "status /parts-app",
               "/parts-app/locks  mutex, 1 held, 0 waiting\n  holds  lock    one ");
    check_said(0, "status /parts-app/locks", "/parts-app/locks  mutex, 1 held, 0 waiting\n");
    contender("/parts-names/locks", "lock-", "one");
    contender("/parts-names/leases", "lock-", "two");
    check_said(0, "status /parts-names", "/parts-names/leases  mutex, 1 held, 0 waiting\n",
               "/parts-names/locks  mutex, 1 held, 0 waiting\n");
    contender("/parts-both", "lock-", "mutex");
    contender("/parts-both/leases", "lease-", "permit");
    check_said(0, "status /parts-both", "/parts-both  mutex and semaphore, 2 held, 0 waiting\n",
               "  holds  permit  permit ", "  holds  lock    mutex ");
    check_ok(wire_create(raw, "/parts-only", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/parts-only/child", "", WIRE_EPHEMERAL, NULL, 0));
    check_said(0, "status /parts-only", "/parts-only  free\n  other  -       session 0x");
}

/* --- JSON -------------------------------------------------------------------------------------- */

static json_t *json_of(const char *path)
{
    struct tool tool = tool_line("status --json %s", path);
    check_num(tool_status(&tool), ==, 0);
    json_error_t error;
    json_t *all = json_loads(tool_text(&tool), 0, &error);
    if (!all)
        fail_msg("no JSON: %s in %s", error.text, tool_text(&tool));
    return all;
}

/* locks[0].LIST[0] */
static json_t *first_of(json_t *all, const char *list)
{
    json_t *entry =
        json_array_get(json_object_get(json_array_get(json_object_get(all, "locks"), 0), list), 0);
    check_true(entry);
    return entry;
}

static const char *text_of(json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "(null)";
}

/* Goal: programs get the same, whole and in JSON's own types. */
TOOL_TEST(json_has_all_of_it)
{
    const char *first = contender("/json", "lock-", owner_text(7));
    const char *second = contender("/json", "lock-", "\"quoted\" \\");

    check_ok(wire_create(raw, "/json/foreign", "", WIRE_EPHEMERAL, NULL, 0));
    json_t *all = json_of("/json");
    check_text(text_of(all, "path"), "/json");
    json_t *holder = first_of(all, "holders"), *waiter = first_of(all, "queue");
    check_text(text_of(holder, "node"), first);
    check_text(text_of(holder, "style"), "curator");
    check_num(json_integer_value(json_object_get(holder, "pid")), ==, getpid());
    check_num(json_integer_value(json_object_get(holder, "thread")), ==, 7);
    check_num(json_integer_value(json_object_get(holder, "czxid")), >, 0);
    check_true(json_integer_value(json_object_get(holder, "age_ms")) < 20000 || lag_is_slow());
    check_true(json_is_null(json_object_get(holder, "waits_for")));
    check_text(text_of(waiter, "node"), second);
    check_text(text_of(waiter, "owner"), "\"quoted\" \\");
    check_text(text_of(waiter, "waits_for"), first);
    check_true(json_is_null(json_object_get(waiter, "host")));
    check_num(json_integer_value(json_object_get(waiter, "sequence")), ==, 1);
    check_text(text_of(first_of(all, "others"), "node"), "/json/foreign");
    json_decref(all);
}

/* Goal: status shows a semaphore's permits, and which holder was asked to release. */
TOOL_TEST(permits_and_requests_are_told)
{
    check_ok(wire_create(raw, "/permits", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/permits/leases", "3", WIRE_PERSISTENT, NULL, 0));
    contender("/permits/leases", "lease-", "__REVOKE__");
    contender("/permits/locks", "lock-", "one who asks for a permit");
    check_said(0, "status /permits",
               "/permits  semaphore, 1 of 3 held, 1 waiting\n  holds  permit  session 0x",
               "(asked to release)");
    json_t *all = json_of("/permits");
    check_true(json_is_true(json_object_get(first_of(all, "holders"), "asked_to_let_go")));
    json_decref(all);
}

/* --- what others wrote --------------------------------------------------------------------------- */

/* Data that is no text: surrogates and other bytes that are no UTF-8. */
static const char *const no_texts[] = {"a\xed\xa0\x80z", "\xed\xb0\x80", "\xff\xfe",
                                       "a\xc3",          "\xc0\xaf",     "\xf4\x90\x80\x80"};

/* Goal: data that is no text hides nothing of the tree. status shows such a contender by its session, and
 * the others as usual. */
TOOL_TEST(data_that_is_no_text_hides_nothing)
{
    contender("/bytes/good", "lock-", "somebody");
    for (size_t i = 0; i < sizeof no_texts / sizeof no_texts[0]; i++) {
        char root[64];
        snprintf(root, sizeof root, "/bytes/bad-%zu", i);
        contender(root, "lock-", no_texts[i]);
        json_t *all = json_of(root);
        json_t *holder = first_of(all, "holders");
        check_true(json_is_null(json_object_get(holder, "owner")));
        check_true(json_is_string(json_object_get(holder, "session")));
        json_decref(all);
        check_said(0, written("status %s", root), "  holds  lock    session 0x");
    }
    json_t *all = json_of("/bytes");
    check_num(json_array_size(json_object_get(all, "locks")), ==,
              1 + sizeof no_texts / sizeof no_texts[0]);
    json_decref(all);
    check_said(0, "status /bytes", "holds  lock    somebody");
    check_said(0, "doctor /bytes", "7 locks, 0 problems\n");
}

static void make_levels(const char *root, int levels, const char *name)
{
    char path[1024];

    check_ok(wire_create(raw, root, "", WIRE_PERSISTENT, NULL, 0));
    size_t length = (size_t)snprintf(path, sizeof path, "%s", root);
    for (int i = 0; i < levels; i++) {
        length += (size_t)snprintf(path + length, sizeof path - length, "/%s", name);
        check_ok(wire_create(raw, path, "", WIRE_PERSISTENT, NULL, 0));
    }
}

/* Goal: status says so of a path that is too long for a lock, by one name or by many levels. It shows the
 * locks beside it as usual. */
TOOL_TEST(paths_too_long_for_a_lock_are_told)
{
    static const char *const roots[] = {"/long", "/deep"};
    char path[700];

    make_levels("/deep", 20, "a-level-of-thirty-bytes-or-more");
    check_ok(wire_create(raw, "/long", "", WIRE_PERSISTENT, NULL, 0));
    snprintf(path, sizeof path, "/long/%0600d", 0);
    check_ok(wire_create(raw, path, "", WIRE_PERSISTENT, NULL, 0));
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        char beside[64];
        snprintf(beside, sizeof beside, "%s/beside", roots[i]);
        contender(beside, "lock-", owner_text(1));
        check_said(0, written("status %s", roots[i]),
                   written("%s  mutex, 1 held, 0 waiting\n", beside),
                   "  no lock: the path is too long for a lock\n");
        check_said(0, written("doctor %s", roots[i]),
                   "  no lock: the path is too long for a lock\n", " 0 problems\n");
        json_t *all = json_of(roots[i]), *locks = json_object_get(all, "locks"), *lock;
        size_t index, too_long = 0;
        json_array_foreach(locks, index, lock) too_long +=
            strlen(text_of(lock, "path")) > 512 && strcmp(text_of(lock, "kind"), "none") == 0;
        check_num(too_long, ==, 1);
        json_decref(all);
    }
    /* at a lock */
    check_ok(wire_create(raw, written("/long/beside/%0600d", 0), "", WIRE_EPHEMERAL, NULL, 0));
    check_said(0, "status /long/beside", "  other  -       session 0x");
    check_said(1, "doctor /long/beside", "0 is not a contender and does not belong here");
}

/* Goal: likewise 300 levels, all but the last of which could be locks. */
TOOL_TEST(three_hundred_levels_are_looked_at)
{
    int status = -1;

    make_levels("/levels", 300, "l");
    contender("/levels/beside", "lock-", owner_text(1));
    struct tool tool = tool_line("status /levels");
    check_wait(waitpid(tool.pid, &status, WNOHANG) == tool.pid,
               3 * WAIT_MS); /* it asks 600 times */
    check_num(status, ==, 0);
    check_true(tool_says(&tool, "/levels/beside  mutex, 1 held, 0 waiting\n"));
    check_true(tool_says(&tool, "/l  no lock: the path is too long for a lock\n"));
}

/* Characters that turn a line around, break it, or are not seen; and how each is shown. */
static const struct {
    const char *text, *shown;
} hidden[] = {
    {"\xe2\x80\xae", "\\u202e"}, {"\xe2\x80\xaa", "\\u202a"}, {"\xe2\x81\xa6", "\\u2066"},
    {"\xe2\x81\xa9", "\\u2069"}, {"\xe2\x80\x8e", "\\u200e"}, {"\xe2\x80\x8f", "\\u200f"},
    {"\xd8\x9c", "\\u061c"},     {"\xe2\x80\x8b", "\\u200b"}, {"\xe2\x80\x8d", "\\u200d"},
    {"\xe2\x81\xa0", "\\u2060"}, {"\xef\xbb\xbf", "\\ufeff"}, {"\xc2\xad", "\\u00ad"},
    {"\xe2\x80\xa8", "\\u2028"}, {"\xe2\x80\xa9", "\\u2029"}, {"\xf3\xa0\x81\x81", "\\U000e0041"},
};

/* All of them in a row; with names only those that the server takes. */
static const char *all_hidden(bool names)
{
    static char texts[2][256];
    char *text = texts[names];

    text[0] = '\0';
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (!names || hidden[i].text[0] != '\xf3')
            strcat(text, hidden[i].text);
    }
    return text;
}

static void check_shown(const struct tool *tool, bool is_written_out)
{
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (tool_says(tool, hidden[i].text))
            fail_msg("%s as it is: %s", hidden[i].shown, tool_text(tool));
        if (is_written_out && !tool_says(tool, hidden[i].shown))
            fail_msg("no %s: %s", hidden[i].shown, tool_text(tool));
    }
}

/* Goal: others' text does nothing to a terminal or a line, wherever it is shown; ordinary text stays. */
TOOL_TEST(what_is_not_seen_is_written_out)
{
    char owner[300];

    snprintf(owner, sizeof owner, "a\\stra\xc3\x9f\xe6\x97\xa5%s", all_hidden(false));
    static const char *const lines[] = {
        "status /hidden",        "status --json /hidden", "doctor /hidden",
        "revoke \"$node\"",      "break \"$node\"",       /* finds no terminal to ask on */
        "break --yes \"$node\"", "break --yes \"$node\"", /* is not there any more */
    };
    setenv("node", contender(written("/hidden/n%sn", all_hidden(true)), "lock-", owner), 1);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct tool tool = tool_line("%s", lines[i]);
        tool_wait(&tool);
        check_shown(&tool, i == 0);
        if (i == 0 && !tool_says(&tool, "a\\stra\xc3\x9f\xe6\x97\xa5\\u202e"))
            fail_msg("not as it was: %s", tool_text(&tool));
        close(tool.output);
    }
}

/* --- a terminal -------------------------------------------------------------------------------- */

/* Goal: --watch shows contenders as they come and go, in color, with no line wider than the terminal; ^C
 * ends it. */
TOOL_TEST(watch_draws_again)
{
    const char *holder = contender("/watch", "lock-", owner_text(1));
    struct typist *typist = typist_run(50, "status", "--watch", "/watch");
    typist_wait(typist, "\033[1m/watch  mutex, 1 held, 0 waiting\033[0m");
    typist_wait(typist, "\033[32m  holds  lock ");
    typist_wait(typist, "\033[J"); /* all of it is drawn */
    check_true(
        !strstr(typist->screen, strrchr(holder, '-'))); /* the end of a line that is too long */
    contender("/watch", "lock-", "second");
    typist_wait(typist, "/watch  mutex, 1 held, 1 waiting");
    check_ok(wire_delete(raw, holder, -1));
    typist_wait(typist, "\033[32m  holds  lock    second ");
    typist_type(typist, "\003");
    int status = typist_end(typist);
    check_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

/* Goal: without a terminal, or with NO_COLOR, status prints no color. Without a terminal it refuses --watch.
 * It reports a wrong call. */
TOOL_TEST(without_a_terminal_it_is_plain)
{
    contender("/plain", "lock-", owner_text(1));
    struct tool tool = tool_line("status /plain");
    check_num(tool_status(&tool), ==, 0);
    check_true(!strchr(tool_text(&tool), '\033'));
    check_ok(setenv("NO_COLOR", "1", 1));
    struct typist *typist = typist_run(200, "status", "/plain");
    typist_wait(typist, "-lock-0000000000\r\n");
    check_true(!strchr(typist->screen, '\033'));
    check_num(typist_end(typist), ==, 0);
    check_ok(unsetenv("NO_COLOR"));
    check_said(64, "status --watch /plain", "--watch requires a terminal");
    check_said(64, "status", "one PATH, not 0 words");
    check_said(64, "status --frob /plain", "status has no option --frob");
    check_said(64, "status plain", "does not begin with a slash");
}

/* Goal: status says so of a path that it may not read. If that is the given path, its exit status says so
 * too. */
TOOL_TEST(what_is_denied_is_told)
{
    static const struct wire_acl nothing = {1 << 4, "world", "anyone"};

    check_ok(wire_create(raw, "/denied", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create_acl(raw, "/denied/below", "", WIRE_PERSISTENT, &nothing, 1, NULL, 0));
    check_said(0, "status /denied", "/denied/below  cannot be read: the ACL denies READ\n");
    check_said(77, "status /denied/below", "/denied/below");
}

/* Goal: one node that may not be read is no reason to give up on the others, whatever the server says of it.
 * Method: exists is answered as a newer server does; all commands that look. */
TOOL_TEST(one_unreadable_node_is_told)
{
    static const struct wire_acl unreadable = {0x1f & ~1, "world", "anyone"};
    static const char node[] = "/veiled/a/_c_01234567-89ab-4def-8123-456789abcdef-lock-0000000000";

    struct proxy *proxy = world_proxy();
    check_ok(wire_create(raw, "/veiled", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/veiled/a", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create_acl(raw, node, "", WIRE_EPHEMERAL, &unreadable, 1, NULL, 0));
    contender("/veiled/a", "lock-", "one who waits");
    contender("/veiled/b", "lock-", "one who holds");
    check_ok(wire_create_acl(raw, "/veiled/c", "", WIRE_PERSISTENT, &unreadable, 1, NULL, 0));
    deny_exists(proxy, "/veiled/");
    check_ok(setenv("ZKLOCK_SERVERS", proxy_address(proxy), 1));
    check_said(0, "status /veiled",
               "/veiled/a  mutex, 1 held, 1 waiting\n  holds  lock    not readable  ",
               "  waits  lock    one who waits  ", "/veiled/b  mutex, 1 held, 0 waiting\n",
               "/veiled/c  cannot be read: the ACL denies READ\n");
    json_t *all = json_of("/veiled/a"), *holder = first_of(all, "holders");
    check_text(text_of(holder, "node"), node);
    check_true(json_is_true(json_object_get(holder, "denied")));
    check_true(json_is_null(json_object_get(holder, "czxid")));
    check_true(json_is_null(json_object_get(holder, "age_ms")));
    check_true(json_is_false(json_object_get(first_of(all, "queue"), "denied")));
    json_decref(all);
    check_said(1, "doctor /veiled", "problem: not all clients that may queue can read _c_01234567",
               "/veiled/b  mutex\n", "!is not ephemeral");
    check_said(0, written("break --yes %s", node), "deleted /veiled/a/_c_");
    check_said(0, "status /veiled", "/veiled/a  mutex, 1 held, 0 waiting\n");
    check_ok(setenv("ZKLOCK_SERVERS", zks_connect_string(server), 1));
}

/* Goal: a script can distinguish a server that is connected and silent from what was found. Method: the
 * proxy holds the answer back. The session timeout is so long that the link does not break first. */
TOOL_TEST(a_server_that_falls_silent_gave_no_answer)
{
    struct proxy *proxy = world_proxy();
    contender("/silent/a", "lock-", "holds");
    check_ok(proxy_hold_reply(proxy, PROXY_CHILDREN2, 1));
    check_ok(setenv("ZKLOCK_SERVERS", proxy_address(proxy), 1));
    struct tool tool = tool_line("status --session-timeout 60 /silent/a");
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    check_num(tool_status(&tool), ==, 69);
    check_ok(setenv("ZKLOCK_SERVERS", zks_connect_string(server), 1));
}
