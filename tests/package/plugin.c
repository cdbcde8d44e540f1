/* Somebody's plugin, with libzklock.a in it. Nobody listens where it connects to. */
#include <stddef.h>

#include <zklock/zklock.h>

static struct zkl_client *client;
static struct zkl_mutex *mutex;

int plugin_begin(void);
int plugin_end(void);

/* The calling thread has asked for a lock, and the client's threads run. */
int plugin_begin(void)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = "127.0.0.1:1";
    if (zkl_client_open(&client, &options) != 0 ||
        zkl_mutex_new(&mutex, client, "/plugin", NULL) != 0)
        return 1;
    return zkl_mutex_lock_for(mutex, 50) != ZKL_ETIMEDOUT;
}

int plugin_end(void)
{
    return zkl_mutex_free(mutex) != 0 || zkl_client_free(client) != 0;
}
