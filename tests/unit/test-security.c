/* SPDX-License-Identifier: Apache-2.0 */
/* TLS and SASL in a client's options, without a server: contradictions, and what libzookeeper
 * lacks, have their codes and are named, before anything is opened. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "check.h"

static struct zkl_client_options plain(void)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = "127.0.0.1:1"; /* no server is there */
    return options;
}

static struct zkl_client_options with_tls(void)
{
    struct zkl_client_options options = plain();

    options.tls_ca_file = "/nowhere/ca.pem";
    options.tls_cert_file = "/nowhere/client.pem";
    options.tls_key_file = "/nowhere/client.key";
    return options;
}

static struct zkl_client_options with_sasl(void)
{
    struct zkl_client_options options = plain();

    options.sasl_mechanism = "DIGEST-MD5";
    options.sasl_user = "bob";
    options.sasl_password_file = "/nowhere/password";
    return options;
}

/* The sentence has the code's own, and this word; the caller's buffer has the same. */
static void check_refused(const struct zkl_client_options *theirs, int code, const char *word)
{
    struct zkl_client_options options = *theirs;
    struct zkl_client *client = NULL;
    char why[768] = "";

    options.errbuf = why;
    options.errbuf_size = sizeof why;
    check_num(zkl_client_open(&client, &options), ==, code);
    check_true(client == NULL);
    check_text(why, zkl_error_detail());
    if (!strstr(why, word) || strncmp(why, zkl_strerror(code), strlen(zkl_strerror(code))) != 0)
        fail_msg("\"%s\" is not of code %d, or does not have \"%s\"", why, code, word);
}

/* Goal: the three files of TLS are accepted only together, and the missing one is named. */
TEST(tls_needs_its_three_files)
{
    struct zkl_client_options options = with_tls();

    options.tls_ca_file = NULL;
    check_refused(&options, ZKL_EINVAL, "tls_ca_file is not set");
    options = with_tls();
    options.tls_cert_file = "";
    check_refused(&options, ZKL_EINVAL, "tls_cert_file is not set");
    options = with_tls();
    options.tls_key_file = NULL;
    check_refused(&options, ZKL_EINVAL, "tls_key_file is not set");
    options = plain();
    options.tls_passphrase_file = "/nowhere/passphrase";
    check_refused(&options, ZKL_EINVAL, "tls_ca_file is not set");
}

/* Goal: a comma in a file's name is refused: libzookeeper is given all of them in one text, which it cuts at commas. */
TEST(a_comma_in_a_files_name_is_refused)
{
    struct zkl_client_options options = with_tls();

    options.tls_ca_file = "/nowhere/a,b.pem";
    check_refused(&options, ZKL_EINVAL, "tls_ca_file \"/nowhere/a,b.pem\" has a comma");
    options = with_tls();
    options.tls_cert_file = ",";
    check_refused(&options, ZKL_EINVAL, "tls_cert_file \",\" has a comma");
    options = with_tls();
    options.tls_key_file = "key,";
    check_refused(&options, ZKL_EINVAL, "tls_key_file \"key,\" has a comma");
}

/* Goal: SASL needs a mechanism that servers know, and DIGEST-MD5 a user and a password. */
TEST(sasl_needs_a_mechanism_and_a_user)
{
    struct zkl_client_options options = with_sasl();

    options.sasl_mechanism = NULL;
    check_refused(&options, ZKL_EINVAL, "sasl_mechanism");
    options.sasl_mechanism = "PLAIN";
    check_refused(&options, ZKL_EINVAL, "DIGEST-MD5 or GSSAPI");
    options = with_sasl();
    options.sasl_user = NULL;
    check_refused(&options, ZKL_EINVAL, "needs sasl_user");
    options = with_sasl();
    options.sasl_password_file = NULL;
    check_refused(&options, ZKL_EINVAL, "sasl_password_file");
    options = plain();
    options.sasl_service = "zookeeper";
    check_refused(&options, ZKL_EINVAL, "sasl_mechanism");
    options = plain();
    options.sasl_host = "zk1";
    check_refused(&options, ZKL_EINVAL, "sasl_mechanism");
}

/* Goal: TLS and SASL together have a code of their own, whatever libzookeeper was built with: it
 * has no such call. */
TEST(tls_and_sasl_at_once_have_a_code)
{
    struct zkl_client_options options = with_tls(), sasl = with_sasl();

    options.sasl_mechanism = sasl.sasl_mechanism;
    options.sasl_user = sasl.sasl_user;
    options.sasl_password_file = sasl.sasl_password_file;
    check_refused(&options, ZKL_EUNSUPPORTED, "ZOOKEEPER-3482");
    check_num(zkl_error_is_retryable(ZKL_EUNSUPPORTED), ==, 0);
}

/* Goal: what libzookeeper was built without is named; where it has it, the file that is not there is. */
TEST(what_libzookeeper_lacks_is_named)
{
    struct zkl_client_options options = with_tls();

    if (HAVE_TLS)
        check_refused(&options, ZKL_EINVAL,
                      "tls_ca_file \"/nowhere/ca.pem\" cannot be loaded: No such");
    else
        check_refused(&options, ZKL_EUNSUPPORTED, "zookeeper_init_ssl is missing");
    options = with_sasl();
    if (HAVE_SASL)
        check_refused(&options, ZKL_EINVAL, "sasl_password_file \"/nowhere/password\"");
    else
        check_refused(&options, ZKL_EUNSUPPORTED, "zookeeper_init_sasl is missing");
}

/* Goal: nodes for their creator need an identity: TLS and SASL give one, as auth_scheme does. */
TEST(the_creators_acl_needs_an_identity)
{
    struct zkl_client_options options = plain();

    options.acl = ZKL_ACL_CREATOR;
    check_refused(&options, ZKL_EINVAL, "ZKL_ACL_CREATOR needs");
    options = with_tls();
    options.acl = ZKL_ACL_CREATOR;
    check_refused(&options, HAVE_TLS ? ZKL_EINVAL : ZKL_EUNSUPPORTED, HAVE_TLS ? "ca.pem" : "TLS");
    options = with_sasl();
    options.acl = ZKL_ACL_CREATOR;
    check_refused(&options, HAVE_SASL ? ZKL_EINVAL : ZKL_EUNSUPPORTED,
                  HAVE_SASL ? "password" : "SASL");
}
