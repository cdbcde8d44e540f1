/* SPDX-License-Identifier: Apache-2.0 */
/* The nth request for memory is refused, for every n, in every public call. That it is every one is
 * checked: calls are counted while requests are refused. */
#include "alloc.h"

#include <string.h>

/* --- each call -------------------------------------------------------------------------------- */

static struct goods goods;
static const struct call *call;
static int64_t well; /* what the call says if none is refused, and what undoing it then says */
static int well_undone;

static void set_up_goods(struct fixture *s)
{
    struct zkl_client_options options =
        fault_client_options(zks_connect_string(server), SESSION_MS);

    goods_make(&goods, &options, s->client, "/alloc/goods");
}

static int64_t sign(int64_t said)
{
    return said > 0 ? 1 : said;
}

static bool make_the_call(struct fixture *s, int n, int count)
{
    static const char *const paths[] = {"/alloc/goods-mutex", "/alloc/goods-rwlock",
                                        "/alloc/goods-semaphore/leases",
                                        "/alloc/goods-semaphore/locks", "/alloc/one/leases"};

    int64_t session = zkl_client_session_id(s->client);

    alloc_arm(n, count);
    int64_t said = goods_call(&goods, call, 0);
    bool made = said < 0 && /* else an operation may be about to make it */
                memcmp(&goods.made, &(typeof(goods.made)){0}, sizeof goods.made) != 0;
    int undone = goods_undo(&goods, call, said);
    bool struck = alloc_disarm();
    if (sign(said) != sign(well) &&
        !(struck && alloc_refused((int)said) && call_says(call, (int)said) && !made))
        fail_msg("%s: %lld, not %lld or a code for it, of place %d", call->name, (long long)said,
                 (long long)well, n);
    if (said == well && undone != well_undone &&
        !(struck &&
          (is_unanswered(undone) || (call_ends(call, "_async") && alloc_refused(undone)))))
        fail_msg("%s: %d in the end, of place %d", call->name, undone, n);
    if (call_ends(call, "zkl_mutex_new"))
        check_num(said, ==, struck ? ZKL_ENOMEM : 0);
    check_num(zkl_client_session_id(s->client), ==, session);

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        fault_check_rest(s->client, s->wire, paths[i], 3000);
    return alloc_works(s, struck);
}

/* Either its header lists ZKL_ENOMEM, and each request is refused in turn, or it makes none. */
static void play_the_call(struct fixture *s)
{
    bool asks = call_says(call, ZKL_ENOMEM) && !call_ends(call, "_unlock_async");

    goods.wait.lease_ms = call_has(call, "_acquire") ? QUIET_MS : 0;

    alloc_arm(1, asks ? 0 : 1000000);
    well = goods_call(&goods, call, 0);
    int asked = alloc_asked_here();
    alloc_disarm();
    well_undone = goods_undo(&goods, call, well);
    check_true(well >= 0 || well == goods_due(call, IN_ANOTHER_THREAD));
    print_message("  %s\n", call->name);

    if (asks)
        alloc_play(s, make_the_call);
    else
        check_num(asked, ==, 0);
}

/* Those that end something have scenes of their own. */
static bool has_a_scene(const struct call *each)
{
    return goods_leave_out(each, BY_THE_HOLDER) || call_ends(each, "_free") ||
           call_ends(each, "_open") || call_ends(each, "_close_async") ||
           call_ends(each, "_release_async");
}

static void play_with_another_mutex(struct fixture *s, struct zkl_mutex *other)
{
    struct zkl_mutex *mutex = goods.mutex;

    goods.mutex = other;
    play_the_call(s);
    goods.mutex = mutex;
}

/* The operation's deadline has passed. */
static void play_over(struct fixture *s)
{
    goods.wait.deadline_ns = 1;
    play_the_call(s);
    check_num(well_undone, ==, ZKL_ETIMEDOUT);
    goods.wait.deadline_ns = ZKL_NO_DEADLINE;
}

/* Memory runs out in each call, and in the one that undoes it: the call does what it should or says so, by a code that its
 * header lists, and nothing is left. */
ALLOC_TEST(no_memory_for_each_call)
{
    struct zkl_mutex *one = world_semaphore_mutex(s->client, "/alloc/one");

    set_up_goods(s);
    goods.count = 2;
    for (int i = 0; i < CALLED_COUNT; i++) {
        call = &called_calls[i];
        if (has_a_scene(call) || call_is_of(call, ARG_PERMIT))
            continue;
        play_the_call(s);
        if (zkl_cancel_is_set(goods.cancel) != 0) {
            zkl_cancel_free(goods.cancel);
            check_ok(zkl_cancel_new(&goods.cancel));
        }
        if (call_has(call, "mutex_") && (call_has(call, "_lock") || call_has(call, "_acquire")))
            play_with_another_mutex(s, one);
        if (call_ends(call, "_acquire_async"))
            play_over(s);
    }

    goods_free(&goods);
}

/* Calls that only look, set or free something, and a re-entry, ask for no memory at all. */
ALLOC_TEST(these_calls_need_no_memory)
{
    set_up_goods(s);
    goods_hold(&goods);
    check_ok(zkl_inspect(s->client, alloc_path, WAIT_MS, &goods.seen));
    for (int i = 0; i < CALLED_COUNT; i++) {
        call = &called_calls[i];
        bool again = call_is_of(call, ARG_MUTEX) && call_says(call, ZKL_ENOMEM);
        if (goods_leave_out(call, BY_THE_HOLDER) || call_is_of(call, ARG_OWNER) ||
            call_ends(call, "cancel_free") || (call_says(call, ZKL_ENOMEM) && !again))
            continue;
        alloc_arm(1, 1000000);
        int64_t said = goods_call(&goods, call, 0);
        int asked = alloc_asked_here();
        alloc_disarm();
        const char *wrong = goods_wrong(call, BY_THE_HOLDER, said);
        if (asked > 0 || wrong != NULL)
            fail_msg("%s asked %d times: %lld, %s", call->name, asked, (long long)said, wrong);
        check_ok(goods_undo(&goods, call, said));
    }
    goods_let_go(&goods);
    alloc_arm(1, 1000000);
    goods_free(&goods);
    check_num(alloc_asked_here(), ==, 0);
    alloc_disarm();
}

/* Every function that the library exports was called while requests were refused, in one of the
 * tests of this program: alone this one fails. */
TEST(that_was_every_call)
{
    check_num(called_missing(), ==, 0);
}
