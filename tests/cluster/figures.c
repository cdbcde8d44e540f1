/* SPDX-License-Identifier: Apache-2.0 */
/* Some locks of known numbers, then the figures as text, cut short first: what prometheus.py reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/metrics.h>

#define LOCKS 7

static int failed(const char *what)
{
    fprintf(stderr, "figures: %s: %s\n", what, zkl_error_detail());
    return 1;
}

static int use(struct zkl_client *client, const char *path, struct zkl_mutex **mutex)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.metrics = 1;
    if (zkl_mutex_new(mutex, client, path, &options) != 0)
        return failed("no mutex");
    for (int i = 0; i < LOCKS; i++) {
        if (zkl_mutex_lock(*mutex) != 0 || zkl_mutex_unlock(*mutex) != 0)
            return failed("no lock");
    }
    return zkl_mutex_lock_for(*mutex, 0) == ZKL_ETIMEDOUT ? 0 : failed("no timeout");
}

static int print(struct zkl_client *client)
{
    char cut[100];
    int length = zkl_metrics_prometheus(client, cut, sizeof cut);
    size_t size = (size_t)length + 1;
    char *text = length > 0 ? malloc(size) : NULL;

    if (!text || strlen(cut) != sizeof cut - 1)
        return failed("no text");
    int again = zkl_metrics_prometheus(client, text, size);
    int rc = again == length && strncmp(text, cut, strlen(cut)) == 0 ? 0 : 1;
    fputs(text, stdout);
    free(text);
    return rc == 0 ? 0 : failed("two texts differ");
}

int main(void)
{
    static const char *const paths[] = {"/figures/plain", "/figures/\"quoted\" \\ {b\xc3\xa4r},"};
    struct zkl_client *client;
    struct zkl_mutex *mutexes[2];
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = getenv("ZKLOCK_SERVERS");
    options.connect_timeout_ms = 20000;
    if (zkl_client_open(&client, &options) != 0)
        return failed("no client");
    for (int i = 0; i < 2; i++) {
        if (use(client, paths[i], &mutexes[i]) != 0)
            return 1;
    }
    int rc = print(client);
    for (int i = 0; i < 2; i++)
        rc |= zkl_mutex_free(mutexes[i]);
    return zkl_client_free(client) | rc;
}
