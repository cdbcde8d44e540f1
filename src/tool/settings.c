/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers and credential: what all subcommands need to connect, from the command line, the
 * environment or a configuration file. settings.h has the table of names. This file owns the texts
 * that it has read until settings_end. One thread; the subcommands call it before they connect. */
#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "addresses.h"
#include "say.h"

#define SYSTEM_FILE "/etc/zklock.conf"

static const struct {
    const char *key, *variable, *option;
} names[SETTINGS] = {
    [SETTING_SERVERS] = {"servers", "ZKLOCK_SERVERS", "--servers"},
    [SETTING_SESSION_TIMEOUT] = {"session_timeout", "ZKLOCK_SESSION_TIMEOUT", "--session-timeout"},
    [SETTING_TICK] = {"tick", "ZKLOCK_TICK", NULL},
    [SETTING_ACL] = {"acl", "ZKLOCK_ACL", NULL},
    [SETTING_AUTH_FILE] = {"auth_file", "ZKLOCK_AUTH_FILE", NULL},
    [SETTING_TLS_CA_FILE] = {"tls_ca_file", "ZKLOCK_TLS_CA_FILE", NULL},
    [SETTING_TLS_CERT_FILE] = {"tls_cert_file", "ZKLOCK_TLS_CERT_FILE", NULL},
    [SETTING_TLS_KEY_FILE] = {"tls_key_file", "ZKLOCK_TLS_KEY_FILE", NULL},
    [SETTING_TLS_PASSPHRASE_FILE] = {"tls_passphrase_file", "ZKLOCK_TLS_PASSPHRASE_FILE", NULL},
    [SETTING_SASL_MECHANISM] = {"sasl_mechanism", "ZKLOCK_SASL_MECHANISM", NULL},
    [SETTING_SASL_USER] = {"sasl_user", "ZKLOCK_SASL_USER", NULL},
    [SETTING_SASL_PASSWORD_FILE] = {"sasl_password_file", "ZKLOCK_SASL_PASSWORD_FILE", NULL},
    [SETTING_SASL_SERVICE] = {"sasl_service", "ZKLOCK_SASL_SERVICE", NULL},
    [SETTING_SASL_HOST] = {"sasl_host", "ZKLOCK_SASL_HOST", NULL},
};

static int no_memory(void)
{
    return fail(EXIT_SYSTEM, "out of memory");
}

/* Keeps a value unless an earlier place had one. An empty one counts as none, as a script's
 * variable that is not set. */
static int keep(struct settings *settings, int setting, const char *value, const char *place)
{
    if (settings->text[setting] || !value || value[0] == '\0')
        return 0;
    settings->text[setting] = strdup(value);
    settings->place[setting] = strdup(place);
    return settings->text[setting] && settings->place[setting] ? 0 : no_memory();
}

static void forget(struct settings *settings, int setting)
{
    free(settings->text[setting]);
    free(settings->place[setting]);
    settings->text[setting] = settings->place[setting] = NULL;
}

bool settings_take(struct settings *settings, int code, const char *value)
{
    int setting = code - OPTION_SETTINGS;
    if (setting < 0 || setting >= SETTINGS)
        return false;
    forget(settings, setting); /* of an option that is given twice the last one counts */
    return keep(settings, setting, value, names[setting].option) == 0;
}

/* --- configuration files ------------------------------------------------ */

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        *--end = '\0';
    return text;
}

/* The message omits the line's text, which may be a credential that belongs into another file. */
static int take_line(struct settings *settings, const char *place, char *line)
{
    line = trim(line);
    if (line[0] == '\0' || line[0] == '#')
        return 0;
    char *equals = strchr(line, '=');
    if (equals)
        *equals = '\0';
    const char *key = trim(line);
    for (int i = 0; equals && i < SETTINGS; i++) {
        if (strcmp(key, names[i].key) == 0)
            return keep(settings, i, trim(equals + 1), place);
    }
    return fail(EXIT_CONFIG,
                "%s: the line must have the form KEY = VALUE, where KEY is servers, "
                "session_timeout, tick, acl, auth_file, or one for TLS or SASL in zklock(1)",
                place);
}

static int take_numbered_line(struct settings *settings, const char *file, int number, char *line)
{
    char *place;
    if (asprintf(&place, "%s, line %d", file, number) < 0)
        return no_memory();
    int rc = take_line(settings, place, line);
    free(place);
    return rc;
}

/* A file that is not there says nothing. */
static int read_config(struct settings *settings, const char *name)
{
    FILE *file = fopen(name, "re");
    if (!file && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!file)
        return fail(EXIT_CONFIG, "%s cannot be read: %s", name, strerror(errno));
    char *line = NULL;
    size_t size = 0;
    int rc = 0;
    for (int number = 1; rc == 0 && getline(&line, &size, file) >= 0; number++)
        rc = take_numbered_line(settings, name, number, line);
    if (rc == 0 && ferror(file))
        rc = fail(EXIT_CONFIG, "%s cannot be read: %s", name, strerror(errno));
    free(line);
    fclose(file);
    return rc;
}

static int read_user_config(struct settings *settings)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *name = NULL;
    int n = 0;
    if (config && config[0] == '/')
        n = asprintf(&name, "%s/zklock.conf", config);
    else if (home && home[0] == '/')
        n = asprintf(&name, "%s/.config/zklock.conf", home);
    if (n < 0)
        return no_memory();
    int rc = name ? read_config(settings, name) : 0;
    free(name);
    return rc;
}

/* --- all together ------------------------------------------------------- */

int settings_complete(struct settings *settings)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < SETTINGS; i++)
        rc = keep(settings, i, getenv(names[i].variable), names[i].variable);
    if (rc == 0)
        rc = read_user_config(settings);
    if (rc == 0)
        rc = read_config(settings, SYSTEM_FILE);
    if (rc == 0 && !settings->text[SETTING_SERVERS])
        rc = fail(EXIT_CONFIG,
                  "no servers: give --servers HOST:PORT, or set ZKLOCK_SERVERS, or write "
                  "\"servers = HOST:PORT\" to " SYSTEM_FILE);
    return rc;
}

bool settings_secured(const struct settings *settings)
{
    return settings->text[SETTING_TLS_CA_FILE] || settings->text[SETTING_SASL_MECHANISM];
}

bool settings_look_up(struct settings *settings)
{
    if (!settings->addresses)
        settings->addresses = addresses_look_up(settings->text[SETTING_SERVERS]);
    return settings->addresses != NULL;
}

void settings_forget_addresses(struct settings *settings)
{
    addresses_drop(settings->addresses);
    settings->addresses = NULL;
}

void settings_fini(struct settings *settings)
{
    settings_forget_addresses(settings);
    if (settings->credential)
        explicit_bzero(settings->credential, strlen(settings->credential));
    free(settings->credential);
    for (int i = 0; i < SETTINGS; i++)
        forget(settings, i);
}

bool seconds_to_ms(const char *text, int64_t *ms)
{
    char *end;
    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return false; /* strtod would take blanks, signs, "inf" and "nan" */
    double seconds = strtod(text, &end);
    if (*end || end == text || seconds > (double)ZKL_TIMEOUT_MAX_MS / 1000)
        return false;
    *ms = (int64_t)(seconds * 1000);
    if ((double)*ms < seconds * 1000)
        ++*ms;
    return true;
}
