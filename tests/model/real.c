/* SPDX-License-Identifier: Apache-2.0 */
#include "side.h"

#include "cluster.h"
#include "driver/handle.h"
#include "snapshot.h"

#define BARRIER (UINT64_C(1) << 62) /* ids of requests that only wait for what is before them */
#define KEEPALIVE_MS 300            /* as the library: a server may sit on an answer until then */

struct client {
    struct zkl_driver *driver; /* NULL: not open */
    char password[WIRE_PASSWORD];
    int64_t session;
    pthread_mutex_t mu; /* protects the rest */
    pthread_cond_t cond;
    struct tape tape;
    size_t awaited;  /* replies that are due */
    size_t barriers; /* likewise */
    size_t link;     /* session events that came */
};

struct real {
    struct side side;
    char chroot[64];
    struct proxy *proxies[SIDE_CLIENTS];
    struct client clients[SIDE_CLIENTS];
};

static struct real *of(struct side *side)
{
    return (struct real *)side;
}

/* --- in the place of the core: a recorder ----------------------------------------------------- */

static struct client *client_of(struct zkl_core *core)
{
    struct zkl_driver *d = (struct zkl_driver *)((char *)core - offsetof(struct zkl_driver, core));

    return d->config.arg;
}

static void heard(struct client *c, struct told told)
{
    pthread_mutex_lock(&c->mu);
    if (told.type != TOLD_REPLY) {
        c->link += told.type != TOLD_FIRED;
        tape_add(&c->tape, told);
    } else if (told.reply.id >= BARRIER) {
        c->barriers--;
    } else {
        c->awaited--;
        tape_reply(&c->tape, &told.reply);
    }
    pthread_cond_broadcast(&c->cond);
    pthread_mutex_unlock(&c->mu);
}

void zkl_core_init(struct zkl_core *core, struct zkl_port *port, int timeout_ms, int tick_ms)
{
    (void)timeout_ms, (void)tick_ms;
    *core = (struct zkl_core){.port = port};
}

void zkl_core_fini(struct zkl_core *core)
{
    (void)core;
}

void zkl_core_close(struct zkl_core *core, struct zkl_time now)
{
    (void)core, (void)now;
}

void zkl_core_timer(struct zkl_core *core, struct zkl_time now)
{
    (void)core, (void)now;
}

int64_t zkl_core_next_timeout(const struct zkl_core *core, struct zkl_time now)
{
    (void)core, (void)now;
    return INT64_MAX;
}

void zkl_core_reply(struct zkl_core *core, struct zkl_time now, const struct zkl_reply *reply)
{
    (void)now;
    heard(client_of(core), (struct told){.type = TOLD_REPLY, .reply = *reply});
}

void zkl_core_fired(struct zkl_core *core, struct zkl_time now, uint64_t watch_id,
                    enum zkl_fired what)
{
    (void)now;
    heard(client_of(core), (struct told){.type = TOLD_FIRED, .watch_id = watch_id, .fired = what});
}

void zkl_core_session_event(struct zkl_core *core, const struct zkl_session_event *event)
{
    struct told told = {.type = TOLD_DOWN, .session = event->session};

    if (event->type == ZKL_SE_UP)
        told.type = TOLD_UP;
    else if (event->type == ZKL_SE_EXPIRED)
        told.type = TOLD_EXPIRED;
    heard(client_of(core), told);
}

/* --- waiting for it --------------------------------------------------------------------------- */

/* Until the condition, with the client's mutex; false: it did not come about in time. */
#define within(c, condition, ms)                                                                   \
    ({                                                                                             \
        const int64_t until_ = net_now_ms() + (ms);                                                \
        bool so_;                                                                                  \
        pthread_mutex_lock(&(c)->mu);                                                              \
        while (!(so_ = (condition)) && wait_for_more(c, until_))                                   \
            ;                                                                                      \
        pthread_mutex_unlock(&(c)->mu);                                                            \
        so_;                                                                                       \
    })

