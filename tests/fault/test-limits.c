/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and descriptors run out: a call that needs one fails or waits within its
 * deadline, and everything works again when there are some. */
#include "bench.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "sanitizer.h"

#define SESSION_MS lag_session_ms(2000)

static const char *const path = "/limits/m";

/* Without descriptors the thread sanitizer can't name functions, so that libzookeeper's race, which is
 * suppressed by name, would be reported; and it can't have threads in a forked child. */
static void skip_under_tsan(void)
{
    if (UNDER_TSAN) {
        print_message("skipped: the thread sanitizer can't run this\n");
        skip();
    }
}

static void check_works(struct bench *b, struct zkl_client *client, struct zkl_mutex *mutex)
{
    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    check_num(fault_children(b->wire, path), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
    fault_check_rest(client, b->wire, path, 3000);
}

static int open_plain(struct zkl_client **client)
{
    struct zkl_client_options options =
        fault_client_options(zks_connect_string(server), SESSION_MS);

    options.connect_timeout_ms = lag_session_ms(1000);
    return zkl_client_open(client, &options);
}

/* --- threads ---------------------------------------------------------------------------------- */

static atomic_int thread_asked, thread_fails; /* the nth fails; 0: none */
static atomic_bool no_threads;

__typeof__(pthread_create) __real_pthread_create, __wrap_pthread_create;

/* For the library's own threads. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *),
                          void *arg)
{
    if (no_threads || (thread_fails != 0 && ++thread_asked == thread_fails))
        return EAGAIN;
    return __real_pthread_create(thread, attr, main, arg);
}

#define LIMITS_TEST(name) BENCH_TEST(name, path, SESSION_MS, 0)

/* Whichever it is. Modes: F62. */
LIMITS_TEST(no_thread_while_opening)
{
    int threads = fault_threads(), n, rc = ZKL_ESYSTEM;
    int sessions = flw_connections(zks_host(), zks_port(server, 0));

    for (n = 1; rc != 0; n++) {
        struct zkl_client *client = NULL;
        thread_asked = 0;
        thread_fails = n;
        rc = open_plain(&client);
        thread_fails = 0;
        check_true(rc == 0 || rc == ZKL_ESYSTEM);
        check_true((client != NULL) == (rc == 0));
        if (rc == 0)
            check_ok(zkl_client_free(client));
        else
            check_true(strstr(zkl_error_detail(), zkl_strerror(ZKL_ESYSTEM)) != NULL);
        check_wait(fault_threads() <= threads, WAIT_MS);
        check_wait(flw_connections(zks_host(), zks_port(server, 0)) == sessions, WAIT_MS);
    }
    print_message("    %d places\n", n - 2);
    /* Two of its own, three in place of libzookeeper's and the one that makes those, and that one. */
    check_num(n - 2, ==, 6);
    check_works(b, b->client, b->mutex);
}

/* The hold is lost all the same, waits end by their deadline, and once there are threads again the
 * client is back. Modes: F62. */
LIMITS_TEST(no_thread_for_the_next_session)
{
    check_ok(zkl_mutex_lock(b->mutex));
    no_threads = true;
    fault_expire(b->client, 0);
    check_wait(zkl_mutex_token(b->mutex) == 0, WAIT_MS);
    check_num(zkl_mutex_unlock(b->mutex), ==, ZKL_ELOST);
    int64_t start_ms = net_now_ms();
    check_num(zkl_mutex_lock_for(b->mutex, 1500), ==, ZKL_ETIMEDOUT); /* three tries, in vain */
    check_num(net_now_ms() - start_ms, >=, 1500);
    check_true(net_now_ms() - start_ms < 1500 + 5000 || lag_is_slow());
    check_num(zkl_client_get_state(b->client), ==, ZKL_CLIENT_CONNECTING);
    no_threads = false;
    check_works(b, b->client, b->mutex);
}

/* In a process whose user may have no more than max threads. Exit status: 0, or why not. */
static int open_within(int max)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)max, .rlim_max = (rlim_t)max};
    struct zkl_client *client = NULL;
    struct zkl_mutex *mutex = NULL;

    alarm(300);
    /* Nobody has this number, so that only our own threads count. */
    if (setresuid(61000 + (uid_t)getpid() % 1000, 61000 + (uid_t)getpid() % 1000,
                  61000 + (uid_t)getpid() % 1000) != 0 ||
        setrlimit(RLIMIT_NPROC, &limit) != 0)
        return 90;
    int rc = open_plain(&client);
    if (rc != 0)
        return -rc;
    if (zkl_mutex_new(&mutex, client, path, NULL) != 0 || zkl_mutex_lock_for(mutex, WAIT_MS) != 0 ||
        zkl_mutex_unlock(mutex) != 0 || zkl_mutex_free(mutex) != 0)
        return 91;
    return zkl_client_free(client) != 0 ? 92 : 0;
}

/* The same by the kernel's limit, which counts libzookeeper's threads too: it aborts the process
 * when one of its own can't be made, and must not get that far. Modes: F62. */
