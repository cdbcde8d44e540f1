/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_MS 120000 /* if nobody comes in for this long, they hang */
#define PING_MS 1000
#define LISTEN_MS 20

struct zks *crowd_server;
struct wire *raw;
struct journal journal;

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

int crowd_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n,
               const struct zks_options *options)
{
    char why[512];

    if (zks_available(why, sizeof why) != 0) {
        fprintf(stderr, "skipped: %s\n", why);
        return 77;
    }
    server_options = options;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests(name, tests, n, start_server, stop_server);
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
            ping_ms = net_now_ms() + PING_MS;
        }
    }
    return journal_read(&journal) ? peers_fault() : journal.fault;
}

/* --- what is there ---------------------------------------------------------------------------- */

const char *option_of(const char *row, const char *name, char *value, size_t size)
{
    const char *at = strstr(row, name);

    if (at == NULL)
        return NULL;
    at += strlen(name);
    snprintf(value, size, "%.*s", (int)strcspn(at, " "), at);
    return value;
}

int count_ephemerals(const char *path)
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
