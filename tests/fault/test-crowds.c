/* SPDX-License-Identifier: Apache-2.0 */
/* Very many together: one client has more waiters than it can restore watches for at a reconnect;
 * thousands wait in one queue. */
#include "crowd.h"

#include <malloc.h>

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

/* --- watches and a bounced link --------------------------------------------------------------- */

#define PATHS 200
#define EACH 100

struct bouncing {
    struct proxy *proxy;
    struct crowd *crowd;
    struct zkl_core *core; /* its client's */
    struct zkl_mutex **mutexes;
    size_t mutex_count;
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
    struct bouncing *b = world_alloc(sizeof *b);
    char path[600];

    b->proxy = world_proxy();
    proxy_set_hook(b->proxy, see_frame, b);
    b->crowd = crowd_open(proxy_address(b->proxy), SESSION_MS, places, NULL);
    b->core = &b->crowd->client->driver->core;
    b->core->ephemeral_bytes_max = SIZE_MAX; /* else that comes first */
    b->mutex_count = paths;
    b->mutexes = world_alloc(paths * sizeof(struct zkl_mutex *));
    for (size_t i = 0; i < paths; i++) {
        snprintf(path, sizeof path, "/crowd/%0*zu", length - 7, i);
        b->mutexes[i] = world_mutex(b->crowd->client, path);
        crowd_acquire(b->crowd, b->mutexes[i]);
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
    (void)zkl_client_close(b->crowd->client, WAIT_MS); /* it may have no link just then */
    check_wait(b->crowd->ended == b->crowd->begun, WAIT_MS);
    check_wait(watches_there() == 0, SESSION_MS + WAIT_MS);
}

/* Each waits or was refused, and no answer is due. */
static void check_settled(struct bouncing *b)
{
    struct crowd *c = b->crowd;

    /* To count them takes the mutex for long: not before it is worth while. */
    check_wait(fault_calls(c->client) <= 1 && crowd_waiting(c) + c->failed + c->granted == c->begun,
               CROWD_MS);
}

static void fill(struct bouncing *b, size_t places)
{
    for (size_t i = b->crowd->begun; i < places; i++)
        crowd_acquire(b->crowd, b->mutexes[i % b->mutex_count]);
    check_settled(b);
}

/* What happens without a bound: libzookeeper restores all watches by one request, the server hangs
 * up on it, and so on, in a session that never ends by itself. Whoever waits, waits for ever.
 * Modes: F51. */
WORLD_TEST(a_server_hangs_up_on_too_many_watches)
{
    enum { PLACES = 2200 };
    struct bouncing *b = bouncing_open(20, 500, PLACES);

    b->core->watch_bytes_max = SIZE_MAX;
    fill(b, PLACES);
    check_num(b->crowd->failed, ==, 0);
    proxy_reset_counts(b->proxy);
    proxy_cut(b->proxy);
    check_ok(proxy_wait_count(b->proxy, PROXY_CONNECT, 4, CROWD_MS));
    check_num(b->largest, >, JUTE_MAX);
    crowd_leave_all(b->crowd);
    proxy_reset_counts(b->proxy);
    check_ok(
        proxy_wait_count(b->proxy, PROXY_CONNECT, 2, CROWD_MS)); /* no way to get rid of them */
    check_wait(b->crowd->failed == PLACES - b->crowd->granted, CROWD_MS);
    check_true(fault_watches(b->crowd->client) > 0);
    bouncing_close(b);
}

/* As many get one as a reconnect can restore, the others fail with ZKL_ESYSTEM. The waiters go on
 * with one more connection. Modes: F51. */
WORLD_TEST(twenty_thousand_watches_and_a_bounced_link)
{
    struct bouncing *b = bouncing_open(PATHS, 18, PATHS * EACH);
    struct crowd *c = b->crowd;

    int64_t start_ms = net_now_ms();
    fill(b, PATHS * EACH);
    size_t waiting = crowd_waiting(c), watches = fault_watches(c->client);
    int64_t session = fault_session(c->client), filled_ms = net_now_ms();
    check_num(waiting, >, 10000);
    check_num(c->failed, ==, PATHS * EACH - PATHS - waiting);
    for (size_t i = 0; i < c->begun; i++)
        check_true(!c->places[i].failed || c->places[i].code == ZKL_ESYSTEM);
    check_num(watches_there(), ==, watches);

    proxy_reset_counts(b->proxy);
    int64_t links = fault_links(c->client);
    proxy_cut(b->proxy);
    check_wait(fault_links(c->client) > links, CROWD_MS);
    check_settled(b);
    check_num(proxy_counts(b->proxy, PROXY_CONNECT), ==, 1);
    check_num(proxy_counts(b->proxy, PROXY_SET_WATCHES), ==, 1);
    check_num(b->largest, <, JUTE_MAX);
    check_num(b->largest, >, JUTE_MAX - JUTE_MAX / 10);
    check_num(fault_session(c->client), ==, session);
    check_num(crowd_waiting(c), ==, waiting);
    check_num(watches_there(), ==, watches);
    print_message(
        "    %zu waiters with %zu watches, in %lld ms; back after %lld ms, by %zu bytes\n", waiting,
        watches, (long long)(filled_ms - start_ms), (long long)(net_now_ms() - filled_ms),
        (size_t)b->largest);

    for (int i = 0; i < PATHS; i++)
        crowd_leave(&c->places[i]);
    check_wait(c->granted == 2 * PATHS, CROWD_MS);
    crowd_leave_all(c);
    check_wait(c->ended == c->begun && fault_contenders(c->client) == 0, CROWD_MS);
    check_wait(fault_watches(c->client) == 0, CROWD_MS);
    check_num(b->core->watch_bytes, ==, 0);
    check_num(c->granted, ==, 2 * PATHS);
    check_num(c->unconfirmed, ==, 0);
    check_num(count_children("/crowd/00000000000"), ==, 0);
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
        check_ok(flw_session_packets(zks_host(), zks_port(server, 0),
                                     fault_session(crowds[i]->client), &one.received, &one.sent));
        sum.received += one.received;
        sum.sent += one.sent;
    }
    return sum;
}

