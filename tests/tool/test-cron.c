/* SPDX-License-Identifier: Apache-2.0 */
/* The use that zklock run is for: one job, started again and again on two machines, and everything that runs
 * is killed now and then. */
#include "tool.h"

#include "chance.h"

#include <stdio.h>
#include <stdlib.h>

enum { MACHINES = 2, STRIKE_PERCENT = 40 };
enum { LONGEST_WORK_MS = 20, LATEST_STRIKE_MS = 80, LONGEST_STOP_MS = 1500 };

struct machine {
    struct tool job;
    bool runs;
    int64_t strike_ms, continue_ms; /* when; 0: never */
};

struct scene {
    struct worked worked;
    struct machine machines[MACHINES];
    uint64_t chance;
    int strikes;
};

static void start(struct scene *s, struct machine *m)
{
    m->job = tool_line("run -w 120 /cron/job -- work %s %d stubborn", s->worked.name,
                       chance_between(&s->chance, 1, LONGEST_WORK_MS));
    m->runs = true;
    m->strike_ms = 0;
    if (chance(&s->chance, STRIKE_PERCENT))
        m->strike_ms = net_now_ms() + chance_between(&s->chance, 1, LATEST_STRIKE_MS);
}

/* True if it has ended. */
static bool look_after(struct machine *m)
{
    int status;

    if (waitpid(m->job.pid, &status, WNOHANG) != m->job.pid)
        return false;
    close(m->job.output);
    m->runs = false;
    m->continue_ms = 0;
    return true;
}

/* zklock, its guard, the command, or zklock stopped instead. What was stopped goes on some time later. */
static void strike(struct scene *s, struct machine *m)
{
    pid_t zklock = m->job.pid, guard = tool_guard(&m->job);

    s->strikes++;
    m->strike_ms = 0;
    switch (chance_between(&s->chance, 0, 3)) {
    case 0:
        kill(zklock, SIGKILL);
        break;
    case 1:
        if (guard > 0)
            kill(guard, SIGKILL);
        break;
    case 2:
        if (atomic_load(&s->worked.shared->pid) > 0 &&
            !process_gone(atomic_load(&s->worked.shared->pid)))
            kill(atomic_load(&s->worked.shared->pid), SIGKILL);
        break;
    default:
        kill(zklock, SIGSTOP);
        m->continue_ms = net_now_ms() + chance_between(&s->chance, 1, LONGEST_STOP_MS);
    }
}

static void turn(struct scene *s, struct machine *m, bool more)
{
    if (!m->runs && more)
        start(s, m);
    if (!m->runs || look_after(m))
        return;
    if (m->strike_ms && net_now_ms() >= m->strike_ms)
        strike(s, m);
    if (m->continue_ms && net_now_ms() >= m->continue_ms)
        kill(m->job.pid, SIGCONT);
}

static bool anything_runs(const struct scene *s)
{
    bool any = false;
    for (int i = 0; i < MACHINES; i++)
        any = any || s->machines[i].runs;
    return any;
}

static uint64_t seed(void)
{
    const char *text = getenv("ZKL_TEST_SEED");
    uint64_t value = text ? strtoull(text, NULL, 10) : (uint64_t)net_boot_ns() % 1000000;

    print_message("ZKL_TEST_SEED=%llu\n", (unsigned long long)value);
    return value;
}

/* Goal: two machines' jobs never overlap, while zklock, guards and commands are killed or stopped: 500
 * runs, 20 in the short form. Method: each run asks the kernel for a lock of its own, which must always be
 * free. Modes: F66. */
TOOL_TEST(jobs_never_overlap)
{
    struct scene s = {.worked = worked_new(), .chance = seed()};
    long runs = test_length(500, 20);

    set_session("1");
    while (atomic_load(&s.worked.shared->begun) < runs || anything_runs(&s)) {
        for (int i = 0; i < MACHINES; i++)
            turn(&s, &s.machines[i], atomic_load(&s.worked.shared->begun) < runs);
        net_nap_ms(2);
    }
    print_message("%d runs, %d strikes, %d overlaps\n", atomic_load(&s.worked.shared->begun),
                  s.strikes, atomic_load(&s.worked.shared->overlaps));
}
