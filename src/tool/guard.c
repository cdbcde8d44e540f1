/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that ends the command in time, whatever becomes of zklock: parent of the command and
 * adoptive parent of all that descends from it. guard.h has the protocol. It owns the command's
 * processes, and no connection to ZooKeeper. A process with one thread; job.c starts it, before any
 * thread of the library exists. */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "exits.h"
#include "family.h"
#include "launch.h"
#include "signals.h"
#include "syscalls.h"

enum {
    LOST_GRACE_MS = 500, /* between SIGTERM and SIGKILL of a lock that is lost already */
    /* how often the guard looks for processes that an ended command left in its group */
    LEFTOVER_LOOK_MS = 100
};

struct guard {
    int socket, children, timer; /* descriptors */
    pid_t zklock, command;       /* the latter is its group's number as well */
    int64_t window_end_ns, timeout_ns;
    int64_t kill_at_ns; /* SIGTERM was sent; 0: not yet */
    enum ending ending;
    bool running; /* the command itself; others of its group may be left */
    int status;   /* of the command, as waitpid said it */
};

/* --- times --------------------------------------------------------------- */

/* At least three eighths of a timeout are left of a window that is renewed in time. A leader's
 * election takes some of that; when an eighth is left, something is wrong. The last sixteenth is
 * for the delivery of a SIGKILL on a busy machine. */
static int64_t term_at_ns(const struct guard *g)
{
    return g->window_end_ns - g->timeout_ns / 8;
}

static int64_t last_moment_ns(const struct guard *g)
{
    return g->window_end_ns - g->timeout_ns / 16;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When there is something to do, or 0: nothing was granted yet. */
static int64_t due_ns(const struct guard *g)
{
    if (g->kill_at_ns)
        return g->kill_at_ns;
    return g->window_end_ns ? term_at_ns(g) : 0;
}

static void set_timer(const struct guard *g)
{
    int64_t due = due_ns(g);
    struct itimerspec at = {.it_value = {.tv_sec = due / SECOND_NS, .tv_nsec = due % SECOND_NS}};
    timerfd_settime(g->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* --- reports ------------------------------------------------------------- */

/* Sends nothing to a zklock that has ended, or that is stopped and has a full socket. */
static void report(const struct guard *g, struct report report)
{
    send(g->socket, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void report_gone(const struct guard *g)
{
    struct report gone = {.kind = REPORT_GONE,
                          .value = g->status,
                          .ending = g->ending,
                          .spare_ns = g->window_end_ns - boot_ns()};
    send(g->socket, &gone, sizeof gone, MSG_NOSIGNAL);
}

/* --- the end ------------------------------------------------------------- */

static void end_now(struct guard *g)
{
    family_kill(g->command, g->command, &g->status);
    report_gone(g);
    _exit(EXIT_DONE);
}

/* SIGTERM first, and SIGCONT, as a stopped process receives no SIGTERM. */
static void end(struct guard *g, enum ending ending)
{
    int64_t grace_end = boot_ns() + LOST_GRACE_MS * MS_NS;
    if (g->kill_at_ns)
        return;
    g->ending = ending;
    g->kill_at_ns = g->window_end_ns ? last_moment_ns(g) : grace_end;
    if (ending == ENDING_LOST)
        g->kill_at_ns = earlier(g->kill_at_ns, grace_end);
    family_signal(g->command, SIGTERM);
    family_signal(g->command, SIGCONT);
    report(g, (struct report){.kind = REPORT_ENDING, .ending = ending});
}

static void on_time(struct guard *g)
{
    int64_t now = boot_ns();
    if (due_ns(g) == 0 || now < due_ns(g))
        return;
    end(g, ENDING_UNPROVED);
    if (now >= g->kill_at_ns)
        end_now(g);
}

/* --- what comes in ------------------------------------------------------- */

/* A later window also puts a SIGKILL off, so that a command that is about to end may go on with it.
 * An earlier one comes with a server that announced a smaller timeout. */
static void on_window(struct guard *g, const struct order *order)
{
    if (g->ending == ENDING_LOST)
        return;
    g->window_end_ns = order->time_ns;
    g->timeout_ns = order->timeout_ns;
    if (g->kill_at_ns)
        g->kill_at_ns = last_moment_ns(g);
}

static void on_zklock_gone(struct guard *g)
{
    if (g->window_end_ns == 0)
        end_now(g);
    close(g->socket);
    g->socket = -1;
    end(g, ENDING_ABANDONED);
}

static void on_order(struct guard *g)
{
    struct order order;
    ssize_t n = recv(g->socket, &order, sizeof order, 0);
    if (n < 0 && errno == EINTR)
        return;
    if (n != sizeof order)
        on_zklock_gone(g);
    else if (order.kind == ORDER_WINDOW)
        on_window(g, &order);
    else if (order.kind == ORDER_LOST)
        end(g, ENDING_LOST);
}

static void on_command(struct guard *g, int status)
{
    if (WIFSTOPPED(status)) {
        report(g, (struct report){.kind = REPORT_STOPPED, .value = WSTOPSIG(status)});
    } else {
        g->running = false;
        g->status = status;
    }
}

static void on_children(struct guard *g)
{
    int status;
    pid_t pid;
    signals_drain(g->children);
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid == g->command)
            on_command(g, status);
    }
}

/* The lock is kept for all that the command leaves in its group. What has left the group too was
 * meant to live on, but not when the lock is lost. */
static bool is_over(const struct guard *g)
{
    if (g->running)
        return false;
    if (g->kill_at_ns) {
        int status;
        return waitpid(-1, &status, WNOHANG) < 0;
    }
    return !family_in_group(g->command, g->zklock);
}

/* --- the process --------------------------------------------------------- */

static void watch(struct guard *g)
{
    for (on_children(g); !is_over(g); on_children(g)) {
        struct pollfd from[] = {{.fd = g->socket, .events = POLLIN},
                                {.fd = g->children, .events = POLLIN},
                                {.fd = g->timer, .events = POLLIN}};
        set_timer(g);
        if (poll(from, 3, g->running ? -1 : LEFTOVER_LOOK_MS) < 0)
            continue;
        on_time(g);
        if (from[0].revents)
            on_order(g);
    }
    report_gone(g);
}

/* The child before it waits. Parent and child both set its group, as either may come first. */
static pid_t start_command(int socket, int go, char **argv)
{
    pid_t pid = fork();
    if (pid == 0) {
        close(socket);
        setpgid(0, 0);
        launch(go, argv);
    }
    if (pid > 0)
        setpgid(pid, pid);
    close(go);
    return pid;
}

/* Nothing that a caller waits for, locks or wants to unmount is kept open or in use. */
static void let_go_of_all(int socket)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    dup2(socket, 3);
    sys_close_from(4);
    if (chdir("/") != 0)
        return; /* then the folder stays in use */
}

void guard_run(int socket, int go, char **argv)
{
    struct guard g = {.zklock = getppid(), .running = true};
    prctl(PR_SET_NAME, "zklock-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    g.command = start_command(socket, go, argv);
    if (g.command < 0)
        _exit(EXIT_SYSTEM);
    setsid();
    let_go_of_all(socket);
    g.socket = 3;
    /* The guard ignores all other signals: a user that ends every process called zklock must end
     * zklock, which ends the rest. */
    g.children = signals_open_children();
    g.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (g.children < 0 || g.timer < 0)
        _exit(EXIT_SYSTEM); /* and the child with it */
    report(&g, (struct report){.kind = REPORT_READY, .value = g.command});
    watch(&g);
    _exit(EXIT_DONE);
}
