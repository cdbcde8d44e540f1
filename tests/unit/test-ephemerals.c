/* SPDX-License-Identifier: Apache-2.0 */
/* What a session may own, on a script: which create is refused, and when the bytes are given
 * back. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/bundle.h"
#include "script.h"

/* Of a mutex's node at a path of these bytes, in the transaction that ends a session. */
static size_t bytes_at(size_t path)
{
    return 4 + path + strlen("/_c_-lock-0000000000") + 36;
}

/* Room for so many nodes at paths such as /r. */
static struct script *script_with_room(size_t nodes)
{
    struct script *s = script_connected();
    s->core.ephemeral_bytes_max = nodes * bytes_at(2);
    return s;
}

static void check_full(struct script *s, const char *root)
{
    char expected[200];
    script_forget(s);
    script_lock(s, root);
    snprintf(expected, sizeof expected,
             "[%6lld] #%llu NEW -> ENDED: the session owns too much\n  #%llu failed EFULL\n"
             "  #%llu ended\n",
             (long long)s->now_ms, (unsigned long long)s->core.last_number,
             (unsigned long long)s->core.last_number, (unsigned long long)s->core.last_number);
    script_expect(s, expected);
}

static void check_room(struct script *s, const char *root)
{
    script_forget(s);
    script_lock(s, root);
    assert_true(script_has(s, "-> QUEUEING"));
}

/* Goal: a node that the session may not own is refused before any request, to the byte, chroot
 * included. */
TEST(a_node_too_many_is_refused_before_any_request)
{
    struct script *s = script_with_room(2);
    script_hold(s, "/a", 7);
    script_lock(s, "/b"); /* its create is out: that counts, too */
    assert_int_equal(s->core.ephemeral_bytes, 2 * bytes_at(2));
    check_full(s, "/c");
    s->core.ephemeral_bytes_max += bytes_at(3) - 1;
    check_full(s, "/cc");
    s->core.chroot_length = strlen("/x"); /* a client's never changes */
    check_full(s, "/c");
    s->core.chroot_length = 0;
    check_room(s, "/c");
    script_event(s, ZKL_SE_EXPIRED);
    assert_int_equal(s->core.ephemeral_bytes, 0);
    for (int i = 1; i <= (int)s->core.last_number; i++) {
        if (s->live[i - 1])
            script_stop(s, i, ZKL_ECLOSED);
    }
    script_unlock(s, 1);
    script_free(s);
}

/* Goal: each kind of name counts as it is. */
TEST(names_count_as_they_are)
{
    static const struct zkl_naming namings[] = {
        {.role = ZKL_ROLE_LOCK},
        {.role = ZKL_ROLE_READ},
        {.role = ZKL_ROLE_WRITE},
        {.role = ZKL_ROLE_PERMIT},
        {.role = ZKL_ROLE_LOCK, .names = ZKL_NAMES_KAZOO},
        {.role = ZKL_ROLE_READ, .names = ZKL_NAMES_KAZOO},
        {.role = ZKL_ROLE_LOCK, .names = ZKL_NAMES_NAMED, .name = "row 4711"},
    };
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
        char guid[ZKL_GUID_LEN + 1], name[ZKL_NODE_NAME_MAX + 1];
        zkl_guid_format((const unsigned char *)"0123456789abcdef", guid);
        zkl_name_prefix(&namings[i], guid, name);
        assert_int_equal(zkl_name_length(&namings[i]), strlen(name) + strlen("2147483647"));
    }
}

/* Goal: what a node takes is given back when the server has said that the node is gone, and not
 * before. Method: the delete is sent, its answer lost, and sent again. */
TEST(bytes_are_given_back_by_the_answer)
{
    struct script *s = script_with_room(1);
    script_hold(s, "/a", 7);
    script_unlock(s, 1);
    check_full(s, "/b");
    script_down(s); /* the janitor's from here on */
    script_up(s, SCRIPT_SESSION);
    check_full(s, "/b");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NONODE);
    assert_int_equal(s->core.ephemeral_bytes, 0);
    check_room(s, "/b");
    script_stop(s, (int)s->core.last_number, ZKL_ECANCELED); /* its create is still out */
    check_full(s, "/c");
    script_created(s, 8);
    check_full(s, "/c");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_int_equal(s->core.ephemeral_bytes, 0);
    script_free(s);
}