static bool wait_for_more(struct client *c, int64_t until_ms)
{
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000L};

    return pthread_cond_timedwait(&c->cond, &c->mu, &until) == 0;
}

static size_t link_count(struct client *c)
{
    pthread_mutex_lock(&c->mu);
    size_t n = c->link;
    pthread_mutex_unlock(&c->mu);
    return n;
}

/* The last session event. */
static int link_state(struct client *c)
{
    int state = TOLD_DOWN;

    pthread_mutex_lock(&c->mu);
    for (size_t i = 0; i < c->tape.count; i++) {
        if (c->tape.list[i].type != TOLD_REPLY && c->tape.list[i].type != TOLD_FIRED)
            state = c->tape.list[i].type;
    }
    pthread_mutex_unlock(&c->mu);
    return state;
}

/* --- requests --------------------------------------------------------------------------------- */

static struct client *opened(struct side *side, size_t client)
{
    struct client *c = &of(side)->clients[client];

    check_true(c->driver);
    return c;
}

static enum zkl_answer submit(struct client *c, const struct zkl_request *request, size_t *due)
{
    pthread_mutex_lock(&c->mu);
    ++*due;
    pthread_mutex_unlock(&c->mu);
    zkl_driver_lock(c->driver);
    enum zkl_answer answer = zkl_handle_send(c->driver->current, request);
    zkl_driver_unlock(c->driver);
    pthread_mutex_lock(&c->mu);
    *due -= answer != ZKL_ANSWER_OK;
    pthread_mutex_unlock(&c->mu);
    return answer;
}

static enum zkl_answer send_request(struct side *side, size_t client,
                                    const struct zkl_request *request)
{
    struct client *c = opened(side, client);

    return submit(c, request, &c->awaited);
}

static void keepalive(struct client *c, enum zkl_request_kind kind)
{
    struct zkl_request request = {.id = BARRIER, .kind = kind, .path = "/"};

    check_num(submit(c, &request, &c->barriers), ==, ZKL_ANSWER_OK);
}

/* A server can sit on an answer until any request reaches it (ZOOKEEPER-4537). */
static void wait_nudging(struct client *c, const size_t *due, bool linked)
{
    int64_t end_ms = net_now_ms() + WAIT_MS;

    while (!within(c, *due == 0, KEEPALIVE_MS)) {
        check_num(net_now_ms(), <, end_ms);
        if (linked)
            keepalive(c, ZKL_REQ_KEEPALIVE);
    }
}

/* Whatever the server had for this client when it took these requests is here. */
static void pass_barrier(struct client *c)
{
    keepalive(c, ZKL_REQ_SYNC);
    keepalive(c, ZKL_REQ_STAT);
    wait_nudging(c, &c->barriers, true);
}

static void hear(struct side *side, size_t client)
{
    struct client *c = &of(side)->clients[client];

    pthread_mutex_lock(&c->mu);
    for (size_t i = 0; i < c->tape.count; i++)
        tape_add(&side->tapes[client], c->tape.list[i]);
    c->tape.count = 0;
    pthread_mutex_unlock(&c->mu);
}

static void settle(struct side *side)
{
    struct real *r = of(side);

    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        if (r->clients[i].driver && !side->held[i])
            wait_nudging(&r->clients[i], &r->clients[i].awaited, side->linked[i]);
    }
    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        struct client *c = &r->clients[i];

        if (c->driver && side->linked[i] && !side->held[i])
            pass_barrier(c);
        hear(side, i);
    }
}

/* --- the link --------------------------------------------------------------------------------- */

static void wait_link(struct side *side, size_t client, size_t before, int state)
{
    struct client *c = opened(side, client);

    check_true(within(c, c->link > before, WAIT_MS));
    check_num(link_state(c), ==, state);
    side->linked[client] = state == TOLD_UP;
}

static void cut(struct side *side, size_t client)
{
    size_t before = link_count(opened(side, client));

    check_ok(proxy_refuse(of(side)->proxies[client], true));
    proxy_cut(of(side)->proxies[client]);
    proxy_heal(of(side)->proxies[client]);
    side->held[client] = false;
    wait_link(side, client, before, TOLD_DOWN);
}

