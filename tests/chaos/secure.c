/* SPDX-License-Identifier: Apache-2.0 */
#include "secure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/net.h"
#include "netty.h"

static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int run(const char *format, ...)
{
    char command[1000];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command) == 0 ? 0 : -1;
}

/* By a rename: whoever reads it sees one or the other. */
static int put_certificate(struct secure *s, int node)
{
    char from[200], to[200], new[210];

    snprintf(from, sizeof from, "%s/%s.both.pem", s->folder,
             s->second[node] ? "server2" : "server");
    snprintf(to, sizeof to, "%s/current-%d.pem", s->folder, node);
    snprintf(new, sizeof new, "%s.new", to);
    return run("cp %s %s", from, new) == 0 ? rename(new, to) : -1;
}

static int make_certificates(struct secure *s)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(s->folder, sizeof s->folder, "%s/chaos-tls-XXXXXX", tmp ? tmp : "/tmp");
    if (mkdtemp(s->folder) == NULL) {
        s->folder[0] = '\0';
        return -1;
    }
    for (int i = 0; i < CHAOS_NODES; i++)
        s->second[i] = false;
    int rc = run("sh %s %s >/dev/null 2>&1", CERTIFICATES, s->folder);
    for (int i = 0; rc == 0 && i < CHAOS_NODES; i++)
        rc = put_certificate(s, i);
    return rc;
}

int secure_start(struct secure *s, const struct nets *nets, struct zks_options *options, char *err,
                 size_t size)
{
    if (access(NETTY_CODEC, R_OK) != 0 || system("openssl version >/dev/null 2>&1") != 0) {
        snprintf(err, size, NETTY_CODEC " or openssl is not installed");
        return 77;
    }
    if (make_certificates(s) != 0 || net_free_ports(s->port, CHAOS_NODES) != 0 ||
        setenv("ZKS_CLASSPATH", NETTY_CLASSPATH, 1) != 0) {
        snprintf(err, size, "no certificates, or no free ports");
        return -1;
    }
    options->jvm_extra = "-Dzookeeper.authProvider.x509="
                         "org.apache.zookeeper.server.auth.X509AuthenticationProvider";
    options->cfg_extra = "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
                         "ssl.keyStore.type=PEM\nssl.trustStore.type=PEM";
    for (size_t i = 0; i < CHAOS_NODES; i++) {
        const char *host = nets->nodes > 0 ? nets->host[i] : zks_host();
        snprintf(s->config[i], sizeof s->config[i],
                 "secureClientPort=%d\nsecureClientPortAddress=%s\n"
                 "ssl.keyStore.location=%s/current-%zu.pem\nssl.trustStore.location=%s/ca.pem",
                 s->port[i], host, s->folder, i, s->folder);
        options->node_extra[i] = s->config[i];
    }
    return 0;
}

void secure_stop(struct secure *s)
{
    if (s->folder[0] != '\0')
        run("rm -r %s", s->folder);
    s->folder[0] = '\0';
}

void secure_renew(struct secure *s, int node)
{
    if (s->folder[0] == '\0')
        return;
    s->second[node] = !s->second[node];
    if (put_certificate(s, node) != 0)
        abort();
}

void secure_client(const char *folder, struct zkl_client_options *options)
{
    static char file[4][200];
    static const char *const names[] = {"ca.pem", "client.pem", "client-closed.key", "passphrase"};

    for (size_t i = 0; i < 4; i++)
        snprintf(file[i], sizeof file[i], "%s/%s", folder, names[i]);
    options->tls_ca_file = file[0];
    options->tls_cert_file = file[1];
    options->tls_key_file = file[2];
    options->tls_passphrase_file = file[3];
}
