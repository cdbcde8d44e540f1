/* SPDX-License-Identifier: Apache-2.0 */
/* Three servers are replaced by three others, one by one, under holders and waiters: by lists that the
 * program gives, and by the ensemble's own. */
#include "fault.h"

#define SESSION_MS 60000 /* an election on a busy machine ends no window */
#define OLD 3
#define NODES (2 * OLD)

/* --- the ensemble ----------------------------------------------------------------------------- */

static char config[4096]; /* in its own words */

/* The nodes in the order in which they go, and then those that come. The leader goes last: until then there is no
 * election, which would cut links. */
static int order[NODES];
static char coming[OLD][300]; /* the lines of those that come */

static void set_order(int leader)
{
    int n = 0;

    check_num(leader, >=, 0);
    check_num(leader, <, OLD);
    for (int node = 0; node < OLD; node++) {
        if (node != leader)
            order[n++] = node;
    }
    order[n++] = leader;
    for (int node = OLD; node < NODES; node++)
        order[n++] = node;
}

/* The line of an observer, as that of one that votes. */
static void note_joining(int node)
{
    char key[24], line[256];

    snprintf(key, sizeof key, "server.%d=", node + 1);
    const char *at = strstr(config, key);
    check_true(at != NULL);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    char *role = strstr(line, ":observer");
    check_true(role != NULL);
    *role = '\0';
    snprintf(coming[node - OLD], sizeof coming[0], "%s:participant%s", line,
             role + strlen(":observer"));
}

static void read_config(zhandle_t *zh)
{
    int length = sizeof config - 1;

    check_wait(zoo_get(zh, "/zookeeper/config", 0, config, &length, NULL) == ZOK, WAIT_MS);
    config[length > 0 ? length : 0] = '\0';
}

static bool reconfigure(zhandle_t *zh, const char *joining, const char *leaving)
{
    int length = sizeof config - 1,
        rc = zoo_reconfig(zh, joining, leaving, NULL, -1, config, &length, NULL);

    if (rc == ZOK)
        config[length > 0 ? length : 0] = '\0';
    else
        net_nap_ms(20); /* an election, or one that is under way */
    return rc == ZOK;
}

/* From here on the ensemble's own list has none of those that come. They run on, without a vote. */
static void hide_new_nodes(zhandle_t *zh)
{
    char leaving[32];
    size_t used = 0;

    read_config(zh);
    for (int node = OLD; node < NODES; node++) {
        note_joining(node);
        used += (size_t)snprintf(leaving + used, sizeof leaving - used, "%s%d",
                                 node > OLD ? "," : "", node + 1);
    }
    check_wait(reconfigure(zh, NULL, leaving), WAIT_MS);
}

/* A new node votes, an old one goes. */
static void replace(zhandle_t *zh, int i)
{
    char leaving[16];

    snprintf(leaving, sizeof leaving, "%d", order[i] + 1);
    check_wait(reconfigure(zh, coming[i], leaving), WAIT_MS);
}

/* --- clients ---------------------------------------------------------------------------------- */

static void servers_from(int first, int count, char *out, size_t size)
{
    size_t used = 0;

    for (int i = first; i < first + count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > first ? "," : "",
                                 zks_address(server, (size_t)order[i]));
}

/* Who follows knows one server only, the last to go. */
static struct zkl_client *client_at(bool follows)
{
    char servers[200];

    servers_from(follows ? OLD - 1 : 0, follows ? 1 : OLD, servers, sizeof servers);
    struct zkl_client_options options = fault_client_options(servers, SESSION_MS);
    options.connect_timeout_ms = WAIT_MS;
    options.follow_ensemble = follows;
    return world_client_with(&options);
}

static bool is_at(struct zkl_client *client, int from)
{
    bool is = false;

    for (int i = from; i < NODES; i++)
        is = is || fault_is_at(client, zks_address(server, (size_t)order[i]));
    return is;
}

/* Held as ever, the window has never been empty, and it is connected to one of those from here on. */
static bool has_moved(struct holder *h, int from)
{
    check_num(zkl_mutex_still_held(h->mutex, 1), ==, 1);
    fault_check_held(h);
    check_num(h->told.suspect_reason, !=, ZKL_REASON_WINDOW);
    return h->told.held == h->told.suspect && /* as often back as it was in doubt */
           fault_connected(h->client) && is_at(h->client, from);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* Nobody loses anything. One client is given lists, another follows the ensemble; a third one that
 * follows waits behind each of them, and has the locks when they are released. Who follows is at the last
 * server to go, and the ensemble's list had none of the new ones when it was first read. Modes: F77, F93. */
WORLD_TEST(three_servers_are_replaced_by_others)
{
    static const char *const paths[2] = {"/reconfig/given", "/reconfig/follower"};
    struct holder *holders[2];
    struct zkl_client *waiting[2];
    struct zkl_mutex *wanted[2];
    struct actor *a[2];
    int64_t sessions[2];
    zhandle_t *zh = fault_handle(SESSION_MS);
    char servers[200];

    hide_new_nodes(zh);
    set_order(zks_wait_leader(server, ZKS_READY_MS));
    for (int i = 0; i < 2; i++) {
        holders[i] = world_holder(client_at(i == 1), paths[i]);
        waiting[i] = client_at(true);
        sessions[i] = fault_session(waiting[i]);
        wanted[i] = world_mutex(waiting[i], paths[i]);
        act_begin(a[i] = world_actor(), act_lock, wanted[i], NULL);
    }
    for (int i = 0; i < OLD; i++) {
        replace(zh, i);
        servers_from(i + 1, OLD, servers, sizeof servers);
        check_ok(zkl_client_set_servers(holders[0]->client, servers));
        check_ok(zoo_set_servers(zh, servers));
        check_ok(zks_stop_node(server, (size_t)order[i]));
        check_wait(has_moved(holders[0], i + 1) && has_moved(holders[1], i + 1), WAIT_MS);
    }
    for (int i = 0; i < 2; i++) {
        check_true(act_busy(a[i]));
        check_wait(is_at(waiting[i], OLD), WAIT_MS);
        check_ok(zkl_mutex_unlock(holders[i]->mutex));
        check_ok(act_end(a[i], WAIT_MS));
        check_num(fault_session(waiting[i]), ==, sessions[i]);
        check_num(actor_token(a[i]), >, holders[i]->token);
        check_ok(act_do(a[i], act_unlock, wanted[i], NULL));
        /* The server that is asked for what is left does not run any more. */
        world_drop(wanted[i]);
        world_drop(waiting[i]);
        world_drop(holders[i]->mutex);
        world_drop(holders[i]->client);
    }
    zookeeper_close(zh);
}

FAULT_MAIN({
    options.nodes = NODES;
    options.reconfig = true;
    for (int i = OLD; i < NODES; i++)
        options.observer[i] = true;
})
