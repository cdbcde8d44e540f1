/* SPDX-License-Identifier: Apache-2.0 */
/* A client whose session the test can end immediately, as if the server had: the test goes
 * through a proxy that reads the session's id and password off the wire. */
#ifndef ZKTEST_EXPIRING_H
#define ZKTEST_EXPIRING_H

#include "cluster.h"

struct expiring;

struct expiring *expiring_open(void);
struct zkl_client *expiring_client(struct expiring *expiring);
struct proxy *expiring_proxy(struct expiring *expiring);
/* Its session has ended on the server when this returns. The client mostly hears of it
 * immediately. A client that reconnects while the server closes its session is sometimes let in,
 * and then gets no answers any more: it finds out by its own timeout. */
void expiring_expire(struct expiring *expiring);
/* Frees the client, too. The caller must have freed what was made of the client. */
void expiring_free(struct expiring *expiring);

#endif
