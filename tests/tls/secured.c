/* SPDX-License-Identifier: Apache-2.0 */
#include "secured.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdarg.h>

#include "netty.h"
#include "process.h"

int tls_port;

static char folder[256];

const char *secured_file(const char *name)
{
    static char names[32][512];
    static unsigned last;
    char file[sizeof names[0]];

    snprintf(file, sizeof file, "%s/%s", folder, name);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], file) == 0)
            return names[i];
    }
    return strcpy(names[++last % (sizeof names / sizeof names[0])], file);
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

/* What the server needs; its port comes with its start. */
static void make_folder(const char *extra, const char *jvm)
{
    static char config[4096], options[1024];
    const char *tmp = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%s/secured-XXXXXX", tmp ? tmp : "/tmp");
    check_true(mkdtemp(folder) != NULL);
    run("sh %s %s >/dev/null 2>&1", CERTIFICATES, folder);
    secured_copy("server.both.pem", "current.pem");
    secured_copy("ca.pem", "trusted.pem");
    check_ok(setenv("ZKS_CLASSPATH", NETTY_CLASSPATH, 1));
    check_ok(net_free_ports(&tls_port, 1));
    if (strcmp(program_invocation_short_name, "test-tls") == 0)
        snprintf(config, sizeof config, "secureClientPort=%d\n", tls_port);
    put(config, sizeof config, extra);
    put(options, sizeof options, jvm);
    cluster_server = (struct zks_options){.cfg_extra = config, .jvm_extra = options};
}

int secured_main(int argc, char **argv, const char *extra, const char *jvm)
{
    if (access(NETTY_CODEC, R_OK) != 0 || system("openssl version >/dev/null 2>&1") != 0) {
        fprintf(stderr, "skipped: " NETTY_CODEC " or openssl is not installed\n");
        return 77;
    }
    make_folder(extra, jvm);
    int rc = cluster_main(argc, argv);
    run("rm -r %s", folder);
    return rc;
}

struct zkl_client_options secured_options(int port)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = secured_address(port);
    options.session_timeout_ms = SECURED_SESSION_MS;
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

void lock_and_unlock(struct zkl_client *client, const char *path)
{
    struct zkl_mutex *mutex = world_mutex(client, path);
    int rc = zkl_mutex_lock_for(mutex, BOUND_MS);

    if (rc != 0)
        fail_msg("%d: %s", rc, zkl_error_detail());
    check_ok(zkl_mutex_unlock(mutex));
    world_drop(mutex);
}

void check_works(const struct zkl_client_options *options)
{
    struct zkl_client *client = world_client_with(options);

    lock_and_unlock(client, "/works");
    check_ok(zkl_client_close(client, BOUND_MS));
    world_drop(client);
}

/* A handshake takes seconds on a machine with much else to do: the next try has more time for it. */
void check_refused(const struct zkl_client_options *theirs, int code, const char *word)
{
    struct zkl_client_options options = *theirs;
    int rc = 0;
    bool right = false;

    for (int ms = REFUSED_MS; !right && ms < BOUND_MS; ms *= 3) {
        struct zkl_client *client = NULL;
        int64_t start_ms = net_now_ms();
        options.connect_timeout_ms = ms;
        rc = zkl_client_open(&client, &options);
        right = rc == code && strstr(zkl_error_detail(), word);
        print_message("%s\n", zkl_error_detail());
        check_num(net_now_ms() - start_ms, <, BOUND_MS);
    }
    if (!right)
        fail_msg("%d, not %d with \"%s\": %s", rc, code, word, zkl_error_detail());
}

/* --- zklock ----------------------------------------------------------------------------------- */

static size_t read_file(const char *name, char *text, size_t size)
{
    size_t used = 0;
    FILE *file = fopen(name, "re");

    if (file) {
        used = fread(text, 1, size - 1, file);
        fclose(file);
    }
    text[used] = '\0';
    return used;
}

void check_command(int status, const char *words, const char *arguments)
{
    char command[1024], said[8192];

    snprintf(command, sizeof command, ZKLOCK " %s >%s 2>&1 </dev/null", arguments,
             secured_file("said"));
    int ended = WEXITSTATUS(system(command));
    read_file(secured_file("said"), said, sizeof said);
    if (ended != status || !strstr(said, words))
        fail_msg("zklock %s: %d, not %d, or without \"%s\": %s", arguments, ended, status, words,
                 said);
    print_message("zklock %s: %d: %s", arguments, ended, said);
}

