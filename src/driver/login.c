/* SPDX-License-Identifier: Apache-2.0
 *
 * What Cyrus SASL asks for at each login: the user, and the password from its file. libzookeeper has
 * such callbacks too, but those take the end of a line of Windows for a part of the password, leave
 * it in memory, and are not made for two handles in parallel. Each handle has its own here, and this
 * file wipes the password with the handle. No lock: the handle's I/O thread calls the callbacks.
 * secure.c makes a login, handle.c frees it. */
#include "login.h"

#include <stdlib.h>
#include <string.h>

#include "secure.h"

#ifdef ZKL_HAVE_SASL

#include <sasl/sasl.h>

#include "secret/secret.h"

struct zkl_login {
    const struct zkl_security *security;
    sasl_secret_t *secret; /* the last one that was read, or NULL */
    sasl_callback_t callbacks[5];
};

static void drop_secret(struct zkl_login *login)
{
    if (login->secret)
        explicit_bzero(login->secret->data, login->secret->len);
    free(login->secret);
    login->secret = NULL;
}

static int give_realm(void *context, int id, const char **realms, const char **realm)
{
    (void)context;
    (void)id;
    (void)realms;
    *realm = NULL;
    return SASL_OK;
}

static int give_user(void *context, int id, const char **user, unsigned *length)
{
    const struct zkl_login *login = context;
    (void)id;
    *user = login->security->sasl_user;
    if (length)
        *length = *user ? (unsigned)strlen(*user) : 0;
    return SASL_OK;
}

static int keep_secret(struct zkl_login *login, const char *line)
{
    size_t length = strlen(line);
    login->secret = malloc(sizeof *login->secret + length);
    if (!login->secret)
        return SASL_NOMEM;
    login->secret->len = length;
    memcpy(login->secret->data, line, length + 1);
    return SASL_OK;
}

static int give_secret(sasl_conn_t *connection, void *context, int id, sasl_secret_t **secret)
{
    struct zkl_login *login = context;
    struct zkl_secret_fault fault;
    char line[ZKL_SECRET_ROOM];
    (void)connection;
    (void)id;
    drop_secret(login);
    int rc = login->security->sasl_password_file &&
                     zkl_secret_read(login->security->sasl_password_file, line, &fault)
                 ? keep_secret(login, line)
                 : SASL_FAIL;
    explicit_bzero(line, sizeof line);
    *secret = login->secret;
    return rc;
}

/* By way of void (*)(void), which says to compilers that the change of type is meant. */
#define PROC(function) ((int (*)(void))(void (*)(void))(function))

struct zkl_login *zkl_login_new(const struct zkl_security *security)
{
    struct zkl_login *login = calloc(1, sizeof *login);
    if (!login)
        return NULL;
    login->security = security;
    login->callbacks[0] = (sasl_callback_t){SASL_CB_GETREALM, PROC(give_realm), login};
    login->callbacks[1] = (sasl_callback_t){SASL_CB_USER, PROC(give_user), login};
    login->callbacks[2] = (sasl_callback_t){SASL_CB_AUTHNAME, PROC(give_user), login};
    login->callbacks[3] = (sasl_callback_t){SASL_CB_PASS, PROC(give_secret), login};
    login->callbacks[4] = (sasl_callback_t){SASL_CB_LIST_END, NULL, NULL};
    return login;
}

const void *zkl_login_callbacks(const struct zkl_login *login)
{
    return login->callbacks;
}

void zkl_login_free(struct zkl_login *login)
{
    if (login)
        drop_secret(login);
    free(login);
}

#else

void zkl_login_free(struct zkl_login *login)
{
    free(login); /* there is none */
}

#endif
