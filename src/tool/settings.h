/* SPDX-License-Identifier: Apache-2.0 */
/* Servers and credential: what all subcommands need to connect. A setting comes from the first of
 * these that has it: the command line, the environment, the user's configuration file
 * ($XDG_CONFIG_HOME/zklock.conf, or ~/.config/zklock.conf), /etc/zklock.conf.
 *
 *     key              environment             option
 *     servers          ZKLOCK_SERVERS          --servers HOST:PORT,...
 *     session_timeout  ZKLOCK_SESSION_TIMEOUT  --session-timeout SECONDS
 *     tick             ZKLOCK_TICK             (none)  of the servers, SECONDS
 *     acl              ZKLOCK_ACL              (none)  "open" or "creator"
 *     auth_file        ZKLOCK_AUTH_FILE        (none)  file whose first line is the credential
 *     (none)           ZKLOCK_AUTH             (none)  the credential itself, before any file
 *
 * and, as the options of the library that they are named after: tls_ca_file (ZKLOCK_TLS_CA_FILE),
 * tls_cert_file, tls_key_file, tls_passphrase_file, sasl_mechanism, sasl_user, sasl_password_file,
 * sasl_service, sasl_host; no option has them.
 *
 * A subcommand has SETTINGS_OPTIONS among its options, passes their codes to settings_take, and
 * then opens its client with connect.h. */
#ifndef ZKLOCK_TOOL_SETTINGS_H
#define ZKLOCK_TOOL_SETTINGS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

enum setting {
    SETTING_SERVERS,
    SETTING_SESSION_TIMEOUT,
    SETTING_TICK,
    SETTING_ACL,
    SETTING_AUTH_FILE,
    SETTING_TLS_CA_FILE,
    SETTING_TLS_CERT_FILE,
    SETTING_TLS_KEY_FILE,
    SETTING_TLS_PASSPHRASE_FILE,
    SETTING_SASL_MECHANISM,
    SETTING_SASL_USER,
    SETTING_SASL_PASSWORD_FILE,
    SETTING_SASL_SERVICE,
    SETTING_SASL_HOST,
    SETTINGS
};

/* Codes of getopt_long: a subcommand's own long options must stay below. */
enum { OPTION_SETTINGS = 1000 };

#define SETTINGS_OPTIONS                                                                           \
    {"servers", required_argument, NULL, OPTION_SETTINGS + SETTING_SERVERS},                       \
    {                                                                                              \
        "session-timeout", required_argument, NULL, OPTION_SETTINGS + SETTING_SESSION_TIMEOUT      \
    }

#define SETTINGS_USAGE                                                                             \
    "  --servers HOST:PORT,...    the ensemble (default: ZKLOCK_SERVERS, then the configuration\n" \
    "                             file)\n"                                                         \
    "  --session-timeout SEC      timeout of the ZooKeeper session (10)\n"

/* Zero it before use. */
struct settings {
    char *text[SETTINGS];  /* NULL: not said */
    char *place[SETTINGS]; /* where it was said, for a sentence that finds fault with it */
    char *credential;   /* of auth_file once it was read: a pipe has it for one connection only */
    bool is_one_unread; /* the user's configuration file may not be read */
};

/* Keep the value of an option, code being one of SETTINGS_OPTIONS. 0, or the exit status after a
 * sentence. */
int settings_take(struct settings *settings, int code, const char *value);
/* Fill in what the command line left out. 0, or the exit status after a sentence. */
int settings_complete(struct settings *settings);
void settings_fini(struct settings *settings);

#endif
