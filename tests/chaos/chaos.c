/* SPDX-License-Identifier: Apache-2.0 */
/* chaos [OPTION...]: real servers, real faults. This program has what the faults strike: three servers, a network of its
 * own for each, a proxy on each link to them, the canary, the memory that all processes share, and the judge of what is
 * recorded there. chaos.py, its child, has the options and decides everything: it writes a line "KIND VERB NUMBER...", and
 * reads a line "NUMBER TEXT". */
#include "canary.h"
#include "secure.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nets.h"
#include "proxy.h"
#include "tool/fourlw.h"
#include "tool/net.h"
#include "wire.h"

#define TICK_MS 500
#define SYNC_LIMIT_MS 3000 /* the leader drops a follower that is silent for longer */
#define PROBE_MS 50        /* the test asks a silent server again */
#define ARGS_MAX 6

static struct shared *shared;
static int shared_fd;
static struct nets nets; /* no nodes: this machine does not allow it */
static struct secure secure;
static struct zks *zks;
static struct proxy *link_of[CHAOS_PROCESSES][CHAOS_NODES];
static struct canary canary;
static bool tls;
static char text[1000]; /* behind the number of an answer */

/* --- start ------------------------------------------------------------------------------------ */

static int start_links(void)
{
    for (int i = 0; i < CHAOS_PROCESSES; i++) {
        char *servers = shared->process[i].servers;
        size_t size = sizeof shared->process[i].servers, n = 0;
        for (int k = 0; k < CHAOS_NODES; k++) {
            struct proxy **proxy = &link_of[i][k];
            int port = tls ? secure.port[k] : zks_port(zks, (size_t)k);
            if (proxy_start(proxy, zks_node_host(zks, (size_t)k), port) != 0)
                return -1;
            if (tls)
                proxy_set_opaque(*proxy);
            n += (size_t)snprintf(servers + n, size - n, "%s%s", k > 0 ? "," : "",
                                  proxy_address(*proxy));
        }
    }
    return 0;
}

static long start(bool over_tls)
{
    struct zks_options options = {.nodes = CHAOS_NODES,
                                  .tick_ms = TICK_MS,
                                  .sync_limit_ms = SYNC_LIMIT_MS,
                                  .container_check_ms = 1000};
    for (size_t i = 0; i < nets.nodes; i++) {
        options.hosts[i] = nets.host[i];
        options.nets[i] = nets.file[i];
    }
    tls = over_tls;
    int rc = tls ? secure_start(&secure, &nets, &options, text, sizeof text) : 0;
    rc = rc == 0 ? zks_start(&zks, &options, text, sizeof text) : rc;
    if (rc != 0)
        return rc;
    snprintf(shared->tls, sizeof shared->tls, "%s", secure.folder);
    if (start_links() != 0 || canary_start(&canary, shared, zks) != 0) {
        snprintf(text, sizeof text, "a proxy, or the canary, does not start");
        return -1;
    }
    snprintf(text, sizeof text, "%s", zks_dir(zks));
    return 0;
}

static void stop(void)
{
    if (canary.zks != NULL) /* it was started */
        canary_stop(&canary);
    for (int i = 0; i < CHAOS_PROCESSES * CHAOS_NODES; i++)
        proxy_stop(link_of[i / CHAOS_NODES][i % CHAOS_NODES]);
    zks_stop(zks);
    nets_stop(&nets);
    secure_stop(&secure);
}

/* --- verbs: a server's number comes first, or a client's and a server's --------------------------- */

static bool is(const char *verb, const char *name)
{
    return strcmp(verb, name) == 0;
}

/* The nodes as this server has them. All servers must have the same ones. */
static long print_tree(size_t node)
{
    struct wire *wire = NULL;

    if (wire_open(&wire, zks_node_host(zks, node), zks_port(zks, node), 10000) == 0)
        wire_print_tree(wire, "/chaos");
    wire_close(wire);
    return 0;
}

/* A TLS server keeps a connection that has no session for ever (B90), and a lost request may leave one whose client has
 * closed it. */
static long count_connections(size_t node)
{
    const char *host = zks_node_host(zks, node);
    int port = zks_port(zks, node);

    for (int client = 0; tls && client < CHAOS_PROCESSES; client++)
        proxy_end_abandoned(link_of[client][node]);
    return tls ? flw_all_connections(host, port) : flw_connections(host, port);
}

static long of_server(const char *verb, const int *a)
{
    size_t node = (size_t)a[0];
    const char *host = zks_node_host(zks, node);
    int port = zks_port(zks, node);

    if (is(verb, "kill"))
        return zks_kill_node(zks, node);
    if (is(verb, "wipe"))
        return zks_wipe_node(zks, node);
    if (is(verb, "pause"))
        return zks_pause_node(zks, node);
    if (is(verb, "resume"))
        return zks_resume_node(zks, node);
    if (is(verb, "pid"))
        return zks_pid(zks, node);
    if (is(verb, "serves"))
        return flw_mode(host, port, PROBE_MS) >= FLW_LEADER;
    if (is(verb, "cut_apart"))
        return nets_cut(&nets, node, (size_t)a[1], a[2] != 0);
    if (is(verb, "watches"))
        return flw_watch_count(host, port, NULL);
    if (is(verb, "connections"))
        return count_connections(node);
    if (is(verb, "tree"))
        return print_tree(node);
    if (!is(verb, "start_node"))
        abort();
    if (tls)
        secure_renew(&secure, a[0]);
    return zks_start_node(zks, node);
}

