/* SPDX-License-Identifier: Apache-2.0
 *
 * The roles of contenders, a row each: how their nodes are named, and which of them hold together.
 * name.c writes and reads names by it; queue.c decides by it which contender is in the way of
 * which. Constant. What a kind of lock does beyond waiting in the queue is a row of kind.c. */
#include "name.h"

/* Markers: Curator's, Kazoo's (whose writers are called as its mutexes are), a named lock's (always
 * a mutex). */
const struct zkl_role_row zkl_roles[ZKL_ROLES] = {
    [ZKL_ROLE_LOCK] = {.markers = {"lock-", "__lock__", ZKL_NAMED_MARKER},
                       .access = ZKL_ENTRY_ACCESS_LOCK,
                       .mutual = true},
    [ZKL_ROLE_READ] = {.markers = {"__READ__", "__rlock__", ZKL_NAMED_MARKER},
                       .access = ZKL_ENTRY_ACCESS_READ,
                       .beside = ZKL_ROLE_BIT(ZKL_ROLE_READ)},
    [ZKL_ROLE_WRITE] = {.markers = {"__WRIT__", "__lock__", ZKL_NAMED_MARKER},
                        .access = ZKL_ENTRY_ACCESS_WRITE},
    [ZKL_ROLE_PERMIT] = {.markers = {"lease-", "lease-", "lease-"},
                         .access = ZKL_ENTRY_ACCESS_PERMIT,
                         .counted = true},
};
