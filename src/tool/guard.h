/* SPDX-License-Identifier: Apache-2.0 */
/* The process that ends the command in time, whatever becomes of zklock: parent of the command and
 * adoptive parent of all that descends from it, in a session of its own, without a connection to
 * ZooKeeper. zklock reports to it how long the lock is proved. When that time runs short, when the
 * lock is lost and when zklock has ended, the guard ends the command and its descendants, first
 * with SIGTERM, and with SIGKILL while the lock is still proved.
 *
 * The command must end before the lock can pass on, also when zklock itself does not run any more.
 * So there are four processes:
 *
 *     zklock      client, signals, terminal; caller's session
 *       guard     parent of the command, adopts its orphans (PR_SET_CHILD_SUBREAPER);
 *                 a session of its own, no client
 *         command   a process group of its own, in the caller's session: it can
 *                   have the terminal
 *         anchor    in the command's group, tells which signals it was sent
 *
 * - zklock forks all of them before it opens the client, as the client's threads do not survive a
 *   fork. The process that becomes the command waits on a socket for its environment. The guard
 *   forks it before the guard leaves the session.
 * - zklock reports to the guard each new end of the window, a moment on CLOCK_BOOTTIME, and whether
 *   the lock was lost. The guard has a timer on that clock and two limits: SIGTERM when T/8 of the
 *   window is left (a healthy one never falls below 3/8 T), SIGKILL when T/16 is left. The guard
 *   never waits for another process: not for a reader of its standard error, nor for a zklock that
 *   is stopped.
 * - The end of the socket means that zklock has ended. The guard sends SIGTERM immediately, and
 *   SIGKILL at the same limit. The session ends on the server after the window.
 * - The guard sends SIGKILL to the group, which the kernel does at one stroke, and to every other
 *   descendant found in /proc, until the guard has no child left. Orphans become the guard's
 *   children, so then nothing is left.
 * - The anchor keeps the kernel from treating the command's group as orphaned (no parent in its
 *   session and another group). Otherwise ^Z would not stop it.
 * - zklock releases the lock after the guard has reported that the group has ended. zklock is a
 *   subreaper, too: if the guard is killed, its children become zklock's, which kills them.
 *
 * With `--not-within` zklock records the last run beside the lock (`src/tool/record.c`). The rule,
 * without I/O, is `last_run.c`. wire-format.md has node, text and requests. zklock asks for the
 * record and writes it before it reports a window to the guard, because a guard that does not hear
 * the next one in time would end the process that becomes the command. It does so over the client's
 * own connection (`src/api/errand.c`).
 *
 * Signals:
 *
 * Some killers signal zklock alone, some signal every process of a unit or a tree. The command must
 * get one signal from each. So zklock must know whether the killer also signaled the command, and
 * nothing tells that of another process: a signal leaves no trace once it was handled. A process
 * beside the command is the next best witness. The anchor blocks all signals and tells zklock of
 * each one that zklock did not send itself. `src/tool/passing.c` pairs its signals with those of
 * zklock, and `job.c` passes on what has no pair.
 *
 * | the killer signals | zklock | anchor | command | passed on |
 * |---|---|---|---|---|
 * | `kill PID`, zklock's process group, a container's process 1 | x | | | yes |
 * | the terminal, whose foreground is zklock's group | x | | | yes, immediately |
 * | the terminal, whose foreground is the command's group | | x | x | |
 * | a unit, a tree, a session, a user: every process of it | x | x | x | no |
 * | processes with the name zklock | x | | | yes |
 * | processes with the command in their command line | x | x | x | no |
 * | processes of the program file zklock | x | x | | see below |
 *
 * - Order. A killer walks in any order. If the anchor was first, its signal waits for zklock's. If
 *   zklock was first, it waits 0.2 s. Then it asks the anchor, which reads its signals before it
 *   answers. So a busy machine that does not run the anchor makes zklock wait longer, by up to a
 *   second, and not decide wrongly. An anchor that does not answer was stopped or killed, and the
 *   signal is passed on.
 * - A stopped zklock, or one that a busy machine does not run, reads its signals late. Each one may
 *   be as old as its last look at them, so older signals of the anchor count, too. Therefore zklock
 *   looks again when a signal of the anchor is 0.2 s old: a later `kill PID` is one of its own
 *   then.
 * - Count. One signal of the anchor takes away one of zklock, of the same number, so a `kill PID`
 *   right behind a signal to all is passed on.
 * - Terminal. The kernel signals one group at one stroke. A signal of zklock that has the kernel as
 *   its sender needs no witness.
 * - Names. Killers by name must not take the anchor for zklock, or the command would get nothing.
 *   So it is called `anchor`, and has the command's command line. Its program file is zklock's,
 *   which only another program could change.
 * - The command itself counts more than the anchor: a command in another control group, or one that
 *   lives though it neither catches nor ignores the signal, has not got it. What remains is a
 *   killer by program file of a command that catches the signal: that gets none.
 * - What else remains. A killer that takes more than 0.2 s from one process to the other sends two.
 *   The kernel may merge two equal signals that come together, as for every process.
 *
 * Signals end zklock from the first line of `main` on, by a handler: process 1 gets none that it
 * has no handler for. A thread (`reaper.c`) waits for children that zklock did not start. They come
 * as orphans to process 1, and from a shell that became zklock. The anchor's number is used for a
 * signal at the end, so it is waited for below a mutex. */
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
