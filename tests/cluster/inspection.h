/* SPDX-License-Identifier: Apache-2.0 */
/* What is seen of a lock, as lines of text. */
#ifndef ZKTEST_INSPECTION_H
#define ZKTEST_INSPECTION_H

#include <zklock/inspect.h>

#include "cluster.h"

/* An inspection that succeeds, freed when the test returns. */
const struct zkl_inspection *inspect_lock(struct zkl_client *client, const char *path);
/* The kind of lock, its permits, and each entry as "role access[ name][ for N] peer sequence node", the node without
 * the path, with " | " between them; or the code of a look that fails, and its particulars. In any thread. */
void say_inspection(struct zkl_client *client, const char *path, int64_t timeout_ms, char *out,
                    size_t size);

#endif
