/* SPDX-License-Identifier: Apache-2.0 */
/* One thread polls all sockets. Everything in struct proxy is under its mutex, which the thread
 * holds except while it polls; sockets are closed by the thread alone, so that none is closed
 * under its poll(). Frames and what is done with them: proxy_frame.c. */
#include "proxy.h"

#include "tool/net.h"
#include "proxy_frame.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINKS_MAX 64 /* more connections than this wait in the listener's queue */
#define REFUSE_WAIT_MS 60000
#define READ_SIZE 65536

struct proxy {
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t changed; /* a fault struck, a count grew, the listener was opened or closed */
    struct rules rules;     /* all below is protected by mu */
    struct link *links;
    int hole;       /* enum proxy_dir, ored */
    size_t trickle; /* bytes in a millisecond; 0: all */
    int patience_ms;
    int listener;
    bool refuse;
    bool refuse_failed;
    bool stop;
    int wake; /* eventfd: poll again */
    int port;
    int server_port;
    char server_host[32];
    char listen_host[48];
    char address[64];
};

/* --- links ------------------------------------------------------------------------------------ */

static void close_link(struct rules *rules, struct link *l)
{
    close(l->client);
    if (l->server >= 0)
        close(l->server);
    lane_free(&l->to_server);
    lane_free(&l->to_client);
    asked_free(rules, &l->asked);
    free(l);
}

static void remove_gone_links(struct proxy *p)
{
    struct link **at = &p->links;

    while (*at != NULL) {
        struct link *l = *at;
        if (l->gone) {
            *at = l->next;
            close_link(&p->rules, l);
        } else {
            at = &l->next;
        }
    }
}

static size_t count_links(const struct proxy *p)
{
    size_t n = 0;

    for (const struct link *l = p->links; l != NULL; l = l->next)
        n += !l->gone;
    return n;
}

static int connect_server(const struct proxy *p)
{
    int64_t end_ms = net_now_ms() + p->patience_ms;
    int fd = -1;

    if (p->patience_ms == 0)
        return net_connect_begin(p->server_host, p->server_port);
    while ((fd = net_connect(p->server_host, p->server_port, end_ms)) < 0 && net_now_ms() < end_ms)
        net_nap_ms(20);
    return fd;
}

/* In a partition the client's connection leads nowhere. */
static void add_link(struct proxy *p, int client)
{
    struct link *l = calloc(1, sizeof *l);

    if (l == NULL) {
        close(client);
        return;
    }
    l->client = client;
    l->lost = p->hole != 0;
    l->server = l->lost ? -1 : connect_server(p);
    l->gone = !l->lost && l->server < 0;
    lane_init(&l->to_server, PROXY_TO_SERVER);
    lane_init(&l->to_client, PROXY_TO_CLIENT);
    l->next = p->links;
    p->links = l;
}

static void accept_clients(struct proxy *p)
{
    int one = 1;

    while (count_links(p) < LINKS_MAX) {
        int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        add_link(p, fd);
    }
}

/* --- bytes in and out ------------------------------------------------------------------------- */

