/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <stdio.h>

#include "calls.h"
#include "tool/net.h"

#define MS INT64_C(1000000)

void count_in(struct worker *w, enum tally tally)
{
    w->seat->tally[tally]++;
}

void call_say(struct worker *w, const char *call, const struct set *set, const char *end)
{
    struct seat *seat = w->seat;
    size_t size = sizeof seat->doing, n = (size_t)snprintf(seat->doing, size, "%s", call);

    for (int i = 0; i < set->count && n < size; i++)
        n += (size_t)snprintf(seat->doing + n, size - n, " %s%s", soak_path(set->place[i].path),
                              half_name(set->place[i].path, set->place[i].access));
    if (n < size)
        snprintf(seat->doing + n, size - n, "%s", end);
    seat->call_since_ms = net_now_ms();
}

void call_odd(struct worker *w, const char *what, int rc)
{
    shared_fail(w->shared, "process %d (pid %d, thread %d), %s: %s: %s: %s",
                w->number / SOAK_THREADS, w->seat->pid, w->seat->tid, w->seat->doing, what,
                zkl_strerror(rc), zkl_error_detail());
}

void call_check(struct worker *w, int rc, int expected)
{
    w->seat->call_since_ms = 0;
    if (rc != expected)
        call_odd(w, "not as expected", rc);
}

static void offer_cancel(struct worker *w, struct zkl_cancel *cancel)
{
    struct process *p = w->process;

    pthread_mutex_lock(&p->mu);
    p->cancels[w->number % SOAK_THREADS] = cancel;
    pthread_mutex_unlock(&p->mu);
    w->cancel = cancel;
}

static struct zkl_wait wait_of(struct worker *w, enum patience patience)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_cancel *cancel = NULL;

    if (patience == DEADLINE)
        wait.deadline_ns = zkl_now_ns() + chance_between(&w->chance, 0, 60) * MS;
    if (patience == TRY)
        wait.flags = ZKL_WAIT_TRY;
    if (patience == CANCEL && zkl_cancel_new(&cancel) == 0)
        offer_cancel(w, cancel);
    wait.cancel = cancel;
    return wait;
}

static bool is_expected(const struct zkl_wait *wait, int rc)
{
    return rc == 0 || (rc == ZKL_ETIMEDOUT && wait->deadline_ns != ZKL_NO_DEADLINE) ||
           (rc == ZKL_ECANCELED && zkl_cancel_is_set(wait->cancel)) ||
           ((rc == ZKL_EBUSY || rc == ZKL_EUNPROVED) && (wait->flags & ZKL_WAIT_TRY));
}

static void keep_longest(struct seat *seat, const struct zkl_wait *wait, int64_t ms)
{
    bool forever = wait->deadline_ns == ZKL_NO_DEADLINE && !wait->cancel && !wait->flags;

    if (forever && ms > seat->longest_ms)
        seat->longest_ms = ms;
}

bool call_end(struct worker *w, const struct zkl_wait *wait, int rc, enum tally granted)
{
    keep_longest(w->seat, wait, net_now_ms() - w->seat->call_since_ms);
    w->seat->call_since_ms = 0;
    if (!is_expected(wait, rc))
        call_odd(w, "not as expected", rc);
    if (w->cancel) {
        struct zkl_cancel *cancel = w->cancel;
        offer_cancel(w, NULL);
        zkl_cancel_free(cancel);
    }
    count_in(w, rc == 0               ? granted
                : rc == ZKL_ETIMEDOUT ? TIMED_OUT
                : rc == ZKL_ECANCELED ? CANCELED
                                      : BUSY);
    return rc == 0;
}

/* For the one process whose places are counted. */
static void asks(struct worker *w, const struct set *set)
{
    for (int i = 0; w->process->number == 0 && i < set->count; i++)
        w->shared->asked += w->holds[set->place[i].path][set->place[i].access] == 0;
}

struct zkl_wait call_begin(struct worker *w, const char *call, const struct set *set,
                           enum patience patience)
{
    static const char *const ends[PATIENCES] = {", no deadline", ", a deadline",
                                                ", a cancel object", ", a try"};
    struct zkl_wait wait = wait_of(w, patience);

    asks(w, set);
    call_say(w, call, set, ends[patience]);
    return wait;
}

/* --- the record ------------------------------------------------------------------------------- */

static void add_place(struct calls_line *line, struct place place)
{
    calls_add(line, " %s=%s", place.access == READING ? "read" : "alone", soak_path(place.path));
}

void note_begin(struct worker *w, const char *verb, const struct set *set)
{
    struct calls_line line = calls_line('?', net_boot_ns(), w->number);

    calls_add(&line, " %s", verb);
    for (int i = 0; i < set->count; i++)
        add_place(&line, set->place[i]);
    calls_write(&line);
}

void note_proved(struct worker *w, struct place place, int64_t until_ns)
{
    struct calls_line line = calls_line('~', until_ns, w->number);

    add_place(&line, place);
    calls_write(&line);
}
