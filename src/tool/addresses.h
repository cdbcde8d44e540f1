/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a list of servers, looked up on a separate thread: a resolver can take seconds,
 * and a program that guards a lock must not wait for it. libzookeeper would look names up in any of
 * its threads, repeatedly; it receives the addresses found here. */
#ifndef ZKLOCK_TOOL_ADDRESSES_H
#define ZKLOCK_TOOL_ADDRESSES_H

#include <stdbool.h>

struct addresses;

/* Begin to look up "host:port,...". NULL: no memory, or no thread. */
struct addresses *addresses_look_up(const char *servers);
/* In libzookeeper's format, valid as long as *addresses. NULL: not found within ms, or stop (a
 * descriptor, or -1) became readable. */
const char *addresses_wait(struct addresses *addresses, int ms, int stop);
/* NULL is ignored. */
void addresses_drop(struct addresses *addresses);

#endif
