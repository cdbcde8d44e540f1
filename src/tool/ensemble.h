/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what the servers say of themselves (srvr, conf, mntr) with what the window of a hold
 * assumes: docs/guarantees.md. */
#ifndef ZKLOCK_TOOL_ENSEMBLE_H
#define ZKLOCK_TOOL_ENSEMBLE_H

#include <stdbool.h>

/* What a server of another make means for a hold. */
#define NO_ZOOKEEPER                                                                               \
    "is no ZooKeeper: nothing shows how it ends sessions, so a window does not prove that a lock " \
    "is held; protect what it guards with tokens"

/* problem false: something that could not be seen. */
typedef void (*ensemble_fn)(void *arg, bool problem, const char *text);

enum { SERVER_NAME_SIZE = 300 };

/* The next of "HOST:PORT,...[/CHROOT]", and *servers behind it; one that comes again further on is
 * left out until then. False: there is none. */
bool ensemble_next(const char **servers, char name[SERVER_NAME_SIZE]);

/* Query each of "HOST:PORT,...[/CHROOT]", for a client that wants this session timeout and assumes
 * that no server has a longer tick than tick_ms (0: it assumes nothing), and report each fault in a
 * sentence. Sessions of this program at all of them show whether sessions are local. */
void ensemble_check(const char *servers, int session_ms, int tick_ms, ensemble_fn tell, void *arg);

#endif
