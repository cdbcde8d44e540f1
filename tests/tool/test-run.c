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
    check_said(0, "run /end -- true");
    check_said(7, "run /end -- sh -c 'exit 7'");
    check_said(255, "run /end -c 'exit 255'");
    check_said(127, "run /end -- no-such-command", "no-such-command cannot be run: ");
    check_said(126, "run /end -- /dev/null", "/dev/null cannot be run: ");
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
    check_said(127, "run /end -- not-a-command", "not-a-command cannot be run: No such file");
    check_said(127, "run /end -- no-such-command", "no-such-command cannot be run: No such");
    check_said(127, "run /end -- /dev/null/x", "/x cannot be run: ");
    check_said(127, "run /end -- /nowhere/x", "/x cannot be run: ");
    check_said(126, "run /end -- no-program", "no-program cannot be run: Permission denied");
    check_said(126, written("run /end -- %s", file), "no-program cannot be run: Permission denied");
    check_said(126, written("run /end -- %s", folder),
               "not-a-command cannot be run: Permission denied");
    check_said(0, "run /end -- true");
    check_ok(setenv("PATH", before, 1));
    free(before);
}

/* Goal: zklock reports an unlock that fails, and still ends as the command did. */
TOOL_TEST(trouble_at_the_unlock_hides_no_end)
{
    static const struct wire_acl no_delete = {1 | 2 | 4 | 16, "world", "anyone"};

    check_ok(wire_create_acl(raw, "/no-delete", "", WIRE_PERSISTENT, &no_delete, 1, NULL, 0));
    check_said(0, "run /no-delete -- true",
               "the lock could not be released, and ends with the session: ");
    check_said(7, "run /no-delete -c 'exit 7'", "DELETE");
    struct tool tool = tool_line("run /no-delete -c 'kill -TERM $$'");
    check_num(tool_signal(&tool), ==, SIGTERM);
    check_num(cluster_children("/no-delete"), ==, 0);
}

/* zklock run -v whose standard error has nobody who reads it. */
static struct tool unheard(const char *line)
{
    int ends[2];

    check_ok(pipe2(ends, O_CLOEXEC));
    close(ends[0]);
    struct tool tool = tool_run_to(ends[1], "run", "-v", "/unheard", "-c", line);
    close(ends[1]);
    return tool;
}

/* Goal: a standard error that nobody reads ends neither zklock nor its command, for which SIGPIPE is what it
 * was for zklock. */
TOOL_TEST(nobody_has_to_listen)
{
    struct tool tool = unheard("echo done; exit 7");
    check_num(tool_status(&tool), ==, 7);
    check_text(tool_text(&tool), "done\n");
    tool = unheard("kill -PIPE $$; exit 7");
    check_num(tool_signal(&tool), ==, SIGPIPE);
    tool = tool_line("trap '' PIPE; exec zklock run /unheard -c 'kill -PIPE $$; exit 7'");
    check_num(tool_status(&tool), ==, 7);
}

