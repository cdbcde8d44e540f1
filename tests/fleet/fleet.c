/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EACH_LIBRARY 2 /* processes */
#define PROCESSES (2 * EACH_LIBRARY)
#define START_MS 120000
#define QUIET_MS 120000 /* if nobody comes in for this long, they hang */
#define GONE_MS 10000
#define EXPIRED_MS 60000  /* for those of a run that failed, whose processes were killed */
#define HEAD_START_MS 300 /* for a worker that must queue behind the guard */
#define RAW_SESSION_MS 60000
#define CONTAINER_CHECK_MS 300

struct process {
    pid_t pid; /* 0: not there */
    int in, out;
    char said[16]; /* "ready\ndone\n" */
    size_t length;
};

struct zks *server;
struct wire *raw;

static struct journal journal;
static char journal_path[512];
static struct process processes[PROCESSES];

/* --- processes -------------------------------------------------------------------------------- */

/* "o1", "o2", "n1", "n2". */
static const char *name_of(int i)
{
    static const char *const names[PROCESSES] = {"o1", "n1", "o2", "n2"};

    return names[i];
}

static void log_path(char *path, size_t size, int i)
{
    snprintf(path, size, "%s/%s.log", zks_dir(server), name_of(i));
}

static _Noreturn void become(const struct fleet *f, int i, const char *rounds)
{
    const char *program = name_of(i)[0] == 'o' ? getenv("FLEET_OLD") : FLEET_NEW;
    const char *argv[8 + WORKERS_MAX] = {
        program,    zks_connect_string(server),         journal_path,
        name_of(i), f->creators_only ? CREDENTIAL : "", rounds};
    int n = 6;

    for (int k = 0; k < WORKERS_MAX && f->workers[k] != NULL; k++)
        argv[n++] = f->workers[k];
    if (f->trespasser != NULL && i == 1)
        argv[n++] = f->trespasser;
    execv(program, (char *const *)argv);
    _exit(127);
}

static int spawn(const struct fleet *f, int i, const char *rounds)
{
    int in[2], out[2];
    char log[512];
    pid_t self = getpid();

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return -1;
    log_path(log, sizeof log, i);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves nobody behind */
        if (getppid() != self)
            _exit(126);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
        become(f, i, rounds);
    }
    close(in[0]);
    close(out[1]);
    processes[i] = (struct process){.pid = pid, .in = in[1], .out = out[0]};
    return pid < 0 ? -1 : 0;
}

static void bury(int i)
{
    if (processes[i].pid <= 0)
        return;
    kill(processes[i].pid, SIGKILL);
    waitpid(processes[i].pid, NULL, 0);
    close(processes[i].in);
    close(processes[i].out);
    processes[i].pid = 0;
}

static void bury_all(void)
{
    for (int i = 0; i < PROCESSES; i++)
        bury(i);
}

