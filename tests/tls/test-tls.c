/* SPDX-License-Identifier: Apache-2.0 */
/* TLS with a real server: both sides show a certificate. If anything is wrong with one, the
 * client says so in time and in words. */
#include "secured.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "process.h"

#define CONFIG                                                                                     \
    "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"                       \
    "ssl.keyStore.type=PEM\nssl.keyStore.location=%s/current.pem\n"                                \
    "ssl.trustStore.type=PEM\nssl.trustStore.location=%s/trusted.pem\n"
#define LONG_SESSION_MS 60000
#define JVM                                                                                        \
    "-Dzookeeper.authProvider.x509="                                                               \
    "org.apache.zookeeper.server.auth.X509AuthenticationProvider"

static struct zkl_client_options good(void)
{
    return tls_options(tls_port, "ca.pem", "client.pem", "client.key");
}

static int stop_proxy(void *proxy)
{
    proxy_stop(proxy);
    return 0;
}

/* Before the TLS port, and the options' clients go through it. */
static struct proxy *proxy_for(struct zkl_client_options *options)
{
    struct proxy *proxy = NULL;

    check_ok(proxy_start(&proxy, zks_host(), tls_port));
    proxy_set_opaque(proxy);
    options->servers = proxy_address(proxy);
    return world_keep(proxy, WORLD_LINK, stop_proxy);
}

static void restart_with(const char *certificate)
{
    secured_copy(certificate, "current.pem");
    check_ok(zks_restart_node(server, 0));
}

/* Goal: with certificates on both sides a client connects to the TLS port, and locks. */
WORLD_TEST(both_sides_show_a_certificate)
{
    struct zkl_client_options options = good();
    char address[64];

    struct zkl_client *client = world_client_with(&options);
    check_num(zkl_client_server(client, address, sizeof address), >, 0);
    check_text(address, secured_address(tls_port));
    lock_and_unlock(client, "/mutual");
}

/* Goal: a process may exit while libzookeeper's thread is in OpenSSL, whatever it does there. Method: it exits some
 * milliseconds after it has begun to connect. */
WORLD_TEST(exit_does_not_wait_for_a_handshake)
{
    struct zkl_client_options options = good();
    int status = 0;

    options.connect_timeout_ms = 0;
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct zkl_client *client = NULL;
            if (zkl_client_open(&client, &options) != 0)
                _exit(1);
            net_nap_ms(i % 20);
            exit(0);
        }
        check_num(waitpid(child, &status, 0), ==, child);
        check_num(status, ==, 0);
    }
}

/* Goal: a key that is closed is opened by the first line of a file, whose text is in no
 * sentence. A wrong line is refused immediately. */
WORLD_TEST(a_passphrase_opens_the_key)
{
    struct zkl_client_options options = good();

    options.tls_key_file = secured_file("client-closed.key");
    check_refused(&options, ZKL_EINVAL, "client-closed.key\" cannot be loaded");
    options.tls_passphrase_file = secured_file("passphrase");
    check_works(&options);
    secured_write("wrong", "Sesame\n");
    options.tls_passphrase_file = secured_file("wrong");
    check_refused(&options, ZKL_EINVAL, "client-closed.key\" cannot be loaded");
    check_true(!strstr(zkl_error_detail(), "Sesame"));
    secured_write("wrong", "ses,ame\n");
    check_refused(&options, ZKL_EINVAL, "has a passphrase with a comma");
    check_true(!strstr(zkl_error_detail(), "ses,"));
}

/* Goal: the client names a file that is of no use before it opens anything. */
WORLD_TEST(files_of_no_use_are_named)
{
    struct zkl_client_options options = good();

    options.tls_ca_file = secured_file("passphrase");
    check_refused(&options, ZKL_EINVAL, "tls_ca_file");
    options = good();
    options.tls_cert_file = secured_file("nowhere");
    check_refused(&options, ZKL_EINVAL, "nowhere\" cannot be loaded: No such file");
    options = good();
    options.tls_key_file = secured_file("client-other.key");
    check_refused(&options, ZKL_EINVAL, "client-other.key\" cannot be loaded: key values mismatch");
}

