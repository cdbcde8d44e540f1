/* SPDX-License-Identifier: Apache-2.0
 * The text that names the servers: users write "host:port[,host:port...][/chroot]", with an IPv6
 * address in brackets; libzookeeper receives addresses alone, without brackets. */
#ifndef ZKL_CORE_SERVERS_H
#define ZKL_CORE_SERVERS_H

#include <stdbool.h>
#include <stddef.h>

/* One server of a list: views into its text. */
struct zkl_server {
    const char *host; /* without brackets */
    size_t host_length;
    const char *port;
    size_t port_length;
};

/* NULL if text is "host:port[,host:port...][/chroot]", else what is wrong with it. */
const char *zkl_servers_fault(const char *text);

/* The next server of a list without a fault. *at begins at 0; false: there was none. */
bool zkl_servers_next(const char *text, size_t *at, struct zkl_server *server);

/* The servers of an ensemble in its own words, lines "server.N=HOST:PORT:PORT[:ROLE];CLIENT[;TLS]"
 * where CLIENT and TLS are "[HOST:]PORT": for clients, or for those with TLS. A list without a
 * fault, to be freed; NULL: no memory, or *fault says what is wrong with it. */
char *zkl_servers_of_ensemble(const char *text, size_t length, bool tls, const char **fault);

/* Lists of addresses as one, sorted, each address once; "" if there are none. NULLs in lists are
 * left out. To be freed; NULL: no memory. */
char *zkl_addresses_merge(const char *const *lists, size_t count);

/* Would libzookeeper take the second list for the first one? It compares their lengths, and then
 * without the ports (addrvec_eq). */
bool zkl_addresses_look_alike(const char *before, const char *after);

#endif
