/* SPDX-License-Identifier: Apache-2.0 */
#include "gauge.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "tool/fourlw.h"
#include "tool/net.h"

#define REST_MS 10000 /* for deletes that go on after a call timed out */
#define LOOK_MS 20
#define NODES_MORE SOAK_PATHS /* the paths come and go */
#define LINES 10
/* What may be more at the end than at the beginning: tables that grow with the number of calls
 * under way; memory in pieces. */
#define HEAP_SLACK (8L << 10)
#define RESIDENT_SLACK (2L << 20)

/* --- one look --------------------------------------------------------------------------------- */

static int entries(pid_t pid, const char *folder)
{
    char path[64];
    int n = -2; /* "." and ".." */

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, folder);
    DIR *dir = opendir(path);
    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        closedir(dir);
    return n;
}

static long resident(pid_t pid)
{
    char path[64];
    long all, pages = 0;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "re");
    if (f != NULL && fscanf(f, "%ld %ld", &all, &pages) != 2)
        pages = 0;
    if (f != NULL)
        fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static int server_nodes(const struct gauge *g)
{
    static const char title[] = "Node count: ";
    char text[4096];
    int nodes = -1;

    if (flw_query(g->host, g->port, "srvr", text, sizeof text) < 0)
        return -1;
    const char *at = strstr(text, title);
    return at != NULL && sscanf(at + strlen(title), "%d", &nodes) == 1 ? nodes : -1;
}

static void take(const struct gauge *g, const pid_t *pids, struct look *look)
{
    look->nodes = server_nodes(g);
    look->watches = flw_watch_count(g->host, g->port, NULL);
    look->sessions = flw_connections(g->host, g->port);
    for (int i = 0; i < SOAK_PROCESSES; i++) {
        look->descriptors[i] = entries(pids[i], "fd");
        look->threads[i] = entries(pids[i], "task");
    }
}

/* At the first look nothing is too much of a process. */
static int judge_processes(const struct gauge *g, const struct look *look, char *why, size_t size)
{
    const struct look *first = &g->look[0];

    for (int i = 0; g->count > 0 && i < SOAK_PROCESSES; i++) {
        if (look->descriptors[i] <= first->descriptors[i] && look->threads[i] <= first->threads[i])
            continue;
        snprintf(why, size, "process %d has %d descriptors and %d threads, at first %d and %d", i,
                 look->descriptors[i], look->threads[i], first->descriptors[i], first->threads[i]);
        return -1;
    }
    return 0;
}

static int judge(const struct gauge *g, const struct look *look, char *why, size_t size)
{
    if (look->nodes >= 0 && look->nodes <= g->nodes + NODES_MORE && look->watches == 0 &&
        look->sessions == SOAK_PROCESSES)
        return judge_processes(g, look, why, size);
    snprintf(
        why, size,
        "left behind: %d nodes (at first %d, and %d are allowed), %d watches, %d sessions of %d",
        look->nodes, g->nodes, NODES_MORE, look->watches, look->sessions, SOAK_PROCESSES);
    return -1;
}

int gauge_begin(struct gauge *g, const char *host, int port)
{
    *g = (struct gauge){.host = host, .port = port};
    g->nodes = server_nodes(g);
    return g->nodes < 0 ? -1 : 0;
}

int gauge_look(struct gauge *g, const pid_t *pids, char *why, size_t size)
{
    int64_t end_ms = net_now_ms() + REST_MS;
    struct look *look = &g->look[g->count];

    for (;;) {
        take(g, pids, look);
        if (judge(g, look, why, size) == 0)
            return 0;
        if (net_now_ms() > end_ms)
            return -1;
        net_nap_ms(LOOK_MS);
    }
}

void gauge_weigh(struct gauge *g, const pid_t *pids, const struct shared *shared, double at_s)
{
    struct look *look = &g->look[g->count++];

    look->at_s = at_s;
    for (int i = 0; i < SOAK_PROCESSES; i++) {
        look->heap[i] = (long)shared->heap[i];
        look->resident[i] = resident(pids[i]);
    }
}

/* --- the trend -------------------------------------------------------------------------------- */

/* Something that grows is less in the whole first third than at any time in the last one, however it goes up and
 * down meanwhile. The very first look, when much is used for the first time, does not count. */
static int check_trend(const struct gauge *g, const char *what, int process, size_t offset,
                       long slack, char *why, size_t size)
{
    int third = (g->count - 1) / 3;
    long most = 0, least = 0;

    for (int i = 0; i < third; i++) {
        const char *one = (const char *)&g->look[1 + i] + offset;
        const char *other = (const char *)&g->look[g->count - 1 - i] + offset;
        long before = ((const long *)one)[process], now = ((const long *)other)[process];
        most = i == 0 || before > most ? before : most;
        least = i == 0 || now < least ? now : least;
    }
    if (least <= most + slack)
        return 0;
    snprintf(
        why, size,
        "%s of process %d grows: at most %ld bytes in the first third, at least %ld in the last",
        what, process, most, least);
    return -1;
}

int gauge_trend(const struct gauge *g, char *why, size_t size)
{
    for (int i = 0; i < SOAK_PROCESSES; i++) {
        if (check_trend(g, "the heap", i, offsetof(struct look, heap), HEAP_SLACK, why, size) !=
                0 ||
            check_trend(g, "the resident memory", i, offsetof(struct look, resident),
                        RESIDENT_SLACK, why, size) != 0)
            return -1;
    }
    return 0;
}

/* --- figures ---------------------------------------------------------------------------------- */

static void report_look(FILE *to, const struct look *look)
{
    long heap = 0, memory = 0;
    int descriptors = 0, threads = 0;

    for (int i = 0; i < SOAK_PROCESSES; i++) {
        heap += look->heap[i];
        memory += look->resident[i];
        descriptors += look->descriptors[i];
        threads += look->threads[i];
    }
    fprintf(to,
            "  at rest after %.0f s: heaps %.1f KB, resident %.1f MB, %d descriptors, %d threads; "
            "server: %d nodes, "
            "%d watches, %d sessions\n",
            look->at_s, (double)heap / 1024, (double)memory / 1048576, descriptors, threads,
            look->nodes, look->watches, look->sessions);
}

void gauge_report(FILE *to, const struct gauge *g)
{
    int step = (g->count + LINES - 1) / LINES;

    for (int i = 0; i < g->count; i++) {
        if (i % step == 0 || i == g->count - 1)
            report_look(to, &g->look[i]);
    }
}
