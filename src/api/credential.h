/* SPDX-License-Identifier: Apache-2.0
 * The client's credential: from the options, a file, or the environment. No message and no log line
 * contains its text, and this code wipes all memory of ours that held it. */
#ifndef ZKL_API_CREDENTIAL_H
#define ZKL_API_CREDENTIAL_H

#include <zklock/zklock.h>

/* 0, or ZKL_EINVAL: a scheme requires exactly one source. Checks only the options. */
int zkl_credential_check(const struct zkl_client_options *options);
/* 0: the caller must pass *credential to zkl_credential_drop; NULL if there is none. ZKL_EINVAL,
 * ZKL_ENOMEM, ZKL_ESYSTEM: the detail says why. */
int zkl_credential_get(const struct zkl_client_options *options, char **credential);
void zkl_credential_drop(char *credential);

#endif
