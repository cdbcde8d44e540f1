/* SPDX-License-Identifier: Apache-2.0
 *
 * The keeper: the process that starts servers, and that ends them and removes their folder on
 * request, or when the process that made it has ended, in any way. It owns the servers, which are
 * its children, and their folder. It is a process with one thread; zkserver.c talks to it through
 * the calls of keeper.h, from one thread at a time. */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/syscalls.h"

#define ANSWER_MS 120000   /* an answer that takes longer means that the keeper is broken */
#define OWNER_PROBE_MS 100 /* without a pidfd: how often the keeper looks for its parent */
#define SOCKET_FD 3        /* where the keeper has its two descriptors */
#define OWNER_FD 4

enum keeper_op { OP_READY, OP_SPAWN, OP_SIGNAL, OP_LOOK, OP_END };

struct request {
    enum keeper_op op;
    size_t node;
    int sig;
};

struct answer {
    int rc; /* 0 or errno */
    struct keeper_state state;
};

struct keeper {
    pthread_mutex_t mu; /* one question at a time */
    int sock;
    pid_t pid;
    pid_t owner;
};

/* --- in the keeper: nothing but async-signal-safe calls, as the maker may have threads -------- */

/* Block nothing, handle nothing: what a program may expect when it is started. */
static void plain_signals(void)
{
    struct sigaction dfl;
    sigset_t none;

    memset(&dfl, 0, sizeof dfl);
    dfl.sa_handler = SIG_DFL;
    for (int sig = 1; sig < NSIG; sig++)
        sigaction(sig, &dfl, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The keeper outlives a Ctrl-C, a closed terminal and a "kill" meant for its maker's name. */
static void keeper_signals(void)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM, SIGTSTP};
    struct sigaction ign;

    plain_signals();
    memset(&ign, 0, sizeof ign);
    ign.sa_handler = SIG_IGN;
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        sigaction(ignored[i], &ign, NULL);
}

int keeper_remove_tree(const char *path)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        plain_signals();
        execl("/bin/rm", "rm", "-rf", "--", path, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return pid > 0 && status == 0 ? 0 : -1;
}

static void run_server(const struct keeper_plan *plan, size_t node, pid_t keeper)
{
    int log = open(plan->log[node], O_WRONLY | O_CREAT | O_APPEND, 0600);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper) /* it died before the line above */
        _exit(126);
    plain_signals();
    if (log < 0 || chdir(plan->dir) != 0)
        _exit(126);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    sys_close_from(SOCKET_FD);
    execv(plan->argv[node][0], plan->argv[node]);
    _exit(127);
}

static int spawn(const struct keeper_plan *plan, struct keeper_state *states, size_t node)
{
    pid_t keeper = getpid();
    pid_t pid;

    if (states[node].running)
        return EBUSY;
    pid = fork();
    if (pid < 0)
        return errno;
    if (pid == 0)
        run_server(plan, node, keeper);
    states[node] = (struct keeper_state){true, pid, 0};
    return 0;
}

/* Take note of a death. With WUNTRACED a stop ends the wait too. */
static void look(struct keeper_state *state, int options)
{
    int status = 0;
    pid_t got;

    if (!state->running)
        return;
    do
        got = waitpid(state->pid, &status, options);
    while (got < 0 && errno == EINTR);
    if (got == state->pid && !WIFSTOPPED(status)) {
        state->running = false;
        state->status = status;
    }
}

static int signal_server(struct keeper_state *state, int sig)
{
    look(state, WNOHANG);
    if (!state->running)
        return ESRCH;
    if (kill(state->pid, sig) != 0)
        return errno;
    if (sig == SIGKILL) /* also ends a stopped process */
        look(state, 0);
    else if (sig == SIGSTOP)
        look(state, WUNTRACED);
    return 0;
}

static int carry_out(const struct keeper_plan *plan, struct keeper_state *states,
                     const struct request *r)
{
    if (r->op == OP_END)
        return 0;
    if (r->node >= plan->nodes)
        return EINVAL;
    look(&states[r->node], WNOHANG);
    if (r->op == OP_SPAWN)
        return spawn(plan, states, r->node);
    if (r->op == OP_SIGNAL)
        return signal_server(&states[r->node], r->sig);
    return 0;
}

static void finish(const struct keeper_plan *plan, struct keeper_state *states)
{
    for (size_t i = 0; i < plan->nodes; i++)
        signal_server(&states[i], SIGKILL);
    if (!plan->keep_dir)
        keeper_remove_tree(plan->dir);
}

/* Wait for the next request. False: there will be none, the maker has ended. */
static bool next_request(bool have_pidfd, pid_t owner, struct request *r)
{
    for (;;) {
        struct pollfd fds[2] = {{SOCKET_FD, POLLIN, 0}, {have_pidfd ? OWNER_FD : -1, POLLIN, 0}};
        int n = poll(fds, 2, have_pidfd ? -1 : OWNER_PROBE_MS);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0 && fds[1].revents != 0)
            return false;
        if (n > 0 && fds[0].revents != 0)
            return read(SOCKET_FD, r, sizeof *r) == (ssize_t)sizeof *r;
        if (getppid() != owner)
            return false;
    }
}

static void send_answer(int rc, const struct keeper_state *state)
{
    struct answer a;

    memset(&a, 0, sizeof a);
    a.rc = rc;
    if (state != NULL)
        a.state = *state;
    if (send(SOCKET_FD, &a, sizeof a, MSG_NOSIGNAL) < 0) {
        /* No process reads the answer: the next read says so. */
    }
}

