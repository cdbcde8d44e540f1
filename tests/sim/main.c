/* SPDX-License-Identifier: Apache-2.0
 *
 * Goal: the promises hold whatever happens in whatever order. Method: schedules drawn from a seed,
 * each a few processes on an ensemble in memory; in as many worker processes as there are cores.
 * The first that fails is made shorter (Zeller's delta debugging over its steps) and reported with
 * its trace. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

#define SCHEDULE_CPU_SECONDS 60 /* it hangs in a loop of its own */
#define SHRINK_SECONDS 60
#define TRACE_HEAD 4000 /* lines of a trace that are shown */
#define TRACE_TAIL 200
#define ENOUGH 100000 /* this many schedules try everything often enough */
#define OFTEN 1000    /* that is, in a million */
#define JOBS_MAX 64
#define SENTENCE 256

/* What a worker leaves for the others to read, wherever it ended. */
struct worker {
    pid_t pid;
    uint64_t seed; /* of the schedule that runs, or went wrong */
    int step;
    bool wrong;
    char sentence[SENTENCE];
    struct tally tally;
};

static struct worker *workers; /* shared memory */
static struct worker *self;

void wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(self->sentence, sizeof self->sentence, format, args);
    va_end(args);
    say("WRONG: %s", self->sentence);
    if (say_to)
        fflush(say_to);
    self->step = schedule_step();
    self->wrong = true;
    _exit(1);
}

/* An assert of the core, a crash, an endless loop. */
static void on_signal(int number)
{
    if (self->sentence[0] == '\0')
        snprintf(self->sentence, sizeof self->sentence, "ended by signal %d", number);
    self->step = schedule_step();
    self->wrong = true;
    if (say_to)
        fflush(say_to);
    _exit(1);
}

static void limit_time(void)
{
    struct itimerval most = {.it_value.tv_sec = SCHEDULE_CPU_SECONDS};
    setitimer(ITIMER_VIRTUAL, &most, NULL);
}

/* --- workers -------------------------------------------------------------- */

static void begin_worker(struct worker *worker)
{
    self = worker;
    self->wrong = false;
    self->sentence[0] = '\0';
    signal(SIGABRT, on_signal);
    signal(SIGVTALRM, on_signal);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    signal(SIGSEGV, on_signal);
#endif
    signal(SIGINT, SIG_DFL);
}

static volatile bool *stop_all; /* shared: some schedule went wrong */

static void work(struct worker *worker, uint64_t first, uint64_t count, int jobs)
{
    begin_worker(worker);
    for (uint64_t i = (uint64_t)(worker - workers); i < count && !*stop_all; i += (uint64_t)jobs) {
        worker->seed = first + i;
        limit_time();
        schedule_run(worker->seed, NULL, &worker->tally);
    }
}

static void *shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("sim: shared memory");
        exit(2);
    }
    return memory;
}

/* The worker that went wrong, of those the one with the smallest seed; NULL: none. */
static struct worker *run_workers(uint64_t first, uint64_t count, int jobs)
{
    struct worker *worst = NULL;
    fflush(stdout);
    for (int i = 0; i < jobs; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            work(&workers[i], first, count, jobs);
            exit(0); /* with what a sanitizer has to say */
        }
        if (pid < 0) {
            perror("sim: fork");
            exit(2);
        }
        workers[i].pid = pid;
    }
    for (int left = jobs; left > 0; left--) {
        int status;
        pid_t pid = wait(&status);
        struct worker *worker = workers;
        while (worker < workers + jobs && worker->pid != pid)
            worker++;
        if (status == 0 || worker == workers + jobs)
            continue;
        *stop_all = true;
        if (!worker->wrong)
            snprintf(worker->sentence, sizeof worker->sentence, "ended with status %#x", status);
        if (!worst || worker->seed < worst->seed)
            worst = worker;
    }
    return worst;
}

/* --- making it shorter ---------------------------------------------------- */

struct shrink {
    struct worker *worker; /* of the tries */
    uint64_t seed;
    char sentence[SENTENCE];
    bool skip[CHAOS_STEPS];
    unsigned tries;
    time_t until;
};

/* Does it go wrong in the same way without these steps? */
static bool still_wrong(struct shrink *s, const bool *skip, FILE *to)
{
    int status = 0;
    fflush(NULL);
    s->tries++;
    pid_t pid = fork();
    if (pid == 0) {
        begin_worker(s->worker);
        say_to = to;
        if (!freopen("/dev/null", "w", stderr)) /* an assert says the same again and again */
            _exit(2);
        limit_time();
        schedule_run(s->seed, skip, &s->worker->tally);
        _exit(0);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0 && !s->worker->wrong)
        snprintf(s->worker->sentence, SENTENCE, "ended with status %#x", status);
    return status != 0 && strcmp(s->worker->sentence, s->sentence) == 0;
}

