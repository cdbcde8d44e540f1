/* SPDX-License-Identifier: Apache-2.0 */
/* Change a stopped server's data so that a path's next sequential child gets a chosen number: no
 * test can wait for two thousand million creates. The server must run with the option no_digest at
 * all its starts, and the path must be in its newest snapshot; a server writes one when it starts.
 * So: start, create the path, zks_restart_node, stop, snap_set_counter, start. In an ensemble do it
 * to every node while all are stopped. */
#ifndef ZKTEST_SNAPSHOT_H
#define ZKTEST_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

/* data_dir is the server's dataDir (zks_data_dir). 0, or -1 and a sentence in err. */
int snap_set_counter(const char *data_dir, const char *path, int32_t next, char *err, size_t size);
/* The number that the next sequential child gets, as in the newest snapshot. 0 or -1 as above. */
int snap_get_counter(const char *data_dir, const char *path, int32_t *next, char *err, size_t size);
/* Give a node another path of the same length: that server then shows a node that no other has, and lacks one
 * that all others have. */
int snap_rename(const char *data_dir, const char *path, const char *renamed, char *err,
                size_t size);

#endif