/* Goal: what cannot be printed is a failure. Method: every text for standard output to a device that is full. */
TOOL_TEST(a_full_device_is_told)
{
    static const char *const lines[] = {
        "zklock --help",        "zklock --version",        "zklock run --help",
        "zklock doctor /x",     "zklock break --help",     "zklock revoke /full",
        "zklock status /x",     "zklock status --json /x", "zklock-dev --help",
        "zklock-dev --version",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        check_said(71, written("exec %s >/dev/full", lines[i]),
                   "standard output cannot be written\n");
    check_said(0, "exec zklock run /full -- true >/dev/full");
    check_said(71, "exec zklock --help >&-");
}

/* Goal: too few descriptors are the limit's fault, and told immediately: no server is looked for in vain, and no file is
 * said to be unreadable. Method: every number with which zklock can begin. */
TOOL_TEST(too_few_descriptors_are_told)
{
    static const char line[] = "ulimit -n %d; exec zklock run --not-within 0.001 /few -- true";

    for (int limit = 7; limit < 23; limit++)
        check_said(71, written(line, limit), " descriptors are available: raise the limit");
    check_said(0, written(line, 60));
}

/* Goal: a command that cannot be a path needs no "--", and its options are its own. All that was taken with "--"
 * is taken as before, and an absolute word is a path. */
TOOL_TEST(the_dashes_may_be_omitted)
{
    static const char show[] = "echo \"$ZKLOCK_PATH+$0+$*\"";

    check_said(0, written("run -n /bare sh -c '%s' -n -c -- x", show), "/bare+-n+-c -- x\n");
    check_said(0, written("run /bare -w 60 /too sh -c '%s' 0", show), "/bare /too+0+\n");
    check_said(0, written("run /bare /too -n -- sh -c '%s' 0", show), "/bare /too+0+\n");
    check_said(0, written("run /bare -n -- /bin/sh -c '%s' 0", show), "/bare+0+\n");
    check_said(0, "run /bare /bin/sh -c 'echo \"$ZKLOCK_PATH++\"'", "/bare /bin/sh++\n");
    check_said(64, "run -- /bare true", "no path is given");
    check_said(64, "run /bare '' -- true", "give an absolute ZooKeeper path");
}

/* Goal: standard descriptors that are closed stay so for the command, and are in nobody's way. */
TOOL_TEST(closed_descriptors_stay_closed)
{
    for (int closed = 0; closed < 8; closed++) {
        check_said(32 + closed, written("exec zklock run /closed -c 'is=0; for fd in 0 1 2; do "
                                        "[ -e /proc/$$/fd/$fd ] || is=$((is + (1 << fd))); done; "
                                        "exit $((is + 32))' %s %s %s",
                                        closed & 1 ? "0<&-" : "", closed & 2 ? "1>&-" : "",
                                        closed & 4 ? "2>&-" : ""));
        check_num(cluster_children("/closed"), ==, 0);
    }
    check_said(0, "exec zklock status /closed 0<&- 2>&-", "=/closed  free\n");
    check_said(71, "exec zklock status /closed 1>&-", "standard output cannot be written");
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
        struct tool tool = tool_line("run /signal -c 'ulimit -c 0; kill -%d $$'", numbers[i]);
        check_num(tool_signal(&tool), ==, numbers[i]);
    }
    check_num(cluster_children("/signal"), ==, 0);
}

/* Goal: zklock keeps the lock until every process that the command left in its group has ended, and then releases it.
 * It does not wait for a process that made a session of its own. */
TOOL_TEST(the_lock_is_kept_for_the_whole_group)
{
    char gone[400];
    struct worked stays = worked_new(), leaves = worked_new();

    snprintf(gone, sizeof gone, "setsid %s %s 0 & exit 4", WORK, leaves.name);
    struct tool tool = tool_line("run /group -c 'work %s 0 & exit 3'", stays.name);
    worked_wait(&stays, 1);
    for (int i = 0; i < 3; i++)
        check_said(1, "run -n /group -- true");
    check_true(!process_gone(tool.pid));
    check_ok(kill(atomic_load(&stays.shared->pid), SIGKILL));
    check_num(tool_status(&tool), ==, 3);
    check_num(cluster_children("/group"), ==, 0);

    check_said(4, written("run /group -c '%s'", gone));
    worked_wait(&leaves, 1);
    check_true(!process_gone(atomic_load(&leaves.shared->pid)));
    check_ok(kill(atomic_load(&leaves.shared->pid), SIGKILL));
}

/* --- what the command gets --------------------------------------------------------------------- */

/* Goal: path, token and node are the command's to use; with several paths they are lists in the order of
 * the command line. */
