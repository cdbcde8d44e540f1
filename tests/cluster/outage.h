/* SPDX-License-Identifier: Apache-2.0 */
/* The suite's server goes, and comes back with its data. */
#ifndef ZKTEST_OUTAGE_H
#define ZKTEST_OUTAGE_H

#include "cluster.h"

/* A server that starts can leave a connection that comes too early without any answer; libzookeeper
 * gives it up after two thirds of the session timeout. That is to be less than WAIT_MS, and what is left
 * of the session longer than a restart on a busy machine. */
#define RESTART_SESSION_MS 18000

void server_down(void);
/* It serves, and the raw connection is a new one. */
void server_back(void);
/* A connected client with this session timeout. */
struct zkl_client *client_of(int session_ms);

#endif
