/* SPDX-License-Identifier: Apache-2.0 */
/* All locks at and below a path, each as it was when it was inspected, one after the other. */
#ifndef ZKLOCK_TOOL_LOOK_H
#define ZKLOCK_TOOL_LOOK_H

#include <stdbool.h>
#include <stddef.h>

#include <zklock/inspect.h>

#include "last_run.h"

enum { LOOK_MS = 10000 /* for one lock */, LOOK_PATH_MAX = 512 /* bytes of a lock's path */ };

struct seen {
    char *path;
    /* 0; or why nothing is known: ZKL_EACCES, no READ; ZKL_EBADPATH, too long for a lock */
    int code;
    const struct zkl_inspection *inside; /* NULL if nothing is known */
    struct last_run last;                /* RUN_NEVER until the caller asks for it */
    bool last_unread;                    /* and it could not be read */
    bool no_record;                      /* of a last run: its folder was listed without one */
};

struct look {
    /* a lock before those below it; without nodes that are neither a lock nor empty */
    struct seen *all;
    size_t count, room;
};

/* Both: 0: look_free is due. Else a code of the library; zkl_error_detail says more. */
int look_below(struct look *look, struct zkl_client *client, const char *path);
/* Only the lock at the path; for "leases" or "locks" of a semaphore, the semaphore. */
int look_at(struct look *look, struct zkl_client *client, const char *path);
/* Leave out what no contender holds or waits for. */
void look_keep_busy(struct look *look);
void look_free(struct look *look);

/* That very node in a newer inspection of its lock, or NULL. Nobody can make it again. */
const struct zkl_entry *look_again(const struct zkl_inspection *inside, const struct zkl_entry *e);

bool seen_is_busy(const struct seen *seen);

/* The lock that a contender's node belongs to, and its entry there. 0; ZKL_ENONODE if there is
 * none; ZKL_EFOREIGN: it is a part of a semaphore; else a code. look_free is due in each case. */
int look_up(struct look *look, struct zkl_client *client, const char *node_path,
            const struct zkl_entry **entry);

#endif