TOOL_TEST(the_command_knows_its_lock)
{
    struct tool tool =
        tool_line("run /knows/b /knows/a -c 'echo \"$ZKLOCK_PATH,$ZKLOCK_NODE,$ZKLOCK_TOKEN,\"'");
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
        char node[300];
        unsigned long long token;
        struct wire_stat stat;
        struct tool tool =
            tool_line("run %s %s -c 'echo node $ZKLOCK_NODE $ZKLOCK_TOKEN; exec work %s 0'",
                      kinds[i], cluster_path("token"), worked.name);
        worked_wait(&worked, 1);
        check_num(sscanf(strstr(tool_text(&tool), "node "), "node %299s %llu", node, &token), ==,
                  2);
        check_ok(wire_exists(raw, node, &stat));
        check_num(stat.czxid, ==, token);
        tool_kill(&tool, SIGTERM);
    }
}

/* Goal: the command has zklock's environment, folder and open files, but not the credential; and its
 * standard input is what it was. */
TOOL_TEST(the_command_has_what_zklock_had)
{
    check_said(0,
               "ZKLOCK_AUTH=digest:alice:sesame ZKLOCK_AUTH_FILE=/nowhere zklock run /has -c 'cd "
               "/; echo ${ZKLOCK_AUTH-none},$ZKLOCK_AUTH_FILE,$PWD'",
               "none,/nowhere,/\n");
    check_said(0, "zklock run /has -c 'exec 5<<x\nthrough\nx\nexec zklock run /has2 -- cat <&5'",
               "through\n"); /* of an open file */
}

/* --- kinds and waiting -------------------------------------------------------------------------- */

/* A zklock that holds, in one of its kinds, until it gets SIGTERM. */
static struct tool holder(const struct worked *worked, const char *option, const char *path)
{
    int begun = atomic_load(&worked->shared->begun);
    struct tool tool = tool_line("run %s %s -- work %s 0", option, path, worked->name);

    worked_wait(worked, begun + 1);
    return tool;
}

/* Goal: -n fails immediately, -w after its time, with flock's status or the one that -E gives. zklock says so only
 * with -v. */
TOOL_TEST(a_busy_lock_is_a_conflict)
{
    struct worked worked = worked_new();
    struct tool tool = holder(&worked, "-v", "/busy");

    lag_begin();
    check_said(1, "run -n /busy -- true");
    check_said(9, "run -w 0 -E 9 /busy -- true");
    check_num(lag_end_ms(), <, 5000);
    int64_t began = net_now_ms();
    check_said(0, "run -w .4 -E0 /busy -- false");
    check_num(net_now_ms() - began, >=, 400);
    check_said(1, "run -v -n /busy -- true",
               "zklock: the lock was not acquired: another contender has it");
    check_said(1, "run -n /busy -- true", "=");
    check_num(cluster_children("/busy"), ==, 1);
    tool_kill(&tool, SIGTERM);
}

/* Goal: -s shares with -s and excludes the others, on one path with locks that are not shared. */
TOOL_TEST(shared_locks_are_shared)
{
    struct worked worked = worked_new();
    struct tool reader = holder(&worked, "-s", "/shared");

    check_said(0, "run -s -n /shared -- true");
    check_said(1, "run -n /shared -- true");
    tool_kill(&reader, SIGTERM);
    struct tool writer = holder(&worked, "-v", "/shared");
    check_said(1, "run -s -n /shared -- true");
    tool_kill(&writer, SIGTERM);
}

/* Goal: --permits N lets N commands hold, and no more. A contender with another number is refused. */
TOOL_TEST(permits_are_counted)
{
    struct worked one = worked_new(), two = worked_new();
    struct tool first = holder(&one, "--permits=2", "/permits");
    struct tool second = holder(&two, "--permits=2", "/permits");

    check_said(1, "run -w 0.3 --permits 2 /permits -- true");
    check_said(78, "run -w 60 --permits 3 /permits -- true", "permits");
    check_said(78, "run --permits 3 /permits -- true", "!or 0"); /* --permits takes no 0 */
    tool_kill(&first, SIGTERM);
    check_said(0, "run -n --permits 2 /permits -- true");
    tool_kill(&second, SIGTERM);
}

