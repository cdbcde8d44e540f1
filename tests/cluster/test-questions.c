/* SPDX-License-Identifier: Apache-2.0 */
/* Questions: the calls that answer with yes or no, a count, a time, a token or a state, and that a
 * program uses as conditions. After a wrong call each answers 0, and zkl_error_detail() says why.
 * Otherwise the detail is empty. tests/lib/called.py finds them: a header lists no codes for them.
 * With NULL: cluster/input. */
#include "check_error.h"
#include "goods.h"

#include <limits.h>

static struct goods g;

/* The next one, and a detail that is not its own. */
static const struct call *next_question(int *i)
{
    check_num(zkl_mutex_lock(NULL), ==, ZKL_EINVAL);
    for (; *i < CALLED_COUNT; ++*i) {
        const struct call *q = &called_calls[*i];
        if (q->answer == ANSWERS_QUESTION && call_is_of_client(q))
            return &called_calls[(*i)++];
    }
    return NULL;
}

/* Those whose names have this part: none is a yes, and each says why. */
static void check_wrong(unsigned nulls, const char *part, const char *how)
{
    int asked = 0;
    const struct call *q;

    for (int i = 0; (q = next_question(&i)) != NULL;) {
        if (!call_has(q, part))
            continue;
        asked++;
        int64_t said = goods_call(&g, q, nulls & q->pointers);
        if (said != 0 || strstr(zkl_error_detail(), q->name) == NULL)
            fail_msg("%s, called %s: %lld: %s", q->name, how, (long long)said, zkl_error_detail());
    }
    check_num(asked, >, 0);
}

/* Another client has asked for the mutex, which counts after a close too; what waits is refused then. */
static void check_answers(bool closed)
{
    const struct call *q;
    int asked = 0;

    for (int i = 0; (q = next_question(&i)) != NULL; asked++) {
        int64_t said = goods_call(&g, q, 0);
        bool refused = closed && (call_ends(q, "_waiting") || call_ends(q, "_session_id"));
        bool yes = closed ? goods_due(q, AFTER_CLOSE) == 1 || call_ends(q, "mutex_revoke_requested")
                          : !call_ends(q, "permit_revoke_requested");
        const char *why = zkl_error_detail();
        if (said < 0 || (said > 0) != yes)
            fail_msg("%s says %lld, not %d", q->name, (long long)said, yes);
        if (refused ? strstr(why, zkl_strerror(ZKL_ECLOSED)) == NULL : why[0] != '\0')
            fail_msg("%s says why: %s", q->name, why);
    }
    check_num(asked, >=, 20);
}

/* --- what is held and waited for --------------------------------------------------------------- */

struct scene {
    struct actor *of_mutex, *of_semaphore;
    struct completion done;
};

static int acquire_both(void *semaphore)
{
    struct zkl_permit *permits[2];
    return zkl_semaphore_acquire(semaphore, 2, NULL, permits);
}

static void scene_begin(struct scene *s)
{
    struct zkl_client_options options = cluster_options();

    *s = (struct scene){.of_mutex = world_actor(), .of_semaphore = world_actor()};
    goods_make(&g, &options, world_client(), cluster_path("asked"));
    goods_hold(&g);
    g.need_ms = 1;
    ask_for(g.mutex);
    check_wait(zkl_mutex_revoke_requested(g.mutex) == 1, WAIT_MS);
    check_ok(zkl_mutex_acquire_async(g.owner, g.mutex, NULL, NULL, note_completion, &s->done,
                                     &g.asked_op));
    actor_begin(s->of_mutex, do_cycle, g.mutex);
    actor_begin(s->of_semaphore, acquire_both, g.semaphore);
    check_wait(zkl_mutex_waiting(g.mutex, NULL) == 2, WAIT_MS);
    check_wait(zkl_semaphore_waiting(g.semaphore, NULL) == 1, WAIT_MS);
}

static void scene_close(struct scene *s)
{
    check_closed(zkl_client_close(g.client, WAIT_MS));
    check_num(actor_result(s->of_mutex), ==, ZKL_ECLOSED);
    check_num(actor_result(s->of_semaphore), ==, ZKL_ECLOSED);
    check_num(completion_code(&s->done), ==, ZKL_ECLOSED);
}

static void scene_end(void)
{
    check_num(zkl_permit_release(g.permit), ==, ZKL_ELOST);
    check_num(zkl_multi_unlock(g.multi, NULL), ==, ZKL_ELOST);
    goods_free(&g);
}

/* --- the tests --------------------------------------------------------------------------------- */

WORLD_TEST(no_question_is_a_yes_with_null)
{
    static const int codes[] = {1, INT_MIN, INT_MAX};

    g = (struct goods){.need_ms = 1};
    check_wrong(~0u, "", "with NULL");
    g.need_ms = -1;
    check_wrong(~0u, "", "with NULL and a bad number");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        check_num(zkl_error_is_retryable(codes[i]), ==, 0);
        check_num(zkl_error_is_lost(codes[i]), ==, 0);
    }
}

