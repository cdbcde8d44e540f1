/* SPDX-License-Identifier: Apache-2.0 */
/* One thread polls all sockets; everything is under one mutex, which it gives back while it polls. */
#include "relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bytes.h"
#include "chance.h"
#include "tool/net.h"
#include "zkserver.h"

#define LINKS_MAX 32
#define TOLD_MAX 4096
#define POLL_MS 1
#define AGAIN_MS 20
/* A follower may come before its leader listens. It tries five times in half a second then; here it has
 * been accepted already. */
#define REACH_MS 500
#define MS INT64_C(1000000)

/* Of the server's class Leader; after SNAP comes a snapshot, which ends in a word. */
enum { PACKET_PING = 5, PACKET_REVALIDATE = 6, PACKET_SNAP = 15 };
static const char snap_end[] = "\0\0\0\nBenWasHere";
#define SNAP_END_SIZE (sizeof snap_end - 1)

struct bytes {
    unsigned char *at;
    size_t used, size;
};

struct lane {
    struct bytes in, out; /* a packet that has come in part; what must be sent */
    bool snapshot;        /* within one */
    bool eof;
};

struct link {
    size_t learner;
    int fd[2];            /* of the learner, of the leader */
    struct lane up, down; /* to the leader, to the learner */
    struct bytes ping;    /* held back */
    int64_t ping_due;     /* INT64_MAX: until relay_pass */
    int target;           /* the leader's port */
    bool reached;
    int64_t again_at, give_up_at; /* while it is not reached */
    bool lost, gone;
};

/* What is known of a node as a follower. */
struct follower {
    int jitter_ms;
    int hold; /* PINGs until the one that stays; 0: none */
    int64_t held_at, came_at;
    int64_t passed_at, gap, answered_at;
    int64_t passed_before; /* the PING before the one that is not answered yet */
    bool cut;
    uint64_t chance;
};

struct told {
    int64_t session, at;
};

struct relay {
    pthread_t thread;
    pthread_mutex_t mu;
    bool stop;
    size_t nodes;
    int listener[ZKS_NODES_MAX][ZKS_NODES_MAX], port[ZKS_NODES_MAX][ZKS_NODES_MAX];
    int target[ZKS_NODES_MAX][ZKS_NODES_MAX];
    struct follower follower[ZKS_NODES_MAX];
    struct link *links[LINKS_MAX];
    struct told told[TOLD_MAX]; /* a ring; of a session only the newest counts */
    size_t told_next;
};

/* --- bytes ------------------------------------------------------------------------------------ */

static bool bytes_add(struct bytes *b, const void *data, size_t n)
{
    if (b->used + n > b->size) {
        size_t size = (b->used + n) * 2;
        unsigned char *at = realloc(b->at, size);
        if (at == NULL)
            return false;
        b->at = at;
        b->size = size;
    }
    memcpy(b->at + b->used, data, n);
    b->used += n;
    return true;
}

static void bytes_drop(struct bytes *b, size_t n)
{
    memmove(b->at, b->at + n, b->used - n);
    b->used -= n;
}

/* --- packets ---------------------------------------------------------------------------------- */

/* Behind a text or buffer of jute at this place; 0: it is not all here. */
static size_t behind_buffer(const struct bytes *b, size_t at)
{
    if (at + 4 > b->used)
        return 0;
    int32_t n = bytes_get32(b->at + at);
    size_t end = at + 4 + (n > 0 ? (size_t)n : 0);
    return end <= b->used ? end : 0;
}

