/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes.h"

const char *below(const char *path, const char *name)
{
    static char texts[16][512];
    static unsigned last;
    char text[sizeof texts[0]];

    snprintf(text, sizeof text, "%s/%s", path, name); /* path may be one of them */
    return memcpy(texts[++last % 16], text, sizeof text);
}

uint64_t make_node(const char *node, const char *data)
{
    struct wire_stat stat;
    char path[512];

    snprintf(path, sizeof path, "%.*s", (int)(strrchr(node, '/') - node), node);
    int rc = wire_create(raw, cluster_at(path), "", WIRE_PERSISTENT, NULL, 0);
    check_true(rc == 0 || rc == WIRE_NODEEXISTS);
    check_ok(wire_create(raw, cluster_at(node), data, WIRE_EPHEMERAL, NULL, 0));
    check_ok(wire_exists(raw, cluster_at(node), &stat));
    return (uint64_t)stat.czxid;
}

void make_root(const char *path, const char *data)
{
    check_ok(wire_create(raw, cluster_at(path), data, WIRE_PERSISTENT, NULL, 0));
}

void drop_node(const char *node)
{
    check_ok(wire_delete(raw, cluster_at(node), -1));
}

const char *make_denied(const char *node, int denied, const char *data, int flags)
{
    struct wire_acl acl[] = {{WIRE_PERM_ALL & ~denied, "world", "anyone"},
                             {WIRE_PERM_ALL, "auth", ""}};

    check_ok(wire_auth(raw, "digest", "admin:admin"));
    check_ok(wire_create_acl(raw, cluster_at(node), data, flags, acl, 2, NULL, 0));
    return node;
}

bool node_is_there(const char *node)
{
    int rc = wire_exists(raw, cluster_at(node), NULL);

    return rc == 0 || rc == WIRE_NOAUTH; /* the right is asked for only once the node was found */
}

bool exists_takes_read(void)
{
    int version = flw_version(zks_host(), zks_port(server, 0));

    check_num(version, >, 0);
    return version >= 30902 || (version >= 30804 && version < 30900);
}

bool node_has_data(const char *node, const char *data)
{
    char text[64];

    return wire_get(raw, cluster_at(node), text, sizeof text, NULL) == 0 && strcmp(text, data) == 0;
}

const char *node_of(struct zkl_mutex *mutex)
{
    char node[700];

    check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
    return cluster_at(node);
}

void ask_for(struct zkl_mutex *mutex)
{
    check_ok(wire_set(raw, node_of(mutex), "__REVOKE__", -1));
}

int node_watches(const char *node)
{
    return flw_watch_count(zks_host(), zks_port(server, 0), node ? cluster_at(node) : NULL);
}

/* Requests are known again by their xid, the first four bytes; then come the type and the path with its length.
 * An answer has the code behind xid and zxid. */
static struct {
    const char *part;
    bool denied[0x10000]; /* by the lower half of the xid */
} exists;

static bool names_part(const unsigned char *path, size_t size)
{
    return memmem(path, size, exists.part, strlen(exists.part)) != NULL;
}

static size_t answer_exists(enum proxy_dir dir, int op, unsigned char *frame, size_t size,
                            void *arg)
{
    enum { CODE_AT = 12, HEADER = 16, NOAUTH = -102 };
    (void)arg;
    if (op != PROXY_EXISTS || size < HEADER)
        return size;
    bool *denied = &exists.denied[frame[2] << 8 | frame[3]];
    if (dir == PROXY_TO_SERVER)
        *denied = names_part(frame, size);
    if (dir == PROXY_TO_SERVER || !*denied || memcmp(frame + CODE_AT, "\0\0\0\0", 4) != 0)
        return size; /* of what is not there that is said */
    for (int i = 0; i < 4; i++)
        frame[CODE_AT + i] = (unsigned char)((uint32_t)NOAUTH >> (24 - 8 * i));
    return HEADER;
}

void deny_exists(struct proxy *proxy, const char *part)
{
    exists.part = part;
    proxy_set_hook(proxy, answer_exists, NULL);
}

int all_watches(void)
{
    char *text = flw_ask(zks_host(), zks_port(server, 0), "mntr");
    const char *line = text ? strstr(text, "zk_watch_count\t") : NULL;
    int n = line ? atoi(strchr(line, '\t')) : -1;

    free(text);
    return n;
}

struct proxy *world_proxy_for(struct zkl_client_options *options)
{
    struct proxy *proxy = world_proxy();

    options->servers = cluster_servers(proxy_address(proxy));
    return proxy;
}

struct zkl_client *world_client_through(struct proxy **proxy, int session_ms)
{
    struct zkl_client_options options = cluster_options();

    *proxy = world_proxy_for(&options);
    options.session_timeout_ms = session_ms;
    return world_client_with(&options);
}

int64_t requests(struct proxy *proxy)
{
    return proxy_counts(proxy, PROXY_ANY) - proxy_counts(proxy, PROXY_EXISTS) -
           proxy_counts(proxy, PROXY_PING) - proxy_counts(proxy, PROXY_MULTI);
}

void cycle(struct zkl_mutex *mutex, int n)
{
    for (int i = 0; i < n; i++) {
        check_ok(zkl_mutex_lock(mutex));
        check_ok(zkl_mutex_unlock(mutex));
    }
}

void check_try_gets(struct zkl_mutex *mutex)
{
    enum {
        WAITS_MS = 200,
        ALONE_MS = WAITS_MS * 3 / 4 /* lag.h counts no less where nothing else runs */
    };
    int64_t start_ms = net_now_ms();

    lag_begin();
    int rc = zkl_mutex_trylock(mutex);
    int64_t passed_ms = net_now_ms() - start_ms, counted_ms = lag_end_ms();
    if (rc == ZKL_EBUSY && passed_ms >= WAITS_MS && counted_ms < ALONE_MS) /* too busy to ask all */
        check_wait((rc = zkl_mutex_trylock(mutex)) != ZKL_EBUSY, WAIT_MS);
    if (rc != 0)
        fail_msg("the try: %d, %lld ms, counted as %lld ms", rc, (long long)passed_ms,
                 (long long)counted_ms);
}
