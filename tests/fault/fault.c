/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include <dirent.h>

#include "on_servers.h"
#include "session_of.h"
#include "under_way.h"

struct zks *server;

static const struct zks_options *server_options;

/* --- main ------------------------------------------------------------------------------------- */

struct zks_options fault_options(void)
{
    return (struct zks_options){.container_check_ms = 300, .max_session_ms = WIRE_LASTING_MS};
}

static int start_server(void **state)
{
    char err[512] = "";
    struct zks_options options = server_options ? *server_options : fault_options();

    (void)state;
    if (zks_start(&server, &options, err, sizeof err) == 0)
        return 0;
    fprintf(stderr, "%s\n", err);
    return -1;
}

static int stop_server(void **state)
{
    (void)state;
    zks_stop(server);
    server = NULL;
    return 0;
}

int fault_main(int argc, char **argv, const struct zks_options *options)
{
    server_options = options;
    return run_on_servers(argc, argv, start_server, stop_server);
}

/* --- faults that only libzookeeper can fix ---------------------------------------------------- */

const char *__tsan_default_suppressions(void);

/* The I/O threads of two handles write the address that they connect to into one static buffer, for
 * a log line. The library itself never calls sprintf. */
const char *__tsan_default_suppressions(void)
{
    return "race_top:vsprintf\n";
}

/* --- clients ---------------------------------------------------------------------------------- */

static void show(const struct zkl_log_event *event, void *arg)
{
    (void)arg;
    fprintf(stderr, "        %s\n", event->message);
}

struct zkl_client_options fault_client_options(const char *servers, int session_ms)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = servers;
    options.session_timeout_ms = session_ms;
    options.connect_timeout_ms = WAIT_MS;
    options.log_level = ZKL_LOG_DEBUG;
    if (getenv("ZKL_FAULT_TRACE") != NULL)
        options.log_fn = show;
    return options;
}

struct zkl_client *fault_open(const char *servers, int session_ms)
{
    struct zkl_client_options options = fault_client_options(servers, session_ms);
    struct zkl_client *client = NULL;

    check_ok(zkl_client_open(&client, &options));
    return client;
}

struct zkl_client *world_open(const char *servers, int session_ms)
{
    struct zkl_client_options options = fault_client_options(servers, session_ms);

    return world_client_with(&options);
}

struct zkl_client *world_direct(int session_ms)
{
    return world_open(zks_connect_string(server), session_ms);
}

struct zkl_client *world_through(struct proxy *proxy, int session_ms)
{
    return world_open(proxy_address(proxy), session_ms);
}

struct zkl_mutex *fault_mutex(struct zkl_client *client, const char *path)
{
    struct zkl_mutex *mutex = NULL;

    check_ok(zkl_mutex_new(&mutex, client, path, NULL));
    return mutex;
}

int64_t fault_session(struct zkl_client *client)
{
    return locked(client->driver, client->driver->core.session.id);
}

void fault_alone_from(struct zkl_client *client, unsigned row)
{
    zkl_driver_lock(client->driver);
    client->driver->core.unlisted_from = row;
    zkl_driver_unlock(client->driver);
}

bool fault_connected(struct zkl_client *client)
{
    return zkl_client_get_state(client) == ZKL_CLIENT_CONNECTED;
}

bool fault_is_at(struct zkl_client *client, const char *address)
{
    char at[100];

    return zkl_client_server(client, at, sizeof at) > 0 && strcmp(at, address) == 0;
}

bool fault_proved(struct zkl_client *client)
{
    return locked(client->driver,
                  zkl_clock_boot_ns() < zkl_session_window_end(&client->driver->core.session));
}

void fault_expire(struct zkl_client *client, size_t node)
{
    clientid_t id = {0};

    check_wait(session_of(client->driver, &id), WAIT_MS);
    check_ok(
        wire_expire_session(zks_host(), zks_port(server, node), id.client_id, id.passwd, WAIT_MS));
}

void fault_renew_session(struct zkl_client *client)
{
    int64_t session = fault_session(client);

    fault_expire(client, 0);
    check_wait(fault_connected(client) && fault_session(client) != session, WAIT_MS);
}

struct zkl_client_metrics fault_metrics(struct zkl_client *client)
{
    struct zkl_client_metrics metrics = ZKL_CLIENT_METRICS_INIT;

