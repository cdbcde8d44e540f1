/* SPDX-License-Identifier: Apache-2.0 */
/* zklock doctor: each thing that can be wrong is found where it is, and nowhere else. */
#include "peek.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lag.h"
#include "snapshot.h"

#define LOCKED "lock-"

/* Goal: the doctor finds no problem in a sound lock. It still says how each other library treats that
 * lock. */
TOOL_TEST(a_sound_lock_has_no_problem)
{
    contender("/sound/mutex", LOCKED, owner_text(1));
    contender("/sound/mutex", LOCKED, owner_text(2));
    check_said(0, "doctor /sound/mutex", "1 lock, 0 problems\n",
               "  Curator: InterProcessMutex shares it\n",
               "  Kazoo: Lock, ReadLock and WriteLock wait for these only with extra_lock_patterns",
               "  ZooKeeper's C recipe: shares it\n");
    contender("/sound/rw", "__READ__", owner_text(3));
    check_said(0, "doctor /sound/rw", "  Curator: InterProcessReadWriteLock shares it;");
    check_said(0, "doctor /sound", "2 locks, 0 problems\n");
    check_said(0, "doctor /not/there", "1 lock, 0 problems\n");
}

TOOL_TEST(foreign_children_are_found)
{
    contender("/foreign", LOCKED, owner_text(1));
    check_ok(wire_create(raw, "/foreign/0", "", WIRE_EPHEMERAL, NULL, 0));
    check_said(1, "doctor /foreign", "problem: 0 is not a contender",
               "  Curator: counts every child", "1 lock, 1 problem\n");
}

/* Goal: a child that Curator waits for is told from one that it does not wait for, by the names that its own
 * sorting puts first, and from one that counts as a permit; without contenders too, as nobody who gives up on
 * the lock leaves one. */
TOOL_TEST(children_that_stop_curator_are_told)
{
    static const struct {
        const char *name, *words;
    } children[] = {
        {"0-old", "Curator waits for it for ever; delete it"},
        {"a-lock-", "Curator waits for it for ever; delete it"},
        {"+", "Curator waits for it for ever; delete it"},
        {"1-new", "other libraries may not; delete it"},
        {"old", "other libraries may not; delete it"},
        {"x-lock-y", "other libraries may not; delete it"},
    };
    char child[64];

    check_ok(wire_create(raw, "/stop", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/stop/0-old", "", WIRE_PERSISTENT, NULL, 0));
    check_said(0, "doctor /stop",
               "  0-old is no contender: if Curator locks /stop itself, it waits for that child");
    check_ok(wire_delete(raw, "/stop/0-old", -1));
    contender("/stop", LOCKED, owner_text(1));
    for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
        snprintf(child, sizeof child, "/stop/%s", children[i].name);
        check_ok(wire_create(raw, child, "", WIRE_PERSISTENT, NULL, 0));
        check_said(1, "doctor /stop",
                   written("problem: %s is not a contender and does not belong here: "
                           "zklock ignores it, but %s",
                           children[i].name, children[i].words));
        check_ok(wire_delete(raw, child, -1));
    }
    check_ok(wire_create(raw, "/stop/0-old", "", WIRE_PERSISTENT, NULL, 0));
    contender("/stop/0-old", LOCKED, owner_text(1));
    check_said(1, "doctor /stop",
               "Curator waits for it for ever; what is below it needs another path");
    contender("/stop-permits/leases", "lease-", owner_text(1));
    check_ok(wire_create(raw, "/stop-permits/leases/other", "", WIRE_PERSISTENT, NULL, 0));
    check_said(1, "doctor /stop-permits",
               "leases/other is not a contender and does not belong here: zklock ignores it, but "
               "Curator counts it as a permit");
}

/* Goal: a semaphore that shares its path with a mutex, or with readers, is named as the mistake. */
TOOL_TEST(a_semaphore_at_a_mutex_is_found)
{
    static const char *const markers[] = {LOCKED, "__READ__", "__WRIT__"};
    char path[32];

    for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++) {
        snprintf(path, sizeof path, "/both-%zu", i);
        contender(path, markers[i], owner_text(1));
        contender(written("%s/leases", path), "lease-", owner_text(2));
        check_said(1, written("doctor %s", path),
                   "problem: a semaphore shares this path with a mutex or a read-write lock",
                   "1 lock, 1 problem\n");
    }
}

