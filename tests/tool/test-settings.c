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
        check_said(0, "run /blanks -- true");
        setenv("ZKLOCK_SERVERS", "nonsense", 1);
        check_said(0, written("run --servers '%s' /blanks -- true", servers));
    }
    setenv("ZKLOCK_SERVERS", servers_in("127.0.0.1:1 ", ""), 1);
    check_said(78, "run /blanks -- true", "ZKLOCK_SERVERS: the servers must be");
    setenv("ZKLOCK_SERVERS", servers_in("", "\n"), 1);
    setenv("ZKLOCK_SESSION_TIMEOUT", "5\n", 1);
    setenv("ZKLOCK_TICK", " 0.5\n", 1);
    setenv("ZKLOCK_ACL", "open\n", 1);
    check_said(0, "run /blanks -- true");
}

/* Goal: a credential has no line's end, as in a file, and may have blanks. Method: a holder has it from a mounted
 * secret; whoever has another one may not look. */
TOOL_TEST(a_line_end_is_no_part_of_a_credential)
{
    struct worked worked = worked_new();

    setenv("ZKLOCK_ACL", "creator\r\n", 1);
    setenv("ZKLOCK_AUTH", "alice:sesame\r\n", 1);
    struct tool tool = tool_line("run /alice -- work %s 0", worked.name);
    worked_wait(&worked, 1);
    setenv("ZKLOCK_AUTH", "alice:sesame", 1);
    check_said(1, "run -n /alice -- true");
    setenv("ZKLOCK_AUTH", "alice:sesame ", 1);
    check_said(77, "run -n /alice -- true", "/alice");
    setenv("ZKLOCK_AUTH", "\n", 1);
    setenv("ZKLOCK_AUTH_FILE", file_named("credential"), 1);
    write_file(file_named("credential"), "alice:sesame\n");
    check_said(1, "run -n /alice -- true");
    tool_kill(&tool, SIGTERM);
}

/* Goal: an option or a line of a file that is given without a value is a mistake; a variable is not set then. */
TOOL_TEST(an_empty_value_is_told)
{
    const char *config = file_named("zklock.conf");

    check_said(64, "run --servers '' /set -- true", "the value of --servers is empty");
    check_said(64, "status --servers= /set", "the value of --servers is empty");
    check_said(64, "doctor --servers ' \n' /set", "the value of --servers is empty");
    check_said(64, "run --session-timeout '' /set -- true",
               "the value of --session-timeout is empty");
    check_said(0, "ZKLOCK_TICK='' ZKLOCK_ACL=' ' zklock run /set -- true");
    write_file(config, "# one\nservers =\n");
    check_said(78, "run /set -- true", "zklock.conf, line 2: servers has no value");
    write_file(config, "acl = \t\n");
    check_said(78, "run /set -- true", "zklock.conf, line 1: acl has no value");
    check_ok(unlink(config));
}

/* Goal: of two lines for one key neither wins. That holds also for one that another place has set. */
TOOL_TEST(two_lines_for_one_key_are_told)
{
    const char *config = file_named("zklock.conf");

    write_file(config, "servers = 127.0.0.1:1\n\n servers=127.0.0.1:2\n");
    check_said(78, "run /set -- true", "zklock.conf, line 3: line 1 has set servers already");
    unsetenv("ZKLOCK_SERVERS");
    check_said(78, "run /set -- true", "zklock.conf, line 3: line 1 has set servers already");
    write_file(config, servers_in("acl = open\nservers = ", "\nacl = open\n"));
    check_said(78, "run /set -- true", "zklock.conf, line 3: line 1 has set acl already");
    check_ok(unlink(config));
}

/* Goal: a chroot comes once, behind the last server: else a typing error would be a part of its name. */
TOOL_TEST(a_server_behind_the_chroot_is_told)
{
    check_said(78, written("run --servers '%s' /set -- true", servers_in("127.0.0.1:1/app,", "")),
               "--servers: the servers must be");
    check_said(78,
               written("run --servers '%s' /set -- true", servers_in("127.0.0.1:1/app, ", "/app")),
               "--servers: the servers must be");
}

/* Goal: a tick that is no part of the timeout is told in the words of the setting, with its place. */
TOOL_TEST(a_tick_out_of_range_is_told_with_its_line)
{
    const char *config = file_named("zklock.conf");

    write_file(config, "\ntick = 6\n");
    check_said(78, "ZKLOCK_SESSION_TIMEOUT=5.5 zklock run /set -- true",
               "zklock.conf, line 2: the tick must be 0.001 seconds up to the session timeout, 5.5 "
               "seconds\n");
    check_said(0, "run /set -- true");
    write_file(config, "tick = 11\n");
    check_said(78, "run /set -- true",
               "zklock.conf, line 1: the tick must be 0.001 seconds up to the session timeout, ");
    write_file(config, "tick = 0\n");
    check_said(78, "run /set -- true", "zklock.conf, line 1: the tick must be");
    check_ok(unlink(config));
    setenv("ZKLOCK_TICK", "11", 1);
    check_said(78, "status /set", "ZKLOCK_TICK: the tick must be");
}

/* For a user who may not read what is another's, and yet reach zklock: root without its rights to files. */
#define WITHOUT_RIGHTS "exec setpriv --bounding-set -dac_override,-dac_read_search zklock run "

/* Goal: a HOME of another user, as after sudo, does not get in the way of servers that are given elsewhere. A file
 * that is seen and does not count is told. One's own file that cannot be read is a fault. */
TOOL_TEST(a_file_of_another_user_does_not_count)
{
    const char *config = file_named("zklock.conf"), *theirs = file_named("theirs");
    const char *servers = zks_connect_string(server);

    if (geteuid() != 0)
        skip();
    write_file(config, "servers = nonsense\n");
    check_ok(chmod(config, 0600));
    check_ok(chown(config, 1, 1));
    check_said(0, WITHOUT_RIGHTS "/home -- true",
               "zklock.conf cannot be read, so its settings do not count: Perm");
    struct tool tool = tool_line(WITHOUT_RIGHTS "--not-within 0.001 /home -- true");
    check_num(tool_status(&tool), ==, 0);
    const char *said = strstr(tool_text(&tool), "so its settings do not count");
    check_true(said && !strstr(said + 1, "so its settings do not count"));
    unsetenv("ZKLOCK_SERVERS");
    check_said(0, written(WITHOUT_RIGHTS "--servers %s /home -- true", servers));
    check_said(78, WITHOUT_RIGHTS "/home -- true",
               "no servers, and the user's configuration file cannot be read");
    check_ok(chown(config, 0, 0));
    check_ok(chmod(config, 0));
    check_said(78, written(WITHOUT_RIGHTS "--servers %s /home -- true", servers),
               "zklock.conf cannot be read: Permission denied");
    check_ok(unlink(config));
    /* A folder that hides whether there is a file. */
    check_ok(mkdir(theirs, 0700));
    check_ok(chown(theirs, 1, 1));
    setenv("XDG_CONFIG_HOME", theirs, 1);
    check_said(0, written(WITHOUT_RIGHTS "--servers %s /home -- true", servers), "=");
}
