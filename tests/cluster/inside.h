/* SPDX-License-Identifier: Apache-2.0 */
/* What programs learn from inside a client. They link the library's own objects. */
#ifndef ZKCLUSTER_INSIDE_H
#define ZKCLUSTER_INSIDE_H

#include "api/client.h"
#include "cluster.h"
#include "session_of.h"

/* The session timeout of a client that is expired: its next connection may come while the server is at it, and be
 * left without an answer, which libzookeeper gives up after two thirds of this. */
#define EXPIRING_MS 3000

/* End its session, as the server would. */
static inline void inside_expire(struct zkl_client *client)
{
    clientid_t id = {0};

    check_wait(session_of(client->driver, &id), WAIT_MS);
    check_ok(
        wire_expire_session(zks_host(), zks_port(server, 0), id.client_id, id.passwd, WAIT_MS));
}

/* Requests of the client on its present connection, as the server counts them. */
static inline int64_t inside_received(struct zkl_client *client)
{
    int64_t received = 0, sent = 0;

    zkl_driver_lock(client->driver);
    int64_t session = client->driver->core.session.id;
    zkl_driver_unlock(client->driver);
    check_ok(flw_session_packets(zks_host(), zks_port(server, 0), session, &received, &sent));
    return received;
}

/* Does the client know of a request to release one of its nodes? */
static inline bool inside_knows_request(struct zkl_client *client)
{
    bool knows = false;
    zkl_driver_lock(client->driver);
    for (const struct zkl_contender *c = client->driver->core.first; c; c = c->next)
        knows = knows || c->machine.revoked;
    zkl_driver_unlock(client->driver);
    return knows;
}

/* Threads and operations of its process that wait for a turn at the handle, which no other client sees. */
static inline size_t inside_waiting(struct zkl_mutex *mutex)
{
    size_t n = 0;
    zkl_driver_lock(mutex->client->driver);
    for (const struct zkl_local_waiter *turn = mutex->local_queue.first; turn; turn = turn->next)
        n++;
    zkl_driver_unlock(mutex->client->driver);
    return n;
}

#endif
