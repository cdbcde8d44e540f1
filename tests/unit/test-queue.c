/* SPDX-License-Identifier: Apache-2.0
 * The order of a queue: the holders, and the node to watch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests.h"

#include "core/name.h"
#include "core/queue.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const struct zkl_naming mutex;

/* Goal: the smaller number comes first, not the smaller text. Method: numbers whose text order
 * is the other way round. Modes: F33. */
TEST(numbers_decide_not_text)
{
    static const char *const list[] = {"z-lock-0000000009", "a-lock-0000000010", "m-lock-8"};
    struct zkl_look look = zkl_queue_position(&mutex, list, COUNT(list), "a-lock-0000000010");
    assert_true(look.present);
    assert_int_equal(look.contenders, 3);
    assert_int_equal(look.before, 2);
    assert_string_equal(look.predecessor, "z-lock-0000000009");
    assert_null(zkl_queue_position(&mutex, list, COUNT(list), "m-lock-8").predecessor);
}

/* Goal: below zero the order goes on. Method: negative numbers of both widths stand before all
 * others. Modes: F27. */
TEST(negative_numbers_come_before)
{
    static const char *const list[] = {"a-lock-0000000000", "b-lock--000000001",
                                       "c-lock--2147483648", "d-lock-2147483647"};
    assert_string_equal(
        zkl_queue_position(&mutex, list, COUNT(list), "a-lock-0000000000").predecessor,
        "b-lock--000000001");
    assert_string_equal(
        zkl_queue_position(&mutex, list, COUNT(list), "b-lock--000000001").predecessor,
        "c-lock--2147483648");
    assert_null(zkl_queue_position(&mutex, list, COUNT(list), "c-lock--2147483648").predecessor);
    assert_int_equal(zkl_queue_position(&mutex, list, COUNT(list), "d-lock-2147483647").before, 3);
}

/* Goal: names order equal numbers, the same way for every contender. Method: a stuck counter's
 * nodes. */
TEST(equal_numbers_are_ordered_by_name)
{
    static const char *const list[] = {"b-lock-2147483647", "a-lock-2147483647",
                                       "c-lock-2147483647"};
    assert_null(zkl_queue_position(&mutex, list, COUNT(list), "a-lock-2147483647").predecessor);
    assert_string_equal(
        zkl_queue_position(&mutex, list, COUNT(list), "b-lock-2147483647").predecessor,
        "a-lock-2147483647");
    assert_string_equal(
        zkl_queue_position(&mutex, list, COUNT(list), "c-lock-2147483647").predecessor,
        "b-lock-2147483647");
}

/* Goal: children that are no contenders count for nothing but are named. Method: strangers
 * around two contenders, and alone. Modes: F32. */
TEST(foreign_children_are_ignored)
{
    static const char *const list[] = {"0000000000", "a-lock-0000000001", "lock-",
                                       "b-lock-0000000002", "readme"};
    static const char *const strangers[] = {"readme"};
    struct zkl_look look = zkl_queue_position(&mutex, list, COUNT(list), "a-lock-0000000001");
    assert_null(look.predecessor);
    assert_int_equal(look.contenders, 2);
    look = zkl_queue_position(&mutex, strangers, 1, "a-lock-0000000001");
    assert_int_equal(look.contenders, 0);
    assert_false(look.present);
    assert_null(look.predecessor);
}

/* Goal: a contender that is not in the list is not there, and without a node the view is from the
 * end. Method: a missing own name; NULL; an empty list. Modes: F37. */
TEST(a_missing_own_node_is_not_present)
{
    static const char *const list[] = {"a-lock-0000000001", "b-lock-0000000003"};
    struct zkl_look look = zkl_queue_position(&mutex, list, COUNT(list), "c-lock-0000000002");
    assert_false(look.present);
    assert_string_equal(look.predecessor, "a-lock-0000000001");
    look = zkl_queue_position(&mutex, list, COUNT(list), NULL);
    assert_string_equal(look.predecessor, "b-lock-0000000003");
    assert_int_equal(look.before, 2);
    look = zkl_queue_position(&mutex, NULL, 0, "a-lock-0000000001");
    assert_false(look.present);
    assert_null(look.predecessor);
}

/* Goal: a reader waits for the writers before it only, a writer for every contender, and other
 * libraries' contenders count. Method: one queue of many kinds, seen by a reader, a writer and a
 * mutex. Modes: F35. */
TEST(readers_let_readers_be)
{
    static const struct zkl_naming reader = {.role = ZKL_ROLE_READ};
    static const struct zkl_naming writer = {.role = ZKL_ROLE_WRITE};
    static const char *const list[] = {"a-__READ__0000000001", "b-__WRIT__0000000002",
                                       "c-__READ__0000000003", "d__rlock__0000000004",
                                       "e-__READ__0000000005", "f-__WRIT__0000000006"};
    struct zkl_look look = zkl_queue_position(&reader, list, COUNT(list), list[4]);
    assert_true(look.present);
    assert_int_equal(look.before, 1);
    assert_string_equal(look.predecessor, list[1]);
    look = zkl_queue_position(&reader, list, COUNT(list), list[0]);
    assert_null(look.predecessor);
    look = zkl_queue_position(&writer, list, COUNT(list), list[5]);
    assert_int_equal(look.before, 5);
    assert_string_equal(look.predecessor, list[4]);
    look = zkl_queue_position(&mutex, list, COUNT(list), NULL);
    assert_int_equal(look.before, 6);
}