/* Goal: a node that stays is found. One whose data names a process that this machine does not have is no
 * problem: it may be a process of a container that has this machine's name. */
TOOL_TEST(nodes_that_nobody_removes_are_found)
{
    static const char stays[] = "/stays/_c_01234567-89ab-4def-8123-456789abcdef-lock-0000000000";
    char host[64] = "";

    check_ok(wire_create(raw, "/stays", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, stays, owner_text(1), WIRE_PERSISTENT, NULL, 0));
    check_said(1, "doctor /stays",
               "is not ephemeral and stays until it is deleted: zklock break /stays/_c_");
    check_said(0, written("break --yes %s", stays), "deleted");
    gethostname(host, sizeof host - 1);
    struct tool ended = tool_line("--version");
    check_num(tool_status(&ended), ==, 0);
    contender("/stays", LOCKED, written("%s %d 1", host, (int)ended.pid));
    check_said(0, "doctor /stays", "1 lock, 0 problems\n");
}

/* Goal: kinds of locks on one path that do not wait for each other. */
TOOL_TEST(mixed_kinds_are_found)
{
    contender("/mixed/kazoo", LOCKED, owner_text(1));
    check_ok(wire_create(raw, "/mixed/kazoo/0123456789abcdef0123456789abcdef__lock__", "",
                         WIRE_EPHEMERAL_SEQUENTIAL, NULL, 0));
    check_said(1, "doctor /mixed/kazoo", "problem: Kazoo's names are mixed with others");
    contender("/mixed/rw", LOCKED, owner_text(1));
    contender("/mixed/rw", "__READ__", owner_text(2));
    check_said(
        0, "doctor /mixed/rw",
        "  Curator: InterProcessMutex and InterProcessReadWriteLock do not wait for all"); /* as zklock run with and without -s is */
    check_said(1, "doctor /mixed", "2 locks, 1 problem\n");
}

/* Goal: an ACL of thousands of entries is read to its end, where the one stands that counts. */
TOOL_TEST(long_acls_are_read_to_their_end)
{
    enum { ENTRIES = 3000 };
    static struct wire_acl acl[ENTRIES + 1];
    static char names[ENTRIES][16];

    for (int i = 0; i < ENTRIES; i++) {
        snprintf(names[i], sizeof names[i], "user%d:x", i);
        acl[i] = (struct wire_acl){1, "digest", names[i]};
    }
    acl[ENTRIES] = (struct wire_acl){31, "world", "anyone"};
    check_ok(wire_create_acl(raw, "/long", "", WIRE_PERSISTENT, acl, ENTRIES + 1, NULL, 0));
    check_said(0, "doctor /long", "0 problems");
}

