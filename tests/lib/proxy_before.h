/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy in front of a node of a test's private server. */
#ifndef ZKTEST_PROXY_BEFORE_H
#define ZKTEST_PROXY_BEFORE_H

#include "check.h"
#include "proxy.h"
#include "zkserver.h"

/* The test, or its set-up, fails if there is none. */
static inline struct proxy *proxy_before(struct zks *zks, int node)
{
    struct proxy *proxy = NULL;

    check_ok(proxy_start(&proxy, zks_host(), zks_port(zks, (size_t)node)));
    return proxy;
}

#endif
