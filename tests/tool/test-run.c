/* SPDX-License-Identifier: Apache-2.0 */
/* zklock run when nothing goes wrong with the lock: what it acquires, what the command gets to know, how
 * the end of the command is passed on, and what is said of wrong calls. */
#include "peek.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zklock/version.h>

/* --- the command's end ------------------------------------------------------------------------- */

/* Goal: the caller of zklock run sees what it would see of the command itself: the exit status, the signal that
 * killed it, and the shell's statuses for a command that can't be run. */
TOOL_TEST(the_commands_end_is_passed_on)
{
    tool_check(0, "", "run", "/end", "--", "true");
    tool_check(7, "", "run", "/end", "--", "sh", "-c", "exit 7");
    tool_check(255, "", "run", "/end", "-c", "exit 255");
    tool_check(127, "no-such-command cannot be run: ", "run", "/end", "--", "no-such-command");
    tool_check(126, "/dev/null cannot be run: ", "run", "/end", "--", "/dev/null");
}

/* Goal: what is not there is 127, what is there and can't be run 126, whatever the folders of PATH are. */
TOOL_TEST(what_is_missing_is_told_from_what_cannot_be_run)
{
    char path[1000], *before = strdup(getenv("PATH"));
    const char *folder = file_named("not-a-command"), *file = file_named("no-program");

    check_ok(mkdir(folder, 0700));
    write_file(file, "text");
    check_ok(chmod(file, 0600));
    /* Folders that a search of PATH trips over: in one the name is a folder's, one is none, one is missing. */
    snprintf(path, sizeof path, "%s:%s:/nowhere:%s:", zks_dir(server), before, file);
    path[strlen(path) - 1] = '\0';
    check_ok(setenv("PATH", path, 1));
    tool_check(127, "not-a-command cannot be run: No such file", "run", "/end", "--",
               "not-a-command");
    tool_check(127, "no-such-command cannot be run: No such", "run", "/end", "--",
               "no-such-command");
    tool_check(127, "/x cannot be run: ", "run", "/end", "--", "/dev/null/x");
    tool_check(127, "/x cannot be run: ", "run", "/end", "--", "/nowhere/x");
    tool_check(126, "no-program cannot be run: Permission denied", "run", "/end", "--",
               "no-program");
    tool_check(126, "no-program cannot be run: Permission denied", "run", "/end", "--", file);
    tool_check(126, "not-a-command cannot be run: Permission denied", "run", "/end", "--", folder);
    tool_check(0, "", "run", "/end", "--", "true");
    check_ok(setenv("PATH", before, 1));
    free(before);
}

/* Goal: zklock reports an unlock that fails, and still ends as the command did. */
TOOL_TEST(trouble_at_the_unlock_hides_no_end)
{
    static const struct wire_acl no_delete = {1 | 2 | 4 | 16, "world", "anyone"};

    check_ok(wire_create_acl(raw, "/no-delete", "", WIRE_PERSISTENT, &no_delete, 1, NULL, 0));
    tool_check(0, "the lock could not be released, and ends with the session: ", "run",
               "/no-delete", "--", "true");
    tool_check(7, "DELETE", "run", "/no-delete", "-c", "exit 7");
    struct tool tool = tool_run("run", "/no-delete", "-c", "kill -TERM $$");
    check_num(tool_signal(&tool), ==, SIGTERM);
    check_num(cluster_children("/no-delete"), ==, 0);
}

/* zklock run -v whose standard error has nobody who reads it. */
static struct tool unheard(const char *line)
{
    struct tool tool = {.output = memfd_create("output", MFD_CLOEXEC)};
    int ends[2];

