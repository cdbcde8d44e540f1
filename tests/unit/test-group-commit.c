/* SPDX-License-Identifier: Apache-2.0
 * Creates and deletes of single locks that are sent in one transaction: when they wait for others
 * and when not, and what becomes of each if the transaction fails or its answer is lost. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/transaction.h"
#include "core/group_commit.h"
#include "core/unlisted_grant.h"
#include "script.h"

#define PATHS 100
#define CYCLES 3 /* locks in a row at each path, before the test */
#define NEXT (CYCLES + 1)

static char paths[PATHS][16];

static enum zkl_contender_state state_of(struct script *s, int number)
{
    return script_contender(s, number)->machine.state;
}

/* The list of this path that is out is answered, whatever else is. */
static void answer_list_of(struct script *s, const char *path, struct zkl_reply reply)
{
    size_t i = 0;
    while (s->requests[i].kind != ZKL_REQ_LIST || strcmp(s->requests[i].path, path) != 0)
        assert_true(++i < s->request_count);
    reply.id = s->requests[i].id;
    reply.stamp = s->requests[i].stamp;
    memmove(&s->requests[i], &s->requests[i + 1], (--s->request_count - i) * sizeof *s->requests);
    zkl_core_reply(&s->core, s->core.now, &reply);
}

static struct zkl_path *path_of(struct script *s, int path)
{
    return script_path(s, paths[path]);
}

/* Returns its number. */
static int lock_with(struct script *s, int path, struct zkl_lock_request lock_request)
{
    lock_request.path = path_of(s, path);
    lock_request.unlisted = lock_request.views = true;
    script_acquire(s, lock_request);
    return (int)s->core.last_number;
}

static int lock(struct script *s, int path)
{
    return lock_with(s, path, (struct zkl_lock_request){0});
}

/* The path's create is answered, and its list, if one is out. */
static void have(struct script *s, int number, int32_t sequence)
{
    char children[32];
    script_created(s, sequence);
    snprintf(children, sizeof children, "%d:%d", s->guids, sequence);
    if (state_of(s, number) != ZKL_CONTENDER_HOLDING)
        script_listed(s, children);
    assert_int_equal(state_of(s, number), ZKL_CONTENDER_HOLDING);
}

/* /p0, /p1 ...: at each of them no other contender came between the last locks of this client. */
static struct script *alone_at(int count)
{
    struct script *s = script_connected();
    s->core.unlisted_from = 2;
    s->core.group_commit.from = ZKL_GROUP_COMMIT_FROM;
    s->quiet = true;
    for (int path = 0; path < count; path++) {
        snprintf(paths[path], sizeof paths[path], "/p%d", path);
        for (int i = 1; i <= CYCLES; i++) {
            int number = lock(s, path);
            have(s, number, i);
            if (i == CYCLES)
                script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
            script_unlock(s, number);
            script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
        }
    }
    s->quiet = false;
    return s;
}

/* This many creates of others, and their lists, are under way. */
static void crowd(struct script *s, int count)
{
    static const char *const others[] = {"/w0", "/w1", "/w2", "/w3", "/w4"};
    for (int i = 0; i < count; i++)
        script_lock(s, others[i]);
    script_forget(s);
}

/* One of those creates is answered. */
static void one_is_answered(struct script *s)
{
    script_created(s, 1);
}

/* One that holds the path by its number, with four others under way: first of all paths. */
static int hold_at(struct script *s, int path)
{
    int number = lock(s, path);
    have(s, number, NEXT);
    return number;
}

static size_t out(const struct script *s, enum zkl_request_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < s->request_count; i++)
        n += s->requests[i].kind == kind;
    return n;
}

static void end(struct script *s)
{
    if (zkl_session_connected(&s->core.session))
        script_event(s, ZKL_SE_EXPIRED);
    for (int i = 1; i <= (int)s->core.last_number; i++) {
        if (s->live[i - 1] && state_of(s, i) == ZKL_CONTENDER_LOSTHOLD)
            script_unlock(s, i);
        else if (s->live[i - 1])
            script_stop(s, i, ZKL_ECANCELED);
    }
    assert_int_equal(s->core.group_commit.held, 0);
    assert_int_equal(s->core.group_commit.under_way, 0);
    script_free(s);
}

/* The answer to a transaction: this many deletes, then the creates of these contenders, each the
 * next at its path. */
static void made(struct script *s, size_t deletes, size_t creates, const int *numbers)
{
    static char names[ZKL_TRANSACTION_MAX][ZKL_NODE_NAME_MAX + 1];
    const char *children[ZKL_TRANSACTION_MAX];
    for (size_t i = 0; i < deletes + creates; i++) {
        names[i][0] = '\0';
        children[i] = names[i];
        if (i < deletes)
            continue;
        const struct zkl_contender_machine *m = &script_contender(s, numbers[i - deletes])->machine;
        zkl_name_prefix(&m->lock_request.naming, m->guid, names[i]);
        sprintf(names[i] + strlen(names[i]), "%010d", m->lock_request.path->unlisted.next_number);
    }
    script_reply(s, ZKL_REQ_CREATE_ALL,
                 (struct zkl_reply){.children = children, .child_count = deletes + creates});
}

