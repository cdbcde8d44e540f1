/* SPDX-License-Identifier: Apache-2.0 */
/* Very many together: one client has more waiters than it can restore watches for at a reconnect;
 * thousands wait in one queue. */
#include "crowd.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define SESSION_MS 60000
#define CROWD_MS 600000  /* for what thousands do, on a busy machine */
#define JUTE_MAX 0xfffff /* bytes of a request that a server takes, unless configured */

/* By a connection for each look: a crowd may take longer than the session of one that says nothing. */
static int count_children(const char *path)
{
    struct wire *wire = fault_wire();
    int n = fault_children(wire, path);

    wire_close(wire);
    return n;
}

static void remove_tree(const char *path)
{
    struct wire *wire = fault_wire();

    check_ok(wire_delete_tree(wire, path));
    wire_close(wire);
}

/* --- watches and a bounced link --------------------------------------------------------------- */

#define PATHS 200
#define EACH 100

struct bouncing {
    struct proxy *proxy;
    struct crowd *crowd;
    char (*paths)[600];
    size_t path_count;
    atomic_size_t largest; /* of the requests that restore all watches */
};

static size_t see_frame(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    struct bouncing *b = arg;

    (void)frame;
    if (dir == PROXY_TO_SERVER && op == PROXY_SET_WATCHES && size > b->largest)
        b->largest = size;
    return size;
}

/* This number of paths of this length, with one holder each. */
static struct bouncing *bouncing_open(size_t paths, int length, size_t places)
{
    struct bouncing *b = calloc(1, sizeof *b);

    check_true(b != NULL);
    b->proxy = proxy_before(server, 0);
    proxy_set_hook(b->proxy, see_frame, b);
    b->crowd = crowd_open(proxy_address(b->proxy), SESSION_MS, places, NULL);
    b->crowd->driver->core.ephemeral_bytes_max = SIZE_MAX; /* else that comes first */
    b->path_count = paths;
    b->paths = calloc(paths, sizeof *b->paths);
    check_true(b->paths != NULL);
    for (size_t i = 0; i < paths; i++) {
        snprintf(b->paths[i], sizeof b->paths[i], "/crowd/%0*zu", length - 7, i);
        crowd_acquire(b->crowd, b->paths[i]);
    }
    check_wait(b->crowd->granted == paths, CROWD_MS);
    return b;
}

static int watches_there(void)
{
    return flw_watch_count(zks_host(), zks_port(server, 0), NULL);
}

static void bouncing_close(struct bouncing *b)
{
    (void)!crowd_close(b->crowd); /* it may have no link just then */
    check_wait(watches_there() == 0, SESSION_MS + WAIT_MS);
    proxy_stop(b->proxy);
    remove_tree("/crowd");
    free(b->paths);
    free(b);
}

/* Each waits or was refused, and no answer is due. */
static void check_settled(struct bouncing *b)
{
    struct crowd *c = b->crowd;

    /* To count them takes the mutex for long: not before it is worth while. */
    check_wait(crowd_calls(c) <= 1 && crowd_waiting(c) + c->failed + c->granted == c->begun,
               CROWD_MS);
}

static void fill(struct bouncing *b, size_t places)
{
    for (size_t i = b->crowd->begun; i < places; i++)
        crowd_acquire(b->crowd, b->paths[i % b->path_count]);
    check_settled(b);
}

/* What happens without a bound: libzookeeper restores all watches by one request, the server hangs
 * up on it, and so on, in a session that never ends by itself. Whoever waits, waits for ever.
 * Modes: F51. */
TEST(a_server_hangs_up_on_too_many_watches)
{
    enum { PLACES = 2200 };
    struct bouncing *b = bouncing_open(20, 500, PLACES);

    b->crowd->driver->core.watch_bytes_max = SIZE_MAX;
    fill(b, PLACES);
    check_num(b->crowd->failed, ==, 0);
    proxy_reset_counts(b->proxy);
    proxy_cut(b->proxy);
    check_ok(proxy_wait_count(b->proxy, PROXY_CONNECT, 4, CROWD_MS));
    check_num(b->largest, >, JUTE_MAX);
    crowd_stop_all(b->crowd);
    proxy_reset_counts(b->proxy);
    check_ok(
        proxy_wait_count(b->proxy, PROXY_CONNECT, 2, CROWD_MS)); /* no way to get rid of them */
    check_num(b->crowd->failed, ==, PLACES - b->crowd->granted);
    check_true(crowd_watches(b->crowd) > 0);
    bouncing_close(b);
}

