/* SPDX-License-Identifier: Apache-2.0
 *
 * A connected client, with the settings. The credential comes from a file or the environment, is
 * never in argv, and this file wipes it after use. The subcommand owns the client. One thread. The
 * subcommands and compare.c call it. */
#include "connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "nested.h"
#include "say.h"

enum { SESSION_MS_MIN = 100, SESSION_MS_DEFAULT = 10000, SESSION_MS_MAX = 86400000 };

/* --- the credential ----------------------------------------------------- */

/* The message contains the file's name only if it is surely none: it may be the credential
 * itself. */
static int no_credential(const struct settings *settings, const char *what)
{
    const char *name = settings->text[SETTING_AUTH_FILE];
    const char *place = settings->place[SETTING_AUTH_FILE];
    if (name[0] == '/')
        return fail(EXIT_CONFIG, "%s: the file \"%s\" with the credential %s", place, name, what);
    return fail(EXIT_CONFIG, "%s: the file with the credential %s", place, what);
}

/* As that of a file's line: a mounted secret has one. */
static void cut_line_end(char *text)
{
    size_t length = strlen(text);
    if (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    if (length > 0 && text[length - 1] == '\r')
        text[--length] = '\0';
}

/* Into text, which stays empty if the settings have none. */
static int find_credential(struct settings *settings, char *text)
{
    const char *variable = getenv(AUTH_VARIABLE), *file = settings->text[SETTING_AUTH_FILE];
    struct zkl_secret_fault fault;
    snprintf(text, ZKL_SECRET_ROOM, "%s", variable ? variable : "");
    cut_line_end(text);
    if (text[0] == '\0' && settings->credential)
        snprintf(text, ZKL_SECRET_ROOM, "%s", settings->credential);
    if (text[0] || !file)
        return 0;
    if (!zkl_secret_read(file, text, &fault))
        return no_credential(settings, fault.text);
    settings->credential = strdup(text); /* without memory the file is read again */
    return 0;
}

static int use_credential(struct zkl_client_options *options, struct settings *settings, char *text)
{
    int rc = find_credential(settings, text);
    if (rc != 0 || text[0] == '\0')
        return rc;
    const char *bare = strlen(text) > ZKL_SECRET_MAX ? NULL : zkl_secret_of_digest(text);
    if (!bare)
        return fail(EXIT_CONFIG, "the credential (ZKLOCK_AUTH, or the first line of auth_file) "
                                 "does not have the form digest:USER:PASSWORD or USER:PASSWORD");
    options->auth_scheme = "digest";
    options->auth_credential = bare;
    return 0;
}

/* --- the other settings ------------------------------------------------- */

/* None of these messages contains the value, which may be a credential in the wrong place. */
static int use_timeout(struct zkl_client_options *options, const struct settings *settings)
{
    const char *text = settings->text[SETTING_SESSION_TIMEOUT];
    int64_t ms = SESSION_MS_DEFAULT;
    if (text && (!seconds_to_ms(text, &ms) || ms < SESSION_MS_MIN || ms > SESSION_MS_MAX))
        return fail(EXIT_CONFIG, "%s: the session timeout must be 0.1 to 86400 seconds",
                    settings->place[SETTING_SESSION_TIMEOUT]);
    options->session_timeout_ms = (int)ms;
    return 0;
}

static int use_tick(struct zkl_client_options *options, const struct settings *settings)
{
    const char *text = settings->text[SETTING_TICK];
    int64_t ms;
    if (!text)
        return 0;
    if (!seconds_to_ms(text, &ms) || ms < 1 || ms > options->session_timeout_ms)
        return fail(EXIT_CONFIG,
                    "%s: the tick must be 0.001 seconds up to the session timeout, %.15g seconds",
                    settings->place[SETTING_TICK], options->session_timeout_ms / 1000.0);
    options->tick_ms = (int)ms;
    return 0;
}

/* The library reports faults in them. */
static void use_tls_or_sasl(struct zkl_client_options *options, const struct settings *settings)
{
    options->tls_ca_file = settings->text[SETTING_TLS_CA_FILE];
    options->tls_cert_file = settings->text[SETTING_TLS_CERT_FILE];
    options->tls_key_file = settings->text[SETTING_TLS_KEY_FILE];
    options->tls_passphrase_file = settings->text[SETTING_TLS_PASSPHRASE_FILE];
    options->sasl_mechanism = settings->text[SETTING_SASL_MECHANISM];
    options->sasl_user = settings->text[SETTING_SASL_USER];
    options->sasl_password_file = settings->text[SETTING_SASL_PASSWORD_FILE];
    options->sasl_service = settings->text[SETTING_SASL_SERVICE];
    options->sasl_host = settings->text[SETTING_SASL_HOST];
}

static int use_acl(struct zkl_client_options *options, const struct settings *settings)
{
    const char *text = settings->text[SETTING_ACL];
    if (!text || strcmp(text, "open") == 0)
        return 0;
    if (strcmp(text, "creator") != 0)
        return fail(EXIT_CONFIG, "%s: acl must be open or creator", settings->place[SETTING_ACL]);
    if (!options->auth_scheme && !options->tls_ca_file && !options->sasl_mechanism)
        return fail(EXIT_CONFIG, "acl is creator, which needs a credential: set ZKLOCK_AUTH or "
                                 "auth_file, or use TLS or SASL");
    options->acl = ZKL_ACL_CREATOR;
    return 0;
}

int tool_options(struct tool_options *all, struct settings *settings)
{
    struct zkl_client_options *options = &all->client;
    int rc = settings_complete(settings);
    *options = (struct zkl_client_options)ZKL_CLIENT_OPTIONS_INIT;
    options->servers = settings->text[SETTING_SERVERS];
    options->owner = nested_owner(all->owner);
    if (rc == 0)
        rc = use_timeout(options, settings);
    if (rc == 0)
        rc = use_tick(options, settings);
    if (rc == 0)
        rc = use_credential(options, settings, all->credential);
    use_tls_or_sasl(options, settings);
    if (rc == 0)
        rc = use_acl(options, settings);
    return rc;
}

void tool_options_fini(struct tool_options *options)
{
    explicit_bzero(options->credential, sizeof options->credential);
}

/* With what the library knows of the reason, which it says behind a semicolon. */
static int fail_unanswered(const struct zkl_client_options *options)
{
    int length;
    const char *reason = reason_behind(" ms", &length);
    return fail(
        EXIT_NO_SERVER,
        "no server of %s answered within %lld s: check that one runs and can be reached%.*s",
        options->servers, (long long)(options->connect_timeout_ms + 999) / 1000, length, reason);
}

static int open_client(struct zkl_client **client, const struct zkl_client_options *options,
                       const struct settings *settings)
{
    int code = zkl_client_open(client, options);
    if (code == ZKL_EDISCONNECTED)
        return fail_unanswered(options);
    if (code == ZKL_EBADSERVERS)
        return fail(EXIT_CONFIG,
                    "%s: the servers must be HOST:PORT[,HOST:PORT...][/CHROOT], an IPv6 address in "
                    "brackets",
                    settings->place[SETTING_SERVERS]);
    return code == 0 ? 0 : fail_code(code);
}

int tool_connect(struct zkl_client **client, struct settings *settings, int connect_ms,
                 zkl_log_fn log)
{
    struct tool_options options;
    int rc = tool_options(&options, settings);
    options.client.connect_timeout_ms = connect_ms;
    options.client.log_fn = log;
    options.client.log_level = ZKL_LOG_WARNING;
    if (rc == 0)
        rc = open_client(client, &options.client, settings);
    tool_options_fini(&options);
    return rc;
}

void tool_disconnect(struct zkl_client *client)
{
    zkl_client_close(client, CLOSE_MS);
    zkl_client_free(client);
}
