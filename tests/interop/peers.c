/* SPDX-License-Identifier: Apache-2.0 */
#include "peers.h"

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

#define JARS "/usr/share/java/"
#define CLASS_PATH                                                                                 \
    JARS "curator-recipes.jar:" JARS "curator-framework.jar:" JARS "curator-client.jar:" JARS      \
         "zookeeper.jar:" JARS "slf4j-simple.jar"
#define START_MS 180000
#define END_MS 60000
#define WORKERS_MAX 16

struct worker {
    char name[8];
    bool busy, answered;
    char text[2000];
};

struct peer {
    pid_t pid; /* 0: does not run */
    int in, out;
    bool ready;
    char line[2100];
    size_t length;
};

static const char letters[] = "cjkg";
#define PEERS (sizeof letters - 1)
static struct peer peers[PEERS];
static struct worker workers[WORKERS_MAX];
static char *log_folder;
static const char *python; /* one that has Kazoo */
static bool has_go;        /* go-zookeeper, which the others do without */

/* --- what is installed ------------------------------------------------------------------------ */

static bool runs(const char *command)
{
    return system(command) == 0;
}

/* The first in PATH need not be the one that Debian's packages are for. */
static const char *find_python(void)
{
    if (runs("python3 -c 'import kazoo.client' 2>/dev/null"))
        return "python3";
    if (runs("/usr/bin/python3 -c 'import kazoo.client' 2>/dev/null"))
        return "/usr/bin/python3";
    return NULL;
}

bool peers_available(char *why, size_t size)
{
    const char *missing = NULL;

    if (!runs("command -v javac >/dev/null"))
        missing = "there is no javac in PATH: apt-get install default-jdk-headless";
    else if (access(JARS "curator-recipes.jar", R_OK) != 0)
        missing = "there is no Curator: apt-get install libcurator-recipes-java";
    else if ((python = find_python()) == NULL)
        missing = "there is no Kazoo: apt-get install python3-kazoo";
    if (missing != NULL)
        snprintf(why, size, "%s", missing);
    return missing == NULL;
}

static bool is_newer(const char *one, const char *other)
{
    struct stat a, b;

    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_mtime >= b.st_mtime;
}

/* The classes lie in the build folder; they are made anew when the source has changed. */
static int compile_java(char *why, size_t size)
{
    if (is_newer(INTEROP_CLASSES "/Peer.class", INTEROP_JAVA) ||
        runs("javac -J-Xmx128m -J-XX:+UseSerialGC -J-XX:-UsePerfData -Xlint:all,-path "
             "-cp " CLASS_PATH " -d '" INTEROP_CLASSES "' '" INTEROP_JAVA "' >&2"))
        return 0;
    snprintf(why, size, "javac refuses " INTEROP_JAVA);
    return -1;
}

/* Compiles the peer where Go and go-zookeeper are installed. */
static int compile_go(char *why, size_t size)
{
    int status = system("sh '" INTEROP_GO_SH "' '" INTEROP_GO_SOURCE "' '" INTEROP_GO "' >&2");

    has_go = status == 0;
    if (has_go || (WIFEXITED(status) && WEXITSTATUS(status) == 77))
        return 0;
    snprintf(why, size, "go refuses " INTEROP_GO_SOURCE);
    return -1;
}

/* --- processes -------------------------------------------------------------------------------- */

static void run_peer(size_t i, const char *servers, const char *journal)
{
    if (chdir(log_folder) != 0)
        _exit(126);
    switch (letters[i]) {
    case 'c':
        execl(INTEROP_C, INTEROP_C, servers, journal, (char *)NULL);
        break;
    case 'j':
        execlp("java", "java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               "-XX:-UsePerfData", "-Djava.io.tmpdir=.", "-XX:ErrorFile=hs_err.log",
               "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
               INTEROP_CLASSES ":" CLASS_PATH, "Peer", servers, journal, (char *)NULL);
        break;
    case 'g':
        execl(INTEROP_GO, INTEROP_GO, servers, journal, (char *)NULL);
        break;
    default:
        execlp(python, python, "-B", INTEROP_PYTHON, servers, journal, (char *)NULL);
    }
    _exit(127);
}

/* What it writes on standard error, for a test that fails. */
static void log_path(char *path, size_t size, size_t i)
{
    snprintf(path, size, "%s/peer-%c.log", log_folder, letters[i]);
}

