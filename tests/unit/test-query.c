/* SPDX-License-Identifier: Apache-2.0
 * Queries, on a script: sent, sent again, answered once, and nothing left of them. */
#include <string.h>

#include <zklock/zklock.h>

#include "script.h"

#define NODE "/r/G9-0000000007"

/* The node 7 of the ninth GUID, as the other side of a wait. */
static const char node[] = "/r/_c_09090909-0909-4909-8909-090909090909-lock-0000000007";

static struct zkl_query get(const char *path)
{
    return (struct zkl_query){.kind = ZKL_REQ_GET, .path = path};
}

static struct zkl_query set(bool once)
{
    return (struct zkl_query){
        .kind = ZKL_REQ_SET, .path = "/r", .data = "5", .flag = once, .version = 3, .once = once};
}

static struct zkl_query watch(int64_t czxid)
{
    return (struct zkl_query){.kind = ZKL_REQ_WATCH, .path = node, .czxid = czxid};
}

static void statted(struct script *s, int64_t czxid)
{
    script_reply(s, ZKL_REQ_STAT, (struct zkl_reply){.czxid = czxid});
}

/* A query that watches the node with the czxid 500, which is there. */
static struct script *watching(void)
{
    struct script *s = script_connected();
    script_ask(s, watch(500));
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    statted(s, 500);
    script_forget(s);
    return s;
}

/* Goal: what is asked goes out as it is and is answered once, in any order of the answers; requests
 * carry version and data. */
static void queries_are_asked_and_answered(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_ask(s, get("/r/a"));
    script_ask(s, set(true));
    script_ask(s, set(false));
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_LIST_LOCK_PATH, .path = "/r"});
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_SYNC, .path = "/r"});
    script_ask(
        s, (struct zkl_query){.kind = ZKL_REQ_DELETE, .path = "/r/a", .flag = true, .version = 0});
    script_reply(s, ZKL_REQ_SET, (struct zkl_reply){.answer = ZKL_ANSWER_NOTEMPTY});
    script_reply(s, ZKL_REQ_GET, (struct zkl_reply){.data = "textual", .data_size = 4});
    script_answer(s, ZKL_REQ_SET, ZKL_ANSWER_NOAUTH);
    script_lock_path_listed(s, 1000, "1:7");
    script_answer(s, ZKL_REQ_SYNC, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NONODE);
    script_expect(s, "  > get /r/a\n"
                     "  > set /r to 5 (version 3)\n"
                     "  > set /r to 5\n"
                     "  > list root /r\n"
                     "  > sync /r\n"
                     "  > delete /r/a (version 0)\n"
                     "  q2: not empty\n"
                     "  q1: OK text\n"
                     "  q3: no auth\n"
                     "  q4: OK\n"
                     "  q5: OK\n"
                     "  q6: no node\n");
    script_free(s);
}

/* Goal: without a link a query waits for it; one whose answer was lost is asked again with the next
 * one, each time. */
static void a_query_waits_for_the_link_and_is_asked_again(void **state)
{
    struct script *s = script_new();
    (void)state;
    script_ask(s, get("/r"));
    script_expect(s, "");
    script_up(s, SCRIPT_SESSION);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_down(s);
    script_ask(s, set(false));
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_SET, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_GET, ZKL_ANSWER_OK);
    script_expect(s, "[     0] session STARTING -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > get /r\n"
                     "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > get /r\n"
                     "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > get /r\n"
                     "  > set /r to 5\n"
                     "  q2: OK\n"
                     "  q1: OK\n");
    script_free(s);
}

/* Goal: what was asked together goes out in its order whenever it goes out: a read behind a sync shows no less than was
 * there before the two. Method: without a link; then the link breaks before the answers. */
