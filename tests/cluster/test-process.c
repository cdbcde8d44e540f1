/* SPDX-License-Identifier: Apache-2.0 */
/* The library as a guest of its process: nothing on standard error, no signal on its threads, no
 * descriptor and no thread left, and handles that a program frees in any order. */
#include "cluster.h"

#include "process.h"

/* --- standard error -------------------------------------------------------------------------- */

/* Where no server is. */
static const char *nowhere(void)
{
    static char servers[32];
    int port;

    if (net_free_ports(&port, 1) != 0)
        return "";
    snprintf(servers, sizeof servers, "127.0.0.1:%d", port);
    return servers;
}

static int fail_to_connect(void)
{
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL;

    options.servers = nowhere();
    options.connect_timeout_ms = 300;
    return zkl_client_open(&client, &options) == ZKL_EDISCONNECTED ? 0 : 2;
}

static int be_refused(void)
{
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL;

    options.auth_scheme = "nonsense";
    options.auth_credential = "alice:secret";
    return zkl_client_open(&client, &options) == ZKL_EAUTH ? 0 : 3;
}

static int lose_the_session(const char *servers, const char *path)
{
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL;
    struct zkl_mutex *mutex = NULL;

    options.servers = servers;
    options.session_timeout_ms = lag_session_ms(600);
    if (zkl_client_open(&client, &options) != 0 || zkl_mutex_new(&mutex, client, path, NULL) != 0 ||
        zkl_mutex_lock(mutex) != 0)
        return 4;
    /* From here on the link may be cut: not amid the call, which would just lock later. */
    raise(SIGSTOP);
    if (!wait_until(zkl_mutex_token(mutex) == 0, WAIT_MS) || zkl_mutex_unlock(mutex) != ZKL_ELOST)
        return 5;
    bool again = zkl_mutex_lock(mutex) == 0 && zkl_mutex_unlock(mutex) == 0;
    if (!again && lag_is_slow()) /* so short a session may end once more */
        again = wait_until(zkl_mutex_lock(mutex) == 0 && zkl_mutex_unlock(mutex) == 0, WAIT_MS);
    if (!again)
        return 6;
    return zkl_mutex_free(mutex) == 0 && zkl_client_free(client) == 0 ? 0 : 7;
}

/* Forked before this process has threads: the address sanitizer's allocator does not survive a fork
 * amid theirs. The server list comes through the pipe. */
static pid_t start_guest(FILE *output, int from, const char *path)
{
    char servers[256] = "";
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    alarm(300);
    if (read(from, servers, sizeof servers - 1) <= 0)
        _exit(1);
    dup2(fileno(output), STDOUT_FILENO);
    dup2(fileno(output), STDERR_FILENO);
    close_range(3, ~0U, 0); /* the proxy's, which must be its own to refuse and cut */
    int rc = fail_to_connect();
    if (rc == 0)
        rc = be_refused();
    _exit(rc != 0 ? rc : lose_the_session(servers, path));
}

/* Goal: neither the library nor libzookeeper below it writes a single byte to standard output or
 * error, whatever happens: no connection, a refused credential, an expiry, the end. Method: a child
 * goes through all this with both in a file. */
WORLD_TEST(nothing_is_ever_printed)
{
    const char *path = cluster_path("printed");
    FILE *output = tmpfile();
    int status = -1, to_guest[2];
    char text[512];

    skip_under_gcc_tsan();
    check_true(output != NULL);
    check_ok(pipe(to_guest));
    pid_t pid = start_guest(output, to_guest[0], path);
    struct proxy *proxy = world_proxy();
    const char *servers = cluster_servers(proxy_address(proxy));
    check_num(write(to_guest[1], servers, strlen(servers)), ==, (ssize_t)strlen(servers));
    close(to_guest[0]);
    close(to_guest[1]);
    check_num(waitpid(pid, &status, WUNTRACED), ==, pid);
    check_true(WIFSTOPPED(status));
    check_num(cluster_children(path), ==, 1);
    lose_link(proxy);
    check_ok(kill(pid, SIGCONT));
    check_wait(cluster_children(path) == 0, WAIT_MS);
    check_ok(proxy_refuse(proxy, false));
    check_num(waitpid(pid, &status, 0), ==, pid);
    check_ok(status);
    rewind(output);
    if (fgets(text, sizeof text, output))
        fail_msg("printed: %s", text);
    fclose(output);
}