/* --- which requests wait -------------------------------------------------- */

/* Goal: a client that does little never waits. Method: three creates of others are under way, one less than it takes,
 * and then none. */
static void few_go_alone(void **state)
{
    (void)state;
    for (int others = 0; others < ZKL_GROUP_COMMIT_FROM; others += 3) {
        struct script *s = alone_at(1);
        crowd(s, others);
        int number = lock(s, 0);
        assert_int_equal(s->core.group_commit.held, 0);
        assert_true(script_has(s, "  > create /p0/"));
        while (out(s, ZKL_REQ_CREATE) > 1)
            one_is_answered(s);
        have(s, number, NEXT);
        script_forget(s);
        script_unlock(s, number);
        assert_true(script_has(s, "  > delete /p0/"));
        end(s);
    }
}

/* Goal: what comes while four are under way goes out with the next answer, in one transaction: deletes first. Its zxid
 * is asked for once, and is the token of all. Method: the golden trace of two creates and a delete. */
static void what_comes_meanwhile_goes_together(void **state)
{
    struct script *s = alone_at(3);
    (void)state;
    int held = hold_at(s, 2);
    crowd(s, 4);
    int first = lock(s, 0), second = lock(s, 1);
    script_unlock(s, held);
    script_expect(s, "[     0] #15 NEW -> QUEUEING: started\n"
                     "[     0] #16 NEW -> QUEUEING: started\n"
                     "[     0] #10 HOLDING -> RELEASING: unlocked\n");
    assert_int_equal(s->core.group_commit.held, 3);
    one_is_answered(s);
    script_expect(s, "  > create all /p2/G10-0000000004 /p0/G15- /p1/G16-\n");
    made(s, 1, 2, (const int[]){first, second});
    script_expect(s, "  > stat /p0/G15-0000000004\n"
                     "  > list /p0\n"
                     "[     0] #10 RELEASING -> ENDED: deleted\n"
                     "  #10 released OK\n"
                     "  #10 ended\n");
    script_statted(s, SCRIPT_SESSION, 500);
    assert_true(script_has(s, "  #15 granted 500\n"));
    assert_true(script_has(s, "  #16 granted 500\n"));
    end(s);
}

/* Goal: while the count of a path's changes shows that the last was ours, a list that is sent along
 * shows the zxid, and all is one round trip. Method: one path is known to be calm, the second of
 * the two. */
static void a_calm_path_tells_the_zxid(void **state)
{
    struct script *s = alone_at(2);
    (void)state;
    crowd(s, 4);
    path_of(s, 1)->view =
        (struct zkl_children_view){.link = s->core.link, .czxid = 5, .cversion = 6, .calm = true};
    int first = lock(s, 0), second = lock(s, 1);
    one_is_answered(s);
    assert_true(script_has(s, "  > create all /p1/G11- /p0/G12-\n  > list /p1\n"));
    made(s, 0, 2, (const int[]){second, first});
    assert_int_equal(out(s, ZKL_REQ_STAT), 0);
    answer_list_of(s, "/p1", (struct zkl_reply){.czxid = 5, .cversion = 7, .pzxid = 600});
    assert_true(script_has(s, " granted 600\n"));
    assert_int_equal(state_of(s, first), ZKL_CONTENDER_HOLDING);
    assert_int_equal(state_of(s, second), ZKL_CONTENDER_HOLDING);
    assert_int_equal(script_contender(s, first)->machine.czxid, 600);
    end(s);
}

/* Goal: never two creates of one path in a transaction, as their tokens would be equal; and the
 * first to come is the first. Method: a second create, declared to need no list like the first. */
static void never_two_creates_of_one_path(void **state)
{
    struct script *s = alone_at(2);
    (void)state;
    crowd(s, 4);
    lock(s, 0);
    lock(s, 1);
    path_of(s, 0)->unlisted.live_count = 0; /* as if no contender were there */
    script_forget(s);
    lock(s, 0);
    path_of(s, 0)->unlisted.live_count = 2;
    assert_true(script_has(s, "  > create /p0/G11-\n  > create /p0/G12-\n"));
    assert_int_equal(s->core.group_commit.held, 1);
    end(s);
}

/* Goal: a create that needs a list is sent with it, and before it what waits at its path. Method:
 * another one locks while the first one's delete waits, then its create. */
