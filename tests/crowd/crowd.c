/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

#include "on_servers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_MS 120000 /* if nobody comes in for this long, they hang */
#define PING_MS 1000
#define LISTEN_MS 20
#define PARTS_MAX 64

struct zks *crowd_server;
struct wire *raw;
struct journal journal;
void (*crowd_each_second)(void);

/* --- the program ------------------------------------------------------------------------------ */

static const struct zks_options *server_options;

static int open_raw(void)
{
    int rc = wire_open(&raw, zks_host(), zks_port(crowd_server, 0), WIRE_LASTING_MS);

    return rc == 0 ? wire_auth(raw, "digest", CREDENTIAL) : rc;
}

void crowd_keep_raw(void)
{
    if (raw != NULL && wire_ping(raw) == 0)
        return;
    if (raw != NULL)
        wire_abandon(raw);
    raw = NULL;
    check_ok(open_raw());
}

const char *crowd_journal(const char *parties)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/journal", zks_dir(crowd_server));
    if (journal.parties != NULL)
        journal_close(&journal);
    check_ok(journal_open(&journal, path, parties));
    return path;
}

static int start_server(void **state)
{
    char err[512] = "";

    (void)state;
    signal(SIGPIPE, SIG_IGN); /* a peer that has ended */
    if (zks_start(&crowd_server, server_options, err, sizeof err) == 0)
        return open_raw();
    print_error("%s\n", err);
    return -1;
}

static int stop_server(void **state)
{
    (void)state;
    peers_stop();
    if (raw != NULL)
        wire_close(raw);
    if (journal.parties != NULL)
        journal_close(&journal);
    zks_stop(crowd_server);
    return 0;
}

int crowd_main(int argc, char **argv, const struct zks_options *options)
{
    server_options = options;
    return run_on_servers(argc, argv, start_server, stop_server);
}

/* --- a run ------------------------------------------------------------------------------------ */

/* A row, and the threads of its peer that run with its handle. */
static struct part {
    char peer[4];
    const char *row;
    int first, threads;
} parts[PARTS_MAX];
static size_t parts_count;

/* The text after "NAME=", up to a blank; NULL: it is not there. */
static const char *option_of(const char *row, const char *name, char *value, size_t size)
{
    const char *at = strstr(row, name);

    if (at == NULL)
        return NULL;
    at += strlen(name);
    snprintf(value, size, "%.*s", (int)strcspn(at, " "), at);
    return value;
}

int crowd_number(const char *row, const char *name, int otherwise)
{
    char value[20];

    return option_of(row, name, value, sizeof value) != NULL ? atoi(value) : otherwise;
}

void crowd_clear(void)
{
    parts_count = 0;
}

/* The journal knows them before anybody comes. */
static void make_places(const char *row)
{
    char paths[200], place[120], name[40] = "", *rest = paths;
    int permits = crowd_number(row, "permits=", 1);

    check_num(sscanf(row, "%*s %199s", paths), ==, 1);
    bool named = option_of(row, " name=", name, sizeof name) != NULL;
    for (char *path = strtok_r(rest, ",", &rest); path != NULL; path = strtok_r(NULL, ",", &rest)) {
        snprintf(place, sizeof place, "%.70s%s%s", path, named ? "#" : "", name);
        struct place *made = journal_place(&journal, place);
        made->permits = permits > made->permits ? permits : made->permits;
    }
}

int crowd_add(const char *peer, const char *row, int threads)
{
    size_t n = parts_count++;
    struct part *part = &parts[n];

    check_num(n, <, PARTS_MAX);
    *part = (struct part){.row = row, .threads = crowd_number(row, "threads=", threads)};
    snprintf(part->peer, sizeof part->peer, "%s", peer);
    for (size_t i = 0; i < n; i++)
        part->first += strcmp(parts[i].peer, peer) == 0 ? parts[i].threads : 0;
    make_places(row);
    check_ok_of("%s0 new L%zu %s", peer, n, row);
    return part->threads;
}

void crowd_go(long rounds)
{
    for (size_t i = 0; i < parts_count; i++) {
        for (int k = 0; k < parts[i].threads; k++)
            say("%s%d run L%zu %ld %d", parts[i].peer, parts[i].first + k, i, rounds,
                crowd_number(parts[i].row, "writers=", 0));
    }
}

void crowd_drop(void)
{
    for (size_t i = 0; i < parts_count; i++)
        check_says("ok", "%s0 drop L%zu", parts[i].peer, i);
}

/* --- judging ---------------------------------------------------------------------------------- */

const char *crowd_judge(void)
{
    int64_t end_ms = net_now_ms() + QUIET_MS, ping_ms = 0;
    long lines = journal.lines;

    while (peers_at_work()) {
        peers_listen(LISTEN_MS);
        if (!journal_read(&journal))
            return journal.fault;
        if (peers_fault() != NULL)
            return peers_fault();
        if (net_now_ms() > end_ms && journal.lines == lines)
            return "some worker is not through in time";
        if (journal.lines > lines) {
            lines = journal.lines;
            end_ms = net_now_ms() + QUIET_MS;
        }
        if (net_now_ms() > ping_ms) {
            crowd_keep_raw();
            if (crowd_each_second != NULL)
                crowd_each_second();
            ping_ms = net_now_ms() + PING_MS;
        }
    }
    return journal_read(&journal) ? peers_fault() : journal.fault;
}
