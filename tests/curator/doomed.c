/* SPDX-License-Identifier: Apache-2.0 */
#include "doomed.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "proxy.h"

#define DOOMED_SESSION_MS 4500

/* Of the answer to a connect request. */
enum { SESSION_AT = 8, PASSWORD_AT = 20, CONNECTED_SIZE = PASSWORD_AT + WIRE_PASSWORD };

struct doomed {
    struct proxy *proxy;
    struct zkl_client *client;
    pthread_mutex_t mu;
    int64_t session; /* under mu */
    char password[WIRE_PASSWORD];
};

static size_t note_session(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    struct doomed *doomed = arg;

    if (dir != PROXY_TO_CLIENT || op != PROXY_CONNECT || size < CONNECTED_SIZE)
        return size;
    pthread_mutex_lock(&doomed->mu);
    doomed->session = bytes_get64(frame + SESSION_AT);
    memcpy(doomed->password, frame + PASSWORD_AT, WIRE_PASSWORD);
    pthread_mutex_unlock(&doomed->mu);
    return size;
}

struct doomed *doomed_open(void)
{
    struct doomed *doomed = calloc(1, sizeof *doomed);
    struct zkl_client_options options = cluster_options();

    check_true(doomed != NULL);
    pthread_mutex_init(&doomed->mu, NULL);
    check_ok(proxy_start(&doomed->proxy, zks_host(), zks_port(server, 0)));
    proxy_set_hook(doomed->proxy, note_session, doomed);
    options.session_timeout_ms = DOOMED_SESSION_MS;
    options.servers = cluster_servers(proxy_address(doomed->proxy));
    doomed->client = cluster_client_with(&options);
    return doomed;
}

struct zkl_client *doomed_client(struct doomed *doomed)
{
    return doomed->client;
}

struct proxy *doomed_proxy(struct doomed *doomed)
{
    return doomed->proxy;
}

void doomed_kill(struct doomed *doomed)
{
    char password[WIRE_PASSWORD];

    pthread_mutex_lock(&doomed->mu);
    int64_t session = doomed->session;
    memcpy(password, doomed->password, sizeof password);
    pthread_mutex_unlock(&doomed->mu);
    check_ok(wire_expire_session(zks_host(), zks_port(server, 0), session, password, WAIT_MS));
}

void doomed_free(struct doomed *doomed)
{
    check_ok(zkl_client_free(doomed->client));
    proxy_stop(doomed->proxy);
    pthread_mutex_destroy(&doomed->mu);
    free(doomed);
}