    check_ok(pipe2(ends, O_CLOEXEC));
    close(ends[0]);
    tool.pid = fork();
    check_num(tool.pid, >=, 0);
    if (tool.pid == 0) {
        tool_default_signals();
        dup2(tool.output, STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execl(ZKLOCK, ZKLOCK, "run", "-v", "/unheard", "-c", line, (char *)NULL);
        _exit(98);
    }
    close(ends[1]);
    return tool;
}

/* Goal: a standard error that nobody reads ends neither zklock nor its command, for which SIGPIPE is what it
 * was for zklock. */
TOOL_TEST(nobody_has_to_listen)
{
    char line[600];

    struct tool tool = unheard("echo done; exit 7");
    check_num(tool_status(&tool), ==, 7);
    check_text(tool_text(&tool), "done\n");
    tool = unheard("kill -PIPE $$; exit 7");
    check_num(tool_signal(&tool), ==, SIGPIPE);
    snprintf(line, sizeof line, "trap '' PIPE; exec %s run /unheard -c 'kill -PIPE $$; exit 7'",
             ZKLOCK);
    tool = tool_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    check_num(tool_status(&tool), ==, 7);
}

/* Goal: what cannot be printed is a failure. Method: every text for standard output to a device that is full. */
TOOL_TEST(a_full_device_is_told)
{
    static const char *const lines[] = {
        "$ZKL_TEST_TOOL --help",       "$ZKL_TEST_TOOL --version",
        "$ZKL_TEST_TOOL run --help",   "$ZKL_TEST_TOOL doctor /x",
        "$ZKL_TEST_TOOL break --help", "$ZKL_TEST_TOOL revoke /full",
        "$ZKL_TEST_TOOL status /x",    "$ZKL_TEST_TOOL status --json /x",
        "$ZKL_TEST_DEV --help",        "$ZKL_TEST_DEV --version",
    };
    char line[200];

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        snprintf(line, sizeof line, "exec %s >/dev/full", lines[i]);
        struct tool tool = tool_start((const char *const[]){"/bin/sh", "-c", line, NULL});
        int status = tool_status(&tool);
        if (status != 71 || !tool_says(&tool, "standard output cannot be written\n"))
            fail_msg("%s: %d, %s", line, status, tool_text(&tool));
    }
    struct tool tool = tool_start((const char *const[]){
        "/bin/sh", "-c", "exec $ZKL_TEST_TOOL run /full -- true >/dev/full", NULL});
    check_num(tool_status(&tool), ==, 0);
    tool =
        tool_start((const char *const[]){"/bin/sh", "-c", "exec $ZKL_TEST_TOOL --help >&-", NULL});
    check_num(tool_status(&tool), ==, 71);
}

/* Goal: too few descriptors are the limit's fault, and told immediately: no server is looked for in vain, and no file is
 * said to be unreadable. Method: every number with which zklock can begin. */
TOOL_TEST(too_few_descriptors_are_told)
{
    char line[200];

    for (int limit = 7; limit < 23; limit++) {
        snprintf(line, sizeof line,
                 "ulimit -n %d; exec $ZKL_TEST_TOOL run --not-within 0.001 /few -- true", limit);
        struct tool tool = tool_start((const char *const[]){"/bin/sh", "-c", line, NULL});
        int status = tool_status(&tool);
        if (status != 71 || !tool_says(&tool, " descriptors are available: raise the limit"))
            fail_msg("%d descriptors: %d, %s", limit, status, tool_text(&tool));
    }
    struct tool tool = tool_start((const char *const[]){
        "/bin/sh", "-c", "ulimit -n 60; exec $ZKL_TEST_TOOL run --not-within 0.001 /few -- true",
        NULL});
    check_num(tool_status(&tool), ==, 0);
}

/* Goal: a command that cannot be a path needs no "--", and its options are its own. All that was taken with "--"
 * is taken as before, and an absolute word is a path. */
TOOL_TEST(the_dashes_may_be_omitted)
{
    static const char show[] = "echo \"$ZKLOCK_PATH+$0+$*\"";

    tool_check(0, "/bare+-n+-c -- x\n", "run", "-n", "/bare", "sh", "-c", show, "-n", "-c", "--",
               "x");
    tool_check(0, "/bare /too+0+\n", "run", "/bare", "-w", "60", "/too", "sh", "-c", show, "0");
    tool_check(0, "/bare /too+0+\n", "run", "/bare", "/too", "-n", "--", "sh", "-c", show, "0");
    tool_check(0, "/bare+0+\n", "run", "/bare", "-n", "--", "/bin/sh", "-c", show, "0");
    tool_check(0, "/bare /bin/sh++\n", "run", "/bare", "/bin/sh", "-c", "echo \"$ZKLOCK_PATH++\"");
    tool_check(64, "no path is given", "run", "--", "/bare", "true");
    tool_check(64, "give an absolute ZooKeeper path", "run", "/bare", "", "--", "true");
}

/* Goal: standard descriptors that are closed stay so for the command, and are in nobody's way. */
TOOL_TEST(closed_descriptors_stay_closed)
{
    static const char *const closings[] = {"0<&-", "1>&-", "2>&-"};
    char line[900];

    for (int closed = 0; closed < 8; closed++) {
        snprintf(
            line, sizeof line,
            "exec %s run /closed -c 'is=0; for fd in 0 1 2; do "
            "[ -e /proc/$$/fd/$fd ] || is=$((is + (1 << fd))); done; exit $((is + 32))' %s %s %s",
            ZKLOCK, closed & 1 ? closings[0] : "", closed & 2 ? closings[1] : "",
            closed & 4 ? closings[2] : "");
        struct tool tool = tool_start((const char *const[]){"/bin/sh", "-c", line, NULL});
        int status = tool_status(&tool);
        if (status != 32 + closed)
            fail_msg("closed %d: status %d, %s", closed, status, tool_text(&tool));
        check_num(cluster_children("/closed"), ==, 0);
    }
    snprintf(line, sizeof line, "exec %s status /closed 0<&- 2>&-", ZKLOCK);
    struct tool tool = tool_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    check_num(tool_status(&tool), ==, 0);
    check_text(tool_text(&tool), "/closed  free\n");
    snprintf(line, sizeof line, "exec %s status /closed 1>&-", ZKLOCK);
    tool = tool_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    check_num(tool_status(&tool), ==, 71);
    check_true(tool_says(&tool, "standard output cannot be written"));
}

