/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what the servers say of themselves (srvr, conf, mntr) with what the window of a hold
 * assumes: docs/guarantees.md. */
#ifndef ZKLOCK_TOOL_ENSEMBLE_H
#define ZKLOCK_TOOL_ENSEMBLE_H

#include <stdbool.h>

/* problem false: something that could not be seen. */
typedef void (*ensemble_fn)(void *arg, bool problem, const char *text);

/* Query each of "HOST:PORT,...[/CHROOT]", for a client that wants this session timeout and assumes
 * that no server has a longer tick than tick_ms (0: it assumes nothing), and report each fault in a
 * sentence. */
void ensemble_check(const char *servers, int session_ms, int tick_ms, ensemble_fn tell, void *arg);

#endif
