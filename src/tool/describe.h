/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of a lock in words. */
#ifndef ZKLOCK_TOOL_DESCRIBE_H
#define ZKLOCK_TOOL_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zklock/inspect.h>

enum { DESCRIBE_SIZE = 640 }; /* of the longest owner text, and some words */

const char *describe_kind(enum zkl_lock_kind kind);
const char *describe_access(enum zkl_entry_access access);
/* The owner of the node: "web1 pid 4711", with "thread 4712" behind it if that is not the first; or
 * its owner text, or its session. */
const char *describe_owner(const struct zkl_entry *entry, char text[DESCRIBE_SIZE]);
/* "4.2 s", "17 min", "3.1 h", "12 d". */
const char *describe_age(int64_t age_ms, char text[DESCRIBE_SIZE]);
/* Likewise for a node, or "?". */
const char *describe_age_of(const struct zkl_entry *entry, char text[DESCRIBE_SIZE]);
/* The server says nothing of the node, for want of READ, but that it is there. */
bool describe_is_unknown(const struct zkl_entry *entry);
/* The node without the path of its lock. */
const char *describe_node(const struct zkl_entry *entry, const char *path);

#endif