/* Goal: a pipe, whose opening would wait for a writer without a bound, and a folder are refused, whichever file they are. */
WORLD_TEST(only_regular_files_are_taken)
{
    struct zkl_client_options options = good();
    const char **const fields[] = {&options.tls_ca_file, &options.tls_cert_file,
                                   &options.tls_key_file};

    check_ok(mkfifo(secured_file("fifo"), 0600));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        options = good();
        *fields[i] = secured_file("fifo");
        check_refused(&options, ZKL_EINVAL, "fifo\" is no regular file");
        *fields[i] = "/";
        check_refused(&options, ZKL_EINVAL, "\"/\" is no regular file");
    }
}

/* Goal: the creator's ACL names the identity of a certificate: nodes that one client makes
 * another can't touch, with another certificate or without one. */
WORLD_TEST(the_creators_acl_goes_by_the_certificate)
{
    struct zkl_client_options mine = good(),
                              theirs =
                                  tls_options(tls_port, "ca.pem", "server2.pem", "server2.key"),
                              nobodys = secured_options(zks_port(server, 0));

    mine.acl = ZKL_ACL_CREATOR;
    struct zkl_client *client = world_client_with(&mine);
    lock_and_unlock(client, "/creator");
    struct zkl_client *others[] = {world_client_with(&theirs), world_client_with(&nobodys)};
    for (size_t i = 0; i < 2; i++) {
        struct zkl_mutex *mutex = world_mutex(others[i], "/creator");
        check_num(zkl_mutex_lock_for(mutex, BOUND_MS), ==, ZKL_EACCES);
    }
    lock_and_unlock(client, "/creator");
}

/* Goal: a digest's credential is sent over TLS, and counts. Method: a client without TLS that
 * has the credential may touch what the first one made. */
WORLD_TEST(a_credential_goes_over_tls)
{
    struct zkl_client_options over = good(), plain = secured_options(zks_port(server, 0));

    over.auth_scheme = plain.auth_scheme = "digest";
    over.auth_credential = plain.auth_credential = "alice:sesame";
    over.acl = ZKL_ACL_CREATOR;
    struct zkl_client *client = world_client_with(&over), *other = world_client_with(&plain);
    lock_and_unlock(client, "/alices");
    lock_and_unlock(other, "/alices");
}

enum { OPENERS = 8, OPENED_BY_EACH = 20 };

static int open_many(void *options)
{
    int rc = 0;

    for (int i = 0; i < OPENED_BY_EACH && rc == 0; i++) {
        struct zkl_client *client = NULL;
        rc = zkl_client_open(&client, options);
        if (rc == 0)
            rc = zkl_client_free(client);
    }
    return rc;
}

/* Goal: clients that threads open at the same time leave libzookeeper's log as it was, which is one for the process: the next
 * one that fails still says why. */
WORLD_TEST(clients_opened_at_once_leave_the_log_on)
{
    struct zkl_client_options options =
        tls_options(tls_port, "other.pem", "client.pem", "client.key");
    struct zkl_client_options nowhere = good();

    nowhere.servers = "127.0.0.1:1"; /* nobody is there */
    nowhere.connect_timeout_ms = 0;
    struct crowd crowd = crowd_of(open_many, &nowhere, 0, OPENERS);
    crowd_end(&crowd);
    check_refused(&options, ZKL_EDISCONNECTED, "signed by one of tls_ca_file");
}

/* Goal: the client does not talk to a server whose certificate another CA signed, and the server
 * refuses a client whose certificate another CA signed. */
WORLD_TEST(a_certificate_of_another_ca_is_refused)
{
    struct zkl_client_options options =
        tls_options(tls_port, "other.pem", "client.pem", "client.key");

    check_refused(&options, ZKL_EDISCONNECTED, "signed by one of tls_ca_file");
    options = tls_options(tls_port, "ca.pem", "client-other.pem", "client-other.key");
    check_refused(&options, ZKL_EDISCONNECTED, "the server refused this client's certificate");
}

/* Goal: what docs/security-tls.md says of certificates without a use: as no name is checked, the
 * owner of a client's certificate can pass for a server, unless that certificate is for clients
 * alone. */
WORLD_TEST(a_clients_certificate_may_pass_for_a_servers)
{
    struct zkl_client_options options = good(),
                              only = tls_options(tls_port, "ca.pem", "client-only.pem",
                                                 "client-only.key");

    check_works(&only);
    restart_with("client.both.pem");
    check_works(&options);
    restart_with("client-only.both.pem");
    check_refused(&options, ZKL_EDISCONNECTED, "certificate verify failed");
    restart_with("server.both.pem");
    check_works(&options);
}

