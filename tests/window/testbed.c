/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool/net.h"

#define RIVAL_SESSION_MS 60000

void give_up(const char *what)
{
    fprintf(stderr, "cannot go on: %s\n", what);
    exit(1);
}

void give_way(const char *what)
{
    printf("not aimed: %s within %d s\n", what, WAIT_MS / 1000);
    exit(77);
}

uint64_t testbed_seed(void)
{
    uint64_t seed = 0;

    return getrandom(&seed, sizeof seed, 0) == sizeof seed ? seed >> 32 : 1;
}

static void make_shared(struct testbed *testbed)
{
    size_t size = sizeof *testbed->shared;

    testbed->shared_fd = memfd_create("shared", 0);
    if (testbed->shared_fd < 0 || ftruncate(testbed->shared_fd, (off_t)size) != 0)
        give_up("no memory");
    testbed->shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, testbed->shared_fd, 0);
    if (testbed->shared == MAP_FAILED)
        give_up("no memory");
}

int testbed_start(struct testbed *testbed, int tick_ms, const struct zks_options *options)
{
    struct zks_options all = options != NULL ? *options : (struct zks_options){0};
    char err[512];

    if (zks_available(err, sizeof err) != 0) {
        fprintf(stderr, "skipped: %s\n", err);
        return 77;
    }
    testbed->tick_ms = tick_ms;
    make_shared(testbed);
    if (relay_start(&testbed->relay, NODES) != 0)
        give_up("no relay");
    all.nodes = NODES;
    all.tick_ms = tick_ms;
    all.route = relay_route;
    all.route_arg = testbed->relay;
    if (zks_start(&testbed->zks, &all, err, sizeof err) != 0)
        give_up(err);
    return 0;
}

void testbed_end(struct testbed *testbed)
{
    zks_stop(testbed->zks);
    relay_stop(testbed->relay);
    munmap(testbed->shared, sizeof *testbed->shared);
    close(testbed->shared_fd);
}

/* --- the first holders ------------------------------------------------------------------------ */

void seat_if_asked(int argc, char **argv)
{
    struct shared *shared;

    if (argc != 4 || strcmp(argv[1], "--seat") != 0)
        return;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[2]), 0);
    _exit(shared == MAP_FAILED ? 3 : seat_main(&shared->seats[atoi(argv[3])]));
}

void seat_start(struct testbed *testbed, int i)
{
    char fd[16], index[16];

    snprintf(fd, sizeof fd, "%d", testbed->shared_fd);
    snprintf(index, sizeof index, "%d", i);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "seat", "--seat", fd, index, (char *)NULL);
        _exit(99);
    }
    if (pid < 0)
        give_up("no process");
    testbed->shared->seats[i].pid = pid;
}

void seat_end(struct seat *seat)
{
    seat->quit = 1;
    kill(seat->pid, SIGKILL);
    while (waitpid(seat->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* --- the others ------------------------------------------------------------------------------- */

static void *rival_main(void *arg)
{
    struct rival *r = arg;
    struct zkl_mutex *mutex = NULL;

    if (zkl_mutex_new(&mutex, r->client, r->path, NULL) != 0)
        give_up("no mutex");
    if (zkl_mutex_lock_for(mutex, 3 * WAIT_MS) == 0) {
        r->granted_ns = net_boot_ns();
        zkl_mutex_unlock(mutex);
    }
    r->ended_ns = net_boot_ns();
    zkl_mutex_free(mutex);
    return NULL;
}

struct zkl_client *rival_client(const struct testbed *testbed, size_t node)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_client *client = NULL;

    options.servers = zks_address(testbed->zks, node);
    options.session_timeout_ms = RIVAL_SESSION_MS;
    options.connect_timeout_ms = WAIT_MS;
    if (zkl_client_open(&client, &options) != 0)
        give_up(zkl_error_detail());
    return client;
}

void rival_begin(struct rival *rival, struct zkl_client *client, const char *path)
{
    *rival = (struct rival){.client = client, .path = path};
    if (pthread_create(&rival->thread, NULL, rival_main, rival) != 0)
        give_up("no thread");
}

void rival_end(struct rival *rival)
{
    pthread_join(rival->thread, NULL);
}

/* --- the leader's clock ----------------------------------------------------------------------- */

int64_t expiry_ns(const struct testbed *testbed, int64_t touched_ns, int session_ms)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    int64_t offset_ns = net_boot_ns() - (ts.tv_sec * 1000 * MS + ts.tv_nsec);
    int64_t ms = (touched_ns - offset_ns) / MS + session_ms;
    return (ms / testbed->tick_ms + 1) * testbed->tick_ms * MS + offset_ns;
}

int64_t rule_end_ns(const struct testbed *testbed, const struct seat *seat, int64_t told_ns)
{
    int64_t session_ns = seat->session_ms * MS, late_ns = session_ns / 16;
    int64_t round_ns = seat->tick_ms ? testbed->tick_ms * MS / 2 : session_ns / 4;
    int64_t known = seat->end_seen_ns - round_ns - 2 * late_ns;

    if (known < seat->link_ns)
        known = seat->link_ns;
    return (known < told_ns ? known : told_ns) + session_ns - late_ns;
}
