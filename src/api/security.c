/* SPDX-License-Identifier: Apache-2.0
 *
 * Who a client is, and the protection of its connections, from its options: a credential given, in
 * a file, or in the environment; TLS by files; SASL by a user and a file with its password. This
 * file reports faults in them before the client makes a thread or a socket, because libzookeeper
 * would report them to no caller. No message contains a secret, and all memory of ours that held
 * one is wiped. No lock. client.c calls it while it opens a client, before any other thread knows
 * that client. */
#include "security.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "driver/driver.h"
#include "driver/secure.h"
#include "error.h"
#include "secret/secret.h"

#define CALL "zkl_client_open"
#define SERVICE_DEFAULT "zookeeper"
#define HOST_DEFAULT "zk-sasl-md5"
#define DIGEST "DIGEST-MD5"

/* --- secrets ------------------------------------------------------------ */

static int code_of_system(int error)
{
    if (error == EMFILE || error == ENFILE)
        return ZKL_ESYSTEM;
    return error == ENOMEM ? ZKL_ENOMEM : ZKL_EINVAL;
}

/* The first line of a file with a secret, into line[ZKL_SECRET_ROOM]. */
static int read_secret(const char *option, const char *file, char *line)
{
    struct zkl_secret_fault fault;
    if (zkl_secret_read(file, line, &fault))
        return 0;
    return zkl_fail(code_of_system(fault.error), CALL ": %s \"%.256s\" %s", option, file,
                    fault.text);
}

/* --- a credential ------------------------------------------------------- */

int zkl_credential_check(const struct zkl_client_options *o)
{
    int sources = (o->auth_credential != NULL) + (o->auth_file != NULL) + (o->auth_env != NULL);
    if (sources != (o->auth_scheme != NULL))
        return zkl_fail(ZKL_EINVAL, CALL ": auth_scheme requires exactly one of "
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
        return zkl_fail(ZKL_EINVAL,
                        CALL ": %s does not have the form USER:PASSWORD or digest:USER:PASSWORD",
                        source);
    *credential = strdup(bare);
    return *credential ? 0 : zkl_fail(ZKL_ENOMEM, CALL);
}

static int fail_env(const char *name, const char *what)
{
    return zkl_fail(ZKL_EINVAL, CALL ": auth_env: the variable \"%.256s\" %s", name, what);
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
                        CALL ": auth_env: the variable \"%.256s\" has more than %d bytes", name,
                        ZKL_SECRET_MAX);
    snprintf(source, sizeof source, "auth_env: the variable \"%.256s\"", name);
    return take(o, source, text, credential);
}

