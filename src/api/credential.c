/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's credential: from the options, a file, or the environment. No message and no log line
 * contains its text, and this file wipes all memory of ours that held it. No lock. client.c calls
 * it while it opens a client, before any other thread knows that client. */
#include "credential.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "secret/secret.h"

int zkl_credential_check(const struct zkl_client_options *o)
{
    int sources = (o->auth_credential != NULL) + (o->auth_file != NULL) + (o->auth_env != NULL);
    if (sources != (o->auth_scheme != NULL))
        return zkl_fail(ZKL_EINVAL, "zkl_client_open: auth_scheme requires exactly one of "
                                    "auth_credential, auth_file and auth_env");
    return 0;
}

void zkl_credential_drop(char *credential)
{
    if (credential)
        explicit_bzero(credential, strlen(credential));
    free(credential);
}

/* source: how messages name it. */
static int take(const struct zkl_client_options *o, const char *source, const char *text,
                char **credential)
{
    bool digest = o->auth_scheme && strcmp(o->auth_scheme, "digest") == 0;
    const char *bare = digest ? zkl_secret_of_digest(text) : text;
    if (!bare)
        return zkl_fail(
            ZKL_EINVAL,
            "zkl_client_open: %s does not have the form USER:PASSWORD or digest:USER:PASSWORD",
            source);
    *credential = strdup(bare);
    return *credential ? 0 : zkl_fail(ZKL_ENOMEM, "zkl_client_open");
}

static int fail_env(const char *name, const char *what)
{
    return zkl_fail(ZKL_EINVAL, "zkl_client_open: auth_env: the variable \"%.256s\" %s", name,
                    what);
}

static int from_env(const struct zkl_client_options *o, char **credential)
{
    const char *name = o->auth_env, *text = getenv(name);
    char source[300];
    if (!text)
        return fail_env(name, "is not set");
    if (text[0] == '\0')
        return fail_env(name, "is empty");
    if (strlen(text) > ZKL_SECRET_MAX)
        return zkl_fail(ZKL_EINVAL,
                        "zkl_client_open: auth_env: the variable \"%.256s\" has more than %d bytes",
                        name, ZKL_SECRET_MAX);
    snprintf(source, sizeof source, "auth_env: the variable \"%.256s\"", name);
    return take(o, source, text, credential);
}

static int code_of_system(int error)
{
    if (error == EMFILE || error == ENFILE)
        return ZKL_ESYSTEM;
    return error == ENOMEM ? ZKL_ENOMEM : ZKL_EINVAL;
}

static int from_file(const struct zkl_client_options *o, char **credential)
{
    char line[ZKL_SECRET_ROOM], source[300];
    struct zkl_secret_fault fault;
    snprintf(source, sizeof source, "auth_file \"%.256s\"", o->auth_file);
    int rc =
        zkl_secret_read(o->auth_file, line, &fault)
            ? take(o, source, line, credential)
            : zkl_fail(code_of_system(fault.error), "zkl_client_open: %s %s", source, fault.text);
    explicit_bzero(line, sizeof line);
    return rc;
}

int zkl_credential_get(const struct zkl_client_options *o, char **credential)
{
    *credential = NULL;
    if (o->auth_file)
        return from_file(o, credential);
    if (o->auth_env)
        return from_env(o, credential);
    return o->auth_credential ? take(o, "auth_credential", o->auth_credential, credential) : 0;
}
