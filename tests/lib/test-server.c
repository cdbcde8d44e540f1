/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher: that servers serve, and that nothing of them is left, however their user ends. */
#include "test-lib.h"

#include "process.h"
#include "tool/fourlw.h"
#include "wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GONE_MS 10000

/* --- helpers ---------------------------------------------------------------------------------- */

static pid_t parent_of(pid_t pid)
{
    int parent;

    process_state(pid, &parent);
    return parent;
}

static bool file_gone(const char *path)
{
    return access(path, F_OK) != 0 && errno == ENOENT;
}

static struct zks *start(size_t nodes)
{
    struct zks_options options = {.nodes = nodes};
    struct zks *zks = NULL;
    char err[512] = "";

    if (zks_start(&zks, &options, err, sizeof err) != 0)
        fail_msg("%s", err);
    return zks;
}

static struct wire *connect_to(const struct zks *zks, size_t node)
{
    struct wire *w = NULL;

    check_ok(wire_open(&w, zks_host(), zks_port(zks, node), SESSION_MS));
    return w;
}

/* --- serving ---------------------------------------------------------------------------------- */

TEST(one_server_serves_and_is_gone_after_stop)
{
    struct zks *zks = start(1);
    pid_t pid = zks_pid(zks, 0);
    char dir[256];
    struct wire *w;

    snprintf(dir, sizeof dir, "%s", zks_dir(zks));
    check_text(zks_connect_string(zks), zks_address(zks, 0));
    check_num(zks_leader(zks), ==, 0);
    check_true(!process_gone(pid) && !file_gone(dir) && !file_gone(zks_log_path(zks, 0)));
    w = connect_to(zks, 0);
    check_ok(wire_create(w, "/a", "text", WIRE_PERSISTENT, NULL, 0));
    wire_close(w);
    zks_stop(zks);
    check_true(process_gone(pid) && file_gone(dir));
}

TEST(ensemble_survives_its_leader)
{
    struct zks *zks = start(3);
    int leader = zks_leader(zks);
    int next;
    struct wire *w;

    check_num(leader, >=, 0);
    w = connect_to(zks, (size_t)leader);
    check_ok(wire_create(w, "/a", "", WIRE_PERSISTENT, NULL, 0));
    wire_abandon(w);
    check_ok(zks_kill_node(zks, (size_t)leader));
    check_num(zks_pid(zks, (size_t)leader), ==, 0);
    next = zks_wait_leader(zks, WAIT_MS);
    check_true(next >= 0 && next != leader);
    check_ok(zks_wipe_node(zks, (size_t)leader));
    check_ok(zks_restart_node(zks, (size_t)leader));
    check_num(flw_mode(zks_host(), zks_port(zks, (size_t)leader), WAIT_MS), ==, FLW_FOLLOWER);
    w = connect_to(zks, (size_t)leader); /* the wiped node has got the data back from the others */
    check_ok(wire_exists(w, "/a", NULL));
    wire_close(w);
    zks_stop(zks);
}

TEST(paused_server_is_silent_until_resumed)
{
    int port = zks_port(shared, 0);

    check_ok(zks_pause_node(shared, 0));
    check_num(flw_mode(zks_host(), port, 300), ==, FLW_NO_ANSWER);
    check_num(zks_leader(shared), ==, -1);
    check_ok(zks_resume_node(shared, 0));
    check_ok(zks_wait_ready(shared, WAIT_MS));
    check_num(flw_mode(zks_host(), port, WAIT_MS), ==, FLW_STANDALONE);
}

TEST(restart_keeps_data_and_wipe_forgets_them)
{
    struct zks *zks = start(1);
    struct wire *w = connect_to(zks, 0);

    check_ok(wire_create(w, "/kept", "", WIRE_PERSISTENT, NULL, 0));
    wire_close(w);
    check_ok(zks_restart_node(zks, 0));
    w = connect_to(zks, 0);
    check_ok(wire_exists(w, "/kept", NULL));
    wire_close(w);
    check_num(zks_wipe_node(zks, 0), ==, -1); /* it runs */
    check_ok(zks_stop_node(zks, 0));
    check_ok(zks_wipe_node(zks, 0));
    check_ok(zks_restart_node(zks, 0));
    w = connect_to(zks, 0);
    check_num(wire_exists(w, "/kept", NULL), ==, WIRE_NONODE);
    wire_close(w);
    zks_stop(zks);
}

/* --- starts that do not go well --------------------------------------------------------------- */

TEST(restart_waits_for_its_port)
{
    struct zks *zks = start(1);
    int thief;
    pid_t first;

    check_ok(zks_stop_node(zks, 0));
    thief = net_listen_on(zks_port(zks, 0));
    check_num(thief, >=, 0);
    check_ok(zks_start_node(zks, 0));
    first = zks_pid(zks, 0);
    check_wait(zks_pid(zks, 0) == 0, WAIT_MS); /* it could not have the port */
    close(thief);
    check_ok(zks_wait_ready(zks, WAIT_MS));
    check_num(zks_pid(zks, 0), !=, first);
    zks_stop(zks);
}

