/* SPDX-License-Identifier: Apache-2.0 */
/* zklock revoke and zklock break: which contenders they ask, which they wait for, and what they
 * delete. */
#include "peek.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_there(const char *node)
{
    return wire_exists(raw, node, NULL) == 0;
}

/* --- revoke ------------------------------------------------------------------------------------ */

/* Goal: the holder that revoke asks releases the lock, and revoke notices when. */
TOOL_TEST(a_holder_lets_go)
{
    struct worked held = worked_new();

    struct tool tool = tool_line("run /ask/run -- work %s 600000", held.name);
    worked_wait(&held, 1);
    check_said(0, "revoke --within 120 /ask/run", "asked ");
    check_num(cluster_children("/ask/run"), ==, 0);
    tool_wait(&tool);
    check_said(0, "revoke --within 120 /ask/run", "/ask/run has no holder");
}

/* Goal: revoke names a holder that has not released after the time, and says what to do. It asks all
 * holders and no waiter. Without --within it waits for nobody. */
TOOL_TEST(who_does_not_listen_is_told_of)
{
    char data[64];

    const char *first = contender("/ask/deaf", "__READ__", owner_text(1));
    const char *second = contender("/ask/deaf", "__READ__", owner_text(2));
    const char *waits = contender("/ask/deaf", "__WRIT__", "writer");
    check_said(0, "revoke /ask/deaf", "asked ");
    check_ok(wire_get(raw, first, data, sizeof data, NULL));
    check_text(data, "__REVOKE__");
    check_ok(wire_get(raw, second, data, sizeof data, NULL));
    check_text(data, "__REVOKE__");
    check_ok(wire_get(raw, waits, data, sizeof data, NULL));
    check_text(data, "writer");
    check_said(1, "revoke --within 0.3 /ask/deaf",
               "has not released the lock: zklock break /ask/deaf/");
    check_said(0, written("revoke %s", waits), "asked writer to release");
    check_ok(wire_get(raw, waits, data, sizeof data, NULL));
    check_text(data, "__REVOKE__");
}

TOOL_TEST(wrong_calls_of_revoke_are_told)
{
    check_said(64, "revoke --within soon /ask/x", "--within must be a number of seconds");
    check_said(64, "revoke /ask/x /ask/y", "one PATH, not 2 words");
    check_said(64, "revoke /ask/x --within", "--within requires a value");
    check_said(0, "revoke /ask/nowhere/at/all", "/ask/nowhere/at/all has no holder");
}

/* Goal: a node that is not there was not asked, whatever its name, and whether its lock is there or not. */
TOOL_TEST(a_node_that_is_not_there_is_told)
{
    static const char node[] = "_c_01234567-89ab-4def-8123-456789abcdef-lock-0000000099";
    char path[700];

    contender("/ask/some", "lock-", owner_text(1));
    check_said(1, "revoke /ask/some/NO-SUCH", "the node /ask/some/NO-SUCH does not exist");
    check_said(1, written("revoke /ask/some/%s", node),
               "does not exist: zklock status shows the nodes");
    check_said(1, written("revoke /ask/none/%s", node),
               "does not exist: zklock status shows the nodes");
    contender("/ask/permits/leases", "lease-", owner_text(1));
    check_said(1, "revoke /ask/permits/leases/NO-SUCH", "does not exist");
    check_ok(wire_create(raw, "/ask/empty", "", WIRE_PERSISTENT, NULL, 0));
    check_said(0, "revoke /ask/empty", "/ask/empty has no holder");
    int length =
        snprintf(path, sizeof path, "/ask/%0480d", 0); /* so that its nodes are longer than 512 */
    check_ok(wire_create(raw, path, "", WIRE_PERSISTENT, NULL, 0));
    snprintf(path + length, sizeof path - (size_t)length, "/%s", node);
    check_ok(wire_create(raw, path, "far", WIRE_EPHEMERAL, NULL, 0));
    check_said(0, written("revoke %s", path), "asked far to release /ask/000");
}

/* Goal: all holders of a path are asked, be it those of a semaphore and a mutex that share it. The path may
 * be that of the semaphore's own parts. */
