/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this suite share: one private server, the peers, and the witness. */
#ifndef ZKINTEROP_INTEROP_H
#define ZKINTEROP_INTEROP_H

#include "crowd.h"

/* A test that finds all peers idle. All are skipped when anything is missing. */
#define INTEROP_TEST(name) TEST_IN(name, interop_setup, interop_teardown)
int interop_setup(void **state);
int interop_teardown(void **state);

/* --- a race ----------------------------------------------------------------------------------- */

#define RACE_SIDES_MAX 3
#define RACE_WORKERS 2                     /* of each side */
#define RACE_ROUNDS test_length(2000, 500) /* of each side */
#define RACE_SHARE_MIN 30.0 /* percent of the visits that follow one of another language */

/* Two or three languages on one lock. */
struct race {
    const char *title;
    const char *sides[RACE_SIDES_MAX]; /* "c mutex /path names=kazoo": language, and a row */
    int together;                      /* how many must have been seen inside at a time; 0: one */
    bool is_short;                     /* half of RACE_ROUNDS */
    double share_min;                  /* 0: RACE_SHARE_MIN */
    bool is_lost;                      /* somebody must be seen beside another one */
};

/* Everybody makes a handle and enters once; then all run at the same time. Ends with the first
 * rule that is broken: NULL, or that rule. */
const char *race_run(const struct race *race);
/* The same, and the test fails if a rule was broken, if the languages did not take turns, or if a
 * node was left behind. Prints the figures. */
void race(const struct race *race);

/* Ends a test where there is no go-zookeeper. */
void skip_without_go(void);

/* No contender is left below path. */
void check_no_contender(const char *path);

#endif
