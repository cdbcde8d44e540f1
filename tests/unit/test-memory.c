/* SPDX-License-Identifier: Apache-2.0
 * Memory that the core asks for, on a script. It runs out: a contender that would wait without a
 * watch, which would be forever, is notified instead. The program is linked so that malloc and
 * calloc come here first. */
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/watch.h"
#include "script.h"

#define LONG_NAME 4000 /* longer than any name of a contender of ours */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

static bool out_of_memory;

void *__wrap_malloc(size_t size)
{
    return out_of_memory ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return out_of_memory ? NULL : __real_calloc(n, size);
}

/* Queued behind a stranger whose name is very long. */
static void queue_behind_long_name(struct script *s)
{
    static char name[LONG_NAME + 1];
    const char *children[2] = {name, s->contenders[0].machine.node};
    memset(name, 'x', LONG_NAME);
    strcpy(name + LONG_NAME - 15, "lock-0000000007");
    script_lock(s, "/r");
    script_created(s, 9);
    script_reply(s, ZKL_REQ_LIST, (struct zkl_reply){.children = children, .child_count = 2});
}

static void end(struct script *s)
{
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
}

/* Goal: a stranger's name may be as long as ZooKeeper lets it: its node is watched all the same. */
TEST(a_long_name_is_watched)
{
    struct script *s = script_connected();
    queue_behind_long_name(s);
    assert_int_equal(script_contender(s, 1)->machine.state, ZKL_CONTENDER_WAITING);
    assert_non_null(script_contender(s, 1)->subs[ZKL_SUB_PRED].watch);
    assert_int_equal(strlen(script_contender(s, 1)->subs[ZKL_SUB_PRED].watch->path),
                     strlen("/r/") + LONG_NAME);
    end(s);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NONODE);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NONODE);
    script_free(s);
}

/* Goal: no memory for its path ends the lock request. */
TEST(no_memory_for_a_long_name_ends_the_lock_request)
{
    struct script *s = script_connected();
    out_of_memory = true;
    queue_behind_long_name(s);
    out_of_memory = false;
    assert_int_equal(script_contender(s, 1)->machine.state, ZKL_CONTENDER_LEAVING);
    assert_true(script_has(s, "#1 failed ENOMEM"));
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: no memory for the watch on an exhausted root ends the lock request, with its reason. */
TEST(no_memory_for_the_root_s_watch_ends_the_lock_request)
{
    struct script *s = script_connected();
    script_lock(s, "/r");
    script_created(s, ZKL_SEQUENCE_HARD);
    script_forget(s);
    out_of_memory = true;
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    out_of_memory = false;
    script_expect(s, "[     0] #1 EXHAUSTED -> ENDED: no memory\n"
                     "  #1 failed ENOMEM: listing the path\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: who stays in an exhausted path is asked to let go, whatever its name is. Method: one that is longer than any of ours. */
TEST(who_stays_may_have_a_long_name)
{
    char name[ZKL_PATH_MAX + 2 * ZKL_NODE_NAME_MAX];
    const char *children[] = {name};
    struct script *s = script_connected();
    memset(name, 'x', sizeof name);
    memcpy(name, "00000000000080008000000000000000", 32);
    strcpy(name + sizeof name - 17, "-lock-0000000007");
    script_lock(s, "/r");
    script_created(s, 0x7ff00000);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_forget(s);
    script_reply(s, ZKL_REQ_LIST_LOCK_PATH,
                 (struct zkl_reply){.czxid = 50, .children = children, .child_count = 1});
    assert_true(script_has(s, "  > set /r/00000000000080008000000000000000xxx"));
    script_answer(s, ZKL_REQ_SET, ZKL_ANSWER_OK);
    script_stop(s, 1, ZKL_ECANCELED);
    script_close(s);
    script_free(s);
}
