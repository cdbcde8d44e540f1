/* SPDX-License-Identifier: Apache-2.0 */
#include "expiring.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "nodes.h"

#define EXPIRING_SESSION_MS 4500

/* Of the answer to a connect request. */
enum { SESSION_AT = 8, PASSWORD_AT = 20, CONNECTED_SIZE = PASSWORD_AT + WIRE_PASSWORD };

struct expiring {
    struct proxy *proxy;
    struct zkl_client *client;
    pthread_mutex_t mu;
    int64_t session; /* under mu */
    char password[WIRE_PASSWORD];
};

static size_t note_session(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    struct expiring *expiring = arg;

    if (dir != PROXY_TO_CLIENT || op != PROXY_CONNECT || size < CONNECTED_SIZE)
        return size;
    pthread_mutex_lock(&expiring->mu);
    expiring->session = bytes_get64(frame + SESSION_AT);
    memcpy(expiring->password, frame + PASSWORD_AT, WIRE_PASSWORD);
    pthread_mutex_unlock(&expiring->mu);
    return size;
}

struct expiring *expiring_open(void)
{
    struct expiring *expiring = calloc(1, sizeof *expiring);
    struct zkl_client_options options = cluster_options();

    check_true(expiring != NULL);
    pthread_mutex_init(&expiring->mu, NULL);
    expiring->proxy = proxy_for(&options);
    proxy_set_hook(expiring->proxy, note_session, expiring);
    options.session_timeout_ms = EXPIRING_SESSION_MS;
    expiring->client = cluster_client_with(&options);
    return expiring;
}

struct zkl_client *expiring_client(struct expiring *expiring)
{
    return expiring->client;
}

struct proxy *expiring_proxy(struct expiring *expiring)
{
    return expiring->proxy;
}

void expiring_expire(struct expiring *expiring)
{
    char password[WIRE_PASSWORD];

    pthread_mutex_lock(&expiring->mu);
    int64_t session = expiring->session;
    memcpy(password, expiring->password, sizeof password);
    pthread_mutex_unlock(&expiring->mu);
    check_ok(wire_expire_session(zks_host(), zks_port(server, 0), session, password, WAIT_MS));
}

void expiring_free(struct expiring *expiring)
{
    check_ok(zkl_client_free(expiring->client));
    proxy_stop(expiring->proxy);
    pthread_mutex_destroy(&expiring->mu);
    free(expiring);
}