/* A descriptor of this process is bound to this loopback port. */
static bool is_reserved(int port)
{
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in a = {0};
        socklen_t size = sizeof a;
        if (getsockname(fd, (struct sockaddr *)&a, &size) == 0 && a.sin_family == AF_INET &&
            ntohs(a.sin_port) == port)
            return true;
    }
    return false;
}

/* Goal: while a server is down no other test gets its port. Method: the port stays reserved, and what is reserved is not
 * to be had as those have it that look for one, but as servers have it. Seen red: with ports that were only looked for,
 * and with SO_REUSEADDR before the bind. */
TEST(ports_of_a_server_that_is_down_are_kept)
{
    struct zks *zks = start(1);
    int port = 0, reserved, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    check_ok(zks_kill_node(zks, 0));
    check_true(is_reserved(zks_port(zks, 0)));
    check_ok(zks_start_node(zks, 0));
    check_ok(zks_wait_ready(zks, WAIT_MS));
    zks_stop(zks);

    check_ok(net_reserve_ports(&port, &reserved, 1));
    a.sin_port = htons((uint16_t)port);
    check_num(bind(fd, (struct sockaddr *)&a, sizeof a), ==, -1);
    check_num(errno, ==, EADDRINUSE);
    close(fd);
    fd = net_listen_on(port);
    check_num(fd, >=, 0);
    close(fd);
    net_release_ports(&reserved, 1);
}

/* A java of our own that fails the first time it is run. */
static void make_bad_java(const char *home)
{
    char path[300];
    FILE *f;

    check_ok(mkdir(home, 0700));
    snprintf(path, sizeof path, "%s/bin", home);
    check_ok(mkdir(path, 0700));
    snprintf(path, sizeof path, "%s/bin/java", home);
    f = fopen(path, "we");
    check_true(f != NULL);
    fprintf(f, "#!/bin/sh\nmkdir %s/once 2>/dev/null && { echo no luck; exit 1; }\n", home);
    fprintf(f, "exec java \"$@\"\n");
    check_ok(fclose(f));
    check_ok(chmod(path, 0700));
}

TEST(start_tries_again)
{
    struct zks_options options = {.nodes = 1};
    struct zks *zks = NULL;
    char home[256], once[300], err[512] = "";
    int rc;

    snprintf(home, sizeof home, "%s/java", zks_dir(shared)); /* removed with that server */
    snprintf(once, sizeof once, "%s/once", home);
    make_bad_java(home);
    setenv("JAVA_HOME", home, 1);
    rc = zks_start(&zks, &options, err, sizeof err);
    unsetenv("JAVA_HOME");
    check_ok(rc);
    zks_stop(zks);
    check_true(!file_gone(once)); /* it did fail once */
}

TEST(failed_start_says_why)
{
    struct zks_options options = {.jvm_extra = "-XX:NoSuchOption"};
    struct zks *zks = NULL;
    char err[512] = "";

    check_num(zks_start(&zks, &options, err, sizeof err), ==, ZKS_FAILED);
    check_true(zks == NULL);
    check_true(strstr(err, "NoSuchOption") != NULL);
}

TEST(missing_java_names_the_package)
{
    char *path = strdup(getenv("PATH"));
    struct zks *zks = NULL;
    char err[512] = "";
    int rc;

    setenv("PATH", "/nonexistent", 1);
    rc = zks_start(&zks, NULL, err, sizeof err);
    setenv("PATH", path, 1);
    free(path);
    check_num(rc, ==, ZKS_MISSING);
    check_true(strstr(err, "apt-get install default-jre-headless") != NULL);
}

/* --- nothing is left -------------------------------------------------------------------------- */

struct victim {
    pid_t pid;       /* the process that started the server */
    pid_t bystander; /* its child, which lives on */
    pid_t server;
    pid_t keeper;
    char dir[256];
};

/* The victim's child. It holds every descriptor of its parent, and its call has no effect. */
static pid_t make_bystander(struct zks *zks)
{
    int stopped[2];
    char byte;
    pid_t pid;

    if (pipe(stopped) != 0)
        _exit(1);
    pid = fork();
    if (pid == 0) {
        alarm(300); /* should the test fail before it kills us */
        zks_stop(zks);
        close(stopped[1]);
        pause();
        _exit(0);
    }
    close(stopped[1]);
    if (read(stopped[0], &byte, 1) != 0)
        _exit(1);
    close(stopped[0]);
    return pid;
}

/* In a process of its own: start a server and a child that lives on, report, wait for the end. */
static void be_victim(int report, bool paused)
{
    struct zks_options options = {.nodes = 1};
    struct victim v;
    struct zks *zks;
    char err[512];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    memset(&v, 0, sizeof v);
    if (zks_start(&zks, &options, err, sizeof err) != 0)
        _exit(1);
    v.bystander = make_bystander(zks);
    v.pid = getpid();
    v.server = zks_pid(zks, 0);
    v.keeper = parent_of(v.server);
    snprintf(v.dir, sizeof v.dir, "%s", zks_dir(zks));
    if (paused)
        zks_pause_node(zks, 0);
    if (write(report, &v, sizeof v) == (ssize_t)sizeof v)
        pause();
    _exit(0);
}

