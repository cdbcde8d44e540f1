/* SPDX-License-Identifier: Apache-2.0 */
/* What an inspection saw, counted: Curator's lists of participants. */
#ifndef ZKTEST_PARTICIPANTS_H
#define ZKTEST_PARTICIPANTS_H

#include <zklock/inspect.h>

#include "cluster.h"

struct participants {
    enum zkl_lock_kind kind;
    int permits;
    size_t total;
    size_t count[ZKL_ENTRY_ROLE_FOREIGN + 1][ZKL_ENTRY_ACCESS_ENTRY + 1];
    char first[256]; /* node path of the first entry: a holder, if there is one */
};

/* The test fails if the call does. */
struct participants count_participants(struct zkl_client *client, const char *path);

#endif
