/* SPDX-License-Identifier: Apache-2.0
 * A reader's node that stays for all of its handle, on a script: when its gate is open, when it
 * closes, when the node is deleted. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/read_cache.h"
#include "script.h"

#define OURS "S1:7"
#define OWN "/r/G1-D__0000000007" /* as script.c shortens a reader's name */

static struct zkl_read_cache cache;
static atomic_llong fresh;
static struct script *s;
static int dropped_count;

static struct zkl_time now(void)
{
    return (struct zkl_time){s->now_ms * 1000000, (s->now_ms + 5000000) * 1000000};
}

static void dropped(struct zkl_read_cache *c, struct zkl_contender *contender)
{
    assert_ptr_equal(c, &cache);
    assert_null(contender->machine.lock_request.read_cache);
    dropped_count++;
}

/* A reader comes in; false: it has to queue. */
static bool comes_in(void)
{
    atomic_store(&fresh, zkl_proof_fresh_until(&s->core.session.proof));
    if (now().boot_ns < zkl_read_gate_enter(&cache.gate, &fresh))
        return true;
    if (zkl_read_gate_leave(&cache.gate))
        zkl_read_cache_left(&s->core, now(), &cache);
    return false;
}

static void goes_out(void)
{
    if (zkl_read_gate_leave(&cache.gate))
        zkl_read_cache_left(&s->core, now(), &cache);
}

/* The first reader's node is kept, and others were looked for. */
static void begin(int64_t age_ms, const char *children)
{
    s = script_connected();
    dropped_count = 0;
    cache = (struct zkl_read_cache){.age_ns = age_ms * 1000000, .dropped = dropped};
    script_read(s, "/r");
    script_created(s, 7);
    script_listed(s, OURS);
    assert_true(zkl_read_cache_open(&s->core, now(), &cache, script_contender(s, 1)));
    assert_false(comes_in()); /* no list has shown it yet */
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, children);
    script_forget(s);
}

static void answer_all(void)
{
    enum zkl_request_kind kind;
    while (script_next(s, &kind))
        script_answer(s, kind, ZKL_ANSWER_OK);
}

/* Whatever is asked meanwhile is answered. */
static void spend(int ms)
{
    for (int i = 0; i < 8; i++) {
        script_at(s, s->now_ms + ms / 8);
        answer_all();
    }
}

/* Nothing is left of it. */
static void end(void)
{
    answer_all();
    assert_int_equal(cache.state, ZKL_READ_CACHE_EMPTY);
    assert_int_equal(dropped_count, 1);
    zkl_read_cache_fini(&s->core, now(), &cache);
    script_free(s);
}

/* --- coming and going ----------------------------------------------------------------------- */

/* Goal: in and out cost nothing, and closing waits for the last one. */
TEST(readers_come_and_go)
{
    begin(60000, OURS);
    assert_true(comes_in());
    assert_true(comes_in());
    goes_out();
    script_expect(s, "");
    zkl_read_cache_close(&s->core, now(), &cache);
    assert_int_equal(cache.state, ZKL_READ_CACHE_CLOSING);
    assert_false(comes_in());
    goes_out();
    assert_int_equal(dropped_count, 0);
    assert_false(script_has(s, "delete"));
    goes_out(); /* the first one */
    assert_true(script_has(s, "delete " OWN));
    end();
}

/* Goal: another reader closes nothing, a writer does, also one that comes later, and one that the first list shows. */
TEST(a_writer_closes_it)
{
    begin(60000, OURS " s2:8");
    assert_true(comes_in());
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    assert_true(comes_in());
    script_lock_path_listed(s, 50, OURS " s2:8 s3:9");
    assert_int_equal(cache.state, ZKL_READ_CACHE_OPEN);
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    script_lock_path_listed(s, 50, OURS " w4:10");
    assert_int_equal(cache.state, ZKL_READ_CACHE_CLOSING);
    for (int i = 0; i < 3; i++)
        goes_out();
    end();

    begin(60000, OURS " 2:8"); /* a mutex of the same path, as Kazoo's writers are called */
    assert_int_equal(cache.state, ZKL_READ_CACHE_CLOSING);
    goes_out();
    end();
}

