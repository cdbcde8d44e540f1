/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "tool/net.h"

/* --- figures ---------------------------------------------------------------------------------- */

const char *tally_name(enum tally tally)
{
    static const char *const names[TALLIES] = {
        "multi-locks granted",
        "single locks granted",
        "members of those multi-locks",
        "held before and entered again",
        "downgrades",
        "visits with a client of their own",
        "requests for permits granted",
        "upgrades refused",
        "timeouts",
        "cancels",
        "tries that found somebody",
        "grants with an empty window",
    };

    return names[tally];
}

long granted(const struct shared *b, int process)
{
    int first = process * SOAK_THREADS;

    return shared_sum(b, first, SOAK_THREADS, MULTI) + shared_sum(b, first, SOAK_THREADS, SINGLE);
}

static void report_process(FILE *to, const struct shared *b, int process)
{
    int first = process * SOAK_THREADS;
    long longest_ms = 0;

    for (int i = first; i < first + SOAK_THREADS; i++)
        longest_ms = b->seat[i].longest_ms > longest_ms ? b->seat[i].longest_ms : longest_ms;
    fprintf(to, "  process %d, %s: %ld granted (%ld of multi-locks), longest wait %ld ms\n",
            process, process < SOAK_PROCESSES - SOAK_SINGLES ? "multi-locks" : "singly in order",
            granted(b, process), shared_sum(b, first, SOAK_THREADS, MULTI), longest_ms);
}

/* The least of a kind of process to the most. */
static void report_fairness(FILE *to, const struct shared *b, const char *kind, int first, int last)
{
    long least = 0, most = 0;

    for (int i = first; i <= last; i++) {
        long n = granted(b, i);
        least = i == first || n < least ? n : least;
        most = n > most ? n : most;
    }
    fprintf(to, "  fairness, %s: %ld to %ld (%.2f)\n", kind, least, most,
            most > 0 ? (double)least / (double)most : 0);
}

void report_figures(FILE *to, const struct shared *b, double seconds, double requests)
{
    long all = shared_sum(b, 0, SOAK_SEATS, MULTI) + shared_sum(b, 0, SOAK_SEATS, SINGLE) +
               shared_sum(b, 0, SOAK_SEATS, PERMITS);

    fprintf(to, "soak: %.1f s, seed %llu\n", seconds, (unsigned long long)b->seed);
    for (int i = 0; i < TALLIES; i++)
        fprintf(to, "  %s: %ld\n", tally_name((enum tally)i),
                shared_sum(b, 0, SOAK_SEATS, (enum tally)i));
    fprintf(to, "  granted in a second: %.0f, requests for each: %.1f\n", (double)all / seconds,
            all > 0 ? requests / (double)all : 0);
    fprintf(to, "  process 0: %ld places wanted, %ld begun: %ld begun again after backing out\n",
            b->asked, b->started, b->started - b->asked);
    for (int i = 0; i < SOAK_PROCESSES; i++)
        report_process(to, b, i);
    report_fairness(to, b, "multi-locks", 0, SOAK_PROCESSES - SOAK_SINGLES - 1);
    report_fairness(to, b, "singly", SOAK_PROCESSES - SOAK_SINGLES, SOAK_PROCESSES - 1);
}

/* --- who holds and who waits ------------------------------------------------------------------ */

static void report_seat(FILE *to, const struct shared *b, int seat)
{
    bool any = false;
    const struct seat *s = &b->seat[seat];

    fprintf(to, "  process %d, pid %d, thread %d: inside", seat / SOAK_THREADS, s->pid, s->tid);
    for (int i = 0; i < SOAK_PATHS; i++) {
        enum access access = (enum access)s->access[i];
        if (access != OUTSIDE)
            fprintf(to, " %s%s", soak_path(i), half_name(i, access));
        any = any || access != OUTSIDE;
    }
    if (!any)
        fprintf(to, " nothing");
    if (s->call_since_ms != 0)
        fprintf(to, "; for %.1f s in %s", (double)(net_now_ms() - s->call_since_ms) / 1000,
                s->doing);
    fprintf(to, "\n");
}

void report_threads(FILE *to, const struct shared *b)
{
    fprintf(to, "threads, with what the witness saw them enter and what they wait in:\n");
    for (int i = 0; i < SOAK_SEATS; i++)
        report_seat(to, b, i);
}

static long number_of(const char *name)
{
    size_t length = strlen(name);

    return length > 10 ? strtol(name + length - 10, NULL, 10) : 0;
}

static int by_number(const void *one, const void *other)
{
    long a = number_of(*(char *const *)one), b = number_of(*(char *const *)other);

    return (a > b) - (a < b);
}

static void report_node(FILE *to, struct wire *wire, const char *path, const char *name)
{
    char node[200], data[100] = "";

    snprintf(node, sizeof node, "%s/%s", path, name);
    if (wire_get(wire, node, data, sizeof data, NULL) != 0)
        snprintf(data, sizeof data, "gone meanwhile");
    fprintf(to, "    %s  (host, pid, thread: %s)\n", name, data);
}

static void report_queue(FILE *to, struct wire *wire, const char *path)
{
    struct wire_names names = {0};
    int rc = wire_children(wire, path, &names);

    fprintf(to, "  %s: ", path);
    if (rc != 0) {
        fprintf(to, "%s\n", rc == WIRE_NONODE ? "not there" : "the server does not answer");
        return;
    }
    fprintf(to, "%zu in the queue\n", names.n);
    qsort(names.name, names.n, sizeof names.name[0], by_number);
    for (size_t i = 0; i < names.n; i++)
        report_node(to, wire, path, names.name[i]);
    wire_names_free(&names);
}

void report_queues(FILE *to, struct wire *wire)
{
    fprintf(to, "queues, first come first:\n");
    for (int i = 0; wire && i < SOAK_PATHS; i++)
        report_queue(to, wire, soak_path(i));
}
