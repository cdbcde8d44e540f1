/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock's side of a command that runs under a guard: it starts the command, passes signals and the
 * terminal on to it, and ends it. It owns the sockets to guard and anchor. One
 * thread beside the reaper's; run.c calls it. */
#include "job.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "family.h"
#include "launch.h"
#include "reaper.h"
#include "say.h"
#include "signals.h"

/* --- start --------------------------------------------------------------- */

static pid_t start_guard(const int sockets[2], const int go[2], char **argv)
{
    pid_t pid = fork();
    if (pid == 0) {
        close(sockets[0]);
        close(go[1]);
        guard_run(sockets[1], go[0], argv);
    }
    close(sockets[1]);
    close(go[0]);
    return pid;
}

static int start_processes(struct job *job, char **argv)
{
    int sockets[2], go[2];
    struct report ready;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) != 0)
        return -1;
    job->socket = sockets[0];
    job->go = go[1];
    job->guard = start_guard(sockets, go, argv);
    if (job->guard < 0 || recv(job->socket, &ready, sizeof ready, 0) != sizeof ready)
        return -1;
    job->group = ready.value;
    return anchor_start(&job->anchor, job->group, argv) ? 0 : -1;
}

int job_start(struct job *job, char **argv)
{
    *job = (struct job){.socket = -1, .go = -1, .anchor.socket = -1, .terminal = {.fd = -1}};
    if (!family_can_look())
        return fail(EXIT_SYSTEM,
                    "/proc does not show this process, so zklock could not end the command in "
                    "time: mount /proc");
    signals_hear_children();
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* should the guard die */
    errno = 0;
    if (start_processes(job, argv) != 0) {
        int rc = fail(EXIT_SYSTEM, "no more processes can be started: %s",
                      strerror(errno ? errno : EAGAIN)); /* the guard could not start one */
        job_end(job, false);
        return rc;
    }
    reaper_start(job->anchor.pid);
    terminal_open(&job->terminal);
    return 0;
}

static bool send_all(int socket, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = send(socket, text, size, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        text += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

void job_go(struct job *job, char *const variables[])
{
    bool sent = true;
    terminal_give_at_start(&job->terminal, job->group);
    for (int i = 0; sent && i < LAUNCH_VARIABLES; i++)
        sent = send_all(job->go, variables[i], strlen(variables[i]) + 1);
    close(job->go);
    job->go = -1;
}

/* --- talk ---------------------------------------------------------------- */

bool job_order(struct job *job, const struct order *order)
{
    return send(job->socket, order, sizeof *order, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof *order;
}

/* If the guard ends without having read all orders, the socket returns an error, before the guard's
 * last report. */
int job_receive(struct job *job, struct report *report)
{
    ssize_t n = recv(job->socket, report, sizeof *report, MSG_DONTWAIT);
    if (n < 0 && errno == ECONNRESET)
        n = recv(job->socket, report, sizeof *report, MSG_DONTWAIT);
    if (n == sizeof *report)
        return 1;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/* --- signals and stops --------------------------------------------------- */

void job_signal(struct job *job, int signal)
{
    if (signal == SIGTSTP || signal == SIGCONT)
        job->told_to_stop = signal == SIGTSTP;
    kill(-job->group, signal);
}

void job_sent(struct job *job, const struct sent *sent)
{
    bool at_once = !signals_count(sent->number) || sent->by_kernel || job->anchor.socket < 0;
    if (at_once || !passing_ours(&job->passing, sent->number, sent->sender, boot_ns()))
        job_signal(job, sent->number);
}

/* The anchor may have got what the command did not, from a killer that takes every process of one
 * program or one control group: the command's own state counts more. */
static void pass_until(struct job *job, int64_t due_ns)
{
    struct passing_one one;
    while (passing_take(&job->passing, due_ns, &one)) {
        if (!one.to_all || !family_can_have_got(job->group, one.number))
            job_signal(job, one.number);
    }
    job->asked_ns = 0;
}

static void hear_anchor(struct job *job)
{
    struct heard heard;
    while (anchor_hear(&job->anchor, &heard)) {
        if (heard.number)
            passing_anchors(&job->passing, heard.number, heard.time_ns);
        else
            pass_until(job, job->asked_ns);
    }
}

/* A machine that is busy may keep the anchor from hearing its signals, so it is asked first. One
 * that does not answer was stopped or killed. */
void job_pass(struct job *job, int64_t began_ns)
{
    int64_t now = boot_ns(), due = passing_due_ns(&job->passing);
    passing_looks(&job->passing, began_ns);
    hear_anchor(job);
    if (due == 0 || due > now)
        return;
    if (job->asked_ns ? now >= job->asked_ns + ANCHOR_ANSWER_MS * MS_NS : !anchor_ask(&job->anchor))
        pass_until(job, now);
    else if (job->asked_ns == 0)
        job->asked_ns = now;
}

int job_pass_ms(const struct job *job, int timeout_ms)
{
    int64_t next = passing_due_ns(&job->passing), look = passing_look_ns(&job->passing);
    if (next != 0 && job->asked_ns)
        next = job->asked_ns + ANCHOR_ANSWER_MS * MS_NS;
    if (next == 0 || (look != 0 && look < next))
        next = look;
    if (next == 0)
        return timeout_ms;
    int64_t left_ns = next - boot_ns();
    int64_t left_ms = left_ns > 0 ? left_ns / MS_NS + 1 : 0;
    return left_ms < timeout_ms ? (int)left_ms : timeout_ms;
}

/* No shell exists that would continue our group, so our group does not stop. Nor does the command:
 * without the anchor the kernel would not have stopped it either. A command that was stopped from
 * outside must be continued from outside, too. */
static void stopped_without_terminal(const struct job *job, int signal)
{
    if (signal != SIGSTOP && !job->told_to_stop)
        kill(-job->group, SIGCONT);
}

/* The report may be late: what has been continued since is not continued again. */
void job_stopped(struct job *job, int signal)
{
    if (family_runs(job->group))
        return;
    if (job->terminal.fd < 0) {
        stopped_without_terminal(job, signal);
        return;
    }
    bool by_terminal = signal == SIGTTIN || signal == SIGTTOU;
    if (signal == SIGSTOP && !terminal_is_of(&job->terminal, job->group))
        return; /* meant for the command alone, as is the SIGCONT to come */
    if (!by_terminal || !terminal_give(&job->terminal, job->group)) {
        terminal_take_back(&job->terminal, job->group);
        signals_stop_group();
        if (job->terminal.given)
            terminal_give(&job->terminal, job->group);
    }
    kill(-job->group, SIGCONT);
}

/* --- end ----------------------------------------------------------------- */

void job_kill(struct job *job)
{
    int ignored;
    reaper_stop();
    family_kill(job->group, job->guard, &ignored);
    job->guard = job->anchor.pid = 0;
}

static void reap(pid_t pid)
{
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

/* The guard ends by itself; or, if the command was not started, once it finds that zklock has
 * ended. */
void job_end(struct job *job, bool restore)
{
    terminal_take_back(&job->terminal, job->group);
    if (restore)
        terminal_restore(&job->terminal);
    if (job->go >= 0)
        close(job->go);
    if (job->socket >= 0)
        close(job->socket);
    if (!reaper_stop())
        job->anchor.pid = 0;
    reap(job->guard);
    if (job->anchor.pid > 0)
        kill(job->anchor.pid, SIGKILL);
    reap(job->anchor.pid);
}
