/* SPDX-License-Identifier: Apache-2.0 */
/* A network of its own for each server, so that the links between servers can be cut: a namespace
 * for the caller, and below it one for each node, joined by a pair of virtual interfaces. The caller
 * routes between them. Nothing of it is seen outside, and nothing stays.
 *
 * It needs Linux with network namespaces (as root, or with user namespaces), ip of iproute2 and
 * nsenter of util-linux. */
#ifndef ZKTEST_NETS_H
#define ZKTEST_NETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define NETS_MAX 5

struct nets {
    size_t nodes;
    pid_t anchor[NETS_MAX]; /* a process that does nothing keeps the namespace */
    char host[NETS_MAX][16];
    char file[NETS_MAX][32]; /* "/proc/PID/ns/net" */
};

/* Move the caller into a network of its own and make those of the nodes. To be called before there are
 * threads, and before anything that has to do with a port. 0, or -1: err says what the machine does not
 * allow, and the caller is where it was or in a network of its own that has a loopback. */
int nets_start(struct nets *nets, size_t nodes, char *err, size_t size);
void nets_stop(struct nets *nets);

/* Nothing passes between the two, either way; and all passes again. 0 or -1. */
int nets_cut(const struct nets *nets, size_t one, size_t other, bool cut);

#endif
