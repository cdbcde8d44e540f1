/* SPDX-License-Identifier: Apache-2.0 */
/* A read-write lock: readers share it, and a writer has it alone. A writer can go on as a reader of
 * what it wrote, and no other writer comes in between. */
#include <zklock/zklock.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { READERS = 3 };

static pthread_barrier_t all_inside;
static struct zkl_rwlock *prices;

static int failed(const char *what)
{
    fprintf(stderr, "rwlock: %s: %s\n", what, zkl_error_detail());
    return 1;
}

static void *reader(void *unused)
{
    struct zkl_mutex *read = zkl_rwlock_reader(prices);
    if (zkl_mutex_lock(read)) {
        failed("no read lock");
        exit(1); /* the others wait at the barrier */
    }
    pthread_barrier_wait(&all_inside); /* passed only when all of them hold the lock */
    return zkl_mutex_unlock(read) ? &all_inside : unused;
}

static int read_together(void)
{
    pthread_t threads[READERS];
    void *wrong = NULL, *one;
    pthread_barrier_init(&all_inside, NULL, READERS);
    for (int i = 0; i < READERS; i++)
        pthread_create(&threads[i], NULL, reader, NULL);
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], &one);
        wrong = one ? one : wrong;
    }
    pthread_barrier_destroy(&all_inside);
    printf("%d readers were inside together\n", READERS);
    return wrong ? failed("a read lock was not released") : 0;
}

static int write_then_read(void)
{
    struct zkl_mutex *read = zkl_rwlock_reader(prices), *write = zkl_rwlock_writer(prices);
    if (zkl_mutex_lock(write))
        return failed("no write lock");
    printf("a writer is inside, alone\n");
    if (zkl_mutex_lock(read) || zkl_mutex_unlock(write)) /* a reader can't become a writer */
        return failed("no downgrade");
    printf("it goes on as a reader, with the same token: %llx\n",
           (unsigned long long)zkl_mutex_token(read));
    return zkl_mutex_lock(write) != ZKL_EDEADLK || zkl_mutex_unlock(read) ? failed("upgrade") : 0;
}

int main(int argc, char **argv)
{
    struct zkl_client *client;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    options.connect_timeout_ms = 10000;
    if (zkl_client_open(&client, &options) ||
        zkl_rwlock_new(&prices, client, "/zklock/examples/prices", NULL))
        return failed("no lock at HOST:PORT, or ZKLOCK_SERVERS");
    if (zkl_rwlock_retain_readers(prices, 10000)) /* the next readers need no request */
        return failed("no readers' node");
    int rc = read_together() || write_then_read();
    zkl_rwlock_free(prices);
    zkl_client_free(client);
    return rc;
}
