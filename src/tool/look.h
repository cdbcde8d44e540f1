/* SPDX-License-Identifier: Apache-2.0 */
/* All locks at and below a path, each as it was when it was inspected, one after the other. */
#ifndef ZKLOCK_TOOL_LOOK_H
#define ZKLOCK_TOOL_LOOK_H

#include <stdbool.h>
#include <stddef.h>

#include <zklock/inspect.h>

#include "last_run.h"

enum { LOOK_MS = 10000 /* for one lock */ };

struct seen {
    char *path;
    /* 0; or why nothing is known: ZKL_EACCES, no READ; ZKL_EBADPATH, too long for a lock */
    int code;
    const struct zkl_inspection *inside; /* NULL if nothing is known */
    struct last_run last;                /* RUN_NEVER until the caller asks for it */
    bool last_unread;                    /* and it could not be read */
};

struct look {
    struct seen
        *all; /* a lock before those below it; without nodes that are neither a lock nor empty */
    size_t count, room;
};

/* 0: look_free is due. Else a code of the library; zkl_error_detail says more. */
int look_below(struct look *look, struct zkl_client *client, const char *path);
void look_free(struct look *look);

/* The lock that a contender's node belongs to, and its entry there. 0; ZKL_ENONODE if there is
 * none; else a code. look_free is due in each case. */
int look_up(struct look *look, struct zkl_client *client, const char *node_path,
            const struct zkl_entry **entry);

#endif
