/* SPDX-License-Identifier: Apache-2.0
 * The order of random queues: by a sorted list, and of a listing by each contender's own eyes. queue.txt and listing.txt
 * have what is known by heart. */
#include "tests.h"

#include "core/listing.h"
#include "core/queue.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define LIST_MAX 64

static uint32_t random_state;

static unsigned draw(unsigned n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % n;
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
    size_t count = draw(12), kept = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t number = starts[draw(COUNT(starts))] + (int32_t)draw(4);
        bool foreign = draw(5) == 0;
        snprintf(names[i], sizeof names[i], foreign ? "%c%zu-read-%010d" : "%c%zu-lock-%010d",
                 (int)('a' + draw(3)), i, number);
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
            struct zkl_look look =
                zkl_queue_position(&(struct zkl_naming){0}, all, count, sorted[i]);
            const char *expected = i > 0 ? sorted[i - 1] : NULL;
            if (!look.present || look.before != i || look.predecessor != expected ||
                look.contenders != kept)
                fail_msg("round %d: %s is behind %s", round, sorted[i],
                         look.predecessor ? look.predecessor : "nobody");
        }
    }
}

/* --- listings ------------------------------------------------------------- */

static struct zkl_listed list[LIST_MAX];
static char names[LIST_MAX][160];

static size_t draw_list(void)
{
    static const char *const kinds[] = {"lock-",     "__READ__",  "__WRIT__",  "__lock__",
                                        "__rlock__", "one_lock_", "two_lock_", "note"};
    size_t count = draw(LIST_MAX);
    for (size_t i = 0; i < count; i++) {
        /* some numbers are equal */
        snprintf(names[i], sizeof names[i], "_c_%08d-0000-4000-8000-000000000000-%s%010d", (int)i,
                 kinds[draw(COUNT(kinds))], (int)draw(50) - 9);
        list[i] = (struct zkl_listed){.name = names[i], .given = i};
    }
    for (size_t i = count; i > 1; i--) { /* shuffled */
        size_t j = draw((unsigned)i);
        struct zkl_listed swap = list[i - 1];
        list[i - 1] = list[j];
        list[j] = swap;
    }
    return count;
}

/* Goal: holder, waiter and whom it waits for are what each contender itself would say. Method: random
 * lists; each entry looks at the list with the predicate that grants locks. */
TEST(everybody_agrees_with_the_listing)
{
    const char *children[LIST_MAX];
    random_state = 12345;
    for (int round = 0; round < 2000; round++) {
        size_t count = draw_list();
        zkl_listing_judge(list, count, 0);
        for (size_t i = 0; i < count; i++)
            children[i] = list[i].name;
        for (size_t i = 0; i < count; i++) {
            const struct zkl_listed *e = &list[i];
            if (e->role == ZKL_ENTRY_ROLE_FOREIGN)
                continue;
            struct zkl_look look = zkl_queue_position(&e->naming, children, count, e->name);
            assert_true(look.present);
            assert_true((look.before == 0) == (e->role == ZKL_ENTRY_ROLE_HOLDER));
            const char *waits_for = e->waits_for == ZKL_NO_ENTRY ? NULL : list[e->waits_for].name;
            assert_ptr_equal(waits_for, look.predecessor);
        }
    }
}
