/* SPDX-License-Identifier: Apache-2.0
 * A semaphore: a license with three seats. Then a mutex that another thread may unlock. */
#include <zklock/zklock.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEATS = 3 };

static int failed(const char *what)
{
    fprintf(stderr, "semaphore: %s: %s\n", what, zkl_error_detail());
    return 1;
}

static void on_state(const struct zkl_hold_event *e, void *arg) /* on a thread of the library */
{
    fprintf(stderr, "%s: %s: %d\n", (const char *)arg, e->node_path, (int)e->state);
}

static void show(struct zkl_permit *seat)
{
    char node[600];
    if (zkl_permit_still_held(seat, 100) && zkl_permit_node_path(seat, node, sizeof node) > 0)
        printf("a seat for %lld ms at least, with token %llx%s: %s\n",
               (long long)zkl_permit_window_ms(seat), (unsigned long long)zkl_permit_token(seat),
               zkl_permit_revoke_requested(seat) ? " (another client asks for it)" : "", node);
}

static int take_seats(struct zkl_semaphore *seats)
{
    struct zkl_permit *mine[4];
    struct zkl_wait wait = ZKL_WAIT_INIT;
    if (zkl_semaphore_set_callback(seats, on_state, (void *)"semaphore") ||
        zkl_semaphore_acquire(seats, 2, &wait, mine))
        return failed("no two seats");
    show(mine[0]);
    wait.flags = ZKL_WAIT_TRY;
    int rc = zkl_semaphore_acquire(seats, 2, &wait, mine + 2);
    printf("two more of %d: %s\n", zkl_semaphore_permits(seats), zkl_error_name(rc));
    if (zkl_semaphore_set_permits(seats, SEATS + 1, NULL) || /* one was bought */
        zkl_semaphore_acquire(seats, 2, &wait, mine + 2) || zkl_permit_renew(mine[0], 60000) ||
        zkl_permit_check(mine[0], 0)) /* as zkl_permit_still_held, with the reason */
        return failed("no fourth seat, or no lease");
    for (int i = rc = 0; i < 4; i++)
        rc = zkl_permit_release(mine[i]) || rc;
    return zkl_semaphore_set_permits(seats, SEATS, NULL) || rc ? failed("release") : 0;
}

static void *unlocker(void *mutex)
{
    return zkl_mutex_unlock((struct zkl_mutex *)mutex) ? mutex : NULL; /* of another thread */
}

static int hand_over(struct zkl_mutex *mutex)
{
    pthread_t thread;
    void *wrong = mutex;
    if (zkl_mutex_lock(mutex) == 0 && pthread_create(&thread, NULL, unlocker, mutex) == 0)
        pthread_join(thread, &wrong);
    printf("locked by one thread, unlocked by %s\n", wrong ? "no thread" : "another");
    return wrong || zkl_mutex_free(mutex);
}

int main(int argc, char **argv)
{
    struct zkl_client *client;
    struct zkl_semaphore *seats;
    struct zkl_mutex *mutex;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    options.connect_timeout_ms = 10000;
    if (zkl_client_open(&client, &options) ||
        zkl_semaphore_new(&seats, client, "/zklock/examples/seats", SEATS, NULL) ||
        zkl_semaphore_mutex_new(&mutex, client, "/zklock/examples/handed", NULL))
        return failed("no seats at HOST:PORT, or ZKLOCK_SERVERS");
    return take_seats(seats) || hand_over(mutex) || zkl_semaphore_free(seats) ||
           zkl_client_free(client);
}
