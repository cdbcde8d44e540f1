/* SPDX-License-Identifier: Apache-2.0
 *
 * Goal: the promises hold whatever happens in whatever order, within bounds that are printed. Method: the real
 * core on the ensemble of the simulation, and every choice of what comes next, each state once. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include "search.h"

#define SHORTEN_SECONDS 30
#define FULL_SECONDS 1800
#define SHORT_STATES 1000000 /* that of the short form are fewer, on any machine */
#define JOBS_MAX 64
#define ANY (-1)

/* --- what is run ---------------------------------------------------------- */

struct line {
    const char *scenario;
    int clients, faults, delays, waits;
};

/* Complete, and together a minute and a half of one processor; what takes little comes first. */
static const struct line shorts[] = {
    {"mutex", 3, 0, ANY, 0},    {"posted", 3, 0, ANY, 0},   {"event", 3, 0, ANY, 0},
    {"unlisted", 3, 0, ANY, 0}, {"rwlock", 3, 0, ANY, 0},   {"multi", 3, 0, ANY, 0},
    {"try", 3, 0, ANY, 0},      {"retained", 3, 0, ANY, 0}, {"turns", 3, 0, ANY, 0},
    {"ten", 2, 0, ANY, 0},      {"below", 2, 0, 0, 0},      {"kept", 2, 0, ANY, 0},
    {"cached", 2, 0, ANY, 0},   {"leases", 1, 0, ANY, 4},   {"permits", 2, 0, 1, 0},
    {"four", 1, 1, 1, 0},       {"busy", 2, 1, ANY, 0},     {"old", 2, 1, ANY, 0},
    {"query", 2, 1, 0, 0},      {"several", 1, 1, 0, 3},    {"line", 2, 1, 0, 0},
    {"permits", 2, 1, 0, 0},    {"scarce", 2, 1, 0, 0},     {"worn", 2, 1, 0, 0},
    {"beside", 1, 1, 1, 0},     {"denied", 2, 1, 1, 3},     {"worn", 1, 2, ANY, 0},
    {"sync", 2, 1, 0, 1},       {"leases", 1, 2, ANY, 4},   {"begin", 1, 4, 0, 0},
    {"begin", 1, 2, 1, 2},      {"unsaid", 1, 2, ANY, 0},   {"multideaf", 1, 1, ANY, 0},
    {"multiworn", 2, 1, 0, 0},  {"turns", 2, 1, 1, 0},      {"rwlock", 2, 1, 1, 0},
    {"multirw", 2, 1, 1, 0},    {"event", 2, 1, 1, 0},      {"fresh", 2, 1, 1, 0},
    {"multi", 2, 1, 1, 0},      {"try", 2, 1, 1, 0},        {"retained", 2, 1, 1, 0},
    {"cached", 2, 1, 1, 0},     {"posted", 2, 1, 1, 0},     {"unlisted", 2, 1, 1, 0},
    {"readers", 2, 1, 1, 0},    {"grouped", 1, 1, 2, 0},    {"crowd", 2, 1, 0, 3},
    {"posted", 1, 2, ANY, 0},   {"multi", 1, 2, ANY, 0},    {"rwlock", 1, 2, ANY, 0},
    {"lease", 1, 2, ANY, 4},    {"multi2", 2, 1, 1, 1},     {"starved", 1, 3, 0, 2},
    {"readers", 2, 2, 0, 0},    {"permits", 2, 2, 0, 0},    {"worn", 2, 2, 0, 0},
    {"multi2", 2, 2, 0, 0},     {"mutex", 2, 1, ANY, 0},    {"window", 1, 2, ANY, 2},
    {"grouped", 1, 0, ANY, 0},  {"grouped", 2, 1, 1, 0},    {"anew", 2, 1, 1, 0},
    {"row", 2, 1, 1, 0},        {"row3", 1, 2, 0, 0},       {"window", 1, 3, 0, 3},
};
#define SMALL 46   /* of them, from the first on: half a minute of a processor */
#define AUDITED 47 /* of them, from the first on: see --audit; the others would take too long */

/* For each scenario larger and larger ones, until one is not complete in its time: the line before that is the
 * largest bound that was. */
static const struct line ladders[] = {
    {"", 2, 0, ANY, 2}, {"", 2, 1, 1, 1}, {"", 2, 1, ANY, 0}, {"", 2, 2, 0, 0},
    {"", 2, 2, 1, 0},   {"", 2, 2, 2, 0}, {"", 2, 2, ANY, 0},
};
static const struct line ladders3[] = {
    {"", 3, 0, ANY, 0},
    {"", 3, 1, 1, 0},
    {"", 3, 1, 2, 0},
};

/* --- the command ---------------------------------------------------------- */

struct options {
    const struct scenario *scenario;
    struct bounds bounds;
    struct limits limits;
    const char *path;
    int jobs;
    bool is_short, is_small, is_full, first;
};

