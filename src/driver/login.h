/* SPDX-License-Identifier: Apache-2.0
 * What Cyrus SASL asks for at the logins of one handle: the user and the password. */
#ifndef ZKL_DRIVER_LOGIN_H
#define ZKL_DRIVER_LOGIN_H

struct zkl_login;
struct zkl_security;

/* Where there is SASL. *security must stay until the login is freed. NULL: no memory. */
struct zkl_login *zkl_login_new(const struct zkl_security *security);
/* The sasl_callback_t[] for libzookeeper; the login's own. */
const void *zkl_login_callbacks(const struct zkl_login *login);
/* After the handle was closed. NULL is allowed. */
void zkl_login_free(struct zkl_login *login);

#endif
