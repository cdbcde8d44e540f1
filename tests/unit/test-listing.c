/* SPDX-License-Identifier: Apache-2.0
 * Holders and waiters, from the names of a lock's children. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests.h"

#include "core/listing.h"
#include "core/queue.h"

#define LIST_MAX 64

/* --- lists as text -------------------------------------------------------- */

static struct zkl_listed list[LIST_MAX];
static char names[LIST_MAX][160];
static char text[8192];

static void add(size_t at, const char *name, enum zkl_listed_in in, int64_t session)
{
    snprintf(names[at], sizeof names[at], "%s", name);
    list[at] = (struct zkl_listed){.name = names[at], .in = in, .session = session, .given = at};
}

/* Words: a name, with "leases/" or "locks/" before it, with "@session" behind it. */
static size_t read_list(const char *words)
{
    static char copy[4096];
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        enum zkl_listed_in in = ZKL_IN_LOCK_PATH;
        char *session = strchr(word, '@');
        if (session)
            *session++ = '\0';
        if (strncmp(word, "leases/", 7) == 0)
            in = ZKL_IN_LEASES;
        if (strncmp(word, "locks/", 6) == 0)
            in = ZKL_IN_LOCKS;
        add(count++, in == ZKL_IN_LOCK_PATH ? word : strchr(word, '/') + 1, in,
            session ? atoll(session) : 0);
    }
    return count;
}

static const char *tell(size_t count)
{
    static const char *const roles[] = {"", "holds", "waits", "foreign"};
    static const char *const accesses[] = {"", " lock", " read", " write", " permit", " entry"};
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char line[256];
        snprintf(line, sizeof line, "%s %s%s", list[i].name, roles[list[i].role],
                 accesses[list[i].access]);
        if (list[i].waits_for != ZKL_NO_ENTRY)
            snprintf(line + strlen(line), 80, " for %zu", list[i].waits_for);
        strcat(strcat(text, line), "\n");
    }
    return text;
}

static void expect(const char *words, int permits, enum zkl_lock_kind kind, const char *told)
{
    size_t count = read_list(words);
    assert_int_equal(zkl_listing_judge(list, count, permits), kind);
    assert_string_equal(tell(count), told);
}

/* --- queues --------------------------------------------------------------- */

/* Goal: the smallest number holds, every other contender waits for the one before, whichever
 * library named the nodes; strangers come last. */
TEST(a_mutex_has_one_holder_and_a_queue)
{
    expect("readme a-lock-0000000009 0123__lock__0000000007 x-0a1b-0000000008 b-lock--000000002 0",
           0, ZKL_LOCK_KIND_MUTEX,
           "b-lock--000000002 holds lock\n"
           "0123__lock__0000000007 waits lock for 0\n"
           "x-0a1b-0000000008 waits lock for 1\n"
           "a-lock-0000000009 waits lock for 2\n"
           "0 foreign\n"
           "readme foreign\n");
    expect("", 0, ZKL_LOCK_KIND_NONE, "");
    expect("b a", 0, ZKL_LOCK_KIND_NONE, "a foreign\nb foreign\n");
}

/* Goal: readers before the first writer hold together; a writer waits for the one just before it, a
 * reader for the nearest writer. */
TEST(readers_hold_together)
{
    expect("a-__READ__0000000001 b-__READ__0000000002 c-__WRIT__0000000003 d-__READ__0000000004 "
           "e-__READ__0000000005 f-__WRIT__0000000006 77__rlock__0000000007",
           0, ZKL_LOCK_KIND_RWLOCK,
           "a-__READ__0000000001 holds read\n"
           "b-__READ__0000000002 holds read\n"
           "c-__WRIT__0000000003 waits write for 1\n"
           "d-__READ__0000000004 waits read for 2\n"
           "e-__READ__0000000005 waits read for 2\n"
           "f-__WRIT__0000000006 waits write for 4\n"
           "77__rlock__0000000007 waits read for 5\n");
}

/* Goal: a thread that holds the write lock and has read under it holds both, whichever of the two
 * names is the smaller; the next writer waits. */
TEST(a_writer_that_reads_holds_both)
{
    expect("a-__WRIT__0000000007 b-__READ__0000000007 c-__WRIT__0000000008", 0,
           ZKL_LOCK_KIND_RWLOCK,
           "a-__WRIT__0000000007 holds write\n"
           "b-__READ__0000000007 holds read\n"
           "c-__WRIT__0000000008 waits write for 1\n");
    expect("c-__WRIT__0000000008 a-__READ__0000000007 b-__WRIT__0000000007", 0,
           ZKL_LOCK_KIND_RWLOCK,
           "a-__READ__0000000007 holds read\n"
           "b-__WRIT__0000000007 holds write\n"
           "c-__WRIT__0000000008 waits write for 1\n");
}

