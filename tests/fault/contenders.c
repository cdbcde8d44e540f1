/* SPDX-License-Identifier: Apache-2.0 */
#include "contenders.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "tool/net.h"

#define OPEN_MS 20000

struct turnstile *turnstile_new(void)
{
    void *at = mmap(NULL, sizeof(struct turnstile), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void turnstile_end(struct turnstile *w)
{
    check_num(w->odd, ==, 0);
    check_num(w->overlaps, ==, 0);
    check_num(w->stale, ==, 0);
    munmap(w, sizeof *w);
}

/* --- one member ------------------------------------------------------------------------------- */

void turnstile_enter(struct turnstile *w, int member, uint64_t token)
{
    uint64_t found = room_enter(&w->room, (uint32_t)member), before;

    if (found != 0) {
        w->overlaps++;
        fprintf(stderr, "turnstile: %d comes in while %llx is inside\n", member,
                (unsigned long long)found);
    }
    if ((before = room_token(&w->room, true, token)) != 0) {
        w->stale++;
        fprintf(stderr, "turnstile: %d comes with token %llx after %llx\n", member,
                (unsigned long long)token, (unsigned long long)before);
    }
    w->entries[member]++;
}

void turnstile_leave(struct turnstile *w, int member)
{
    room_leave(&w->room, (uint32_t)member); /* an overlap has been counted */
}

void turnstile_odd(struct turnstile *w, int code)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&w->odd, &none, code))
        fprintf(stderr, "turnstile: %s: %s\n", zkl_strerror(code), zkl_error_detail());
}

long turnstile_sum(const struct turnstile *w)
{
    long sum = 0;

    for (int i = 1; i <= CONTENDERS_MAX; i++)
        sum += w->entries[i];
    return sum;
}

static bool is_odd(int code, bool lossy)
{
    return code != 0 && !(lossy && (zkl_error_is_lost(code) || code == ZKL_EUNCONFIRMED));
}

static int one_round(struct turnstile *w, int member, struct zkl_mutex *mutex)
{
    struct zkl_grant grant = ZKL_GRANT_INIT;
    int rc = zkl_mutex_acquire(mutex, NULL, &grant);

    if (rc != 0)
        return rc;
    if (zkl_mutex_still_held(mutex, 1) == 1) {
        turnstile_enter(w, member, grant.token);
        sched_yield();
        turnstile_leave(w, member);
    }
    return zkl_mutex_unlock(mutex);
}

void turnstile_rounds(struct turnstile *w, int member, struct zkl_mutex *mutex, int rounds,
                      bool lossy)
{
    w->here++;
    while (!w->go && !w->stop)
        net_nap_ms(2);
    w->asking++;
    for (int i = 0; i < rounds && !w->stop; i++) {
        int rc = one_round(w, member, mutex);
        if (is_odd(rc, lossy)) {
            turnstile_odd(w, rc);
            break;
        }
    }
    w->done++;
}

/* --- many ------------------------------------------------------------------------------------- */

struct member {
    pthread_t thread;
    const struct contenders *contenders;
    struct zkl_mutex *mutex;
    int number;
};

static void *member_main(void *arg)
{
    struct member *m = arg;

    turnstile_rounds(m->contenders->turnstile, m->number, m->mutex, m->contenders->rounds,
                     m->contenders->lossy);
    return NULL;
}

static void run_members(const struct contenders *contenders, int first, int threads,
                        struct zkl_mutex *mutex)
{
    struct member members[CONTENDERS_MAX];

    for (int i = 0; i < threads; i++) {
        members[i] = (struct member){.contenders = contenders, .mutex = mutex, .number = first + i};
        pthread_create(&members[i].thread, NULL, member_main, &members[i]);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(members[i].thread, NULL);
}

static int contenders_run(const struct contenders *contenders, int first, int threads)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_client *client;
    struct zkl_mutex *mutex;

    options.servers = contenders->servers;
    options.session_timeout_ms = contenders->session_ms;
    options.connect_timeout_ms = OPEN_MS;
    int rc = zkl_client_open(&client, &options);
    if (rc == 0) {
        rc = zkl_mutex_new(&mutex, client, contenders->path, NULL);
        if (rc == 0) {
            run_members(contenders, first, threads, mutex);
            rc = zkl_mutex_free(mutex);
        }
        zkl_client_free(client);
    }
    if (rc != 0)
        turnstile_odd(contenders->turnstile, rc);
    return rc;
}

static void *run_in_a_thread(void *arg)
{
    const struct contenders_thread *t = arg;

    contenders_run(t->contenders, t->first, t->threads);
    return NULL;
}

void contenders_begin(struct contenders_thread *t, const struct contenders *contenders, int first,
                      int threads)
{
    *t = (struct contenders_thread){.contenders = contenders, .first = first, .threads = threads};
    check_ok(pthread_create(&t->thread, NULL, run_in_a_thread, t));
}

int contenders_fork(const struct contenders *contenders, int first, int threads)
{
    int pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    while (!contenders->turnstile->go && !contenders->turnstile->stop)
        net_nap_ms(2);
    _exit(contenders_run(contenders, first, threads) == 0 ? 0 : 1);
}

bool contenders_wait(int pid, int ms)
{
    int64_t end = net_now_ms() + ms;
    int status = 0, got = 0;

    while ((got = waitpid(pid, &status, WNOHANG)) == 0 && net_now_ms() < end)
        net_nap_ms(5);
    if (got != 0)
        return got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return false;
}