/* Goal: a command that a signal killed makes zklock die by the same signal, without a core file of its
 * own beside the command's. */
TOOL_TEST(death_by_a_signal_is_passed_on)
{
    static const int numbers[] = {SIGKILL, SIGTERM, SIGSEGV, SIGABRT, SIGQUIT, SIGALRM};
    struct rlimit limit;

    check_ok(getrlimit(RLIMIT_CORE, &limit));
    limit.rlim_cur = limit.rlim_max;
    check_ok(setrlimit(RLIMIT_CORE, &limit));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "ulimit -c 0; kill -%d $$", numbers[i]);
        struct tool tool = tool_run("run", "/signal", "-c", line);
        check_num(tool_signal(&tool), ==, numbers[i]);
    }
    check_num(cluster_children("/signal"), ==, 0);
}

/* Goal: zklock keeps the lock until every process that the command left in its group has ended, and then releases it.
 * It does not wait for a process that made a session of its own. */
TOOL_TEST(the_lock_is_kept_for_the_whole_group)
{
    char left[400], gone[400];
    struct worked stays = worked_new(), leaves = worked_new();

    snprintf(left, sizeof left, "%s %s 0 & exit 3", WORK, stays.name);
    snprintf(gone, sizeof gone, "setsid %s %s 0 & exit 4", WORK, leaves.name);
    struct tool tool = tool_run("run", "/group", "-c", left);
    worked_wait(&stays, 1);
    for (int i = 0; i < 3; i++)
        tool_check(1, "", "run", "-n", "/group", "--", "true");
    check_true(!is_gone(tool.pid));
    check_ok(kill(atomic_load(&stays.shared->pid), SIGKILL));
    check_num(tool_status(&tool), ==, 3);
    check_num(cluster_children("/group"), ==, 0);

    tool = tool_run("run", "/group", "-c", gone);
    check_num(tool_status(&tool), ==, 4);
    worked_wait(&leaves, 1);
    check_true(!is_gone(atomic_load(&leaves.shared->pid)));
    check_ok(kill(atomic_load(&leaves.shared->pid), SIGKILL));
    worked_free(&stays);
    worked_free(&leaves);
}

/* --- what the command gets --------------------------------------------------------------------- */

/* Goal: path, token and node are the command's to use; with several paths they are lists in the order of
 * the command line. */
TOOL_TEST(the_command_knows_its_lock)
{
    struct tool tool = tool_run("run", "/knows/b", "/knows/a", "-c",
                                "echo \"$ZKLOCK_PATH,$ZKLOCK_NODE,$ZKLOCK_TOKEN,\"");
    char path[64], first[200], second[200];
    unsigned long long tokens[2];

    check_num(tool_status(&tool), ==, 0);
    check_num(sscanf(tool_text(&tool), "%63[^,],%199s %199[^,],%llu %llu,", path, first, second,
                     &tokens[0], &tokens[1]),
              ==, 5);
    check_text(path, "/knows/b /knows/a");
    check_ok(strncmp(first, "/knows/b/_c_", 12));
    check_ok(strncmp(second, "/knows/a/_c_", 12));
    check_true(tokens[0] > 0 && tokens[1] > 0);
}

/* Goal: the number of the node's creation is the token, for each kind of lock. */
TOOL_TEST(the_token_is_the_nodes)
{
    static const char *const kinds[] = {"-v", "-s", "--permits=3"};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct worked worked = worked_new();
        char line[400], node[300];
        unsigned long long token;
        struct wire_stat stat;
        snprintf(line, sizeof line, "echo node $ZKLOCK_NODE $ZKLOCK_TOKEN; exec %s %s 0", WORK,
                 worked.name);
        struct tool tool = tool_run("run", kinds[i], cluster_path("token"), "-c", line);
        worked_wait(&worked, 1);
        check_num(sscanf(strstr(tool_text(&tool), "node "), "node %299s %llu", node, &token), ==,
                  2);
        check_ok(wire_exists(raw, node, &stat));
        check_num(stat.czxid, ==, token);
        check_ok(kill(tool.pid, SIGTERM));
        check_num(tool_signal(&tool), ==, SIGTERM);
        worked_free(&worked);
    }
}