    check_ok(zkl_client_get_metrics(client, &metrics));
    return metrics;
}

int64_t fault_links(struct zkl_client *client)
{
    return (int64_t)fault_metrics(client).connections;
}

void fault_check_reconnect(struct zkl_client *client, int64_t links)
{
    check_wait(fault_links(client) > links, WAIT_MS);
    check_wait(fault_connected(client), WAIT_MS);
}

void fault_bounce(struct zkl_client *client, struct proxy *proxy)
{
    int64_t links = fault_links(client);

    proxy_cut(proxy);
    fault_check_reconnect(client, links);
}

void fault_lose_link(struct zkl_client *client, struct proxy *proxy)
{
    lose_link(proxy);
    check_wait(!fault_connected(client), WAIT_MS);
}

size_t fault_calls(struct zkl_client *client)
{
    return locked(client->driver, calls_of(client->driver));
}

size_t fault_contenders(struct zkl_client *client)
{
    return locked(client->driver, contenders_of(&client->driver->core));
}

size_t fault_watches(struct zkl_client *client)
{
    return locked(client->driver, watches_of(&client->driver->core));
}

int fault_server_watches(struct zkl_client *client)
{
    return flw_session_watches(zks_host(), zks_port(server, 0), fault_session(client));
}

struct wire *fault_wire(void)
{
    struct wire *wire = NULL;

    check_ok(wire_open(&wire, zks_host(), zks_port(server, 0), WIRE_LASTING_MS));
    return wire;
}

int fault_children(struct wire *wire, const char *path)
{
    int n = wire_count(wire, path);
    return n == WIRE_NONODE ? 0 : n;
}

void fault_only_child(struct wire *wire, const char *path, char *node, size_t size,
                      struct wire_stat *stat)
{
    struct wire_names names;

    check_ok(wire_sync(wire, path));
    check_ok(wire_children(wire, path, &names));
    check_num(names.n, ==, 1);
    snprintf(node, size, "%s/%s", path, names.name[0]);
    wire_names_free(&names);
    check_ok(stat ? wire_exists(wire, node, stat) : 0);
}

void fault_check_only(struct zkl_client *client, struct zkl_mutex *mutex, struct wire *wire,
                      const char *path)
{
    struct wire_stat stat;
    char node[700];

    check_num(fault_children(wire, path), ==, 1);
    check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
    check_ok(wire_exists(wire, node, &stat));
    check_num(stat.ephemeral_owner, ==, fault_session(client));
    check_num(stat.czxid, ==, zkl_mutex_token(mutex));
    /* On a slow machine its window may be over until the next proof. */
    check_true(zkl_mutex_still_held(mutex, 0) == 1 ||
               (lag_is_slow() && wait_until(zkl_mutex_still_held(mutex, 0) == 1, WAIT_MS)));
}

void fault_check_rest(struct zkl_client *client, struct wire *wire, const char *path, int ms)
{
    int64_t end_ms = net_now_ms() + ms;

    if (!wait_until(fault_children(wire, path) == 0, ms) &&
        !(lag_is_slow() && wait_until(fault_children(wire, path) == 0, SLOW_WAIT_MS)))
        fail_msg("%d nodes are left below %s after %d ms", fault_children(wire, path), path, ms);
    int left = end_ms > net_now_ms() ? (int)(end_ms - net_now_ms()) + 1000 : 1000;
    check_wait(fault_contenders(client) == 0, left);
    check_wait(fault_watches(client) == 0, left);
    check_wait(fault_calls(client) == 0, left);
}

void fault_check_window_ends(struct zkl_mutex *mutex, int64_t end_ms)
{
    for (;;) {
        int64_t before_ms = net_now_ms(), left_ms = zkl_mutex_window_ms(mutex);
        if (left_ms == 0)
            return;
        check_num(before_ms + left_ms, <=, end_ms);
        net_nap_ms(1);
    }
}

/* --- threads ---------------------------------------------------------------------------------- */

struct act {
    act_fn fn;
    struct zkl_mutex *mutex;
    void *arg;
};

static int run_act(void *act)
{
    const struct act *its = act;
    return its->fn(its->mutex, its->arg);
}

