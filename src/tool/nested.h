/* SPDX-License-Identifier: Apache-2.0 */
/* A zklock run inside the command of another one: the data of its nodes says so, "host pid thread
 * under TOKEN", with the token of the lock that the outer one holds. */
#ifndef ZKLOCK_TOOL_NESTED_H
#define ZKLOCK_TOOL_NESTED_H

#include <zklock/inspect.h>

enum { NESTED_SIZE = 128 };

/* The owner text of this process if it runs under such a lock, else NULL: the library's. */
const char *nested_owner(char text[NESTED_SIZE]);
/* The token under which this contender runs, or 0. */
uint64_t nested_under(const struct zkl_entry *entry);

#endif