static bool has_begun(void)
{
    char said[8192];

    read_file(secured_file("watched"), said, sizeof said);
    return strstr(said, "begun\n") != NULL;
}

struct watched watched_begin(const char *path)
{
    int ends[2], output;

    check_ok(pipe2(ends, O_CLOEXEC));
    output = open(secured_file("watched"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check_num(output, >=, 0);
    struct watched watched = {.pid = fork(), .input = ends[1]};
    check_num(watched.pid, >=, 0);
    if (watched.pid == 0) {
        dup2(ends[0], STDIN_FILENO);
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        execl(ZKLOCK, ZKLOCK, "run", "--verbose", path, "--", "sh", "-c", "echo begun; read end",
              NULL);
        _exit(98);
    }
    close(ends[0]);
    close(output);
    check_wait(has_begun(), BOUND_MS);
    return watched;
}

static bool descends(pid_t pid, pid_t from)
{
    for (int depth = 0; pid > 1 && pid != from && depth < 10; depth++)
        process_state(pid, &pid);
    return pid == from;
}

static bool file_has(pid_t pid, const char *which, const char *secret)
{
    static char text[1 << 17];
    char name[64];

    snprintf(name, sizeof name, "/proc/%d/%s", (int)pid, which);
    size_t used = read_file(name, text, sizeof text);
    return memmem(text, used, secret, strlen(secret)) != NULL;
}

/* Its anchor is a fork of it, so that killers by name leave that one alone. */
static bool is_zklock(pid_t pid)
{
    char name[64], text[64];

    snprintf(name, sizeof name, "/proc/%d/comm", (int)pid);
    read_file(name, text, sizeof text);
    return strncmp(text, "zklock", strlen("zklock")) == 0 || strncmp(text, "anchor", 6) == 0;
}

static void check_process(pid_t pid, const char *secret, bool put_there)
{
    if (file_has(pid, "cmdline", secret))
        fail_msg("the arguments of process %d have the secret", (int)pid);
    if (!(put_there && is_zklock(pid)) && file_has(pid, "environ", secret))
        fail_msg("the environment of process %d has the secret", (int)pid);
}

void watched_check(const struct watched *watched, const char *secret, bool put_there)
{
    int seen = 0, jobs = 0;
    DIR *all = opendir("/proc");

    for (struct dirent *one = readdir(all); one; one = readdir(all)) {
        pid_t pid = isdigit((unsigned char)one->d_name[0]) ? atoi(one->d_name) : 0;
        if (pid <= 0 || !descends(pid, watched->pid))
            continue;
        check_process(pid, secret, put_there);
        seen++;
        jobs += !is_zklock(pid);
    }
    closedir(all);
    check_num(seen, >=, 3); /* with guard and job */
    check_num(jobs, >=, 1);
}

void watched_end(struct watched *watched, const char *const secrets[], size_t n)
{
    char said[8192];
    int status = 0;

    close(watched->input);
    check_num(waitpid(watched->pid, &status, 0), ==, watched->pid);
    read_file(secured_file("watched"), said, sizeof said);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) /* 1: read found the end */
        fail_msg("status %x: %s", status, said);
    check_true(strstr(said, "the lock is acquired") != NULL);
    for (size_t i = 0; i < n; i++)
        check_true(strstr(said, secrets[i]) == NULL);
}

/* --- the log ---------------------------------------------------------------------------------- */

static const char *const *log_secrets;
static size_t log_secret_count;
static atomic_int log_lines, log_leaks;

static void read_line(const struct zkl_log_event *event, void *arg)
{
    (void)arg;
    log_lines++;
    for (size_t i = 0; i < log_secret_count; i++)
        log_leaks += strstr(event->message, log_secrets[i]) != NULL;
}

void watch_log(struct zkl_client_options *options, const char *const secrets[], size_t n)
{
    log_secrets = secrets;
    log_secret_count = n;
    log_lines = log_leaks = 0;
    options->log_fn = read_line;
    options->log_level = ZKL_LOG_DEBUG;
}

int check_log(void)
{
    check_num(log_leaks, ==, 0);
    return log_lines;
}
