/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as they really come: out of mounted secrets, of files of another user, with mistakes. Which place counts,
 * and what a wrong one is told, is in test-run.c. */
#include "tool.h"

#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The server's address between two texts. Static memory, good for one more call. */
static const char *servers_in(const char *before, const char *after)
{
    static char texts[2][400];
    static unsigned last;
    char *text = texts[++last % 2];

    snprintf(text, sizeof texts[0], "%s%s%s", before, zks_connect_string(server), after);
    return text;
}

/* Goal: the blanks and line ends that a mounted secret or a list broken into lines has are none of the value's. */
TOOL_TEST(blanks_around_a_value_do_not_count)
{
    static const char *const ends[][2] = {
        {"", "\n"}, {"", "\r\n"}, {" \t", " "}, {"127.0.0.1:1, ", ""}, {"127.0.0.1:1 ,\n", "\n\n"}};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const char *servers = servers_in(ends[i][0], ends[i][1]);
        setenv("ZKLOCK_SERVERS", servers, 1);
        tool_check(0, "", "run", "/blanks", "--", "true");
        setenv("ZKLOCK_SERVERS", "nonsense", 1);
        tool_check(0, "", "run", "--servers", servers, "/blanks", "--", "true");
    }
    setenv("ZKLOCK_SERVERS", servers_in("127.0.0.1:1 ", ""), 1);
    tool_check(78, "ZKLOCK_SERVERS: the servers must be", "run", "/blanks", "--", "true");
    setenv("ZKLOCK_SERVERS", servers_in("", "\n"), 1);
    setenv("ZKLOCK_SESSION_TIMEOUT", "5\n", 1);
    setenv("ZKLOCK_TICK", " 0.5\n", 1);
    setenv("ZKLOCK_ACL", "open\n", 1);
    tool_check(0, "", "run", "/blanks", "--", "true");
    unsetenv("ZKLOCK_TICK");
    unsetenv("ZKLOCK_ACL");
}

/* Goal: a credential has no line's end, as in a file, and may have blanks. Method: a holder has it from a mounted
 * secret; whoever has another one may not look. */
TOOL_TEST(a_line_end_is_no_part_of_a_credential)
{
    struct worked worked = worked_new();

    setenv("ZKLOCK_ACL", "creator\r\n", 1);
    setenv("ZKLOCK_AUTH", "alice:sesame\r\n", 1);
    struct tool tool = tool_run("run", "/alice", "--", WORK, worked.name, "0");
    worked_wait(&worked, 1);
    setenv("ZKLOCK_AUTH", "alice:sesame", 1);
    tool_check(1, "", "run", "-n", "/alice", "--", "true");
    setenv("ZKLOCK_AUTH", "alice:sesame ", 1);
    tool_check(77, "/alice", "run", "-n", "/alice", "--", "true");
    setenv("ZKLOCK_AUTH", "\n", 1);
    setenv("ZKLOCK_AUTH_FILE", file_named("credential"), 1);
    write_file(file_named("credential"), "alice:sesame\n");
    tool_check(1, "", "run", "-n", "/alice", "--", "true");
    check_ok(kill(tool.pid, SIGTERM));
    check_num(tool_signal(&tool), ==, SIGTERM);
    worked_free(&worked);
    unsetenv("ZKLOCK_AUTH");
    unsetenv("ZKLOCK_AUTH_FILE");
    unsetenv("ZKLOCK_ACL");
}

/* Goal: an option or a line of a file that is given without a value is a mistake; a variable is not set then. */
TOOL_TEST(an_empty_value_is_told)
{
    const char *config = file_named("zklock.conf");

    tool_check(64, "the value of --servers is empty", "run", "--servers", "", "/set", "--", "true");
    tool_check(64, "the value of --servers is empty", "status", "--servers=", "/set");
    tool_check(64, "the value of --servers is empty", "doctor", "--servers", " \n", "/set");
    tool_check(64, "the value of --session-timeout is empty", "run", "--session-timeout", "",
               "/set", "--", "true");
    setenv("ZKLOCK_TICK", "", 1);
    setenv("ZKLOCK_ACL", " ", 1);
    tool_check(0, "", "run", "/set", "--", "true");
    unsetenv("ZKLOCK_TICK");
    unsetenv("ZKLOCK_ACL");
    write_file(config, "# one\nservers =\n");
    tool_check(78, "zklock.conf, line 2: servers has no value", "run", "/set", "--", "true");
    write_file(config, "acl = \t\n");
    tool_check(78, "zklock.conf, line 1: acl has no value", "run", "/set", "--", "true");
    check_ok(unlink(config));
}

