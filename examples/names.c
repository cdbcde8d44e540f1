/* SPDX-License-Identifier: Apache-2.0 */
/* The names of nodes in ZooKeeper decide which contenders exclude each other. The default names are
 * Curator's. With Kazoo's names this program and Python programs exclude each other. With names of
 * their own several locks live side by side under one path. */
#include <zklock/zklock.h>

#include <stdio.h>
#include <stdlib.h>

static int failed(const char *what)
{
    fprintf(stderr, "names: %s: %s\n", what, zkl_error_detail());
    return 1;
}

static struct zkl_mutex *new_mutex(struct zkl_client *client, const char *path,
                                   enum zkl_names names, const char *name)
{
    struct zkl_mutex *mutex = NULL;
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    options.names = names;
    options.name = name;
    options.owner = "examples/names"; /* what listings show */
    return zkl_mutex_new(&mutex, client, path, &options) == 0 ? mutex : NULL;
}

static int lock_and_show(struct zkl_mutex *mutex)
{
    char node[600];
    if (!mutex || zkl_mutex_lock_for(mutex, 10000) ||
        zkl_mutex_node_path(mutex, node, sizeof node) < 0)
        return failed("not locked");
    printf("held: %s\n", node);
    return 0;
}

static int unlock(struct zkl_mutex *mutex)
{
    return zkl_mutex_unlock(mutex) || zkl_mutex_free(mutex) ? failed("not released") : 0;
}

/* Kazoo's Lock(client, PATH) is excluded, and so are Curator's and ours with the default names. */
static int like_kazoo(struct zkl_client *client)
{
    struct zkl_mutex *mutex = new_mutex(client, "/zklock/examples/python", ZKL_NAMES_KAZOO, NULL);
    return lock_and_show(mutex) || unlock(mutex);
}

/* Two locks under one path that do not exclude each other: one thread holds both. */
static int side_by_side(struct zkl_client *client)
{
    static const char path[] = "/zklock/examples/named";
    struct zkl_mutex *red = new_mutex(client, path, ZKL_NAMES_NAMED, "red");
    struct zkl_mutex *blue = new_mutex(client, path, ZKL_NAMES_NAMED, "blue");
    return lock_and_show(red) || lock_and_show(blue) || unlock(blue) || unlock(red);
}

int main(int argc, char **argv)
{
    struct zkl_client *client;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    options.connect_timeout_ms = 10000;
    printf("zklock %s\n", zkl_version(NULL));
    if (zkl_client_open(&client, &options))
        return failed("no client at HOST:PORT, or ZKLOCK_SERVERS");
    int rc = like_kazoo(client) || side_by_side(client);
    zkl_client_free(client);
    return rc;
}
