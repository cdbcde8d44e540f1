/* SPDX-License-Identifier: Apache-2.0 */
/* The chaos over TLS: the clients connect to the TLS ports, with certificates on both sides. A server comes back with
 * another certificate each time. What looks at the servers (the canary, their four-letter words) uses no TLS. */
#ifndef ZKCHAOS_SECURE_H
#define ZKCHAOS_SECURE_H

#include <zklock/client.h>

#include "nets.h"
#include "shared.h"
#include "zkserver.h"

struct secure {
    char folder[SECURE_FOLDER]; /* of the certificates; "": no TLS */
    int port[CHAOS_NODES];
    bool second[CHAOS_NODES]; /* the certificate that the server has */
    char config[CHAOS_NODES][600];
};

/* Make certificates, and add what the servers need to the options. 0, or -1: err says why. 77: something is not installed. */
int secure_start(struct secure *secure, const struct nets *nets, struct zks_options *options,
                 char *err, size_t size);
void secure_stop(struct secure *secure);
/* The server is about to come back. */
void secure_renew(struct secure *secure, int node);

/* In a client: what of folder it needs. Static memory. */
void secure_client(const char *folder, struct zkl_client_options *options);

#endif
