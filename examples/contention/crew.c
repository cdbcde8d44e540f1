/* SPDX-License-Identifier: Apache-2.0 */
#include "crew.h"

#include "chance.h"
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TURN_MS = 100,
    START_TIMEOUT_MS = 30000, /* a client gives up connecting well before */
    STOP_TIMEOUT_MS = 15000,  /* beyond session timeout and close */
    ODD_SHOWN = 5,
};

static int complain(struct crew *crew, const char *what, const char *why)
{
    fprintf(stderr, "contention: %s: %s\n", what, why);
    crew->failed = true;
    return -1;
}

static int note(struct crew *crew, enum witness_kind kind, struct who who)
{
    struct witness_line line = {
        .kind = kind, .who = who, .at_us = clock_us() - crew->board->epoch_us};
    if (kind == WITNESS_RUN) {
        line.value = (uint64_t)crew->options->processes;
        line.found = (uint64_t)crew->options->threads;
    }
    return witness_append(crew->files.journal, &line) ? complain(crew, "journal", strerror(errno))
                                                      : 0;
}

/* A signal that was ignored when we were started (nohup) stays ignored; signalfd would show it. */
static void add_unless_ignored(sigset_t *set, int sig)
{
    struct sigaction action;
    if (sigaction(sig, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
        sigaddset(set, sig);
}

/* Blocked from the very first on: a signal is taken where everything can be ended in good order. */
static int take_signals(struct crew *crew)
{
    sigset_t set;
    signal(SIGCHLD, SIG_DFL); /* ignored, it would leave nobody to wait for */
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    add_unless_ignored(&set, SIGINT);
    add_unless_ignored(&set, SIGTERM);
    add_unless_ignored(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &crew->old_mask);
    crew->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return crew->signals < 0 ? -1 : 0;
}

int crew_open(struct crew *crew, const struct options *options)
{
    *crew = (struct crew){.options = options, .signals = -1};
    crew->files = (struct files){-1, -1};
    crew->lines = (struct lines){{-1, -1}, {-1, -1}, {-1, -1}};
    if (take_signals(crew))
        return complain(crew, "signalfd", strerror(errno));
    crew->board = board_new();
    if (!crew->board)
        return complain(crew, "shared memory", strerror(errno));
    if (lines_open(&crew->lines))
        return complain(crew, "pipe", strerror(errno));
    if (files_make(&crew->files, options->keep)) {
        crew->failed = true;
        return -1;
    }
    return note(crew, WITNESS_RUN, (struct who){0});
}

/* --- forking ------------------------------------------------------------------------------------
 */

static int child(struct crew *crew, unsigned number, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        return 1;
    sigprocmask(SIG_SETMASK, &crew->old_mask, NULL);
    line_close(&crew->signals);
    lines_keep_child(&crew->lines);
    struct process process = {
        .options = crew->options,
        .files = &crew->files,
        .board = crew->board,
        .lines = crew->lines,
        .number = number,
        .life = crew->members[number].life,
    };
    return process_run(&process);
}

/* The parent never opens a client: a process forks first and connects then. */
static int start(struct crew *crew, unsigned number)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return complain(crew, "fork", strerror(errno));
    if (pid == 0)
        _exit(child(crew, number, parent));
    crew->members[number].pid = pid;
    crew->running++;
    return 0;
}

int crew_start(struct crew *crew)
{
    for (int i = 0; i < crew->options->processes; i++) {
        if (start(crew, (unsigned)i))
            return -1;
    }
    uint64_t end = clock_us() + START_TIMEOUT_MS * UINT64_C(1000);
    while (crew->ready < crew->options->processes) {
        if (crew_turn(crew, TURN_MS))
            return -1;
        if (clock_us() > end)
            return complain(crew, "start", "not all processes got ready in time");
    }
    if (note(crew, WITNESS_START, (struct who){0}))
        return -1;
    line_close(&crew->lines.go[1]);
    crew->started = true;
    return 0;
}

/* --- news ---------------------------------------------------------------------------------------
 */

static void hear(struct crew *crew, const struct message *m)
{
    switch (m->kind) {
    case MESSAGE_READY:
        crew->ready++;
        break;
    case MESSAGE_STATION:
        crew->standing = true;
        crew->who = m->who;
        break;
    case MESSAGE_ODD:
        if (crew->odd++ < ODD_SHOWN)
            fprintf(stderr, "contention: process %u thread %u: %s\n", m->who.process, m->who.thread,
                    m->text);
        break;
    case MESSAGE_FAILED:
        if (!crew->failed) /* the others mostly have the same to say */
            fprintf(stderr, "contention: process %u: %s\n", m->who.process, m->text);
        crew->failed = true;
        break;
    }
}

static void hear_all(struct crew *crew)
{
    struct message m;
    struct pollfd fd = {.fd = crew->lines.news[0], .events = POLLIN};
    while (poll(&fd, 1, 0) > 0 && read(fd.fd, &m, sizeof m) == (ssize_t)sizeof m)
        hear(crew, &m);
}

static void buried(struct crew *crew, struct member *member, int status)
{
    unsigned number = (unsigned)(member - crew->members);
    member->pid = 0;
    crew->running--;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    note(crew, WITNESS_KILLED, (struct who){number, member->life, 0});
    hear_all(crew); /* its own words come first */
    if (!crew->failed)
        fprintf(stderr, "contention: process %u ended by itself, %s %d\n", number,
                WIFEXITED(status) ? "exit status" : "signal",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    crew->failed = true;
}

static void bury(struct crew *crew)
{
    for (int i = 0; i < crew->options->processes; i++) {
        struct member *member = &crew->members[i];
        int status;
        if (member->pid && waitpid(member->pid, &status, WNOHANG) == member->pid)
            buried(crew, member, status);
    }
}

static void hear_signals(struct crew *crew)
{
    struct signalfd_siginfo info;
    while (read(crew->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD)
            crew->signal = (int)info.ssi_signo;
    }
    bury(crew);
}

int crew_turn(struct crew *crew, int timeout_ms)
{
    struct pollfd fds[2] = {{.fd = crew->signals, .events = POLLIN},
                            {.fd = crew->lines.news[0], .events = POLLIN}};
    if (poll(fds, 2, timeout_ms) > 0) {
        hear_all(crew);
        if (fds[0].revents)
            hear_signals(crew);
    }
    return crew->failed || crew->signal ? -1 : 0;
}

/* --- ending -------------------------------------------------------------------------------------
 */

void crew_kill(struct crew *crew)
{
    for (int i = 0; i < crew->options->processes; i++) {
        struct member *member = &crew->members[i];
        if (!member->pid)
            continue;
        kill(member->pid, SIGKILL);
        waitpid(member->pid, NULL, 0);
        member->pid = 0;
        note(crew, WITNESS_KILLED, (struct who){(unsigned)i, member->life, 0});
    }
    crew->running = 0;
}

int crew_stop(struct crew *crew)
{
    if (note(crew, WITNESS_STOP, (struct who){0}))
        return -1;
    atomic_store(&crew->board->stop, true);
    line_close(&crew->lines.stop[1]);
    uint64_t end = clock_us() + STOP_TIMEOUT_MS * UINT64_C(1000) +
                   (uint64_t)crew->options->session_timeout_ms * 1000;
    while (crew->running) {
        if (crew_turn(crew, TURN_MS))
            return -1;
        if (clock_us() > end)
            return complain(crew, "end", "not all processes ended in time; they were killed");
    }
    return 0;
}

void crew_close(struct crew *crew)
{
    crew_kill(crew);
    lines_close(&crew->lines);
    files_close(&crew->files);
    if (crew->board)
        board_free(crew->board);
    line_close(&crew->signals);
    if (crew->signal)
        signal(crew->signal, SIG_DFL);
    sigprocmask(SIG_SETMASK, &crew->old_mask, NULL);
}

/* --- mischief -----------------------------------------------------------------------------------
 */

int crew_replace(struct crew *crew, unsigned number)
{
    struct member *member = &crew->members[number];
    if (!member->pid)
        return -1;
    kill(member->pid, SIGKILL);
    waitpid(member->pid, NULL, 0);
    member->pid = 0;
    crew->running--;
    /* Only now is it certain that it does nothing any more. */
    if (note(crew, WITNESS_KILLED, (struct who){number, member->life, 0}))
        return -1;
    member->life++;
    atomic_store(&crew->board->holding[number], 0);
    return start(crew, number);
}

int crew_pause(struct crew *crew, unsigned number)
{
    struct member *member = &crew->members[number];
    int status;
    if (!member->pid || kill(member->pid, SIGSTOP))
        return -1;
    if (waitpid(member->pid, &status, WUNTRACED) != member->pid)
        return -1;
    if (!WIFSTOPPED(status)) {
        buried(crew, member, status);
        return -1;
    }
    member->paused = true;
    return note(crew, WITNESS_PAUSED, (struct who){number, member->life, 0});
}

void crew_wake(struct crew *crew, unsigned number)
{
    struct member *member = &crew->members[number];
    if (!member->pid)
        return;
    member->paused = false;
    note(crew, WITNESS_WOKEN, (struct who){number, member->life, 0});
    kill(member->pid, SIGCONT);
}

uint64_t crew_updates_of(const struct crew *crew, unsigned number)
{
    return atomic_load(&crew->board->updates[number]);
}

uint64_t crew_updates(const struct crew *crew)
{
    uint64_t sum = 0;
    for (int i = 0; i < crew->options->processes; i++)
        sum += crew_updates_of(crew, (unsigned)i);
    return sum;
}
