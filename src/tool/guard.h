/* SPDX-License-Identifier: Apache-2.0 */
/* The process that ends the command in time, whatever becomes of zklock: parent of the command and
 * adoptive parent of all that descends from it, in a session of its own, without a connection to
 * ZooKeeper. zklock reports to it how long the lock is proved. When that time runs short, when the
 * lock is lost and when zklock has ended, the guard ends the command and its descendants, first
 * with SIGTERM, and with SIGKILL while the lock is still proved. */
#ifndef ZKLOCK_TOOL_GUARD_H
#define ZKLOCK_TOOL_GUARD_H

#include <stdint.h>
#include <sys/types.h>

/* --- what zklock says, each one packet ---------------------------------- */

enum order_kind {
    ORDER_WINDOW = 1, /* the lock is proved until time_ns, by a session of timeout_ns */
    ORDER_LOST = 2,   /* it is lost: what was said of the window is void */
};

struct order {
    enum order_kind kind;
    int64_t time_ns; /* CLOCK_BOOTTIME */
    int64_t timeout_ns;
};

/* --- what the guard says ------------------------------------------------ */

enum ending {
    ENDING_BY_ITSELF = 0,
    ENDING_LOST = 1,      /* zklock said so */
    ENDING_UNPROVED = 2,  /* the window ran short */
    ENDING_ABANDONED = 3, /* zklock has ended, so no process reads this */
};

enum report_kind {
    REPORT_READY = 1,   /* value: the process group of the command to come */
    REPORT_STOPPED = 2, /* value: the signal that stopped the command */
    REPORT_ENDING = 3,  /* ending: SIGTERM was sent */
    /* the group has ended; value: what waitpid said of the command; ending; spare_ns: of the
     * window, when it was over */
    REPORT_GONE = 4,
};

struct report {
    enum report_kind kind;
    int value;
    enum ending ending;
    int64_t spare_ns;
};

/* The guard's whole life, in a separate process that is zklock's child. socket: to zklock, of type
 * SOCK_SEQPACKET. go: where the future command (see launch.h) waits for its environment. Never
 * returns. */
void guard_run(int socket, int go, char **argv) __attribute__((noreturn));

#endif