static struct victim make_victim(bool paused)
{
    struct victim v;
    int report[2];
    pid_t pid;

    check_ok(pipe(report));
    pid = fork();
    if (pid == 0)
        be_victim(report[1], paused);
    close(report[1]);
    check_num(read(report[0], &v, sizeof v), ==, sizeof v);
    close(report[0]);
    check_num(v.pid, ==, pid);
    return v;
}

/* Kill the starter; its server and folder must be removed though its child lives on. */
static void check_gone_after(int sig, bool paused)
{
    struct victim v = make_victim(paused);
    bool was_there = !process_gone(v.server) && !file_gone(v.dir);
    bool gone;
    bool bystander_lives;

    kill(v.pid, sig);
    waitpid(v.pid, NULL, 0);
    gone =
        wait_until(process_gone(v.server) && file_gone(v.dir) && process_gone(v.keeper), GONE_MS);
    bystander_lives = !process_gone(v.bystander);
    kill(v.bystander, SIGKILL); /* before a check can end the test */
    check_true(was_there);
    check_true(gone);
    check_true(bystander_lives);
}

TEST(nothing_is_left_after_sigint)
{
    check_gone_after(SIGINT, false);
}

TEST(nothing_is_left_after_sigterm)
{
    check_gone_after(SIGTERM, false);
}

TEST(nothing_is_left_after_sigkill)
{
    check_gone_after(SIGKILL, false);
}

TEST(paused_server_goes_too)
{
    check_gone_after(SIGKILL, true);
}

TEST(servers_go_with_a_killed_keeper)
{
    struct zks *zks = start(1);
    pid_t server = zks_pid(zks, 0);
    char dir[256];

    snprintf(dir, sizeof dir, "%s", zks_dir(zks));
    kill(parent_of(server), SIGKILL);
    check_wait(process_gone(server), GONE_MS);
    check_num(zks_start_node(zks, 0), ==, -1);
    zks_stop(zks);
    check_true(file_gone(dir));
}

/* --- zk-private ------------------------------------------------------------------------------- */

/* Run zk-private with a shell command; its output's first line, and its process. */
static pid_t run_private(const char *command, char *line, size_t size)
{
    const char *program = getenv("ZK_PRIVATE");
    int out[2];
    pid_t pid;
    FILE *f;

    if (program == NULL)
        fail_msg("ZK_PRIVATE must name the zk-private program");
    check_ok(pipe(out));
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        execl(program, "zk-private", "--quiet", "--tick", "100", command != NULL ? "--" : NULL,
              "sh", "-c", command, (char *)NULL);
        _exit(99);
    }
    close(out[1]);
    f = fdopen(out[0], "r");
    check_true(f != NULL && fgets(line, (int)size, f) != NULL);
    line[strcspn(line, "\n")] = '\0';
    fclose(f);
    return pid;
}

static int exit_of(pid_t pid)
{
    int status = 0;

    check_num(waitpid(pid, &status, 0), ==, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Does a server answer at "127.0.0.1:PORT"? The port of one that is gone refuses immediately. */
static bool answers(const char *address)
{
    const char *colon = strchr(address, ':');

    return colon != NULL && flw_mode(zks_host(), atoi(colon + 1), WAIT_MS) == FLW_STANDALONE;
}

TEST(private_passes_the_exit_status_on)
{
    char line[200];

    check_num(exit_of(run_private("echo $ZKLOCK_SERVERS; exit 7", line, sizeof line)), ==, 7);
    check_true(strncmp(line, "127.0.0.1:", 10) == 0);
    check_true(!answers(line));
    check_num(exit_of(run_private("echo; kill -9 $$", line, sizeof line)), ==, 128 + 9);
}

TEST(private_forwards_sigterm)
{
    char line[200];
    pid_t pid;

    pid = run_private("trap 'exit 5' TERM; echo $ZKLOCK_SERVERS; while :; do sleep 0.05; done",
                      line, sizeof line);
    check_true(answers(line));
    kill(pid, SIGTERM);
    check_num(exit_of(pid), ==, 5);
    check_true(!answers(line));
}

TEST(private_without_command_waits_for_sigint)
{
    char line[200];
    pid_t pid;

    pid = run_private(NULL, line, sizeof line);
    check_true(answers(line));
    kill(pid, SIGINT);
    check_num(exit_of(pid), ==, 0);
    check_true(!answers(line));
}

TEST(killed_private_takes_its_command_along)
{
    char line[200];
    pid_t command;
    pid_t pid;

    pid = run_private("echo $$ $ZKLOCK_SERVERS; exec sleep 60", line, sizeof line);
    command = atoi(line);
    check_true(command > 0 && !process_gone(command) && answers(strchr(line, ' ') + 1));
    kill(pid, SIGKILL);
    check_num(exit_of(pid), ==, -SIGKILL);
    check_wait(process_gone(command) && !answers(strchr(line, ' ') + 1), GONE_MS);
}
