/* SPDX-License-Identifier: Apache-2.0 */
/* How other lock libraries interpret a path: docs/wire-format.md, applied to its children. */
#ifndef ZKLOCK_TOOL_PEERS_H
#define ZKLOCK_TOOL_PEERS_H

#include <stdbool.h>

#include <zklock/inspect.h>

enum { PEERS = 3 };

struct peer_view {
    const char *name;
    const char *text; /* what it makes of the path */
};

void peer_views(struct peer_view views[PEERS], const struct zkl_inspection *inside);
/* A mutex or a read-write lock has contenders in the path of a semaphore. */
bool peers_share_with_semaphore(const struct zkl_inspection *inside);
/* Does this foreign child keep Curator's locks at the path out for ever? */
bool peers_stops_curator(const struct zkl_inspection *inside, const struct zkl_entry *foreign);
/* The conflict between the present contenders, as a sentence, or NULL. */
const char *peers_conflict(const struct zkl_inspection *inside);

#endif