static void who_waits_at_a_path_goes_before_who_comes(void **state)
{
    struct script *s = alone_at(2);
    (void)state;
    int held = hold_at(s, 0);
    crowd(s, 4);
    script_unlock(s, held);
    assert_int_equal(s->core.group_commit.held, 1);
    path_of(s, 0)->unlisted.streak = 0; /* a list is needed */
    lock(s, 0);
    assert_true(script_has(s, "  > delete /p0/G7-0000000004\n"
                              "  > create /p0/G12-\n  > list /p0\n"));
    lock(s, 1);
    script_forget(s);
    lock(s, 1);
    assert_true(script_has(s, "  > create /p1/G13-\n"
                              "  > create /p1/G14-\n  > list /p1\n"));
    end(s);
}

static void wants_to_go(struct script *s, int number)
{
    script_forget(s);
    script_unlock(s, number);
    assert_true(script_has(s, "  > delete /p0/"));
    assert_int_equal(s->core.group_commit.held, 0);
    end(s);
}

/* Goal: a delete that a known contender waits for never waits. Method: another thread queues;
 * another client was before it, and may be back; another client asks for its release. */
static void who_is_waited_for_goes_at_once(void **state)
{
    struct script *s = alone_at(1);
    (void)state;
    int held = hold_at(s, 0);
    crowd(s, 4);
    lock(s, 0);
    wants_to_go(s, held);

    s = alone_at(1);
    held = hold_at(s, 0);
    crowd(s, 4);
    script_contender(s, held)->machine.contended = true;
    wants_to_go(s, held);

    s = alone_at(1);
    held = hold_at(s, 0);
    crowd(s, 4);
    script_contender(s, held)->machine.revoked = true;
    wants_to_go(s, held);
}

/* Goal: a delete that may find nothing never waits. Method: a hold whose link was lost; one that was asked for before,
 * and the server would not; an owner that exits. */
static void what_may_find_nothing_goes_alone(void **state)
{
    struct script *s = alone_at(1);
    (void)state;
    int held = hold_at(s, 0);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    assert_true(script_contender(s, held)->machine.suspect);
    crowd(s, 4);
    wants_to_go(s, held);

    s = alone_at(1);
    held = hold_at(s, 0);
    crowd(s, 4);
    script_contender(s, held)->delete_sent = true;
    wants_to_go(s, held);

    s = alone_at(1);
    held = hold_at(s, 0);
    crowd(s, 4);
    script_abandon(s, held);
    assert_true(script_has(s, "  > delete /p0/"));
    end(s);
}

/* The delete of a posted unlock at the first of these paths waits for others. */
static struct script *posted_unlock_waits(int many)
{
    struct script *s = alone_at(many);
    int held = lock_with(s, 0, (struct zkl_lock_request){.posted = true});
    have(s, held, NEXT);
    crowd(s, 4);
    script_unlock(s, held);
    assert_int_equal(s->core.group_commit.held, 1);
    return s;
}

/* Goal: a posted unlock's delete waits too, and the create of the next lock at its path follows it.
 * Method: both in one transaction, which grants the next. */
static void an_unlock_and_the_next_lock_go_together(void **state)
{
    struct script *s = posted_unlock_waits(1);
    (void)state;
    int next = lock(s, 0);
    assert_int_equal(s->core.group_commit.held, 2);
    one_is_answered(s);
    assert_true(script_has(s, "  > create all /p0/G4-0000000004 /p0/G9-\n"));
    path_of(s, 0)->unlisted.next_number = NEXT + 1;
    made(s, 1, 1, &next);
    script_statted(s, SCRIPT_SESSION, 700);
    assert_true(script_has(s, "granted 700"));
    end(s);
}

/* --- how much ------------------------------------------------------------- */

/* Goal: at most 64 are sent in one transaction. Method: a hundred wait; those beyond 64 are sent in
 * another. */
static void at_most_64_go_together(void **state)
{
    struct script *s = alone_at(70);
    (void)state;
    s->core.group_commit.from = 1;
    script_lock(s, "/w");
    for (int i = 0; i < 63; i++)
        lock(s, i);
    assert_int_equal(s->core.group_commit.held, 63);
    lock(s, 63);
    assert_int_equal(s->core.group_commit.held, 0);
    assert_true(script_has(s, " and 61 more\n"));
    for (int i = 64; i < 70; i++)
        lock(s, i);
    one_is_answered(s);
    assert_int_equal(out(s, ZKL_REQ_CREATE_ALL), 2);
    assert_true(script_has(s, " and 3 more\n"));
    end(s);
}

/* Goal: nor do more than 128 kB. Method: data of 50 kB each, three of them: two go together, the third by itself. */
static void at_most_128_kb_go_together(void **state)
{
    static char data[50 * 1024];
    struct script *s = alone_at(3);
    (void)state;
    memset(data, 'x', sizeof data - 1);
    crowd(s, 4);
    int numbers[3];
    for (int i = 0; i < 3; i++) {
        numbers[i] = lock(s, i);
        s->contenders[numbers[i] - 1].machine.lock_request.data = data;
    }
    one_is_answered(s);
    assert_true(script_has(s, "  > create all /p0/G14- /p1/G15-\n"));
    assert_true(script_has(s, "  > create /p2/G16-\n"));
    end(s);
}

