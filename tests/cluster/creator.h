/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that keep their nodes to themselves. */
#ifndef ZKTEST_CREATOR_H
#define ZKTEST_CREATOR_H

#include "cluster.h"

/* A scheme and ZKL_ACL_CREATOR, without a credential; and a connected client with this one. */
struct zkl_client_options creator_options(void);
struct zkl_client *creator_client(const char *credential);
/* The node at path, which the raw connection must be allowed to read, is alice's alone. */
void check_creators(const char *path);
/* False: there is no such node. */
bool check_creators_if_there(const char *path);

#endif