static void usage(void)
{
    fputs(
        "usage: explore [--small | --short | --full] [--jobs J] [--seconds S] [--first]\n"
        "       explore --scenario NAME [--clients N] [--faults N] [--delay N] [--waits N]\n"
        "               [--seconds S] [--states N] [--audit] [--replay \"3,0,2\"]\n"
        "  --small    the first of those of --short, not audited, half a minute of a processor\n"
        "  --short    small bounds, each complete, 1 to 2 minutes of a processor (default)\n"
        "  --full     each scenario in larger and larger bounds, until one is not complete in S "
        "seconds\n"
        "             of a processor (1800)\n"
        "  --first    end with the first that is wrong, and do not make it shorter\n"
        "  --delay N  at most N steps may be put off (any)\n"
        "  --waits N  time may move N times while there is something else to do (0)\n"
        "  --audit    each state that is met again is taken once more: it has to go on as before\n"
        "  --replay   this list of choices, with its trace\n"
        "scenarios:\n",
        stderr);
    for (size_t i = 0; i < scenario_count; i++)
        fprintf(stderr, "  %-10s %s\n", scenarios[i].name, scenarios[i].says);
    exit(2);
}

static long number(const char *text, long least, long most)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "explore: %s is not a number from %ld to %ld\n", text, least, most);
        usage();
    }
    return value;
}

static const struct scenario *named(const char *name)
{
    const struct scenario *found = scenario_find(name);
    if (found)
        return found;
    fprintf(stderr, "explore: there is no scenario %s\n", name);
    usage();
    return NULL;
}

static struct options parse(int argc, char **argv)
{
    static const struct option names[] = {{"scenario", required_argument, NULL, 's'},
                                          {"clients", required_argument, NULL, 'c'},
                                          {"faults", required_argument, NULL, 'f'},
                                          {"delay", required_argument, NULL, 'd'},
                                          {"waits", required_argument, NULL, 'w'},
                                          {"seconds", required_argument, NULL, 't'},
                                          {"states", required_argument, NULL, 'n'},
                                          {"audit", no_argument, NULL, 'a'},
                                          {"replay", required_argument, NULL, 'r'},
                                          {"jobs", required_argument, NULL, 'j'},
                                          {"small", no_argument, NULL, 'm'},
                                          {"short", no_argument, NULL, 'S'},
                                          {"full", no_argument, NULL, 'F'},
                                          {"first", no_argument, NULL, '1'},
                                          {NULL, 0, NULL, 0}};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct options o = {.bounds = {.clients = 2, .delays = ANY},
                        .jobs = processors < 1 ? 1 : (int)processors};
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 's')
            o.bounds.scenario = named(optarg);
        else if (c == 'c')
            o.bounds.clients = (int)number(optarg, 1, CLIENTS);
        else if (c == 'f')
            o.bounds.faults = (int)number(optarg, 0, 9);
        else if (c == 'd')
            o.bounds.delays = (int)number(optarg, 0, 99);
        else if (c == 'w')
            o.bounds.waits = (int)number(optarg, 0, 99);
        else if (c == 't')
            o.limits.seconds = (double)number(optarg, 1, 1000000);
        else if (c == 'n')
            o.limits.states = (uint64_t)number(optarg, 1, 2000000000);
        else if (c == 'a')
            o.limits.audit = true;
        else if (c == 'r')
            o.path = optarg;
        else if (c == 'j')
            o.jobs = (int)number(optarg, 1, JOBS_MAX);
        else if (c == 'S')
            o.is_short = true;
        else if (c == 'm')
            o.is_small = true;
        else if (c == 'F')
            o.is_full = true;
        else if (c == '1')
            o.first = true;
        else
            usage();
    }
    if (optind < argc || (o.path && !o.bounds.scenario) || o.is_short + o.is_small + o.is_full > 1)
        usage();
    return o;
}

/* --- one ------------------------------------------------------------------ */

static void tell_bounds(const struct bounds *b)
{
    char delays[32] = "any delays";
    if (b->delays >= 0)
        snprintf(delays, sizeof delays, "%d delays", b->delays);
    printf("%-9s %d clients, %d faults, %s, %d waits: ", b->scenario->name, b->clients, b->faults,
           delays, b->waits);
}

static void tell_path(const struct bounds *b, const struct path *path)
{
    printf("replay: explore --scenario %s --clients %d --faults %d --waits %d", b->scenario->name,
           b->clients, b->faults, b->waits);
    if (b->delays >= 0)
        printf(" --delay %d", b->delays);
    printf(" --replay \"");
    for (int i = 0; i < path->length; i++)
        printf("%s%d", i ? "," : "", path->choices[i]);
    printf("\"\n");
}

static struct path read_path(const char *text)
{
    static struct path path;
    char *end;
    for (path.length = 0; *text && path.length < PATH_MAX_LENGTH; text = *end ? end + 1 : end) {
        long value = strtol(text, &end, 10);
        if (end == text || value < 0 || value >= CHOICES || (*end && *end != ',')) {
            fprintf(stderr, "explore: %s is no list of choices\n", text);
            exit(2);
        }
        path.choices[path.length++] = (unsigned char)value;
    }
    return path;
}