static void join(struct side *side, size_t client)
{
    struct client *c = opened(side, client);
    size_t before = link_count(c);

    check_ok(proxy_refuse(of(side)->proxies[client], false));
    check_true(within(c, c->link > before, WAIT_MS));
    side->linked[client] = link_state(c) == TOLD_UP;
}

static void hold(struct side *side, size_t client, bool hold)
{
    side->held[client] = hold;
    if (hold)
        proxy_hole(of(side)->proxies[client], PROXY_TO_CLIENT);
    else
        proxy_heal(of(side)->proxies[client]);
}

static enum proxy_op first_call(const struct zkl_request *r)
{
    static const enum proxy_op ops[ZKL_REQUEST_KINDS] = {
        [ZKL_REQ_CREATE] = PROXY_CREATE2,
        [ZKL_REQ_LIST] = PROXY_CHILDREN,
        [ZKL_REQ_LIST_LOCK_PATH] = PROXY_CHILDREN2,
        [ZKL_REQ_SYNC] = PROXY_SYNC,
        [ZKL_REQ_STAT] = PROXY_EXISTS,
        [ZKL_REQ_GET] = PROXY_GET,
        [ZKL_REQ_SET] = PROXY_SET,
        [ZKL_REQ_WATCH] = PROXY_GET,
        [ZKL_REQ_UNWATCH] = PROXY_REMOVE_WATCHES,
        [ZKL_REQ_DELETE] = PROXY_DELETE,
        [ZKL_REQ_CREATE_ALL] = PROXY_MULTI,
        [ZKL_REQ_DELETE_ALL] = PROXY_MULTI,
        [ZKL_REQ_RENEW] = PROXY_GET,
        [ZKL_REQ_CHECK_ALL] = PROXY_MULTI,
        [ZKL_REQ_KEEPALIVE] = PROXY_EXISTS,
    };

    if (r->kind == ZKL_REQ_LIST && r->flag)
        return PROXY_CHILDREN2;
    if (r->kind == ZKL_REQ_MAKE)
        return r->flag ? PROXY_CREATE2 : PROXY_CREATE_CONTAINER;
    if (r->kind == ZKL_REQ_CREATE && r->check_count > 0)
        return PROXY_MULTI;
    return ops[r->kind];
}

static void lose(struct side *side, size_t client, const struct zkl_request *request,
                 bool carried_out)
{
    struct proxy *proxy = of(side)->proxies[client];
    size_t before = link_count(opened(side, client));

    check_ok(proxy_refuse(proxy, true));
    if (carried_out)
        check_ok(proxy_drop_reply(proxy, first_call(request), 1, PROXY_THEN_CUT));
    else
        check_ok(proxy_drop_request(proxy, first_call(request), 1, PROXY_THEN_CUT));
    check_num(send_request(side, client, request), ==, ZKL_ANSWER_OK);
    check_ok(proxy_wait_dropped(proxy, WAIT_MS));
    wait_link(side, client, before, TOLD_DOWN);
}

/* --- sessions --------------------------------------------------------------------------------- */

static void no_notification(struct zkl_port *port, struct zkl_contender *contender,
                            const struct zkl_notification *news)
{
    (void)port, (void)contender, (void)news;
}

static void no_actions(void *arg, unsigned actions)
{
    (void)arg, (void)actions;
}

static void open_client(struct side *side, size_t client)
{
    struct real *r = of(side);
    struct client *c = &r->clients[client];
    struct zkl_driver_config config = {.session_timeout_ms = SESSION_MS,
                                       .notification = no_notification,
                                       .session = no_actions,
                                       .arg = c};

    check_true(!c->driver);
    config.servers = strdup(proxy_address(r->proxies[client]));
    config.chroot = strdup(r->chroot);
    check_ok(proxy_refuse(r->proxies[client], false));
    size_t before = link_count(c);
    check_ok(zkl_driver_new(&c->driver, &config));
    wait_link(side, client, before, TOLD_UP);
    zkl_driver_lock(c->driver);
    const clientid_t *id = zoo_client_id(c->driver->current->zh);
    memcpy(c->password, id->passwd, sizeof c->password);
    c->session = id->client_id;
    zkl_driver_unlock(c->driver);
    side->sessions[side->session_count++] = c->session;
}