static int from_file(const struct zkl_client_options *o, char **credential)
{
    char line[ZKL_SECRET_ROOM], source[300];
    snprintf(source, sizeof source, "auth_file \"%.256s\"", o->auth_file);
    int rc = read_secret("auth_file", o->auth_file, line);
    if (rc == 0)
        rc = take(o, source, line, credential);
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

/* --- TLS and SASL ------------------------------------------------------- */

static bool is_tls(const struct zkl_client_options *o)
{
    return o->tls_ca_file || o->tls_cert_file || o->tls_key_file || o->tls_passphrase_file;
}

static bool is_sasl(const struct zkl_client_options *o)
{
    return o->sasl_mechanism || o->sasl_user || o->sasl_password_file || o->sasl_service ||
           o->sasl_host;
}

static int check_tls(const struct zkl_client_options *o)
{
    const struct {
        const char *option, *name;
    } files[] = {{"tls_ca_file", o->tls_ca_file},
                 {"tls_cert_file", o->tls_cert_file},
                 {"tls_key_file", o->tls_key_file}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *option = files[i].option, *name = files[i].name;
        if (!name || name[0] == '\0')
            return zkl_fail(ZKL_EINVAL,
                            CALL ": TLS needs tls_ca_file, tls_cert_file and tls_key_file: %s is "
                                 "not set",
                            option);
        if (strchr(name, ','))
            return zkl_fail(ZKL_EINVAL,
                            CALL ": %s \"%.256s\" has a comma in its name, and libzookeeper would "
                                 "truncate the name there",
                            option, name);
    }
    return 0;
}

static int check_sasl(const struct zkl_client_options *o)
{
    const char *mechanism = o->sasl_mechanism;
    if (!mechanism || (strcmp(mechanism, DIGEST) != 0 && strcmp(mechanism, "GSSAPI") != 0))
        return zkl_fail(ZKL_EINVAL, CALL ": SASL needs sasl_mechanism, " DIGEST " or GSSAPI");
    if (strcmp(mechanism, DIGEST) == 0 && (!o->sasl_user || !o->sasl_password_file))
        return zkl_fail(ZKL_EINVAL,
                        CALL ": sasl_mechanism " DIGEST " needs sasl_user and sasl_password_file");
    return 0;
}

static int check_support(const struct zkl_client_options *o)
{
    if (is_tls(o) && is_sasl(o))
        return zkl_fail(ZKL_EUNSUPPORTED,
                        CALL ": tls_ca_file and sasl_mechanism are set, and libzookeeper has no "
                             "call for TLS and SASL on one connection (ZOOKEEPER-3482)");
    if (is_tls(o) && !zkl_secure_has_tls())
        return zkl_fail(ZKL_EUNSUPPORTED,
                        CALL ": TLS: zookeeper_init_ssl is missing from the libzookeeper that this "
                             "library was built with: build that with OpenSSL, then this one");
    if (is_sasl(o) && !zkl_secure_has_sasl())
        return zkl_fail(ZKL_EUNSUPPORTED, CALL
                        ": SASL: zookeeper_init_sasl is missing from the libzookeeper that this "
                        "library was built with: build that with Cyrus SASL, then this one");
    return 0;
}

int zkl_security_check(const struct zkl_client_options *o)
{
    int rc = is_tls(o) ? check_tls(o) : 0;
    if (rc == 0 && is_sasl(o))
        rc = check_sasl(o);
    return rc == 0 ? check_support(o) : rc;
}

/* Opening a pipe would wait for its writer, here and again at each connection. The opening of a
 * file that is not there says so. */
static int check_regular(const char *option, const char *file)
{
    struct stat what;
    if (stat(file, &what) != 0 || S_ISREG(what.st_mode))
        return 0;
    return zkl_fail(ZKL_EINVAL, CALL ": %s \"%.256s\" is no regular file", option, file);
}

static int check_all_regular(const struct zkl_client_options *o)
{
    int rc = check_regular("tls_ca_file", o->tls_ca_file);
    if (rc == 0)
        rc = check_regular("tls_cert_file", o->tls_cert_file);
    return rc == 0 ? check_regular("tls_key_file", o->tls_key_file) : rc;
}

/* For a key that is encrypted later on, without a passphrase here, libzookeeper would ask at the
 * terminal, or read the standard input, on its I/O thread. Any passphrase prevents that. */
#define NO_PASSPHRASE "-"

/* passphrase: NULL, or as it is. */
static int get_files(const struct zkl_client_options *o, const char *passphrase,
                     struct zkl_security *security)
{
    const struct zkl_tls_files files = {o->tls_ca_file, o->tls_cert_file, o->tls_key_file,
                                        passphrase};
    char why[512];
    if (passphrase && strchr(passphrase, ','))
        return zkl_fail(ZKL_EINVAL,
                        CALL ": tls_passphrase_file \"%.256s\" has a passphrase with a comma, and "
                             "libzookeeper would truncate the passphrase there",
                        o->tls_passphrase_file);
    if (!zkl_tls_files_load(&files, why, sizeof why))
        return zkl_fail(ZKL_EINVAL, CALL ": %s", why);
    if (asprintf(&security->tls, "%s,%s,%s,%s", files.ca, files.certificate, files.key,
                 files.passphrase ? files.passphrase : NO_PASSPHRASE) >= 0)
        return 0;
    security->tls = NULL;
    return zkl_fail(ZKL_ENOMEM, CALL);
}

static int get_tls(const struct zkl_client_options *o, struct zkl_security *security)
{
    char line[ZKL_SECRET_ROOM];
    int descriptor;
    if (!zkl_secure_descriptors_do(&descriptor))
        return zkl_fail(ZKL_ESYSTEM,
                        CALL
                        ": TLS: the next descriptor is %d, but libzookeeper needs some below 1024",
                        descriptor);
    int rc = check_all_regular(o);
    if (rc == 0 && o->tls_passphrase_file)
        rc = read_secret("tls_passphrase_file", o->tls_passphrase_file, line);
    if (rc == 0)
        rc = get_files(o, o->tls_passphrase_file ? line : NULL, security);
    explicit_bzero(line, sizeof line);
    return rc;
}

/* Each login reads it again: this check only finds out whether that can succeed. */
static int check_password(const struct zkl_client_options *o)
{
    char line[ZKL_SECRET_ROOM];
    int rc = check_regular("sasl_password_file", o->sasl_password_file);
    if (rc != 0)
        return rc;
    rc = read_secret("sasl_password_file", o->sasl_password_file, line);
    explicit_bzero(line, sizeof line);
    return rc;
}

static bool copy(char **to, const char *from, const char *otherwise)
{
    const char *text = from ? from : otherwise;
    *to = text ? strdup(text) : NULL;
    return *to || !text;
}

static int get_sasl(const struct zkl_client_options *o, struct zkl_security *security)
{
    bool is_digest = strcmp(o->sasl_mechanism, DIGEST) == 0;
    int rc = o->sasl_password_file ? check_password(o) : 0;
    if (rc != 0)
        return rc;
    bool copied = copy(&security->sasl_mechanism, o->sasl_mechanism, NULL);
    copied = copy(&security->sasl_user, o->sasl_user, NULL) && copied;
    copied = copy(&security->sasl_password_file, o->sasl_password_file, NULL) && copied;
    copied = copy(&security->sasl_service, o->sasl_service, SERVICE_DEFAULT) && copied;
    copied = copy(&security->sasl_host, o->sasl_host, is_digest ? HOST_DEFAULT : NULL) && copied;
    return copied ? 0 : zkl_fail(ZKL_ENOMEM, CALL);
}

int zkl_security_get(const struct zkl_client_options *o, struct zkl_security *security)
{
    if (is_tls(o))
        return get_tls(o, security);
    return is_sasl(o) ? get_sasl(o, security) : 0;
}
