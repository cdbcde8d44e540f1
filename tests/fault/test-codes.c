/* SPDX-License-Identifier: Apache-2.0 */
/* Every code that ZooKeeper has comes over the wire in the place of a request that is not carried out: each call
 * ends, with a code of its own or because it was asked again; none is "not understood", nothing stays. */
#include "bench.h"
#include "bytes.h"

#include <limits.h>

#define SESSION_MS 4000
#define REST_MS 10000

static const char *const path = "/codes/m";

static const int codes[] = {-1,   -2,   -3,   -4,   -5,   -7,   -8,   -9,   -12,  -13,  -14,
                            -100, -101, -102, -103, -108, -110, -111, -112, -113, -114, -115,
                            -116, -117, -118, -119, -120, -121, -122, -123, -125, -127};

/* What the proxy's hook does to the next request of that type. */
struct lie {
    int op, code;
    int32_t xid;
    bool struck;
};

/* The server answers a harmless question instead; what it says becomes the code alone. */
static size_t tell_code(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    struct lie *lie = arg;

    if (dir == PROXY_TO_SERVER && op == lie->op && lie->code != 0 && size >= 14) {
        lie->xid = bytes_get32(frame);
        lie->struck = true;
        bytes_put32(frame + 4, PROXY_EXISTS);
        bytes_put32(frame + 8, 1);
        frame[12] = '/';
        frame[13] = 0;
        lie->op = 0;
        return 14;
    }
    if (dir == PROXY_TO_CLIENT && lie->struck && size >= 16 && bytes_get32(frame) == lie->xid) {
        bytes_put32(frame + 12, lie->code);
        lie->struck = false;
        return 16;
    }
    return size;
}

static void check_understood(int rc, int op, int code)
{
    if (rc == ZKL_EPROTO || rc == ZKL_ETIMEDOUT)
        fail_msg("%d to request %d: %s", code, op, zkl_error_detail());
}

/* A lock, or a try, and an unlock, of which one request of that type is answered with the code. */
static void lock_despite(struct bench *b, enum proxy_op op, int code)
{
    struct lie lie = {.op = op, .code = code};

    proxy_set_hook(b->proxy, tell_code, &lie);
    int rc = zkl_mutex_lock_for(b->mutex, WAIT_MS);
    check_understood(rc, op, code);
    if (rc == 0)
        check_understood(zkl_mutex_unlock(b->mutex), op, code);
    proxy_set_hook(b->proxy, NULL, NULL);
    /* What the server said of a delete is believed: no node, or no right. */
    if (op == PROXY_DELETE &&
        (code == -101 || code == -102 || code == -111 || code == -114 || code == -103))
        wire_delete_tree(b->wire, path);
    fault_check_rest(b->client, b->wire, path, REST_MS);
    check_ok(zkl_mutex_lock_for(b->mutex, WAIT_MS)); /* an idle client proves nothing */
    check_true(fault_proved(b->client));
    check_ok(zkl_mutex_unlock(b->mutex));
}

static void each_code(struct bench *b, enum proxy_op op)
{
    size_t step = (size_t)test_length(1, 4);

    if (op == PROXY_CHILDREN)
        fault_alone_from(b->client, UINT_MAX);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i += step) {
        if (op != PROXY_CHILDREN || codes[i] != -101) /* believed: root and node are deleted */
            lock_despite(b, op, codes[i]);
    }
    lock_despite(b, op, -119);
    lock_despite(b, op, -125);
    lock_despite(b, op, -127);
    lock_despite(b, op, -6); /* after this the client sends no create2 */
}

static struct bench *begin(void)
{
    return bench_make_path(bench_begin(path, SESSION_MS, SESSION_MS));
}

#define CODES_TEST(name) BENCH_TEST_OF(name, begin())

WORLD_TEST_OF(each_code_to_a_create, each_code(begin(), PROXY_CREATE2))
WORLD_TEST_OF(each_code_to_a_list, each_code(begin(), PROXY_CHILDREN))
WORLD_TEST_OF(each_code_to_a_delete, each_code(begin(), PROXY_DELETE))

/* What a quota or a server in read-only mode refuses has its own code, and a sentence with ZooKeeper's number;
 * what is throttled goes through, and so does a create by a server without create2. */
CODES_TEST(quota_and_read_only_have_codes)
{
    static const struct {
        int code, rc;
        enum proxy_op op;
    } list[] = {{-125, ZKL_EQUOTA, PROXY_CREATE2},
                {-119, ZKL_EREADONLY, PROXY_CREATE2},
                {-6, ZKL_EUNIMPLEMENTED, PROXY_CHILDREN},
                {-108, ZKL_EBADPATH, PROXY_CREATE2},
                {-127, ZKL_OK, PROXY_CREATE2},
                {-118, ZKL_OK, PROXY_CREATE2},
                {-6, ZKL_OK, PROXY_CREATE2}};
    char number[16];

    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct lie lie = {.op = list[i].op, .code = list[i].code};
        proxy_set_hook(b->proxy, tell_code, &lie);
        check_num(zkl_mutex_lock_for(b->mutex, WAIT_MS), ==, list[i].rc);
        snprintf(number, sizeof number, "returned %d", list[i].code);
        if (list[i].rc != ZKL_OK && strstr(zkl_error_detail(), number) == NULL)
            fail_msg("%s", zkl_error_detail());
        if (list[i].rc == ZKL_OK)
            check_ok(zkl_mutex_unlock(b->mutex));
        proxy_set_hook(b->proxy, NULL, NULL);
    }
    fault_check_rest(b->client, b->wire, path, REST_MS);
}

CODES_TEST(sasl_required_is_a_matter_of_credentials)
{
    struct lie lie = {.op = PROXY_CREATE2, .code = -124};

    proxy_set_hook(b->proxy, tell_code, &lie);
    check_num(zkl_mutex_lock_for(b->mutex, WAIT_MS), ==, ZKL_EAUTH);
    check_num(zkl_client_get_state(b->client), ==, ZKL_CLIENT_AUTH_FAILED);
    check_num(zkl_mutex_lock(b->mutex), ==, ZKL_EAUTH);
    proxy_set_hook(b->proxy, NULL, NULL);
    check_wait(fault_contenders(b->client) == 0, WAIT_MS);
}

/* The server asks for the right first. */
WORLD_TEST(a_denied_delete_says_nothing_of_the_node)
{
    static const struct wire_acl no_delete = {1 | 4, "world", "anyone"}; /* READ, CREATE */
    struct wire *wire = world_wire();

    check_ok(wire_create_acl(wire, "/denied", "", WIRE_PERSISTENT, &no_delete, 1, NULL, 0));
    check_num(wire_delete(wire, "/denied/none", -1), ==, WIRE_NOAUTH);
    check_num(wire_delete(wire, "/none", -1), ==, WIRE_NONODE);
}
