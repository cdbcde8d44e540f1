/* SPDX-License-Identifier: Apache-2.0 */
/* A client whose session the test ends at once, as by the server: through a proxy that reads the
 * session's id and password off the wire. */
#ifndef ZKTEST_DOOMED_H
#define ZKTEST_DOOMED_H

#include "cluster.h"

struct doomed;

struct doomed *doomed_open(void);
struct zkl_client *doomed_client(struct doomed *doomed);
struct proxy *doomed_proxy(struct doomed *doomed);
/* Its session has ended on the server when this returns; the client will hear of it, mostly at once.
 * A client that comes back while its session is being closed is let in sometimes, and then not
 * answered any more: it finds out by its own timeout. */
void doomed_kill(struct doomed *doomed);
/* The client with it; what was made of the client goes before. */
void doomed_free(struct doomed *doomed);

#endif
