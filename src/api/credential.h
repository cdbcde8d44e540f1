/* SPDX-License-Identifier: Apache-2.0
 * The client's credential: from the options, a file, or the environment. Its text is in no message and
 * no line of the log, and what is ours of the memory that held it is wiped. */
#ifndef ZKL_API_CREDENTIAL_H
#define ZKL_API_CREDENTIAL_H

#include <zklock/zklock.h>

/* 0, or ZKL_EINVAL: a scheme goes with exactly one source. Looks at the options alone. */
int zkl_credential_check(const struct zkl_client_options *options);
/* 0: *credential is to be given to zkl_credential_drop, NULL if there is none. ZKL_EINVAL, ZKL_ENOMEM,
 * ZKL_ESYSTEM: the detail says why. */
int zkl_credential_get(const struct zkl_client_options *options, char **credential);
void zkl_credential_drop(char *credential);

#endif