/* Goal: after a transaction of many one write under way is enough to wait for, as its members come back one by one; and
 * when it has become quiet it takes four again. Method: one of four, then ones. */
static void it_becomes_quiet_again(void **state)
{
    struct script *s = alone_at(4);
    int numbers[4];
    (void)state;
    crowd(s, 4);
    for (int i = 0; i < 4; i++)
        numbers[i] = lock(s, i);
    one_is_answered(s);
    assert_int_equal(s->core.group_commit.credit, ZKL_GROUP_COMMIT_CREDIT);
    made(s, 0, 4, numbers);
    script_statted(s, SCRIPT_SESSION, 500);
    while (out(s, ZKL_REQ_CREATE) > 1)
        one_is_answered(s);
    for (int i = 0; i < 4; i++) {
        script_unlock(s, numbers[i]);
        assert_int_equal(s->core.group_commit.held, i + 1);
    }
    one_is_answered(s);
    assert_int_equal(out(s, ZKL_REQ_DELETE_ALL), 1);
    script_answer(s, ZKL_REQ_DELETE_ALL, ZKL_ANSWER_OK);
    for (int i = 0; i < ZKL_GROUP_COMMIT_CREDIT; i++) {
        script_lock(s, "/w");
        int number = lock(s, 0);
        assert_int_equal(s->core.group_commit.held, 1);
        one_is_answered(s);
        have(s, number, NEXT + 1 + i);
        script_unlock(s, number);
        script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    }
    script_lock(s, "/w");
    lock(s, 0);
    assert_int_equal(s->core.group_commit.held, 0);
    end(s);
}

/* --- failures ------------------------------------------------------------- */

/* A delete at /p2 and creates at /p0 and /p1 are out in one transaction. */
static struct script *three_are_out(int *held)
{
    struct script *s = alone_at(3);
    *held = hold_at(s, 2);
    crowd(s, 4);
    lock(s, 0);
    lock(s, 1);
    script_unlock(s, *held);
    one_is_answered(s);
    script_forget(s);
    return s;
}

/* Goal: a part that fails fails its own call only, and its path's writes are sent alone for ten
 * seconds. Method: the create at /p0 is denied: all are sent singly, in the same order; then that
 * one is denied. */
static void who_is_to_blame_goes_alone(void **state)
{
    int held;
    struct script *s = three_are_out(&held);
    (void)state;
    script_reply(s, ZKL_REQ_CREATE_ALL,
                 (struct zkl_reply){.answer = ZKL_ANSWER_NOAUTH, .failed_check = 1});
    script_expect(s, "  > delete /p2/G10-0000000004\n"
                     "  > create /p0/G17-\n"
                     "  > create /p1/G18-\n");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_true(script_has(s, "  #10 released OK\n"));
    while (out(s, ZKL_REQ_CREATE) > 2)
        one_is_answered(s);
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NOAUTH);
    assert_true(script_has(s, "  #15 failed EACCES: CREATE\n"));
    script_created(s, NEXT);
    assert_int_equal(state_of(s, 16), ZKL_CONTENDER_HOLDING);
    crowd(s, 4);
    lock(s, 0);
    assert_true(script_has(s, "  > create /p0/"));
    lock(s, 2);
    assert_int_equal(s->core.group_commit.held, 1);
    assert_true(path_of(s, 0)->view.singly_until_mono_ns ==
                s->core.now.mono_ns + ZKL_GROUP_COMMIT_SINGLY_MS * INT64_C(1000000));
    end(s);
}

/* Goal: a node that may not be read fails no other contender's call. Method: the read for the
 * transaction's zxid is denied at one node: each member reads its own, and only that one's call is
 * denied. */
static void a_look_that_is_denied_fails_its_own_call(void **state)
{
    struct script *s = alone_at(2);
    (void)state;
    crowd(s, 4);
    int numbers[2] = {lock(s, 0), lock(s, 1)};
    one_is_answered(s);
    made(s, 0, 2, numbers);
    script_forget(s);
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_NOAUTH);
    assert_false(script_has(s, " failed "));
    assert_true(script_has(s, "  > stat /p0/G11-0000000004\n"));
    assert_true(script_has(s, "  > stat /p1/G12-0000000004\n"));
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_NOAUTH);
    assert_true(script_has(s, "  #11 failed EACCES"));
    assert_true(script_has(s, "  > delete /p0/G11-0000000004\n"));
    script_statted(s, SCRIPT_SESSION, 500);
    assert_true(script_has(s, "#12 RECOVERING -> LISTING: adopted\n  > list /p1\n"));
    end(s);
}

/* Goal: and after ten seconds it is one of many again. Method: the mark itself. */
static void after_a_while_it_waits_again(void **state)
{
    struct script *s = alone_at(1);
    (void)state;
    crowd(s, 4);
    path_of(s, 0)->view.singly_until_mono_ns = s->core.now.mono_ns;
    lock(s, 0);
    assert_int_equal(s->core.group_commit.held, 1);
    end(s);
}