/* The length of the QuorumPacket that begins here: type, zxid, data, a list of Ids; 0: not all here. */
static size_t packet_size(const struct bytes *b)
{
    size_t at = b->used < 12 ? 0 : behind_buffer(b, 12);

    if (at == 0 || at + 4 > b->used)
        return 0;
    int32_t ids = bytes_get32(b->at + at);
    at += 4;
    for (int32_t i = 0; i < 2 * ids && at != 0; i++)
        at = behind_buffer(b, at);
    return at;
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
static void see_answer(struct relay *r, struct link *l, const unsigned char *packet)
{
    struct follower *f = &r->follower[l->learner];
    int32_t n = bytes_get32(packet + 12);
    int64_t now = net_boot_ns();

    for (int32_t i = 0; i + 12 <= n; i += 12)
        note_told(r, bytes_get64(packet + 16 + i), now);
    if (f->passed_before != 0 && now - f->passed_before > f->gap)
        f->gap = now - f->passed_before;
    f->passed_before = f->passed_at;
    f->answered_at = now;
}

/* A PING that comes while another one is held back is passed with that one. */
static void hold_ping(struct relay *r, struct link *l, const unsigned char *packet, size_t n)
{
    struct follower *f = &r->follower[l->learner];
    int64_t now = net_boot_ns();
    int late_ms = f->jitter_ms > 0 ? chance_between(&f->chance, 0, f->jitter_ms) : 0;

    f->came_at = now;
    if (l->ping.used == 0)
        l->ping_due = f->hold > 0 ? now : now + late_ms * MS;
    if (f->hold > 0 && --f->hold == 0) {
        l->ping_due = INT64_MAX;
        f->held_at = now;
    }
    bytes_add(&l->ping, packet, n);
}

static void pass_ping(struct relay *r, struct link *l)
{
    bytes_add(&l->down.out, l->ping.at, l->ping.used);
    l->ping.used = 0;
    r->follower[l->learner].passed_at = net_boot_ns();
}

static void pass_snapshot(struct lane *lane)
{
    unsigned char *end = memmem(lane->in.at, lane->in.used, snap_end, SNAP_END_SIZE);
    size_t keep = SNAP_END_SIZE - 1;
    size_t n = end != NULL ? (size_t)(end - lane->in.at) + SNAP_END_SIZE
                           : (lane->in.used > keep ? lane->in.used - keep : 0);

    bytes_add(&lane->out, lane->in.at, n);
    bytes_drop(&lane->in, n);
    lane->snapshot = end == NULL;
}

static void pass_packets(struct relay *r, struct link *l, struct lane *lane)
{
    size_t n;

    if (lane->snapshot)
        pass_snapshot(lane);
    while (!lane->snapshot && (n = packet_size(&lane->in)) > 0) {
        int32_t type = bytes_get32(lane->in.at);
        if (type == PACKET_PING && lane == &l->down) {
            hold_ping(r, l, lane->in.at, n);
        } else {
            if (type == PACKET_PING)
                see_answer(r, l, lane->in.at);
            else if (type == PACKET_REVALIDATE && lane == &l->up)
                note_told(r, bytes_get64(lane->in.at + 16), net_boot_ns());
            bytes_add(&lane->out, lane->in.at, n);
        }
        bytes_drop(&lane->in, n);
        lane->snapshot = type == PACKET_SNAP && lane == &l->down;
        if (lane->snapshot)
            pass_snapshot(lane);
    }
}

/* --- links ------------------------------------------------------------------------------------ */

static void close_link(struct relay *r, size_t i)
{
    struct link *l = r->links[i];

    close(l->fd[0]);
    if (l->fd[1] >= 0)
        close(l->fd[1]);
    free(l->up.in.at);
    free(l->up.out.at);
    free(l->down.in.at);
    free(l->down.out.at);
    free(l->ping.at);
    free(l);
    r->links[i] = NULL;
}

static void add_link(struct relay *r, size_t from, size_t to, int fd)
{
    size_t i = 0;
    int one = 1;

    while (i < LINKS_MAX && r->links[i] != NULL)
        i++;
    struct link *l = i < LINKS_MAX ? calloc(1, sizeof *l) : NULL;
    if (l == NULL) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    l->learner = from;
    l->fd[0] = fd;
    l->lost = r->follower[from].cut;
    l->fd[1] = -1;
    l->target = r->target[from][to];
    l->give_up_at = net_boot_ns() + REACH_MS * MS;
    r->links[i] = l;
    r->follower[from].passed_at = r->follower[from].passed_before = 0;
}

static void accept_all(struct relay *r)
{
    for (size_t from = 0; from < r->nodes; from++) {
        for (size_t to = 0; to < r->nodes; to++) {
            int fd = r->listener[from][to] < 0
                         ? -1
                         : accept4(r->listener[from][to], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (fd >= 0)
                add_link(r, from, to, fd);
        }
    }
}

static void read_lane(struct relay *r, struct link *l, struct lane *lane, int fd)
{
    unsigned char buf[65536];
    ssize_t n;

    while (!lane->eof && (n = recv(fd, buf, sizeof buf, 0)) != 0) {
        if (n < 0) {
            lane->eof = errno != EAGAIN && errno != EINTR && errno != ENOTCONN;
            return;
        }
        if (!l->lost && bytes_add(&lane->in, buf, (size_t)n))
            pass_packets(r, l, lane);
    }
    lane->eof = true;
}

static void write_lane(struct link *l, struct lane *lane, int fd)
{
    while (!l->lost && lane->out.used > 0) {
        ssize_t n = send(fd, lane->out.at, lane->out.used, MSG_NOSIGNAL);
        if (n < 0) {
            l->gone |= errno != EAGAIN && errno != EINTR && errno != ENOTCONN;
            return;
        }
        bytes_drop(&lane->out, (size_t)n);
    }
    l->gone |= lane->eof && !l->lost && lane->out.used == 0;
}

static void reach(struct link *l)
{
    struct pollfd p = {l->fd[1], POLLOUT, 0};
    int64_t now = net_boot_ns();

    if (l->fd[1] >= 0 && poll(&p, 1, 0) == 1) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(l->fd[1], SOL_SOCKET, SO_ERROR, &error, &size);
        l->reached = error == 0;
        if (!l->reached)
            close(l->fd[1]);
        l->fd[1] = l->reached ? l->fd[1] : -1;
    }
    if (l->fd[1] < 0 && now >= l->again_at) {
        l->gone = now > l->give_up_at;
        l->fd[1] = l->gone ? -1 : net_connect_begin(zks_host(), l->target);
        l->again_at = now + AGAIN_MS * MS;
    }
}

static void serve_link(struct relay *r, struct link *l)
{
    read_lane(r, l, &l->up, l->fd[0]);
    if (!l->reached && !l->lost)
        reach(l);
    if (!l->reached)
        return;
    read_lane(r, l, &l->down, l->fd[1]);
    if (l->ping.used > 0 && net_boot_ns() >= l->ping_due)
        pass_ping(r, l);
    write_lane(l, &l->up, l->fd[1]);
    write_lane(l, &l->down, l->fd[0]);
}

/* --- the thread ------------------------------------------------------------------------------- */

static size_t fill_poll(struct relay *r, struct pollfd *fds)
{
    size_t n = 0;

    for (size_t i = 0; i < r->nodes * r->nodes; i++)
        fds[n++] = (struct pollfd){r->listener[i / r->nodes][i % r->nodes], POLLIN, 0};
    for (size_t i = 0; i < LINKS_MAX; i++) {
        struct link *l = r->links[i];
        if (l == NULL)
            continue;
        fds[n++] = (struct pollfd){l->up.eof ? -1 : l->fd[0], POLLIN, 0};
        fds[n++] = (struct pollfd){l->down.eof || !l->reached ? -1 : l->fd[1], POLLIN, 0};
    }
    return n;
}

/* Whether something waits for a moment and not for a socket. */
static bool is_pending(const struct relay *r)
{
    for (size_t i = 0; i < LINKS_MAX; i++) {
        const struct link *l = r->links[i];
        if (l != NULL &&
            (!l->reached || l->ping.used > 0 || l->up.out.used > 0 || l->down.out.used > 0))
            return true;
    }
    return false;
}

static void *relay_main(void *arg)
{
    struct relay *r = arg;
    struct pollfd fds[ZKS_NODES_MAX * ZKS_NODES_MAX + 2 * LINKS_MAX];

    pthread_mutex_lock(&r->mu);
    while (!r->stop) {
        size_t n = fill_poll(r, fds);
        int wait_ms = is_pending(r) ? POLL_MS : 5;
        pthread_mutex_unlock(&r->mu);
        poll(fds, n, wait_ms);
        pthread_mutex_lock(&r->mu);
        accept_all(r);
        for (size_t i = 0; i < LINKS_MAX; i++) {
            if (r->links[i] != NULL)
                serve_link(r, r->links[i]);
            if (r->links[i] != NULL && r->links[i]->gone)
                close_link(r, i);
        }
    }
    pthread_mutex_unlock(&r->mu);
    return NULL;
}

/* --- calls ------------------------------------------------------------------------------------ */

static int listen_all(struct relay *r)
{
    for (size_t i = 0; i < r->nodes * r->nodes; i++) {
        size_t from = i / r->nodes, to = i % r->nodes;
        if (from != to && (r->listener[from][to] = net_listen(&r->port[from][to])) < 0)
            return -1;
    }
    return 0;
}

int relay_start(struct relay **relay, size_t nodes)
{
    struct relay *r = calloc(1, sizeof *r);

    if (r == NULL)
        return -1;
    memset(r->listener, -1, sizeof r->listener);
    r->nodes = nodes;
    pthread_mutex_init(&r->mu, NULL);
    if (listen_all(r) != 0 || pthread_create(&r->thread, NULL, relay_main, r) != 0)
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
    for (size_t i = 0; i < LINKS_MAX; i++) {
        if (r->links[i] != NULL)
            close_link(r, i);
    }
    for (size_t i = 0; i < r->nodes * r->nodes; i++) {
        if (r->listener[i / r->nodes][i % r->nodes] >= 0)
            close(r->listener[i / r->nodes][i % r->nodes]);
    }
    free(r);
}

int relay_route(void *relay, size_t from, size_t to, int port)
{
    struct relay *r = relay;

    pthread_mutex_lock(&r->mu);
    r->target[from][to] = port;
    pthread_mutex_unlock(&r->mu);
    return r->port[from][to];
}

void relay_jitter(struct relay *r, size_t follower, int max_ms, uint64_t seed)
{
    pthread_mutex_lock(&r->mu);
    r->follower[follower].jitter_ms = max_ms;
    r->follower[follower].chance = seed;
    pthread_mutex_unlock(&r->mu);
}

void relay_hold(struct relay *r, size_t follower)
{
    pthread_mutex_lock(&r->mu);
    r->follower[follower].hold = 2;
    r->follower[follower].held_at = 0;
    pthread_mutex_unlock(&r->mu);
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
    pthread_mutex_lock(&r->mu);
    r->follower[follower].hold = 0;
    for (size_t i = 0; i < LINKS_MAX; i++) {
        if (r->links[i] != NULL && r->links[i]->learner == follower)
            r->links[i]->ping_due = 0;
    }
    pthread_mutex_unlock(&r->mu);
}

int64_t relay_cut(struct relay *r, size_t follower)
{
    pthread_mutex_lock(&r->mu);
    r->follower[follower].cut = true;
    for (size_t i = 0; i < LINKS_MAX; i++) {
        struct link *l = r->links[i];
        if (l == NULL || l->learner != follower)
            continue;
        l->lost = true;
        l->ping.used = l->up.out.used = l->down.out.used = 0;
    }
    int64_t now = net_boot_ns();
    pthread_mutex_unlock(&r->mu);
    return now;
}

void relay_heal(struct relay *r, size_t follower)
{
    pthread_mutex_lock(&r->mu);
    r->follower[follower].cut = false;
    r->follower[follower].hold = 0;
    for (size_t i = 0; i < LINKS_MAX; i++) {
        if (r->links[i] != NULL && r->links[i]->lost)
            r->links[i]->gone = true;
    }
    pthread_mutex_unlock(&r->mu);
}

struct relay_seen relay_seen(struct relay *r, size_t follower)
{
    pthread_mutex_lock(&r->mu);
    const struct follower *f = &r->follower[follower];
    struct relay_seen seen = {f->came_at, f->passed_at, f->gap, f->held_at};
    pthread_mutex_unlock(&r->mu);
    return seen;
}

void relay_reset_gap(struct relay *r, size_t follower)
{
    pthread_mutex_lock(&r->mu);
    r->follower[follower].gap = 0;
    pthread_mutex_unlock(&r->mu);
}

int64_t relay_told(struct relay *r, int64_t session)
{
    pthread_mutex_lock(&r->mu);
    struct told *t = session ? find_told(r, session) : NULL;
    int64_t at = t ? t->at : 0;
    pthread_mutex_unlock(&r->mu);
    return at;
}