/* Goal: at most a fixed number keep one; a reader with more before it does not. */
TEST(the_33rd_keeps_none)
{
    char all[600] = OURS;
    for (int i = 0; i < 31; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), " S%d:%d", 40 + i, 1 + i % 5);
    begin(60000, all);
    assert_int_equal(cache.state, ZKL_READ_CACHE_OPEN);
    strcat(all, " S80:8"); /* behind ours: it is the one to refrain */
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    script_lock_path_listed(s, 50, all);
    assert_int_equal(cache.state, ZKL_READ_CACHE_OPEN);
    strcat(all, " S81:6");
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    script_lock_path_listed(s, 50, all);
    assert_int_equal(cache.state, ZKL_READ_CACHE_CLOSING);
    goes_out();
    end();
}

/* Goal: a reader that was one too many does not try with each reader that comes, but again when a
 * session timeout is over; a writer's turn says nothing of that. */
TEST(one_too_many_waits)
{
    char all[600] = OURS;
    for (int i = 0; i < 32; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), " S%d:%d", 40 + i, 1 + i % 5);
    begin(60000, all);
    assert_int_equal(cache.state, ZKL_READ_CACHE_CLOSING);
    goes_out();
    answer_all();
    assert_int_equal(dropped_count, 1);
    script_read(s, "/r");
    script_created(s, 8);
    script_listed(s, "S2:8");
    spend(SCRIPT_TIMEOUT_MS / 2);
    assert_false(zkl_read_cache_may_begin(&cache, now()));
    assert_false(zkl_read_cache_open(&s->core, now(), &cache, script_contender(s, 2)));
    spend(SCRIPT_TIMEOUT_MS / 2 + 8);
    assert_true(zkl_read_cache_may_begin(&cache, now()));
    assert_true(zkl_read_cache_open(&s->core, now(), &cache, script_contender(s, 2)));
    script_lock_path_listed(s, 50, "S2:8 w3:9");
    assert_int_equal(cache.state, ZKL_READ_CACHE_CLOSING);
    goes_out();
    answer_all();
    assert_true(zkl_read_cache_may_begin(&cache, now()));
    zkl_read_cache_fini(&s->core, now(), &cache);
    script_free(s);
}

/* --- what is not sure -------------------------------------------------------------------------- */

/* Goal: with the link lost no reader enters, nor over the next one before a list; a reader that is
 * in stays. */
TEST(no_entry_before_a_list_on_the_new_link)
{
    begin(60000, OURS);
    assert_true(comes_in());
    script_down(s);
    assert_false(comes_in());
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    assert_false(script_contender(s, 1)->machine.suspect);
    assert_false(comes_in());
    script_lock_path_listed(s, 50, OURS);
    assert_true(comes_in());
    for (int i = 0; i < 3; i++)
        goes_out();
    zkl_read_cache_close(&s->core, now(), &cache);
    end();
}

/* Goal: a list each quarter of the timeout; without an answer no reader enters after half of it. */
TEST(lists_go_on)
{
    begin(60000, OURS);
    script_at(s, s->now_ms + SCRIPT_TIMEOUT_MS / 4);
    assert_true(script_has(s, "list root /r"));
    assert_true(comes_in());
    goes_out();
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_at(s, s->now_ms + SCRIPT_TIMEOUT_MS / 4 - 10);
    assert_true(comes_in());
    goes_out();
    script_at(s, s->now_ms + 10);
    assert_false(comes_in());
    script_lock_path_listed(s, 50, OURS);
    assert_true(comes_in());
    goes_out();
    goes_out();
    zkl_read_cache_close(&s->core, now(), &cache);
    end();
}

/* Goal: a list is as old as its request, also for a node that comes while it is out. Found by the simulation (seed
 * 92379). */
TEST(a_shared_list_is_as_old)
{
    begin(60000, OURS);
    goes_out();
    script_read(s, "/r");
    script_created(s, 8);
    script_listed(s, OURS " S2:8");
    script_at(s, s->now_ms + SCRIPT_TIMEOUT_MS / 4);
    assert_true(script_has(s, "list root /r"));
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_at(s, s->now_ms + SCRIPT_TIMEOUT_MS / 4);
    zkl_read_cache_close(&s->core, now(), &cache);
    assert_true(zkl_read_cache_open(&s->core, now(), &cache, script_contender(s, 2)));
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, "S2:8");
    assert_true(comes_in());
    goes_out();
    script_at(s, s->now_ms + SCRIPT_TIMEOUT_MS / 4);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    assert_false(comes_in());
    goes_out();
    zkl_read_cache_close(&s->core, now(), &cache);
    answer_all();
    assert_int_equal(cache.state, ZKL_READ_CACHE_EMPTY);
    zkl_read_cache_fini(&s->core, now(), &cache);
    script_free(s);
}