static void read_side(struct proxy *p, struct link *l, struct lane *lane, int fd)
{
    unsigned char buf[READ_SIZE];

    while (!lane->eof) {
        ssize_t n = recv(fd, buf, sizeof buf, 0);
        if (n > 0) {
            if (!l->lost)
                lane_take(&p->rules, l, lane, buf, (size_t)n);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else {
            lane->eof = true; /* a reset too: what came before it still counts */
        }
    }
}

/* False if the frame was not written in full: the socket takes no more now, or never will. In that
 * case the rest of what the other side sends, and its end, are still to be read: they close the
 * link. */
static bool write_frame(struct lane *lane, struct frame *f, int fd, size_t trickle)
{
    while (f->done < f->size) {
        size_t left = f->size - f->done, most = trickle > 0 && trickle < left ? trickle : left;
        ssize_t n = send(fd, f->data + f->done, most, MSG_NOSIGNAL);
        if (n > 0) {
            f->done += (size_t)n;
            if (most < left) {
                f->due_ms = net_now_ms() + 1;
                return false;
            }
        } else if (n < 0 && errno == EAGAIN) {
            return false;
        } else if (n < 0 && errno != EINTR) {
            lane_kill(lane);
            return false;
        }
    }
    return true;
}

static void write_side(struct proxy *p, struct link *l, struct lane *lane, int fd)
{
    struct frame *f;

    if (p->hole & (int)lane->dir)
        return;
    while ((f = lane_due(lane, net_now_ms())) != NULL) {
        if (!write_frame(lane, f, fd, p->trickle))
            return;
        lane_pop(lane);
    }
    /* A side that has closed, or a fault that cuts: the end, once all before it has been passed
     * on. */
    if (lane->head == NULL && (lane->cut || (lane->eof && !lane->dead)))
        l->gone = true;
}

static void serve_link(struct proxy *p, struct link *l)
{
    if (l->gone)
        return;
    read_side(p, l, &l->to_server, l->client);
    if (l->lost) {
        l->gone = l->to_server.eof;
        return;
    }
    read_side(p, l, &l->to_client, l->server);
    write_side(p, l, &l->to_server, l->server);
    write_side(p, l, &l->to_client, l->client);
    if (l->to_server.eof && l->to_client.eof) /* no peer is left on either side */
        l->gone = true;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Open or close the listener as proxy_refuse wants it. */
static void set_listener(struct proxy *p)
{
    if (p->refuse == (p->listener < 0))
        return;
    if (p->refuse) {
        close(p->listener);
        p->listener = -1;
    } else {
        p->listener = net_listen_at(p->listen_host, p->port);
        p->refuse_failed = p->listener < 0;
        p->refuse = p->refuse_failed;
    }
    pthread_cond_broadcast(&p->changed);
}

/* Is there a frame that may be sent now? If not, until when to wait for the next one. */
static bool wants_write(const struct proxy *p, const struct link *l, struct lane *lane,
                        int64_t now_ms, int64_t *next_ms)
{
    if (p->hole & (int)lane->dir || l->lost)
        return false;
    if (lane_due(lane, now_ms) != NULL)
        return true;
    if (lane->head != NULL && !lane->head->barrier && lane->head->due_ms < *next_ms)
        *next_ms = lane->head->due_ms;
    return false;
}

/* poll() reports a hang-up even if it is not asked for: a descriptor with nothing to do is left
 * out. */
static struct pollfd poll_entry(int fd, bool in, bool out)
{
    short events = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));
    struct pollfd e = {events != 0 ? fd : -1, events, 0};

    return e;
}

static size_t fill_poll(struct proxy *p, struct pollfd *fds, int64_t now_ms, int64_t *next_ms)
{
    size_t n = 0;

    fds[n++] = poll_entry(p->wake, true, false);
    fds[n++] = poll_entry(p->listener, p->listener >= 0 && count_links(p) < LINKS_MAX, false);
    for (struct link *l = p->links; l != NULL; l = l->next) {
        bool to_client = wants_write(p, l, &l->to_client, now_ms, next_ms);
        bool to_server = wants_write(p, l, &l->to_server, now_ms, next_ms);
        fds[n++] = poll_entry(l->client, !l->to_server.eof, to_client);
        fds[n++] = poll_entry(l->server, l->server >= 0 && !l->to_client.eof, to_server);
    }
    return n;
}

static void wait_for_work(struct proxy *p)
{
    struct pollfd fds[2 + 2 * LINKS_MAX];
    int64_t now_ms = net_now_ms();
    int64_t next_ms = INT64_MAX;
    size_t n = fill_poll(p, fds, now_ms, &next_ms);
    uint64_t unused;

    pthread_mutex_unlock(&p->mu);
    poll(fds, n, next_ms == INT64_MAX ? -1 : (int)(next_ms - now_ms));
    pthread_mutex_lock(&p->mu);
    while (read(p->wake, &unused, sizeof unused) > 0)
        ;
}

