/* SPDX-License-Identifier: Apache-2.0 */
/* A fenced write protects the data when a holder does not know yet that it has lost the lock. The
 * resource keeps the newest token that it has seen and refuses older ones. */
#include <zklock/zklock.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* The resource must compare and store in one step: here under a mutex, in a database by one UPDATE
 * with a WHERE. Readers must show tokens, too. Otherwise an old holder could write between a new
 * holder's read and its write. */
static struct {
    pthread_mutex_t mutex;
    uint64_t token;
    const char *value;
} resource = {PTHREAD_MUTEX_INITIALIZER, 0, NULL};

static int resource_write(uint64_t token, const char *value)
{
    pthread_mutex_lock(&resource.mutex);
    int stale = token < resource.token;
    if (!stale) {
        resource.token = token;
        resource.value = value;
    }
    pthread_mutex_unlock(&resource.mutex);
    printf("write of \"%s\" with token %llu: %s\n", value, (unsigned long long)token,
           stale ? "refused, a newer token was here" : "accepted");
    return stale ? -1 : 0;
}

/* A client of its own acquires the lock, ends, and returns the token. 0: it failed. */
static uint64_t hold_once(const char *servers, const char *value)
{
    uint64_t token = 0;
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = servers;
    if (zkl_client_open(&client, &options))
        return 0;
    if (zkl_mutex_new(&mutex, client, "/zklock/examples/fenced", NULL) == 0) {
        if (zkl_mutex_lock_for(mutex, 10000) == 0)
            token = zkl_mutex_token(mutex);
        if (token && value && resource_write(token, value))
            token = 0;
    }
    /* The end of the session releases the lock, whatever its holder may still believe. */
    zkl_client_close(client, 10000);
    zkl_mutex_free(mutex);
    zkl_client_free(client);
    return token;
}

int main(int argc, char **argv)
{
    const char *servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    if (!servers) {
        fprintf(stderr, "usage: fenced_write HOST:PORT (or set ZKLOCK_SERVERS)\n");
        return 2;
    }
    printf("the first holder acquires the lock, is paused, and its session ends\n");
    uint64_t first = hold_once(servers, NULL);
    uint64_t second = first ? hold_once(servers, "second") : 0;
    if (!second) {
        fprintf(stderr, "fenced_write: the lock was not acquired: %s\n", zkl_error_detail());
        return 1;
    }
    printf("the first holder wakes up\n");
    int refused = resource_write(first, "first");
    printf("the resource has \"%s\"\n", resource.value);
    return refused && second > first ? 0 : 1;
}