/* Goal: a delete that finds nothing delays no other. Method: of two deletes the second one's node
 * does not exist any more: both are sent singly, and one of them learns that it was lost. */
static void a_node_that_is_gone_keeps_nobody(void **state)
{
    struct script *s = alone_at(2);
    (void)state;
    int first = hold_at(s, 0), second = hold_at(s, 1);
    crowd(s, 4);
    script_unlock(s, first);
    script_unlock(s, second);
    one_is_answered(s);
    assert_int_equal(out(s, ZKL_REQ_DELETE_ALL), 1);
    script_reply(s, ZKL_REQ_DELETE_ALL,
                 (struct zkl_reply){.answer = ZKL_ANSWER_NONODE, .failed_check = 1});
    assert_int_equal(out(s, ZKL_REQ_DELETE), 2);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NONODE);
    assert_true(script_has(s, "released OK\n"));
    assert_true(script_has(s, "released ELOST\n"));
    assert_true(path_of(s, 1)->view.singly_until_mono_ns > s->core.now.mono_ns);
    assert_false(path_of(s, 0)->view.singly_until_mono_ns > s->core.now.mono_ns);
    end(s);
}

/* Goal: without the memory for a transaction all are sent singly. Method: the port refuses it. */
static void without_memory_all_go_singly(void **state)
{
    struct script *s = alone_at(2);
    (void)state;
    crowd(s, 4);
    lock(s, 0);
    lock(s, 1);
    s->refuse[ZKL_REQ_CREATE_ALL] = ZKL_ANSWER_NOMEM;
    one_is_answered(s);
    assert_true(script_has(s, "  > create /p0/G13-\n  > create /p1/G14-\n"));
    end(s);
}

/* Goal: the core blames no part for what the port did not take. It sends all parts singly, in
 * their order, and the next ones wait for others again immediately. Method: the port refuses a
 * transaction with creates, and one of deletes, for another reason than memory; and for one
 * that, as an answer, would not say what was carried out. */
static void a_refusal_blames_nobody(void **state)
{
    static const enum zkl_answer refusals[] = {ZKL_ANSWER_BADPATH, ZKL_ANSWER_OTHER};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct script *s = alone_at(3);
        int first = hold_at(s, 1), second = hold_at(s, 2);
        crowd(s, 4);
        int made_one = lock(s, 0);
        script_unlock(s, second);
        s->refuse[ZKL_REQ_CREATE_ALL] = s->refuse[ZKL_REQ_DELETE_ALL] = refusals[i];
        script_forget(s);
        one_is_answered(s);
        assert_true(script_has(s, "  > delete /p2/G11-0000000004\n  > create /p0/G17-\n"));
        script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
        while (out(s, ZKL_REQ_CREATE) > 1)
            one_is_answered(s);
        script_created(s, NEXT);
        assert_int_equal(state_of(s, made_one), ZKL_CONTENDER_HOLDING);
        crowd(s, 4);
        script_unlock(s, first);
        script_unlock(s, made_one);
        assert_int_equal(s->core.group_commit.held, 2);
        one_is_answered(s);
        assert_int_equal(out(s, ZKL_REQ_DELETE), 2);
        for (int path = 0; path < 3; path++)
            assert_true(path_of(s, path)->view.singly_until_mono_ns == 0);
        end(s);
    }
}

/* --- the one look that is for all ---------------------------------------------- */

/* Two creates are made in one transaction, whose zxid is asked for. */
static struct script *zxid_is_asked_for(int numbers[2])
{
    struct script *s = alone_at(2);
    crowd(s, 4);
    numbers[0] = lock(s, 0);
    numbers[1] = lock(s, 1);
    one_is_answered(s);
    made(s, 0, 2, numbers);
    script_forget(s);
    return s;
}

/* Goal: an odd answer to the one read of the zxid fails no member: each reads its own node, as a
 * single create does that is answered without a Stat, and none holds without a token. Method: READ
 * is denied at the first path; then the second one's read is answered, and the first one's is not,
 * and fails its own call only. */