/* Goal: a create whose answer was lost counts once while it is looked for; and, as long as a server
 * may carry it out yet, beside the next one. */
TEST(an_unanswered_create_counts_until_it_was_looked_for)
{
    struct script *s = script_with_room(2);
    script_lock(s, "/a");
    script_down(s);
    assert_int_equal(s->core.ephemeral_bytes, bytes_at(2));
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "");
    assert_true(script_has(s, "create was not carried out"));
    assert_int_equal(s->core.ephemeral_bytes, 2 * bytes_at(2));
    check_full(s, "/b");
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_QUOTA);
    assert_int_equal(s->core.ephemeral_bytes, bytes_at(2));
    script_at(s, SCRIPT_TIMEOUT_MS);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "");
    assert_int_equal(s->core.ephemeral_bytes, 0);
    script_free(s);
}

/* Goal: where only one fits, and it may come late, the contender does not ask for another. */
TEST(a_late_create_takes_the_room_of_the_next)
{
    struct script *s = script_with_room(1);
    script_lock(s, "/a");
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "");
    assert_true(script_has(s, "#1 failed EFULL"));
    script_event(s, ZKL_SE_EXPIRED);
    assert_int_equal(s->core.ephemeral_bytes, 0);
    script_free(s);
}

/* Goal: a node that may not be deleted counts until the session ends. Method: the unlock's delete
 * is denied, then a janitor's, then a janitor may not look. */
TEST(a_node_that_stays_counts_until_the_end)
{
    struct script *s = script_with_room(3);
    script_hold(s, "/a", 7);
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NOAUTH);
    script_lock(s, "/b");
    script_stop(s, 2, ZKL_ECANCELED);
    script_created(s, 8);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NOAUTH);
    script_lock(s, "/c");
    script_stop(s, 3, ZKL_ECANCELED);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_NOAUTH);
    script_at(s, 10000);
    while (s->core.first)
        script_listed(s, "");
    check_full(s, "/d");
    script_event(s, ZKL_SE_EXPIRED);
    assert_int_equal(s->core.ephemeral_bytes, 0);
    script_free(s);
}

/* Goal: a multi-lock that does not fit as a whole makes nothing, and its transaction is never
 * sent. */
TEST(a_group_that_does_not_fit_makes_nothing)
{
    static const char *const roots[] = {"/a", "/b", "/c"};
    struct zkl_bundle_member members[3];
    struct zkl_bundle group = {.count = 3, .members = members};
    struct script *s = script_with_room(2);
    for (size_t i = 0; i < 3; i++) {
        members[i] = (struct zkl_bundle_member){
            .contender = &s->contenders[i],
            .lock_request = {.path = script_path(s, roots[i]), .data = "us"}};
        s->live[i] = true;
    }
    zkl_bundle_acquire(&s->core, s->core.now, &group);
    assert_int_equal(group.code, ZKL_EFULL);
    assert_int_equal(group.culprit, 2);
    assert_false(script_has(s, "  > "));
    assert_int_equal(s->core.ephemeral_bytes, 0);
    script_free(s);
}

/* Goal: waiters of a new session queue again in their order, as many as fit; the others are told. */
TEST(a_new_session_begins_at_nothing)
{
    struct script *s = script_with_room(2);
    script_hold(s, "/a", 7);
    script_wait(s, "/b", 9, "5:7");
    script_event(s, ZKL_SE_EXPIRED);
    script_lock(s, "/c"); /* parked: it owns nothing */
    script_lock(s, "/d");
    script_forget(s);
    script_up(s, 0xb);
    assert_int_equal(s->core.ephemeral_bytes, 2 * bytes_at(2));
    assert_true(script_has(s, "#2 PARKED -> QUEUEING"));
    assert_true(script_has(s, "#3 PARKED -> QUEUEING"));
    assert_true(script_has(s, "#4 failed EFULL"));
    script_unlock(s, 1); /* lost */
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 2, ZKL_ECLOSED);
    script_stop(s, 3, ZKL_ECLOSED);
    script_free(s);
}
