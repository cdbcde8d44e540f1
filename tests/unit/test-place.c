/* SPDX-License-Identifier: Apache-2.0
 * The place of a waiter, on a script. */
#include <string.h>

#include <zklock/zklock.h>

#include "core/place.h"
#include "core/watch.h"
#include "script.h"

static void expect_place(struct script *s, int number, size_t before, const char *predecessor,
                         const char *owner)
{
    struct zkl_queue_place place = zkl_queue_place_of(script_contender(s, number));
    assert_int_equal(place.before, before);
    assert_int_equal(place.predecessor != NULL, predecessor[0] != '\0');
    if (place.predecessor)
        assert_non_null(strstr(place.predecessor, predecessor));
    assert_int_equal(place.owner != NULL, owner != NULL);
    if (owner)
        assert_string_equal(place.owner, owner);
}

static void armed(struct script *s, const char *data, size_t size)
{
    script_reply(s, ZKL_REQ_WATCH,
                 (struct zkl_reply){.answer = ZKL_ANSWER_OK, .data = data, .data_size = size});
}

/* Goal: a waiter knows how many are before it by its list, and its predecessor's owner by the answer that armed
 * the watch; nothing is asked for that. Method: behind two strangers, one of whom leaves; until a list and an answer
 * have come nothing is said. */
TEST(a_waiter_knows_its_place)
{
    struct script *s = script_connected();
    script_lock(s, "/r");
    expect_place(s, 1, 0, "", NULL);
    script_created(s, 9);
    script_listed(s, "6:8 1:9 5:7");
    expect_place(s, 1, 2, "-0000000008", NULL);
    armed(s, "host 12 13", 10);
    expect_place(s, 1, 2, "-0000000008", "host 12 13");
    script_forget(s);
    script_fired(s, "/r/G6-0000000008", ZKL_FIRED_DELETED);
    expect_place(s, 1, 0, "", NULL);
    script_listed(s, "5:7 1:9");
    armed(s, "other 14 15", 11);
    expect_place(s, 1, 1, "-0000000007", "other 14 15");
    script_expect(s, "[     0] #1 WAITING -> LISTING: predecessor fired\n"
                     "  > list /r\n"
                     "[     0] #1 LISTING -> WAITING: next in line\n"
                     "  > watch /r/G5-0000000007\n"
                     "  > watch /r/G1-0000000009\n");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_fired(s, "/r/G5-0000000007", ZKL_FIRED_DELETED);
    assert_int_equal(script_contender(s, 1)->machine.state, ZKL_CONTENDER_HOLDING);
    expect_place(s, 1, 0, "", NULL);
    script_event(s, ZKL_SE_EXPIRED);
    script_unlock(s, 1);
    script_free(s);
}

/* Goal: data that no owner could have written is not reported. Method: a request for a release,
 * none, a byte that ends it, a control character, and more than fits. */
TEST(what_is_no_owner_is_not_told)
{
    static const struct {
        const char *data;
        size_t size;
    } odd[] = {{"__REVOKE__", 10}, {NULL, 0}, {"", 0}, {"a\0b", 3}, {"a\nb", 3}, {NULL, 513}};
    char longest[513];
    struct script *s = script_connected();
    memset(longest, 'a', sizeof longest);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        script_queue(s, "/r", 9 + (int)i, "5:7");
        armed(s, odd[i].size == 513 ? longest : odd[i].data, odd[i].size);
        script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
        expect_place(s, (int)i + 1, 1, "-0000000007", NULL);
        script_stop(s, (int)i + 1, ZKL_ECANCELED);
        script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
        script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    }
    script_queue(s, "/r", 20, "5:7");
    armed(s, longest, 512);
    assert_int_equal(strlen(zkl_queue_place_of(script_contender(s, 7)).owner), 512);
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 7, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: of an owner of the same client it is known without an answer. Method: the holder has a watch on its own node;
 * its successor shares that. */
TEST(an_owner_of_the_same_client_is_known)
{
    struct script *s = script_connected();
    script_lock_watched(s, "/r");
    script_created(s, 7);
    script_listed(s, "1:7");
    armed(s, "whatever", 8);
    script_queue(s, "/r", 8, "1:7");
    expect_place(s, 2, 1, "-0000000007", script_contender(s, 1)->machine.lock_request.data);
    assert_null(script_contender(s, 2)->subs[ZKL_SUB_PRED].watch->owner); /* not kept */
    script_event(s, ZKL_SE_EXPIRED);
    script_unlock(s, 1);
    script_stop(s, 2, ZKL_ECANCELED);
    script_free(s);
}