static void each_looks_at_its_own_node(void **state)
{
    static const enum zkl_answer odd[] = {ZKL_ANSWER_NOAUTH, ZKL_ANSWER_OTHER, ZKL_ANSWER_NOMEM};
    (void)state;
    for (int i = 0; i < 3; i++) {
        int numbers[2];
        struct script *s = zxid_is_asked_for(numbers);
        script_answer(s, ZKL_REQ_STAT, odd[i]);
        assert_false(script_has(s, " failed "));
        assert_false(script_has(s, " granted "));
        assert_true(script_has(s, "  > stat /p0/G11-0000000004\n"));
        assert_true(script_has(s, "  > stat /p1/G12-0000000004\n"));
        script_forget(s);
        script_answer(s, ZKL_REQ_STAT, odd[i]);
        assert_true(script_has(s, "  #11 failed "));
        assert_true(script_has(s, "  > delete /p0/G11-0000000004\n"));
        script_statted(s, SCRIPT_SESSION, 500);
        answer_list_of(s, "/p1",
                       (struct zkl_reply){
                           .children = (const char *const[]){script_contender(s, 12)->machine.node},
                           .child_count = 1});
        assert_true(script_has(s, "  #12 granted 500\n"));
        assert_false(script_has(s, "  #12 failed "));
        script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
        assert_true(script_has(s, "  #11 ended\n"));
        end(s);
    }
}

/* Goal: without memory for that look, and then for their own, both fail, and leave nothing. Method: the port refuses. */
static void without_memory_to_look_nothing_is_left(void **state)
{
    struct script *s = alone_at(2);
    (void)state;
    crowd(s, 4);
    const int numbers[] = {lock(s, 0), lock(s, 1)};
    one_is_answered(s);
    s->refuse[ZKL_REQ_STAT] = ZKL_ANSWER_NOMEM;
    script_forget(s);
    made(s, 0, 2, numbers);
    assert_false(script_has(s, " granted "));
    assert_true(script_has(s, "  #11 failed ENOMEM"));
    assert_true(script_has(s, "  #12 failed ENOMEM"));
    assert_int_equal(out(s, ZKL_REQ_DELETE), 2);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_true(script_has(s, "  #11 ended\n"));
    assert_true(script_has(s, "  #12 ended\n"));
    end(s);
}

/* Goal: it is the numbers in the names that say who is behind whom, not the order in which creates go out, are answered,
 * or become known. Method: while the zxid of a grouped create is asked for, another contender's create at its path is made
 * and answered: it lists, and so does the one after the two. */
static void what_becomes_known_late_is_nobodys_neighbour(void **state)
{
    int numbers[2];
    struct script *s = zxid_is_asked_for(numbers);
    (void)state;
    int third = lock(s, 0);
    while (out(s, ZKL_REQ_CREATE) > 1)
        one_is_answered(s);
    script_created(s, NEXT + 1);
    assert_int_not_equal(state_of(s, third), ZKL_CONTENDER_WAITING);
    script_statted(s, SCRIPT_SESSION, 500);
    assert_int_equal(state_of(s, numbers[0]), ZKL_CONTENDER_HOLDING);
    path_of(s, 0)->unlisted.row =
        s->core.unlisted_from; /* as if all had been in a row: the number must decide */
    int fourth = lock(s, 0);
    script_created(s, NEXT + 2);
    assert_int_not_equal(state_of(s, fourth), ZKL_CONTENDER_WAITING);
    end(s);
}

/* Goal: after a lost answer the client searches for each create by its own GUID, and reports the
 * loss to each delete. Method: the link breaks and returns; one of the two was carried out, as if
 * it had been alone. */
static void each_looks_for_its_own(void **state)
{
    int held;
    struct script *s = three_are_out(&held);
    (void)state;
    script_down(s);
    assert_true(script_has(s, "#15 QUEUEING -> RECOVERING: create unanswered\n"));
    assert_true(script_has(s, "#16 QUEUEING -> RECOVERING: create unanswered\n"));
    assert_true(script_has(s, "  #10 released EUNCONFIRMED"));
    script_up(s, SCRIPT_SESSION);
    assert_true(script_has(s, "  > delete /p2/G10-0000000004\n"));
    assert_true(script_has(s, "  > list /p0\n"));
    assert_true(script_has(s, "  > list /p1\n"));
    assert_null(s->contenders[14].transaction);
    assert_null(s->contenders[15].transaction);
    end(s);
}

/* Goal: a failure that names no part does not say what was carried out. Method: an unknown code:
 * nothing is sent again under another name. */
static void an_odd_failure_is_not_repeated(void **state)
{
    int held;
    struct script *s = three_are_out(&held);
    (void)state;
    script_reply(s, ZKL_REQ_CREATE_ALL,
                 (struct zkl_reply){.answer = ZKL_ANSWER_OTHER, .failed_check = 3});
    assert_false(script_has(s, "  > create "));
    assert_true(script_has(s, "  #15 failed EPROTO"));
    assert_true(script_has(s, "#15 QUEUEING -> LEAVING"));
    end(s);
}

/* Goal: a request that has not been sent when the link breaks was not carried out. Method: the link
 * is down, and up again: a create begins anew, a delete is reported as unconfirmed and sent over
 * the new link. */