/* Goal: of two lines for one key neither wins. That holds also for one that another place has set. */
TOOL_TEST(two_lines_for_one_key_are_told)
{
    const char *config = file_named("zklock.conf");

    write_file(config, "servers = 127.0.0.1:1\n\n servers=127.0.0.1:2\n");
    tool_check(78, "zklock.conf, line 3: line 1 has set servers already", "run", "/set", "--",
               "true");
    unsetenv("ZKLOCK_SERVERS");
    tool_check(78, "zklock.conf, line 3: line 1 has set servers already", "run", "/set", "--",
               "true");
    write_file(config, servers_in("acl = open\nservers = ", "\nacl = open\n"));
    tool_check(78, "zklock.conf, line 3: line 1 has set acl already", "run", "/set", "--", "true");
    check_ok(unlink(config));
}

/* Goal: a chroot comes once, behind the last server: else a typing error would be a part of its name. */
TOOL_TEST(a_server_behind_the_chroot_is_told)
{
    tool_check(78, "--servers: the servers must be", "run", "--servers",
               servers_in("127.0.0.1:1/app,", ""), "/set", "--", "true");
    tool_check(78, "--servers: the servers must be", "run", "--servers",
               servers_in("127.0.0.1:1/app, ", "/app"), "/set", "--", "true");
}

/* Goal: a tick that is no part of the timeout is told in the words of the setting, with its place. */
TOOL_TEST(a_tick_out_of_range_is_told_with_its_line)
{
    const char *config = file_named("zklock.conf");

    write_file(config, "\ntick = 6\n");
    setenv("ZKLOCK_SESSION_TIMEOUT", "5.5", 1);
    tool_check(78,
               "zklock.conf, line 2: the tick must be 0.001 seconds up to the session timeout, 5.5 "
               "seconds\n",
               "run", "/set", "--", "true");
    unsetenv("ZKLOCK_SESSION_TIMEOUT");
    tool_check(0, "", "run", "/set", "--", "true");
    write_file(config, "tick = 11\n");
    tool_check(78,
               "zklock.conf, line 1: the tick must be 0.001 seconds up to the session timeout, ",
               "run", "/set", "--", "true");
    write_file(config, "tick = 0\n");
    tool_check(78, "zklock.conf, line 1: the tick must be", "run", "/set", "--", "true");
    check_ok(unlink(config));
    setenv("ZKLOCK_TICK", "11", 1);
    tool_check(78, "ZKLOCK_TICK: the tick must be", "status", "/set");
    unsetenv("ZKLOCK_TICK");
}

/* zklock run of a user who may not read what is another's, and yet reach zklock: root without its rights to files. */
static struct tool without_rights(const char *option, const char *value)
{
    struct tool tool = {.output = memfd_create("output", MFD_CLOEXEC)};

    tool.pid = fork();
    check_num(tool.pid, >=, 0);
    if (tool.pid == 0) {
        tool_default_signals();
        dup2(tool.output, STDOUT_FILENO);
        dup2(tool.output, STDERR_FILENO);
        prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE);
        prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH);
        execl(ZKLOCK, ZKLOCK, "run", option, value, "/home", "--", "true", (char *)NULL);
        _exit(98);
    }
    return tool;
}

/* Goal: a HOME of another user, as after sudo, does not get in the way of servers that are given elsewhere. A file
 * that is seen and does not count is told. One's own file that cannot be read is a fault. */
TOOL_TEST(a_file_of_another_user_does_not_count)
{
    const char *config = file_named("zklock.conf"), *theirs = file_named("theirs");

    if (geteuid() != 0)
        skip();
    write_file(config, "servers = nonsense\n");
    check_ok(chmod(config, 0600));
    check_ok(chown(config, 1, 1));
    struct tool tool = without_rights("-E", "9");
    check_num(tool_status(&tool), ==, 0);
    check_true(tool_says(&tool, "zklock.conf cannot be read, so its settings do not count: Perm"));
    tool = without_rights("--not-within", "0.001");
    check_num(tool_status(&tool), ==, 0);
    const char *said = strstr(tool_text(&tool), "so its settings do not count");
    check_true(said && !strstr(said + 1, "so its settings do not count"));
    unsetenv("ZKLOCK_SERVERS");
    tool = without_rights("--servers", zks_connect_string(server));
    check_num(tool_status(&tool), ==, 0);
    tool = without_rights("-E", "9");
    check_num(tool_status(&tool), ==, 78);
    check_true(tool_says(&tool, "no servers, and the user's configuration file cannot be read"));
    check_ok(chown(config, 0, 0));
    check_ok(chmod(config, 0));
    tool = without_rights("--servers", zks_connect_string(server));
    check_num(tool_status(&tool), ==, 78);
    check_true(tool_says(&tool, "zklock.conf cannot be read: Permission denied"));
    check_ok(unlink(config));
    /* A folder that hides whether there is a file. */
    check_ok(mkdir(theirs, 0700));
    check_ok(chown(theirs, 1, 1));
    setenv("XDG_CONFIG_HOME", theirs, 1);
    tool = without_rights("--servers", zks_connect_string(server));
    check_num(tool_status(&tool), ==, 0);
    check_text(tool_text(&tool), "");
}
