/* SPDX-License-Identifier: Apache-2.0 */
/* work SHARED MS [WORD...]: the command that tests run under a lock. It works for MS milliseconds (0: for
 * ever), and notes that on the shared.
 *   stubborn   only SIGKILL ends it
 *   count      signals are noted on the shared, SIGTERM ends it with status 5
 *   hide       the work is done in a session of its own, by a child that is as stubborn */
#include "shared.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

enum { NAP_NS = 200000 };

static struct shared *shared;

static int64_t boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void note_signal(int number)
{
    atomic_fetch_add(&shared->signals[number], 1);
    if (number == SIGTERM)
        _exit(5);
}

static void handle_signals(void (*handler)(int))
{
    const int all[] = {SIGHUP,  SIGINT,    SIGQUIT,  SIGTERM, SIGUSR1,   SIGUSR2,
                       SIGCONT, SIGALRM,   SIGPROF,  SIGXCPU, SIGVTALRM, SIGIO,
                       SIGPWR,  SIGSTKFLT, SIGRTMIN, SIGRTMAX};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        signal(all[i], handler);
}

/* The kernel gives a file's lock back when its holder is dead, and not before. */
static void note_begin(const char *name)
{
    int fd = open(name, O_RDWR); /* closed by the end of the process */
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
        atomic_fetch_add(&shared->overlaps, 1);
    atomic_store(&shared->pid, getpid());
    atomic_fetch_add(&shared->begun, 1);
}

static void work(const char *name, int ms)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    int64_t end = ms ? boot_ns() + ms * INT64_C(1000000) : INT64_MAX;
    note_begin(name);
    for (int64_t now = boot_ns(); now < end; now = boot_ns()) {
        atomic_store(&shared->alive_ns, now);
        nanosleep(&nap, NULL);
    }
    atomic_fetch_add(&shared->done, 1);
}

int main(int argc, char **argv)
{
    bool hide = false;
    if (argc < 3 || !(shared = shared_map(argv[1])))
        return 99;
    for (int i = 3; i < argc; i++) {
        hide = hide || strcmp(argv[i], "hide") == 0;
        if (strcmp(argv[i], "stubborn") == 0)
            handle_signals(SIG_IGN);
        if (strcmp(argv[i], "count") == 0)
            handle_signals(note_signal);
    }
    if (hide && fork() != 0)
        return wait(NULL) < 0;
    if (hide)
        setsid();
    work(argv[1], atoi(argv[2]));
    return 0;
}
