/* SPDX-License-Identifier: Apache-2.0 */
/* zklock doctor: each thing that can be wrong is found where it is, and nowhere else. */
#include "peek.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot.h"

#define LOCKED "lock-"

/* Goal: the doctor finds no problem in a sound lock. It still says how each other library treats that
 * lock. */
static void a_sound_lock_has_no_problem(void **state)
{
    (void)state;
    contender("/sound/mutex", LOCKED, owner_text(1));
    contender("/sound/mutex", LOCKED, owner_text(2));
    tool_check(0, "1 lock, 0 problems\n", "doctor", "/sound/mutex");
    tool_check(0, "  Curator: InterProcessMutex shares it\n", "doctor", "/sound/mutex");
    tool_check(0,
               "  Kazoo: Lock, ReadLock and WriteLock wait for these only with extra_lock_patterns",
               "doctor", "/sound/mutex");
    tool_check(0, "  ZooKeeper's C recipe: shares it\n", "doctor", "/sound/mutex");
    contender("/sound/rw", "__READ__", owner_text(3));
    tool_check(0, "  Curator: InterProcessReadWriteLock shares it;", "doctor", "/sound/rw");
    tool_check(0, "2 locks, 0 problems\n", "doctor", "/sound");
    tool_check(0, "1 lock, 0 problems\n", "doctor", "/not/there");
}

static void foreign_children_are_found(void **state)
{
    (void)state;
    contender("/foreign", LOCKED, owner_text(1));
    check_ok(wire_create(raw, "/foreign/0", "", WIRE_EPHEMERAL, NULL, 0));
    tool_check(1, "problem: 0 is not a contender", "doctor", "/foreign");
    tool_check(1, "  Curator: counts every child", "doctor", "/foreign");
    tool_check(1, "1 lock, 1 problem\n", "doctor", "/foreign");
}

/* Goal: nodes that stay: one that is not ephemeral, and one of a process that is no more. */
static void nodes_that_nobody_removes_are_found(void **state)
{
    static const char stays[] = "/stays/_c_01234567-89ab-4def-8123-456789abcdef-lock-0000000000";
    char host[64] = "", gone[128];

    (void)state;
    check_ok(wire_create(raw, "/stays", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, stays, owner_text(1), WIRE_PERSISTENT, NULL, 0));
    tool_check(1, "is not ephemeral and stays until it is deleted: zklock break /stays/_c_",
               "doctor", "/stays");
    tool_check(0, "deleted", "break", "--yes", stays);
    gethostname(host, sizeof host - 1);
    struct tool ended = tool_run("--version");
    check_num(tool_status(&ended), ==, 0);
    snprintf(gone, sizeof gone, "%s %d 1", host, (int)ended.pid);
    contender("/stays", LOCKED, gone);
    tool_check(1, "which this machine no longer has", "doctor", "/stays");
    tool_check(1, "1 lock, 1 problem\n", "doctor", "/stays");
}

/* Goal: kinds of locks on one path that do not wait for each other. */
static void mixed_kinds_are_found(void **state)
{
    (void)state;
    contender("/mixed/kazoo", LOCKED, owner_text(1));
    check_ok(wire_create(raw, "/mixed/kazoo/0123456789abcdef0123456789abcdef__lock__", "",
                         WIRE_EPHEMERAL_SEQUENTIAL, NULL, 0));
    tool_check(1, "problem: Kazoo's names are mixed with others", "doctor", "/mixed/kazoo");
    contender("/mixed/rw", LOCKED, owner_text(1));
    contender("/mixed/rw", "__READ__", owner_text(2));
    tool_check(0, "  Curator: InterProcessMutex and InterProcessReadWriteLock do not wait for all",
               "doctor", "/mixed/rw"); /* as zklock run with and without -s is */
    tool_check(1, "2 locks, 1 problem\n", "doctor", "/mixed");
}