TOOL_TEST(all_holders_of_a_path_are_asked)
{
    static const char *const paths[] = {"/ask/both", "/ask/both/leases", "/ask/both/locks"};

    contender("/ask/both", "lock-", "mutex");
    contender("/ask/both/leases", "lease-", "permit");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        check_said(0, written("revoke %s", paths[i]), " to release /ask/both/_c_");
        check_said(0, written("revoke %s", paths[i]), " to release /ask/both/leases/_c_");
    }
}

/* --- break ------------------------------------------------------------------------------------- */

/* Goal: on a terminal break asks, and does what the answer says. */
TOOL_TEST(break_asks_on_a_terminal)
{
    const char *node = contender("/break/ask", "lock-", owner_text(1));
    struct typist *typist = typist_run(80, "break", node);
    typist_wait(typist, "[y/N] ");
    check_true(strstr(typist->screen, "holds /break/ask, for "));
    typist_type(typist, "\n");
    typist_wait(typist, "nothing was done");
    check_num(WEXITSTATUS(typist_end(typist)), ==, 1);
    check_true(is_there(node));
    typist = typist_run(80, "break", node);
    typist_wait(typist, "[y/N] ");
    typist_type(typist, "y\n");
    typist_wait(typist, "deleted ");
    check_num(typist_end(typist), ==, 0);
    check_true(!is_there(node));
}

/* Goal: what took the place of the node that was asked about stays. */
TOOL_TEST(another_node_at_that_path_stays)
{
    const char *node = contender("/break/other", "lock-", owner_text(1));
    struct typist *typist = typist_run(80, "break", node);
    typist_wait(typist, "[y/N] ");
    check_ok(wire_delete(raw, node, -1));
    check_ok(wire_create(raw, node, "another", WIRE_EPHEMERAL, NULL, 0));
    typist_type(typist, "y\n");
    check_num(WEXITSTATUS(typist_end(typist)), ==, 1);
    check_true(is_there(node));
}

/* Goal: --yes does not ask; without it and without a terminal nothing is done. A holder, a waiter and a
 * permit can be deleted; what is no contender can't. */
TOOL_TEST(break_without_a_terminal_wants_yes)
{
    const char *holds = contender("/break/yes", "lock-", owner_text(1));
    const char *waits = contender("/break/yes", "lock-", owner_text(2));
    check_said(64, written("break %s", holds), "give --yes");
    check_true(is_there(holds));
    check_said(0, written("break --yes %s", waits), "deleted /break/yes/");
    check_true(!is_there(waits) && is_there(holds));
    check_said(1, written("break --yes %s", waits), "zklock: the node ");
    const char *permit = contender("/break/permits/leases", "lease-", owner_text(3));
    check_said(0, written("break --yes %s", permit), "deleted /break/permits/leases/");
    check_true(!is_there(permit));
    check_said(1, "break --yes /break/yes", "is not the node of a contender");
    check_true(is_there(holds));
}

/* Goal: what is there and no contender's is called so; what is no path is a wrong call, for each command. */
TOOL_TEST(what_is_no_node_is_told)
{
    static const char *const others[] = {"/break-top", "/break-top/below", "/break-permits",
                                         "/break-permits/leases"};
    static const char *const commands[] = {"break", "revoke", "status", "doctor", "forget"};
    static const char *const bad[] = {"relative", "rela/tive", "",   "/a//b", "/a/",
                                      "/a/../b",  "/a/.",      "//", "/a/..", "/a/\x01"};

    contender("/break-top/below/deep", "lock-", owner_text(1));
    contender("/break-permits/leases", "lease-", owner_text(1));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        check_said(1, written("break --yes %s", others[i]), "is not the node of a contender");
    check_said(1, "break --yes /break-none", "the node /break-none does not exist");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (size_t c = 0; c < sizeof commands / sizeof commands[0]; c++) {
            struct tool tool = c == 0 ? tool_line("break --yes '%s'", bad[i])
                                      : tool_line("%s '%s'", commands[c], bad[i]);
            if (tool_status(&tool) != 64)
                fail_msg("zklock %s \"%s\": %s", commands[c], bad[i], tool_text(&tool));
            close(tool.output);
        }
        struct tool run = tool_line("run '%s' -- true", bad[i]);
        check_num(tool_status(&run), ==, 64);
        close(run.output);
    }
}
