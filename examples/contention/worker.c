/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include "chance.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    NO_LOCK_REST_US = 2000, /* without the lock, cycles come about as often as with it */
    ODD_REST_US = 100000,
    PAROLE_US = 500,
};

static void tell(struct worker *w, enum message_kind kind, const char *what, const char *why)
{
    struct message m = {.kind = kind, .who = w->fence.who};
    snprintf(m.text, sizeof m.text, "%s: %s", what, why);
    lines_send(&w->process->lines, &m);
}

static int broken(struct worker *w, const char *what)
{
    tell(w, MESSAGE_FAILED, what, strerror(errno));
    return -1;
}

/* An answer that a working lock does not give is reported; the work goes on, but not in a tight
 * loop. */
static void odd(struct worker *w, const char *call, int code)
{
    char what[64];
    snprintf(what, sizeof what, "%s returned %d", call, code);
    tell(w, MESSAGE_ODD, what, zkl_error_detail());
    nap_us(ODD_REST_US);
}

/* If the parent asked for a holder just here, stand still until it says go on, or kills. */
static void stand(struct worker *w, enum station here)
{
    struct board *board = w->process->board;
    int wanted = here;
    if (atomic_load_explicit(&board->station, memory_order_relaxed) != wanted ||
        !atomic_compare_exchange_strong(&board->station, &wanted, STATION_NONE))
        return;
    tell(w, MESSAGE_STATION, "at station", "waiting");
    while (!atomic_load(&board->parole))
        nap_us(PAROLE_US);
    atomic_store(&board->parole, false);
}

static void between(void *arg)
{
    stand(arg, STATION_BETWEEN);
}

/* 0: granted. 1: not granted, try again or stop. */
static int ask(struct worker *w, struct zkl_grant *grant)
{
    struct process *p = w->process;
    if (!p->mutex) {
        nap_us(chance_between(&w->chance, 0, 2 * NO_LOCK_REST_US));
        return 0;
    }
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.cancel = p->cancel;
    int rc = zkl_mutex_acquire(p->mutex, &wait, grant);
    if (rc == 0 && grant->token == 0)
        odd(w, "zkl_mutex_acquire without a token", rc);
    if (rc && rc != ZKL_EDISCONNECTED && !(rc == ZKL_ECANCELED && zkl_cancel_is_set(p->cancel)))
        odd(w, "zkl_mutex_acquire", rc);
    return rc ? 1 : 0;
}

/* Give the lock back and write down what the library said about the hold. */
static int give_back(struct worker *w, uint64_t token)
{
    if (!w->process->mutex)
        return 0;
    int rc = zkl_mutex_unlock(w->process->mutex);
    if (rc && rc != ZKL_EUNCONFIRMED && !zkl_error_is_lost(rc))
        odd(w, "zkl_mutex_unlock", rc);
    return fence_note(
        &w->fence,
        (struct witness_line){.kind = WITNESS_FREED, .token = token, .value = (uint64_t)-rc});
}

/* The critical section. It does not ask whether it still holds the lock, as a careful program
 * would: the fence must do without that. */
static enum fence_answer update(struct worker *w, uint64_t token, uint64_t wait_us)
{
    uint64_t counter;
    enum fence_answer answer = fence_enter(&w->fence, token, wait_us, &counter);
    if (answer != FENCE_ACCEPTED)
        return answer;
    nap_us((uint64_t)w->process->options->work_us);
    stand(w, STATION_WORKING);
    answer = fence_write(&w->fence, token, counter + 1);
    stand(w, STATION_WRITTEN);
    return answer;
}

/* 1: the record was updated. 0: the fence refused. -1: the files fail. */
static int hold(struct worker *w, uint64_t token, uint64_t asked_us)
{
    struct board *board = w->process->board;
    unsigned number = w->process->number;
    uint64_t granted_us = clock_us();
    atomic_fetch_add(&board->acquired[number], 1);
    atomic_store(&board->holding[number], (int)w->fence.who.thread + 1);
    enum fence_answer answer = update(w, token, granted_us - asked_us);
    if (answer == FENCE_FAILED)
        return broken(w, "journal or record");
    struct witness_line leave = {
        .kind = WITNESS_LEAVE, .token = token, .us = clock_us() - granted_us};
    if (fence_note(&w->fence, leave))
        return broken(w, "journal");
    stand(w, STATION_LEFT);
    atomic_store(&board->holding[number], 0);
    if (give_back(w, token))
        return broken(w, "journal");
    return answer == FENCE_ACCEPTED;
}

/* One lock, update and unlock. 0, or -1 if the files fail. */
static int cycle(struct worker *w, _Atomic uint64_t *done)
{
    struct process *p = w->process;
    struct zkl_grant grant = ZKL_GRANT_INIT;
    uint64_t asked_us = clock_us();
    if (ask(w, &grant))
        return 0;
    int updated = hold(w, grant.token, asked_us);
    if (updated > 0) {
        atomic_fetch_add(done, 1);
        atomic_fetch_add(&p->board->updates[p->number], 1);
    }
    return updated < 0 ? -1 : 0;
}

static int work(struct worker *w)
{
    struct process *p = w->process;
    _Atomic uint64_t *done = &p->board->done[p->number][w->fence.who.thread];
    uint64_t goal = p->options->count ? p->options->count : UINT64_MAX;
    while (atomic_load(done) < goal) {
        if (atomic_load(&p->board->stop))
            return 0;
        if (cycle(w, done))
            return -1;
    }
    return fence_note(&w->fence, (struct witness_line){.kind = WITNESS_DONE});
}

static void *run(void *arg)
{
    struct worker *w = arg;
    char nothing;
    /* The end of this pipe is the start of the run, for all threads of all processes. */
    while (read(w->process->lines.go[0], &nothing, 1) < 0 && errno == EINTR)
        ;
    w->rc = work(w);
    fence_close(&w->fence);
    uint64_t one = 1;
    if (write(w->process->ended, &one, sizeof one) < 0)
        w->rc = -1;
    return NULL;
}

int worker_start(struct worker *w, struct process *p, unsigned number)
{
    struct who who = {p->number, p->life, number};
    *w = (struct worker){.process = p, .rc = -1};
    w->chance = p->options->seed ^ (uint64_t)p->number << 40 ^ (uint64_t)p->life << 20 ^ number;
    if (fence_open(&w->fence, p->files->journal, p->files->record, who, p->board->epoch_us))
        return errno;
    w->fence.between = between;
    w->fence.arg = w;
    return pthread_create(&w->thread, NULL, run, w);
}

int worker_join(struct worker *w)
{
    pthread_join(w->thread, NULL);
    return w->rc;
}
