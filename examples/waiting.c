/* SPDX-License-Identifier: Apache-2.0 */
/* Text for a status page: server and session, the state of locks, and the place of each waiter. It
 * sends no request. */
#include <zklock/async.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static struct zkl_client *client;
static struct zkl_mutex *mutex;
static struct zkl_semaphore *seats;
static struct zkl_multi *both;

static void show(const char *who, const struct zkl_standing *s)
{
    printf("%s has waited for %.3f s, with %d before it, the nearest \"%s\"\n", who,
           (double)(zkl_now_ns() - s->since_ns) / 1e9, (int)s->before, s->owner);
}

static void done(int code, void *count) /* on a thread of the library */
{
    (void)code; /* ECANCELED */
    __atomic_fetch_add((int *)count, 1, __ATOMIC_SEQ_CST);
}

static int show_waits(void) /* while this thread holds the lock */
{
    struct zkl_standing standing = ZKL_STANDING_INIT;
    struct zkl_owner *owners[2];
    uint64_t ops[2];
    int ended = 0;
    for (int i = 0; i < 2; i++) {
        if (zkl_owner_new(&owners[i]) ||
            zkl_mutex_acquire_async(owners[i], mutex, NULL, NULL, done, &ended, &ops[i]))
            return 1;
        while (zkl_op_waiting(client, ops[i], &standing) && standing.before < (uint64_t)i + 1)
            sched_yield(); /* until its place is known */
    }
    show("the second operation", &standing);
    printf("%d wait for the mutex, ", zkl_mutex_waiting(mutex, &standing));
    printf("%d for a seat\n", zkl_semaphore_waiting(seats, NULL));
    show("the first one", &standing);
    int rc = zkl_op_cancel(client, ops[0]) || zkl_op_cancel(client, ops[1]);
    while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) < 2)
        sched_yield();
    return zkl_owner_free(owners[0]) || zkl_owner_free(owners[1]) || rc;
}

static int show_holds(struct zkl_permit *seat)
{
    enum zkl_reason reason;
    char server[100];
    if (zkl_client_server(client, server, sizeof server) < 0 || zkl_multi_lock(both))
        return 1;
    printf("session 0x%llx at %s\n", (long long)zkl_client_session_id(client), server);
    if (zkl_mutex_hold_state(mutex, &reason) != ZKL_HOLD_HELD)
        printf("not sure any more, reason %d\n", (int)reason);
    printf("both are in state %d, a seat of its own in %d\n", zkl_multi_hold_state(both, NULL),
           zkl_permit_hold_state(seat, NULL));
    return zkl_permit_release(seat) || show_waits() || zkl_multi_unlock(both, NULL);
}

int main(int argc, char **argv)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_permit *seat;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    options.connect_timeout_ms = 10000;
    if (zkl_client_open(&client, &options) ||
        zkl_mutex_new(&mutex, client, "/zklock/examples/waiting/mutex", NULL) ||
        zkl_semaphore_new(&seats, client, "/zklock/examples/waiting/seats", 3, NULL))
        return fprintf(stderr, "HOST:PORT, or ZKLOCK_SERVERS: %s\n", zkl_error_detail()) > 0;
    struct zkl_member members[] = {zkl_member_mutex(mutex), zkl_member_semaphore(seats, 2)};
    return zkl_multi_new(&both, client, members, 2) ||
           zkl_semaphore_acquire(seats, 1, NULL, &seat) || show_holds(seat) ||
           zkl_multi_free(both) || zkl_semaphore_free(seats) || zkl_mutex_free(mutex) ||
           zkl_client_free(client);
}
