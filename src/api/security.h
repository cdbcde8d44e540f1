/* SPDX-License-Identifier: Apache-2.0
 * A client's credential and the protection of its connections, from its options. No message and no
 * log line contains a secret. */
#ifndef ZKL_API_SECURITY_H
#define ZKL_API_SECURITY_H

#include <zklock/zklock.h>

struct zkl_security;

/* 0, or ZKL_EINVAL: a scheme requires exactly one source. Checks only the options. */
int zkl_credential_check(const struct zkl_client_options *options);
/* 0: the caller must pass *credential to zkl_credential_drop; NULL if there is none. ZKL_EINVAL,
 * ZKL_ENOMEM, ZKL_ESYSTEM: the detail says why. */
int zkl_credential_get(const struct zkl_client_options *options, char **credential);
void zkl_credential_drop(char *credential);

/* 0; ZKL_EINVAL: the options don't go together, or a file is of no use; ZKL_EUNSUPPORTED:
 * libzookeeper has no call for it. The detail says what. Looks at the options alone. */
int zkl_security_check(const struct zkl_client_options *options);
/* From checked options. Fills the empty *security; zkl_security_fini is due in each case. 0,
 * ZKL_EINVAL, ZKL_ENOMEM, ZKL_ESYSTEM: the detail says why. */
int zkl_security_get(const struct zkl_client_options *options, struct zkl_security *security);

#endif
