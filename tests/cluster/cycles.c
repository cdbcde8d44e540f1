/* SPDX-License-Identifier: Apache-2.0 */
/* One thread locks and unlocks one mutex as often as its argument says, without contention.
 * instructions.py counts the instructions of this program with callgrind. */
#include <stdio.h>
#include <stdlib.h>

#include <zklock/zklock.h>

static int failed(const char *what)
{
    fprintf(stderr, "cycles: %s: %s\n", what, zkl_error_detail());
    return 1;
}

int main(int argc, char **argv)
{
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_mutex_options lock_options = ZKL_MUTEX_OPTIONS_INIT;
    int cycles = argc > 1 ? atoi(argv[1]) : 1;

    options.servers = getenv("ZKLOCK_SERVERS");
    options.session_timeout_ms = 60000;
    options.connect_timeout_ms = 60000;
    if (zkl_client_open(&client, &options) != 0)
        return failed("no client");
    if (zkl_mutex_new(&mutex, client, "/cycles", &lock_options) != 0)
        return failed("no mutex");
    for (int i = 0; i < cycles; i++) {
        if (zkl_mutex_lock(mutex) != 0 || zkl_mutex_unlock(mutex) != 0)
            return failed("a cycle");
    }
    if (zkl_mutex_free(mutex) != 0 || zkl_client_free(client) != 0)
        return failed("not freed");
    return 0;
}