/* --- signals --------------------------------------------------------------------------------- */

static atomic_int handled;

static void count_signal(int sig)
{
    (void)sig;
    atomic_fetch_add(&handled, 1);
}

WORLD_TEST(library_threads_take_no_signal)
{
    struct sigaction action = {.sa_handler = count_signal}, before;
    sigset_t set, old, pending;

    skip_under_gcc_tsan();
    struct zkl_mutex *mutex = world_mutex(world_client(), cluster_path("signals"));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    check_ok(sigaction(SIGUSR1, &action, &before));
    check_ok(pthread_sigmask(SIG_BLOCK, &set, &old));
    atomic_store(&handled, 0);
    check_ok(kill(getpid(), SIGUSR1));
    cycle(mutex, 20);
    check_num(atomic_load(&handled), ==, 0);
    check_ok(sigpending(&pending));
    check_num(sigismember(&pending, SIGUSR1), ==, 1);
    check_ok(pthread_sigmask(SIG_SETMASK, &old, NULL));
    check_wait(atomic_load(&handled) == 1, WAIT_MS);
    check_ok(sigaction(SIGUSR1, &before, NULL));
}

/* --- what is left ---------------------------------------------------------------------------- */

static void open_use_and_free(bool close_first, bool use)
{
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, "/left");

    cycle(mutex, use);
    if (close_first)
        check_closed(zkl_client_close(client, WAIT_MS));
    world_drop(mutex);
    world_drop(client);
}

WORLD_TEST(clients_that_are_gone_leave_nothing)
{
    open_use_and_free(true, true);
    int descriptors = process_entries("fd"), threads = process_entries("task");
    int connections = flw_connections(zks_host(), zks_port(server, 0));
    for (long i = test_length(1000, 100); i > 0; i--)
        open_use_and_free(i % 2 == 0, i % 10 == 0);
    check_wait(process_entries("task") <= threads, WAIT_MS);
    check_num(process_entries("fd"), <=, descriptors);
    check_wait(flw_connections(zks_host(), zks_port(server, 0)) <= connections, WAIT_MS);
}

WORLD_TEST(clients_without_a_server_leave_nothing)
{
    struct zkl_client_options options = cluster_options();

    options.servers = nowhere();
    options.connect_timeout_ms = 0;
    int descriptors = process_entries("fd"), threads = process_entries("task");
    int64_t start = net_now_ms();
    for (int i = 0; i < 10; i++)
        world_drop(world_client_with(&options));
    check_true(net_now_ms() - start < 10000 || lag_is_slow());
    check_wait(process_entries("task") <= threads, WAIT_MS);
    check_num(process_entries("fd"), <=, descriptors);
}

/* --- any order ------------------------------------------------------------------------------- */

WORLD_TEST(handles_go_in_any_order)
{
    const char *path = cluster_path("any-order");
    struct zkl_client *client = world_client();
    struct zkl_mutex *early = world_mutex(client, cluster_path("early"));
    struct zkl_mutex *late = world_mutex(client, cluster_path("late"));
    struct zkl_mutex *held = world_mutex(client, path);

    check_ok(zkl_mutex_lock(held));
    world_drop(early);
    world_drop(client);
    check_num(cluster_children(path), ==, 0);
    check_num(zkl_mutex_lock(late), ==, ZKL_ECLOSED);
    world_drop(late);
    check_num(zkl_mutex_free(held), ==, ZKL_EBUSY);
    check_num(zkl_mutex_token(held), ==, 0);
    check_num(zkl_mutex_window_ms(held), ==, 0);
    check_num(zkl_mutex_unlock(held), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(held), ==, ZKL_ENOTOWNER);
}
