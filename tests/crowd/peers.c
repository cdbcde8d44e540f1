/* SPDX-License-Identifier: Apache-2.0 */
#include "peers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define END_MS 60000
#define WORKERS_MAX 96
#define PEERS_MAX 8

struct worker {
    char name[8];
    bool busy, answered;
    char text[2000];
};

struct peer {
    const char *name; /* NULL: never started */
    pid_t pid;        /* 0: does not run */
    int in, out;
    char line[2100];
    size_t length;
};

static struct peer peers[PEERS_MAX];
static struct worker workers[WORKERS_MAX];
static char log_folder[512];
static char
    ended[60]; /* the first one that ended by itself, or not well, as a sentence; "": none */

#define each_peer(p) for (struct peer *p = peers; p < peers + PEERS_MAX; p++)

/* The peer of a worker; NULL: there is none. */
static struct peer *peer_of(const char *worker)
{
    each_peer(p) {
        if (p->name != NULL && strncmp(p->name, worker, strlen(p->name)) == 0)
            return p;
    }
    return NULL;
}

/* --- processes -------------------------------------------------------------------------------- */

/* What it writes on standard error, for a test that fails. */
static void log_path(char *path, size_t size, const struct peer *p)
{
    snprintf(path, size, "%s/peer-%s.log", log_folder, p->name);
}

static _Noreturn void become(const struct peer *p, const char *const *command, int in, int out)
{
    char log[600];

    log_path(log, sizeof log, p);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(open(log, O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
    if (chdir(log_folder) == 0)
        execvp(command[0], (char *const *)command);
    _exit(127);
}

static int spawn(struct peer *p, const char *const *command)
{
    int in[2], out[2];
    pid_t self = getpid();

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves nobody behind */
        if (getppid() != self)
            _exit(126);
        become(p, command, in[0], out[1]);
    }
    close(in[0]);
    close(out[1]);
    *p = (struct peer){.name = p->name, .pid = pid, .in = in[1], .out = out[0]};
    return pid < 0 ? -1 : 0;
}

void peers_print_logs(void)
{
    char line[600];

    each_peer(p) {
        if (p->name == NULL)
            continue;
        log_path(line, sizeof line, p);
        FILE *f = fopen(line, "re");
        while (f != NULL && fgets(line, sizeof line, f) != NULL)
            fprintf(stderr, "peer %s: %s", p->name, line);
        if (f != NULL)
            fclose(f);
    }
}

/* Waits for its end, and forgets its workers. */
static void bury(struct peer *p, bool killed)
{
    int status = 0;

    if (killed) /* before it sees that its input ends */
        kill(p->pid, SIGKILL);
    close(p->in);
    close(p->out);
    waitpid(p->pid, &status, 0);
    if (!killed && (p->in >= 0 || status != 0) && ended[0] == '\0')
        snprintf(ended, sizeof ended, "peer %s has ended, with status %#x", p->name,
                 (unsigned)status);
    p->pid = 0;
    for (size_t w = 0; w < WORKERS_MAX; w++) {
        if (peer_of(workers[w].name) == p)
            workers[w] = (struct worker){.name = ""};
    }
}

/* --- lines ------------------------------------------------------------------------------------ */

static struct worker *worker_named(const char *name, size_t length)
{
    struct worker *w = NULL;

    for (size_t i = 0; i < WORKERS_MAX; i++) {
        if (strlen(workers[i].name) == length && strncmp(workers[i].name, name, length) == 0)
            return &workers[i];
        if (workers[i].name[0] == '\0')
            w = &workers[i];
    }
    if (w == NULL || length >= sizeof w->name)
        fail_msg("too many workers, or the name is too long: %.20s", name);
    memcpy(w->name, name, length);
    return w;
}

static void take_line(const char *line)
{
    size_t length = strcspn(line, " ");

    if (strcmp(line, "ready") == 0)
        return;
    struct worker *w = worker_named(line, length);
    snprintf(w->text, sizeof w->text, "%s", line[length] == ' ' ? line + length + 1 : "");
    w->answered = true;
    w->busy = false;
}

/* False: it has ended. */
static bool take_output(struct peer *peer)
{
    char bytes[1000];
    ssize_t n = read(peer->out, bytes, sizeof bytes);

    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] != '\n' && peer->length < sizeof peer->line - 1) {
            peer->line[peer->length++] = bytes[i];
            continue;
        }
        peer->line[peer->length] = '\0';
        peer->length = 0;
        take_line(peer->line);
    }
    return n > 0;
}