static int kept(const struct shrink *s)
{
    int count = 0;
    for (int i = 0; i < CHAOS_STEPS; i++)
        count += !s->skip[i];
    return count;
}

/* Leave out size of the steps that are left, from the first-th on. */
static bool try_without(struct shrink *s, int first, int size)
{
    bool skip[CHAOS_STEPS];
    int at = 0;
    memcpy(skip, s->skip, sizeof skip);
    for (int i = 0; i < CHAOS_STEPS; i++) {
        if (skip[i])
            continue;
        if (at >= first && at < first + size)
            skip[i] = true;
        at++;
    }
    if (!still_wrong(s, skip, NULL))
        return false;
    memcpy(s->skip, skip, sizeof skip);
    return true;
}

static void shrink(struct shrink *s)
{
    for (int size = (kept(s) + 1) / 2; size > 0; size = size > 1 ? (size + 1) / 2 : 0) {
        for (int first = 0; first < kept(s) && time(NULL) < s->until;) {
            if (!try_without(s, first, size))
                first += size;
        }
    }
}

static void show_trace(FILE *file)
{
    char line[1024];
    long lines = 0, at = 0;
    rewind(file);
    while (fgets(line, sizeof line, file))
        lines++;
    rewind(file);
    for (; fgets(line, sizeof line, file); at++) {
        if (at < TRACE_HEAD || at >= lines - TRACE_TAIL)
            fputs(line, stdout);
        else if (at == TRACE_HEAD)
            printf("... (%ld lines)\n", lines - TRACE_HEAD - TRACE_TAIL);
    }
}

static void explain(const struct worker *worker)
{
    struct shrink s = {.worker = &workers[JOBS_MAX], .seed = worker->seed};
    memcpy(s.sentence, worker->sentence, sizeof s.sentence);
    s.until = time(NULL) + SHRINK_SECONDS;
    printf("\nseed %" PRIu64 ": %s\n", s.seed, s.sentence);
    if (!still_wrong(&s, s.skip, NULL)) {
        printf("it did not go wrong again: not all of it follows from the seed\n");
        return;
    }
    for (int i = s.worker->step + 1; i < CHAOS_STEPS; i++)
        s.skip[i] = true; /* they came after it */
    shrink(&s);
    printf("%d of %d steps are enough (found in %u tries); their trace:\n", kept(&s), CHAOS_STEPS,
           s.tries);
    FILE *file = tmpfile();
    if (!file) {
        perror("sim: tmpfile");
        return;
    }
    (void)still_wrong(&s, s.skip, file);
    show_trace(file);
    fclose(file);
    printf("replay: sim --seed %" PRIu64 "\n", s.seed);
}

/* --- the command ---------------------------------------------------------- */

static const char usage[] =
    "usage: sim [--schedules N] [--seed S] [--jobs J] [--table] [--break SWITCH] | --moves\n"
    "  --schedules N  N schedules, with the seeds S, S+1, ... (20000, or ZKL_SIM_SCHEDULES; with "
    "--seed 1)\n"
    "  --seed S       the first seed (1); alone: this schedule with its trace\n"
    "  --jobs J       worker processes (as many as processors)\n"
    "  --table        print how often each fault and each allowed transition came; from 100000\n"
    "                 schedules on it is printed anyway, and each has to come 1000 times in a "
    "million\n"
    "  --moves        print which state may follow which, of each machine, and nothing else\n"
    "  --break SWITCH what the promises rest on (docs/evidence/beliefs.md) is not so; once or "
    "more, of the below;\n"
    "                 all: one after the other, and each has to make some schedule go wrong\n"
    "                ";

static void show_usage(FILE *to)
{
    fputs(usage, to);
    for (int i = 0; i < FAKE_SWITCHES; i++)
        fprintf(to, " %s", fake_switch_names[i]);
    fputs("\n", to);
}

static uint64_t switch_of(const char *name)
{
    for (unsigned i = 0; i < FAKE_SWITCHES; i++) {
        if (strcmp(name, fake_switch_names[i]) == 0)
            return UINT64_C(1) << i;
    }
    fprintf(stderr, "sim: there is no switch %s\n", name);
    show_usage(stderr);
    exit(2);
}