#define G "_c_00000000-0000-4000-8000-000000000000-"

/* Goal: named locks under one root are queues of their own, beside the plain one. */
TEST(each_name_is_a_queue_of_its_own)
{
    expect(G "b_lock_0000000003 " G "a_lock_0000000001 " G "lock-0000000002 " G
             "b_lock_0000000004 " G "a_lock_0000000005 " G "lock-0000000006 " G
             "a-b_lock_0000000007 b_lock_0000000000",
           0, ZKL_LOCK_KIND_MUTEX,
           G "a_lock_0000000001 holds lock\n" G "lock-0000000002 holds lock\n" G
             "b_lock_0000000003 holds lock\n" G "a-b_lock_0000000007 holds lock\n" G
             "b_lock_0000000004 waits lock for 2\n" G "a_lock_0000000005 waits lock for 0\n" G
             "lock-0000000006 waits lock for 1\n"
             "b_lock_0000000000 foreign\n");
    assert_string_equal(list[0].naming.name, "a");
    assert_string_equal(list[1].naming.name, "");
    assert_string_equal(list[3].naming.name, "a-b");
}

/* --- semaphores ----------------------------------------------------------- */

/* Goal: as many of the leases as there are permits hold, by their numbers; behind them those that
 * have made one more, then the inner queue. */
TEST(as_many_leases_hold_as_there_are_permits)
{
    expect("config locks/d-lock-0000000009 leases/c-lease-0000000005 leases/a-lease-0000000003 "
           "leases/b-lease-0000000004 locks/c-lock-0000000008 leases/note locks/readme "
           "leases/e-lock-0000000001",
           2, ZKL_LOCK_KIND_SEMAPHORE,
           "a-lease-0000000003 holds permit\n"
           "b-lease-0000000004 holds permit\n"
           "c-lease-0000000005 waits permit\n"
           "c-lock-0000000008 waits entry\n"
           "d-lock-0000000009 waits entry for 3\n"
           "config foreign\n"
           "e-lock-0000000001 foreign\n"
           "note foreign\n"
           "readme foreign\n");
    expect("leases/a-lease-0000000003", 2, ZKL_LOCK_KIND_SEMAPHORE,
           "a-lease-0000000003 holds permit\n");
    expect("locks/a-lock-0000000003", 0, ZKL_LOCK_KIND_SEMAPHORE,
           "a-lock-0000000003 waits entry\n");
}

/* Goal: if the number of permits is unknown, all leases hold except that of a contender that is
 * just asking for one: the newest, if it is of the session that is first in the inner queue. */
TEST(without_a_number_the_newest_of_the_asker_waits)
{
    static const char leases[] =
        "leases/a-lease-0000000003@17 leases/b-lease-0000000004@18 leases/c-lease-0000000005@19 ";
    char words[512];
    snprintf(words, sizeof words, "%s%s", leases,
             "locks/d-lock-0000000009@19 locks/e-lock-0000000010@20");
    expect(words, 0, ZKL_LOCK_KIND_SEMAPHORE,
           "a-lease-0000000003 holds permit\n"
           "b-lease-0000000004 holds permit\n"
           "c-lease-0000000005 waits permit\n"
           "d-lock-0000000009 waits entry\n"
           "e-lock-0000000010 waits entry for 3\n");
    snprintf(words, sizeof words, "%s%s", leases,
             "locks/d-lock-0000000009@18 locks/e-lock-0000000010@19");
    expect(words, 0, ZKL_LOCK_KIND_SEMAPHORE,
           "a-lease-0000000003 holds permit\n"
           "b-lease-0000000004 holds permit\n"
           "c-lease-0000000005 holds permit\n"
           "d-lock-0000000009 waits entry\n"
           "e-lock-0000000010 waits entry for 3\n");
    expect("leases/c-lease-0000000005 locks/d-lock-0000000009", 0, ZKL_LOCK_KIND_SEMAPHORE,
           "c-lease-0000000005 holds permit\n"
           "d-lock-0000000009 waits entry\n");
}

/* --- against the contenders' own eyes ------------------------------------- */

static uint32_t seed = 12345;

static unsigned draw(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static size_t draw_list(void)
{
    static const char *const kinds[] = {"lock-",     "__READ__",  "__WRIT__",  "__lock__",
                                        "__rlock__", "one_lock_", "two_lock_", "note"};
    size_t count = draw(LIST_MAX);
    for (size_t i = 0; i < count; i++) {
        char name[160]; /* some numbers are equal */
        snprintf(name, sizeof name, "_c_%08d-0000-4000-8000-000000000000-%s%010d", (int)i,
                 kinds[draw(sizeof kinds / sizeof *kinds)], (int)draw(50) - 9);
        add(i, name, ZKL_IN_LOCK_PATH, 0);
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