static void queries_go_out_in_their_order(void **state)
{
    struct script *s = script_new();
    (void)state;
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_SYNC, .path = "/r"});
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_STAT, .path = "/r"});
    script_ask(s, get("/r"));
    for (int i = 0; i < 2; i++) {
        script_up(s, SCRIPT_SESSION);
        script_expect(s, i == 0 ? "[     0] session STARTING -> CONNECTED: connected\n"
                                  "  session: link up\n"
                                  "  > sync /r\n"
                                  "  > stat /r\n"
                                  "  > get /r\n"
                                : "[     0] session SUSPENDED -> CONNECTED: connected\n"
                                  "  session: link up\n"
                                  "  > sync /r\n"
                                  "  > stat /r\n"
                                  "  > get /r\n");
        script_down(s);
        script_forget(s);
    }
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_SYNC, ZKL_ANSWER_OK);
    statted(s, 500);
    script_answer(s, ZKL_REQ_GET, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a write that must not be repeated is not: the asker learns that its answer was lost, by a
 * lost link as by an expiry; one that had not been sent yet is sent. */
static void a_write_for_once_is_not_repeated(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_ask(s, set(true));
    script_forget(s);
    script_down(s);
    script_expect(s, "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "  q1: no answer\n");
    script_ask(s, set(true));
    script_expect(s, "");
    script_event(s, ZKL_SE_EXPIRED);
    script_forget(s);
    script_up(s, SCRIPT_SESSION + 1);
    script_expect(s, "[     0] session STARTING -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > set /r to 5 (version 3)\n");
    script_event(s, ZKL_SE_EXPIRED);
    assert_true(script_has(s, "  q2: no answer\n"));
    script_free(s);
}

/* Goal: what can't be sent for want of memory says so; what a handle refuses though the link is up
 * (its end is on the way) goes out after a while by itself. */
static void a_refused_query_says_so_or_goes_out_later(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->keepalives = true;
    s->refuse[ZKL_REQ_GET] = ZKL_ANSWER_NOMEM;
    script_ask(s, get("/r"));
    s->refuse[ZKL_REQ_GET] = ZKL_ANSWER_LINK;
    script_ask(s, get("/q"));
    script_at(s, 2 * ZKL_RETRY_MS);
    s->refuse[ZKL_REQ_GET] = ZKL_ANSWER_OK;
    script_expect(s, "  > get /r (refused: no memory)\n"
                     "  q1: no memory\n"
                     "  > get /q (refused: link)\n"
                     "  > keepalive /\n"
                     "  > get /q (refused: link)\n"
                     "  > keepalive /\n"
                     "  > get /q (refused: link)\n");
    script_at(s, 3 * ZKL_RETRY_MS);
    script_answer(s, ZKL_REQ_GET, ZKL_ANSWER_OK);
    assert_true(script_has(s, "  > get /q\n"));
    assert_true(script_has(s, "  q2: OK\n"));
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);
}

/* Goal: a watching query is answered when the node is deleted; a change of its data, or what is
 * reported as that, is read. */
static void a_watch_is_answered_when_the_node_is_gone(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_ask(s, watch(500));
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    statted(s, 500);
    script_fired(s, NODE, ZKL_FIRED_OTHER);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    statted(s, 500);
    script_fired(s, NODE, ZKL_FIRED_DELETED);
    script_expect(s, "  > watch " NODE "\n"
                     "  > stat " NODE "\n"
                     "  > watch " NODE "\n"
                     "  > stat " NODE "\n"
                     "  q1: no node\n");
    script_free(s);

    s = watching();
    script_fired(s, NODE, ZKL_FIRED_OTHER);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NONODE);
    script_expect(s, "  > watch " NODE "\n"
                     "  > stat " NODE "\n"
                     "  q1: no node\n");
    script_free(s);
}

/* Goal: it is over too when another node has the path, or when there was none at all; and when the
 * watch is denied, which the asker learns. */
static void a_watch_is_over_when_the_path_is_anothers(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_ask(s, watch(500));
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    statted(s, 501);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_ask(s, watch(0));
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NONODE);
    script_ask(s, watch(0));
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NOAUTH);
    script_expect(s, "  > watch " NODE "\n"
                     "  > stat " NODE "\n"
                     "  > unwatch " NODE "\n"
                     "  q1: no node\n"
                     "  > watch " NODE "\n"
                     "  > stat " NODE "\n"
                     "  q2: no node\n"
                     "  > watch " NODE "\n"
                     "  > stat " NODE "\n"
                     "  q3: no auth\n");
    assert_int_equal(s->core.watch_count, 0);
    script_free(s);
}

/* Goal: a look of before an event says nothing. Method: the watch fires while a look is out, and again;
 * of three looks only the last one counts. */
static void a_look_of_before_the_event_does_not_count(void **state)
{
    struct script *s = watching();
    (void)state;
    script_fired(s, NODE, ZKL_FIRED_OTHER);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_fired(s, NODE, ZKL_FIRED_OTHER);
    script_expect(s, "  > watch " NODE "\n"
                     "  > stat " NODE "\n"
                     "  > watch " NODE "\n"
                     "  > stat " NODE "\n");
    assert_int_equal(s->core.pending_count, 2);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NONODE);
    assert_int_equal(s->core.pending_count, 0);
    script_expect(s, "  q1: no node\n");
    script_free(s);
}

/* Goal: a watch survives the link, is looked after with the next one, and is made anew with a new
 * session. */
static void a_watch_survives_the_link_and_the_session(void **state)
{
    struct script *s = watching();
    (void)state;
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    statted(s, 500);
    script_event(s, ZKL_SE_EXPIRED);
    script_up(s, SCRIPT_SESSION + 1);
    script_down(s); /* before it was armed */
    script_up(s, SCRIPT_SESSION + 1);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_NONODE);
    script_expect(s, "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > stat " NODE "\n"
                     "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > stat " NODE "\n"
                     "[     0] session CONNECTED -> STARTING: expired\n"
                     "  session: link down, expired, replace handle\n"
                     "[     0] session STARTING -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > watch " NODE "\n"
                     "  > stat " NODE "\n"
                     "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > watch " NODE "\n"
                     "  > stat " NODE "\n"
                     "  > unwatch " NODE "\n"
                     "  q1: no node\n");
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);
}

/* Goal: queries and contenders share a watch, whichever comes first, and the last to leave removes
 * it. Method: a contender waits behind the node; two queries watch it; they leave one by one. */
