/* SPDX-License-Identifier: Apache-2.0
 *
 * Small TCP helpers with a bound on every wait. Descriptors are close-on-exec and non-blocking;
 * hosts are numeric addresses, IPv4 or IPv6. No lock and no state: the caller owns the descriptors.
 * fourlw.c, zkconfig.c, zkserver.c and the tests call it. */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT_TRIES 500
#define PORT_SPAN 12000 /* how many ports below the outgoing range are tried */
#define PORT_LOWEST 1024
#define BACKLOG 64

int64_t net_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t net_boot_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void net_nap_ms(int ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static int tcp_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* An address in digits as the kernel takes it: its size, 0 if it is none. */
static socklen_t read_address(const char *digits, int port, struct sockaddr_storage *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, digits, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        return sizeof *v4;
    }
    if (inet_pton(AF_INET6, digits, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return sizeof *v6;
    }
    return 0;
}

int net_ready(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd p = {fd, events, 0};
        int64_t left = deadline_ms - net_now_ms();
        int n = poll(&p, 1, left > 0 ? (int)left : 0);
        if (n > 0)
            return 1;
        if (n == 0 && left <= 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return 0;
    }
}

/* --- ports ------------------------------------------------------------------------------------ */

static int outgoing_range_start(void)
{
    int low = 32768;
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");

    if (f != NULL) {
        if (fscanf(f, "%d", &low) != 1)
            low = 32768;
        fclose(f);
    }
    return low;
}

static int random_port(void)
{
    int high = outgoing_range_start();
    int low = high - PORT_SPAN;
    uint32_t r = 0;

    if (low < PORT_LOWEST)
        low = PORT_LOWEST;
    if (high <= low) /* everything is in the outgoing range: any port is as good as another */
        high = 65536;
    if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
        r = (uint32_t)net_now_ms() ^ (uint32_t)getpid() << 8;
    return low + (int)(r % (uint32_t)(high - low));
}

static int close_with_errno(int fd)
{
    int saved = errno;

    close(fd);
    errno = saved;
    return -1;
}

/* A socket that is bound to it, beside others that do not listen. */
static int bind_to(const char *address, int port)
{
    struct sockaddr_storage a;
    socklen_t size = read_address(address, port, &a);
    int one = 1;
    int fd = size > 0 ? tcp_socket(a.ss_family) : -1;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&a, size) == 0)
        return fd;
    return close_with_errno(fd);
}

int net_listen_at(const char *address, int port)
{
    int fd = bind_to(address, port);

    if (fd < 0 || listen(fd, BACKLOG) == 0)
        return fd;
    return close_with_errno(fd);
}

int net_reserve_port(int port)
{
    return bind_to("127.0.0.1", port);
}

int net_listen_on(int port)
{
    return net_listen_at("127.0.0.1", port);
}

/* A free loopback port, bound to by nobody: the descriptor that is bound to it now, or -1. With SO_REUSEADDR from the
 * start, it could be one that another process has reserved; with it from now on, a server can listen there. */
static int reserve(int *port)
{
    int one = 1;

    for (int i = 0; i < PORT_TRIES; i++) {
        struct sockaddr_storage a;
        int fd = tcp_socket(AF_INET);
        if (fd < 0)
            return -1;
        *port = random_port();
        if (bind(fd, (struct sockaddr *)&a, read_address("127.0.0.1", *port, &a)) == 0 &&
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0)
            return fd;
        close(fd);
    }
    return -1;
}

int net_listen(int *port)
{
    int fd = reserve(port);

    if (fd < 0 || listen(fd, BACKLOG) == 0)
        return fd;
    return close_with_errno(fd);
}

int net_reserve_ports(int *ports, int *fds, size_t n)
{
    size_t have = 0;

    while (have < n && (fds[have] = reserve(&ports[have])) >= 0)
        have++;
    if (have == n)
        return 0;
    net_release_ports(fds, have);
    return -1;
}

void net_release_ports(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
}

int net_free_ports(int *ports, size_t n)
{
    int fds[64];

    if (n > sizeof fds / sizeof fds[0] || net_reserve_ports(ports, fds, n) != 0)
        return -1;
    net_release_ports(fds, n);
    return 0;
}

/* --- connections ------------------------------------------------------------------------------ */

int net_connect_begin(const char *host, int port)
{
    struct sockaddr_storage a;
    socklen_t size = read_address(host, port, &a);
    int one = 1;
    int fd = size > 0 ? tcp_socket(a.ss_family) : -1;

    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&a, size) == 0 || errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

int net_connect(const char *host, int port, int64_t deadline_ms)
{
    int error = 0;
    socklen_t size = sizeof error;
    int fd = net_connect_begin(host, port);

    if (fd < 0)
        return -1;
    if (net_ready(fd, POLLOUT, deadline_ms) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
        return fd;
    close(fd);
    return -1;
}

int net_send(int fd, const void *data, size_t n, int64_t deadline_ms)
{
    const char *at = data;

    while (n > 0) {
        ssize_t k = send(fd, at, n, MSG_NOSIGNAL);
        if (k > 0) {
            at += k;
            n -= (size_t)k;
        } else if (errno == EAGAIN) {
            if (!net_ready(fd, POLLOUT, deadline_ms))
                return -1;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

long net_recv_some(int fd, void *data, size_t n, int64_t deadline_ms)
{
    for (;;) {
        ssize_t k = recv(fd, data, n, 0);
        if (k >= 0)
            return k;
        if (errno == EAGAIN) {
            if (!net_ready(fd, POLLIN, deadline_ms))
                return -1;
        } else if (errno != EINTR) {
            return -1;
        }
    }
}

int net_recv(int fd, void *data, size_t n, int64_t deadline_ms)
{
    char *at = data;

    while (n > 0) {
        long k = net_recv_some(fd, at, n, deadline_ms);
        if (k <= 0)
            return -1;
        at += k;
        n -= (size_t)k;
    }
    return 0;
}
