/* SPDX-License-Identifier: Apache-2.0 */
/* The host of a crowd: a private server, and a session at it that sees everything. It says "ready ADDRESS", and then obeys
 * and answers as a peer does (conductor.py); an error is the code of wire.h.
 *
 *     h create PATH [container|sequential]     ok              h birth PATH        ok ZXID
 *     h delete PATH                            ok              h children PATH     ok NAME...
 *     h tree PATH (on standard error)          ok              h ephemerals PATH   ok COUNT, at any depth
 *     h session (one that stays)               ok
 *     h counters PATH=N...  the next number below each path, patched into the server's data    ok */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot.h"
#include "wire.h"
#include "zkserver.h"

#define LINE_MAX_ 4096
#define PING_MS 1000
#define CONTAINER_CHECK_MS 300
#define CREDENTIAL "crowd:secret"

static struct zks *server;
static struct wire *raw;
static char why[8192];

static int open_raw(void)
{
    int rc = wire_open(&raw, zks_host(), zks_port(server, 0), WIRE_LASTING_MS);

    return rc == 0 ? wire_auth(raw, "digest", CREDENTIAL) : rc;
}

/* Nothing else keeps the session alive, and a server that stands still for long breaks it. */
static int keep_raw(void)
{
    if (raw != NULL && wire_ping(raw) == 0)
        return 0;
    if (raw != NULL)
        wire_abandon(raw);
    raw = NULL;
    return open_raw();
}

/* --- verbs ------------------------------------------------------------------------------------ */

static int create(const char *path, const char *kind)
{
    int flags = kind == NULL                     ? WIRE_PERSISTENT
                : strcmp(kind, "container") == 0 ? WIRE_CONTAINER
                                                 : WIRE_SEQUENTIAL;

    return wire_create(raw, path, "", flags, NULL, 0);
}

static int birth(const char *path)
{
    struct wire_stat stat;
    int rc = wire_exists(raw, path, &stat);

    if (rc == 0)
        snprintf(why, sizeof why, " %lld", (long long)stat.czxid);
    return rc;
}

static int children(const char *path)
{
    struct wire_names names;
    int rc = wire_children(raw, path, &names);
    size_t n = 0;

    if (rc != 0)
        return rc == WIRE_NONODE ? 0 : rc;
    for (size_t i = 0; i < names.n && n < sizeof why; i++)
        n += (size_t)snprintf(why + n, sizeof why - n, " %s", names.name[i]);
    wire_names_free(&names);
    return 0;
}

static int ephemerals(const char *path)
{
    int n = wire_ephemerals(raw, path);

    snprintf(why, sizeof why, " %d", n);
    return n < 0 ? n : 0;
}

/* All in one go: a patch is two starts of the server, of which the first writes a snapshot. */
static int set_counters(char *rest)
{
    wire_close(raw);
    raw = NULL;
    int rc = zks_restart_node(server, 0) != 0 || zks_stop_node(server, 0) != 0;
    for (char *word; rc == 0 && (word = strtok_r(NULL, " ", &rest)) != NULL;) {
        char *number = strchr(word, '=');
        *number = '\0';
        rc = snap_set_counter(zks_data_dir(server, 0), word, atoi(number + 1), why, sizeof why);
    }
    if (rc != 0 || zks_start_node(server, 0) != 0 || zks_wait_ready(server, ZKS_READY_MS) != 0)
        return WIRE_IO;
    return open_raw();
}

static int obey(const char *verb, char *rest)
{
    struct wire *stays;

    if (strcmp(verb, "counters") == 0)
        return set_counters(rest);
    if (strcmp(verb, "session") == 0)
        return wire_open(&stays, zks_host(), zks_port(server, 0), WIRE_LASTING_MS);
    const char *path = strtok_r(NULL, " ", &rest);
    if (path == NULL)
        return WIRE_IO;
    if (strcmp(verb, "create") == 0)
        return create(path, strtok_r(NULL, " ", &rest));
    if (strcmp(verb, "delete") == 0)
        return wire_delete(raw, path, -1);
    if (strcmp(verb, "birth") == 0)
        return birth(path);
    if (strcmp(verb, "children") == 0)
        return children(path);
    if (strcmp(verb, "ephemerals") == 0)
        return ephemerals(path);
    wire_print_tree(raw, path);
    return 0;
}

/* --- the program ------------------------------------------------------------------------------ */

static void serve(void)
{
    char line[LINE_MAX_], *rest;
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};

    for (;;) {
        bool spoken = poll(&input, 1, PING_MS) > 0;
        if (spoken && fgets(line, sizeof line, stdin) == NULL)
            return;
        int rc = keep_raw();
        if (!spoken)
            continue;
        why[0] = line[strcspn(line, "\n")] = '\0';
        const char *name = strtok_r(line, " ", &rest), *verb = strtok_r(NULL, " ", &rest);
        if (rc == 0 && verb != NULL)
            rc = obey(verb, rest);
        if (rc == 0)
            printf("%s ok%s\n", name, why);
        else
            printf("%s error %d %s\n", name, rc, why);
    }
}

int main(void)
{
    /* Paths come and go; the server's own files don't pile up. */
    static const struct zks_options options = {
        .container_check_ms = CONTAINER_CHECK_MS,
        .max_session_ms = WIRE_LASTING_MS,
        .no_digest = true,
        .cfg_extra = "autopurge.purgeInterval=1\nautopurge.snapRetainCount=3"};
    int rc = zks_start(&server, &options, why, sizeof why);

    if (rc != 0) {
        fprintf(stderr, "%s\n", why);
        return rc == ZKS_MISSING ? 77 : 1;
    }
    setvbuf(stdin, NULL, _IONBF, 0); /* what is not read yet is seen by poll */
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready %s\n", zks_connect_string(server));
    serve();
    zks_stop(server);
    return 0;
}