/* Goal: the command has zklock's environment, folder and open files, but not the credential; and its
 * standard input is what it was. */
TOOL_TEST(the_command_has_what_zklock_had)
{
    check_ok(setenv("ZKLOCK_AUTH", "digest:alice:sesame", 1));
    check_ok(setenv("ZKLOCK_AUTH_FILE", "/nowhere", 1));
    tool_check(0, "none,/nowhere,/\n", "run", "/has", "-c",
               "cd /; echo ${ZKLOCK_AUTH-none},$ZKLOCK_AUTH_FILE,$PWD");
    check_ok(unsetenv("ZKLOCK_AUTH"));
    check_ok(unsetenv("ZKLOCK_AUTH_FILE"));
    tool_check(0, "through\n", "run", "/has", "-c",
               "exec 5<<x\nthrough\nx\n" /* an open file */
               "exec \"$ZKL_TEST_TOOL\" run /has2 -- cat <&5");
}

/* --- kinds and waiting -------------------------------------------------------------------------- */

/* A zklock that holds, in one of its kinds, until it gets SIGTERM. */
static struct tool holder(const struct worked *worked, const char *option, const char *path)
{
    int begun = atomic_load(&worked->shared->begun);
    struct tool tool = tool_run("run", option, path, "--", WORK, worked->name, "0");

    worked_wait(worked, begun + 1);
    return tool;
}

static void end_holder(struct tool *tool)
{
    check_ok(kill(tool->pid, SIGTERM));
    check_num(tool_signal(tool), ==, SIGTERM);
}

/* Goal: -n fails immediately, -w after its time, with flock's status or the one that -E gives. zklock says so only
 * with -v. */
TOOL_TEST(a_busy_lock_is_a_conflict)
{
    struct worked worked = worked_new();
    struct tool tool = holder(&worked, "-v", "/busy");

    lag_begin();
    tool_check(1, "", "run", "-n", "/busy", "--", "true");
    tool_check(9, "", "run", "-w", "0", "-E", "9", "/busy", "--", "true");
    check_num(lag_end_ms(), <, 5000);
    int64_t began = net_now_ms();
    tool_check(0, "", "run", "-w", ".4", "-E0", "/busy", "--", "false");
    check_num(net_now_ms() - began, >=, 400);
    tool_check(1, "zklock: the lock was not acquired: another contender has it", "run", "-v", "-n",
               "/busy", "--", "true");
    struct tool silent = tool_run("run", "-n", "/busy", "--", "true");
    check_num(tool_status(&silent), ==, 1);
    check_text(tool_text(&silent), "");
    check_num(cluster_children("/busy"), ==, 1);
    end_holder(&tool);
    worked_free(&worked);
}

/* Goal: -s shares with -s and excludes the others, on one path with locks that are not shared. */
TOOL_TEST(shared_locks_are_shared)
{
    struct worked worked = worked_new();
    struct tool reader = holder(&worked, "-s", "/shared");

    tool_check(0, "", "run", "-s", "-n", "/shared", "--", "true");
    tool_check(1, "", "run", "-n", "/shared", "--", "true");
    end_holder(&reader);
    struct tool writer = holder(&worked, "-v", "/shared");
    tool_check(1, "", "run", "-s", "-n", "/shared", "--", "true");
    end_holder(&writer);
    worked_free(&worked);
}

/* Goal: --permits N lets N commands hold, and no more. A contender with another number is refused. */
TOOL_TEST(permits_are_counted)
{
    struct worked one = worked_new(), two = worked_new();
    struct tool first = holder(&one, "--permits=2", "/permits");
    struct tool second = holder(&two, "--permits=2", "/permits");

    tool_check(1, "", "run", "-w", "0.3", "--permits", "2", "/permits", "--", "true");
    tool_check(78, "permits", "run", "-w", "60", "--permits", "3", "/permits", "--", "true");
    struct tool other = tool_run("run", "--permits", "3", "/permits", "--", "true");
    check_num(tool_status(&other), ==, 78);
    check_true(!tool_says(&other, "or 0")); /* --permits takes no 0 */
    end_holder(&first);
    tool_check(0, "", "run", "-n", "--permits", "2", "/permits", "--", "true");
    end_holder(&second);
    worked_free(&one);
    worked_free(&two);
}

