/* SPDX-License-Identifier: Apache-2.0 */
#include "gauge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crowd.h"
#include "tool/fourlw.h"

#define REST_MS 10000 /* for deletes that go on after a call timed out */
#define LOOK_MS 20
#define LINES 10
#define LOOKS_MAX (GAUGE_LOOKS + GAUGE_LOOKS_MIN)

enum kind { DESCRIPTORS, THREADS, HEAP, RESIDENT, KINDS };

static const struct {
    const char *name;
    long
        slack; /* may be more at the end: tables that grow with the calls under way; memory in pieces */
} kinds[KINDS] = {{"descriptors", 0},
                  {"threads", 0},
                  {"bytes of heap", 8L << 10},
                  {"bytes of resident memory", 2L << 20}};

struct look {
    double at_s;
    int nodes, watches, sessions;
    long of[KINDS][SOAK_PROCESSES];
};

static int paths, nodes_before, count;
static struct look looks[LOOKS_MAX];
static char why[300];

/* --- one look --------------------------------------------------------------------------------- */

static long resident(int pid)
{
    char path[64];
    long all, pages = 0;

    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    FILE *f = fopen(path, "re");
    if (f != NULL && fscanf(f, "%ld %ld", &all, &pages) != 2)
        pages = 0;
    if (f != NULL)
        fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static int server_nodes(void)
{
    static const char title[] = "Node count: ";
    char text[4096];

    check_num(flw_query(zks_host(), zks_port(crowd_server, 0), "srvr", text, sizeof text), >=, 0);
    const char *at = strstr(text, title);
    return at != NULL ? atoi(at + strlen(title)) : -1;
}

static void take(struct look *look)
{
    int port = zks_port(crowd_server, 0);

    look->nodes = server_nodes();
    look->watches = flw_watch_count(zks_host(), port, NULL);
    look->sessions = flw_connections(zks_host(), port) - 1; /* without raw */
    for (int i = 0; i < SOAK_PROCESSES; i++) {
        look->of[DESCRIPTORS][i] = peer_entries(soak_peers[i], "fd");
        look->of[THREADS][i] = peer_entries(soak_peers[i], "task");
    }
}

/* At the first look nothing is too much of a process. */
static bool is_clean(const struct look *look)
{
    if (look->nodes < 0 || look->nodes > nodes_before + paths || look->watches != 0 ||
        look->sessions != SOAK_PROCESSES) {
        snprintf(
            why, sizeof why,
            "left behind: %d nodes (at first %d, and %d are allowed), %d watches, %d sessions of "
            "%d",
            look->nodes, nodes_before, paths, look->watches, look->sessions, SOAK_PROCESSES);
        return false;
    }
    for (int k = DESCRIPTORS; count > 0 && k <= THREADS; k++) {
        for (int i = 0; i < SOAK_PROCESSES; i++) {
            if (look->of[k][i] <= looks[0].of[k][i])
                continue;
            snprintf(why, sizeof why, "process %d has %ld %s, at first %ld", i, look->of[k][i],
                     kinds[k].name, looks[0].of[k][i]);
            return false;
        }
    }
    return true;
}

void gauge_begin(int paths_at_work)
{
    paths = paths_at_work;
    nodes_before = server_nodes();
    check_num(nodes_before, >, 0);
}

int gauge_looks(void)
{
    return count;
}

const char *gauge_look(double at_s)
{
    int64_t end_ms = net_now_ms() + REST_MS;
    struct look *look = &looks[count];

    for (take(look); !is_clean(look); take(look)) {
        if (net_now_ms() > end_ms)
            return why;
        net_nap_ms(LOOK_MS);
    }
    look->at_s = at_s;
    for (int i = 0; i < SOAK_PROCESSES; i++) {
        const char *bytes = ask("%sw weigh heap", soak_peers[i]);
        check_num(sscanf(bytes, "ok %ld", &look->of[HEAP][i]), ==, 1);
        look->of[RESIDENT][i] = resident(peer_pid(soak_peers[i]));
    }
    count++;
    return NULL;
}

/* --- the trend -------------------------------------------------------------------------------- */

/* Something that grows is less in the whole first third than at any time in the last one, however it goes up and
 * down meanwhile. The very first look, when much is used for the first time, does not count. */
static bool grows(enum kind kind, int process)
{
    int third = (count - 1) / 3;
    long most = 0, least = 0;

    for (int i = 0; i < third; i++) {
        long before = looks[1 + i].of[kind][process], now = looks[count - 1 - i].of[kind][process];
        most = i == 0 || before > most ? before : most;
        least = i == 0 || now < least ? now : least;
    }
    if (least > most + kinds[kind].slack)
        snprintf(why, sizeof why,
                 "process %d grows: at most %ld %s in the first third, at least %ld in the last",
                 process, most, kinds[kind].name, least);
    return least > most + kinds[kind].slack;
}

const char *gauge_trend(void)
{
    for (int i = 0; i < SOAK_PROCESSES; i++) {
        if (grows(HEAP, i) || grows(RESIDENT, i))
            return why;
    }
    return NULL;
}

/* --- figures ---------------------------------------------------------------------------------- */

static void report_look(const struct look *look)
{
    long sum[KINDS] = {0};

    for (int i = 0; i < SOAK_PROCESSES * KINDS; i++)
        sum[i / SOAK_PROCESSES] += look->of[i / SOAK_PROCESSES][i % SOAK_PROCESSES];
    printf("  at rest after %.0f s: heaps %.1f KB, resident %.1f MB, %ld descriptors, %ld threads; "
           "server: %d nodes, %d watches, %d sessions\n",
           look->at_s, (double)sum[HEAP] / 1024, (double)sum[RESIDENT] / 1048576, sum[DESCRIPTORS],
           sum[THREADS], look->nodes, look->watches, look->sessions);
}

void gauge_report(void)
{
    int step = (count + LINES - 1) / LINES;

    for (int i = 0; i < count; i++) {
        if (i % step == 0 || i == count - 1)
            report_look(&looks[i]);
    }
}
