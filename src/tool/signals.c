/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals to the programs. Those that end a program end ours, from the first line of main on. zklock
 * run is different: while it waits for its lock, a signal that would end it sets the cancel
 * object, so that it first gives up its place in the queue. With the lock it blocks the others, and,
 * as soon as the run is recorded, all. It reads them from descriptors: those that came before the
 * command began still end zklock, later ones are passed on to the command. One variable keeps the
 * caught signal. The handler writes it, or the one thread that reads the descriptors once the
 * handler runs no more. main.c, run.c, job.c, the anchor and the guard call this file. */
#include "signals.h"

#include <stddef.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <zklock/zklock.h>

/* What a process is told of itself, and what nothing can catch. */
static const int not_passed_on[] = {SIGILL,  SIGTRAP, SIGABRT, SIGBUS,  SIGFPE,
                                    SIGSEGV, SIGSYS,  SIGPIPE, SIGXFSZ, SIGCHLD,
                                    SIGURG,  SIGTTIN, SIGTTOU, SIGKILL, SIGSTOP};

/* Twice is the same as once. The others end a process that does not catch them. */
static const int idempotent[] = {SIGCONT, SIGTSTP, SIGWINCH};

static struct zkl_cancel *volatile cancelled;
static volatile sig_atomic_t caught;

/* --- of the calling thread ----------------------------------------------- */

void signals_block_all(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

static sigset_t only(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return set;
}

void signals_block(int number, sigset_t *before)
{
    sigset_t set = only(number);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

void signals_restore(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void unblock(int number)
{
    sigset_t set = only(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* --- of a process that lives until a signal ends it ---------------------- */

static sigset_t ends(void)
{
    sigset_t set = only(SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

void signals_block_ends(void)
{
    sigset_t set = ends();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

bool signals_end_within(int ms)
{
    sigset_t set = ends();
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    return sigtimedwait(&set, NULL, &time) >= 0;
}

/* --- of a parent --------------------------------------------------------- */

void signals_hear_children(void)
{
    signal(SIGCHLD, SIG_DFL);
}

static int open_set(const sigset_t *set)
{
    return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_open_children(void)
{
    sigset_t set = only(SIGCHLD);
    signals_block_all(NULL);
    return open_set(&set);
}

bool signals_read(int fd, struct sent *sent)
{
    struct signalfd_siginfo info;
    if (read(fd, &info, sizeof info) != sizeof info)
        return false;
    *sent = (struct sent){.number = (int)info.ssi_signo,
                          .sender = (pid_t)info.ssi_pid,
                          .by_kernel = info.ssi_code == SI_KERNEL};
    return true;
}

/* The next one's number, or 0. */
static int read_one(int fd)
{
    struct sent sent;
    return signals_read(fd, &sent) ? sent.number : 0;
}

void signals_drain(int fd)
{
    while (read_one(fd) != 0) {
    }
}

/* --- of zklock run ------------------------------------------------------- */

static bool is_one_of(int number, const int *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (numbers[i] == number)
            return true;
    }
    return false;
}

bool signals_count(int number)
{
    return !is_one_of(number, idempotent, sizeof idempotent / sizeof idempotent[0]);
}

/* SIGUSR1 and SIGUSR2 are for the command, which can't have them yet. They are dropped. */
static bool ends_early(int number)
{
    return signals_count(number) && number != SIGUSR1 && number != SIGUSR2;
}

static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void on_failed_write(int number)
{
    (void)number;
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    if (!is_ignored(number))
        sigaction(number, &action, NULL);
}

/* A handler, as that is not passed on to the command: it gets the signal's default. */
void signals_survive_failed_writes(void)
{
    handle(SIGPIPE, on_failed_write, SA_RESTART);
    handle(SIGXFSZ, on_failed_write, SA_RESTART);
}

static bool any(int number)
{
    return number > 0;
}

/* The signals that are passed on, as far as that is true of them. */
static sigset_t not_ignored(bool (*is_wanted)(int number))
{
    sigset_t set;
    sigfillset(&set);
    for (int number = 1; number < NSIG; number++) {
        if (is_one_of(number, not_passed_on, sizeof not_passed_on / sizeof not_passed_on[0]) ||
            !is_wanted(number) || is_ignored(number))
            sigdelset(&set, number);
    }
    return set;
}

static void on_signal(int number)
{
    caught = number;
    zkl_cancel_set(cancelled);
}

void signals_catch(struct zkl_cancel *cancel)
{
    sigset_t ending = not_ignored(signals_count);
    cancelled = cancel;
    for (int number = 1; number < NSIG; number++) {
        if (sigismember(&ending, number) == 1)
            handle(number, on_signal, 0);
    }
}

static bool is_for_command(int number)
{
    return !ends_early(number);
}

void signals_hold_back(bool also_ending)
{
    sigset_t set = not_ignored(also_ending ? any : is_for_command);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (also_ending)
        cancelled = NULL; /* the handler runs no more: its owner may free it */
}

bool signals_open(struct signals *signals)
{
    sigset_t all = not_ignored(any), ending = not_ignored(ends_early);
    signals->passed_on = open_set(&all);
    signals->ending = open_set(&ending);
    return signals->passed_on >= 0 && signals->ending >= 0;
}

int signals_caught(void)
{
    return caught;
}

int signals_catch_now(const struct signals *signals)
{
    if (!caught)
        caught = read_one(signals->ending);
    return caught;
}

bool signals_take_early(const struct signals *signals)
{
    bool stop = false, go_on = false;
    for (int number; (number = read_one(signals->passed_on)) != 0;) {
        if (ends_early(number))
            caught = number;
        stop = stop || number == SIGTSTP;
        go_on = go_on || number == SIGCONT;
    }
    return stop && !go_on;
}

int signals_open_counted(void)
{
    sigset_t counted = not_ignored(signals_count);
    signals_block_all(NULL);
    return open_set(&counted);
}

void signals_stop_group(void)
{
    sigset_t before;
    kill(0, SIGTSTP);
    unblock(SIGTSTP); /* stops here */
    signals_block(SIGTSTP, &before);
}

void signals_die_by(int number)
{
    prctl(PR_SET_DUMPABLE, 0);
    signal(number, SIG_DFL);
    raise(number);
    unblock(number);
    _exit(128 + number); /* a signal that ends no process by default */
}

/* --- of each program ------------------------------------------------------ */

void signals_end_us(void)
{
    handle(SIGHUP, signals_die_by, 0);
    handle(SIGINT, signals_die_by, 0);
    handle(SIGQUIT, signals_die_by, 0);
    handle(SIGTERM, signals_die_by, 0);
}