/* Twenty thousand contenders need a watch. As many get one as a reconnect can restore, the others
 * fail with ZKL_ESYSTEM. The test cuts the link, and the waiters go on with one more connection.
 * The next in line are granted, and nothing is left when all have ended. Modes: F51. */
TEST(twenty_thousand_watches_and_a_bounced_link)
{
    struct bouncing *b = bouncing_open(PATHS, 18, PATHS * EACH);
    struct crowd *c = b->crowd;

    int64_t start_ms = net_now_ms();
    fill(b, PATHS * EACH);
    size_t waiting = crowd_waiting(c), watches = crowd_watches(c), links = c->links;
    int64_t session = crowd_session(c), filled_ms = net_now_ms();
    check_num(waiting, >, 10000);
    check_num(c->failed, ==, PATHS * EACH - PATHS - waiting);
    for (size_t i = 0; i < c->begun; i++)
        check_true(!c->places[i].failed || c->places[i].code == ZKL_ESYSTEM);
    check_num(watches_there(), ==, watches);

    proxy_reset_counts(b->proxy);
    proxy_cut(b->proxy);
    check_wait(c->links > links, CROWD_MS);
    check_settled(b);
    check_num(proxy_counts(b->proxy, PROXY_CONNECT), ==, 1);
    check_num(proxy_counts(b->proxy, PROXY_SET_WATCHES), ==, 1);
    check_num(b->largest, <, JUTE_MAX);
    check_num(b->largest, >, JUTE_MAX - JUTE_MAX / 10);
    check_num(crowd_session(c), ==, session);
    check_num(crowd_waiting(c), ==, waiting);
    check_num(watches_there(), ==, watches);
    print_message(
        "    %zu waiters with %zu watches, in %lld ms; back after %lld ms, by %zu bytes\n", waiting,
        watches, (long long)(filled_ms - start_ms), (long long)(net_now_ms() - filled_ms),
        (size_t)b->largest);

    for (int i = 0; i < PATHS; i++)
        crowd_release(&c->places[i]);
    check_wait(c->granted == 2 * PATHS, CROWD_MS);
    crowd_stop_all(c);
    check_wait(c->ended == c->begun, CROWD_MS);
    check_wait(crowd_watches(c) == 0, CROWD_MS);
    check_num(c->driver->core.watch_bytes, ==, 0);
    check_num(c->granted, ==, 2 * PATHS);
    check_num(count_children(b->paths[0]), ==, 0);
    bouncing_close(b);
}

/* --- a long queue ----------------------------------------------------------------------------- */

#define CLIENTS 5

struct packets {
    int64_t received, sent;
};

static struct packets count_packets(struct crowd *const crowds[CLIENTS])
{
    struct packets sum = {0, 0};

    for (int i = 0; i < CLIENTS; i++) {
        struct packets one;
        check_ok(flw_session_packets(zks_host(), zks_port(server, 0), crowd_session(crowds[i]),
                                     &one.received, &one.sent));
        sum.received += one.received;
        sum.sent += one.sent;
    }
    return sum;
}

static int sequence_of(const struct crowd_place *place)
{
    const char *node = place->contender.machine.node;
    return atoi(node + strlen(node) - 10);
}

/* The queue drains: one release, one grant, in the order in which they came. */
static void drain(struct crowd_queue *queue, size_t n)
{
    int last = -1;

    for (size_t i = 0; i < n; i++) {
        check_wait(crowd_queue_count(queue) > i, WAIT_MS);
        struct crowd_place *place = crowd_queue_at(queue, i);
        int sequence = sequence_of(place);
        check_num(sequence, >, last);
        check_num(place->grants, ==, 1);
        check_num(crowd_queue_count(queue), ==, i + 1);
        last = sequence;
        crowd_release(place);
    }
}

/* How many wait; 0 while an answer is due. */
static size_t queued(struct crowd *const crowds[CLIENTS])
{
    size_t n = 0, calls = 0;

    for (int i = 0; i < CLIENTS; i++) {
        n += crowd_waiting(crowds[i]);
        calls += crowd_calls(crowds[i]) + crowd_puts_off(crowds[i]);
    }
    return calls == 0 ? n : 0;
}

/* Thousands of contenders of five clients wait for one path. Each release wakes only the next one,
 * which sends one request and is granted. All are granted, in their order, and the cost of each
 * does not grow. Modes: F44. */
