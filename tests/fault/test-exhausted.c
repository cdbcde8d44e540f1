/* SPDX-License-Identifier: Apache-2.0 */
/* The sequence counter near its end, patched into the server's snapshot: no number of the last
 * 2^20 is granted, and the path is renewed under everybody's hands. */
#include "contenders.h"
#include "core/name.h"
#include "snapshot.h"

#define SESSION_MS 20000
#define NEAR_HARD (ZKL_SEQUENCE_HARD - 5)
#define NEAR_END (INT32_MAX - 4) /* 2^31 - 5 */
#define GUARD "_c_00000000-0000-4000-8000-000000000000-lock-0000000000"
#define CONTENDERS 8
#define FORKED 4 /* of them */
#define BURST 40

/* --- paths with a chosen counter -------------------------------------------------------------- */

/* A root, and in it a contender of another client. As long as the test keeps that one, the server
 * does not collect the root and the library does not renew it. */
struct root {
    const char *path;
    const char *data;           /* NULL: a container without data, as the library makes it. With
                                 * data, if only "", the server does not remove it when empty. */
    const struct wire_acl *acl; /* with data */
    size_t acl_count;
    int32_t next;
};

static const struct wire_acl kept_acl[] = {{15, "world", "anyone"}, {31, "ip", "127.0.0.1"}};
static const struct wire_acl open_acl[] = {{31, "world", "anyone"}};

enum {
    EDGES = 3,
    KEPT = EDGES,
    BLOCKED = KEPT + 2,
    WAITS = BLOCKED + 3,
    CURATOR = WAITS + 2,
    MEMBERS,
    ROOTS = MEMBERS + 2
};
static const struct root roots[ROOTS] = {
    {.path = "/edge0", .next = NEAR_HARD},
    {.path = "/edge1", .next = NEAR_END},
    {.path = "/edge2", .next = INT32_MAX}, /* one number is left */
    [KEPT] = {"/kept0", "who reads this", kept_acl, 2, NEAR_HARD},
    {"/kept1", "who reads this", kept_acl, 2, NEAR_END},
    [BLOCKED] = {.path = "/blocked", .next = NEAR_END},
    {"/denied/plain", "", open_acl, 1, NEAR_END},
    {"/denied/data", "some", open_acl, 1, NEAR_END},
    [WAITS] = {.path = "/waits0", .next = NEAR_END},
    {.path = "/waits1", .next = ZKL_SEQUENCE_HARD},
    [CURATOR] = {.path = "/curator", .next = ZKL_SEQUENCE_HARD + 7},
    [MEMBERS] = {.path = "/member0", .next = NEAR_END},
    {.path = "/member1", .next = ZKL_SEQUENCE_HARD},
};

static void guard_path(const char *root, char *out, size_t size)
{
    snprintf(out, size, "%s/" GUARD, root);
}

static void make_root(struct wire *w, const struct root *r)
{
    char guard[128];

    if (r->data != NULL)
        check_ok(
            wire_create_acl(w, r->path, r->data, WIRE_PERSISTENT, r->acl, r->acl_count, NULL, 0));
    else
        check_ok(wire_create(w, r->path, "", WIRE_CONTAINER, NULL, 0));
    guard_path(r->path, guard, sizeof guard);
    check_ok(wire_create(w, guard, "", WIRE_PERSISTENT, NULL, 0));
}

/* Set the counters of roots that are there. Whoever is connected comes back after it. */
static void patch(const struct root *what, size_t n)
{
    char err[512] = "";

    check_ok(zks_restart_node(server, 0)); /* writes a snapshot */
    check_ok(zks_stop_node(server, 0));
    for (size_t i = 0; i < n; i++)
        if (snap_set_counter(zks_data_dir(server, 0), what[i].path, what[i].next, err,
                             sizeof err) != 0)
            fail_msg("%s: %s", what[i].path, err);
    check_ok(zks_start_node(server, 0));
    check_ok(zks_wait_ready(server, ZKS_READY_MS));
}

