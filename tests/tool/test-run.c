/* SPDX-License-Identifier: Apache-2.0 */
/* zklock run when nothing goes wrong with the lock: what it acquires, what the command gets to know, how
 * the end of the command is passed on, and what is said of wrong calls. */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* --- the command's end ------------------------------------------------------------------------- */

/* Goal: who calls zklock run sees what he would see of the command itself: its status, the signal
 * it died by, and the shell's statuses for one that can't be run. */
static void the_commands_end_is_passed_on(void **state)
{
    (void)state;
    tool_check(0, "", "run", "/end", "--", "true");
    tool_check(7, "", "run", "/end", "--", "sh", "-c", "exit 7");
    tool_check(255, "", "run", "/end", "-c", "exit 255");
    tool_check(127, "no-such-command can't be run: ", "run", "/end", "--", "no-such-command");
    tool_check(126, "/dev/null can't be run: ", "run", "/end", "--", "/dev/null");
}

/* Goal: a command that a signal killed makes zklock die by the same signal, without a core file of its
 * own beside the command's. */
static void death_by_a_signal_is_passed_on(void **state)
{
    static const int numbers[] = {SIGKILL, SIGTERM, SIGSEGV, SIGABRT, SIGQUIT, SIGALRM};
    struct rlimit limit;

    (void)state;
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

/* Goal: the lock is kept for all that the command leaves in its group, and given back right after; what
 * has gone into a session of its own is let go. */
static void the_lock_is_kept_for_the_whole_group(void **state)
{
    char left[400], gone[400];
    struct worked stays = worked_new(), leaves = worked_new();

    (void)state;
    snprintf(left, sizeof left, "%s %s 700 & exit 3", WORK, stays.name);
    snprintf(gone, sizeof gone, "setsid %s %s 0 & exit 4", WORK, leaves.name);
    struct tool tool = tool_run("run", "/group", "-c", left);
    worked_wait(&stays, 1);
    tool_check(1, "", "run", "-n", "/group", "--", "true");
    check_num(atomic_load(&stays.board->done), ==, 0);
    check_num(tool_status(&tool), ==, 3);
    check_num(atomic_load(&stays.board->done), ==, 1);
    check_num(cluster_children("/group"), ==, 0);

    tool = tool_run("run", "/group", "-c", gone);
    check_num(tool_status(&tool), ==, 4);
    worked_wait(&leaves, 1);
    check_true(!is_gone(atomic_load(&leaves.board->pid)));
    check_ok(kill(atomic_load(&leaves.board->pid), SIGKILL));
    worked_free(&stays);
    worked_free(&leaves);
}

/* --- what the command gets --------------------------------------------------------------------- */

/* Goal: path, token and node are the command's to use; with several paths they are lists in the order of
 * the command line. */
static void the_command_knows_its_lock(void **state)
{
    struct tool tool = tool_run("run", "/knows/b", "/knows/a", "-c",
                                "echo \"$ZKLOCK_PATH,$ZKLOCK_NODE,$ZKLOCK_TOKEN,\"");
    char path[64], first[200], second[200];
    unsigned long long tokens[2];

    (void)state;
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
static void the_token_is_the_nodes(void **state)
{
    static const char *const kinds[] = {"-v", "-s", "--permits=3"};

    (void)state;
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
static void the_command_has_what_zklock_had(void **state)
{
    (void)state;
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
    int begun = atomic_load(&worked->board->begun);
    struct tool tool = tool_run("run", option, path, "--", WORK, worked->name, "0");

    worked_wait(worked, begun + 1);
    return tool;
}

static void end_holder(struct tool *tool)
{
    check_ok(kill(tool->pid, SIGTERM));
    check_num(tool_signal(tool), ==, SIGTERM);
}

/* Goal: -n fails at once, -w after its time, with flock's status or the one asked for; and silently, but
 * for -v. */
static void a_busy_lock_is_a_conflict(void **state)
{
    struct worked worked = worked_new();
    struct tool tool = holder(&worked, "-v", "/busy");
    int64_t began = net_now_ms();

    (void)state;
    tool_check(1, "", "run", "-n", "/busy", "--", "true");
    tool_check(9, "", "run", "-w", "0", "-E", "9", "/busy", "--", "true");
    check_num(net_now_ms() - began, <, 5000);
    began = net_now_ms();
    tool_check(0, "", "run", "-w", ".4", "-E0", "/busy", "--", "false");
    check_num(net_now_ms() - began, >=, 400);
    tool_check(1, "zklock: the lock was not acquired: somebody else has it", "run", "-v", "-n",
               "/busy", "--", "true");
    struct tool silent = tool_run("run", "-n", "/busy", "--", "true");
    check_num(tool_status(&silent), ==, 1);
    check_text(tool_text(&silent), "");
    check_num(cluster_children("/busy"), ==, 1);
    end_holder(&tool);
    worked_free(&worked);
}

/* Goal: -s shares with -s and excludes the others, on one path with locks that are not shared. */
static void shared_locks_are_shared(void **state)
{
    struct worked worked = worked_new();
    struct tool reader = holder(&worked, "-s", "/shared");

    (void)state;
    tool_check(0, "", "run", "-s", "-n", "/shared", "--", "true");
    tool_check(1, "", "run", "-n", "/shared", "--", "true");
    end_holder(&reader);
    struct tool writer = holder(&worked, "-v", "/shared");
    tool_check(1, "", "run", "-s", "-n", "/shared", "--", "true");
    end_holder(&writer);
    worked_free(&worked);
}

/* Goal: --permits lets so many hold, and no more; another number is refused. */
static void permits_are_counted(void **state)
{
    struct worked one = worked_new(), two = worked_new();
    struct tool first = holder(&one, "--permits=2", "/permits");
    struct tool second = holder(&two, "--permits=2", "/permits");

    (void)state;
    tool_check(1, "", "run", "-w", "0.3", "--permits", "2", "/permits", "--", "true");
    tool_check(78, "permits", "run", "-w", "0.3", "--permits", "3", "/permits", "--", "true");
    end_holder(&first);
    tool_check(0, "", "run", "-n", "--permits", "2", "/permits", "--", "true");
    end_holder(&second);
    worked_free(&one);
    worked_free(&two);
}

/* Goal: several paths are one lock: none is held while one is missing, and two that name them in different
 * order do not wait for each other. */
static void several_paths_are_one_lock(void **state)
{
    struct worked worked = worked_new();
    struct tool tool = holder(&worked, "-v", "/many/b"), other;

    (void)state;
    tool_check(1, "", "run", "-n", "/many/a", "/many/b", "--", "true");
    tool_check(0, "", "run", "-n", "/many/a", "--", "true");
    end_holder(&tool);
    tool = tool_run("run", "/many/a", "/many/b", "--", WORK, worked.name, "20");
    other = tool_run("run", "/many/b", "/many/a", "--", WORK, worked.name, "20");
    check_num(tool_status(&tool), ==, 0);
    check_num(tool_status(&other), ==, 0);
    worked_free(&worked);
}

/* --- wrong calls and settings ------------------------------------------------------------------- */

/* Goal: each wrong call has its status and one sentence that says what to do. */
static void wrong_calls_are_told(void **state)
{
    (void)state;
    tool_check(64, "usage: zklock COMMAND", NULL);
    tool_check(64, "there is no command \"walk\": zklock --help lists them", "walk");
    tool_check(0, "zklock 0.1.0\n", "--version");
    tool_check(0, "  run ", "--help");
    tool_check(0, "usage: zklock run [OPTION...] PATH... -- COMMAND", "run", "--help");
    tool_check(64, "no lock is named", "run");
    tool_check(64, "no lock is named", "run", "--", "true");
    tool_check(64, "no command", "run", "/a");
    tool_check(64, "no command", "run", "/a", "--");
    tool_check(64, "-c and a command", "run", "/a", "-c", "true", "--", "true");
    tool_check(64, "run has no option -l", "run", "/a", "ls", "-l");
    tool_check(64, "run has no option --what", "run", "--what", "/a", "--", "true");
    tool_check(64, "-E wants a value", "run", "/a", "-E");
    tool_check(64, "-E is to be a whole number from 0 to 255", "run", "-E", "256", "/a", "--",
               "true");
    tool_check(64, "-w is to be a number of seconds", "run", "-w", "-1", "/a", "--", "true");
    tool_check(64, "--permits is to be", "run", "--permits", "0", "/a", "--", "true");
    tool_check(64, "-s and --permits", "run", "-s", "--permits", "2", "/a", "--", "true");
    tool_check(64, "give an absolute ZooKeeper path", "run", "a", "--", "true");
    tool_check(64, "/a", "run", "/a", "/a", "--", "true");
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "we");

    check_true(file != NULL);
    check_true(fputs(text, file) >= 0);
    check_ok(fclose(file));
}

static const char *file_named(const char *name)
{
    static char path[300];

    snprintf(path, sizeof path, "%s/%s", zks_dir(server), name);
    return path;
}

/* Goal: servers come from the option, the environment or the configuration file, the first that has them;
 * and what is wrong with them is told. */
static void servers_come_from_three_places(void **state)
{
    const char *config = file_named("zklock.conf");
    char text[300];

    (void)state;
    snprintf(text, sizeof text, "# ours\n\n servers =  %s \nsession_timeout = 5\n",
             zks_connect_string(server));
    unsetenv("ZKLOCK_SERVERS");
    tool_check(78, "no servers: give --servers HOST:PORT", "run", "/set", "--", "true");
    write_file(config, text);
    tool_check(0, "", "run", "/set", "--", "true");
    setenv("ZKLOCK_SERVERS", "nonsense", 1);
    tool_check(78, "nonsense", "run", "/set", "--", "true");
    tool_check(0, "", "run", "--servers", zks_connect_string(server), "/set", "--", "true");
    tool_check(78, "the session timeout is \"long\"", "run", "--session-timeout", "long", "/set",
               "--", "true");
    write_file(config, "colour = red\n");
    tool_check(78, "zklock.conf, line 1: \"colour\" is no setting", "run", "/set", "--", "true");
    write_file(config, "\nservers\n");
    tool_check(78, "zklock.conf, line 2: \"servers\" is not of the form key = value", "run", "/set",
               "--", "true");
    check_ok(unlink(config));
}

/* Goal: without a server there is an end, and a status of its own. */
static void no_server_is_told(void **state)
{
    char servers[32];
    int port;

    (void)state;
    check_ok(net_free_ports(&port, 1));
    snprintf(servers, sizeof servers, "127.0.0.1:%d", port);
    tool_check(69, "answered within", "run", "--servers", servers, "/none", "--", "true");
}

/* Goal: the credential of a file or of the environment makes nodes that nobody else may touch; one that is
 * no credential is told, without its text. */
static void credentials_come_from_a_file_or_the_environment(void **state)
{
    const char *file = file_named("credential");
    struct worked worked = worked_new();
    char acl[200];

    (void)state;
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
    check_true(tool_says(&tool, "is not of the form digest:USER:PASSWORD"));
    check_true(!tool_says(&tool, "sesame"));
    unsetenv("ZKLOCK_AUTH");
    setenv("ZKLOCK_AUTH_FILE", "/nowhere/credential", 1);
    tool_check(78, "auth_file \"/nowhere/credential\" can't be opened", "run", "/auth", "--",
               "true");
    file = file_named("nobody-writes");
    check_ok(mkfifo(file, 0600));
    setenv("ZKLOCK_AUTH_FILE", file, 1);
    tool_check(78, "empty first line", "run", "/auth", "--", "true");
    unsetenv("ZKLOCK_AUTH_FILE");
    setenv("ZKLOCK_ACL", "creator", 1);
    tool_check(78, "needs a credential", "run", "/auth", "--", "true");
    worked_free(&worked);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_commands_end_is_passed_on),
    cmocka_unit_test(death_by_a_signal_is_passed_on),
    cmocka_unit_test(the_lock_is_kept_for_the_whole_group),
    cmocka_unit_test(the_command_knows_its_lock),
    cmocka_unit_test(the_token_is_the_nodes),
    cmocka_unit_test(the_command_has_what_zklock_had),
    cmocka_unit_test(a_busy_lock_is_a_conflict),
    cmocka_unit_test(shared_locks_are_shared),
    cmocka_unit_test(permits_are_counted),
    cmocka_unit_test(several_paths_are_one_lock),
    cmocka_unit_test(wrong_calls_are_told),
    cmocka_unit_test(servers_come_from_three_places),
    cmocka_unit_test(no_server_is_told),
    cmocka_unit_test(credentials_come_from_a_file_or_the_environment),
};

int main(int argc, char **argv)
{
    return TOOL_MAIN(argc, argv, "run", tests);
}