static void what_waits_is_not_lost_with_the_link(void **state)
{
    struct script *s = alone_at(2);
    (void)state;
    int held = hold_at(s, 1);
    crowd(s, 4);
    lock(s, 0);
    script_unlock(s, held);
    script_down(s);
    assert_false(script_has(s, "  > create"));
    assert_true(script_has(s, "#12 QUEUEING -> PARKED: another one's create failed\n"));
    assert_true(script_has(s, "  #7 released EUNCONFIRMED"));
    script_forget(s);
    script_up(s, SCRIPT_SESSION);
    assert_true(script_has(s, "  > delete /p1/G7-0000000004\n"));
    assert_true(script_has(s, "  > create /p0/"));
    end(s);
}

/* Goal: a contender that is stopped while it waits makes no node, and leaves none if its create was
 * sent. Method: one of two that wait, and both of two that are out in a transaction that fails by
 * one. */
static void who_is_stopped_makes_nothing(void **state)
{
    struct script *s = alone_at(2);
    (void)state;
    crowd(s, 4);
    int first = lock(s, 0), second = lock(s, 1);
    script_stop(s, first, ZKL_ETIMEDOUT);
    one_is_answered(s);
    assert_true(script_has(s, "LEAVING -> ENDED: never created\n"));
    assert_true(script_has(s, "  > create /p1/"));
    assert_int_equal(out(s, ZKL_REQ_CREATE_ALL), 0);
    end(s);

    s = alone_at(2);
    crowd(s, 4);
    first = lock(s, 0);
    second = lock(s, 1);
    one_is_answered(s);
    script_forget(s);
    script_stop(s, second, ZKL_ETIMEDOUT);
    script_reply(s, ZKL_REQ_CREATE_ALL,
                 (struct zkl_reply){.answer = ZKL_ANSWER_NONODE, .failed_check = 0});
    assert_true(script_has(s, "LEAVING -> ENDED: never created\n"));
    assert_true(script_has(s, "  > create /p0/"));
    assert_false(script_has(s, "  > create /p1/"));
    end(s);
}

/* Goal: nor where a question sends what waits. Method: one of two that wait is stopped, then something is asked. */
static void who_is_stopped_makes_nothing_for_a_question(void **state)
{
    struct script *s = alone_at(2);
    (void)state;
    crowd(s, 4);
    int first = lock(s, 0);
    lock(s, 1);
    script_stop(s, first, ZKL_ETIMEDOUT);
    script_forget(s);
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_STAT, .path = "/p0"});
    assert_false(script_has(s, "/p0/"));
    assert_true(script_has(s, "LEAVING -> ENDED: never created\n"));
    assert_true(script_has(s, "  > create /p1/"));
    script_withdraw(s, 1);
    end(s);
}

/* Goal: a part that failed is left out for ten seconds, whatever the client learns of its path
 * meanwhile. Method: a list shows how calm it is. */
static void a_look_at_the_path_does_not_forgive(void **state)
{
    struct script *s = alone_at(1);
    (void)state;
    int held = hold_at(s, 0);
    int64_t until = s->core.now.mono_ns + 1000;
    path_of(s, 0)->view.singly_until_mono_ns = until;
    zkl_transaction_look_at(&s->core, script_contender(s, held), &(struct zkl_reply){.czxid = 5});
    assert_int_equal(path_of(s, 0)->view.singly_until_mono_ns, until);
    end(s);
}

/* Goal: a contender that is stopped while its create is out in a transaction deletes its node.
 * Method: the answer comes later. */
static void who_is_stopped_too_late_deletes(void **state)
{
    struct script *s = alone_at(2);
    (void)state;
    crowd(s, 4);
    int numbers[2] = {lock(s, 0), lock(s, 1)};
    one_is_answered(s);
    script_stop(s, numbers[1], ZKL_ETIMEDOUT);
    made(s, 0, 2, numbers);
    script_statted(s, SCRIPT_SESSION, 500);
    assert_true(script_has(s, "  > delete /p1/G12-0000000004\n"));
    assert_int_equal(state_of(s, numbers[0]), ZKL_CONTENDER_HOLDING);
    end(s);
}

/* Goal: with the session ends all that waits and all that is out. Method: it ends, and what begins then has nothing to do
 * with it. */
static void the_end_of_the_session_ends_all(void **state)
{
    int held;
    struct script *s = three_are_out(&held);
    (void)state;
    lock(s, 2);
    assert_int_equal(s->core.group_commit.held, 1);
    script_event(s, ZKL_SE_EXPIRED);
    assert_int_equal(s->core.group_commit.held, 0);
    assert_int_equal(s->core.group_commit.under_way, 0);
    for (int i = 15; i <= 17; i++) {
        assert_null(script_contender(s, i)->transaction);
        assert_int_equal(state_of(s, i), ZKL_CONTENDER_PARKED);
    }
    end(s);
}

/* Goal: at a server that knows no transactions, or no create2, nothing waits. Method: each, known before. */
static void old_servers_get_single_requests(void **state)
{
    static const enum zkl_opcode opcodes[] = {ZKL_OPCODE_MULTI, ZKL_OPCODE_CREATE2};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct script *s = alone_at(1);
        s->core.opcodes[opcodes[i]].unknown = true;
        crowd(s, 4);
        lock(s, 0);
        assert_int_equal(s->core.group_commit.held, 0);
        end(s);
    }
}