/* Goal: a certificate that is out of date is refused, on either side. */
WORLD_TEST(an_expired_certificate_is_refused)
{
    struct zkl_client_options expired = tls_options(tls_port, "ca.pem", "client-expired.pem",
                                                    "client-expired.key"),
                              options = good();

    check_refused(&expired, ZKL_EDISCONNECTED, "the server refused this client's certificate");
    restart_with("server-expired.both.pem");
    check_refused(&options, ZKL_EDISCONNECTED, "valid today?");
    restart_with("server.both.pem");
    check_works(&options);
}

/* Goal: a client without TLS at a TLS port, and one with TLS at a plain port, get an error that
 * says that the server hung up. */
WORLD_TEST(the_wrong_port_is_told)
{
    struct zkl_client_options plain = secured_options(tls_port),
                              options = tls_options(zks_port(server, 0), "ca.pem", "client.pem",
                                                    "client.key");

    check_refused(&plain, ZKL_EDISCONNECTED, "does that port want TLS");
    check_refused(&options, ZKL_EDISCONNECTED, "is that no port for TLS?");
}

/* Goal: a client goes on with a server that came back with a new certificate, and, as libzookeeper reads its files at each
 * connection, with one of a new CA, once that is in its file. */
WORLD_TEST(a_new_certificate_is_followed)
{
    struct zkl_client_options options =
        tls_options(tls_port, "mine.pem", "client.pem", "client.key");

    secured_copy("ca.pem", "mine.pem");
    struct zkl_client *client = world_client_with(&options);
    lock_and_unlock(client, "/renewed");
    restart_with("server2.both.pem");
    lock_and_unlock(client, "/renewed");
    restart_with("server-other.both.pem");
    secured_copy("other.pem", "mine.pem");
    lock_and_unlock(client, "/renewed");
    restart_with("server.both.pem");
    secured_copy("ca.pem", "mine.pem");
    lock_and_unlock(client, "/renewed");
}

/* Goal: a server that accepts and never answers the handshake holds nobody up: opening gives up in time, closing does not wait
 * for it, and no thread stays. Modes: F79. */
WORLD_TEST(a_silent_server_is_given_up)
{
    int port, fd = net_listen(&port); /* the kernel accepts */
    struct zkl_client_options options = tls_options(port, "ca.pem", "client.pem", "client.key");
    int before = process_entries("task");

    check_refused(&options, ZKL_EDISCONNECTED, "not answered the TLS handshake");
    check_wait(process_entries("task") <= before, BOUND_MS);
    check_ok(close(fd));
}

enum { FICKLE = 4, SILENT_EACH = 6, HELD_MAX = 1000, CLOSERS = 16, CLOSED_BY_EACH = 12 };

static struct fickle {
    int socket, port;
    atomic_bool ends;
} fickle[FICKLE];

/* A server that hangs up, and now and then stays silent: its clients are about to connect much of the time. */
static int be_fickle(void *arg)
{
    struct fickle *self = arg;
    int held[HELD_MAX], count = 0;

    for (unsigned turn = 0; !self->ends; turn++) {
        net_ready(self->socket, POLLIN, net_now_ms() + 50);
        int fd = accept4(self->socket, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0 && turn % SILENT_EACH == 0 && count < HELD_MAX)
            held[count++] = fd;
        else if (fd >= 0)
            close(fd);
    }
    while (count > 0)
        close(held[--count]);
    return close(self->socket);
}

static int close_many(void *servers)
{
    struct zkl_client_options options = good();
    int rc = 0;

    options.servers = servers;
    options.session_timeout_ms = 1000;
    options.connect_timeout_ms = 0;
    for (int i = 0; i < CLOSED_BY_EACH && rc == 0; i++) {
        struct zkl_client *client = NULL;
        rc = zkl_client_open(&client, &options);
        net_nap_ms(i * 7);
        rc = rc == 0 ? zkl_client_close(client, BOUND_MS) : rc;
        rc = rc == 0 ? zkl_client_free(client) : rc;
    }
    return rc;
}

/* Goal: closing does not wait for a silent server either where the client is just about to connect to it: no attempt begins
 * any more. Method: many close at moments of every kind, and no thread stays. Modes: F79. */
