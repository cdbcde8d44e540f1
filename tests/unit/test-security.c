/* SPDX-License-Identifier: Apache-2.0 */
/* TLS and SASL in a client's options, without a server: contradictions, and what libzookeeper
 * lacks, have their codes and are named, before anything is opened. */
#include <zklock/zklock.h>

#include "check.h"

#define TLS(ca, cert, key) .tls_ca_file = (ca), .tls_cert_file = (cert), .tls_key_file = (key)
#define CA "/nowhere/ca.pem"
#define CERT "/nowhere/client.pem"
#define KEY "/nowhere/client.key"
#define SASL(mechanism, user, file)                                                                \
    .sasl_mechanism = (mechanism), .sasl_user = (user), .sasl_password_file = (file)
#define DIGEST "DIGEST-MD5"
#define BOB "bob"
#define PASSWORD "/nowhere/password"

/* What libzookeeper was built without has a code of its own. */
#define TLS_CODE (HAVE_TLS ? ZKL_EINVAL : ZKL_EUNSUPPORTED)
#define SASL_CODE (HAVE_SASL ? ZKL_EINVAL : ZKL_EUNSUPPORTED)

static const struct {
    int code;
    const char *word; /* of the sentence */
    struct zkl_client_options options;
} refused[] = {
    /* The three files of TLS are accepted only together, and the missing one is named. */
    {ZKL_EINVAL, "tls_ca_file is not set", {TLS(NULL, CERT, KEY)}},
    {ZKL_EINVAL, "tls_cert_file is not set", {TLS(CA, "", KEY)}},
    {ZKL_EINVAL, "tls_key_file is not set", {TLS(CA, CERT, NULL)}},
    {ZKL_EINVAL, "tls_ca_file is not set", {.tls_passphrase_file = "/nowhere/passphrase"}},
    /* libzookeeper is given all of them in one text, which it cuts at commas. */
    {ZKL_EINVAL,
     "tls_ca_file \"/nowhere/a,b.pem\" has a comma",
     {TLS("/nowhere/a,b.pem", CERT, KEY)}},
    {ZKL_EINVAL, "tls_cert_file \",\" has a comma", {TLS(CA, ",", KEY)}},
    {ZKL_EINVAL, "tls_key_file \"key,\" has a comma", {TLS(CA, CERT, "key,")}},
    /* SASL needs a mechanism that servers know, and DIGEST-MD5 a user and a password. */
    {ZKL_EINVAL, "sasl_mechanism", {SASL(NULL, BOB, PASSWORD)}},
    {ZKL_EINVAL, "DIGEST-MD5 or GSSAPI", {SASL("PLAIN", BOB, PASSWORD)}},
    {ZKL_EINVAL, "needs sasl_user", {SASL(DIGEST, NULL, PASSWORD)}},
    {ZKL_EINVAL, "sasl_password_file", {SASL(DIGEST, BOB, NULL)}},
    {ZKL_EINVAL, "sasl_mechanism", {.sasl_service = "zookeeper"}},
    {ZKL_EINVAL, "sasl_mechanism", {.sasl_host = "zk1"}},
    /* Both at once, whatever libzookeeper was built with: it has no such call. */
    {ZKL_EUNSUPPORTED, "ZOOKEEPER-3482", {TLS(CA, CERT, KEY), SASL(DIGEST, BOB, PASSWORD)}},
    /* What libzookeeper was built without is named; where it has it, the file that is not there is. */
    {TLS_CODE,
     HAVE_TLS ? "tls_ca_file \"" CA "\" cannot be loaded: No such"
              : "zookeeper_init_ssl is missing",
     {TLS(CA, CERT, KEY)}},
    {SASL_CODE,
     HAVE_SASL ? "sasl_password_file \"" PASSWORD "\"" : "zookeeper_init_sasl is missing",
     {SASL(DIGEST, BOB, PASSWORD)}},
    /* Nodes for their creator need an identity: TLS and SASL give one, as auth_scheme does. */
    {ZKL_EINVAL, "ZKL_ACL_CREATOR needs", {.acl = ZKL_ACL_CREATOR}},
    {TLS_CODE, HAVE_TLS ? "ca.pem" : "TLS", {.acl = ZKL_ACL_CREATOR, TLS(CA, CERT, KEY)}},
    {SASL_CODE,
     HAVE_SASL ? "password" : "SASL",
     {.acl = ZKL_ACL_CREATOR, SASL(DIGEST, BOB, PASSWORD)}},
};

/* Goal: the sentence has the code's own, and the word; the caller's buffer has the same. */
TEST(refused_before_anything_is_opened)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct zkl_client_options options = refused[i].options;
        struct zkl_client *client = NULL;
        const char *sentence = zkl_strerror(refused[i].code);
        char why[768] = "";

        options.size = sizeof options;
        options.servers = "127.0.0.1:1"; /* no server is there */
        options.errbuf = why;
        options.errbuf_size = sizeof why;
        int code = zkl_client_open(&client, &options);
        if (code != refused[i].code || client || strcmp(why, zkl_error_detail()) != 0 ||
            !strstr(why, refused[i].word) || strncmp(why, sentence, strlen(sentence)) != 0)
            fail_msg("row %zu: %d, \"%s\" for \"%s\"", i, code, why, refused[i].word);
    }
    check_num(zkl_error_is_retryable(ZKL_EUNSUPPORTED), ==, 0);
}
