/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy for each pair of servers. Its hook reads the packets, and takes out a PING that must be late, which a thread of
 * the relay then hands over. The proxy's lock comes before the relay's: no call of the proxy is made under this one. */
#include "relay.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "chance.h"
#include "proxy.h"
#include "tool/net.h"
#include "zkserver.h"

#define TOLD_MAX 4096
#define PINGS_MAX 4096 /* bytes that are held back: a PING has 20 */
/* A follower may come before its leader listens. It tries five times in half a second then; here it has
 * been accepted already. */
#define REACH_MS 500
#define MS INT64_C(1000000)

/* Of the server's class Leader; after SNAP comes a snapshot, which ends in a word. */
enum { PACKET_PING = 5, PACKET_REVALIDATE = 6, PACKET_FOLLOWERINFO = 11, PACKET_SNAP = 15 };
static const char snap_end[] = "\0\0\0\nBenWasHere";
#define SNAP_END_SIZE (sizeof snap_end - 1)

/* From a follower to a leader. */
struct route {
    struct relay *relay;
    size_t from;
    struct proxy *proxy;
};

/* What is known of a node as a follower. */
struct follower {
    int jitter_ms;
    int hold; /* PINGs until the one that stays; 0: none */
    int64_t held_at, came_at;
    int64_t passed_at, gap;
    int64_t passed_before; /* the PING before the one that is not answered yet */
    bool cut;
    uint64_t chance;
    unsigned char ping[PINGS_MAX]; /* held back */
    size_t ping_size;
    int64_t ping_due; /* INT64_MAX: until relay_pass */
    struct proxy *ping_to;
};

struct told {
    int64_t session, at;
};

struct relay {
    pthread_t thread;
    pthread_mutex_t mu; /* protects what is below the routes */
    size_t nodes;
    struct route routes[ZKS_NODES_MAX][ZKS_NODES_MAX];
    bool stop;
    struct follower follower[ZKS_NODES_MAX];
    struct told told[TOLD_MAX]; /* a ring; of a session only the newest counts */
    size_t told_next;
};

/* --- packets ---------------------------------------------------------------------------------- */

/* Behind a text or buffer of jute at this place; 0: it is not all here. */
static size_t behind_buffer(const unsigned char *bytes, size_t size, size_t at)
{
    if (at + 4 > size)
        return 0;
    int32_t n = bytes_get32(bytes + at);
    size_t end = at + 4 + (n > 0 ? (size_t)n : 0);
    return end <= size ? end : 0;
}

/* Of the QuorumPacket that begins here: type, zxid, data, a list of Ids; and of the snapshot behind it. */
static size_t packet_size(const unsigned char *bytes, size_t size)
{
    size_t at = size < 12 ? 0 : behind_buffer(bytes, size, 12);

    if (at == 0 || at + 4 > size)
        return 0;
    int32_t ids = bytes_get32(bytes + at);
    at += 4;
    for (int32_t i = 0; i < 2 * ids && at != 0; i++)
        at = behind_buffer(bytes, size, at);
    if (at == 0 || bytes_get32(bytes) != PACKET_SNAP)
        return at;
    const unsigned char *end = memmem(bytes + at, size - at, snap_end, SNAP_END_SIZE);
    return end != NULL ? (size_t)(end - bytes) + SNAP_END_SIZE : 0;
}

static struct told *find_told(struct relay *r, int64_t session)
{
    for (size_t i = 0; i < TOLD_MAX; i++) {
        if (r->told[i].session == session)
            return &r->told[i];
    }
    return NULL;
}

static void note_told(struct relay *r, int64_t session, int64_t now)
{
    struct told *t = find_told(r, session);

    if (t == NULL)
        t = &r->told[r->told_next++ % TOLD_MAX];
    *t = (struct told){session, now};
}

/* The follower's answer to a PING: the sessions that it has heard of, each with its timeout. */
static void see_answer(struct relay *r, struct follower *f, const unsigned char *packet)
{
    int32_t n = bytes_get32(packet + 12);
    int64_t now = net_boot_ns();

    for (int32_t i = 0; i + 12 <= n; i += 12)
        note_told(r, bytes_get64(packet + 16 + i), now);
    if (f->passed_before != 0 && now - f->passed_before > f->gap)
        f->gap = now - f->passed_before;
    f->passed_before = f->passed_at;
}

/* A PING that comes while another one is held back is passed with that one. */
static void hold_ping(struct follower *f, struct proxy *to, const unsigned char *packet, size_t n)
{
    int64_t now = net_boot_ns();
    int late_ms = f->jitter_ms > 0 ? chance_between(&f->chance, 0, f->jitter_ms) : 0;

    f->came_at = now;
    if (f->ping_size == 0)
        f->ping_due = f->hold > 0 ? now : now + late_ms * MS;
    if (f->hold > 0 && --f->hold == 0) {
        f->ping_due = INT64_MAX;
        f->held_at = now;
    }
    if (f->ping_size + n > sizeof f->ping)
        return;
    memcpy(f->ping + f->ping_size, packet, n);
    f->ping_size += n;
    f->ping_to = to;
}

static void forget_link(struct follower *f)
{
    f->passed_at = f->passed_before = 0;
    f->ping_size = 0;
}