WORLD_TEST(closing_amid_attempts_ends)
{
    char servers[256] = "";
    size_t used = 0;

    for (int i = 0; i < FICKLE; i++) {
        fickle[i].socket = net_listen(&fickle[i].port);
        used += (size_t)snprintf(servers + used, sizeof servers - used, "%s%s", i > 0 ? "," : "",
                                 secured_address(fickle[i].port));
    }
    struct crowd fickles = crowd_begin(be_fickle, fickle);
    int before = process_entries("task");
    struct crowd closers = crowd_of(close_many, servers, 0, CLOSERS);
    crowd_end(&closers);
    check_num(process_entries("task"), ==,
              before + CLOSERS); /* those that wait for something to do */
    for (int i = 0; i < FICKLE; i++)
        fickle[i].ends = true;
    crowd_end(&fickles);
}

/* Goal: and after it comes the next server. Method: libzookeeper takes them in an order by chance, so there are three that are
 * silent, and the good one is found among them each time. Modes: F79. */
WORLD_TEST(after_a_silent_server_comes_the_next_one)
{
    int ports[3], fds[3];
    char servers[256];
    struct zkl_client_options options = good();

    for (size_t i = 0; i < 3; i++)
        fds[i] = net_listen(&ports[i]);
    snprintf(servers, sizeof servers, "%s,%s,%s,%s", secured_address(ports[0]),
             secured_address(ports[1]), secured_address(ports[2]), secured_address(tls_port));
    options.servers = servers;
    options.session_timeout_ms = 3000;
    for (int i = 0; i < 3; i++)
        check_works(&options);
    for (size_t i = 0; i < 3; i++)
        check_ok(close(fds[i]));
}

static atomic_int asked;
static char nobody[16]; /* a port */

/* The library's question where "moves.test" is: first where nobody listens. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(
            RTLD_NEXT, "getaddrinfo");
    struct addrinfo plain = hints ? *hints : (struct addrinfo){0};

    if (!name || strcmp(name, "moves.test") != 0)
        return real(name, service, hints, found);
    if (plain.ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    plain.ai_flags = AI_NUMERICHOST;
    return real("127.0.0.1", asked++ == 0 ? nobody : service, &plain, found);
}

/* Goal: a client of TLS takes its servers' other addresses at its next attempt, and not only with its next session, which
 * begins after twice the timeout. Modes: F77. */
WORLD_TEST(other_addresses_are_taken_over_tls)
{
    struct zkl_client_options options = good();
    char servers[64];
    int port;

    int64_t start_ms = net_now_ms();
    check_ok(net_free_ports(&port, 1));
    snprintf(nobody, sizeof nobody, "%d", port);
    snprintf(servers, sizeof servers, "moves.test:%d", tls_port);
    options.servers = servers;
    options.session_timeout_ms = LONG_SESSION_MS;
    options.connect_timeout_ms = 2 * LONG_SESSION_MS;
    check_works(&options);
    check_num(asked, >=, 2);
    check_num(net_now_ms() - start_ms, <, 2 * LONG_SESSION_MS);
}

/* Goal: where a server falls silent in the handshake of a new link, the session goes on at the next one: it is the same, and
 * what it holds stays held. Method: the server stands still, its port still accepts, and the link is cut; then it goes on,
 * long before the session ends. Modes: F79. */
WORLD_TEST(a_session_outlives_a_silent_server)
{
    struct zkl_client_options options = good();

    struct proxy *proxy = proxy_for(&options);
    struct zkl_client *client = world_client_with(&options);
    int64_t session = zkl_client_session_id(client);
    struct zkl_mutex *mutex = world_mutex(client, "/outlives");
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zks_pause_node(server, 0));
    proxy_cut(proxy);
    int64_t asked = proxy_counts(proxy, PROXY_ANY);
    check_wait(zkl_client_get_state(client) == ZKL_CLIENT_SUSPENDED &&
                   proxy_counts(proxy, PROXY_ANY) > asked, /* a handshake has begun */
               BOUND_MS);
    check_ok(zks_resume_node(server, 0));
    check_wait(zkl_client_get_state(client) == ZKL_CLIENT_CONNECTED, BOUND_MS);
    check_true(zkl_client_session_id(client) == session);
    check_ok(zkl_mutex_unlock(mutex));
}

static long used_ms(const struct rusage *usage)
{
    return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000 +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1000;
}

#define MISSING_USES_MS 200 /* a link that is tried without a pause takes all that it gets */

/* Goal: a file that is missing when the client makes a link costs the link, as long as it is
 * missing, and no processor. */
