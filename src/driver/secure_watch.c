/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of TLS and SASL while there is no link, because libzookeeper reports neither: a handshake
 * that a server does not answer, and a login that failed. This file owns nothing and runs with the
 * client's mutex. The service thread calls it in each of its rounds. */
#include "handle.h"

#define MS INT64_C(1000000)
#define WATCH_MS 100 /* between two looks */

static void watch(struct zkl_driver *d, struct zkl_handle *h, int64_t now_mono_ns)
{
    if (!h || !h->zh)
        return;
    if (d->config.security.tls)
        zkl_secure_watch_handshake(d, h, now_mono_ns);
    else
        zkl_handle_look(h);
}

int64_t zkl_secure_watch(struct zkl_driver *d, int64_t now_mono_ns)
{
    if (!d->config.security.tls && !d->config.security.sasl_mechanism)
        return INT64_MAX;
    watch(d, d->current, now_mono_ns);
    watch(d, d->probe, now_mono_ns);
    bool linked = d->current && d->core.session.state == ZKL_SESSION_CONNECTED;
    return linked && !d->probe ? INT64_MAX : now_mono_ns + WATCH_MS * MS;
}
