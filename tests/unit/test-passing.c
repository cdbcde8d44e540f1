/* SPDX-License-Identifier: Apache-2.0 */
/* Which signals to zklock the command still gets: the pairs of what zklock and what the anchor got. Times are
 * given, so no killer is ever late. */
#include "passing.h"

#include <signal.h>
#include <string.h>

#include "check.h"
#include "clock.h"

#define KILLER 4711
#define MS(n) ((n)*MS_NS)
#define WAIT_NS MS(PASSING_WAIT_MS)

static struct passing passing;

static int reset(void **state)
{
    (void)state;
    memset(&passing, 0, sizeof passing);
    return 0;
}

/* How many of that number are passed on, all being due. */
static int passed(int number)
{
    struct passing_one one;
    int n = 0;

    while (passing_take(&passing, INT64_MAX, &one))
        n += one.number == number && !one.to_all;
    return n;
}

/* Goal: what only zklock got is passed on, when its time is over and not before. */
TEST_IN(to_zklock_alone, reset, NULL)
{
    struct passing_one one;

    check_true(passing_due_ns(&passing) == 0);
    check_true(passing_ours(&passing, SIGTERM, KILLER, MS(1000)));
    check_num(passing_due_ns(&passing), ==, MS(1000) + WAIT_NS);
    check_true(!passing_take(&passing, MS(1000) + WAIT_NS - 1, &one));
    check_true(passing_take(&passing, MS(1000) + WAIT_NS, &one));
    check_true(one.number == SIGTERM && !one.to_all);
    check_true(passing_due_ns(&passing) == 0);
}

/* Goal: what the anchor got as well is not, whoever of the two came first, and whoever is heard of first. */
TEST_IN(to_all, reset, NULL)
{
    check_true(passing_ours(&passing, SIGTERM, KILLER, MS(1000)));
    passing_anchors(&passing, SIGTERM, MS(1001));
    check_num(passed(SIGTERM), ==, 0);
    passing_looks(&passing, MS(2000));
    passing_anchors(&passing, SIGTERM, MS(2001));
    check_true(passing_ours(&passing, SIGTERM, KILLER, MS(2001)));
    check_num(passed(SIGTERM), ==, 0);
}

/* Goal: each one of the anchor's is good for one of zklock's, of the same number. */
TEST_IN(one_for_one, reset, NULL)
{
    passing_anchors(&passing, SIGINT, MS(1000));
    for (int i = 0; i < 3; i++)
        check_true(passing_ours(&passing, SIGTERM, KILLER + i, MS(1000)));
    passing_anchors(&passing, SIGTERM, MS(1001));
    check_num(passed(SIGTERM), ==, 2);
    check_true(passing_ours(&passing, SIGTERM, KILLER, MS(1002)));
    check_num(passed(SIGTERM), ==, 1);
}

/* Goal: what the group alone got, as by ^C, does not take a later one away. */
TEST_IN(to_the_group_alone, reset, NULL)
{
    passing_anchors(&passing, SIGINT, MS(1000));
    passing_anchors(&passing, SIGINT, MS(1100));
    passing_looks(&passing, MS(1101) + WAIT_NS);
    check_true(passing_ours(&passing, SIGINT, KILLER, MS(1102) + WAIT_NS));
    check_num(passed(SIGINT), ==, 1);
}

/* Goal: each of the anchor's grows old by itself. Zklock has to look when the oldest one does, or its next signal could
 * be as old. */
TEST_IN(each_grows_old, reset, NULL)
{
    check_true(passing_look_ns(&passing) == 0);
    passing_anchors(&passing, SIGINT, MS(1000));
    passing_anchors(&passing, SIGTERM, MS(1000));
    passing_anchors(&passing, SIGTERM, MS(1100));
    check_num(passing_look_ns(&passing), ==, MS(1000) + WAIT_NS + 1);
    passing_looks(&passing, MS(1000) + WAIT_NS);
    check_num(passing_look_ns(&passing), ==, MS(1000) + WAIT_NS + 1);
    passing_looks(&passing, MS(1000) + WAIT_NS + 1);
    check_num(passing_look_ns(&passing), ==, MS(1100) + WAIT_NS + 1);
    check_true(passing_ours(&passing, SIGTERM, KILLER, MS(1001) + WAIT_NS));
    check_true(passing_look_ns(&passing) == 0);
    check_true(passing_ours(&passing, SIGTERM, KILLER + 1, MS(1001) + WAIT_NS));
    check_num(passed(SIGTERM), ==, 1);
}

/* Goal: of too many of the anchor's the newest are kept. */
TEST_IN(many_of_the_anchors, reset, NULL)
{
    passing_anchors(&passing, SIGINT, MS(1000));
    for (int i = 0; i < PASSING_MAX; i++)
        passing_anchors(&passing, SIGTERM, MS(1001));
    check_true(passing_ours(&passing, SIGINT, KILLER, MS(1002)));
    check_num(passed(SIGINT), ==, 1);
    for (int i = 0; i < PASSING_MAX; i++)
        check_true(passing_ours(&passing, SIGTERM, KILLER + i, MS(1002)));
    check_num(passed(SIGTERM), ==, 0);
}

/* Goal: a zklock that was stopped finds its signal late, and knows that it may be as old as the anchor's. */
TEST_IN(while_stopped, reset, NULL)
{
    passing_looks(&passing, MS(1000));
    passing_anchors(&passing, SIGTERM, MS(1001));
    check_true(passing_ours(&passing, SIGTERM, KILLER, MS(60000)));
    check_num(passed(SIGTERM), ==, 0);
}

/* Goal: two at once from one sender, as of timeout(1), are one; later, or from another, they are two. */
TEST_IN(twice_at_once, reset, NULL)
{
    check_true(passing_ours(&passing, SIGTERM, KILLER, MS(1000)));
    check_true(passing_ours(&passing, SIGTERM, KILLER, MS(1001)));
    check_num(passed(SIGTERM), ==, 1);
    check_true(passing_ours(&passing, SIGTERM, KILLER, MS(1002)));
    check_true(passing_ours(&passing, SIGTERM, KILLER + 1, MS(1003)));
    check_true(passing_ours(&passing, SIGINT, KILLER + 1, MS(1003)));
    check_true(passing_ours(&passing, SIGINT, KILLER + 1, MS(1003 + PASSING_TWICE_MS)));
    check_num(passed(SIGTERM), ==, 2);
}

/* Goal: real-time signals are counted, however close together they come. */
TEST_IN(real_time, reset, NULL)
{
    for (int i = 0; i < 3; i++) {
        check_true(passing_ours(&passing, SIGRTMIN, KILLER, MS(1000)));
        check_true(passing_ours(&passing, SIGRTMAX, KILLER, MS(1000)));
        check_true(passing_ours(&passing, SIGRTMAX, KILLER, MS(1000)));
    }
    passing_anchors(&passing, SIGRTMAX, MS(1000));
    check_num(passed(SIGRTMAX), ==, 5);
}

/* Goal: the order is kept, and one too many is refused. */
TEST_IN(many, reset, NULL)
{
    struct passing_one one;

    for (int i = 0; i < PASSING_MAX; i++)
        check_true(passing_ours(&passing, 1 + i % 10, KILLER, MS(i)));
    check_true(!passing_ours(&passing, SIGTERM, KILLER, MS(99)));
    for (int i = 0; i < PASSING_MAX; i++) {
        check_true(passing_take(&passing, INT64_MAX, &one));
        check_num(one.number, ==, 1 + i % 10);
    }
}
