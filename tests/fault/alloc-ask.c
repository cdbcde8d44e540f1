/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a lock, asking for it, and taking it away. */
#include "alloc.h"

static bool look(struct fixture *s, const char *at, enum zkl_lock_kind kind, size_t entries, int n,
                 int count)
{
    const struct zkl_inspection *seen = NULL;

    alloc_arm(n, count);
    int rc = zkl_inspect(s->client, at, WAIT_MS, &seen);
    bool struck = alloc_disarm_after(rc);
    check_true((seen != NULL) == (rc == 0));
    if (rc == 0) {
        check_num(seen->kind, ==, kind);
        check_num(seen->count, ==, entries);
    }
    zkl_inspection_free(seen);
    return struck;
}

static bool look_at_a_mutex(struct fixture *s, int n, int count)
{
    alloc_stand_before(s);
    bool struck = look(s, alloc_path, ZKL_LOCK_KIND_MUTEX, 1, n, count);
    alloc_step_aside(s);
    return alloc_works(s, struck);
}

static bool look_at_a_semaphore(struct fixture *s, int n, int count)
{
    return look(s, "/alloc/sem", ZKL_LOCK_KIND_SEMAPHORE, 3, n, count);
}

static void make_node(struct fixture *s, const char *node, const char *data)
{
    check_ok(wire_create(s->wire, node, data, WIRE_PERSISTENT, NULL, 0));
}

/* Each request for memory of a look is refused in turn: all is seen, or nothing is given. */
ALLOC_TEST(no_memory_while_looking)
{
    make_node(s, "/alloc/sem", "");
    make_node(s, "/alloc/sem/locks", "");
    make_node(s, "/alloc/sem/leases", "2");
    make_node(s, "/alloc/sem/leases/lease-0000000001", "web1 42 4711");
    make_node(s, "/alloc/sem/locks/lock-0000000001", "somebody");
    make_node(s, "/alloc/sem/note", "");
    alloc_play(s, look_at_a_mutex);
    alloc_play(s, look_at_a_semaphore);
}

static int act_revoke(struct zkl_mutex *unused, void *fixture)
{
    struct fixture *s = fixture;
    struct zkl_wait wait = ZKL_WAIT_INIT;

    (void)unused;
    wait.cancel = s->cancel;
    return zkl_revoke(s->client, s->before, &wait, 0);
}

static bool ask_and_wait(struct fixture *s, int n, int count)
{
    alloc_stand_before(s);
    check_ok(zkl_cancel_new(&s->cancel));
    alloc_arm(n, count);
    act_begin(s->actor, act_revoke, NULL, s);
    check_wait(!act_busy(s->actor) || fault_watches(s->client) == 1, WAIT_MS);
    alloc_step_aside(s);
    int rc = act_end(s->actor, WAIT_MS);
    bool struck = alloc_disarm_after(rc);
    zkl_cancel_free(s->cancel);
    return alloc_works(s, struck);
}

/* So are those of asking a holder to release. */
ALLOC_SCENE(no_memory_while_asking, ask_and_wait)

static bool break_it(struct fixture *s, int n, int count)
{
    alloc_stand_before(s);
    alloc_arm(n, count);
    int rc = zkl_break(s->client, s->before, 0, 0, WAIT_MS);
    bool struck = alloc_disarm_after(rc);
    if (rc != 0)
        alloc_step_aside(s);
    return alloc_works(s, struck);
}

/* And those of deleting a holder's node: it is deleted, or not. */
ALLOC_SCENE(no_memory_while_breaking, break_it)