/* The roots of all tests but the bursts, patched in one go with the first of them: each patch is
 * two starts of the server. A raw client to look at them. */
static struct wire *prepared(void)
{
    static bool done;
    struct wire *w =
        world_wire_to(server, 0, WIRE_LASTING_MS); /* nothing is swept away in the end */

    if (done)
        return w;
    done = true;
    check_ok(wire_create(w, "/denied", "", WIRE_PERSISTENT, NULL, 0));
    for (size_t i = 0; i < ROOTS; i++)
        make_root(w, &roots[i]);
    world_drop(w);
    patch(roots, ROOTS);
    return world_wire_to(server, 0, WIRE_LASTING_MS);
}

static void let_guard_go(struct wire *w, const char *root)
{
    char guard[128];

    guard_path(root, guard, sizeof guard);
    check_ok(wire_delete(w, guard, -1));
}

static int64_t birth(struct wire *w, const char *path)
{
    struct wire_stat stat = {0};
    int rc = wire_exists(w, path, &stat);

    return rc == 0 ? stat.czxid : rc;
}

/* --- eight contenders over the edge ----------------------------------------------------------- */

struct crowd {
    struct contenders contenders;
    int pids[FORKED];
};

/* Four processes, which open their clients when the test sets go, and four threads here on three clients, which are
 * open before a test stops the server. */
static void crowd_gather(struct crowd *c, const char *path, int rounds)
{
    struct turnstile *w = turnstile_new();

    c->contenders = (struct contenders){.turnstile = w,
                                        .servers = zks_connect_string(server),
                                        .path = path,
                                        .session_ms = SESSION_MS,
                                        .rounds = rounds};
    for (int i = 0; i < FORKED; i++)
        c->pids[i] = contenders_fork(&c->contenders, CONTENDERS - i);
    for (int i = 1; i <= 3; i++)
        contenders_begin(&c->contenders, i, i == 3 ? 2 : 1);
    check_wait(w->here == CONTENDERS - FORKED, WAIT_MS);
}

/* All through, each one as often as it should, never two inside, tokens always growing. */
static void crowd_check(struct crowd *c, int ms)
{
    struct turnstile *w = c->contenders.turnstile;

    if (!wait_until(w->done == CONTENDERS, ms))
        fail_msg("%s: %d of %d are through, with %ld entries", c->contenders.path, w->done,
                 CONTENDERS, turnstile_sum(w));
    for (int i = 0; i < FORKED; i++)
        check_true(contenders_wait(c->pids[i], WAIT_MS));
    for (int i = 1; i <= CONTENDERS; i++)
        check_num(w->entries[i], ==, c->contenders.rounds);
    turnstile_end(w);
}

static void cross_the_edge(struct wire *w, const char *path, int rounds)
{
    struct crowd crowd;
    int64_t before = birth(w, path);

    crowd_gather(&crowd, path, rounds);
    crowd.contenders.turnstile->go = true;
    check_wait(crowd.contenders.turnstile->asking == CONTENDERS, WAIT_MS);
    check_num(turnstile_sum(crowd.contenders.turnstile), ==, 0); /* the guard is before them */
    let_guard_go(w, path);
    crowd_check(&crowd, 3 * WAIT_MS);
    check_num(birth(w, path), !=, before); /* renewed, or collected since */
}

/* The edge of the exhausted zone, and that of the counter itself. A root that the library made is a
 * container again: the server collects it. Modes: F27. */
WORLD_TEST(contenders_cross_the_edge)
{
    struct wire *w = prepared();

    for (int i = 0; i < EDGES; i++) {
        cross_the_edge(w, roots[i].path, test_length(300, 30));
        check_wait(birth(w, roots[i].path) == WIRE_NONODE, WAIT_MS);
    }
}

/* A root that somebody gave an ACL and data stays when it is empty, too. The ACL lets the world do all
 * but administer. */
