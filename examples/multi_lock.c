/* SPDX-License-Identifier: Apache-2.0 */
/* A multi-lock acquires several locks, all or none. Two tellers move money between two accounts, in
 * opposite directions. With one lock after the other they would soon wait for each other. */
#include <zklock/zklock.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ACCOUNTS = 2, TRANSFERS = 20 };

static struct zkl_client *client;
static struct zkl_mutex *accounts[ACCOUNTS];
static int balance[ACCOUNTS] = {100, 100};

static int failed(const char *what)
{
    fprintf(stderr, "multi_lock: %s: %s\n", what, zkl_error_detail());
    return 1;
}

static struct zkl_multi *both(int first) /* in whatever order */
{
    struct zkl_multi *multi;
    struct zkl_member members[] = {zkl_member_mutex(accounts[first]),
                                   zkl_member_mutex(accounts[1 - first])};
    return zkl_multi_new(&multi, client, members, ACCOUNTS) == 0 ? multi : NULL;
}

static void *teller(void *account)
{
    int from = account == &balance[1], rc = 0, codes[ACCOUNTS];
    int64_t closing_time = zkl_now_ns() + 30 * INT64_C(1000000000);
    struct zkl_multi *multi = both(from);
    for (int i = 0; rc == 0 && i < TRANSFERS; i++) {
        rc = zkl_multi_lock_until(multi, closing_time, NULL);
        if (rc == 0 && zkl_multi_still_held(multi, 100)) { /* time enough for both writes */
            balance[from]--;
            balance[1 - from]++;
        }
        rc = rc ? rc : zkl_multi_unlock(multi, codes); /* codes has each account's */
    }
    return rc || zkl_multi_free(multi) ? account : NULL; /* NULL: all went well */
}

static int audit(struct zkl_multi *multi)
{
    struct zkl_grant grants[ACCOUNTS] = {ZKL_GRANT_INIT, ZKL_GRANT_INIT};
    char node[100];
    if (zkl_multi_trylock(multi) && zkl_multi_lock(multi)) /* a try first, then a wait */
        return failed("no audit");
    printf("%d and %d, unchanged for %lld ms; token %llx\n", balance[0], balance[1],
           (long long)zkl_multi_window_ms(multi), (unsigned long long)zkl_multi_token(multi, 0));
    int rc = zkl_multi_lock_for(multi, 0) || zkl_multi_acquire(multi, NULL, grants); /* again */
    rc = zkl_multi_check(multi, 0) || zkl_multi_node_path(multi, 0, node, sizeof node) < 0 || rc;
    printf("held %d times by %s\n", zkl_mutex_hold_count(accounts[0]), node);
    for (int i = 0; i < 3; i++)
        rc = zkl_multi_unlock(multi, NULL) || rc;
    return rc || zkl_multi_free(multi) ? failed("not all released") : 0;
}

int main(int argc, char **argv)
{
    pthread_t other;
    void *wrong = NULL;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    options.connect_timeout_ms = 10000;
    if (zkl_client_open(&client, &options) ||
        zkl_mutex_new(&accounts[0], client, "/zklock/examples/accounts/a", NULL) ||
        zkl_mutex_new(&accounts[1], client, "/zklock/examples/accounts/b", NULL))
        return failed("no locks at HOST:PORT, or ZKLOCK_SERVERS");
    pthread_create(&other, NULL, teller, &balance[1]);
    int rc = teller(&balance[0]) != NULL;
    pthread_join(other, &wrong);
    rc = wrong || rc || audit(both(0));
    rc = zkl_mutex_free(accounts[0]) || zkl_mutex_free(accounts[1]) || rc;
    return zkl_client_free(client) || rc;
}
