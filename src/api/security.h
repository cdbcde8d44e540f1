/* SPDX-License-Identifier: Apache-2.0
 * The protection of a client's connections, from its options. */
#ifndef ZKL_API_SECURITY_H
#define ZKL_API_SECURITY_H

#include <zklock/zklock.h>

struct zkl_security;

/* 0; ZKL_EINVAL: the options don't go together, or a file is of no use; ZKL_EUNSUPPORTED:
 * libzookeeper has no call for it. The detail says what. Looks at the options alone. */
int zkl_security_check(const struct zkl_client_options *options);
/* From checked options. Fills the empty *security; zkl_security_fini is due in each case. 0,
 * ZKL_EINVAL, ZKL_ENOMEM, ZKL_ESYSTEM: the detail says why. */
int zkl_security_get(const struct zkl_client_options *options, struct zkl_security *security);

#endif
