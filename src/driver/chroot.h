/* SPDX-License-Identifier: Apache-2.0
 * A request's paths below the chroot. libzookeeper could prefix the chroot itself, but its
 * zoo_amulti frees such a path twice if the session has just ended (3.8.0; see zkl_call_multi), so
 * the driver never gives it a chroot. */
#ifndef ZKL_DRIVER_CHROOT_H
#define ZKL_DRIVER_CHROOT_H

#include <stdbool.h>

#include "core/core.h"

struct zkl_rooted {
    struct zkl_request request; /* good until zkl_chroot_end, as is what it was made of */
    const char **checks;
    struct zkl_part *parts;
    char *texts;
};

/* chroot: "" for none, which costs nothing. False: no memory, and there is nothing to end. */
bool zkl_chroot_begin(struct zkl_rooted *rooted, const char *chroot,
                      const struct zkl_request *request);
void zkl_chroot_end(struct zkl_rooted *rooted);

#endif