/* Goal: a read node that was made under its own write node, with its number, does not wait for
 * that, nor the other way round. Method: both in one list, with names in either order. */
TEST(a_downgraded_reader_does_not_wait_for_itself)
{
    static const struct zkl_naming reader = {.role = ZKL_ROLE_READ};
    static const char *const list[] = {"a-__WRIT__0000000007", "b-__READ__0000000007",
                                       "c-__WRIT__0000000008"};
    static const struct zkl_naming writer = {.role = ZKL_ROLE_WRITE};
    struct zkl_look look = zkl_queue_position(&reader, list, COUNT(list), list[1]);
    assert_true(look.present);
    assert_null(look.predecessor);
    static const char *const turned[] = {"b-__WRIT__0000000007", "a-__READ__0000000007"};
    assert_null(zkl_queue_position(&writer, turned, COUNT(turned), turned[0]).predecessor);
    assert_null(zkl_queue_position(&reader, turned, COUNT(turned), turned[1]).predecessor);
}

/* Goal: named locks under one root know nothing of each other. Method: two names, one the end of
 * the other, beside a plain mutex. */
TEST(named_locks_see_their_own_name_only)
{
#define A_GUID "_c_00000000-0000-4000-8000-000000000000-"
    static const struct zkl_naming alpha = {.names = ZKL_NAMES_NAMED, .name = "alpha"};
    static const char *const list[] = {A_GUID "x-alpha_lock_0000000001", A_GUID "lock-0000000002",
                                       A_GUID "alpha_lock_0000000003", "alpha_lock_0000000004",
                                       A_GUID "alpha_lock_0000000005"};
    struct zkl_look look = zkl_queue_position(&alpha, list, COUNT(list), list[4]);
    assert_int_equal(look.contenders, 2);
    assert_string_equal(look.predecessor, list[2]);
    look = zkl_queue_position(&mutex, list, COUNT(list), NULL);
    assert_int_equal(look.contenders, 1);
}

/* Goal: a node is found by its GUID alone. Method: among others, of other libraries too. */
TEST(a_node_is_found_by_its_guid)
{
    static const char prefix[] = "_c_00000000-0000-4000-8000-000000000000-lock-";
    static const char *const list[] = {"lock-0000000001", "_c_",
                                       "_c_00000000-0000-4000-8000-000000000001-lock-0000000002",
                                       "_c_00000000-0000-4000-8000-000000000000-lock-0000000003"};
    assert_ptr_equal(zkl_queue_find(list, COUNT(list), prefix), list[3]);
    assert_null(zkl_queue_find(list, 3, prefix));
    assert_null(zkl_queue_find(NULL, 0, prefix));
}

/* --- against a reference -------------------------------------------------- */

static uint32_t random_state;

static uint32_t random32(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static int32_t number_of(const char *name)
{
    return (int32_t)strtoll(strstr(name, "lock-") + 5, NULL, 10);
}

static int by_place(const void *a, const void *b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    int32_t x = number_of(left), y = number_of(right);
    return x != y ? (x > y) - (x < y) : strcmp(left, right);
}

static size_t random_names(char (*names)[32], const char **contenders, const char **all)
{
    static const int32_t starts[] = {0, 5, 99998, INT32_MAX - 3, INT32_MIN, -3};
    size_t count = random32() % 12, kept = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t number = starts[random32() % COUNT(starts)] + (int32_t)(random32() % 4);
        bool foreign = random32() % 5 == 0;
        snprintf(names[i], sizeof names[i], foreign ? "%c%zu-read-%010d" : "%c%zu-lock-%010d",
                 (int)('a' + random32() % 3), i, number);
        all[i] = names[i];
        if (!foreign)
            contenders[kept++] = names[i];
    }
    all[count] = NULL;
    return kept;
}

/* Goal: the predecessor is the immediate one, always, and the one ahead the one before that. Method: random lists against a sorted one;
 * the seed is fixed, the failing list printed. Modes: F34. */
TEST(random_lists_agree_with_a_sorted_reference)
{
    char names[12][32];
    const char *sorted[13], *all[13];
    random_state = 20261121;
    for (int round = 0; round < 20000; round++) {
        size_t kept = random_names(names, sorted, all), count = 0;
        while (all[count])
            count++;
        qsort(sorted, kept, sizeof *sorted, by_place);
        for (size_t i = 0; i < kept; i++) {
            struct zkl_look look = zkl_queue_position(&mutex, all, count, sorted[i]);
            const char *expected = i > 0 ? sorted[i - 1] : NULL;
            if (!look.present || look.before != i || look.predecessor != expected ||
                look.contenders != kept)
                fail_msg("round %d: %s is behind %s", round, sorted[i],
                         look.predecessor ? look.predecessor : "nobody");
        }
    }
}
