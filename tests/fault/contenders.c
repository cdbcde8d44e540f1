/* SPDX-License-Identifier: Apache-2.0 */
#include "contenders.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

struct turnstile *turnstile_new(void)
{
    void *at = mmap(NULL, sizeof(struct turnstile), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check_true(at != MAP_FAILED);
    return at;
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
    const struct contenders *contenders;
    int number;
};

static int take_part(struct zkl_mutex *mutex, void *member)
{
    const struct member *m = member;

    turnstile_rounds(m->contenders->turnstile, m->number, mutex, m->contenders->rounds,
                     m->contenders->lossy);
    return 0;
}

void contenders_begin(const struct contenders *contenders, int first, int actors)
{
    struct zkl_client *client = world_open(contenders->servers, contenders->session_ms);
    struct zkl_mutex *mutex = world_mutex(client, contenders->path);

    for (int i = 0; i < actors; i++) {
        struct member *m = world_alloc(sizeof *m);
        *m = (struct member){contenders, first + i};
        act_begin(world_actor(), take_part, mutex, m);
    }
}

static int contend(const struct contenders *contenders, int number)
{
    struct zkl_client_options options =
        fault_client_options(contenders->servers, contenders->session_ms);
    struct member member = {contenders, number};
    struct zkl_client *client = NULL;
    struct zkl_mutex *mutex = NULL;
    int rc = zkl_client_open(&client, &options);

    if (rc == 0 && (rc = zkl_mutex_new(&mutex, client, contenders->path, NULL)) == 0) {
        take_part(mutex, &member);
        rc = zkl_mutex_free(mutex);
    }
    zkl_client_free(client);
    if (rc != 0)
        turnstile_odd(contenders->turnstile, rc);
    return rc;
}

int contenders_fork(const struct contenders *contenders, int member)
{
    int pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    while (!contenders->turnstile->go && !contenders->turnstile->stop)
        net_nap_ms(2);
    _exit(contend(contenders, member) == 0 ? 0 : 1);
}

bool contenders_wait(int pid, int ms)
{
    int status = -1;

    if (!wait_until(waitpid(pid, &status, WNOHANG) == pid, ms)) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
