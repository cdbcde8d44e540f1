/* SPDX-License-Identifier: Apache-2.0 */
/* Small TCP helpers with a bound on every wait. Descriptors are close-on-exec and non-blocking;
 * hosts are addresses in digits, IPv4 or IPv6. */
#ifndef ZKLOCK_SERVERS_NET_H
#define ZKLOCK_SERVERS_NET_H

#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC in milliseconds: the clock of every deadline_ms below. */
int64_t net_now_ms(void);
/* CLOCK_BOOTTIME in nanoseconds: the clock of a hold's window, the same for all processes. */
int64_t net_boot_ns(void);
/* 1 if fd is ready for the events of poll, 0 if the deadline came first. A signal does not end it. */
int net_ready(int fd, short events, int64_t deadline_ms);
/* Between two probes of a condition that has no signal. */
void net_nap_ms(int ms);

/* Listen on a free loopback port. It lies below the kernel's range for outgoing connections: a
 * client that tries again and again to reach a port of that range while its server is down can end
 * up connected to itself and so keep the port from the server. The descriptor, or -1. */
int net_listen(int *port);
/* Listen on this loopback port. The descriptor, or -1 with errno. */
int net_listen_on(int port);
/* The same at this address of the machine. */
int net_listen_at(const char *address, int port);
/* Find n different loopback ports that are free, and keep them: until the descriptors are closed none of the calls here
 * finds one of them again, in any process, and a server that sets SO_REUSEADDR, as Java's do, can listen there, also
 * when it is started again. 0 or -1. */
int net_reserve_ports(int *ports, int *fds, size_t n);
/* This one: the descriptor, or -1 if a program listens there. */
int net_reserve_port(int port);
void net_release_ports(const int *fds, size_t n);
/* The same without keeping them: another process may take one before it is used. 0 or -1. */
int net_free_ports(int *ports, size_t n);

/* Start a connection; it may not be there yet when the call returns. The descriptor, or -1. */
int net_connect_begin(const char *host, int port);
/* Connect by the deadline. The descriptor, or -1. */
int net_connect(const char *host, int port, int64_t deadline_ms);
/* All n bytes by the deadline: 0, or -1 on a timeout, an error or the end of the stream. */
int net_send(int fd, const void *data, size_t n, int64_t deadline_ms);
int net_recv(int fd, void *data, size_t n, int64_t deadline_ms);
/* Receive the next bytes, at most n: their number, 0 at the end of the stream, -1 as above. */
long net_recv_some(int fd, void *data, size_t n, int64_t deadline_ms);

#endif
