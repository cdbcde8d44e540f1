/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to ZooKeeper beside the library's, for what a lock never asks and a doctor does: ACLs and
 * counters. raw.c is the only file of the command that knows libzookeeper. */
#ifndef ZKLOCK_TOOL_RAW_H
#define ZKLOCK_TOOL_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings.h"

struct raw;

/* 0, or the exit status after a sentence. */
int raw_open(struct raw **raw, struct settings *settings, int connect_ms);
void raw_close(struct raw *raw);

/* Of these a session's link has to last for the question: else RAW_FAILED. */
enum raw_answer { RAW_OK, RAW_NO_NODE, RAW_DENIED, RAW_FAILED };

/* How many children were ever made: the number that the next sequential one gets. */
enum raw_answer raw_created(const struct raw *raw, const char *path, uint32_t *created);

/* What anybody may do, and what some one identity may do. */
struct raw_rights {
    bool all_read, all_delete, all_create;
    bool one_can_lock; /* READ, CREATE and DELETE together */
};
enum raw_answer raw_rights(const struct raw *raw, const char *path, struct raw_rights *rights);

#endif