/* Goal: with Kazoo's names zklock and Kazoo's locks wait for each other. Method: a node as Kazoo makes it. */
TOOL_TEST(names_of_kazoo_are_shared)
{
    static const char asked[] = "/kazoo/0123456789abcdef0123456789abcdef__lock__";
    struct worked worked = worked_new();
    char node[300];

    check_ok(wire_create(raw, "/kazoo", "", WIRE_PERSISTENT, NULL, 0)); /* no container */
    struct tool tool = tool_run("run", "--names", "kazoo", "/kazoo", "--", WORK, worked.name, "0");
    worked_wait(&worked, 1);
    cluster_child("/kazoo", 0, node, sizeof node);
    check_true(strstr(node, "__lock__") != NULL && !strstr(node, "_c_"));
    tool_check(1, "", "run", "-n", "--names=kazoo", "-s", "/kazoo", "--", "true");
    end_holder(&tool);
    check_ok(wire_create(raw, asked, "", WIRE_EPHEMERAL_SEQUENTIAL, node, sizeof node));
    tool_check(1, "", "run", "-n", "--names=kazoo", "/kazoo", "--", "true");
    check_ok(wire_delete(raw, node, -1));
    tool = tool_run("run", "-s", "--names=kazoo", "/kazoo", "-c",
                    "case $ZKLOCK_NODE in *__rlock__*) exit 6;; esac");
    check_num(tool_status(&tool), ==, 6);
    tool_check(64, "--names must be curator or kazoo", "run", "--names", "Kazoo", "/a", "--",
               "true");
    tool_check(64, "a semaphore has no names of Kazoo", "run", "--names=kazoo", "--permits=2", "/a",
               "--", "true");
    tool_check(0, "", "run", "--names", "curator", "/kazoo", "--", "true");
    worked_free(&worked);
}

/* As in docs/migration.md, with a part that lasts until a file is there. */
static struct tool script(const char *path, const char *go)
{
    static const char text[] =
        "pipes=$(mktemp -d) && mkfifo $pipes/end $pipes/held\n"
        "($ZKL_TEST_TOOL run $0 -- sh -c 'echo \"$ZKLOCK_TOKEN\"; exec cat >/dev/null'"
        " <$pipes/end >$pipes/held || kill $$) &\n"
        "exec 9>$pipes/end 8<$pipes/held\n"
        "rm -r $pipes\n"
        "read -r token <&8\n"
        "echo \"has $token\"\n"
        "while [ ! -e $1 ]; do sleep 0.1; done\n"
        "exec 9>&- && wait $!\n";

    return tool_start((const char *const[]){"/bin/sh", "-c", text, path, go, NULL});
}

