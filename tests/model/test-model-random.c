/* SPDX-License-Identifier: Apache-2.0 */
/* Random scripts, the same for the simulated ensemble and for a real server: after each step both
 * must have reported the same to each client. ZKL_MODEL_SEED=N runs that seed's script alone. */
#include <inttypes.h>

#include "cluster.h"
#include "pair.h"
#include "sim/fake.h"
#include "sim/kinds.h"

#define CLIENTS 3
#define ROOTS 3
#define NODES 12 /* that are remembered, whether they are still there or not */
#define BURST 4
#define CHECKS 4

struct script {
    struct fake_prng prng;
    struct pair *pair;
    enum { CLOSED, LINKED, CUT, ENDED } state[CLIENTS]; /* CUT: the session may have ended */
    char nodes[NODES][64];
    size_t node_count;
    /* The request that is being made up. */
    char path[64], lists[CHECKS][64], data[16];
    const char *checks[CHECKS], *texts[CHECKS];
    FILE *trace;
};

static unsigned rnd(struct script *s, unsigned n)
{
    return fake_random(&s->prng, n);
}

static bool chance(struct script *s, unsigned n)
{
    return fake_chance(&s->prng, n);
}

/* --- requests --------------------------------------------------------------------------------- */

static const char *some_root(struct script *s)
{
    static const char *const roots[ROOTS] = {"/a", "/b", "/c"};

    return roots[rnd(s, ROOTS)];
}

static void some_node(struct script *s, char *out, size_t size)
{
    if (s->node_count == 0 || chance(s, 10))
        snprintf(out, size, "%s/none", some_root(s));
    else
        snprintf(out, size, "%s", s->nodes[rnd(s, s->node_count)]);
}

static void some_path(struct script *s, char *out, size_t size)
{
    if (chance(s, 3))
        snprintf(out, size, "%s", some_root(s));
    else
        some_node(s, out, size);
}

static void some_prefix(struct script *s, char *out, size_t size)
{
    snprintf(out, size, "%s/%c-", some_root(s), "xyz"[rnd(s, 3)]);
}

static void some_list(struct script *s, struct zkl_request *request,
                      void (*some)(struct script *s, char *out, size_t size))
{
    request->check_count = 1 + rnd(s, CHECKS);
    for (size_t i = 0; i < request->check_count; i++) {
        some(s, s->lists[i], sizeof s->lists[i]);
        s->checks[i] = s->lists[i];
        s->texts[i] = i % 2 == 0 ? "text" : "";
    }
    request->checks = s->checks;
    request->texts = s->texts;
}

static struct zkl_request some_request(struct script *s)
{
    static const enum zkl_request_kind kinds[] = {
        ZKL_REQ_CREATE,
        ZKL_REQ_CREATE,
        ZKL_REQ_CREATE,
        ZKL_REQ_MAKE,
        ZKL_REQ_LIST,
        ZKL_REQ_LIST_LOCK_PATH,
        ZKL_REQ_LIST_LOCK_PATH,
        ZKL_REQ_SYNC,
        ZKL_REQ_STAT,
        ZKL_REQ_GET,
        ZKL_REQ_SET,
        ZKL_REQ_WATCH,
        ZKL_REQ_WATCH,
        ZKL_REQ_WATCH,
        ZKL_REQ_UNWATCH,
        ZKL_REQ_DELETE,
        ZKL_REQ_DELETE,
        ZKL_REQ_CREATE_ALL,
        ZKL_REQ_DELETE_ALL,
        ZKL_REQ_RENEW,
        ZKL_REQ_CHECK_ALL,
        ZKL_REQ_KEEPALIVE,
    };
    struct zkl_request request = {.kind = kinds[rnd(s, sizeof kinds / sizeof kinds[0])]};

    request.path = s->path;
    snprintf(s->data, sizeof s->data, "%u", rnd(s, 100));
    request.data = s->data;
    some_path(s, s->path, sizeof s->path);
    if (request.kind == ZKL_REQ_CREATE) {
        some_prefix(s, s->path, sizeof s->path);
        if (chance(s, 3))
            some_list(s, &request, some_node);
    } else if (request.kind == ZKL_REQ_MAKE || request.kind == ZKL_REQ_RENEW) {
        if (request.kind == ZKL_REQ_RENEW || !chance(s, 3))
            snprintf(s->path, sizeof s->path, "%s", some_root(s));
        request.flag = chance(s, 2);
        request.data = chance(s, 2) ? NULL : s->data;
    } else if (request.kind == ZKL_REQ_LIST_LOCK_PATH || request.kind == ZKL_REQ_WATCH) {
        request.watch_id = request.kind == ZKL_REQ_WATCH || !chance(s, 4);
    } else if (request.kind == ZKL_REQ_CREATE_ALL) {
        some_list(s, &request, some_prefix);
        request.path = NULL;
    } else if (request.kind == ZKL_REQ_DELETE_ALL || request.kind == ZKL_REQ_CHECK_ALL) {
        some_list(s, &request, some_path);
        request.path = NULL;
    } else {
        request.flag = chance(s, 2);
        request.version = (int32_t)rnd(s, 3);
    }
    return request;
}

