/* SPDX-License-Identifier: Apache-2.0 */
/* A test stops the suite's server, and starts it again with its data. */
#ifndef ZKTEST_OUTAGE_H
#define ZKTEST_OUTAGE_H

#include "cluster.h"

/* A server that is starting may never answer a connection that comes too early. libzookeeper gives
 * such a connection up after two thirds of the session timeout. Those two thirds must be less than
 * WAIT_MS. The rest of the session must be longer than a restart on a busy machine. */
#define RESTART_SESSION_MS 18000

void server_down(void);
/* It serves, and the raw connection is a new one. */
void server_back(void);
/* A connected client with this session timeout. */
struct zkl_client *client_of(int session_ms);

#endif
