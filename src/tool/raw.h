/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to ZooKeeper beside the library's, for what a lock never asks: the ACLs and counters
 * that a doctor wants, and the record of the last run. raw.c and record.c are the only files of the
 * command that know libzookeeper. */
#ifndef ZKLOCK_TOOL_RAW_H
#define ZKLOCK_TOOL_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings.h"

struct raw;
struct ACL_vector;
struct Stat;
struct zoo_op;

/* 0, or the exit status after a sentence; and in silence, if stop (a descriptor, or -1) becomes
 * readable: that ends each wait, as if no server had answered. */
int raw_open(struct raw **raw, struct settings *settings, int connect_ms, int stop);
/* Whether that can be at all: 0, or the exit status after a sentence. Connects to nothing. */
int raw_check(struct settings *settings);
void raw_close(struct raw *raw);

/* For these a session's link must last during the query: else RAW_FAILED. */
enum raw_answer { RAW_OK, RAW_NO_NODE, RAW_DENIED, RAW_FAILED };

/* A server's word on a node and the leader's. A link that breaks meanwhile decides nothing. */
enum raw_judgement {
    RAW_UNDECIDED,
    RAW_AGREES,
    RAW_GHOST,  /* the server shows the node, and the leader does not have it */
    RAW_MISSING /* the leader has it, and the server does not show it */
};
enum raw_judgement raw_judge(struct raw *raw, const char *path);

/* How many children were ever made: the number that the next sequential one gets. */
enum raw_answer raw_created(const struct raw *raw, const char *path, uint32_t *created);

/* The rights of anybody, and of some one identity. */
struct raw_rights {
    bool all_read, all_delete, all_create;
    bool one_can_lock; /* READ, CREATE and DELETE together */
};
enum raw_answer raw_rights(const struct raw *raw, const char *path, struct raw_rights *rights);

/* --- whole requests, by ZooKeeper's own codes and types ------------------ */

/* The path below the chroot, as the calls below want it. libzookeeper receives no chroot, as its
 * transactions free such paths twice when a session ends. The caller must free it; NULL: no
 * memory. */
char *raw_path(const struct raw *raw, const char *path);
/* The ACL of the nodes that the settings make. */
const struct ACL_vector *raw_acl(const struct raw *raw);

/* Each call waits for the answer for ANSWER_MS at most. It returns the server's own code;
 * ZCONNECTIONLOSS means that the outcome is unknown, and that this connection is useless from then
 * on. */
enum { ANSWER_MS = 10000 };
bool raw_is_open(const struct raw *raw);
/* *blamed, if the code is not ZOK: the part that failed. At most RAW_OPS. */
enum { RAW_OPS = 3 };
int raw_multi(struct raw *raw, int count, const struct zoo_op *ops, int *blamed);
/* *length: the room in data, and then of what was read; more than the room: it was cut. */
int raw_get(struct raw *raw, const char *path, char *data, size_t *length, struct Stat *stat);
/* The words for a code. */
const char *raw_error(int code);

#endif
