/* SPDX-License-Identifier: Apache-2.0 */
/* Locks, and notes at every moment until when it may believe that it holds. */
#include "seat.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <zklock/zklock.h>

#include "api/client.h"
#include "driver/driver.h"
#include "tool/net.h"

#define OPEN_MS 60000
#define LOCK_MS 120000
#define MS INT64_C(1000000)

static struct zkl_client *client_of(const struct seat *seat)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_client *client = NULL;

    options.servers = seat->servers;
    options.session_timeout_ms = seat->session_ms;
    options.connect_timeout_ms = OPEN_MS;
    options.tick_ms = seat->tick_ms;
    return zkl_client_open(&client, &options) == 0 ? client : NULL;
}

static void note_session(struct seat *seat, struct zkl_client *client)
{
    zkl_driver_lock(client->driver);
    seat->session = client->driver->core.session.id;
    seat->timeout_ms = client->driver->core.session.timeout_ms;
    seat->link_ns = client->driver->core.session.proof.start_boot;
    zkl_driver_unlock(client->driver);
}

/* The clock is read before the window: so an error makes the end earlier. */
static void look(struct seat *seat, struct zkl_client *client, struct zkl_mutex *mutex)
{
    int64_t now = net_boot_ns(), left_ms = zkl_mutex_window_ms(mutex);

    if (left_ms > 0 && now + left_ms * MS > seat->end_ns + MS) {
        seat->end_ns = now + left_ms * MS;
        seat->end_seen_ns = net_boot_ns();
        note_session(seat, client);
    }
}

/* The completion thread can do nothing while somebody has the client's mutex. */
struct blocker {
    struct seat *seat;
    struct zkl_client *client;
};

static void *block_main(void *arg)
{
    struct blocker *b = arg;

    while (!b->seat->quit) {
        if (b->seat->block && !b->seat->go) {
            zkl_driver_lock(b->client->driver);
            while (!b->seat->go && !b->seat->quit)
                net_nap_ms(1);
            zkl_driver_unlock(b->client->driver);
        }
        net_nap_ms(1);
    }
    return NULL;
}

static void take(struct seat *seat, struct zkl_client *client, struct zkl_mutex *mutex)
{
    seat->asked_ns = net_boot_ns();
    seat->rc = zkl_mutex_lock_for(mutex, LOCK_MS);
    if (seat->rc == 0) {
        look(seat, client, mutex);
        seat->granted_ns = net_boot_ns();
    }
}

static void run(struct seat *seat, struct zkl_client *client, struct zkl_mutex *mutex)
{
    if (seat->role >= ROLE_STANDING)
        take(seat, client, mutex);
    seat->ready = 1;
    while (seat->role < ROLE_STANDING && !seat->go && !seat->quit)
        net_nap_ms(1);
    if (seat->role < ROLE_STANDING && !seat->quit)
        take(seat, client, mutex);
    while (!seat->quit) {
        look(seat, client, mutex);
        net_nap_ms(2);
    }
}

/* It ends without a word to the servers: its session is the test's to lose. */
int seat_main(struct seat *seat)
{
    struct zkl_mutex *mutex = NULL;
    pthread_t thread;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct blocker b = {seat, client_of(seat)};
    if (b.client == NULL || zkl_mutex_new(&mutex, b.client, seat->path, NULL) != 0 ||
        pthread_create(&thread, NULL, block_main, &b) != 0)
        _exit(3);
    run(seat, b.client, mutex);
    _exit(0);
}
