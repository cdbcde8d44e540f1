/* SPDX-License-Identifier: Apache-2.0 */
/* A lease is a hold that ends by itself, unless its thread renews it in time. So a thread that
 * hangs in a living process does not keep the lock for ever. */
#include <zklock/zklock.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LEASE_MS = 1000, STEP_MS = 100, STEPS = 15 };

static void step(void)
{
    struct timespec time = {0, STEP_MS * 1000000L};
    nanosleep(&time, NULL);
}

static int failed(const char *what)
{
    fprintf(stderr, "lease: %s: %s\n", what, zkl_error_detail());
    return 1;
}

/* Works for longer than one lease, step by step. Each step begins with a proof that it can be
 * finished. */
static int work(struct zkl_mutex *mutex)
{
    for (int i = 0; i < STEPS; i++) {
        if (zkl_mutex_renew(mutex, LEASE_MS))
            return failed("not renewed");
        if (zkl_mutex_check(mutex, 2 * STEP_MS)) /* as zkl_mutex_still_held, with the reason */
            return failed("no time for another step");
        step();
    }
    printf("worked for %d ms under a lease of %d ms\n", STEPS * STEP_MS, LEASE_MS);
    return 0;
}

/* Without renewal the hold ends, whether its thread looks or not. */
static int hang(struct zkl_mutex *mutex)
{
    while (zkl_mutex_window_ms(mutex) > 0)
        step();
    int rc = zkl_mutex_renew(mutex, LEASE_MS);
    printf("a while later: %s\n", zkl_strerror(rc));
    return zkl_error_is_lost(rc) ? 0 : failed("it did not end");
}

static int hold(struct zkl_mutex *mutex)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_grant grant = ZKL_GRANT_INIT;
    wait.lease_ms = LEASE_MS;
    if (zkl_mutex_acquire(mutex, &wait, &grant))
        return failed("not locked");
    printf("locked with token %llx, for the next %lld ms\n", (unsigned long long)grant.token,
           (long long)grant.window_ms);
    int rc = work(mutex) || hang(mutex);
    return zkl_mutex_unlock(mutex) == ZKL_ELOST ? rc : 1; /* a lost hold needs its unlock, too */
}

int main(int argc, char **argv)
{
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    options.connect_timeout_ms = 10000;
    if (zkl_client_open(&client, &options) ||
        zkl_mutex_new(&mutex, client, "/zklock/examples/lease", NULL))
        return failed("no lock at HOST:PORT, or ZKLOCK_SERVERS");
    int rc = hold(mutex);
    zkl_mutex_free(mutex);
    zkl_client_free(client);
    return rc;
}
