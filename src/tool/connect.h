/* SPDX-License-Identifier: Apache-2.0 */
/* A client, connected, with what the settings say. */
#ifndef ZKLOCK_TOOL_CONNECT_H
#define ZKLOCK_TOOL_CONNECT_H

#include <zklock/zklock.h>

#include "nested.h"
#include "secret/secret.h"
#include "settings.h"

#define AUTH_VARIABLE "ZKLOCK_AUTH"

enum { CONNECT_MS = 10000, CLOSE_MS = 5000 };

/* Options for a client, good as long as the settings are. */
struct tool_options {
    struct zkl_client_options client;
    char credential[ZKL_SECRET_ROOM];
    char owner[NESTED_SIZE];
};

/* Complete the settings. 0, or the exit status after a sentence. tool_options_fini is due in each
 * case: the credential stays no longer than it has to. */
int tool_options(struct tool_options *options, struct settings *settings);
void tool_options_fini(struct tool_options *options);

/* Complete the settings, and connect within connect_ms. log: gets warnings, or NULL. 0, or the exit
 * status after a sentence. */
int tool_connect(struct zkl_client **client, struct settings *settings, int connect_ms,
                 zkl_log_fn log);

/* Close, waiting at most CLOSE_MS, and free. */
void tool_disconnect(struct zkl_client *client);

#endif