WORLD_TEST(a_missing_file_costs_the_link_until_it_is_back)
{
    struct zkl_client_options options =
        tls_options(tls_port, "mine.pem", "client.pem", "client.key");
    struct rusage before, after;

    secured_copy("ca.pem", "mine.pem");
    struct zkl_client *client = world_client_with(&options);
    lock_and_unlock(client, "/missing");
    check_ok(unlink(secured_file("mine.pem")));
    check_ok(zks_restart_node(server, 0));
    check_ok(getrusage(RUSAGE_SELF, &before));
    net_nap_ms(1000);
    check_ok(getrusage(RUSAGE_SELF, &after));
    check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_SUSPENDED);
    check_num(used_ms(&after) - used_ms(&before), <, MISSING_USES_MS);
    secured_copy("ca.pem", "mine.pem");
    lock_and_unlock(client, "/missing");
}

/* Goal: where a key is closed only after the client was opened, nobody is asked for its passphrase: the I/O thread does not
 * wait for a line of the standard input, and the link comes back with the key. Method: that is a pipe that nobody writes to. */
WORLD_TEST(a_key_that_is_closed_later_asks_nobody)
{
    struct zkl_client_options options = tls_options(tls_port, "ca.pem", "client.pem", "mine.key");
    int input = dup(STDIN_FILENO), ends[2];

    check_ok(pipe2(ends, O_CLOEXEC));
    check_num(dup2(ends[0], STDIN_FILENO), ==, STDIN_FILENO);
    secured_copy("client.key", "mine.key");
    struct zkl_client *client = world_client_with(&options);
    lock_and_unlock(client, "/closed-later");
    secured_copy("client-closed.key", "mine.key");
    check_ok(zks_restart_node(server, 0));
    int64_t until_ms = net_now_ms() + 1000; /* for some attempts */
    while (net_now_ms() < until_ms)
        net_nap_ms(20);
    secured_copy("client.key", "mine.key");
    lock_and_unlock(client, "/closed-later");
    check_num(dup2(input, STDIN_FILENO), ==, STDIN_FILENO);
    check_ok(close(input));
    check_ok(close(ends[0]));
    check_ok(close(ends[1]));
}

/* Goal: a scheme that the server does not know is refused over TLS as without, in time. */
WORLD_TEST(a_refused_credential_is_told)
{
    struct zkl_client_options options = good();

    options.auth_scheme = "nobodys";
    options.auth_credential = "alice:rosebud";
    check_refused(&options, ZKL_EAUTH, "");
    check_true(!strstr(zkl_error_detail(), "rosebud"));
}

/* One bit, of what comes to the client. */
static size_t flip(enum proxy_dir dir, int op, unsigned char *data, size_t n, void *arg)
{
    atomic_int *flipped = arg;

    (void)op;
    if (dir == PROXY_TO_CLIENT && n > 0) {
        data[n - 1] ^= 1;
        ++*flipped;
    }
    return n;
}

/* Goal: somebody that changes bytes on the way stops the link, and nothing else. The link is
 * lost, and nobody gets in by that. When the changes end the session goes on, with what it
 * holds. Method: a proxy that flips a bit in what comes from the server. */
WORLD_TEST(changed_bytes_cost_the_link_alone)
{
    struct zkl_client_options options = good();
    const struct zkl_inspection *seen = NULL;
    atomic_int flipped = 0;

    struct proxy *proxy = proxy_for(&options);
    options.session_timeout_ms = LONG_SESSION_MS;
    struct zkl_client *client = world_client_with(&options);
    int64_t session = zkl_client_session_id(client);
    struct zkl_mutex *mutex = world_mutex(client, "/changed");
    check_ok(zkl_mutex_lock(mutex));
    proxy_set_hook(proxy, flip, &flipped);
    check_num(zkl_inspect(client, "/changed", BOUND_MS, &seen), !=, 0);
    check_wait(zkl_client_get_state(client) == ZKL_CLIENT_SUSPENDED, BOUND_MS);
    check_refused(&options, ZKL_EDISCONNECTED, "");
    check_num(flipped, >, 1);
    proxy_set_hook(proxy, NULL, NULL);
    check_wait(zkl_client_get_state(client) == ZKL_CLIENT_CONNECTED, BOUND_MS);
    check_true(zkl_client_session_id(client) == session);
    check_ok(zkl_mutex_unlock(mutex));
}