/* The end of what it wrote, as a sentence. */
static const char *last_words(int i)
{
    static char words[600];
    char log[512], line[500] = "no word";

    log_path(log, sizeof log, i);
    FILE *f = fopen(log, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        line[strcspn(line, "\n")] = '\0';
    if (f != NULL)
        fclose(f);
    snprintf(words, sizeof words, "process %s: %s", name_of(i), line);
    return words;
}

/* --- a run ------------------------------------------------------------------------------------ */

static int open_raw(void)
{
    int rc = wire_open(&raw, zks_host(), zks_port(server, 0), RAW_SESSION_MS);

    return rc == 0 ? wire_auth(raw, "digest", CREDENTIAL) : rc;
}

/* Nothing keeps this session alive in the background, and a server that stands still for long
 * breaks it. */
void fleet_keep_raw(void)
{
    if (raw != NULL && wire_ping(raw) == 0)
        return;
    if (raw != NULL)
        wire_abandon(raw);
    raw = NULL;
    check_ok(open_raw());
}

/* Reads what the processes say for a moment; false: one has ended without a "done". */
static bool listen_to_all(const char **fault)
{
    struct pollfd fds[PROCESSES];

    for (int i = 0; i < PROCESSES; i++)
        fds[i] =
            (struct pollfd){.fd = processes[i].pid > 0 ? processes[i].out : -1, .events = POLLIN};
    if (poll(fds, PROCESSES, 20) <= 0)
        return true;
    for (int i = 0; i < PROCESSES; i++) {
        struct process *p = &processes[i];
        if (fds[i].revents == 0)
            continue;
        ssize_t n = read(p->out, p->said + p->length, sizeof p->said - 1 - p->length);
        p->length += n > 0 ? (size_t)n : 0;
        if (n <= 0 && strstr(p->said, "done") == NULL) {
            *fault = last_words(i);
            return false;
        }
        if (n <= 0)
            bury(i);
    }
    return true;
}

/* Waits until all have said so. Gives up when nobody has come in for ms. */
static const char *await(const char *word, int ms)
{
    int64_t end_ms = net_now_ms() + ms, ping_ms = 0;
    long lines = 0;
    const char *fault = NULL;

    for (;;) {
        int said = 0;
        if (net_now_ms() > ping_ms) {
            fleet_keep_raw();
            ping_ms = net_now_ms() + 1000;
        }
        for (int i = 0; i < PROCESSES; i++)
            said += strstr(processes[i].said, word) != NULL;
        if (!journal_read(&journal))
            return journal.fault;
        if (said == PROCESSES)
            return NULL;
        if (journal.lines > lines) {
            lines = journal.lines;
            end_ms = net_now_ms() + ms;
        }
        if (!listen_to_all(&fault))
            return fault;
        if (net_now_ms() > end_ms)
            return "some process is not through in time";
    }
}

/* "threads=3" in a worker's words. */
static int threads_of(const char *worker)
{
    const char *at = strstr(worker, "threads=");

    return at != NULL ? atoi(at + strlen("threads=")) : 1;
}

static int threads_of_all(const struct fleet *f)
{
    int n = 0;

    for (int k = 0; k < WORKERS_MAX && f->workers[k] != NULL; k++)
        n += threads_of(f->workers[k]);
    return n;
}

static long rounds_of(const struct fleet *f)
{
    long threads = EACH_LIBRARY * threads_of_all(f);

    return (EACH_SIDE + threads - 1) / threads;
}

static const char *start_all(const struct fleet *f)
{
    char rounds[20];

    snprintf(rounds, sizeof rounds, "%ld", rounds_of(f));
    for (int i = 0; i < PROCESSES; i++) {
        if (spawn(f, i, rounds) != 0)
            return "a process was not started";
    }
    return await("ready", START_MS);
}

static const char *let_all_go(const struct fleet *f)
{
    char guard[160];

    for (int i = 0; i < PROCESSES; i++) {
        if (write(processes[i].in, "g", 1) != 1)
            return "a process does not listen";
    }
    if (f->guarded != NULL) {
        net_nap_ms(HEAD_START_MS);
        snprintf(guard, sizeof guard, "%s/" GUARD, f->guarded);
        check_ok(wire_delete(raw, guard, -1));
    }
    return await("done", QUIET_MS);
}

/* The places that the workers name, with their permits, before anybody comes. */
static void make_places(const struct fleet *f)
{
    check_ok(journal_open(&journal, journal_path, "on"));
    for (int k = 0; k < WORKERS_MAX && f->workers[k] != NULL; k++) {
        char path[64];
        if (f->permits > 0 && sscanf(f->workers[k], "%*s %63s", path) == 1)
            journal_place(&journal, path)->permits = f->permits;
    }
}

const char *fleet_run(const struct fleet *f)
{
    make_places(f);
    const char *fault = start_all(f);
    if (fault == NULL)
        fault = let_all_go(f);
    bury_all();
    return fault;
}

/* --- what has to be true of it ---------------------------------------------------------------- */

static int64_t birth(const char *path)
{
    struct wire_stat stat = {0};
    int rc = wire_exists(raw, path, &stat);

    return rc == 0 ? stat.czxid : rc;
}

/* Ephemeral nodes anywhere. */
static int count_ephemerals(const char *path)
{
    struct wire_names names;
    struct wire_stat stat;
    int n = 0, rc = wire_exists(raw, path, &stat);

    if (rc == 0)
        rc = wire_children(raw, path, &names);
    if (rc == WIRE_NONODE)
        return 0;
    check_ok(rc);
    for (size_t i = 0; i < names.n; i++) {
        char child[300];
        snprintf(child, sizeof child, "%s/%s", path[1] == '\0' ? "" : path, names.name[i]);
        n += count_ephemerals(child);
    }
    wire_names_free(&names);
    return n + (stat.ephemeral_owner != 0);
}

static void check_place(const struct fleet *f, const struct place *place, int64_t ms)
{
    double share = journal_share(place);

    print_message(
        "%s, %s: %d visits by the old library, %d by the new one in %.1f s, %.0f %% of the "
        "hand-offs between them, at most %d inside, numbers %d to %d\n",
        f->title, place->path, place->visits_of[0], place->visits_of[1], (double)ms / 1000, share,
        place->crowd_max, place->low, place->high);
    check_num(place->crowd, ==, 0);
    check_num(place->visits_of[0], ==, place->visits_of[1]);
    check_num(share, >=, f->share_min);
}

void fleet_check(const struct fleet *f)
{
    int64_t before[PATHS_MAX] = {0}, begin_ms = net_now_ms();
    int visits = 0;

    fleet_keep_raw();
    check_wait(count_ephemerals("/") == 0, EXPIRED_MS);
    for (int i = 0; i < PATHS_MAX && f->renewed[i] != NULL; i++)
        before[i] = birth(f->renewed[i]);
    const char *fault = fleet_run(f);
    if (fault != NULL)
        fail_msg("%s: %s", f->title, fault);
    for (size_t i = 0; i < journal.places_count; i++) {
        check_place(f, &journal.places[i], net_now_ms() - begin_ms);
        visits += journal.places[i].visits_of[1];
    }
    check_num(visits, >=, EACH_SIDE);
    for (int i = 0; i < PATHS_MAX && f->renewed[i] != NULL; i++) {
        check_num(before[i], >, 0);
        check_num(birth(f->renewed[i]), !=, before[i]);
    }
    check_wait(count_ephemerals("/") == 0, GONE_MS);
    journal_close(&journal);
}

/* --- the program ------------------------------------------------------------------------------ */

static int start_server(void **state)
{
    struct zks_options options = {.container_check_ms = CONTAINER_CHECK_MS, .no_digest = true};
    char err[512] = "";

    (void)state;
    signal(SIGPIPE, SIG_IGN); /* a process that has ended */
    if (zks_start(&server, &options, err, sizeof err) != 0) {
        print_error("%s\n", err);
        return -1;
    }
    snprintf(journal_path, sizeof journal_path, "%s/journal", zks_dir(server));
    return open_raw();
}

static int stop_server(void **state)
{
    (void)state;
    bury_all();
    if (raw != NULL)
        wire_close(raw);
    zks_stop(server);
    return 0;
}

int fleet_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n)
{
    const char *old = getenv("FLEET_OLD");
    char why[512];

    if (old == NULL || access(old, X_OK) != 0) {
        fprintf(stderr,
                "skipped: the library of the old commit is not built: sh tests/run.sh fleet\n");
        return 77;
    }
    if (zks_available(why, sizeof why) != 0) {
        fprintf(stderr, "skipped: %s\n", why);
        return 77;
    }
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests(name, tests, n, start_server, stop_server);
}
