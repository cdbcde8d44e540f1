/* SPDX-License-Identifier: Apache-2.0
 *
 * Why there is no link, or one that is of no use, in words for a user: what the core has seen of
 * the server, or what libzookeeper logged last, with the likely causes. libzookeeper reports these
 * only in its log, which is one for the process and does not name the handle: the server's address
 * identifies it. A mutex of its own, below the client's. src/api asks. */
#include "trouble.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/opcode.h"
#include "handle.h"

#define MS INT64_C(1000000)
#define HANDSHAKE_MIN_MS 1000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char last_server[80], last_text[200];

void zkl_trouble_before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

void zkl_trouble_after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

/* --- what libzookeeper logs -------------------------------------------------------------------- */

const char *zkl_trouble_said(const char *message)
{
    const char *end = strstr(message, ": ");
    return end ? end + strlen(": ") : "";
}

/* "Socket SERVER zk retcode=-4, errno=112(Host is down): TEXT" */
bool zkl_trouble_note(const char *message, const char *(*find_reason)(void))
{
    static const char begin[] = "Socket ";
    const char *server = zkl_trouble_said(message);
    bool is_socket = strncmp(server, begin, strlen(begin)) == 0;
    const char *end = is_socket ? strstr(server, " zk retcode=") : NULL;
    const char *errno_text = end ? strchr(end, '(') : NULL, *text = end ? strstr(end, "): ") : NULL;
    if (!text || !errno_text)
        return false;
    const char *reason = find_reason();
    server += strlen(begin);
    bool refused = strstr(text, "refused to accept") != NULL;
    pthread_mutex_lock(&mutex);
    snprintf(last_server, sizeof last_server, "%.*s", (int)(end - server), server);
    if (refused) /* whatever errno says: there is no server that has refused anything */
        snprintf(last_text, sizeof last_text, "%.*s", (int)(text - errno_text - 1), errno_text + 1);
    else
        snprintf(last_text, sizeof last_text, "%.100s%s%.80s", text + strlen("): "),
                 *reason ? ": " : "", reason);
    pthread_mutex_unlock(&mutex);
    return true;
}

struct cause {
    const char *word, *likely;
};

static const struct cause causes_of_tls[] = {
    {"certificate verify failed",
     ": is the server's certificate signed by one of tls_ca_file, and valid today?"},
    {"alert", ": the server refused this client's certificate"},
    {"unexpected eof",
     ": the server hung up: has it reached its limit of connections (maxClientCnxns), is it "
     "starting or stopping, or is that no port for TLS?"},
};

static const struct cause causes[] = {
    {"failed while receiving a server response",
     ": the server accepted the connection and hung up: has it reached its limit of connections "
     "from one address (maxClientCnxns) or in all, is it starting, stopping or without a quorum, "
     "or does that port want TLS, or SASL?"},
    {"Connection refused", ": nothing listens there: is the port right, and does a server run?"},
    {"timed out", ": no answer: is the server starting or without a quorum, or can it not be "
                  "reached from here?"},
};

static const char *likely_cause(const char *text, bool tls)
{
    for (size_t i = 0; tls && i < sizeof causes_of_tls / sizeof *causes_of_tls; i++) {
        if (strstr(text, causes_of_tls[i].word))
            return causes_of_tls[i].likely;
    }
    for (size_t i = tls ? 1 : 0; i < sizeof causes / sizeof *causes; i++) {
        if (strstr(text, causes[i].word))
            return causes[i].likely;
    }
    return "";
}

static void tell_last(const struct zkl_driver *d, char *text, size_t size)
{
    pthread_mutex_lock(&mutex);
    if (d->resolver.addresses && last_server[0] != '\0' &&
        strstr(d->resolver.addresses, last_server))
        snprintf(text, size, "; %s: %s%s", last_server, last_text,
                 likely_cause(last_text, d->config.security.tls != NULL));
    pthread_mutex_unlock(&mutex);
}

/* --- what the core has seen -------------------------------------------------------------------- */

/* The last sessions ended at once, and the present one is no older yet, or is still to come. */
static bool ends_sessions(const struct zkl_session *s)
{
    bool is_young = zkl_clock_mono_ns() - s->born.mono_ns < s->pause_ns;
    return s->pause_ns > 0 && (s->id == 0 || is_young);
}

static const char *what_the_core_saw(const struct zkl_core *core)
{
    if (zkl_opcode_is_unknown(core, ZKL_OPCODE_MULTI))
        return "; the server does not know transactions, without which nothing works";
    if (ends_sessions(&core->session))
        return "; the server ends each session at once: does it lack an operation, or does a proxy "
               "before it, or is it stopping?";
    if (core->session.useless)
        return "; the server hangs up on the same requests each time: does it lack an operation?";
    return NULL;
}

void zkl_trouble_tell(const struct zkl_driver *d, char *text, size_t size)
{
    const char *seen = what_the_core_saw(&d->core);
    int64_t since = d->current ? d->current->handshake_mono_ns : 0;
    long long ms = (zkl_clock_mono_ns() - since) / MS;
    text[0] = '\0';
    if (seen)
        snprintf(text, size, "%s", seen);
    else if (d->core.session.state == ZKL_SESSION_CONNECTED)
        return;
    if (text[0] == '\0')
        zkl_resolver_trouble(d, text, size);
    if (text[0] != '\0')
        return;
    if (since != 0 && ms >= HANDSHAKE_MIN_MS)
        snprintf(
            text, size,
            "; a server accepted the connection and has not answered the TLS handshake for %lld ms",
            ms);
    else
        tell_last(d, text, size);
}
