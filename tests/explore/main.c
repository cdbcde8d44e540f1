/* SPDX-License-Identifier: Apache-2.0
 *
 * Goal: the promises hold whatever happens in whatever order, within bounds that are printed. Method: the real
 * core on the ensemble of the simulation, and every choice of what comes next, each state once. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"

struct options {
    const struct scenario *scenario;
    struct bounds bounds;
    struct limits limits;
    const char *path;
};

static void usage(void)
{
    fputs("usage: explore --scenario NAME [--clients N] [--faults N] [--delay N] [--waits N]\n"
          "               [--seconds S] [--states N] [--audit] [--replay \"3,0,2\"]\n",
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
                                          {NULL, 0, NULL, 0}};
    struct options o = {.bounds = {.clients = 2, .faults = 0, .delays = -1, .waits = 0}};
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 's')
            o.bounds.scenario = scenario_find(optarg);
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
        else
            usage();
    }
    if (!o.bounds.scenario)
        usage();
    return o;
}

static void tell_bounds(const struct bounds *b)
{
    printf("%-10s clients %d, faults %d, ", b->scenario->name, b->clients, b->faults);
    if (b->delays >= 0)
        printf("delays %d, ", b->delays);
    printf("waits %d: ", b->waits);
}

static void tell_path(const struct result *r)
{
    for (int i = 0; i < r->path.length; i++)
        printf("%s%d", i ? "," : "", r->path.choices[i]);
    printf("\n");
}

static struct path read_path(const char *text)
{
    static struct path path;
    char *end;
    for (path.length = 0; *text && path.length < PATH_MAX_LENGTH; text = *end ? end + 1 : end)
        path.choices[path.length++] = (unsigned char)strtol(text, &end, 10);
    return path;
}

static int explore(const struct bounds *bounds, const struct limits *limits)
{
    static struct result r;
    search(bounds, limits, &r);
    tell_bounds(bounds);
    printf("%s, %" PRIu64 " states, %" PRIu64 " steps, %" PRIu64 " in calm, depth %d, %.1f s\n",
           r.violated   ? "VIOLATED"
           : r.complete ? "complete"
                        : "not complete",
           r.states, r.steps, r.calm_states, r.depth, r.seconds);
    if (!r.violated)
        return 0;
    printf("%s%s; after %d choices, made shorter:\n", r.sentence,
           r.in_calm ? " (without faults any more)" : "", r.path.length);
    fflush(stdout);
    if (r.key.a != 0) {
        tell_path(&r);
        explain_audit(bounds, &r);
        return 1;
    }
    shorten(bounds, &r, 30);
    printf("%d choices: ", r.path.length);
    tell_path(&r);
    saying = true;
    struct path path = r.path;
    (void)replay(bounds, &path, &r);
    printf("WRONG: %s\n", r.sentence);
    return 1;
}

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (o.path) {
        static struct result r;
        struct path path = read_path(o.path);
        saying = true;
        if (!replay(&o.bounds, &path, &r))
            return 0;
        printf("WRONG: %s\n", r.sentence);
        return 1;
    }
    return explore(&o.bounds, &o.limits);
}
