/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals to zklock run. While it waits for its lock, a signal that would end it sets the cancel
 * object, so that it first gives up its place in the queue. With the lock it blocks all signals and
 * reads them from descriptors: those that came before the command began still end zklock, later
 * ones are passed on to the command. One variable keeps the caught signal. The handler writes it,
 * or the one thread that reads the descriptors once the handler runs no more. run.c, job.c and the
 * guard call this file. */
#include "signals.h"

#include <stddef.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <zklock/zklock.h>

static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                                SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH};

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

/* The next one's number, or 0. */
static int read_one(int fd)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

void signals_drain(int fd)
{
    while (read_one(fd) != 0) {
    }
}

/* --- of zklock run ------------------------------------------------------- */

static bool ends_us(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void on_broken_pipe(int number)
{
    (void)number;
}

/* A handler, as that is not passed on to the command: it gets the signal's default. */
void signals_survive_broken_pipes(void)
{
    struct sigaction action = {.sa_handler = on_broken_pipe, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (!is_ignored(SIGPIPE))
        sigaction(SIGPIPE, &action, NULL);
}

/* The signals that are passed on: all, or only those that end us. */
static sigset_t not_ignored(bool all)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++) {
        if ((all || ends_us(passed_on[i])) && !is_ignored(passed_on[i]))
            sigaddset(&set, passed_on[i]);
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
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t ending = not_ignored(false);
    sigemptyset(&action.sa_mask);
    cancelled = cancel;
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++) {
        if (sigismember(&ending, passed_on[i]))
            sigaction(passed_on[i], &action, NULL);
    }
}

void signals_hold_back(void)
{
    sigset_t set = not_ignored(true);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    cancelled = NULL; /* the handler runs no more: its owner may free it */
}

bool signals_open(struct signals *signals)
{
    sigset_t all = not_ignored(true), ending = not_ignored(false);
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
        if (ends_us(number))
            caught = number;
        stop = stop || number == SIGTSTP;
        go_on = go_on || number == SIGCONT;
    }
    return stop && !go_on;
}

int signals_next(const struct signals *signals)
{
    return read_one(signals->passed_on);
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
