/* SPDX-License-Identifier: Apache-2.0 */
/* What is seen of a lock, as lines of text. */
#ifndef ZKTEST_INSPECTION_H
#define ZKTEST_INSPECTION_H

#include <zklock/inspect.h>

#include "cluster.h"

/* An inspection that succeeds, freed when the test returns. */
const struct zkl_inspection *inspect_lock(struct zkl_client *client, const char *path);
/* The kind of lock, its permits, and each entry as below, with " | " between them. */
void say_inspection(struct zkl_client *client, const char *path, char *out, size_t size);
/* It is of this kind, and each entry says "role access[ name][ for N] peer sequence node", the node
 * without the path; a line may have wildcards. */
void check_inspection(const struct zkl_inspection *inspection, const char *path,
                      enum zkl_lock_kind kind, const char *const *lines, size_t count);
/* So does a look by now, which is returned. */
const struct zkl_inspection *check_entry_lines(struct zkl_client *client, const char *path,
                                               enum zkl_lock_kind kind, const char *const *lines,
                                               size_t count);
#define check_entries(client, path, kind, ...)                                                     \
    ({                                                                                             \
        static const char *const lines_[] = {__VA_ARGS__};                                         \
        check_entry_lines(client, path, kind, lines_, sizeof lines_ / sizeof lines_[0]);           \
    })

#endif