/* Goal: it ends with its handle, also if the last one out has not notified the core yet. */
TEST(it_ends_under_the_last_one_out)
{
    begin(60000, OURS);
    zkl_read_cache_close(&s->core, now(), &cache);
    assert_true(zkl_read_gate_leave(&cache.gate));
    zkl_read_cache_fini(&s->core, now(), &cache);
    assert_int_equal(dropped_count, 1);
    zkl_read_cache_left(&s->core, now(), &cache); /* late */
    answer_all();
    script_free(s);
}

/* Goal: a node does not get older than it may, without a reader in it and however busy. */
TEST(it_has_an_age)
{
    begin(200, OURS);
    goes_out();
    script_at(s, s->now_ms + 199);
    assert_int_equal(cache.state, ZKL_READ_CACHE_OPEN);
    script_at(s, s->now_ms + 1);
    assert_true(script_has(s, "delete"));
    end();

    begin(200, OURS);
    assert_true(comes_in());
    goes_out();
    script_sleep_until(s, s->now_ms + 200);
    script_at(s, s->now_ms + 1);
    assert_int_equal(cache.state, ZKL_READ_CACHE_CLOSING);
    goes_out();
    end();
}

/* Goal: a node that is deleted, or whose release is requested, is dropped when the last one is
 * out. */
TEST(a_lost_node_is_left)
{
    begin(60000, OURS);
    script_fired(s, OWN, ZKL_FIRED_DELETED);
    assert_int_equal(s->lost[0], 1);
    assert_false(comes_in());
    goes_out();
    end();

    begin(60000, OURS);
    goes_out();
    script_event(s, ZKL_SE_EXPIRED);
    assert_int_equal(cache.state, ZKL_READ_CACHE_EMPTY);
    end();
}

TEST(a_request_closes_it)
{
    begin(60000, OURS);
    script_fired(s, OWN, ZKL_FIRED_OTHER);
    script_reply(s, ZKL_REQ_WATCH,
                 (struct zkl_reply){.data = "__REVOKE__", .data_size = strlen("__REVOKE__")});
    assert_false(comes_in());
    goes_out();
    end();
}

/* --- whose ------------------------------------------------------------------------------------- */

/* Goal: one at a time; and a handle that keeps none has none. */
TEST(one_node_of_a_handle)
{
    begin(60000, OURS);
    script_read(s, "/r");
    script_created(s, 8);
    script_listed(s, OURS " S2:8");
    assert_false(zkl_read_cache_open(&s->core, now(), &cache, script_contender(s, 2)));
    script_unlock(s, 2);
    answer_all();
    goes_out();
    cache.age_ns = 0;
    zkl_read_cache_close(&s->core, now(), &cache);
    zkl_read_cache_close(&s->core, now(), &cache);
    answer_all();
    script_read(s, "/r");
    script_created(s, 9);
    script_listed(s, "S3:9");
    assert_false(zkl_read_cache_open(&s->core, now(), &cache, script_contender(s, 3)));
    script_unlock(s, 3);
    end();
}

/* Goal: a writer's try asks for nodes that may have no holder, of however many readers; for others
 * it does not. */
TEST(a_try_queues_behind_readers)
{
    s = script_connected();
    script_write(s, "/r");
    script_listed(s, "S5:1 S6:2");
    assert_true(script_has(s, "create"));
    script_created(s, 7);
    script_listed(s, "S5:1 S6:2 w1:7");
    assert_true(zkl_contender_awaits_retained(&script_contender(s, 1)->machine));
    script_stop(s, 1, ZKL_EBUSY);
    answer_all();
    script_forget(s);
    script_write(s, "/r");
    script_listed(s, "S5:1 s6:2");
    assert_true(script_has(s, "EBUSY"));
    answer_all();
    script_free(s);
}

/* Goal: the table of states is what it says. */
TEST(states_have_names)
{
    for (int from = 0; from < ZKL_READ_CACHE_STATES; from++) {
        int follow = 0;
        for (int to = 0; to < ZKL_READ_CACHE_STATES; to++)
            follow += zkl_read_cache_may_move((enum zkl_read_cache_state)from,
                                              (enum zkl_read_cache_state)to);
        assert_int_equal(follow, 1);
        assert_string_equal(zkl_trace_state_name(ZKL_TRACE_CACHE, from),
                            zkl_read_cache_state_name((enum zkl_read_cache_state)from));
    }
}
