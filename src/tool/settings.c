/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers and credential: what all subcommands need to connect, from the command line, the
 * environment or a configuration file. settings.h has the table of names. This file owns the texts
 * that it has read until settings_end. One thread; the subcommands call it before they connect. */
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* --- values -------------------------------------------------------------- */

#define BLANKS " \t\n\v\f\r"

static bool is_blank(const char *value)
{
    return value[strspn(value, BLANKS)] == '\0';
}

/* Without the blanks around it, and in a list around its commas: a mounted secret ends with a
 * line's end. */
static char *tidy(char *text, bool is_list)
{
    char *out = text;
    for (const char *at = text; *at;) {
        size_t blanks = strspn(at, BLANKS);
        const char *next = at + blanks;
        bool is_edge =
            out == text || *next == '\0' || (is_list && (out[-1] == ',' || *next == ','));
        memmove(out, at, blanks);
        out += is_edge ? 0 : blanks;
        at = next;
        if (*at)
            *out++ = *at++;
    }
    *out = '\0';
    return text;
}

/* Keeps a value unless an earlier place had one. */
static int keep(struct settings *settings, int setting, const char *value, const char *place)
{
    if (settings->text[setting])
        return 0;
    settings->text[setting] = strdup(value);
    settings->place[setting] = strdup(place);
    if (!settings->text[setting] || !settings->place[setting])
        return no_memory();
    tidy(settings->text[setting], setting == SETTING_SERVERS);
    return 0;
}

/* An empty variable counts as none, as a script's that is not set. */
static int keep_variable(struct settings *settings, int setting)
{
    const char *value = getenv(names[setting].variable);
    return value && !is_blank(value) ? keep(settings, setting, value, names[setting].variable) : 0;
}

static void forget(struct settings *settings, int setting)
{
    free(settings->text[setting]);
    free(settings->place[setting]);
    settings->text[setting] = settings->place[setting] = NULL;
}

int settings_take(struct settings *settings, int code, const char *value)
{
    int setting = code - OPTION_SETTINGS;
    if (is_blank(value))
        return fail(EXIT_USAGE, "the value of %s is empty: give one, or omit the option",
                    names[setting].option);
    forget(settings, setting); /* of an option that is given twice the last one counts */
    return keep(settings, setting, value, names[setting].option);
}

/* --- configuration files ------------------------------------------------ */

struct config {
    const char *name;
    int number;          /* of the line */
    int lines[SETTINGS]; /* where a key was; 0: not yet */
};

static int take_value(struct settings *settings, struct config *config, int setting,
                      const char *value, const char *place)
{
    if (config->lines[setting])
        return fail(EXIT_CONFIG, "%s: line %d has set %s already: remove one of them", place,
                    config->lines[setting], names[setting].key);
    if (is_blank(value))
        return fail(EXIT_CONFIG, "%s: %s has no value: give one, or remove the line", place,
                    names[setting].key);
    config->lines[setting] = config->number;
    return keep(settings, setting, value, place);
}

/* The message omits the line's text, which may be a credential that belongs into another file. */
static int take_line(struct settings *settings, struct config *config, const char *place,
                     char *line)
{
    if (is_blank(line) || tidy(line, false)[0] == '#')
        return 0;
    char *equals = strchr(line, '=');
    if (equals)
        *equals = '\0';
    const char *key = tidy(line, false);
    for (int i = 0; equals && i < SETTINGS; i++) {
        if (strcmp(key, names[i].key) == 0)
            return take_value(settings, config, i, equals + 1, place);
    }
    return fail(EXIT_CONFIG,
                "%s: the line must have the form KEY = VALUE, where KEY is servers, "
                "session_timeout, tick, acl, auth_file, or one for TLS or SASL in zklock(1)",
                place);
}

static int take_next_line(struct settings *settings, struct config *config, char *line)
{
    char *place;
    if (asprintf(&place, "%s, line %d", config->name, ++config->number) < 0)
        return no_memory();
    int rc = take_line(settings, config, place, line);
    free(place);
    return rc;
}

static int cannot_read(const char *name, int error)
{
    return fail(EXIT_CONFIG, "%s cannot be read: %s", name, strerror(error));
}

/* A file that is not there says nothing. */
static int read_config(struct settings *settings, const char *name)
{
    struct config config = {.name = name};
    FILE *file = fopen(name, "re");
    if (!file && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!file)
        return cannot_read(name, errno);
    char *line = NULL;
    size_t size = 0;
    int rc = 0;
    while (rc == 0 && getline(&line, &size, file) >= 0)
        rc = take_next_line(settings, &config, line);
    if (rc == 0 && ferror(file))
        rc = cannot_read(name, errno);
    free(line);
    fclose(file);
    return rc;
}

/* HOME is another user's after sudo or setpriv: that user's file is not ours. Where it can be seen
 * to exist, it is said once that it does not count. */
static bool is_of_another(struct settings *settings, const char *name)
{
    struct stat st;
    if (access(name, R_OK) == 0 || errno != EACCES)
        return false;
    bool is_seen = stat(name, &st) == 0;
    if (is_seen && st.st_uid == geteuid())
        return false;
    if (is_seen && !settings->is_one_unread)
        say("%s cannot be read, so its settings do not count: %s", name, strerror(EACCES));
    settings->is_one_unread = true;
    return true;
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
    int rc = name && !is_of_another(settings, name) ? read_config(settings, name) : 0;
    free(name);
    return rc;
}

/* --- all together ------------------------------------------------------- */

int settings_complete(struct settings *settings)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < SETTINGS; i++)
        rc = keep_variable(settings, i);
    if (rc == 0)
        rc = read_user_config(settings);
    if (rc == 0)
        rc = read_config(settings, SYSTEM_FILE);
    if (rc == 0 && !settings->text[SETTING_SERVERS])
        rc = fail(EXIT_CONFIG,
                  "no servers%s: give --servers HOST:PORT, or set ZKLOCK_SERVERS, or write "
                  "\"servers = HOST:PORT\" to " SYSTEM_FILE,
                  settings->is_one_unread ? ", and the user's configuration file cannot be read"
                                          : "");
    return rc;
}

void settings_fini(struct settings *settings)
{
    if (settings->credential)
        explicit_bzero(settings->credential, strlen(settings->credential));
    free(settings->credential);
    for (int i = 0; i < SETTINGS; i++)
        forget(settings, i);
}