void act_begin(struct actor *a, act_fn fn, struct zkl_mutex *mutex, void *arg)
{
    struct act *its = actor_own(a);

    check_true(actor_is_done(a));
    *its = (struct act){fn, mutex, arg};
    actor_begin(a, run_act, its);
}

bool act_busy(struct actor *a)
{
    return !actor_is_done(a);
}

int act_end(struct actor *a, int ms)
{
    check_wait(actor_is_done(a), ms);
    return actor_result(a);
}

int act_do(struct actor *a, act_fn fn, struct zkl_mutex *mutex, void *arg)
{
    act_begin(a, fn, mutex, arg);
    return act_end(a, WAIT_MS);
}

void actor_passes(struct actor *a)
{
    check_ok(act_end(a, WAIT_MS));
    check_ok(act_do(a, act_unlock, ((struct act *)actor_own(a))->mutex, NULL));
}

static int get_token(struct zkl_mutex *mutex, void *token)
{
    *(uint64_t *)token = zkl_mutex_token(mutex);
    return 0;
}

uint64_t actor_token(struct actor *a)
{
    uint64_t token = 0;

    act_do(a, get_token, ((struct act *)actor_own(a))->mutex, &token);
    return token;
}

int fault_outcome(int rc, struct completion *done)
{
    while (rc == 0 && done->calls == 0)
        net_nap_ms(1);
    rc = rc != 0 ? rc : done->code;
    *done = (struct completion){0};
    return rc;
}

void fault_stall(atomic_int *place)
{
    int armed = ARMED;

    if (atomic_compare_exchange_strong(place, &armed, STALLED))
        wait_until(*place == OFF, WAIT_MS);
}

/* --- callbacks, threads ----------------------------------------------------------------------- */

void told_fn(const struct zkl_hold_event *event, void *arg)
{
    struct told *told = arg;

    if (event->state == ZKL_HOLD_HELD) {
        told->held++;
    } else if (event->state == ZKL_HOLD_SUSPECT) {
        told->suspect_reason = (int)event->reason;
        told->suspect++;
    } else {
        told->reason = (int)event->reason;
        told->lost++;
    }
}

struct holder *world_holder(struct zkl_client *client, const char *path)
{
    struct holder *h = world_alloc(sizeof *h);

    h->client = client;
    h->mutex = world_mutex(client, path);
    check_ok(zkl_mutex_set_callback(h->mutex, told_fn, &h->told));
    check_ok(zkl_mutex_lock_for(h->mutex, WAIT_MS));
    h->session = fault_session(client);
    h->token = zkl_mutex_token(h->mutex);
    return h;
}

void fault_check_held(struct holder *h)
{
    check_wait(zkl_mutex_window_ms(h->mutex) > 0, WAIT_MS);
    check_num(zkl_mutex_token(h->mutex), ==, h->token);
    check_num(fault_session(h->client), ==, h->session);
    check_num(h->told.lost, ==, 0);
}

static void ignore(const char *message)
{
    (void)message;
}

zhandle_t *fault_handle(int session_ms)
{
    zhandle_t *zh = zookeeper_init2(zks_connect_string(server), NULL, session_ms, NULL, NULL,
                                    ZOO_NO_LOG_CLIENTENV, ignore);

    check_true(zh != NULL);
    check_wait(zoo_state(zh) == ZOO_CONNECTED_STATE, WAIT_MS);
    return zh;
}

/* Whose link begins with that. */
static int entries(const char *folder, const char *link)
{
    char at[300], target[16] = "";
    int n = 0;
    DIR *dir = opendir(folder);

    if (dir == NULL)
        return -1;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        snprintf(at, sizeof at, "%s/%s", folder, entry->d_name);
        n += entry->d_name[0] != '.' &&
             (*link == '\0' || (readlink(at, target, sizeof target) > (ssize_t)strlen(link) &&
                                strncmp(target, link, strlen(link)) == 0));
    }
    closedir(dir);
    return n;
}

int fault_threads(void)
{
    return entries("/proc/self/task", "");
}

int fault_descriptors(void)
{
    return entries("/proc/self/fd", "") - 1; /* but the folder's own */
}

int fault_sockets(void)
{
    return entries("/proc/self/fd", "socket:");
}