static void wrong_acls_are_found(void **state)
{
    static const struct wire_acl no_delete = {1 | 4, "world", "anyone"}; /* READ, CREATE */
    static const struct wire_acl no_read = {2, "world", "anyone"};
    static const char node[] = "/acl/node/_c_01234567-89ab-4def-8123-456789abcdef-lock-";

    (void)state;
    check_ok(wire_create(raw, "/acl", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create_acl(raw, "/acl/root", "", WIRE_PERSISTENT, &no_delete, 1, NULL, 0));
    tool_check(1, "problem: no client has all of READ, CREATE and DELETE on /acl/root", "doctor",
               "/acl/root");
    check_ok(wire_create(raw, "/acl/node", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create_acl(raw, node, "", WIRE_EPHEMERAL_SEQUENTIAL, &no_read, 1, NULL, 0));
    tool_check(1, "problem: not all clients that may queue can read _c_", "doctor", "/acl/node");
    check_ok(wire_create_acl(raw, "/acl/denied", "", WIRE_PERSISTENT, &no_read, 1, NULL, 0));
    tool_check(1, "/acl/denied\n  problem: it cannot be read with this credential", "doctor",
               "/acl");
    check_ok(wire_create(raw, "/acl/open", "", WIRE_PERSISTENT, NULL, 0));
    tool_check(0, "0 problems", "doctor", "/acl/open");
    check_ok(setenv("ZKLOCK_ACL", "creator", 1));
    check_ok(setenv("ZKLOCK_AUTH", "digest:alice:secret", 1));
    tool_check(1, "problem: any client may create or delete nodes in /acl/open", "doctor",
               "/acl/open");
    check_ok(unsetenv("ZKLOCK_ACL"));
    check_ok(unsetenv("ZKLOCK_AUTH"));
}

/* --- circles ----------------------------------------------------------------------------------- */

/* Goal: threads that wait for each other are found over several locks, and each once; a long queue, or one
 * thread that holds one lock and waits for another, is no circle. */
static void circles_of_waits_are_found(void **state)
{
    const char *a = owner_text(1), *b = owner_text(2), *c = owner_text(3);

    (void)state;
    contender("/circle/x", LOCKED, a);
    contender("/circle/y", LOCKED, b);
    contender("/circle/z", LOCKED, c);
    contender("/circle/x", LOCKED, c);
    const char *last = contender("/circle/y", LOCKED, a);
    tool_check(0, "3 locks, 0 problems\n", "doctor", "/circle");
    contender("/circle/z", LOCKED, b);
    tool_check(1, "problem: these 3 wait for each other", "doctor", "/circle");
    tool_check(1, " waits for /circle/y, node /circle/y/_c_", "doctor", "/circle");
    tool_check(1, "3 locks, 1 problem\n", "doctor", "/circle");
    check_ok(wire_delete(raw, last, -1));
    tool_check(0, "3 locks, 0 problems\n", "doctor", "/circle");
}

/* Goal: a writer waits for all who read, not only for the last of them. */
static void a_writer_waits_for_all_readers(void **state)
{
    const char *a = owner_text(1), *b = owner_text(2);

    (void)state;
    contender("/readers/rw", "__READ__", a);
    contender("/readers/rw", "__READ__", owner_text(3));
    contender("/readers/rw", "__WRIT__", b);
    contender("/readers/mutex", LOCKED, b);
    contender("/readers/mutex", LOCKED, a);
    tool_check(1, "problem: these 2 wait for each other", "doctor", "/readers");
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
    check_ok(wire_open(&raw, zks_host(), zks_port(server, 0), SESSION_MS));
}

/* Goal: the doctor reports sequence numbers that are used up, or will be soon, even while nobody
 * queues. */
static void numbers_that_run_out_are_found(void **state)
{
    (void)state;
    check_ok(wire_create(raw, "/numbers", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/numbers/used-up", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/numbers/soon", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/numbers/fine", "", WIRE_PERSISTENT, NULL, 0));
    set_counters();
    tool_check(1, "problem: the sequence numbers of /numbers/used-up are used up (2146435072)",
               "doctor", "/numbers");
    tool_check(1, "problem: the sequence numbers of /numbers/soon will soon be used up (2000000000",
               "doctor", "/numbers");
    tool_check(1, "3 locks, 2 problems\n", "doctor", "/numbers");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_lock_has_no_problem),
        cmocka_unit_test(foreign_children_are_found),
        cmocka_unit_test(nodes_that_nobody_removes_are_found),
        cmocka_unit_test(mixed_kinds_are_found),
        cmocka_unit_test(wrong_acls_are_found),
        cmocka_unit_test(circles_of_waits_are_found),
        cmocka_unit_test(a_writer_waits_for_all_readers),
        cmocka_unit_test(numbers_that_run_out_are_found),
    };

    cluster_server.no_digest = true; /* for snap_set_counter */
    return TOOL_MAIN(argc, argv, "tool doctor", tests);
}