static void a_watch_is_shared_with_contenders(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 8, "9:7");
    script_forget(s);
    script_ask(s, watch(500));
    script_ask(s, watch(500));
    statted(s, 500);
    statted(s, 500);
    script_withdraw(s, 1);
    script_stop(s, 1, ZKL_ECANCELED);
    script_expect(s, "  > stat " NODE "\n"
                     "  > stat " NODE "\n"
                     "[     0] #1 WAITING -> LEAVING: stopped\n"
                     "  #1 failed ECANCELED\n"
                     "  > delete /r/G1-0000000008\n");
    script_withdraw(s, 2);
    script_expect(s, "  > unwatch " NODE "\n");
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);
}

/* Goal: the event wakes them all. */
static void an_event_reaches_queries_and_contenders(void **state)
{
    struct script *s = watching();
    (void)state;
    script_lock(s, "/r");
    script_created(s, 8);
    script_listed(s, "1:8 9:7");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_forget(s);
    script_fired(s, NODE, ZKL_FIRED_DELETED);
    script_expect(s, "[     0] #1 WAITING -> HOLDING: predecessor deleted\n"
                     "  #1 granted 101\n"
                     "  q1: no node\n");
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a withdrawn query notifies its owner of nothing any more, and its watch is removed, also
 * one that is being armed. */
static void a_withdrawn_query_leaves_nothing(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_ask(s, get("/r"));
    script_ask(s, watch(500));
    script_withdraw(s, 1);
    script_withdraw(s, 2);
    assert_int_equal(s->core.pending_count, 1); /* the arming */
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_expect(s, "  > get /r\n"
                     "  > watch " NODE "\n"
                     "  > stat " NODE "\n"
                     "  > unwatch " NODE "\n");
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    assert_int_equal(s->core.pending_count, 0);
    script_down(s);
    script_ask(s, get("/r"));
    script_withdraw(s, 3);
    script_forget(s);
    script_up(s, SCRIPT_SESSION);
    assert_false(script_has(s, "get"));
    script_free(s);
}

/* Goal: while a query watches, some request goes out now and then: a server can sit on its event. */
static void a_watching_query_sends_keepalives(void **state)
{
    struct script *s = watching();
    (void)state;
    s->keepalives = true;
    script_at(s, 2 * ZKL_KEEPALIVE_MS);
    assert_true(script_has(s, "  > keepalive /"));
    script_withdraw(s, 1);
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);
}

/* Goal: close and a refused credential end every query with their code, and refuse new ones. */
static void close_and_a_refused_credential_end_all(void **state)
{
    struct script *s = watching();
    (void)state;
    script_ask(s, get("/r"));
    script_ask(s, set(true));
    script_forget(s);
    script_close(s);
    script_ask(s, get("/r"));
    script_expect(s, "[     0] session CONNECTED -> CLOSED: closed\n"
                     "  session: link down, closed\n"
                     "  q3: ECLOSED\n"
                     "  q2: ECLOSED\n"
                     "  q1: ECLOSED\n"
                     "  q4: ECLOSED\n");
    script_free(s);

    s = watching();
    script_ask(s, get("/r"));
    script_forget(s);
    script_event(s, ZKL_SE_AUTH_FAILED);
    script_ask(s, get("/r"));
    script_expect(s, "[     0] session CONNECTED -> FAILED: credential refused\n"
                     "  q2: EAUTH\n"
                     "  q1: EAUTH\n"
                     "  session: link down, failed\n"
                     "  q3: EAUTH\n");
    script_free(s);
}

/* Goal: the client's first read is answered once: one that a link took along is asked again with the next,
 * one that was answered is not. Method: three links. */
static void the_first_read_is_repeated_until_it_is_answered(void **state)
{
    struct script *s = script_new();
    (void)state;
    s->core.first_read_wanted = true;
    script_up(s, SCRIPT_SESSION);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_OK);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_expect(s, "[     0] session STARTING -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > stat /\n"
                     "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > stat /\n"
                     "  session: hello\n"
                     "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n");
    script_free(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_are_asked_and_answered),
        cmocka_unit_test(a_query_waits_for_the_link_and_is_asked_again),
        cmocka_unit_test(queries_go_out_in_their_order),
        cmocka_unit_test(a_write_for_once_is_not_repeated),
        cmocka_unit_test(a_refused_query_says_so_or_goes_out_later),
        cmocka_unit_test(a_watch_is_answered_when_the_node_is_gone),
        cmocka_unit_test(a_watch_is_over_when_the_path_is_anothers),
        cmocka_unit_test(a_look_of_before_the_event_does_not_count),
        cmocka_unit_test(a_watch_survives_the_link_and_the_session),
        cmocka_unit_test(a_watch_is_shared_with_contenders),
        cmocka_unit_test(an_event_reaches_queries_and_contenders),
        cmocka_unit_test(a_withdrawn_query_leaves_nothing),
        cmocka_unit_test(a_watching_query_sends_keepalives),
        cmocka_unit_test(close_and_a_refused_credential_end_all),
        cmocka_unit_test(the_first_read_is_repeated_until_it_is_answered),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