TEST(thousands_wait_for_one_path)
{
    const char *path = "/queue/m";
    size_t n = (size_t)test_length(5000, 1000);
    struct crowd *crowds[CLIENTS];
    struct crowd_queue queue;

    crowd_queue_init(&queue, n);
    for (int i = 0; i < CLIENTS; i++)
        crowds[i] = crowd_open(zks_connect_string(server), SESSION_MS, n / CLIENTS, &queue);
    size_t heap = mallinfo2().uordblks;
    int64_t start_ms = net_now_ms();
    for (size_t i = 0; i < n; i++) {
        struct crowd *c = crowds[i % CLIENTS];
        const struct crowd_place *place = crowd_acquire(c, path);
        /* A few at a time: thousands of lists that it has not sent yet would fill the server's
         * memory. */
        check_wait(crowd_calls(c) < 20, CROWD_MS);
        check_true(!place->failed);
    }
    check_wait(queued(crowds) == n - 1, CROWD_MS);
    check_num(crowd_queue_count(&queue), ==, 1);
    check_num(count_children(path), ==, n);
    int64_t queued_ms = net_now_ms();
    size_t each = (mallinfo2().uordblks - heap) / n;
    struct packets before = count_packets(crowds);

    drain(&queue, n);
    for (int i = 0; i < CLIENTS; i++)
        check_wait(crowds[i]->ended == crowds[i]->begun, WAIT_MS);
    int64_t drained_ms = net_now_ms();
    struct packets after = count_packets(crowds);
    int64_t requests = after.received - before.received;
    int64_t events = after.sent - before.sent - requests;
    int64_t beside =
        CLIENTS * ((drained_ms - queued_ms) / 200 + 10); /* keepalives, heartbeats, pings */
    print_message(
        "    %zu waiters: queued in %lld ms, %zu bytes each; drained in %lld ms, with %.3f "
        "requests and %.3f events each\n",
        n, (long long)(queued_ms - start_ms), each, (long long)(drained_ms - queued_ms),
        (double)requests / (double)n, (double)events / (double)n);
    check_num(requests, <=, 2 * (int64_t)n + beside); /* a delete and a list */
    check_num(events, <=, 2 * (int64_t)n);            /* its own node's, and its successor's */
    check_num(each, <, 4096);
    check_num(count_children(path), ==, 0);

    for (int i = 0; i < CLIENTS; i++)
        check_true(crowd_close(crowds[i]));
    crowd_queue_fini(&queue);
    remove_tree("/queue");
}

/* A queue whose list is twice as long as a request may be. The last contender waits for the one
 * before it, and is granted when all before it have left. Modes: F52. */
TEST(a_list_longer_than_a_request)
{
    enum { BEFORE = 2500, LENGTH = 900 };
    static char nodes[BEFORE][LENGTH + 100];
    static char filler[LENGTH + 1];
    struct wire *wire = fault_wire();
    struct crowd *crowd = crowd_open(zks_connect_string(server), SESSION_MS, 2, NULL);

    memset(filler, 'x', LENGTH);
    check_ok(wire_create(wire, "/long", "", WIRE_PERSISTENT, NULL, 0));
    for (int i = 0; i < BEFORE; i++) {
        char prefix[LENGTH + 50];
        snprintf(prefix, sizeof prefix, "/long/%s-lock-", filler);
        check_ok(
            wire_create(wire, prefix, "", WIRE_EPHEMERAL_SEQUENTIAL, nodes[i], sizeof nodes[i]));
    }
    for (int i = 0; i < 2; i++)
        crowd_acquire(crowd, "/long");
    check_wait(crowd_waiting(crowd) == 2 && crowd_watches(crowd) == 3, CROWD_MS);
    check_wait(flw_watch_count(zks_host(), zks_port(server, 0), nodes[BEFORE - 1]) == 1, CROWD_MS);
    check_ok(wire_delete(wire, nodes[BEFORE - 1], -1));
    check_wait(flw_watch_count(zks_host(), zks_port(server, 0), nodes[BEFORE - 2]) == 1, CROWD_MS);
    for (int i = 0; i < BEFORE - 1; i++) {
        check_num(crowd->granted, ==, 0);
        check_ok(wire_delete(wire, nodes[i], -1));
    }
    for (int i = 0; i < 2; i++) {
        check_wait(crowd->granted == (size_t)i + 1, CROWD_MS);
        check_true(crowd->places[i].granted);
        crowd_release(&crowd->places[i]);
    }
    check_wait(crowd->ended == 2, CROWD_MS);
    check_true(crowd_close(crowd));
    check_ok(wire_delete_tree(wire, "/long"));
    wire_close(wire);
}

/* Lists of thousands of names, for many contenders. */
FAULT_MAIN(options.jvm_extra = "-Xmx512m")