TOOL_TEST(wrong_acls_are_found)
{
    static const struct wire_acl no_delete = {1 | 4, "world", "anyone"}; /* READ, CREATE */
    static const struct wire_acl no_read = {2, "world", "anyone"};
    static const char node[] = "/acl/node/_c_01234567-89ab-4def-8123-456789abcdef-lock-";

    check_ok(wire_create(raw, "/acl", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create_acl(raw, "/acl/root", "", WIRE_PERSISTENT, &no_delete, 1, NULL, 0));
    check_said(1, "doctor /acl/root",
               "problem: no client has all of READ, CREATE and DELETE on /acl/root");
    check_ok(wire_create(raw, "/acl/node", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create_acl(raw, node, "", WIRE_EPHEMERAL_SEQUENTIAL, &no_read, 1, NULL, 0));
    check_said(1, "doctor /acl/node", "problem: not all clients that may queue can read _c_");
    check_ok(wire_create_acl(raw, "/acl/denied", "", WIRE_PERSISTENT, &no_read, 1, NULL, 0));
    check_said(1, "doctor /acl", "/acl/denied\n  problem: it cannot be read with this credential");
    check_ok(wire_create(raw, "/acl/open", "", WIRE_PERSISTENT, NULL, 0));
    check_said(0, "doctor /acl/open", "0 problems");
    check_ok(setenv("ZKLOCK_ACL", "creator", 1));
    check_ok(setenv("ZKLOCK_AUTH", "digest:alice:secret", 1));
    check_said(1, "doctor /acl/open",
               "problem: any client may create or delete nodes in /acl/open");
}

/* --- circles ----------------------------------------------------------------------------------- */

/* Goal: threads that wait for each other are found over several locks, and each once; a long queue, or one
 * thread that holds one lock and waits for another, is no circle. */
TOOL_TEST(circles_of_waits_are_found)
{
    const char *a = owner_text(1), *b = owner_text(2), *c = owner_text(3);

    contender("/circle/x", LOCKED, a);
    contender("/circle/y", LOCKED, b);
    contender("/circle/z", LOCKED, c);
    contender("/circle/x", LOCKED, c);
    const char *last = contender("/circle/y", LOCKED, a);
    check_said(0, "doctor /circle", "3 locks, 0 problems\n");
    contender("/circle/z", LOCKED, b);
    check_said(1, "doctor /circle", "problem: these 3 seem to wait for each other, for ever if ",
               " waits for /circle/y, node /circle/y/_c_", "3 locks, 1 problem\n");
    check_ok(wire_delete(raw, last, -1));
    check_said(0, "doctor /circle", "3 locks, 0 problems\n");
}

/* A contender of another session. */
static void contender_of(struct wire *session, const char *root, const char *owner)
{
    struct wire *ours = raw;

    raw = session;
    contender(root, LOCKED, owner);
    raw = ours;
}

/* Goal: sessions are told from each other even if their data is the same, as that of two containers of one
 * name, or of a thread and its former session. Who waits behind such a one is in no circle; a circle of two
 * of them is one. */
TOOL_TEST(one_text_of_two_sessions_is_two)
{
    static const char text[] = "box 1 1";
    struct wire *other = NULL;

    check_ok(wire_open(&other, zks_host(), zks_port(server, 0), WIRE_LASTING_MS));
    contender("/twins/x", LOCKED, text);
    contender_of(other, "/twins/x", text);
    check_said(0, "doctor /twins", "1 lock, 0 problems\n");
    contender_of(other, "/twins/y", text);
    check_said(0, "doctor /twins", "2 locks, 0 problems\n");
    contender("/twins/y", LOCKED, text);
    check_said(1, "doctor /twins", "problem: these 2 seem to wait for each other, for ever if ",
               "2 locks, 1 problem\n");
    wire_close(other);
}

/* A zklock that holds the first path, whose command waits for the file "go" and then for the second path. */
static struct tool nested(const char *outer, const char *inner)
{
    return tool_run(
        "run", outer, "--", "sh", "-c",
        written("until [ -e '%s/go' ]; do sleep 0.1; done; exec '%s' run -w 60 %s -- true",
                zks_dir(server), ZKLOCK, inner));
}

static void go(void)
{
    FILE *f = fopen(written("%s/go", zks_dir(server)), "we");
    check_true(f && fclose(f) == 0);
}

static void end_nested(struct tool *tool)
{
    kill(tool->pid, SIGTERM);
    tool_wait(tool);
}

/* Goal: zklock run in the command of another zklock run waits on behalf of that one: a circle of two such
 * pairs is found, and one that waits for the lock that it runs under. */
TOOL_TEST(nested_runs_are_one)
{
    struct tool first = nested("/nested/a", "/nested/b");
    struct tool second = nested("/nested/b", "/nested/a");
    check_wait(cluster_children("/nested/a") == 1 && cluster_children("/nested/b") == 1, WAIT_MS);
    check_said(0, "doctor /nested", "2 locks, 0 problems\n");
    go();
    check_wait(cluster_children("/nested/a") == 2 && cluster_children("/nested/b") == 2, WAIT_MS);
    check_said(1, "doctor /nested", "problem: these 2 seem to wait for each other, for ever if ",
               "2 locks, 1 problem\n");
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    check_said(0, "status /nested/a", written("  waits  lock    %s pid ", host));
    end_nested(&first);
    end_nested(&second);
    struct tool itself = nested("/nested/c", "/nested/c");
    check_wait(cluster_children("/nested/c") == 2, WAIT_MS);
    check_said(1, "doctor /nested/c", "problem: this one seems to wait for itself, for ever if ");
    end_nested(&itself);
}

/* Goal: a writer waits for all who read, not only for the last of them. */
TOOL_TEST(a_writer_waits_for_all_readers)
{
    const char *a = owner_text(1), *b = owner_text(2);

    contender("/readers/rw", "__READ__", a);
    contender("/readers/rw", "__READ__", owner_text(3));
    contender("/readers/rw", "__WRIT__", b);
    contender("/readers/mutex", LOCKED, b);
    contender("/readers/mutex", LOCKED, a);
    check_said(1, "doctor /readers", "problem: these 2 seem to wait for each other, for ever if ");
}

/* A contender with a name of its own, in a queue that is made if it is not there. */
static void contender_named(const char *root, const char *name, const char *owner)
{
    int rc = wire_create(raw, root, "", WIRE_PERSISTENT, NULL, 0);

    check_true(rc == 0 || rc == WIRE_NODEEXISTS);
    check_ok(
        wire_create(raw, written("%s/%s", root, name), owner, WIRE_EPHEMERAL_SEQUENTIAL, NULL, 0));
}

/* Goal: of a node that may stay when its thread leaves, nobody knows who has it, so no circle leads over it. While it
 * waits it is its thread's. Method: the UUID in its name, of either style, is one of version 8. */
TOOL_TEST(nodes_that_may_stay_are_in_no_circle)
{
    const char *a = owner_text(1), *b = owner_text(2);

    contender("/stay/x", LOCKED, b);
    contender("/stay/x", LOCKED, a);
    contender_named("/stay/rw", "_c_01234567-89ab-8def-8123-456789abcdef-__READ__", a);
    contender("/stay/rw", "__WRIT__", b);
    contender_named("/stay/kazoo", "0123456789ab8def8123456789abcdef__lock__", a);
    contender_named("/stay/kazoo", "0123456789ab4def8123456789abcdef__lock__", b);
    check_said(0, "doctor /stay", "3 locks, 0 problems\n");
    contender("/stay/y", LOCKED, a);
    contender_named("/stay/y", "_c_01234567-89ab-8def-8123-456789abcdef-" LOCKED, b);
    check_said(1, "doctor /stay", "problem: these 2 seem to wait for each other, for ever if ",
               "4 locks, 1 problem\n");
}

/* The lists of /late/a and /late/b that were asked for: those of the second one wait for the test. */
struct late {
    atomic_int first, second; /* letters */
    atomic_bool over;
};

static size_t hold_second_list(enum proxy_dir dir, int op, unsigned char *frame, size_t size,
                               void *arg)
{
    static const char path[] = "/late/";
    struct late *late = arg;
    unsigned char *found = dir == PROXY_TO_SERVER && (op == PROXY_CHILDREN || op == PROXY_CHILDREN2)
                               ? memmem(frame, size, path, sizeof path - 1)
                               : NULL;

    if (!found)
        return size;
    int letter = found[sizeof path - 1];
    if (late->first == 0)
        late->first = letter;
    if (letter == late->first)
        return size;
    late->second = letter;
    wait_until(late->over, WAIT_MS);
    return size;
}

/* Goal: threads that were seen to wait at two locks, but one after the other, are in no circle. Method: the
 * queues change between the looks at the two. */
TOOL_TEST(waits_at_different_times_are_no_circle)
{
    struct late late = {0};
    const char *a = owner_text(1), *b = owner_text(2);
    struct proxy *proxy = world_proxy();
    const char *nodes[] = {contender("/late/a", LOCKED, a), contender("/late/a", LOCKED, b),
                           contender("/late/b", LOCKED, a), contender("/late/b", LOCKED, b)};
    char second[] = "/late/?";

    proxy_set_hook(proxy, hold_second_list, &late);
    struct tool tool = tool_line("doctor --servers %s /late", proxy_address(proxy));
    check_wait(late.second != 0, WAIT_MS);
    for (size_t i = 0; i < 4; i++)
        check_ok(wire_delete(raw, nodes[i], -1));
    second[strlen("/late/")] = (char)late.second;
    contender(second, LOCKED, b);
    contender(second, LOCKED, a);
    late.over = true;
    check_num(tool_status(&tool), ==, 0);
    check_true(tool_says(&tool, "2 locks, 0 problems\n"));
}

/* --- servers that do not answer ---------------------------------------------------------------- */

/* Goal: a link that breaks amid the questions costs nothing, as the one that was lost is asked again; and a server that
 * says no more ends the command once, and not once for each question that is left. */
TOOL_TEST(lost_answers_are_asked_for_once_more)
{
    enum { LOCKS = 12 };

    for (int i = 0; i < LOCKS; i++) {
        contender(written("/silent/%d", i), LOCKED, owner_text(1));
    }
    struct proxy *proxy = world_proxy();
    const char *servers = proxy_address(proxy);
    check_ok(proxy_drop_reply(proxy, PROXY_GET_ACL, 3, PROXY_THEN_CUT));
    check_said(0, written("doctor --servers %s /silent", servers), "12 locks, 0 problems\n");
    check_num(proxy_counts(proxy, PROXY_GET_ACL), ==, 2 * LOCKS + 1);
    proxy_reset_counts(proxy);
    check_ok(proxy_hold_reply(proxy, PROXY_GET_ACL, 3));
    int64_t start = net_now_ms();
    struct tool tool = tool_line("doctor --servers %s /silent", servers);
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    proxy_hole(proxy, PROXY_BOTH);
    int status = tool_status(&tool);
    tool_check_end(&tool, status, 69, "not all requests were answered: try again");
    check_true(tool_says(&tool, "/silent/11"));
    check_num(net_now_ms() - start, <, LOCKS * 3 * 10000 / 2); /* of the time that all would wait */
}

/* --- what a session owns ----------------------------------------------------------------------- */

#define NEAR_THE_EDGE                                                                              \
    1572825 /* bytes: three quarters of what servers can read of a session's end */

/* Own nodes in this queue, as many as are wanted or as stay below these bytes. The server counts a path with the 4 bytes
 * of its length, from its own root on. */
static size_t own_below(struct wire *session, const char *root, size_t bytes, size_t *owned)
{
    char asked[600], node[600];
    size_t count = 0;

    snprintf(asked, sizeof asked, "%s/_c_01234567-89ab-4def-8123-456789abcdef-" LOCKED, root);
    for (size_t each = 4 + strlen(asked) + 10; *owned + each <= bytes; *owned += each, count++)
        check_ok(
            wire_create(session, asked, "owner", WIRE_EPHEMERAL_SEQUENTIAL, node, sizeof node));
    return count;
}

/* check_said. A busy machine may need longer for thousands of nodes than the 10 s of a look (69), though it can't do in
 * that time what another does in 7.5 s: then once more. */
static void check_of_many(int status, const char *line, const char *words)
{
    struct tool tool;
    int64_t counted_ms;
    int ended;

    do {
        lag_begin();
        tool = tool_line("%s", line);
        ended = tool_status(&tool);
        counted_ms = lag_end_ms();
    } while (counted_ms < 7500 && ended == 69 && tool_says(&tool, "the deadline passed"));
    tool_check_end(&tool, ended, status, words);
}

/* Goal: a session that owns so much that its end comes near to what servers can read is named, with what it owns at all
 * paths together, and from a chroot as well; with a node less it is not. */
TOOL_TEST(a_session_that_owns_much_is_named)
{
    char root[500], words[256];
    struct wire *session = NULL;
    size_t owned = 0, count = 0;

    check_ok(wire_open(&session, zks_host(), zks_port(server, 0), WIRE_LASTING_MS));
    check_ok(wire_create(raw, "/owned", "", WIRE_PERSISTENT, NULL, 0));
    for (int i = 1; i <= 2; i++) {
        snprintf(root, sizeof root, "/owned/%0*d", (int)sizeof root - 8, i);
        check_ok(wire_create(raw, root, "", WIRE_PERSISTENT, NULL, 0));
        count += own_below(session, root, NEAR_THE_EDGE / 2 * (size_t)i, &owned);
    }
    check_of_many(0, "doctor /owned", "2 locks, 0 problems\n");
    count += own_below(session, root, owned + sizeof root + 100, &owned);
    check_num(owned, >=, NEAR_THE_EDGE);
    snprintf(
        words, sizeof words,
        "problem: session 0x%" PRIx64 " owns %zu nodes of locks with %zu bytes of paths: if it "
        "ends with more than 2097102, servers with the usual jute.maxbuffer do not start again",
        (uint64_t)wire_session(session), count, owned);
    check_of_many(1, "doctor /owned", words);
    check_of_many(1, "doctor /owned", "2 locks, 1 problem\n");
    check_of_many(1, written("doctor --servers %s/owned /", zks_connect_string(server)), words);
    wire_close(session);
}

/* --- numbers ----------------------------------------------------------------------------------- */

static void set_counters(void)
{
    char err[512] = "";

    wire_close(raw);
    raw = NULL;
    check_ok(zks_restart_node(server, 0)); /* writes a snapshot */
    check_ok(zks_stop_node(server, 0));
    if (snap_set_counter(zks_data_dir(server, 0), "/numbers/used-up", 0x7ff00000, err,
                         sizeof err) != 0 ||
        snap_set_counter(zks_data_dir(server, 0), "/numbers/soon", 2000000000, err, sizeof err) !=
            0 ||
        snap_set_counter(zks_data_dir(server, 0), "/numbers/fine", 1000000000, err, sizeof err) !=
            0)
        fail_msg("%s", err);
    check_ok(zks_start_node(server, 0));
    check_ok(zks_wait_ready(server, ZKS_READY_MS));
    check_ok(wire_open(&raw, zks_host(), zks_port(server, 0), WIRE_LASTING_MS));
}

/* Goal: the doctor reports sequence numbers that are used up, or will be soon, even while nobody
 * queues. */
TOOL_TEST(numbers_that_run_out_are_found)
{
    check_ok(wire_create(raw, "/numbers", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/numbers/used-up", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/numbers/soon", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/numbers/fine", "", WIRE_PERSISTENT, NULL, 0));
    set_counters();
    check_said(1, "doctor /numbers",
               "problem: the sequence numbers of /numbers/used-up are used up (2146435072)",
               "problem: the sequence numbers of /numbers/soon will soon be used up (2000000000",
               "3 locks, 2 problems\n");
}

int main(int argc, char **argv)
{
    cluster_server.no_digest = true; /* for snap_set_counter */
    return cluster_main(argc, argv);
}