/* The queue drains: one release, one grant, in the order in which they came. */
static void drain(struct crowd_queue *queue, size_t n)
{
    uint64_t last = 0;

    for (size_t i = 0; i < n; i++) {
        check_wait(queue->order[i] != NULL, WAIT_MS);
        struct crowd_place *place = queue->order[i];
        check_num(place->grant.token, >, last);
        check_num(queue->count, ==, i + 1);
        last = place->grant.token;
        crowd_leave(place);
    }
}

static bool puts_off(struct zkl_client *client)
{
    return locked(client->driver, client->driver->core.put_off_mono_ns != INT64_MAX);
}

/* How many wait; 0 while an answer is due, or a watch is to come. */
static size_t queued(struct crowd *const crowds[CLIENTS])
{
    size_t n = 0, calls = 0;

    for (int i = 0; i < CLIENTS; i++) {
        n += crowd_waiting(crowds[i]);
        calls += fault_calls(crowds[i]->client) + puts_off(crowds[i]->client);
    }
    return calls == 0 ? n : 0;
}

/* Each release wakes only the next one, which sends one request and is granted. The cost of each
 * does not grow. Modes: F44. */
WORLD_TEST(thousands_wait_for_one_path)
{
    const char *path = "/queue/m";
    size_t n = (size_t)test_length(5000, 1000);
    struct crowd *crowds[CLIENTS];
    struct zkl_mutex *mutexes[CLIENTS];
    struct crowd_queue queue = {.order = world_alloc((n + 1) * sizeof(struct crowd_place *))};

    for (int i = 0; i < CLIENTS; i++) {
        crowds[i] = crowd_open(zks_connect_string(server), SESSION_MS, n / CLIENTS, &queue);
        mutexes[i] = world_mutex(crowds[i]->client, path);
    }
    size_t heap = mallinfo2().uordblks;
    int64_t start_ms = net_now_ms();
    for (size_t i = 0; i < n; i++) {
        struct crowd *c = crowds[i % CLIENTS];
        const struct crowd_place *place = crowd_acquire(c, mutexes[i % CLIENTS]);
        /* A few at a time: thousands of lists that it has not sent yet would fill the server's
         * memory. */
        check_wait(fault_calls(c->client) < 20, CROWD_MS);
        check_true(!place->failed);
    }
    check_wait(queued(crowds) == n - 1, CROWD_MS);
    check_num(queue.count, ==, 1);
    check_num(count_children(path), ==, n);
    int64_t queued_ms = net_now_ms();
    size_t each = (mallinfo2().uordblks - heap) / n;
    struct packets before = count_packets(crowds);

    drain(&queue, n);
    for (int i = 0; i < CLIENTS; i++) {
        check_wait(crowds[i]->ended == crowds[i]->begun, WAIT_MS);
        check_num(crowds[i]->unconfirmed, ==, 0);
    }
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
}

/* Twice as long. Modes: F52. */
WORLD_TEST(a_list_longer_than_a_request)
{
    enum { BEFORE = 2500, LENGTH = 900 };
    static char nodes[BEFORE][LENGTH + 100];
    char prefix[LENGTH + 50];
    struct wire *wire = world_wire();
    struct crowd *crowd = crowd_open(zks_connect_string(server), SESSION_MS, 2, NULL);
    struct zkl_mutex *mutex = world_mutex(crowd->client, "/long");

    memset(prefix, 'x', sizeof prefix);
    memcpy(prefix, "/long/", strlen("/long/"));
    snprintf(prefix + LENGTH, sizeof prefix - LENGTH, "-lock-");
    check_ok(wire_create(wire, "/long", "", WIRE_PERSISTENT, NULL, 0));
    for (int i = 0; i < BEFORE; i++)
        check_ok(
            wire_create(wire, prefix, "", WIRE_EPHEMERAL_SEQUENTIAL, nodes[i], sizeof nodes[i]));
    for (int i = 0; i < 2; i++)
        crowd_acquire(crowd, mutex);
    check_wait(crowd_waiting(crowd) == 2 && fault_watches(crowd->client) == 3, CROWD_MS);
    check_wait(flw_watch_count(zks_host(), zks_port(server, 0), nodes[BEFORE - 1]) == 1, CROWD_MS);
    check_ok(wire_delete(wire, nodes[BEFORE - 1], -1));
    check_wait(flw_watch_count(zks_host(), zks_port(server, 0), nodes[BEFORE - 2]) == 1, CROWD_MS);
    for (int i = 0; i < BEFORE - 1; i++) {
        check_num(crowd->granted, ==, 0);
        check_ok(wire_delete(wire, nodes[i], -1));
    }
    for (int i = 0; i < 2; i++) {
        check_wait(crowd->granted == (size_t)i + 1, CROWD_MS);
        check_true(crowd_holds(&crowd->places[i]));
        crowd_leave(&crowd->places[i]);
    }
    check_wait(crowd->ended == 2, CROWD_MS);
}

/* Lists of thousands of names, for many contenders. */
FAULT_MAIN(options.jvm_extra = "-Xmx512m")
