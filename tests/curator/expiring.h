/* SPDX-License-Identifier: Apache-2.0 */
/* A client whose session the test ends at once, as by the server: through a proxy that reads the
 * session's id and password off the wire. */
#ifndef ZKTEST_EXPIRING_H
#define ZKTEST_EXPIRING_H

#include "cluster.h"

struct expiring;

struct expiring *expiring_open(void);
struct zkl_client *expiring_client(struct expiring *expiring);
struct proxy *expiring_proxy(struct expiring *expiring);
/* Its session has ended on the server when this returns; the client will hear of it, mostly at once.
 * A client that comes back while its session is being closed is let in sometimes, and then not
 * answered any more: it finds out by its own timeout. */
void expiring_expire(struct expiring *expiring);
/* The client with it; what was made of the client goes before. */
void expiring_free(struct expiring *expiring);

#endif