/* What comes of a follower that is cut off is lost. */
static size_t see_packet(enum proxy_dir dir, int op, unsigned char *packet, size_t size, void *arg)
{
    struct route *route = arg;
    struct relay *r = route->relay;
    struct follower *f = &r->follower[route->from];
    int32_t type = bytes_get32(packet);
    bool is_up = dir == PROXY_TO_SERVER;

    (void)op;
    pthread_mutex_lock(&r->mu);
    bool passes = !f->cut && (is_up || type != PACKET_PING);
    if (!f->cut && !passes)
        hold_ping(f, route->proxy, packet, size);
    else if (passes && is_up && type == PACKET_PING)
        see_answer(r, f, packet);
    else if (passes && is_up && type == PACKET_REVALIDATE)
        note_told(r, bytes_get64(packet + 16), net_boot_ns());
    else if (passes && is_up && type == PACKET_FOLLOWERINFO) /* a new connection */
        forget_link(f);
    pthread_mutex_unlock(&r->mu);
    return passes ? size : 0;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void pass_ping(struct relay *r, struct follower *f)
{
    unsigned char ping[PINGS_MAX];
    size_t size = 0;

    pthread_mutex_lock(&r->mu);
    if (f->ping_size > 0 && net_boot_ns() >= f->ping_due) {
        size = f->ping_size;
        memcpy(ping, f->ping, size);
        f->ping_size = 0;
        f->passed_at = net_boot_ns();
    }
    struct proxy *to = f->ping_to;
    pthread_mutex_unlock(&r->mu);
    if (size > 0)
        proxy_send(to, PROXY_TO_CLIENT, ping, size);
}

static bool has_stopped(struct relay *r)
{
    pthread_mutex_lock(&r->mu);
    bool stop = r->stop;
    pthread_mutex_unlock(&r->mu);
    return stop;
}

static void *pass_pings(void *arg)
{
    struct relay *r = arg;

    for (; !has_stopped(r); net_nap_ms(1)) {
        for (size_t i = 0; i < r->nodes; i++)
            pass_ping(r, &r->follower[i]);
    }
    return NULL;
}

/* --- calls ------------------------------------------------------------------------------------ */

int relay_start(struct relay **relay, size_t nodes)
{
    struct relay *r = calloc(1, sizeof *r);

    if (r == NULL)
        return -1;
    r->nodes = nodes;
    pthread_mutex_init(&r->mu, NULL);
    if (pthread_create(&r->thread, NULL, pass_pings, r) != 0)
        return -1;
    *relay = r;
    return 0;
}

void relay_stop(struct relay *r)
{
    pthread_mutex_lock(&r->mu);
    r->stop = true;
    pthread_mutex_unlock(&r->mu);
    pthread_join(r->thread, NULL);
    for (size_t i = 0; i < r->nodes * r->nodes; i++)
        proxy_stop(r->routes[i / r->nodes][i % r->nodes].proxy);
    free(r);
}

int relay_route(void *relay, size_t from, size_t to, int port)
{
    struct relay *r = relay;
    struct route *route = &r->routes[from][to];

    proxy_stop(route->proxy);
    *route = (struct route){.relay = r, .from = from};
    if (proxy_start(&route->proxy, zks_host(), port) != 0)
        return 0;
    proxy_set_frames(route->proxy, packet_size);
    proxy_set_patience(route->proxy, REACH_MS);
    proxy_set_hook(route->proxy, see_packet, route);
    return proxy_port(route->proxy);
}

/* The follower's part of the relay, which is changed between the two. */
static struct follower *begin(struct relay *r, size_t follower)
{
    pthread_mutex_lock(&r->mu);
    return &r->follower[follower];
}

static void end(struct relay *r)
{
    pthread_mutex_unlock(&r->mu);
}

void relay_jitter(struct relay *r, size_t follower, int max_ms, uint64_t seed)
{
    struct follower *f = begin(r, follower);

    f->jitter_ms = max_ms;
    f->chance = seed;
    end(r);
}

void relay_hold(struct relay *r, size_t follower)
{
    struct follower *f = begin(r, follower);

    f->hold = 2;
    f->held_at = 0;
    end(r);
}

int64_t relay_wait_held(struct relay *r, size_t follower, int timeout_ms)
{
    int64_t end_ms = net_now_ms() + timeout_ms;

    while (relay_seen(r, follower).held_ns == 0 && net_now_ms() < end_ms)
        net_nap_ms(1);
    return relay_seen(r, follower).held_ns;
}

void relay_pass(struct relay *r, size_t follower)
{
    struct follower *f = begin(r, follower);

    f->hold = 0;
    f->ping_due = 0;
    end(r);
}

int64_t relay_cut(struct relay *r, size_t follower)
{
    struct follower *f = begin(r, follower);

    f->cut = true;
    f->ping_size = 0;
    end(r);
    for (size_t i = 0; i < r->nodes; i++) {
        if (i != follower)
            proxy_hole(r->routes[follower][i].proxy, PROXY_BOTH);
    }
    return net_boot_ns();
}

void relay_heal(struct relay *r, size_t follower)
{
    for (size_t i = 0; i < r->nodes; i++) {
        if (i != follower)
            proxy_cut(r->routes[follower][i].proxy);
    }
    struct follower *f = begin(r, follower);
    f->cut = false;
    f->hold = 0;
    end(r);
    for (size_t i = 0; i < r->nodes; i++) {
        if (i != follower)
            proxy_heal(r->routes[follower][i].proxy);
    }
}

struct relay_seen relay_seen(struct relay *r, size_t follower)
{
    const struct follower *f = begin(r, follower);
    struct relay_seen seen = {f->came_at, f->passed_at, f->gap, f->held_at};

    end(r);
    return seen;
}

void relay_reset_gap(struct relay *r, size_t follower)
{
    begin(r, follower)->gap = 0;
    end(r);
}

int64_t relay_told(struct relay *r, int64_t session)
{
    pthread_mutex_lock(&r->mu);
    struct told *t = session ? find_told(r, session) : NULL;
    int64_t at = t ? t->at : 0;
    pthread_mutex_unlock(&r->mu);
    return at;
}