static void end(struct client *c)
{
    zkl_driver_close(c->driver, (net_now_ms() + WAIT_MS) * INT64_C(1000000));
    zkl_driver_free(c->driver);
    c->driver = NULL;
    c->awaited = c->barriers = 0;
}

static void close_client(struct side *side, size_t client)
{
    end(opened(side, client));
    side->linked[client] = false;
}

static void expire(struct side *side, size_t client)
{
    struct client *c = opened(side, client);

    check_ok(
        wire_expire_session(zks_host(), zks_port(server, 0), c->session, c->password, WAIT_MS));
}

/* --- the server ------------------------------------------------------------------------------- */

static void whole_path(struct side *side, const char *path, char *out, size_t size)
{
    snprintf(out, size, "%s%s", of(side)->chroot, path);
}

static void cut_all(struct side *side)
{
    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        if (of(side)->clients[i].driver)
            cut(side, i);
    }
}

static void start_server(void)
{
    check_ok(zks_start_node(server, 0));
    check_ok(cluster_raw_close(NULL));
    check_ok(cluster_raw_open(NULL)); /* waits until it serves */
}

static void set_counter(struct side *side, const char *path, int32_t number)
{
    char whole[256], err[512] = "";

    whole_path(side, path, whole, sizeof whole);
    cut_all(side);
    check_ok(zks_restart_node(server, 0)); /* writes a snapshot */
    check_ok(zks_stop_node(server, 0));
    if (snap_set_counter(zks_data_dir(server, 0), whole, number, err, sizeof err) != 0)
        fail_msg("%s: %s", whole, err);
    start_server();
    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        if (of(side)->clients[i].driver)
            join(side, i);
    }
}

static void wipe(struct side *side)
{
    struct real *r = of(side);

    cut_all(side);
    check_ok(zks_stop_node(server, 0));
    check_ok(zks_wipe_node(server, 0));
    start_server();
    check_ok(wire_create(raw, r->chroot, "", WIRE_PERSISTENT, NULL, 0));
    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        if (!r->clients[i].driver)
            continue;
        proxy_reset_counts(r->proxies[i]);
        check_ok(proxy_refuse(r->proxies[i], false));
        check_ok(proxy_wait_count(r->proxies[i], PROXY_CONNECT, 3, WAIT_MS));
    }
}

static void collect(struct side *side, const char *path)
{
    char whole[256];

    whole_path(side, path, whole, sizeof whole);
    check_wait(wire_exists(raw, whole, NULL) == WIRE_NONODE, WAIT_MS);
}

static void free_side(struct side *side)
{
    struct real *r = of(side);

    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        struct client *c = &r->clients[i];

        if (c->driver)
            end(c);
        proxy_stop(r->proxies[i]);
        tape_clear(&side->tapes[i]);
        tape_clear(&c->tape);
        pthread_cond_destroy(&c->cond);
        pthread_mutex_destroy(&c->mu);
    }
    free(r);
}

static const struct side_calls calls = SIDE_CALLS;

struct side *real_new(const char *chroot)
{
    struct real *r = calloc(1, sizeof *r);
    pthread_condattr_t attr;

    check_true(r);
    r->side.calls = &calls;
    snprintf(r->chroot, sizeof r->chroot, "%s", chroot);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        pthread_mutex_init(&r->clients[i].mu, NULL);
        pthread_cond_init(&r->clients[i].cond, &attr);
        check_ok(proxy_start(&r->proxies[i], zks_host(), zks_port(server, i % zks_nodes(server))));
    }
    pthread_condattr_destroy(&attr);
    check_ok(wire_create(raw, chroot, "", WIRE_PERSISTENT, NULL, 0));
    return &r->side;
}