/* Goal: a part of a script can have the lock: up to its release, or the script's end. A loss ends the script. */
TOOL_TEST(a_part_of_a_script_is_locked)
{
    const char *go = file_named("go");
    char node[300];

    struct tool first = script("/part", go);
    check_wait(tool_says(&first, "has "), WAIT_MS);
    struct tool second = script("/part", go);
    check_wait(cluster_children("/part") == 2, WAIT_MS);
    check_true(!tool_says(&second, "has"));
    check_ok(kill(first.pid, SIGKILL));
    check_num(tool_signal(&first), ==, SIGKILL);
    check_wait(tool_says(&second, "has "), WAIT_MS);
    check_wait(cluster_children("/part") == 1, WAIT_MS);
    write_file(go, "");
    check_num(tool_status(&second), ==, 0);
    check_num(cluster_children("/part"), ==, 0);
    check_ok(unlink(go));

    first = script("/part", go);
    check_wait(tool_says(&first, "has "), WAIT_MS);
    second = script("/part", go);
    check_wait(cluster_children("/part") == 2, WAIT_MS);
    check_ok(kill(second.pid, SIGKILL)); /* one that waits */
    check_num(tool_signal(&second), ==, SIGKILL);
    cluster_child("/part", 0, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
    check_num(tool_signal(&first), ==, SIGTERM);
    check_wait(cluster_children("/part") == 0, WAIT_MS);
}

/* Goal: several paths are one lock: none is held while one is missing, and two that name them in different
 * order do not wait for each other. */
TOOL_TEST(several_paths_are_one_lock)
{
    struct worked worked = worked_new();
    struct tool tool = holder(&worked, "-v", "/many/b"), other;

    tool_check(1, "", "run", "-n", "/many/a", "/many/b", "--", "true");
    tool_check(0, "", "run", "-n", "/many/a", "--", "true");
    end_holder(&tool);
    tool = tool_run("run", "/many/a", "/many/b", "--", WORK, worked.name, "20");
    other = tool_run("run", "/many/b", "/many/a", "--", WORK, worked.name, "20");
    check_num(tool_status(&tool), ==, 0);
    check_num(tool_status(&other), ==, 0);
    worked_free(&worked);
}

/* Goal: with -v a wait says behind whom and at which place it is, once for each place. Without it nothing is said.
 * Method: contenders that are only nodes, and come to their ends one by one. */
TOOL_TEST(a_wait_says_behind_whom)
{
    const char *first = contender("/wait", "lock-", "db1 99999 99999");
    const char *second = contender("/wait", "lock-", "db2 4711 4712");
    const char *third = contender("/wait", "lock-", "a night's work");
    struct tool silent = tool_run("run", "/wait", "--", "true");

    check_wait(cluster_children("/wait") == 4, WAIT_MS);
    struct tool tool = tool_run("run", "-v", "-w", "60", "/wait", "--", "true");
    check_wait(tool_says(&tool, ", number 5 in line"), WAIT_MS);
    check_ok(kill(silent.pid, SIGTERM));
    check_num(tool_signal(&silent), ==, SIGTERM);
    check_text(tool_text(&silent), "");
    check_wait(tool_says(&tool, "zklock: waits behind a night's work, since "), WAIT_MS);
    check_ok(wire_delete(raw, third, -1));
    check_wait(tool_says(&tool, "zklock: waits behind db2 pid 4711, since "), WAIT_MS);
    check_true(tool_says(&tool, " s, third in line\n"));
    check_ok(wire_delete(raw, second, -1));
    check_wait(tool_says(&tool, "zklock: waits behind db1 pid 99999, since "), WAIT_MS);
    check_true(tool_says(&tool, " s, second in line\n"));
    net_nap_ms(500); /* nothing more is said of the same place */
    check_ok(wire_delete(raw, first, -1));
    check_num(tool_status(&tool), ==, 0);
    int lines = 0;
    for (const char *at = tool_text(&tool); (at = strstr(at, "zklock: waits ")); at++)
        lines++;
    check_num(lines, ==, 4);
}

/* Goal: the same for a member of several paths, for a reader, and for permits. */
TOOL_TEST(a_wait_of_each_kind_says_behind_whom)
{
    struct worked worked = worked_new();
    const char *node = contender("/wait-many/b", "lock-", "db1 7 7");
    struct tool tool = tool_run("run", "-v", "/wait-many/a", "/wait-many/b", "--", "true");

    check_wait(tool_says(&tool, "waits behind db1 pid 7 at /wait-many/b, since "), WAIT_MS);
    check_ok(wire_delete(raw, node, -1));
    check_num(tool_status(&tool), ==, 0);
    node = contender("/wait-read", "__WRIT__", "db1 7 7");
    tool = tool_run("run", "-v", "-s", "/wait-read", "--", "true");
    check_wait(tool_says(&tool, "waits behind db1 pid 7, since "), WAIT_MS);
    check_ok(wire_delete(raw, node, -1));
    check_num(tool_status(&tool), ==, 0);
    struct tool held = holder(&worked, "--permits=1", "/wait-permit");
    tool = tool_run("run", "-v", "--permits=1", "/wait-permit", "--", "true");
    check_wait(tool_says(&tool, "waits for a permit, since "), WAIT_MS);
    struct tool next = tool_run("run", "-v", "--permits=1", "/wait-permit", "--", "true");
    check_wait(tool_says(&next, ", second in line"), WAIT_MS);
    end_holder(&held);
    check_num(tool_status(&tool), ==, 0);
    check_num(tool_status(&next), ==, 0);
    tool = tool_run("run", "-v", "/wait-free", "--", "true");
    check_num(tool_status(&tool), ==, 0);
    check_true(!tool_says(&tool, "waits"));
    worked_free(&worked);
}

/* --- wrong calls and settings ------------------------------------------------------------------- */

/* Goal: each wrong call has its status and one sentence that says what to do. */
TOOL_TEST(wrong_calls_are_told)
{
    tool_check(64, "usage: zklock COMMAND", NULL);
    tool_check(64, "there is no command \"walk\": zklock --help lists them", "walk");
    tool_check(0, "zklock " ZKL_VERSION "\n", "--version");
    tool_check(0, "  run ", "--help");
    tool_check(0, "usage: zklock run [OPTION...] PATH... [--] COMMAND", "run", "--help");
    tool_check(64, "run has no option -Z", "run", "-n", "-Zv", "/p");
    tool_check(64, "run has no option --nope", "run", "--nope", "/p");
    tool_check(64, "no path is given", "run");
    tool_check(64, "no path is given", "run", "--", "true");
    tool_check(64, "no command", "run", "/a");
    tool_check(64, "no command", "run", "/a", "--");
    tool_check(64, "-c and a command", "run", "/a", "-c", "true", "--", "true");
    tool_check(64, "give an absolute ZooKeeper path", "run", "ls", "-c", "true");
    tool_check(64, "an absolute command needs the \"--\"", "run", "/a", "/bin/true");
    tool_check(64, "-c and a command", "run", "/a", "-c", "true", "true");
    tool_check(64, "run has no option --what", "run", "--what", "/a", "--", "true");
    tool_check(64, "-E requires a value", "run", "/a", "-E");
    tool_check(64, "-E must be a whole number from 0 to 255", "run", "-E", "256", "/a", "--",
               "true");
    tool_check(64, "-w must be a number of seconds", "run", "-w", "-1", "/a", "--", "true");
    tool_check(64, "-w must be a number of seconds from 0 to 315360000, ", "run", "-w", "1e9", "/a",
               "--", "true");
    tool_check(64, "--not-within must be a number of seconds from 0.001 to 315360000, ", "run",
               "--not-within", "1e9", "/a", "--", "true");
    tool_check(64, "--not-within must be a number of seconds from 0.001", "run", "--not-within",
               "0", "/a", "--", "true");
    tool_check(64, "--skip-exit-code requires --not-within", "run", "--skip-exit-code", "0", "/a",
               "--", "true");
    tool_check(64, "--retry-failed requires --not-within", "run", "--retry-failed", "/a", "--",
               "true");
    tool_check(64, "--permits must be", "run", "--permits", "0", "/a", "--", "true");
    tool_check(64, "-s and --permits", "run", "-s", "--permits", "2", "/a", "--", "true");
    tool_check(64, "give an absolute ZooKeeper path", "run", "a", "--", "true");
    tool_check(64, "/a", "run", "/a", "/a", "--", "true");
}

/* Goal: zklock takes the servers from the first that has them: the option, the environment, the configuration file.
 * It reports what is wrong with them. */
TOOL_TEST(servers_come_from_three_places)
{
    const char *config = file_named("zklock.conf");
    char text[300];

    snprintf(text, sizeof text, "# ours\n\n servers =  %s \nsession_timeout = 5\n",
             zks_connect_string(server));
    unsetenv("ZKLOCK_SERVERS");
    tool_check(78, "no servers: give --servers HOST:PORT", "run", "/set", "--", "true");
    write_file(config, text);
    tool_check(0, "", "run", "/set", "--", "true");
    setenv("ZKLOCK_SERVERS", "nonsense", 1);
    tool_check(78, "ZKLOCK_SERVERS: the servers must be HOST:PORT", "run", "/set", "--", "true");
    tool_check(0, "", "run", "--servers", zks_connect_string(server), "/set", "--", "true");
    tool_check(78, "--session-timeout: the session timeout must be 0.1 to", "run",
               "--session-timeout", "long", "/set", "--", "true");
    write_file(config, "colour = red\n");
    tool_check(78, "zklock.conf, line 1: the line must have the form KEY = VALUE", "run", "/set",
               "--", "true");
    write_file(config, "\nservers\n");
    tool_check(78, "zklock.conf, line 2: the line must have the form KEY = VALUE", "run", "/set",
               "--", "true");
    check_ok(unlink(config));
}

/* Goal: without a server there is an end, and a status of its own. */
TOOL_TEST(no_server_is_told)
{
    char servers[32];
    int port;

    check_ok(net_free_ports(&port, 1));
    snprintf(servers, sizeof servers, "127.0.0.1:%d", port);
    tool_check(69, "answered within", "run", "--servers", servers, "/none", "--", "true");
}

/* Goal: with the credential of a file or of the environment zklock makes nodes that nobody else may touch. It reports
 * text that is no credential, without showing it. */
TOOL_TEST(credentials_come_from_a_file_or_the_environment)
{
    const char *file = file_named("credential");
    struct worked worked = worked_new();
    char acl[200];

    write_file(file, "digest:alice:sesame\nsecond line\n");
    setenv("ZKLOCK_AUTH_FILE", file, 1);
    setenv("ZKLOCK_ACL", "creator", 1);
    struct tool tool = holder(&worked, "-v", "/auth");
    check_ok(wire_auth(raw, "digest", "alice:sesame"));
    check_ok(wire_get_acl(raw, "/auth", acl, sizeof acl));
    check_ok(strncmp(acl, "31:digest:alice:", 16));
    unsetenv("ZKLOCK_AUTH_FILE");
    unsetenv("ZKLOCK_ACL");
    tool_check(77, "/auth", "run", "-w", "1", "/auth", "--", "true");
    setenv("ZKLOCK_AUTH", "digest:alice:sesame", 1);
    tool_check(1, "", "run", "-n", "/auth", "--", "true");
    setenv("ZKLOCK_AUTH", "alice:sesame", 1); /* as the library's own files have it */
    tool_check(1, "", "run", "-n", "/auth", "--", "true");
    end_holder(&tool);

    setenv("ZKLOCK_AUTH", "sesame", 1);
    tool = tool_run("run", "/auth", "--", "true");
    check_num(tool_status(&tool), ==, 78);
    check_true(tool_says(&tool, "does not have the form digest:USER:PASSWORD"));
    check_true(!tool_says(&tool, "sesame"));
    unsetenv("ZKLOCK_AUTH");
    setenv("ZKLOCK_AUTH_FILE", "/nowhere/credential", 1);
    tool_check(
        78,
        "ZKLOCK_AUTH_FILE: the file \"/nowhere/credential\" with the credential cannot be opened",
        "run", "/auth", "--", "true");
    file = file_named("nobody-writes");
    check_ok(mkfifo(file, 0600));
    setenv("ZKLOCK_AUTH_FILE", file, 1);
    tool_check(78, "empty first line", "run", "/auth", "--", "true");
    /* --not-within connects twice, and a pipe has the line only once */
    file = file_named("written-once");
    check_ok(mkfifo(file, 0600));
    setenv("ZKLOCK_AUTH_FILE", file, 1);
    int writer = open(file, O_RDWR | O_CLOEXEC);
    check_num(write(writer, "alice:sesame\n", 13), ==, 13);
    tool_check(0, "", "run", "--not-within", "60", "/once", "--", "true");
    check_ok(close(writer));
    unsetenv("ZKLOCK_AUTH_FILE");
    setenv("ZKLOCK_ACL", "creator", 1);
    tool_check(78, "needs a credential", "run", "/auth", "--", "true");
    worked_free(&worked);
}

/* Goal: text in the wrong place may be a credential. zklock says where the text is and what may be there, and never
 * shows the text. */
TOOL_TEST(a_credential_in_the_wrong_place_is_not_shown)
{
    static const char *const lines[] = {
        "digest:alice:sesame",           "digest:alice:sesame=x",
        "servers = digest:alice:sesame", "tick = digest:alice:sesame",
        "session_timeout=alice:sesame",  "acl = sesame",
        "auth_file = alice:sesame",      "auth_file = sesame",
    };
    const char *config = file_named("zklock.conf");

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[200];
        snprintf(
            text, sizeof text, "\n%s\n%s%s\n", lines[i],
            strncmp(lines[i], "servers", 7) == 0 ? "# " : "servers = ", zks_connect_string(server));
        write_file(config, text);
        unsetenv("ZKLOCK_SERVERS");
        unsetenv("ZKLOCK_SESSION_TIMEOUT");
        struct tool tool = tool_run("run", "/wrong", "--", "true");
        check_num(tool_status(&tool), ==, 78);
        if (!tool_says(&tool, "zklock.conf, line 2: ") || tool_says(&tool, "sesame") ||
            tool_says(&tool, "alice"))
            fail_msg("%s: %s", lines[i], tool_text(&tool));
    }
    check_ok(unlink(config));
    setenv("ZKLOCK_SERVERS", zks_connect_string(server), 1);
    setenv("ZKLOCK_AUTH_FILE", "digest:alice:sesame", 1);
    struct tool tool = tool_run("run", "/wrong", "--", "true");
    check_num(tool_status(&tool), ==, 78);
    check_true(tool_says(&tool, "ZKLOCK_AUTH_FILE: the file with the credential cannot be opened"));
    check_true(!tool_says(&tool, "sesame"));
    unsetenv("ZKLOCK_AUTH_FILE");
}