/* For zklock: TLS with this key, or none. */
static void set_command(bool tls, const char *key)
{
    check_ok(setenv("ZKLOCK_SERVERS", secured_address(tls_port), 1));
    check_ok(setenv("ZKLOCK_TLS_CA_FILE", tls ? secured_file("ca.pem") : "", 1));
    check_ok(setenv("ZKLOCK_TLS_CERT_FILE", tls ? secured_file("client.pem") : "", 1));
    check_ok(setenv("ZKLOCK_TLS_KEY_FILE", tls ? secured_file(key) : "", 1));
}

/* Goal: the command has TLS by the environment. Without it the command can't use that port, and
 * says why. */
WORLD_TEST(the_command_has_tls_by_the_environment)
{
    static const char lock[] = "run /command -- true";

    set_command(false, NULL);
    check_command(69, "does that port want TLS, or SASL?", lock);
    check_command(69, "does that port want TLS, or SASL?", "doctor /command");
    set_command(true, "client.key");
    check_command(0, "", lock);
    check_command(0, "/command", "status /command");
    set_command(false, NULL);
}

/* Goal: what a command asks beside locks goes over the same connection: the record of a run, its removal, a doctor's
 * questions. */
WORLD_TEST(all_commands_have_tls)
{
    set_command(true, "client.key");
    check_command(0, "", "run --not-within 60 /nightly -- true");
    check_command(0, "last run", "status /nightly");
    check_command(0, "too early", "run --verbose --not-within 60 /nightly -- true");
    check_command(0, "0 problems", "doctor /nightly");
    check_command(0, "", "forget /nightly");
    check_command(1, "no run is recorded", "forget /nightly");
    check_command(0, "", "run --not-within 60 /nightly -- true");
    set_command(false, NULL);
}

/* Goal: neither passphrase nor credential is shown to anybody: in no argument of a process, in no environment that it was
 * not put into, in nothing that zklock says, and in no line of the log. Modes: F82. */
WORLD_TEST(no_secret_of_tls_is_shown)
{
    static const char *const secrets[] = {"sesame", "rosebud"};
    struct zkl_client_options options = good();

    set_command(true, "client-closed.key");
    check_ok(setenv("ZKLOCK_TLS_PASSPHRASE_FILE", secured_file("passphrase"), 1));
    check_ok(setenv("ZKLOCK_AUTH", "digest:alice:rosebud", 1));
    struct watched watched = watched_begin("/secret");
    watched_check(&watched, "sesame", false);
    watched_check(&watched, "rosebud", true);
    watched_end(&watched, secrets, 2);
    check_ok(unsetenv("ZKLOCK_TLS_PASSPHRASE_FILE"));
    check_ok(unsetenv("ZKLOCK_AUTH"));
    set_command(false, NULL);

    options.tls_key_file = secured_file("client-closed.key");
    options.tls_passphrase_file = secured_file("passphrase");
    options.auth_scheme = "digest";
    options.auth_credential = "alice:rosebud";
    watch_log(&options, secrets, 2);
    check_works(&options);
    check_num(check_log(), >, 0);
}

/* Goal: if libzookeeper would get a descriptor that its select can't take, opening the client
 * fails instead. Modes: F81. */
WORLD_TEST(high_descriptors_are_refused)
{
    enum { MOST = 1100, FREE = 8 };
    struct zkl_client_options options = good();
    struct rlimit before, more;
    int fds[MOST], count = 0;

    struct zkl_client *client = world_client_with(&options);
    check_ok(getrlimit(RLIMIT_NOFILE, &before));
    more = before;
    more.rlim_cur = 2 * MOST;
    check_ok(setrlimit(RLIMIT_NOFILE, &more));
    while (count < MOST)
        fds[count++] = fcntl(1, F_DUPFD_CLOEXEC, 0);
    check_num(fds[MOST - 1], >, 1024);
    check_refused(&options, ZKL_ESYSTEM, "needs some below 1024");
    for (int i = 0; i < FREE; i++) /* for what this thread opens meanwhile, to ask the server */
        check_ok(close(fds[i]));
    check_ok(zks_restart_node(server, 0));
    lock_and_unlock(client,
                    "/descriptors"); /* the descriptor of the old link is that of the new one */
    while (count > FREE)
        check_ok(close(fds[--count]));
    check_ok(setrlimit(RLIMIT_NOFILE, &before));
    check_works(&options);
}

int main(int argc, char **argv)
{
    return secured_main(argc, argv, CONFIG, JVM);
}
