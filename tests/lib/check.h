/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions for cmocka that show both values as numbers, and waiting with a bound. They are for
 * the test's own thread: a failed one jumps out of the test. */
#ifndef ZKTEST_CHECK_H
#define ZKTEST_CHECK_H

#include "lag.h"
#include "tests.h"
#include "tool/net.h"

/* True as soon as the condition is, false if it is not after ms, of which a busy machine has more: lag.h. For
 * conditions that have no signal. */
#define wait_until(condition, ms)                                                                  \
    ({                                                                                             \
        int64_t wait_ns_ = (ms)*INT64_C(1000000);                                                  \
        struct lag wait_lag_ = lag_of_now();                                                       \
        bool wait_true_ = (condition);                                                             \
        while (!wait_true_ && wait_lag_.counted_ns < wait_ns_) {                                   \
            lag_nap(&wait_lag_, wait_lag_.counted_ns > wait_ns_ / 8); /* costs no short wait */    \
            wait_true_ = (condition);                                                              \
        }                                                                                          \
        wait_true_;                                                                                \
    })

/* A slow machine gets this much more, however short the bound is for the others. */
#define SLOW_WAIT_MS 20000

#define check_wait(condition, ms)                                                                  \
    do {                                                                                           \
        if (!wait_until(condition, ms) && !(lag_is_slow() && wait_until(condition, SLOW_WAIT_MS))) \
            fail_msg("not within %d ms: %s", (int)(ms), #condition);                               \
    } while (0)

#define check_true(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("not true: %s", #condition);                                                  \
    } while (0)

/* check_num(count, >=, 3) */
#define check_num(left, relation, right)                                                           \
    do {                                                                                           \
        long long left_ = (long long)(left);                                                       \
        long long right_ = (long long)(right);                                                     \
        if (!(left_ relation right_))                                                              \
            fail_msg("%s %s %s: it is %lld and %lld", #left, #relation, #right, left_, right_);    \
    } while (0)

/* 0 is success everywhere in this project. */
#define check_ok(call) check_num(call, ==, 0)

#define check_text(left, right) assert_string_equal(left, right)

#endif