static void trace_request(struct script *s, size_t client, const char *how,
                          const struct zkl_request *r)
{
    fprintf(s->trace, "client %zu %s %s %s", client, how, request_kinds[r->kind],
            r->path ? r->path : "");
    if (r->flag)
        fprintf(s->trace, " flag, version %d", r->version);
    for (size_t i = 0; i < r->check_count; i++)
        fprintf(s->trace, " %s", r->checks[i]);
    fprintf(s->trace, "\n");
}

/* Nodes that were made with a number. */
static void remember_nodes(struct script *s)
{
    for (size_t client = 0; client < CLIENTS; client++) {
        const char *told = pair_told(s->pair, client), *at = told;

        while ((at = strstr(at, "create /")) != NULL) {
            char prefix[64], name[64];

            if (sscanf(at, "create %63[^ \n] ok%*1[ ]%63[^ \n]", prefix, name) == 2) {
                size_t place = s->node_count < NODES ? s->node_count++ : rnd(s, NODES);

                *(strrchr(prefix, '/') + 1) = '\0';
                snprintf(s->nodes[place], sizeof s->nodes[place], "%.30s%.30s", prefix, name);
            }
            at++;
        }
    }
}

/* --- steps ------------------------------------------------------------------------------------ */

static void burst(struct script *s, size_t client)
{
    for (unsigned n = 1 + rnd(s, BURST); n > 0; n--) {
        struct zkl_request request = some_request(s);

        /* This one is several calls: what is sent behind it gets between them. */
        if (request.kind == ZKL_REQ_RENEW)
            n = 1;
        trace_request(s, client, "asks", &request);
        pair_send(s->pair, client, request);
    }
}

static void lose(struct script *s, size_t client)
{
    struct zkl_request request = some_request(s);
    bool carried_out = chance(s, 2);

    if (request.kind == ZKL_REQ_RENEW)
        return;
    trace_request(s, client, carried_out ? "loses the answer of" : "loses", &request);
    pair_lose(s->pair, client, request, carried_out);
    s->state[client] = CUT;
}

static void linked(struct script *s, size_t client)
{
    unsigned what = rnd(s, 100);

    if (what < 88) {
        burst(s, client);
    } else if (what < 92) {
        fprintf(s->trace, "client %zu is cut off\n", client);
        pair_do(s->pair, cut, client);
        s->state[client] = CUT;
    } else if (what < 99) {
        lose(s, client);
    } else {
        fprintf(s->trace, "client %zu closes\n", client);
        pair_do(s->pair, close, client);
        s->state[client] = CLOSED;
    }
}

static void cut_off(struct script *s, size_t client)
{
    unsigned what = rnd(s, 8);

    if (what == 0) {
        burst(s, client);
    } else if (what == 1) {
        fprintf(s->trace, "the session of client %zu is ended\n", client);
        pair_do(s->pair, expire, client);
        pair_do(s->pair, join, client);
        s->state[client] = ENDED;
    } else if (what < 6) {
        fprintf(s->trace, "client %zu comes back\n", client);
        pair_do(s->pair, join, client);
        s->state[client] = LINKED;
    }
}

static void step(struct script *s)
{
    size_t client = rnd(s, CLIENTS);

    switch (s->state[client]) {
    case CLOSED:
        fprintf(s->trace, "client %zu opens\n", client);
        pair_do(s->pair, open, client);
        s->state[client] = LINKED;
        break;
    case LINKED:
        linked(s, client);
        break;
    case CUT:
        cut_off(s, client);
        break;
    case ENDED:
        fprintf(s->trace, "client %zu closes after its session's end\n", client);
        pair_do(s->pair, close, client);
        s->state[client] = CLOSED;
        break;
    }
}

/* --- scripts ---------------------------------------------------------------------------------- */

/* True if both agreed to the end; else the whole script is shown. */
static bool play(uint64_t seed, long steps)
{
    struct script s = {.prng = {.state = seed}, .pair = pair_new()};
    char *trace = NULL;
    size_t size;
    bool agrees = true;

    s.trace = open_memstream(&trace, &size);
    check_true(s.trace);
    for (long i = 0; i < steps && agrees; i++) {
        step(&s);
        agrees = pair_agrees(s.pair);
        remember_nodes(&s);
    }
    fclose(s.trace);
    if (!agrees)
        fprintf(stderr, "%sthey differ after this; ZKL_MODEL_SEED=%" PRIu64 " replays it\n", trace,
                seed);
    free(trace);
    pair_free(s.pair);
    return agrees;
}

/* Goal: the simulated ensemble answers like a real server, whatever is asked in whatever order.
 * Method: three clients send random requests, lose their links, requests, answers and sessions; the
 * test compares the reports to each client after each step. */
CLUSTER_TEST(random_scripts_agree)
{
    const char *given = getenv("ZKL_MODEL_SEED");
    long scripts = given ? 1 : test_length(60, 1);
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
    long differ = 0;

    for (long i = 0; i < scripts; i++)
        differ += !play(seed + (uint64_t)i, 300);
    check_num(differ, ==, 0);
}

int main(int argc, char **argv)
{
    const char *nodes = getenv("ZKL_MODEL_NODES"); /* of the server, one client at each */

    cluster_server.container_check_ms = 600000; /* the server collects no container by itself */
    cluster_server.nodes = nodes ? strtoul(nodes, NULL, 10) : 1;
    return cluster_main(argc, argv);
}