/* If it is not cut, all that was kept is passed on. */
static void heal(struct proxy *proxy, bool cuts)
{
    proxy_disarm(proxy);
    proxy_trickle(proxy, 0);
    proxy_delay_ms(proxy, 0);
    if (cuts)
        proxy_cut(proxy);
    proxy_heal(proxy);
}

static long of_link(const char *verb, const int *a)
{
    struct proxy *proxy = link_of[a[0]][a[1]];

    if (is(verb, "lose_request"))
        return proxy_drop_request(proxy, (enum proxy_op)a[2], a[3], (enum proxy_then)a[4]);
    if (is(verb, "lose_answer"))
        return proxy_drop_reply(proxy, (enum proxy_op)a[2], a[3], (enum proxy_then)a[4]);
    if (is(verb, "hold_event"))
        return proxy_hold_reply(proxy, PROXY_EVENT, 1);
    if (is(verb, "connected"))
        return proxy_connections(proxy);
    if (is(verb, "connects"))
        return proxy_counts(proxy, PROXY_CONNECT);
    if (is(verb, "heal"))
        heal(proxy, a[2] != 0);
    else if (is(verb, "cut"))
        proxy_cut(proxy);
    else if (is(verb, "hole"))
        proxy_hole(proxy, (enum proxy_dir)a[2]);
    else if (is(verb, "delay"))
        proxy_delay_ms(proxy, a[2]);
    else if (is(verb, "half_open"))
        proxy_half_open(proxy);
    else if (is(verb, "trickle"))
        proxy_trickle(proxy, (size_t)a[2]);
    else if (is(verb, "release"))
        proxy_release(proxy);
    else
        abort();
    return 0;
}

static long count_nodes(void)
{
    struct wire *wire = NULL;
    int n = WIRE_IO;

    if (wire_open(&wire, zks_node_host(zks, 0), zks_port(zks, 0), 10000) != 0)
        return -1;
    if (wire_sync(wire, "/") == 0)
        n = wire_ephemerals(wire, "/chaos");
    wire_close(wire);
    return n;
}

/* The violations; and "HOLDS PROVED ON_THE_WAY FIRST", of all records. */
static long judge(void)
{
    size_t n = 0;
    struct record *records = records_read(shared_fd, &n);
    struct verdict v = history_judge(records, n, chaos_places);

    free(records);
    snprintf(text, sizeof text, "%zu %zu %zu %s", v.holds, v.proved, v.told_on_the_way, v.first);
    return (long)history_violations(&v);
}

static long of_all(const char *verb, const int *a)
{
    if (is(verb, "size"))
        return sizeof *shared;
    if (is(verb, "networks"))
        return (long)nets.nodes;
    if (is(verb, "start"))
        return start(a[0] != 0);
    if (is(verb, "leader"))
        return zks_leader(zks);
    if (is(verb, "ready"))
        return zks_wait_ready(zks, ZKS_READY_MS);
    if (is(verb, "nodes"))
        return count_nodes();
    if (is(verb, "counted"))
        return canary.counted;
    if (is(verb, "canary_is_still"))
        return canary.still;
    return is(verb, "judge") ? judge() : -1;
}

static long obey(char *line)
{
    int args[ARGS_MAX] = {0};
    char *rest;
    const char *kind = strtok_r(line, " \n", &rest), *verb = strtok_r(NULL, " \n", &rest), *word;

    for (int i = 0; i < ARGS_MAX && (word = strtok_r(NULL, " \n", &rest)) != NULL; i++)
        args[i] = atoi(word);
    if (is(kind, "server"))
        return of_server(verb, args);
    return is(kind, "link") ? of_link(verb, args) : of_all(verb, args);
}

/* --- chaos.py --------------------------------------------------------------------------------- */

static _Noreturn void become(char **argv, const int orders[2], const int answers[2])
{
    char fds[3][12];
    const char *command[32] = {"python3", "-B", CHAOS_PY, CHAOS_PEER, fds[0], fds[1], fds[2]};

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    snprintf(fds[0], sizeof fds[0], "%d", dup(orders[1])); /* what is not closed by exec */
    snprintf(fds[1], sizeof fds[1], "%d", dup(answers[0]));
    snprintf(fds[2], sizeof fds[2], "%d", shared_fd);
    for (size_t i = 1; argv[i] != NULL && i < 20; i++)
        command[6 + i] = argv[i];
    execvp(command[0], (char *const *)command);
    _exit(127);
}

int main(int argc, char **argv)
{
    int orders[2], answers[2], status = 0;
    char line[100];

    (void)argc;
    if (nets_start(&nets, CHAOS_NODES, text, sizeof text) != 0)
        printf("chaos: skipped: no cuts between the servers: %s\n", text);
    fflush(stdout);
    shared = shared_new(&shared_fd);
    if (shared == NULL || pipe2(orders, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0)
        become(argv, orders, answers);
    close(orders[1]);
    close(answers[0]);
    signal(SIGPIPE, SIG_IGN);
    FILE *in = fdopen(orders[0], "r");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        text[0] = '\0';
        long n = obey(line);
        dprintf(answers[1], "%ld %s\n", n, text);
    }
    waitpid(child, &status, 0);
    stop();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