static void explain(const struct options *o, const struct bounds *bounds, struct result *r)
{
    printf("  %s%s, after %d choices\n", r->sentence, r->in_calm ? " (faults have ended)" : "",
           r->path.length);
    fflush(stdout);
    if (r->key.a != 0) {
        explain_audit(bounds, r);
        return;
    }
    if (!o->first)
        shorten(bounds, r, SHORTEN_SECONDS);
    printf("  the shortest that was found has %d:\n", r->path.length);
    tell_path(bounds, &r->path);
    if (o->first)
        return;
    say_to = stdout;
    struct path path = r->path;
    (void)replay(bounds, &path, r);
    say_to = NULL;
    printf("WRONG: %s\n", r->sentence);
}

enum end { END_COMPLETE, END_WRONG, END_NOT_COMPLETE = 3 };

static enum end explore(const struct options *o, const struct bounds *bounds,
                        const struct limits *limits)
{
    static struct result r;
    search(bounds, limits, &r);
    tell_bounds(bounds);
    printf("%s, %" PRIu64 " states, %" PRIu64 " steps, %d deep, %.1f s\n",
           r.violated   ? "WRONG"
           : r.complete ? "complete"
                        : "not complete",
           r.states, r.steps, r.depth, r.seconds);
    if (r.violated)
        explain(o, bounds, &r);
    fflush(stdout);
    return r.violated ? END_WRONG : r.complete ? END_COMPLETE : END_NOT_COMPLETE;
}

/* --- many ----------------------------------------------------------------- */

static bool is_there(const struct scenario *scenario, int client)
{
    for (int i = 0; i < OWNERS; i++) {
        if (scenario->parts[i].cycles > 0 && scenario->parts[i].client == client)
            return true;
    }
    return false;
}

static enum end run_line(const struct options *o, const struct line *line, const char *name)
{
    struct bounds bounds = {.scenario = scenario_find(name),
                            .clients = line->clients,
                            .faults = line->faults,
                            .delays = line->delays,
                            .waits = line->waits};
    struct limits limits = o->limits;
    if (!o->is_full && limits.states == 0)
        limits.states = SHORT_STATES;
    if (o->is_full && limits.seconds <= 0)
        limits.seconds = FULL_SECONDS;
    return explore(o, &bounds, &limits);
}

static enum end climb(const struct options *o, const struct line *lines, size_t count,
                      const char *name)
{
    enum end end = END_COMPLETE;
    if (!is_there(scenario_find(name), lines[0].clients - 1))
        return end;
    for (size_t i = 0; i < count && end == END_COMPLETE; i++)
        end = run_line(o, &lines[i], name);
    return end;
}

/* Short: the nth line; full: the nth ladder. */
static enum end run_nth(const struct options *o, size_t n)
{
    if (!o->is_full) {
        struct options each = *o;
        each.limits.audit = o->limits.audit || (n < AUDITED && !o->is_small);
        return run_line(&each, &shorts[n], shorts[n].scenario);
    }
    const char *name = scenarios[n / 2].name;
    if (n % 2 == 0)
        return climb(o, ladders, sizeof ladders / sizeof *ladders, name);
    return climb(o, ladders3, sizeof ladders3 / sizeof *ladders3, name);
}

static int run_all(const struct options *o)
{
    size_t count = o->is_full    ? 2 * scenario_count
                   : o->is_small ? SMALL
                                 : sizeof shorts / sizeof *shorts;
    int running = 0, wrong_ones = 0, not_complete = 0, complete = 0, status;
    for (size_t n = 0; n < count || running > 0;) {
        if (n < count && running < o->jobs && !(o->first && wrong_ones > 0)) {
            pid_t pid = fork();
            if (pid == 0)
                _exit((int)run_nth(o, n));
            if (pid < 0) {
                perror("explore: fork");
                return 2;
            }
            n++;
            running++;
            continue;
        }
        if (running == 0)
            break;
        if (wait(&status) < 0)
            continue;
        running--;
        complete += status == 0;
        bool bounded = WIFEXITED(status) && WEXITSTATUS(status) == END_NOT_COMPLETE;
        not_complete += bounded;
        wrong_ones += status != 0 && !bounded;
    }
    printf("%d complete, %d not complete, %d wrong\n", complete, not_complete, wrong_ones);
    return wrong_ones > 0 || (!o->is_full && not_complete > 0) ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!o.bounds.scenario)
        return run_all(&o);
    if (!o.path)
        return (int)explore(&o, &o.bounds, &o.limits);
    static struct result r;
    struct path path = read_path(o.path);
    say_to = stdout;
    if (!replay(&o.bounds, &path, &r))
        return 0;
    printf("WRONG: %s\n", r.sentence);
    return 1;
}
