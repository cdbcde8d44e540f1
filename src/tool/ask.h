/* SPDX-License-Identifier: Apache-2.0 */
/* What a lock never asks a server, over the library's own connection: the ACLs and counters that a
 * doctor wants, and the reads and writes of the record of the last run. */
#ifndef ZKLOCK_TOOL_ASK_H
#define ZKLOCK_TOOL_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/errand.h"

/* LOST: no answer, also by the deadline, or as cancel was set. Without a deadline each call has
 * ASK_MS, until one has waited that long in vain: then all others are LOST immediately. */
struct asker {
    struct zkl_client *client;
    int64_t deadline_ns;       /* 0: none */
    struct zkl_cancel *cancel; /* NULL: none */
    bool waits_no_more;
};
enum { ASK_MS = 10000 };

/* Do all of these, in this order. */
void ask(struct asker *asker, struct zkl_errand *errands, size_t count);

/* A server's word on a node and the leader's. */
enum ask_judgement {
    ASK_UNDECIDED,
    ASK_AGREES,
    ASK_GHOST,  /* the server shows the node, and the leader does not have it */
    ASK_MISSING /* the leader has it, and the server does not show it */
};
enum ask_judgement ask_judge(struct asker *asker, const char *path);

/* How many children were ever made: the number that the next sequential one gets. */
enum zkl_errand_answer ask_created(struct asker *asker, const char *path, uint32_t *created);

/* The rights of anybody, and of some one identity. */
struct ask_rights {
    bool all_read, all_delete, all_create;
    bool one_can_lock; /* READ, CREATE and DELETE together */
};
enum zkl_errand_answer ask_rights(struct asker *asker, const char *path, struct ask_rights *rights);

#endif
