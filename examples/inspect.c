/* SPDX-License-Identifier: Apache-2.0 */
/* Shows who holds a lock and who waits for it. Then, as the last resort, takes the lock away from a
 * holder that lives and does not release it. */
#include <zklock/inspect.h>
#include <zklock/zklock.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAIT_MS = 10000 };

static const char path[] = "/zklock/examples/inspect";

static int failed(const char *what)
{
    fprintf(stderr, "inspect: %s: %s\n", what, zkl_error_detail());
    return 1;
}

static void *waiter(void *arg)
{
    struct zkl_mutex *mutex = (struct zkl_mutex *)arg;
    return zkl_mutex_lock_for(mutex, WAIT_MS) || zkl_mutex_unlock(mutex) ? arg : NULL;
}

static void show(const struct zkl_inspection *seen)
{
    static const char *const roles[] = {"", "holds", "waits", "else"};
    for (size_t i = 0; i < seen->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(seen, i);
        printf("%s, since %lld ms: %s (%s)\n", roles[e->role], (long long)e->age_ms, e->owner,
               e->node_path);
        if (e->waits_for != ZKL_NO_ENTRY)
            printf("    for %s\n", zkl_inspection_entry(seen, e->waits_for)->node_path);
    }
}

/* Looks until that many contenders are there, then breaks the first one, the holder. */
static int break_first(struct zkl_client *client, size_t count)
{
    const struct zkl_inspection *seen = NULL;
    do {
        zkl_inspection_free(seen);
        if (zkl_inspect(client, path, WAIT_MS, &seen))
            return failed("not seen");
    } while (seen->count < count);
    show(seen);
    const struct zkl_entry *first = zkl_inspection_entry(seen, 0);
    int rc = zkl_break(client, first->node_path, first->czxid, 0, WAIT_MS);
    zkl_inspection_free(seen);
    return rc ? failed("not broken") : 0;
}

static int run(struct zkl_client *client, struct zkl_mutex *mutex)
{
    pthread_t thread;
    void *wrong;
    if (zkl_mutex_lock(mutex) || pthread_create(&thread, NULL, waiter, mutex))
        return failed("not locked");
    int rc = break_first(client, 2);
    pthread_join(thread, &wrong);
    printf("the waiter %s it\n", wrong ? "did not get" : "got");
    /* The former holder learns of it, but may have written meanwhile. Tokens protect from that. */
    return zkl_mutex_unlock(mutex) != ZKL_ELOST || wrong || rc ? failed("not lost") : 0;
}

int main(int argc, char **argv)
{
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    options.connect_timeout_ms = 10000;
    if (zkl_client_open(&client, &options) || zkl_mutex_new(&mutex, client, path, NULL))
        return failed("no lock at HOST:PORT, or ZKLOCK_SERVERS");
    return run(client, mutex) || zkl_mutex_free(mutex) || zkl_client_free(client);
}