/* Goal: TLS and SASL are set by the environment and by a configuration file, each by the library's own name; what the
 * library says of them ends the command as a wrong setting does. Method: some that no libzookeeper takes. */
TOOL_TEST(tls_and_sasl_come_from_the_environment_or_a_file)
{
    const char *config = file_named("zklock.conf");

    setenv("ZKLOCK_TLS_CA_FILE", "/nowhere/ca.pem", 1);
    tool_check(78, "tls_cert_file is not set", "run", "/secure", "--", "true");
    setenv("ZKLOCK_TLS_CERT_FILE", "/nowhere/cert.pem", 1);
    tool_check(78, "tls_key_file is not set", "run", "/secure", "--", "true");
    setenv("ZKLOCK_TLS_KEY_FILE", "/nowhere/a,b", 1);
    tool_check(78, "tls_key_file \"/nowhere/a,b\" has a comma", "run", "/secure", "--", "true");
    unsetenv("ZKLOCK_TLS_CA_FILE");
    unsetenv("ZKLOCK_TLS_CERT_FILE");
    unsetenv("ZKLOCK_TLS_KEY_FILE");
    write_file(config,
               "tls_ca_file = a\ntls_cert_file = b\ntls_key_file = c\ntls_passphrase_file = d\n"
               "sasl_mechanism = DIGEST-MD5\nsasl_user = bob\nsasl_password_file = /nowhere\n"
               "sasl_service = zookeeper\nsasl_host = zk1\nacl = creator\n");
    tool_check(78, "ZOOKEEPER-3482", "run", "/secure", "--", "true");
    setenv("ZKLOCK_SASL_MECHANISM", "PLAIN", 1);
    tool_check(78, "DIGEST-MD5 or GSSAPI", "run", "/secure", "--", "true");
    unsetenv("ZKLOCK_SASL_MECHANISM");
    check_ok(unlink(config));
}