LIMITS_TEST(no_thread_by_the_kernel)
{
    enum { NEEDED = 5 }; /* with the calling one */

    skip_under_tsan();
    if (geteuid() != 0) {
        print_message("skipped: only root can become somebody without processes\n");
        skip();
    }
    for (int i = 0; i < test_length(30, 3); i++) {
        for (int max = 1; max <= NEEDED + 1; max++) {
            pid_t pid = fork();
            int status = 0;
            if (pid == 0)
                _exit(open_within(max));
            check_num(waitpid(pid, &status, 0), ==, pid);
            if (!WIFEXITED(status))
                fail_msg("%d threads: ended by signal %d", max, WTERMSIG(status));
            check_num(WEXITSTATUS(status), ==, max < NEEDED ? -ZKL_ESYSTEM : 0);
        }
    }
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Below the result this many numbers are free. */
static rlim_t number_above(int more)
{
    rlim_t fd = 0;

    for (; more > 0; fd++)
        more -= fcntl((int)fd, F_GETFD) < 0;
    return fd;
}

/* New descriptors only below this number. */
static void limit_descriptors(rlim_t n)
{
    struct rlimit limit;

    check_ok(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = n;
    check_ok(setrlimit(RLIMIT_NOFILE, &limit));
}

/* At every place in turn: it fails and leaves none, or the client works once there are some again.
 * */
LIMITS_TEST(no_descriptor_while_opening)
{
    struct rlimit limit;
    int threads = fault_threads(), before = fault_descriptors();

    skip_under_tsan();
    check_ok(getrlimit(RLIMIT_NOFILE, &limit));
    for (int more = 0; more < 12; more++) {
        struct zkl_client *client = NULL;
        limit_descriptors(number_above(more));
        int rc = open_plain(&client);
        limit_descriptors(limit.rlim_cur);
        print_message("    %d more: %d\n", more, rc);
        check_true(rc == 0 || rc == ZKL_ESYSTEM || rc == ZKL_EDISCONNECTED);
        check_true(rc == 0 || more < 11);
        check_true(rc != 0 || more > 0);
        if (rc == 0) {
            struct zkl_mutex *mutex = fault_mutex(client, path);
            check_works(b, client, mutex);
            check_ok(zkl_mutex_free(mutex));
            check_ok(zkl_client_free(client));
        }
        check_wait(fault_threads() <= threads, WAIT_MS);
        check_wait(fault_descriptors() == before, WAIT_MS);
    }
}

static int taken[64], taken_count;

static void take_all(void)
{
    int fd;

    while ((fd = dup(STDERR_FILENO)) >= 0) {
        check_num(taken_count, <, sizeof taken / sizeof *taken);
        taken[taken_count++] = fd;
    }
    check_num(errno, ==, EMFILE);
}

/* The link breaks, no server listens, and the test takes even the descriptors that the client closes
 * between two attempts. */
static void starve(struct bench *b)
{
    fault_lose_link(b->client, b->proxy);
    limit_descriptors(number_above(1));
    for (int i = 0; i < 50; i++) {
        take_all();
        net_nap_ms(10);
    }
}

static int64_t cpu_ms(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000) +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* For longer than the session lives: calls end by their deadlines, and no thread spins. */
LIMITS_TEST(no_descriptor_for_a_reconnect)
{
    struct rlimit limit;
    struct zkl_cancel *cancel = NULL;

    skip_under_tsan();
    int before = fault_descriptors();
    check_ok(getrlimit(RLIMIT_NOFILE, &limit));
    check_ok(zkl_mutex_lock(b->mutex));
    starve(b);
    int64_t start_ms = net_now_ms(), start_cpu_ms = cpu_ms();
    int timed_out = act_do(b->actor, act_lock_for, b->mutex, (void *)(intptr_t)(4 * SESSION_MS));
    int64_t took_ms = net_now_ms() - start_ms, took_cpu_ms = cpu_ms() - start_cpu_ms;
    int cancel_rc = zkl_cancel_new(&cancel), try_rc = act_do(b->actor, act_trylock, b->mutex, NULL);
    int unlock_rc = zkl_mutex_unlock(b->mutex);
    limit_descriptors(limit.rlim_cur);
    while (taken_count > 0)
        close(taken[--taken_count]);
    check_ok(proxy_refuse(b->proxy, false));

    print_message("    %lld ms with %lld ms of work\n", (long long)took_ms, (long long)took_cpu_ms);
    check_num(timed_out, ==, ZKL_ETIMEDOUT);
    check_num(took_ms, >=, 4 * SESSION_MS);
    check_true(took_ms < 4 * SESSION_MS + 5000 || lag_is_slow());
    check_num(took_cpu_ms, <, took_ms / 4);
    check_num(cancel_rc, ==, ZKL_ESYSTEM);
    check_num(try_rc, ==, ZKL_EDISCONNECTED);
    check_true(is_unanswered(unlock_rc) || unlock_rc == ZKL_ELOST);
    check_works(b, b->client, b->mutex);
    check_wait(fault_descriptors() == before, WAIT_MS);
}
