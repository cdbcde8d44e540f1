/* SPDX-License-Identifier: Apache-2.0 */
/* Which signals to zklock the command must still get. A killer may signal zklock alone, and then
 * zklock passes the signal on; or all processes, as systemd, and then the command has it already.
 * The anchor, a process beside the command, tells: what it got too was sent to all. Pure: no I/O,
 * and times are the caller's. */
#ifndef ZKLOCK_TOOL_PASSING_H
#define ZKLOCK_TOOL_PASSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* PASSING_WAIT_MS: the longest time that a killer may take from one process to another.
 * PASSING_TWICE_MS: from zklock to zklock's group, as timeout(1) does, on a busy machine. */
enum { PASSING_MAX = 64, PASSING_WAIT_MS = 200, PASSING_TWICE_MS = 50 };

/* One signal to zklock that has not been passed on yet. */
struct passing_one {
    int number;
    pid_t sender;
    bool to_all;
    int64_t due_ns; /* the anchor has no part in it if it has none by then */
};

/* Starts as zeros. */
struct passing {
    struct passing_one all[PASSING_MAX]; /* in the order in which they came */
    size_t count;
    /* What the anchor got and zklock did not, as far as is known: the oldest first. */
    struct passing_heard {
        int number;
        int64_t then_ns;
    } anchors[PASSING_MAX];
    size_t anchors_count;
    int64_t looked_ns; /* when zklock last began to read its signals */
};

/* zklock reads its signals now. It may have got one at any time since it did so before. */
void passing_looks(struct passing *passing, int64_t now_ns);
/* When it has to, or 0: what the anchor got would else count for longer than PASSING_WAIT_MS. */
int64_t passing_look_ns(const struct passing *passing);
/* zklock got one. False: there is no room. */
bool passing_ours(struct passing *passing, int number, pid_t sender, int64_t now_ns);
/* The anchor got one, which zklock had not sent. */
void passing_anchors(struct passing *passing, int number, int64_t then_ns);
/* When the first one is due, or 0: there is none. */
int64_t passing_due_ns(const struct passing *passing);
/* Remove the first one if it is due. */
bool passing_take(struct passing *passing, int64_t now_ns, struct passing_one *one);

#endif