WORLD_TEST(renewal_keeps_acl_and_data)
{
    struct wire *w = prepared();
    char text[256];

    for (int i = KEPT; i < KEPT + 2; i++) {
        struct wire_stat stat = {0};
        int64_t before = birth(w, roots[i].path);
        cross_the_edge(w, roots[i].path, 20);
        check_ok(wire_get(w, roots[i].path, text, sizeof text, &stat));
        check_text(text, roots[i].data);
        check_num(stat.czxid, >, before);
        check_ok(wire_get_acl(w, roots[i].path, text, sizeof text));
        check_text(text, "15:world:anyone,31:ip:127.0.0.1");
        net_nap_ms(700); /* a container would have been collected by now */
        check_ok(wire_exists(w, roots[i].path, NULL));
    }
}

/* --- a burst while a valid number is held ----------------------------------------------------- */

struct burst {
    zhandle_t *zh;
    atomic_int made, refused, negative, other;
};

static void on_burst(int rc, const char *name, const void *data)
{
    struct burst *b = (struct burst *)data;

    if (rc == ZOK && strstr(name, "-lock--") != NULL)
        b->negative++;
    if (rc == ZOK)
        b->made++;
    else if (rc == ZNODEEXISTS)
        b->refused++;
    else
        b->other++;
}

/* Creates as Curator makes them, all under way together. */
static void burst(struct burst *b, const char *root)
{
    char path[128];

    memset(b, 0, sizeof *b);
    b->zh = fault_handle(SESSION_MS);
    for (int i = 0; i < BURST; i++) {
        snprintf(path, sizeof path, "%s/_c_11111111-0000-4000-8000-%012d-lock-", root, i);
        check_ok(zoo_acreate(b->zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE,
                             on_burst, b));
    }
    check_wait(b->made + b->refused + b->other == BURST, WAIT_MS);
    check_num(b->other, ==, 0);
}

/* While a hold with a number from before the edge lives, through a restart of the server too, nobody
 * else comes in, whatever numbers a burst of strangers makes of the counter; at the end of the counter
 * not even one that sorts before it is heeded, and nobody of us comes in before the strangers have left. */
static void burst_over_the_edge(const struct root *root)
{
    bool at_end = root->next == NEAR_END;
    struct crowd crowd;
    struct burst b;

    crowd_gather(&crowd, root->path, 10);
    struct turnstile *turnstile = crowd.contenders.turnstile;
    struct zkl_client *client = world_direct(SESSION_MS);
    struct zkl_mutex *mutex = world_mutex(client, root->path);
    check_ok(zkl_mutex_lock(mutex));
    patch(root, 1);
    check_wait(fault_connected(client), WAIT_MS);
    check_wait(zkl_mutex_still_held(mutex, 1) == 1, WAIT_MS);
    struct wire *w = world_wire_to(server, 0, WIRE_LASTING_MS);
    turnstile_enter(turnstile, 9, zkl_mutex_token(mutex));
    turnstile->go = true;
    burst(&b, root->path);
    check_num(b.refused + b.negative > 0, ==, at_end);
    check_wait(turnstile->asking == CONTENDERS, WAIT_MS);
    /* Whoever got an exhausted number has withdrawn. */
    check_wait(fault_children(w, root->path) <= b.made + 1 + (at_end ? 0 : 5), WAIT_MS);
    check_num(turnstile_sum(turnstile), ==, 1);
    turnstile_leave(turnstile, 9);
    check_ok(zkl_mutex_unlock(mutex));
    if (at_end) {
        check_wait(fault_children(w, root->path) == b.made, WAIT_MS);
        check_num(turnstile_sum(turnstile), ==, 1);
    }
    zookeeper_close(b.zh);
    crowd_check(&crowd, 3 * WAIT_MS);
}

WORLD_TEST_OF(burst_over_the_zones_edge,
              burst_over_the_edge(&(struct root){.path = "/burst-hard", .next = NEAR_HARD}))