/* Without its size. */
static void check_bad_standing(void)
{
    struct zkl_standing without = {.size = 0};

    check_num(zkl_mutex_waiting(g.mutex, &without), ==, 0);
    check_true(strstr(zkl_error_detail(), "zkl_mutex_waiting") != NULL);
    check_num(zkl_semaphore_waiting(g.semaphore, &without), ==, 0);
    check_true(strstr(zkl_error_detail(), "zkl_semaphore_waiting") != NULL);
    check_num(zkl_op_waiting(g.client, g.asked_op, &without), ==, 0);
    check_true(strstr(zkl_error_detail(), "zkl_op_waiting") != NULL);
}

/* Goal: each question has its answer while all is well. With a number out of range, or a standing
 * without its size, no answer is a yes. After close each answers as for a lost hold, and no answer
 * is negative. */
WORLD_TEST(questions_answer_and_refuse)
{
    static const int64_t bad_needs[] = {-1, INT64_MIN, INT32_MIN, ZKL_TIMEOUT_MAX_MS + 1,
                                        INT64_MAX};
    struct scene s;

    scene_begin(&s);
    check_answers(false);
    for (size_t i = 0; i < sizeof bad_needs / sizeof *bad_needs; i++) {
        g.need_ms = bad_needs[i];
        check_wrong(0, "_still_held", "with a bad number");
    }
    g.need_ms = 1;
    check_bad_standing();
    /* What does not exist is a plain no. */
    check_num(zkl_op_waiting(g.client, UINT64_MAX, NULL), ==, 0);
    check_num(zkl_multi_token(g.multi, 2), ==, 0);
    check_num(zkl_multi_token(g.multi, SIZE_MAX), ==, 0);
    check_num(zkl_mutex_still_held(g.mutex, ZKL_TIMEOUT_MAX_MS), ==, 0);
    scene_close(&s);
    check_answers(true);
    scene_end();
}

/* In the child: how many answers are wrong. */
static int ask_in_child(void *unused)
{
    (void)unused;
    int wrong = 0;
    const struct call *q;

    for (int i = 0; (q = next_question(&i)) != NULL;) {
        const char *what = goods_wrong(q, IN_A_CHILD, goods_call(&g, q, 0));
        if (what != NULL)
            fprintf(stderr, "%s in a child: %s\n", q->name, what);
        wrong += what != NULL;
    }
    return wrong;
}

/* Modes: F53. */
WORLD_TEST(no_question_is_a_yes_in_a_child)
{
    struct scene s;

    skip_under_gcc_tsan();
    skip_under_asan();
    scene_begin(&s);
    check_ok(in_child(ask_in_child, NULL));
    check_answers(false);
    scene_close(&s);
    scene_end();
}

/* Goal: the session is the owner of the client's nodes on the server, and the server is the one
 * that the link leads to. Method: the test reads the owner of a lock's node. A proxy with an
 * address of its own refuses the client and accepts it again. */
WORLD_TEST(session_and_server_are_told)
{
    const char *path = cluster_path("session");
    struct proxy *proxy;
    struct zkl_client *client = world_client_through(&proxy, SESSION_MS);
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct wire_stat stat;
    char node[400], to[80], cut[6];

    check_ok(zkl_mutex_lock(mutex));
    cluster_child(path, 0, node, sizeof node);
    check_ok(wire_exists(raw, node, &stat));
    check_num(zkl_client_session_id(client), ==, stat.ephemeral_owner);
    check_text(zkl_error_detail(), "");
    check_num(zkl_client_server(client, to, sizeof to), ==, strlen(proxy_address(proxy)));
    check_text(to, proxy_address(proxy));
    check_num(zkl_client_server(client, cut, sizeof cut), ==, strlen(proxy_address(proxy)));
    check_num(strlen(cut), ==, sizeof cut - 1);
    lose_link(proxy);
    check_wait(zkl_client_server(client, to, sizeof to) == ZKL_EDISCONNECTED, WAIT_MS);
    check_num(zkl_client_session_id(client), ==, stat.ephemeral_owner);
    check_ok(proxy_refuse(proxy, false));
    check_wait(zkl_client_server(client, to, sizeof to) > 0, WAIT_MS);
    check_ok(zkl_mutex_unlock(mutex));
    check_fails(zkl_client_server(client, NULL, 8), ZKL_EINVAL, "buf");
    check_closed(zkl_client_close(client, WAIT_MS));
    check_num(zkl_client_session_id(client), ==, 0);
    check_detail(ZKL_ECLOSED, "zkl_client_session_id");
    check_num(zkl_client_server(client, NULL, 0), ==, ZKL_ECLOSED);
}