static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value < least ||
        value > most) {
        fprintf(stderr, "sim: %s is not a number from %" PRIu64 " to %" PRIu64 "\n", text, least,
                most);
        show_usage(stderr);
        exit(2);
    }
    return value;
}

struct options {
    uint64_t schedules, seed;
    int jobs;
    bool table, trace, each;
};

static struct options parse(int argc, char **argv)
{
    static const struct option names[] = {{"schedules", required_argument, NULL, 'n'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"jobs", required_argument, NULL, 'j'},
                                          {"table", no_argument, NULL, 't'},
                                          {"moves", no_argument, NULL, 'm'},
                                          {"break", required_argument, NULL, 'b'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    const char *schedules = getenv("ZKL_SIM_SCHEDULES");
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct options o = {.seed = 1, .jobs = processors < 1 ? 1 : (int)processors};
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'n')
            o.schedules = number(optarg, 1, UINT64_MAX / 2);
        else if (c == 's')
            o.seed = number(optarg, 0, UINT64_MAX / 2), o.trace = true;
        else if (c == 'j')
            o.jobs = (int)number(optarg, 1, JOBS_MAX);
        else if (c == 't')
            o.table = true;
        else if (c == 'm')
            exit((tally_print_moves(), 0));
        else if (c == 'b' && strcmp(optarg, "all") == 0)
            o.each = true;
        else if (c == 'b')
            schedule_broken |= switch_of(optarg);
        else
            exit((show_usage(c == 'h' ? stdout : stderr), c == 'h' ? 0 : 2));
    }
    if (optind < argc) {
        fprintf(stderr, "sim: what is %s?\n", argv[optind]);
        show_usage(stderr);
        exit(2);
    }
    o.trace = o.trace && o.schedules == 0 && !o.each;
    if (o.schedules == 0)
        o.schedules = o.trace ? 1 : schedules ? number(schedules, 1, UINT64_MAX / 2) : 20000;
    o.jobs = o.jobs < JOBS_MAX ? o.jobs : JOBS_MAX;
    return o;
}

static int report(const struct options *o, const struct worker *bad, double seconds)
{
    static struct tally sum;
    bool often = o->schedules >= ENOUGH;
    int rare = 0;
    for (int i = 0; i < o->jobs; i++)
        tally_add(&sum, &workers[i].tally);
    if (!bad && (o->table || often))
        rare = tally_print(&sum, often ? OFTEN : 0);
    if (bad)
        explain(bad);
    printf("%" PRIu64 " schedules from seed %" PRIu64 ", %.0f s: %" PRIu64 " grants, %" PRIu64
           " losses, %u core steps in the median schedule, healed in %.1f s at most, %d violations",
           sum.schedules, o->seed, seconds, sum.grants, sum.losses, tally_median(&sum),
           (double)sum.longest_heal_ms / 1000, bad ? 1 : 0);
    if (sum.margins > 0)
        printf(", %.1f ms from a window to its session's end at least",
               (double)sum.margin_ns / 1e6);
    if (often)
        printf(", %d tried less than %d times in a million", rare, OFTEN);
    printf("\n");
    return bad || rare ? 1 : 0;
}

/* Every switch by itself; returns how many harm nothing. */
static int break_each(const struct options *o)
{
    int harmless = 0;
    for (int i = 0; i < FAKE_SWITCHES; i++) {
        schedule_broken = UINT64_C(1) << i;
        *stop_all = false;
        const struct worker *bad = run_workers(o->seed, o->schedules, o->jobs);
        harmless += !bad;
        if (bad)
            printf("%-24s seed %5" PRIu64 ": %s\n", fake_switch_names[i], bad->seed, bad->sentence);
        else
            printf("%-24s HARMS NOTHING in %" PRIu64 " schedules from seed %" PRIu64 "\n",
                   fake_switch_names[i], o->schedules, o->seed);
    }
    printf("%d switches, %d of them harm nothing\n", FAKE_SWITCHES, harmless);
    return harmless;
}

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    struct timespec from, to;
    workers = shared(sizeof *workers * (JOBS_MAX + 1)); /* the last one is for tries */
    stop_all = shared(sizeof *stop_all);
    if (o.trace) {
        begin_worker(&workers[0]);
        say_to = stdout;
        limit_time();
        o.jobs = 1;
    }
    if (o.each)
        return break_each(&o) > 0;
    clock_gettime(CLOCK_MONOTONIC, &from);
    struct worker *bad = run_workers(o.seed, o.schedules, o.jobs);
    clock_gettime(CLOCK_MONOTONIC, &to);
    say_to = NULL;
    return report(&o, bad,
                  (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec));
}