/* Goal: with Kazoo's names zklock and Kazoo's locks wait for each other. Method: a node as Kazoo makes it. */
TOOL_TEST(names_of_kazoo_are_shared)
{
    static const char asked[] = "/kazoo/0123456789abcdef0123456789abcdef__lock__";
    struct worked worked = worked_new();
    char node[300];

    check_ok(wire_create(raw, "/kazoo", "", WIRE_PERSISTENT, NULL, 0)); /* no container */
    struct tool tool = tool_line("run --names kazoo /kazoo -- work %s 0", worked.name);
    worked_wait(&worked, 1);
    cluster_child("/kazoo", 0, node, sizeof node);
    check_true(strstr(node, "__lock__") != NULL && !strstr(node, "_c_"));
    check_said(1, "run -n --names=kazoo -s /kazoo -- true");
    tool_kill(&tool, SIGTERM);
    check_ok(wire_create(raw, asked, "", WIRE_EPHEMERAL_SEQUENTIAL, node, sizeof node));
    check_said(1, "run -n --names=kazoo /kazoo -- true");
    check_ok(wire_delete(raw, node, -1));
    check_said(6,
               "run -s --names=kazoo /kazoo -c 'case $ZKLOCK_NODE in *__rlock__*) exit 6;; esac'");
    check_said(64, "run --names Kazoo /a -- true", "--names must be curator or kazoo");
    check_said(64, "run --names=kazoo --permits=2 /a -- true", "a semaphore has no names of Kazoo");
    check_said(0, "run --names curator /kazoo -- true");
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
    tool_kill(&first, SIGKILL);
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

    check_said(1, "run -n /many/a /many/b -- true");
    check_said(0, "run -n /many/a -- true");
    tool_kill(&tool, SIGTERM);
    tool = tool_line("run /many/a /many/b -- work %s 20", worked.name);
    other = tool_line("run /many/b /many/a -- work %s 20", worked.name);
    check_num(tool_status(&tool), ==, 0);
    check_num(tool_status(&other), ==, 0);
}

/* Goal: with -v a wait says behind whom and at which place it is, once for each place. Without it nothing is said.
 * Method: contenders that are only nodes, and come to their ends one by one. */
TOOL_TEST(a_wait_says_behind_whom)
{
    const char *first = contender("/wait", "lock-", "db1 99999 99999");
    const char *second = contender("/wait", "lock-", "db2 4711 4712");
    const char *third = contender("/wait", "lock-", "a night's work");
    struct tool silent = tool_line("run /wait -- true");

    check_wait(cluster_children("/wait") == 4, WAIT_MS);
    struct tool tool = tool_line("run -v -w 60 /wait -- true");
    check_wait(tool_says(&tool, ", number 5 in line"), WAIT_MS);
    tool_kill(&silent, SIGTERM);
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
    struct tool tool = tool_line("run -v /wait-many/a /wait-many/b -- true");

    check_wait(tool_says(&tool, "waits behind db1 pid 7 at /wait-many/b, since "), WAIT_MS);
    check_ok(wire_delete(raw, node, -1));
    check_num(tool_status(&tool), ==, 0);
    node = contender("/wait-read", "__WRIT__", "db1 7 7");
    tool = tool_line("run -v -s /wait-read -- true");
    check_wait(tool_says(&tool, "waits behind db1 pid 7, since "), WAIT_MS);
    check_ok(wire_delete(raw, node, -1));
    check_num(tool_status(&tool), ==, 0);
    struct tool held = holder(&worked, "--permits=1", "/wait-permit");
    tool = tool_line("run -v --permits=1 /wait-permit -- true");
    check_wait(tool_says(&tool, "waits for a permit, since "), WAIT_MS);
    struct tool next = tool_line("run -v --permits=1 /wait-permit -- true");
    check_wait(tool_says(&next, ", second in line"), WAIT_MS);
    tool_kill(&held, SIGTERM);
    check_num(tool_status(&tool), ==, 0);
    check_num(tool_status(&next), ==, 0);
    check_said(0, "run -v /wait-free -- true", "!waits");
}

