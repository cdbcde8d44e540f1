/* SPDX-License-Identifier: Apache-2.0 */
/* A critical section in a few lines: the processes of the whole cluster enter it one after the other.
 *
 *     cc critical_section.c $(pkg-config --cflags --libs zklock) && ./a.out HOST:PORT */
#include <zklock/zklock.h>

#include <stdio.h>
#include <stdlib.h>

static void write_report(uint64_t token)
{
    printf("in the critical section, with the token %llu\n", (unsigned long long)token);
}

static int report_alone(struct zkl_mutex *mutex)
{
    int rc = zkl_mutex_lock(mutex); /* waits for its turn */
    if (rc == 0) {
        if (zkl_mutex_still_held(mutex, 500)) /* proved for 500 ms more */
            write_report(zkl_mutex_token(mutex));
        rc = zkl_mutex_unlock(mutex);
    }
    return rc;
}

static int run(struct zkl_client *client)
{
    struct zkl_mutex *mutex;
    int rc = zkl_mutex_new(&mutex, client, "/zklock/examples/report", NULL);
    if (rc == 0) {
        rc = report_alone(mutex);
        if (rc)
            fprintf(stderr, "critical_section: %s\n", zkl_error_detail());
        zkl_mutex_free(mutex);
    }
    return rc;
}

int main(int argc, char **argv)
{
    char why[200] = "";
    struct zkl_client *client;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    options.connect_timeout_ms = 10000;
    options.errbuf = why;
    options.errbuf_size = sizeof why;
    if (!options.servers) {
        fprintf(stderr, "usage: critical_section HOST:PORT (or set ZKLOCK_SERVERS)\n");
        return 2;
    }
    if (zkl_client_open(&client, &options)) {
        fprintf(stderr, "critical_section: %s\n", why);
        return 1;
    }
    int rc = run(client);
    zkl_client_free(client);
    printf("%s\n", rc ? "not done" : "done");
    return rc ? 1 : 0;
}
