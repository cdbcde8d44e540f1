/* SPDX-License-Identifier: Apache-2.0 */
/* Creates that a server carries out behind the end of their link. With Netty, a server works through
 * all that it has read from a connection, even once the client is back on a new one. So a create may
 * come behind the barrier and the list that did not show it (B13), as a node of the live session that
 * is nobody's. */
#include "crowd.h"
#include "netty.h"

#define SESSION_MS 3000
#define READS 400
#define STORM 100
#define KNOCK_MS 500 /* less than what is left of the session; no promise rests on it */
/* A node that is nobody's is there for ever. */
#define ROUND_MS 120000

struct storm {
    struct crowd *crowd;
    char path[32];
    size_t from; /* the round's first place */
    int stopped;
};

static void ignore(int rc, const struct Stat *stat, const void *unused)
{
    (void)rc;
    (void)stat;
    (void)unused;
}

/* The server's thread has these to do first. Nobody asks again for what they read. */
static void send_reads(const struct storm *s)
{
    struct zkl_driver *d = s->crowd->client->driver;

    zkl_driver_lock(d);
    for (int i = 0; i < READS && d->current && d->current->ready; i++)
        zoo_aexists(d->current->zh, s->path, 0, ignore, NULL);
    zkl_driver_unlock(d);
}

/* It has sent what asks for the next link. */
static bool is_at_the_door(const struct storm *s)
{
    struct zkl_driver *d = s->crowd->client->driver;

    return locked(d, d->current && d->current->ready &&
                         zoo_state(d->current->zh) == ZOO_ASSOCIATING_STATE);
}

/* The kernel keeps for the stopped server all that is sent to it, and the client's next connection. */
static void send_to_stopped_server(struct storm *s, bool some_stop)
{
    struct zkl_mutex *mutex = world_mutex(s->crowd->client, s->path);

    check_wait(fault_connected(s->crowd->client), WAIT_MS);
    check_ok(zks_pause_node(server, 0));
    send_reads(s);
    for (int i = 0; i < STORM; i++)
        crowd_acquire(s->crowd, mutex);
    check_wait(!fault_connected(s->crowd->client), WAIT_MS);
    for (size_t i = 0; some_stop && i < STORM; i += 2, s->stopped++)
        crowd_leave(&s->crowd->places[s->from + i]);
    (void)wait_until(is_at_the_door(s), KNOCK_MS);
    check_ok(zks_resume_node(server, 0));
}

/* Whoever is granted gives it back. True: all are through. */
static bool serve(struct storm *s)
{
    for (size_t i = s->from; i < s->crowd->begun; i++) {
        if (crowd_holds(&s->crowd->places[i]))
            crowd_leave(&s->crowd->places[i]);
    }
    return s->crowd->ended == s->crowd->begun;
}

/* By a connection for each look: a round may take longer than the session of one that says nothing. */
static struct wire_stat look(const struct storm *s)
{
    struct wire *wire = fault_wire();
    struct wire_stat stat;

    check_ok(wire_exists(wire, s->path, &stat));
    wire_close(wire);
    return stat;
}

static void make_path(const struct storm *s)
{
    struct wire *wire = fault_wire();

    check_ok(wire_create(wire, s->path, "", WIRE_PERSISTENT, NULL, 0));
    wire_close(wire);
}

static void run_round(struct crowd *crowd, int number)
{
    struct storm s = {.crowd = crowd, .from = crowd->begun};
    int64_t session = fault_session(crowd->client);

    snprintf(s.path, sizeof s.path, "/netty-%d", number);
    make_path(&s);
    send_to_stopped_server(&s, number % 4 == 3);
    if (!wait_until(serve(&s), ROUND_MS))
        fail_msg("round %d: of %zu only %zu are through, with %d nodes", number, crowd->begun,
                 (size_t)crowd->ended, look(&s).children);
    int64_t quiet_ms = net_now_ms();
    if (!wait_until(look(&s).children == 0, ROUND_MS))
        fail_msg("round %d: %d nodes are left", number, look(&s).children);
    bool same = fault_session(crowd->client) == session;
    print_message("round %d: %d creates more than grants, nothing left after %d ms%s\n", number,
                  look(&s).cversion / 2 - (STORM - s.stopped), (int)(net_now_ms() - quiet_ms),
                  same ? "" : ", in another session");
}

/* No node of the live session stays that is nobody's, and everybody gets the lock. The server stands still until the
 * client, with many creates on their way, has given up the link and is at its door again. Modes: F1, F3. */
WORLD_TEST(creates_that_come_late_are_deleted)
{
    int rounds = (int)test_length(100, 6);
    struct crowd *crowd =
        crowd_open(zks_connect_string(server), SESSION_MS, (size_t)rounds * STORM, NULL);

    for (int i = 0; i < rounds; i++)
        run_round(crowd, i);
    (void)zkl_client_close(crowd->client, WAIT_MS); /* it may have no link just then */
}

int main(int argc, char **argv)
{
    struct zks_options options = fault_options();

    /* The log makes the threads that read slow, and nothing else: then a client that is back is often
     * faster than what it sent before. Each link is to have a thread of its own. */
    options.jvm_extra =
        "-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NettyServerCnxn=trace "
        "-Dio.netty.eventLoopThreads=31";
    options.cfg_extra = "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n";
    if (getenv("ZKS_CLASSPATH") == NULL && access(NETTY_CODEC, R_OK) != 0) {
        fprintf(stderr, "skipped: there is no " NETTY_CODEC ": apt-get install libnetty-java\n");
        return 77;
    }
    setenv("ZKS_CLASSPATH", NETTY_CLASSPATH, 0);
    return fault_main(argc, argv, &options);
}