/* --- wrong calls and settings ------------------------------------------------------------------- */

/* Goal: each wrong call has its status and one sentence that says what to do. */
TOOL_TEST(wrong_calls_are_told)
{
    check_said(64, "", "usage: zklock COMMAND");
    check_said(64, "walk", "there is no command \"walk\": zklock --help lists them");
    check_said(0, "--version", "zklock " ZKL_VERSION "\n");
    check_said(0, "--help", "  run ");
    check_said(0, "run --help", "usage: zklock run [OPTION...] PATH... [--] COMMAND");
    check_said(64, "run -n -Zv /p", "run has no option -Z");
    check_said(64, "run --nope /p", "run has no option --nope");
    check_said(64, "run", "no path is given");
    check_said(64, "run -- true", "no path is given");
    check_said(64, "run /a", "no command");
    check_said(64, "run /a --", "no command");
    check_said(64, "run /a -c true -- true", "-c and a command");
    check_said(64, "run ls -c true", "give an absolute ZooKeeper path");
    check_said(64, "run /a /bin/true", "an absolute command needs the \"--\"");
    check_said(64, "run /a -c true true", "-c and a command");
    check_said(64, "run --what /a -- true", "run has no option --what");
    check_said(64, "run /a -E", "-E requires a value");
    check_said(64, "run -E 256 /a -- true", "-E must be a whole number from 0 to 255");
    check_said(64, "run -w -1 /a -- true", "-w must be a number of seconds");
    check_said(64, "run -w 1e9 /a -- true", "-w must be a number of seconds from 0 to 315360000, ");
    check_said(64, "run --not-within 1e9 /a -- true",
               "--not-within must be a number of seconds from 0.001 to 315360000, ");
    check_said(64, "run --not-within 0 /a -- true",
               "--not-within must be a number of seconds from 0.001");
    check_said(64, "run --skip-exit-code 0 /a -- true", "--skip-exit-code requires --not-within");
    check_said(64, "run --retry-failed /a -- true", "--retry-failed requires --not-within");
    check_said(64, "run --permits 0 /a -- true", "--permits must be");
    check_said(64, "run -s --permits 2 /a -- true", "-s and --permits");
    check_said(64, "run a -- true", "give an absolute ZooKeeper path");
    check_said(64, "run /a /a -- true", "/a");
}

/* Goal: zklock takes the servers from the first that has them: the option, the environment, the configuration file.
 * It reports what is wrong with them. */
TOOL_TEST(servers_come_from_three_places)
{
    const char *config = file_named("zklock.conf");

    unsetenv("ZKLOCK_SERVERS");
    check_said(78, "run /set -- true", "no servers: give --servers HOST:PORT");
    write_file(config, written("# ours\n\n servers =  %s \nsession_timeout = 5\n",
                               zks_connect_string(server)));
    check_said(0, "run /set -- true");
    setenv("ZKLOCK_SERVERS", "nonsense", 1);
    check_said(78, "run /set -- true", "ZKLOCK_SERVERS: the servers must be HOST:PORT");
    check_said(0, written("run --servers %s /set -- true", zks_connect_string(server)));
    check_said(78, "run --session-timeout long /set -- true",
               "--session-timeout: the session timeout must be 0.1 to");
    write_file(config, "colour = red\n");
    check_said(78, "run /set -- true",
               "zklock.conf, line 1: the line must have the form KEY = VALUE");
    write_file(config, "\nservers\n");
    check_said(78, "run /set -- true",
               "zklock.conf, line 2: the line must have the form KEY = VALUE");
    check_ok(unlink(config));
}