/* Modes: F27. */
WORLD_TEST_OF(burst_over_the_counters_end,
              burst_over_the_edge(&(struct root){.path = "/burst-end", .next = NEAR_END}))

/* --- what keeps a path from being renewed ----------------------------------------------------- */

/* A lock that fails, and the detail says what stands in the way of the renewal. */
static void check_blocked(struct zkl_mutex *mutex, const char *root, const char *named)
{
    check_num(zkl_mutex_lock(mutex), ==, ZKL_EEXHAUSTED);
    if (strstr(zkl_error_detail(), named) == NULL || strstr(zkl_error_detail(), root) == NULL)
        fail_msg("%s", zkl_error_detail());
    check_num(zkl_mutex_trylock(mutex), ==, ZKL_EEXHAUSTED);
}

/* A stranger's child in an otherwise empty exhausted root, and a parent that denies DELETE or CREATE,
 * are named instead of waited for, also by a try; the root stays; once they are out of the way the same
 * call succeeds. */
WORLD_TEST(what_blocks_the_renewal_is_named)
{
    static const struct wire_acl no_delete[] = {{31 & ~8, "world", "anyone"}};
    static const struct wire_acl no_create[] = {{31 & ~4, "world", "anyone"}};
    struct wire *w = prepared();

    check_ok(wire_create(w, "/blocked/stranger", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_set_acl(w, "/denied", no_delete, 1));
    struct zkl_client *client = world_direct(SESSION_MS);
    for (int i = BLOCKED; i < BLOCKED + 3; i++) {
        struct zkl_mutex *mutex = world_mutex(client, roots[i].path);
        let_guard_go(w, roots[i].path);
        check_blocked(mutex, roots[i].path, i == BLOCKED ? "stranger" : "parent");
        if (i != BLOCKED) {
            check_ok(wire_set_acl(w, "/denied", no_create, 1));
            check_blocked(mutex, roots[i].path, "parent");
        }
        check_num(fault_children(w, roots[i].path), ==, i == BLOCKED);
        check_wait(fault_contenders(client) == 0, WAIT_MS);
        if (i == BLOCKED)
            check_ok(wire_delete(w, "/blocked/stranger", -1));
        else
            check_ok(wire_set_acl(w, "/denied", open_acl, 1));
        check_ok(zkl_mutex_lock(mutex));
        check_ok(zkl_mutex_unlock(mutex));
        check_ok(wire_set_acl(w, "/denied", no_delete, 1));
    }
    fault_check_rest(client, w, "/blocked", WAIT_MS);
    check_num(fault_server_watches(client), ==, 0);
}

/* --- waits at an exhausted root --------------------------------------------------------------- */

/* Nothing of this client is at the root, but the guard and what it says, nor inside the client. */
static void check_withdrawn(struct zkl_client *client, struct wire *w, const char *path, int others)
{
    check_wait(fault_contenders(client) == 0, WAIT_MS);
    check_wait(fault_watches(client) == 0 && fault_calls(client) == 0, WAIT_MS);
    check_num(fault_children(w, path), ==, others);
    check_num(fault_server_watches(client), ==, 0);
}

/* At one where somebody else is a try says busy, and at an empty one it renews the path. */
WORLD_TEST(waits_at_an_exhausted_root_leave_nothing)
{
    struct wire *w = prepared();
    struct actor *a = world_actor();
    struct zkl_client *client = world_direct(SESSION_MS);

    for (int i = WAITS; i < WAITS + 2; i++) {
        struct zkl_mutex *mutex = world_mutex(client, roots[i].path);
        for (int n = 0; n < test_length(100, 5); n++) {
            check_num(zkl_mutex_trylock(mutex), ==, ZKL_EBUSY);
            check_num(zkl_mutex_lock_for(mutex, 20 + n % 7), ==, ZKL_ETIMEDOUT);
            struct zkl_cancel *cancel = world_cancel();
            act_begin(a, act_lock_cancel, mutex, cancel);
            check_wait(fault_watches(client) == 1, WAIT_MS);
            zkl_cancel_set(cancel);
            check_num(act_end(a, WAIT_MS), ==, ZKL_ECANCELED);
            check_withdrawn(client, w, roots[i].path, 1);
        }
        let_guard_go(w, roots[i].path);
        check_ok(zkl_mutex_trylock(mutex));
        check_ok(zkl_mutex_unlock(mutex));
        check_withdrawn(client, w, roots[i].path, 0);
    }
}

/* Of another library, also if our session ends meanwhile; the last of its children is as good as the
 * first, which is its hold. */
WORLD_TEST(strangers_number_is_waited_for)
{
    const char *path = roots[CURATOR].path;
    struct wire *w = prepared();
    struct actor *a = world_actor();
    char first[160], second[160];

    struct zkl_client *client = world_direct(SESSION_MS);
    struct zkl_mutex *mutex = world_mutex(client, path);
    check_ok(wire_create(w, "/curator/_c_22222222-0000-4000-8000-000000000000-lock-", "",
                         WIRE_EPHEMERAL_SEQUENTIAL, first, sizeof first));
    check_ok(wire_create(w, "/curator/_c_33333333-0000-4000-8000-000000000000-lock-", "",
                         WIRE_EPHEMERAL_SEQUENTIAL, second, sizeof second));
    let_guard_go(w, path);
    act_begin(a, act_lock, mutex, NULL);
    check_wait(fault_watches(client) == 1 && fault_children(w, path) == 2, WAIT_MS);
    fault_renew_session(client);
    check_wait(fault_watches(client) == 1 && fault_children(w, path) == 2, WAIT_MS);
    check_ok(wire_delete(w, first, -1));
    check_num(zkl_mutex_trylock(mutex), ==, ZKL_EBUSY);
    check_true(act_busy(a));
    check_ok(wire_delete(w, second, -1));
    check_ok(act_end(a, WAIT_MS));
    check_num(act_do(a, act_window, mutex, NULL), >, 0);
    check_ok(act_do(a, act_unlock, mutex, NULL));
    check_withdrawn(client, w, path, 0);
}

static void check_all(struct wire *w, const char *exhausted, int before, int there, int behind)
{
    check_wait(fault_children(w, "/alpha") == before && fault_children(w, exhausted) == there &&
                   fault_children(w, "/zeta") == behind,
               WAIT_MS);
}

/* As for a member that somebody holds: what is before it is held, nothing is queued behind it, a try and a deadline leave
 * nothing, and all are had once the root is a new one. */
WORLD_TEST(a_multi_lock_waits_at_an_exhausted_root)
{
    struct wire *w = prepared();
    struct actor *a = world_actor();
    struct zkl_client *client = world_direct(SESSION_MS);

    struct zkl_mutex *before = world_mutex(client, "/alpha"),
                     *behind = world_mutex(client, "/zeta");
    for (int i = MEMBERS; i < MEMBERS + 2; i++) {
        const char *path = roots[i].path;
        struct zkl_mutex *mutex = world_mutex(client, path);
        const struct zkl_member members[] = {zkl_member_mutex(behind), zkl_member_mutex(mutex),
                                             zkl_member_mutex(before)};
        struct zkl_multi *multi = world_multi(client, members, 3);
        check_num(zkl_multi_trylock(multi), ==, ZKL_EBUSY);
        check_num(zkl_multi_lock_for(multi, 100), ==, ZKL_ETIMEDOUT);
        check_withdrawn(client, w, path, 1);
        check_all(w, path, 0, 1, 0);
        act_begin(a, act_multi_lock, NULL, multi);
        check_all(w, path, 1, 1, 0);
        let_guard_go(w, path);
        check_ok(act_end(a, WAIT_MS));
        check_all(w, path, 1, 1, 1);
        check_ok(act_do(a, act_multi_unlock, NULL, multi));
        check_all(w, path, 0, 0, 0);
    }
}

FAULT_MAIN(options.no_digest = true)
