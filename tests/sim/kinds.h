/* SPDX-License-Identifier: Apache-2.0 */
/* What the traces of tests call the kinds of requests. */
#ifndef ZKL_TESTS_SIM_KINDS_H
#define ZKL_TESTS_SIM_KINDS_H

#include "core/core.h"

static const char *const request_kinds[ZKL_REQUEST_KINDS] = {
    [ZKL_REQ_CREATE] = "create",
    [ZKL_REQ_MAKE] = "make",
    [ZKL_REQ_LIST] = "list",
    [ZKL_REQ_LIST_LOCK_PATH] = "list root",
    [ZKL_REQ_SYNC] = "sync",
    [ZKL_REQ_STAT] = "stat",
    [ZKL_REQ_GET] = "get",
    [ZKL_REQ_SET] = "set",
    [ZKL_REQ_WATCH] = "watch",
    [ZKL_REQ_UNWATCH] = "unwatch",
    [ZKL_REQ_DELETE] = "delete",
    [ZKL_REQ_CREATE_ALL] = "create all",
    [ZKL_REQ_DELETE_ALL] = "delete all",
    [ZKL_REQ_RENEW] = "renew",
    [ZKL_REQ_CHECK_ALL] = "heartbeat",
    [ZKL_REQ_KEEPALIVE] = "keepalive",
};

#endif
