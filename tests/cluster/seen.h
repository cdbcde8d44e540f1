/* SPDX-License-Identifier: Apache-2.0 */
/* What is seen of a lock, as lines of text. */
#ifndef ZKTEST_SEEN_H
#define ZKTEST_SEEN_H

#include <zklock/inspect.h>

#include "cluster.h"

/* An inspection that succeeds. */
const struct zkl_inspection *look(struct zkl_client *client, const char *path);
/* It is of this kind, and each entry says "role access[ name][ for N] peer sequence node", the node
 * without the path. */
void check_seen(const struct zkl_inspection *seen, const char *path, enum zkl_lock_kind kind,
                const char *const *lines, size_t count);
void check_look(struct zkl_client *client, const char *path, enum zkl_lock_kind kind,
                const char *const *lines, size_t count);
#define check_lines(client, path, kind, ...)                                                       \
    do {                                                                                           \
        static const char *const lines_[] = {__VA_ARGS__};                                         \
        check_look(client, path, kind, lines_, sizeof lines_ / sizeof lines_[0]);                  \
    } while (0)

#endif
