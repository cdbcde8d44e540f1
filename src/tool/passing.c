/* SPDX-License-Identifier: Apache-2.0
 *
 * Which signals to zklock the command must still get. It pairs those that zklock got with those
 * that the anchor got, one with one, by number. Two of a pair were sent within PASSING_WAIT_MS. A
 * killer that takes longer between them sends two signals, and so does this file. It owns nothing
 * but the struct. job.c calls it. */
#include "passing.h"

#include <signal.h>
#include <string.h>

#include "clock.h"

static void forget(struct passing *passing, size_t i)
{
    passing->anchors_count--;
    memmove(&passing->anchors[i], &passing->anchors[i + 1],
            (passing->anchors_count - i) * sizeof passing->anchors[0]);
}

int64_t passing_look_ns(const struct passing *passing)
{
    return passing->anchors_count ? passing->anchors[0].then_ns + PASSING_WAIT_MS * MS_NS + 1 : 0;
}

/* A signal of zklock can be as old as its last look: it may have been stopped since. */
static void forget_old(struct passing *passing)
{
    while (passing->anchors_count && passing_look_ns(passing) <= passing->looked_ns)
        forget(passing, 0);
}

void passing_looks(struct passing *passing, int64_t now_ns)
{
    passing->looked_ns = now_ns;
    forget_old(passing);
}

static bool anchor_has(struct passing *passing, int number)
{
    forget_old(passing);
    for (size_t i = 0; i < passing->anchors_count; i++) {
        if (passing->anchors[i].number == number) {
            forget(passing, i);
            return true;
        }
    }
    return false;
}

/* The kernel would have merged the two, had zklock read them a little later. It never merges two
 * real-time signals. */
static bool is_same(const struct passing *passing, int number, pid_t sender, int64_t due_ns)
{
    if (passing->count == 0 || number >= SIGRTMIN)
        return false;
    const struct passing_one *last = &passing->all[passing->count - 1];
    return last->number == number && last->sender == sender &&
           due_ns - last->due_ns < PASSING_TWICE_MS * MS_NS;
}

bool passing_ours(struct passing *passing, int number, pid_t sender, int64_t now_ns)
{
    int64_t due_ns = now_ns + PASSING_WAIT_MS * MS_NS;
    if (is_same(passing, number, sender, due_ns))
        return true;
    if (passing->count == PASSING_MAX)
        return false;
    passing->all[passing->count++] = (struct passing_one){.number = number,
                                                          .sender = sender,
                                                          .to_all = anchor_has(passing, number),
                                                          .due_ns = due_ns};
    return true;
}

void passing_anchors(struct passing *passing, int number, int64_t then_ns)
{
    for (size_t i = 0; i < passing->count; i++) {
        if (passing->all[i].number == number && !passing->all[i].to_all) {
            passing->all[i].to_all = true;
            return;
        }
    }
    if (passing->anchors_count == PASSING_MAX)
        forget(passing, 0);
    passing->anchors[passing->anchors_count++] =
        (struct passing_heard){.number = number, .then_ns = then_ns};
}

int64_t passing_due_ns(const struct passing *passing)
{
    return passing->count ? passing->all[0].due_ns : 0;
}

bool passing_take(struct passing *passing, int64_t now_ns, struct passing_one *one)
{
    if (passing->count == 0 || passing->all[0].due_ns > now_ns)
        return false;
    *one = passing->all[0];
    passing->count--;
    memmove(passing->all, passing->all + 1, passing->count * sizeof passing->all[0]);
    return true;
}
