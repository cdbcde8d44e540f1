/* SPDX-License-Identifier: Apache-2.0
 * The log: reports of the core and of the holds, queued for the dispatch thread, which passes each
 * to the callback as an event with one line of text. */
#ifndef ZKL_API_LOG_H
#define ZKL_API_LOG_H

#include <zklock/zklock.h>

#include "driver/driver.h"

struct zkl_client;
struct zkl_place;

#define ZKL_LOG_RECORDS 256

struct zkl_log {
    /* never changes after the opening */
    zkl_log_fn fn;
    void *arg;
    int level; /* of what fn gets */
    /* Under the driver's mutex. */
    struct zkl_note note;
    struct zkl_log_record *records[ZKL_LOG_RECORDS];
    size_t count;
    uint64_t dropped;       /* since the callback was last notified of it, */
    uint64_t dropped_total; /* and since the client was opened */
};

void zkl_log_init(struct zkl_client *client, const struct zkl_client_options *options);
void zkl_log_fini(struct zkl_client *client);
static inline bool zkl_log_is_on(const struct zkl_log *log)
{
    return log->fn != NULL;
}

/* With the mutex, and if it is on. */

/* A driver's log callback. */
void zkl_log_trace(void *client, const struct zkl_trace *trace);
/* A driver's resolved callback. */
void zkl_log_resolver(void *client, const char *host, const char *why);
/* What the core notified a hold of, except its state. */
void zkl_log_notification(const struct zkl_place *place,
                          const struct zkl_notification *notification);
void zkl_log_state(const struct zkl_place *place, int state, int reason);

#endif