static void serve(const struct keeper_plan *plan, bool have_pidfd, pid_t owner)
{
    struct keeper_state states[KEEPER_NODES_MAX];
    struct request r = {OP_READY, 0, 0};

    memset(states, 0, sizeof states);
    if (mkdir(plan->dir, 0700) != 0) {
        send_answer(errno, NULL);
        return;
    }
    send_answer(0, NULL);
    while (next_request(have_pidfd, owner, &r) && r.op != OP_END) {
        int rc = carry_out(plan, states, &r);
        send_answer(rc, r.node < plan->nodes ? &states[r.node] : NULL);
    }
    finish(plan, states);
    if (r.op == OP_END)
        send_answer(0, NULL);
}

/* Keep no descriptor of the maker open: a reader of its output must see its end. */
static bool take_descriptors(int sock, int owner_fd)
{
    int null = open("/dev/null", O_RDWR);
    int s = fcntl(sock, F_DUPFD, 16);
    int o = owner_fd < 0 ? -1 : fcntl(owner_fd, F_DUPFD, 16);

    if (null < 0 || s < 0 || (owner_fd >= 0 && o < 0))
        return false;
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    dup2(s, SOCKET_FD);
    if (o >= 0)
        dup2(o, OWNER_FD);
    sys_close_from(o >= 0 ? OWNER_FD + 1 : SOCKET_FD + 1);
    return true;
}

static void keeper_main(const struct keeper_plan *plan, int sock, int owner_fd, pid_t owner)
{
    keeper_signals();
    setsid();
    prctl(PR_SET_NAME, "zk-keeper");
    if (take_descriptors(sock, owner_fd) && chdir("/") == 0)
        serve(plan, owner_fd >= 0, owner);
    _exit(0);
}

/* --- in the maker ----------------------------------------------------------------------------- */

static int receive(struct keeper *k, struct answer *a)
{
    struct pollfd p = {k->sock, POLLIN, 0};
    int n;

    do
        n = poll(&p, 1, ANSWER_MS);
    while (n < 0 && errno == EINTR);
    if (n == 1 && read(k->sock, a, sizeof *a) == (ssize_t)sizeof *a)
        return a->rc;
    return EPIPE;
}

static int ask(struct keeper *k, const struct request *r, struct answer *a)
{
    int rc = EPIPE;

    if (getpid() != k->owner)
        return EPERM;
    pthread_mutex_lock(&k->mu);
    if (send(k->sock, r, sizeof *r, MSG_NOSIGNAL) == (ssize_t)sizeof *r)
        rc = receive(k, a);
    pthread_mutex_unlock(&k->mu);
    return rc;
}

static int ask_simply(struct keeper *k, enum keeper_op op, size_t node, int sig)
{
    struct request r;
    struct answer a;

    memset(&r, 0, sizeof r);
    r.op = op;
    r.node = node;
    r.sig = sig;
    return ask(k, &r, &a) == 0 ? 0 : -1;
}

/* Fork the keeper with all signals blocked: it would run the maker's handlers otherwise. */
static pid_t fork_keeper(const struct keeper_plan *plan, int sock, pid_t owner)
{
    int owner_fd = sys_pidfd_open(owner); /* -1 on old kernels and under valgrind */
    sigset_t all, old;
    pid_t pid;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = fork();
    if (pid == 0)
        keeper_main(plan, sock, owner_fd, owner);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (owner_fd >= 0)
        close(owner_fd);
    return pid;
}

static void reap(pid_t pid)
{
    /* ECHILD: a wait for any child, elsewhere in this program, was faster. */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static int launch(struct keeper *k, const struct keeper_plan *plan)
{
    int pair[2];
    struct answer a;
    int rc;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return errno;
    k->sock = pair[0];
    k->pid = fork_keeper(plan, pair[1], k->owner);
    rc = k->pid < 0 ? errno : 0;
    close(pair[1]);
    if (rc == 0 && (rc = receive(k, &a)) != 0)
        reap(k->pid);
    if (rc != 0)
        close(k->sock);
    return rc;
}

int keeper_start(struct keeper **keeper, const struct keeper_plan *plan)
{
    struct keeper *k = calloc(1, sizeof *k);
    int rc;

    if (k == NULL)
        return -1;
    k->owner = getpid();
    rc = launch(k, plan);
    if (rc != 0) {
        free(k);
        errno = rc;
        return -1;
    }
    pthread_mutex_init(&k->mu, NULL);
    *keeper = k;
    return 0;
}

int keeper_spawn(struct keeper *keeper, size_t node)
{
    return ask_simply(keeper, OP_SPAWN, node, 0);
}

int keeper_signal(struct keeper *keeper, size_t node, int sig)
{
    return ask_simply(keeper, OP_SIGNAL, node, sig);
}

int keeper_look(struct keeper *keeper, size_t node, struct keeper_state *state)
{
    struct request r;
    struct answer a;

    memset(&r, 0, sizeof r);
    r.op = OP_LOOK;
    r.node = node;
    if (ask(keeper, &r, &a) != 0)
        return -1;
    *state = a.state;
    return 0;
}

int keeper_end(struct keeper *keeper)
{
    int rc = ask_simply(keeper, OP_END, 0, 0);

    if (getpid() == keeper->owner) {
        close(keeper->sock); /* should the keeper not have understood, this ends it too */
        reap(keeper->pid);
    }
    pthread_mutex_destroy(&keeper->mu);
    free(keeper);
    return rc;
}
