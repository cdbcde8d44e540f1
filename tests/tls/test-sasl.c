/* SPDX-License-Identifier: Apache-2.0 */
/* SASL with a real server that wants it: a client that logs in by DIGEST-MD5 locks, and one that
 * can't gets an error that says so. */
#include "secured.h"

#include <sys/stat.h>

#define CONFIG                                                                                     \
    "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"                 \
    "enforce.auth.enabled=true\nenforce.auth.schemes=sasl\n"
#define JVM "-Djava.security.auth.login.config=%s/jaas.conf"

#define PASSWORD "sesame"

static struct zkl_client_options user(const char *name, const char *password)
{
    struct zkl_client_options options = secured_options(zks_port(server, 0));

    secured_write("password", password);
    options.sasl_mechanism = "DIGEST-MD5";
    options.sasl_user = name;
    options.sasl_password_file = secured_file("password");
    return options;
}

/* Goal: a client that logs in locks, and stays logged in over a restart of the server. */
WORLD_TEST(who_logs_in_locks)
{
    struct zkl_client_options options = user("bob", PASSWORD "\n");

    struct zkl_client *client = world_client_with(&options);
    lock_and_unlock(client, "/sasl");
    check_ok(zks_restart_node(server, 0));
    lock_and_unlock(client, "/sasl");
}

/* Goal: a line's end in the manner of Windows is no part of the password. A file that is no
 * regular file is refused: a pipe would have to be written anew for each login. */
WORLD_TEST(the_password_is_a_line_of_a_regular_file)
{
    struct zkl_client_options options = user("bob", PASSWORD "\r\n");

    check_works(&options);
    check_ok(mkfifo(secured_file("fifo"), 0600));
    options.sasl_password_file = secured_file("fifo");
    check_refused(&options, ZKL_EINVAL, "fifo\" is no regular file");
}

/* Goal: the creator's ACL names the user: another one can't touch what bob makes. */
WORLD_TEST(the_creators_acl_goes_by_the_user)
{
    struct zkl_client_options options = user("bob", PASSWORD "\n");

    options.acl = ZKL_ACL_CREATOR;
    struct zkl_client *bob = world_client_with(&options);
    lock_and_unlock(bob, "/bobs");
    options = user("alice", "rosebud\n");
    struct zkl_client *alice = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(alice, "/bobs");
    check_num(zkl_mutex_lock_for(mutex, BOUND_MS), ==, ZKL_EACCES);
}

/* Goal: a wrong password, and a user that the server does not know, are refused in words that do
 * not contain the password. Modes: F80. */
WORLD_TEST(a_wrong_password_is_refused)
{
    static const char *const names[] = {"bob", "nobody"};

    for (size_t i = 0; i < 2; i++) {
        struct zkl_client_options options = user(names[i], "Sesame\n");
        check_refused(&options, ZKL_EAUTH, "SASL");
        check_true(!strstr(zkl_error_detail(), "Sesame"));
    }
}

/* Goal: a client that does not log in at all gets an error that says that the server wants a
 * login. */
WORLD_TEST(who_does_not_log_in_is_told)
{
    struct zkl_client_options options = secured_options(zks_port(server, 0));

    check_refused(&options, ZKL_EAUTH, "SASL");
}

/* Goal: the command logs in by its settings, and its password is shown to nobody: in no argument or environment of a process,
 * in nothing that it says, in no line of the log; and what its commands ask beside locks has SASL, too. Modes: F82. */
WORLD_TEST(no_secret_of_sasl_is_shown)
{
    static const char *const secrets[] = {PASSWORD};
    struct zkl_client_options options = user("bob", PASSWORD "\n");

    check_ok(setenv("ZKLOCK_SERVERS", options.servers, 1));
    check_ok(setenv("ZKLOCK_SASL_MECHANISM", options.sasl_mechanism, 1));
    check_ok(setenv("ZKLOCK_SASL_USER", options.sasl_user, 1));
    check_ok(setenv("ZKLOCK_SASL_PASSWORD_FILE", options.sasl_password_file, 1));
    struct watched watched = watched_begin("/secret");
    watched_check(&watched, PASSWORD, false);
    watched_end(&watched, secrets, 1);
    check_command(0, "0 problems", "doctor /secret");
    check_command(0, "", "run --not-within 60 /secret -- true");
    check_command(0, "last run", "status /secret");
    check_command(0, "", "forget /secret");
    watch_log(&options, secrets, 1);
    check_works(&options);
    check_num(check_log(), >, 0);
}

/* Goal: if the password's file is missing when libzookeeper makes a new link, it gives up
 * without a word. The client then reports that it is at its end, and a waiting call ends. Modes:
 * F80. */
WORLD_TEST(a_password_that_is_gone_ends_the_client)
{
    struct zkl_client_options options = user("bob", PASSWORD "\n");

    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, "/gone");
    cycle(mutex, 1);
    check_ok(unlink(secured_file("password")));
    check_ok(zks_restart_node(server, 0));
    check_wait(zkl_client_get_state(client) == ZKL_CLIENT_AUTH_FAILED, BOUND_MS);
    check_num(zkl_mutex_lock_for(mutex, BOUND_MS), ==, ZKL_EAUTH);
}

int main(int argc, char **argv)
{
    return secured_main(argc, argv, CONFIG, JVM);
}
