/* SPDX-License-Identifier: Apache-2.0 */
/* SASL with a real server that wants it: a client that logs in by DIGEST-MD5 locks, and one that
 * can't gets an error that says so. */
#include "secured.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
TEST(who_logs_in_locks)
{
    struct zkl_client_options options = user("bob", PASSWORD "\n");

    struct zkl_client *client = must_open(&options);
    lock_and_unlock(client, "/sasl");
    check_ok(zks_restart_node(server, 0));
    lock_and_unlock(client, "/sasl");
    check_ok(zkl_client_close(client, BOUND_MS));
    check_ok(zkl_client_free(client));
}

/* Goal: a line's end in the manner of Windows is no part of the password. A file that is no
 * regular file is refused: a pipe would have to be written anew for each login. */
TEST(the_password_is_a_line_of_a_regular_file)
{
    struct zkl_client_options options = user("bob", PASSWORD "\r\n");

    check_works(&options);
    check_ok(mkfifo(secured_file("fifo"), 0600));
    options.sasl_password_file = secured_file("fifo");
    check_refused(&options, ZKL_EINVAL, "fifo\" is no regular file");
}

/* Goal: the creator's ACL names the user: another one can't touch what bob makes. */
TEST(the_creators_acl_goes_by_the_user)
{
    struct zkl_client_options options = user("bob", PASSWORD "\n");
    struct zkl_mutex *mutex = NULL;

    options.acl = ZKL_ACL_CREATOR;
    struct zkl_client *bob = must_open(&options);
    lock_and_unlock(bob, "/bobs");
    options = user("alice", "rosebud\n");
    struct zkl_client *alice = must_open(&options);
    check_ok(zkl_mutex_new(&mutex, alice, "/bobs", NULL));
    check_num(zkl_mutex_lock_for(mutex, BOUND_MS), ==, ZKL_EACCES);
    check_ok(zkl_mutex_free(mutex));
    check_ok(zkl_client_free(alice));
    check_ok(zkl_client_free(bob));
}

static void check_silent(void)
{
    check_true(!strstr(zkl_error_detail(), "Sesame"));
}

/* Goal: a wrong password, and a user that the server does not know, are refused in words that do
 * not contain the password. Modes: F80. */
TEST(a_wrong_password_is_refused)
{
    struct zkl_client_options options = user("bob", "Sesame\n");

    check_refused(&options, ZKL_EAUTH, "SASL");
    check_silent();
    options = user("nobody", "Sesame\n");
    check_refused(&options, ZKL_EAUTH, "SASL");
    check_silent();
}

/* Goal: a client that does not log in at all gets an error that says that the server wants a
 * login. */
TEST(who_does_not_log_in_is_told)
{
    struct zkl_client_options options = secured_options(zks_port(server, 0));

    check_refused(&options, ZKL_EAUTH, "SASL");
}

/* Goal: the command logs in by its settings, and its password is shown to nobody: in no argument or environment of a process,
 * in nothing that it says, in no line of the log; and what its commands ask beside locks has SASL, too. Modes: F82. */
TEST(no_secret_of_sasl_is_shown)
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
TEST(a_password_that_is_gone_ends_the_client)
{
    struct zkl_client_options options = user("bob", PASSWORD "\n");
    struct zkl_mutex *mutex = NULL;

    struct zkl_client *client = must_open(&options);
    check_ok(zkl_mutex_new(&mutex, client, "/gone", NULL));
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(unlink(secured_file("password")));
    check_ok(zks_restart_node(server, 0));
    int64_t until_ms = net_now_ms() + BOUND_MS;
    while (zkl_client_get_state(client) != ZKL_CLIENT_AUTH_FAILED && net_now_ms() < until_ms)
        net_nap_ms(20);
    check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_AUTH_FAILED);
    check_num(zkl_mutex_lock_for(mutex, BOUND_MS), ==, ZKL_EAUTH);
    check_ok(zkl_mutex_free(mutex));
    check_ok(zkl_client_free(client));
}

int main(int argc, char **argv)
{
    return secured_main(argc, argv, CONFIG, JVM);
}