void peers_listen(int ms)
{
    struct pollfd fds[PEERS_MAX];

    for (size_t i = 0; i < PEERS_MAX; i++)
        fds[i] = (struct pollfd){.fd = peers[i].pid > 0 ? peers[i].out : -1, .events = POLLIN};
    if (poll(fds, PEERS_MAX, ms) <= 0)
        return;
    for (size_t i = 0; i < PEERS_MAX; i++) {
        if (fds[i].revents != 0 && !take_output(&peers[i]))
            bury(&peers[i], false);
    }
}

/* --- all of them ------------------------------------------------------------------------------ */

static struct peer *free_place(void)
{
    each_peer(p) {
        if (p->name == NULL)
            return p;
    }
    fail_msg("more than %d peers", PEERS_MAX);
    return NULL;
}

int peer_start(const char *name, const char *const *command, const char *folder, char *why,
               size_t size)
{
    struct peer *p = peer_of(name);

    snprintf(log_folder, sizeof log_folder, "%s", folder);
    if (p == NULL)
        p = free_place();
    p->name = name;
    if (p->pid != 0 || spawn(p, command) == 0)
        return 0;
    snprintf(why, size, "no peer can be started: %s", strerror(errno));
    return -1;
}

int peer_pid(const char *name)
{
    return peer_of(name)->pid;
}

int peer_entries(const char *name, const char *folder)
{
    char path[64];
    int n = -2; /* "." and ".." */

    snprintf(path, sizeof path, "/proc/%d/%s", peer_pid(name), folder);
    DIR *dir = opendir(path);
    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        closedir(dir);
    return n;
}

bool peers_at_work(void)
{
    bool busy = false;

    for (size_t w = 0; w < WORKERS_MAX; w++)
        busy |= workers[w].busy;
    return busy;
}

const char *peers_fault(void)
{
    static char fault[600];

    for (size_t w = 0; w < WORKERS_MAX; w++) {
        struct worker *of = &workers[w];
        if (of->answered && strncmp(of->text, "ok", 2) != 0) {
            snprintf(fault, sizeof fault, "%s: %.500s", of->name, of->text);
            return fault;
        }
    }
    return ended[0] != '\0' ? ended : NULL;
}

void peer_kill(const char *name)
{
    if (peer_pid(name) > 0)
        bury(peer_of(name), true);
}

static void peers_kill(void)
{
    each_peer(p) {
        if (p->pid > 0)
            bury(p, true);
    }
}

static bool some_run(void)
{
    bool run = false;

    each_peer(p)
        run = run || p->pid > 0;
    return run;
}

bool peers_stop(void)
{
    int64_t end_ms = net_now_ms() + END_MS;

    each_peer(p) {
        if (p->pid > 0)
            close(p->in);
        p->in = -1;
    }
    while (some_run() && net_now_ms() < end_ms)
        peers_listen(100);
    bool all = !some_run();
    peers_kill();
    each_peer(p)
        p->name = NULL;
    return all && ended[0] == '\0';
}

/* --- questions and answers -------------------------------------------------------------------- */

static struct worker *say_line(const char *line)
{
    struct peer *peer = peer_of(line);
    size_t length = strlen(line);

    assert_non_null(peer);
    struct worker *w = worker_named(line, strcspn(line, " "));
    if (w->busy)
        fail_msg("%s has not answered yet: %s", w->name, line);
    w->busy = true;
    w->answered = false;
    if (peer->pid == 0 || write(peer->in, line, length) != (ssize_t)length)
        fail_msg("the peer has ended: %s", line);
    return w;
}

static struct worker *say_args(const char *format, va_list args)
    __attribute__((format(printf, 1, 0)));

static struct worker *say_args(const char *format, va_list args)
{
    char line[512];

    int n = vsnprintf(line, sizeof line - 1, format, args);
    check_num(n, <, (int)sizeof line - 1);
    strcat(line, "\n");
    return say_line(line);
}

void say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say_args(format, args);
    va_end(args);
}

const char *answer_within(const char *worker, int ms)
{
    int64_t end_ms = net_now_ms() + ms;
    struct worker *w = worker_named(worker, strlen(worker));

    while (w->busy && net_now_ms() < end_ms)
        peers_listen((int)(end_ms - net_now_ms()));
    bool answered = w->answered;
    w->answered = false;
    return answered ? w->text : NULL;
}

const char *answer(const char *worker)
{
    const char *text = answer_within(worker, ANSWER_MS);

    if (text == NULL) {
        peers_print_logs();
        fail_msg("no answer of %s", worker);
    }
    return text;
}

const char *ask(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    struct worker *w = say_args(format, args);
    va_end(args);
    return answer(w->name);
}