static void *run(void *arg)
{
    struct proxy *p = arg;

    pthread_mutex_lock(&p->mu);
    while (!p->stop) {
        wait_for_work(p);
        set_listener(p);
        if (p->listener >= 0)
            accept_clients(p);
        for (struct link *l = p->links; l != NULL; l = l->next)
            serve_link(p, l);
        remove_gone_links(p);
        if (p->rules.news) {
            p->rules.news = false;
            pthread_cond_broadcast(&p->changed);
        }
    }
    for (struct link *l = p->links; l != NULL; l = l->next)
        l->gone = true;
    remove_gone_links(p);
    pthread_mutex_unlock(&p->mu);
    return NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */

static void wake(struct proxy *p)
{
    uint64_t one = 1;

    while (write(p->wake, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void free_proxy(struct proxy *p)
{
    if (p->listener >= 0)
        close(p->listener);
    if (p->wake >= 0)
        close(p->wake);
    free(p);
}

static int start_thread(struct proxy *p)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&p->mu, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &attr);
    pthread_condattr_destroy(&attr);
    return pthread_create(&p->thread, NULL, run, p) == 0 ? 0 : -1;
}

static int start(struct proxy **proxy, const char *host, int port, const char *address,
                 int listener, int listen_port)
{
    struct proxy *p = calloc(1, sizeof *p);

    if (p == NULL) {
        close(listener);
        return -1;
    }
    p->listener = listener;
    p->port = listen_port;
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->server_port = port;
    snprintf(p->server_host, sizeof p->server_host, "%s", host);
    snprintf(p->listen_host, sizeof p->listen_host, "%s", address);
    if (strchr(address, ':') != NULL)
        snprintf(p->address, sizeof p->address, "[%s]:%d", p->listen_host, p->port);
    else
        snprintf(p->address, sizeof p->address, "%s:%d", p->listen_host, p->port);
    if (p->listener < 0 || p->wake < 0 || start_thread(p) != 0) {
        free_proxy(p);
        return -1;
    }
    *proxy = p;
    return 0;
}

int proxy_start(struct proxy **proxy, const char *host, int port)
{
    int listen_port = 0;
    int listener = net_listen(&listen_port);

    return start(proxy, host, port, "127.0.0.1", listener, listen_port);
}

int proxy_start_at(struct proxy **proxy, const char *host, int port, const char *address,
                   int listen_port)
{
    return start(proxy, host, port, address, net_listen_at(address, listen_port), listen_port);
}

void proxy_stop(struct proxy *proxy)
{
    if (proxy == NULL)
        return;
    pthread_mutex_lock(&proxy->mu);
    proxy->stop = true;
    wake(proxy);
    pthread_mutex_unlock(&proxy->mu);
    pthread_join(proxy->thread, NULL);
    pthread_mutex_destroy(&proxy->mu);
    pthread_cond_destroy(&proxy->changed);
    free_proxy(proxy);
}

void proxy_set_opaque(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mu);
    proxy->rules.opaque = true;
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_set_frames(struct proxy *proxy,
                      size_t (*size_of)(const unsigned char *data, size_t size))
{
    proxy_set_opaque(proxy);
    pthread_mutex_lock(&proxy->mu);
    proxy->rules.size_of = size_of;
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_set_patience(struct proxy *proxy, int ms)
{
    pthread_mutex_lock(&proxy->mu);
    proxy->patience_ms = ms;
    pthread_mutex_unlock(&proxy->mu);
}

int proxy_port(const struct proxy *proxy)
{
    return proxy->port;
}

const char *proxy_address(const struct proxy *proxy)
{
    return proxy->address;
}

/* --- faults ----------------------------------------------------------------------------------- */

static int arm(struct proxy *p, const struct fault *f)
{
    int rc;

    pthread_mutex_lock(&p->mu);
    rc = rules_arm(&p->rules, f);
    pthread_mutex_unlock(&p->mu);
    return rc;
}

static int arm_drop(struct proxy *p, enum fault_place place, enum proxy_op op, int nth,
                    enum proxy_then then)
{
    struct fault f = {place, then == PROXY_THEN_CUT ? FAULT_CUT : FAULT_SILENT, op, nth};

    return arm(p, &f);
}

int proxy_drop_reply(struct proxy *proxy, enum proxy_op op, int nth, enum proxy_then then)
{
    return arm_drop(proxy, AT_REPLY, op, nth, then);
}

int proxy_drop_request(struct proxy *proxy, enum proxy_op op, int nth, enum proxy_then then)
{
    return arm_drop(proxy, AT_REQUEST, op, nth, then);
}

int proxy_hold_reply(struct proxy *proxy, enum proxy_op op, int nth)
{
    struct fault f = {AT_REPLY, FAULT_HOLD, op, nth};

    return arm(proxy, &f);
}

int proxy_hold_request(struct proxy *proxy, enum proxy_op op, int nth)
{
    struct fault f = {AT_REQUEST, FAULT_HOLD, op, nth};

    return arm(proxy, &f);
}

void proxy_release(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mu);
    rules_disarm(&proxy->rules, true);
    for (struct link *l = proxy->links; l != NULL; l = l->next) {
        lane_release(&l->to_server);
        lane_release(&l->to_client);
        asked_forget(&proxy->rules, &l->asked, true);
    }
    wake(proxy);
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_disarm(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mu);
    rules_disarm(&proxy->rules, false);
    for (struct link *l = proxy->links; l != NULL; l = l->next)
        asked_forget(&proxy->rules, &l->asked, false);
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_hang_up_on(struct proxy *proxy, enum proxy_op op)
{
    pthread_mutex_lock(&proxy->mu);
    rules_hang_up_on(&proxy->rules, op);
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_hole(struct proxy *proxy, enum proxy_dir dirs)
{
    pthread_mutex_lock(&proxy->mu);
    proxy->hole |= (int)dirs;
    wake(proxy);
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_heal(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mu);
    proxy->hole = 0;
    for (struct link *l = proxy->links; l != NULL; l = l->next)
        l->gone = l->gone || l->lost;
    wake(proxy);
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_end_abandoned(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mu);
    for (struct link *l = proxy->links; l != NULL; l = l->next)
        l->gone = l->gone || l->to_server.eof;
    wake(proxy);
    pthread_mutex_unlock(&proxy->mu);
}

/* Both ends see the connection's end before this returns; the thread closes the descriptors. */
void proxy_cut(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mu);
    for (struct link *l = proxy->links; l != NULL; l = l->next) {
        l->gone = true;
        shutdown(l->client, SHUT_RDWR);
        if (l->server >= 0)
            shutdown(l->server, SHUT_RDWR);
    }
    wake(proxy);
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_half_open(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mu);
    for (struct link *l = proxy->links; l != NULL; l = l->next) {
        l->lost = true;
        l->to_client.eof = true;
        if (l->server >= 0)
            shutdown(l->server, SHUT_RDWR);
    }
    wake(proxy);
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_trickle(struct proxy *proxy, size_t bytes)
{
    pthread_mutex_lock(&proxy->mu);
    proxy->trickle = bytes;
    wake(proxy);
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_delay_ms(struct proxy *proxy, int ms)
{
    pthread_mutex_lock(&proxy->mu);
    proxy->rules.delay_ms = ms;
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_set_hook(struct proxy *proxy, proxy_hook_fn hook, void *arg)
{
    pthread_mutex_lock(&proxy->mu);
    proxy->rules.hook = hook;
    proxy->rules.hook_arg = arg;
    pthread_mutex_unlock(&proxy->mu);
}

void proxy_send(struct proxy *proxy, enum proxy_dir dir, const void *data, size_t size)
{
    pthread_mutex_lock(&proxy->mu);
    struct link *l = proxy->links;
    while (l != NULL && l->gone)
        l = l->next;
    struct lane *lane = l == NULL ? NULL : dir == PROXY_TO_SERVER ? &l->to_server : &l->to_client;
    if (lane != NULL && !lane->dead)
        lane_append(&proxy->rules, lane, data, size, false);
    wake(proxy);
    pthread_mutex_unlock(&proxy->mu);
}

/* --- waiting and looking ---------------------------------------------------------------------- */

static struct timespec deadline_after(int timeout_ms)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += timeout_ms / 1000;
    t.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

int proxy_refuse(struct proxy *proxy, bool refuse)
{
    struct timespec deadline = deadline_after(REFUSE_WAIT_MS);
    int rc = 0;

    pthread_mutex_lock(&proxy->mu);
    proxy->refuse = refuse;
    proxy->refuse_failed = false;
    wake(proxy);
    while (rc == 0 && !proxy->refuse_failed && refuse != (proxy->listener < 0))
        rc = pthread_cond_timedwait(&proxy->changed, &proxy->mu, &deadline);
    if (proxy->refuse_failed)
        rc = -1;
    pthread_mutex_unlock(&proxy->mu);
    return rc == 0 ? 0 : -1;
}

/* A drop or a hold has struck when its frame came: until then it is armed, or marked on a
 * request. */
static int wait_struck(struct proxy *p, bool holds, int timeout_ms)
{
    struct timespec deadline = deadline_after(timeout_ms);
    int rc = 0;

    pthread_mutex_lock(&p->mu);
    while (rc == 0 && rules_pending(&p->rules, holds) > 0)
        rc = pthread_cond_timedwait(&p->changed, &p->mu, &deadline);
    pthread_mutex_unlock(&p->mu);
    return rc == 0 ? 0 : -1;
}

int proxy_wait_dropped(struct proxy *proxy, int timeout_ms)
{
    return wait_struck(proxy, false, timeout_ms);
}

int proxy_wait_held(struct proxy *proxy, int timeout_ms)
{
    return wait_struck(proxy, true, timeout_ms);
}

int proxy_wait_count(struct proxy *proxy, enum proxy_op op, int64_t n, int timeout_ms)
{
    struct timespec deadline = deadline_after(timeout_ms);
    int rc = 0;

    pthread_mutex_lock(&proxy->mu);
    while (rc == 0 && rules_count(&proxy->rules, (int)op) < n)
        rc = pthread_cond_timedwait(&proxy->changed, &proxy->mu, &deadline);
    pthread_mutex_unlock(&proxy->mu);
    return rc == 0 ? 0 : -1;
}

int64_t proxy_counts(struct proxy *proxy, enum proxy_op op)
{
    int64_t n;

    pthread_mutex_lock(&proxy->mu);
    n = rules_count(&proxy->rules, (int)op);
    pthread_mutex_unlock(&proxy->mu);
    return n;
}

void proxy_reset_counts(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mu);
    memset(proxy->rules.counts, 0, sizeof proxy->rules.counts);
    pthread_mutex_unlock(&proxy->mu);
}

int proxy_connections(struct proxy *proxy)
{
    int n;

    pthread_mutex_lock(&proxy->mu);
    n = (int)count_links(proxy);
    pthread_mutex_unlock(&proxy->mu);
    return n;
}