/* Goal: a delete that waits is sent before the other requests of its client at its path: a try
 * finds nothing of its own. Method: a posted unlock in a crowd. */
static void a_try_finds_nothing_of_ours(void **state)
{
    struct script *s = posted_unlock_waits(1);
    (void)state;
    script_forget(s);
    lock_with(s, 0, (struct zkl_lock_request){.try_only = true});
    assert_int_equal(s->core.group_commit.held, 0);
    const char *deleted = strstr(s->text, "> delete /p0/"), *listed = strstr(s->text, "> list /p0");
    assert_non_null(deleted);
    assert_true(listed && deleted < listed);
    end(s);
}

/* Goal: likewise for contenders that wait for a mutex as for any other, but are none: a writer's
 * try, a reader's lock. Method: each behind a posted unlock in a crowd. */
static void other_kinds_find_nothing_of_ours(void **state)
{
    static const struct zkl_lock_request kinds[] = {
        {.naming.role = ZKL_ROLE_WRITE, .try_only = true},
        {.naming.role = ZKL_ROLE_READ},
    };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct script *s = posted_unlock_waits(1);
        struct zkl_lock_request lock_request = kinds[i];
        script_forget(s);
        lock_request.path = script_path(s, "/p0"); /* and no record of the path */
        script_acquire(s, lock_request);
        assert_int_equal(s->core.group_commit.held, 0);
        const char *deleted = strstr(s->text, "> delete /p0/"),
                   *listed = strstr(s->text, "> list /p0");
        assert_non_null(deleted);
        assert_true(listed && deleted < listed);
        end(s);
    }
}

/* Goal: likewise a multi-lock. */
static void a_multi_lock_finds_nothing_of_ours(void **state)
{
    struct script *s = posted_unlock_waits(2);
    (void)state;
    script_forget(s);
    lock_with(s, 0, (struct zkl_lock_request){.together = true});
    lock_with(s, 1, (struct zkl_lock_request){.together = true});
    assert_int_equal(s->core.group_commit.held, 0);
    assert_true(script_has(s, "> delete /p0/"));
    end(s);
}

/* Goal: likewise a question. */
static void a_question_finds_nothing_of_ours(void **state)
{
    struct script *s = posted_unlock_waits(1);
    (void)state;
    script_forget(s);
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_STAT, .path = "/p0"});
    assert_int_equal(s->core.group_commit.held, 0);
    assert_true(script_has(s, "> delete /p0/"));
    script_withdraw(s, 1);
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_finds_nothing_of_ours),
        cmocka_unit_test(other_kinds_find_nothing_of_ours),
        cmocka_unit_test(a_multi_lock_finds_nothing_of_ours),
        cmocka_unit_test(a_question_finds_nothing_of_ours),
        cmocka_unit_test(few_go_alone),
        cmocka_unit_test(what_comes_meanwhile_goes_together),
        cmocka_unit_test(a_calm_path_tells_the_zxid),
        cmocka_unit_test(never_two_creates_of_one_path),
        cmocka_unit_test(who_waits_at_a_path_goes_before_who_comes),
        cmocka_unit_test(who_is_waited_for_goes_at_once),
        cmocka_unit_test(what_may_find_nothing_goes_alone),
        cmocka_unit_test(an_unlock_and_the_next_lock_go_together),
        cmocka_unit_test(at_most_64_go_together),
        cmocka_unit_test(at_most_128_kb_go_together),
        cmocka_unit_test(it_becomes_quiet_again),
        cmocka_unit_test(who_is_to_blame_goes_alone),
        cmocka_unit_test(a_look_that_is_denied_fails_its_own_call),
        cmocka_unit_test(after_a_while_it_waits_again),
        cmocka_unit_test(a_node_that_is_gone_keeps_nobody),
        cmocka_unit_test(without_memory_all_go_singly),
        cmocka_unit_test(a_refusal_blames_nobody),
        cmocka_unit_test(each_looks_at_its_own_node),
        cmocka_unit_test(without_memory_to_look_nothing_is_left),
        cmocka_unit_test(what_becomes_known_late_is_nobodys_neighbour),
        cmocka_unit_test(each_looks_for_its_own),
        cmocka_unit_test(an_odd_failure_is_not_repeated),
        cmocka_unit_test(what_waits_is_not_lost_with_the_link),
        cmocka_unit_test(who_is_stopped_makes_nothing),
        cmocka_unit_test(who_is_stopped_makes_nothing_for_a_question),
        cmocka_unit_test(who_is_stopped_too_late_deletes),
        cmocka_unit_test(a_look_at_the_path_does_not_forgive),
        cmocka_unit_test(the_end_of_the_session_ends_all),
        cmocka_unit_test(old_servers_get_single_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
