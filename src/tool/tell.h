/* SPDX-License-Identifier: Apache-2.0 */
/* What is seen of a lock, in words. */
#ifndef ZKLOCK_TOOL_TELL_H
#define ZKLOCK_TOOL_TELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zklock/inspect.h>

enum { TELL_SIZE = 640 }; /* of the longest owner text, and some words */

const char *tell_kind(enum zkl_lock_kind kind);
const char *tell_access(enum zkl_entry_access access);
/* Whose node it is: "web1 pid 4711", with "thread 4712" behind it if that is not the first; or its owner text, or its session. */
const char *notify_owner(const struct zkl_entry *entry, char text[TELL_SIZE]);
/* "4.2 s", "17 min", "3.1 h", "12 d". */
const char *tell_age(int64_t age_ms, char text[TELL_SIZE]);
/* Likewise of a node, or "?". */
const char *tell_age_of(const struct zkl_entry *entry, char text[TELL_SIZE]);
/* The server says nothing of the node, for want of READ, but that it is there. */
bool tell_is_unknown(const struct zkl_entry *entry);
/* The node without the path of its lock. */
const char *tell_node(const struct zkl_entry *entry, const char *path);

#endif