static int spawn(size_t i, const char *servers, const char *journal)
{
    int in[2], out[2];
    char log[512];
    pid_t self = getpid();

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves nobody behind */
        if (getppid() != self)
            _exit(126);
        log_path(log, sizeof log, i);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(open(log, O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
        run_peer(i, servers, journal);
    }
    close(in[0]);
    close(out[1]);
    peers[i] = (struct peer){.pid = pid, .in = in[1], .out = out[0]};
    return pid < 0 ? -1 : 0;
}

void peers_print_logs(void)
{
    char line[500];

    for (size_t i = 0; i < PEERS; i++) {
        log_path(line, sizeof line, i);
        FILE *f = fopen(line, "re");
        while (f != NULL && fgets(line, sizeof line, f) != NULL)
            fprintf(stderr, "peer %c: %s", letters[i], line);
        if (f != NULL)
            fclose(f);
    }
}

/* Ends the peer, if it has not ended, and forgets its workers. */
static void bury(size_t i)
{
    close(peers[i].in);
    close(peers[i].out);
    kill(peers[i].pid, SIGKILL);
    waitpid(peers[i].pid, NULL, 0);
    peers[i].pid = 0;
    for (size_t w = 0; w < WORKERS_MAX; w++) {
        if (workers[w].name[0] == letters[i])
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

static void take_line(struct peer *peer, const char *line)
{
    size_t length = strcspn(line, " ");

    if (strcmp(line, "ready") == 0) {
        peer->ready = true;
        return;
    }
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
        take_line(peer, peer->line);
    }
    return n > 0;
}

/* Take what the peers say, for at most ms. */
static void listen_to_all(int ms)
{
    struct pollfd fds[PEERS];

    for (size_t i = 0; i < PEERS; i++)
        fds[i] = (struct pollfd){.fd = peers[i].pid ? peers[i].out : -1, .events = POLLIN};
    if (poll(fds, PEERS, ms) <= 0)
        return;
    for (size_t i = 0; i < PEERS; i++) {
        if (fds[i].revents != 0 && !take_output(&peers[i]))
            bury(i);
    }
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool is_here(size_t i)
{
    return letters[i] != 'g' || has_go;
}

static bool all_ready(void)
{
    bool ready = true;

    for (size_t i = 0; i < PEERS; i++)
        ready = ready && (!is_here(i) || peers[i].ready);
    return ready;
}

static bool all_run(void)
{
    bool run = true;

    for (size_t i = 0; i < PEERS; i++)
        run = run && (!is_here(i) || peers[i].pid != 0);
    return run;
}

int peers_start(const char *servers, const char *journal, const char *folder, char *why,
                size_t size)
{
    int64_t end_ms = net_now_ms() + START_MS;

    free(log_folder);
    log_folder = strdup(folder);
    if (compile_java(why, size) != 0 || compile_go(why, size) != 0)
        return -1;
    for (size_t i = 0; i < PEERS; i++) {
        if (is_here(i) && peers[i].pid == 0 && spawn(i, servers, journal) != 0) {
            snprintf(why, size, "no peer can be started: %s", strerror(errno));
            return -1;
        }
    }
    while (!all_ready() && all_run() && net_now_ms() < end_ms)
        listen_to_all(100);
    for (size_t i = 0; i < PEERS; i++) {
        if (!is_here(i) || (peers[i].pid != 0 && peers[i].ready))
            continue;
        peers_print_logs();
        snprintf(why, size, "peer %c does not start", letters[i]);
        return -1;
    }
    return 0;
}

bool peers_have(char language)
{
    return is_here((size_t)(strchr(letters, language) - letters));
}

int peer_pid(char language)
{
    return peers[strchr(letters, language) - letters].pid;
}

bool peers_idle(void)
{
    listen_to_all(0);
    for (size_t w = 0; w < WORKERS_MAX; w++) {
        if (workers[w].busy)
            return false;
    }
    return all_run();
}

static bool some_run(void)
{
    bool run = false;

    for (size_t i = 0; i < PEERS; i++)
        run = run || peers[i].pid != 0;
    return run;
}

void peers_kill(void)
{
    for (size_t i = 0; i < PEERS; i++) {
        if (peers[i].pid != 0)
            bury(i);
    }
}

void peers_stop(void)
{
    int64_t end_ms = net_now_ms() + END_MS;

    for (size_t i = 0; i < PEERS; i++) {
        if (peers[i].pid == 0)
            continue;
        close(peers[i].in);
        peers[i].in = -1;
    }
    while (some_run() && net_now_ms() < end_ms)
        listen_to_all(100);
    peers_kill();
}

/* --- questions and answers -------------------------------------------------------------------- */

static struct worker *say_line(const char *line)
{
    const char *letter = strchr(letters, line[0]);
    size_t length = strlen(line);

    assert_non_null(letter);
    struct peer *peer = &peers[letter - letters];
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
        listen_to_all((int)(end_ms - net_now_ms()));
    return w->answered ? w->text : NULL;
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

void check_begins(const char *text, const char *start)
{
    if (strncmp(text, start, strlen(start)) != 0)
        fail_msg("not \"%s...\": %s", start, text);
}
