/* SPDX-License-Identifier: Apache-2.0 */
/* The suite's server goes, and comes back with its data. */
#ifndef ZKTEST_OUTAGE_H
#define ZKTEST_OUTAGE_H

#include "cluster.h"

/* A server that starts can leave a connection that comes too early without any answer; libzookeeper
 * gives it up after two thirds of the session timeout: short enough for WAIT_MS, and longer than a
 * restart. */
#define RESTART_SESSION_MS 9000

void server_down(void);
/* It serves, and the raw connection is a new one. */
void server_back(void);
/* A connected client with this session timeout. */
struct zkl_client *client_of(int session_ms);

#endif