/* Goal: without a server there is an end, and a status of its own. */
TOOL_TEST(no_server_is_told)
{
    char servers[32];
    int port;

    check_ok(net_free_ports(&port, 1));
    snprintf(servers, sizeof servers, "127.0.0.1:%d", port);
    check_said(69, written("run --servers %s /none -- true", servers), "answered within");
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
    check_said(77, "run -w 1 /auth -- true", "/auth");
    check_said(1, "ZKLOCK_AUTH=digest:alice:sesame zklock run -n /auth -- true");
    /* as the library's own files have it */
    check_said(1, "ZKLOCK_AUTH=alice:sesame zklock run -n /auth -- true");
    tool_kill(&tool, SIGTERM);
    check_said(78, "ZKLOCK_AUTH=sesame zklock run /auth -- true",
               "does not have the form digest:USER:PASSWORD", "!sesame");
    setenv("ZKLOCK_AUTH_FILE", "/nowhere/credential", 1);
    check_said(
        78, "run /auth -- true",
        "ZKLOCK_AUTH_FILE: the file \"/nowhere/credential\" with the credential cannot be opened");
    file = file_named("nobody-writes");
    check_ok(mkfifo(file, 0600));
    setenv("ZKLOCK_AUTH_FILE", file, 1);
    check_said(78, "run /auth -- true", "empty first line");
    /* --not-within connects twice, and a pipe has the line only once */
    file = file_named("written-once");
    check_ok(mkfifo(file, 0600));
    setenv("ZKLOCK_AUTH_FILE", file, 1);
    int writer = open(file, O_RDWR | O_CLOEXEC);
    check_num(write(writer, "alice:sesame\n", 13), ==, 13);
    check_said(0, "run --not-within 60 /once -- true");
    check_ok(close(writer));
    unsetenv("ZKLOCK_AUTH_FILE");
    setenv("ZKLOCK_ACL", "creator", 1);
    check_said(78, "run /auth -- true", "needs a credential");
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
        struct tool tool = tool_line("run /wrong -- true");
        check_num(tool_status(&tool), ==, 78);
        if (!tool_says(&tool, "zklock.conf, line 2: ") || tool_says(&tool, "sesame") ||
            tool_says(&tool, "alice"))
            fail_msg("%s: %s", lines[i], tool_text(&tool));
    }
    check_ok(unlink(config));
    setenv("ZKLOCK_SERVERS", zks_connect_string(server), 1);
    setenv("ZKLOCK_AUTH_FILE", "digest:alice:sesame", 1);
    check_said(78, "run /wrong -- true",
               "ZKLOCK_AUTH_FILE: the file with the credential cannot be opened", "!sesame");
}

/* Goal: TLS and SASL are set by the environment and by a configuration file, each by the library's own name; what the
 * library says of them ends the command as a wrong setting does. Method: some that no libzookeeper takes. */
TOOL_TEST(tls_and_sasl_come_from_the_environment_or_a_file)
{
    const char *config = file_named("zklock.conf");

    setenv("ZKLOCK_TLS_CA_FILE", "/nowhere/ca.pem", 1);
    check_said(78, "run /secure -- true", "tls_cert_file is not set");
    setenv("ZKLOCK_TLS_CERT_FILE", "/nowhere/cert.pem", 1);
    check_said(78, "run /secure -- true", "tls_key_file is not set");
    setenv("ZKLOCK_TLS_KEY_FILE", "/nowhere/a,b", 1);
    check_said(78, "run /secure -- true", "tls_key_file \"/nowhere/a,b\" has a comma");
    unsetenv("ZKLOCK_TLS_CA_FILE");
    unsetenv("ZKLOCK_TLS_CERT_FILE");
    unsetenv("ZKLOCK_TLS_KEY_FILE");
    write_file(config,
               "tls_ca_file = a\ntls_cert_file = b\ntls_key_file = c\ntls_passphrase_file = d\n"
               "sasl_mechanism = DIGEST-MD5\nsasl_user = bob\nsasl_password_file = /nowhere\n"
               "sasl_service = zookeeper\nsasl_host = zk1\nacl = creator\n");
    check_said(78, "run /secure -- true", "ZOOKEEPER-3482");
    check_said(78, "ZKLOCK_SASL_MECHANISM=PLAIN zklock run /secure -- true",
               "DIGEST-MD5 or GSSAPI");
    check_ok(unlink(config));
}
