/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks: what is called when, and what may be called from within one. */
#include "cluster.h"

#include "notes.h"
#include "proxy.h"

#include <semaphore.h>
#include <string.h>

static struct zkl_client *client_through(struct proxy *proxy)
{
    struct zkl_client_options options = cluster_options();

    options.servers = cluster_servers(proxy_address(proxy));
    return cluster_client_with(&options);
}

static struct proxy *new_proxy(void)
{
    struct proxy *proxy = NULL;

    check_ok(proxy_start(&proxy, zks_host(), zks_port(server, 0)));
    return proxy;
}

static int64_t window_end(struct zkl_mutex *mutex)
{
    return net_now_ms() + zkl_mutex_window_ms(mutex);
}

/* Goal: after zkl_mutex_free has returned 0 within the mutex's callback, that callback is not
 * called again, not even for what was queued before. Method: the first call is held up until two
 * more states are queued, the second call frees. */
static void nothing_is_called_after_a_free_within_the_callback(void **state)
{
    struct notes notes = NOTES_INIT;
    struct proxy *proxy = new_proxy();
    struct zkl_client *client = client_through(proxy);
    struct zkl_mutex *mutex = cluster_mutex(client, cluster_path("free-within"));
    sem_t gate;

    (void)state;
    sem_init(&gate, 0, 0);
    notes.gate = &gate;
    notes.free_at = 2;
    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    check_ok(zkl_mutex_lock(mutex));
    int64_t end = window_end(mutex);
    net_nap_ms(20); /* so that a new proof shows in milliseconds */
    proxy_cut(proxy);
    check_wait(noted(&notes) == 1, WAIT_MS); /* SUSPECT; HELD is queued behind it */
    check_wait(window_end(mutex) > end + 10, WAIT_MS);
    proxy_cut(proxy);
    check_wait(zkl_client_state(client) != ZKL_CLIENT_CONNECTED, WAIT_MS); /* SUSPECT again */
    zkl_mutex_unlock(mutex);
    for (int i = 0; i < 8; i++)
        sem_post(&gate);
    check_wait(noted(&notes) >= 2 && running(&notes) == 0, WAIT_MS);
    check_ok(zkl_client_free(client)); /* after it no callback runs */
    check_ok(notes.freed);
    check_num(noted(&notes), ==, 2);
    proxy_stop(proxy);
    sem_destroy(&gate);
}

struct other {
    struct zkl_mutex *mutex;
    struct notes *notes;
    size_t running_after;
    int rc;
    sem_t done;
};

static void free_the_other(const struct zkl_hold_event *event, void *arg)
{
    struct other *other = arg;

    (void)event;
    other->rc = zkl_mutex_free(other->mutex);
    other->running_after = running(other->notes);
    sem_post(&other->done);
}

static void delete_node_of(struct zkl_mutex *mutex)
{
    char node[256];

    check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
    check_ok(wire_delete(raw, cluster_at(node), -1));
}

/* Goal: zkl_mutex_free in the callback of another client does not wait for a running callback of
 * the mutex, as two that did so crosswise would wait for ever: it says so at once, and nothing is
 * freed. Method: the mutex's callback is held up until the other client's callback is done. */
static void free_from_another_clients_callback_is_refused(void **state)
{
    struct notes notes = NOTES_INIT;
    struct zkl_client *first = cluster_client(), *second = cluster_client();
    struct zkl_mutex *mutex = cluster_mutex(first, cluster_path("free-a"));
    struct zkl_mutex *trigger = cluster_mutex(second, cluster_path("free-b"));
    struct other other = {.mutex = mutex, .notes = &notes, .rc = 1};
    sem_t gate;

    (void)state;
    sem_init(&gate, 0, 0);
    sem_init(&other.done, 0, 0);
    notes.gate = &gate;
    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    check_ok(zkl_mutex_set_callback(trigger, free_the_other, &other));
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_lock(trigger));
    delete_node_of(mutex);
    check_wait(running(&notes) == 1, WAIT_MS);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    delete_node_of(trigger);
    check_wait(sem_trywait(&other.done) == 0, WAIT_MS);
    check_num(other.rc, ==, ZKL_EINCALLBACK);
    check_num(other.running_after, ==, 1);
    sem_post(&gate);
    check_num(zkl_mutex_unlock(trigger), ==, ZKL_ELOST);
    cluster_free(second, trigger);
    cluster_free(first, mutex);
    check_num(running(&notes), ==, 0);
}

static const struct CMUnitTest tests[] = {
    cluster_test(nothing_is_called_after_a_free_within_the_callback),
    cluster_test(free_from_another_clients_callback_is_refused),
};

int main(int argc, char **argv)
{
    return CLUSTER_MAIN(argc, argv, "callback", tests);
}
