/* SPDX-License-Identifier: Apache-2.0 */
/* A test stands once, where it is written: TEST(what_it_shows) { ... }. Those of a program, of all its files, are run in
 * their order. */
#ifndef ZKTEST_TESTS_H
#define ZKTEST_TESTS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TESTS_MAX 1024

struct tests {
    size_t count;
    struct CMUnitTest row[TESTS_MAX];
};

extern struct tests tests_here; /* each file has it: weak */
struct tests tests_here __attribute__((weak));

static inline void tests_add(const char *name, CMUnitTestFunction test, CMFixtureFunction before,
                             CMFixtureFunction after, void *state)
{
    struct CMUnitTest row = {name, test, before, after, state};

    if (tests_here.count < TESTS_MAX)
        tests_here.row[tests_here.count] = row;
    tests_here.count++;
}

/* "2/4": of each four the second, so that a program can be several tests for meson and none is left out. */
static inline bool tests_take_part(const char *text)
{
    size_t part, parts, count = 0;

    if (sscanf(text, "%zu/%zu", &part, &parts) != 2 || part < 1 || part > parts)
        return false;
    for (size_t i = part - 1; i < tests_here.count; i += parts)
        tests_here.row[count++] = tests_here.row[i];
    tests_here.count = count;
    return true;
}

/* Run them; argv[1]: only a part, or those of that name, with wildcards. */
static inline int tests_main(int argc, char **argv, CMFixtureFunction start, CMFixtureFunction stop)
{
    const char *program = program_invocation_short_name;

    if (tests_here.count == 0 || tests_here.count > TESTS_MAX)
        return 1;
    if (argc > 1 && !tests_take_part(argv[1]))
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests(strncmp(program, "test-", 5) == 0 ? program + 5 : program,
                                   tests_here.row, tests_here.count, start, stop);
}

/* One that is written elsewhere, with what is done before and after it, which may be NULL. */
#define TEST_OF(name, test, before, after, state)                                                  \
    static __attribute__((constructor)) void name##_is_added(void)                                 \
    {                                                                                              \
        tests_add(#name, test, before, after, state);                                              \
    }

#define TEST_IN(name, before, after)                                                               \
    static void name(void **state);                                                                \
    TEST_OF(name, name, before, after, NULL)                                                       \
    static void name(__attribute__((unused)) void **state)
#define TEST(name) TEST_IN(name, NULL, NULL)

#endif
