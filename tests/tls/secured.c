/* SPDX-License-Identifier: Apache-2.0 */
#include "secured.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JARS "/usr/share/java/"
#define CODEC JARS "netty-codec.jar" /* zookeeper.jar's manifest leaves it out */
#define CLASSPATH JARS "zookeeper.jar:" JARS "slf4j-simple.jar:" CODEC

struct zks *server;
int tls_port;

static char folder[256];
static const char *config_text, *jvm_text;
static bool is_plain;

const char *secured_file(const char *name)
{
    static char names[16][512];
    static unsigned last;
    char *file = names[++last % 16];

    snprintf(file, sizeof names[0], "%s/%s", folder, name);
    return file;
}

const char *secured_address(int port)
{
    static char texts[16][64];
    static unsigned last;
    char *text = texts[++last % 16];

    snprintf(text, sizeof texts[0], "%s:%d", zks_host(), port);
    return text;
}

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *format, ...)
{
    char command[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    check_num(system(command), ==, 0);
}

void secured_copy(const char *from, const char *to)
{
    run("cp %s %s", secured_file(from), secured_file(to));
}

void secured_write(const char *name, const char *text)
{
    FILE *file = fopen(secured_file(name), "we");

    check_true(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* text with the folder for each %s, and "\n" at its end. */
static void put(char *to, size_t size, const char *text)
{
    size_t used = strlen(to);

    for (const char *at = text; at && *at && used + 1 < size; at++) {
        if (at[0] == '%' && at[1] == 's') {
            used += (size_t)snprintf(to + used, size - used, "%s", folder);
            at++;
        } else {
            to[used++] = *at;
            to[used] = '\0';
        }
    }
}

static int start(void **state)
{
    static char config[4096], jvm[1024];
    struct zks_options options = {.cfg_extra = config, .jvm_extra = jvm};
    const char *tmp = getenv("TMPDIR");
    char err[512] = "";

    (void)state;
    snprintf(folder, sizeof folder, "%s/secured-XXXXXX", tmp ? tmp : "/tmp");
    check_true(mkdtemp(folder) != NULL);
    run("sh %s %s >/dev/null 2>&1", CERTIFICATES, folder);
    secured_copy("server.both.pem", "current.pem");
    secured_copy("ca.pem", "trusted.pem");
    check_ok(setenv("ZKS_CLASSPATH", CLASSPATH, 1));
    check_ok(net_free_ports(&tls_port, 1));
    if (!is_plain)
        snprintf(config, sizeof config, "secureClientPort=%d\n", tls_port);
    put(config, sizeof config, config_text);
    put(jvm, sizeof jvm, jvm_text);
    int rc = zks_start(&server, &options, err, sizeof err);
    if (rc != 0)
        print_error("%s\n", err);
    return rc;
}

static int stop(void **state)
{
    (void)state;
    zks_stop(server);
    run("rm -r %s", folder);
    return 0;
}

int secured_main(int argc, char **argv, const char *name, const char *extra, const char *jvm,
                 const struct CMUnitTest *tests, size_t n)
{
    char err[512];

    if (zks_available(err, sizeof err) != 0 || access(CODEC, R_OK) != 0 ||
        system("openssl version >/dev/null 2>&1") != 0) {
        fprintf(stderr, "skipped: java, ZooKeeper, " CODEC " or openssl is not installed\n");
        return 77;
    }
    config_text = extra;
    jvm_text = jvm;
    is_plain = strcmp(name, "tls") != 0;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests(name, tests, n, start, stop);
}

struct zkl_client_options secured_options(int port)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = secured_address(port);
    options.session_timeout_ms = SESSION_MS;
    options.connect_timeout_ms = CONNECT_MS;
    return options;
}

struct zkl_client_options tls_options(int port, const char *ca, const char *certificate,
                                      const char *key)
{
    struct zkl_client_options options = secured_options(port);

    options.tls_ca_file = secured_file(ca);
    options.tls_cert_file = secured_file(certificate);
    options.tls_key_file = secured_file(key);
    return options;
}

struct zkl_client *must_open(const struct zkl_client_options *options)
{
    struct zkl_client *client = NULL;
    int rc = zkl_client_open(&client, options);

    if (rc != 0)
        fail_msg("%d: %s", rc, zkl_error_detail());
    return client;
}

void lock_and_unlock(struct zkl_client *client, const char *path)
{
    struct zkl_mutex *mutex = NULL;

    check_ok(zkl_mutex_new(&mutex, client, path, NULL));
    int rc = zkl_mutex_lock_for(mutex, BOUND_MS);
    if (rc != 0)
        fail_msg("%d: %s", rc, zkl_error_detail());
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_mutex_free(mutex));
}

void check_works(const struct zkl_client_options *options)
{
    struct zkl_client *client = must_open(options);

    lock_and_unlock(client, "/works");
    check_ok(zkl_client_close(client, BOUND_MS));
    check_ok(zkl_client_free(client));
}

void check_refused(const struct zkl_client_options *theirs, int code, const char *word)
{
    struct zkl_client_options options = *theirs;
    struct zkl_client *client = NULL;
    int64_t start_ms = net_now_ms();

    options.connect_timeout_ms = REFUSED_MS;
    int rc = zkl_client_open(&client, &options);
    if (rc != code || !strstr(zkl_error_detail(), word))
        fail_msg("%d, not %d with \"%s\": %s", rc, code, word, zkl_error_detail());
    print_message("%s\n", zkl_error_detail());
    check_num(net_now_ms() - start_ms, <, BOUND_MS);
}
