/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of times: where a time is counted, and what is read back. */
#include "tests.h"

#include "core/histogram.h"

#define SAMPLES 20000
#define UNIT_NS 500

static int64_t samples[SAMPLES];

/* Goal: every time counts in one bucket, by the public bounds. Method: each bound, and the values
 * just below and above it. */
TEST(a_time_is_counted_below_its_bound)
{
    for (size_t i = 0; i < ZKL_HISTOGRAM_BUCKETS; i++) {
        struct zkl_histogram h = {.count = 0};
        int64_t bound = zkl_histogram_bound_ns(i);
        int64_t below = i > 0 ? zkl_histogram_bound_ns(i - 1) : 0;
        assert_true(bound > below);
        zkl_histogram_add(&h, below);
        zkl_histogram_add(&h, bound - 1);
        assert_int_equal(h.buckets[i], 2);
        assert_int_equal(h.count, 2);
        assert_int_equal(h.sum_ns, (uint64_t)below + (uint64_t)(bound - 1));
        assert_int_equal(h.max_ns, bound - 1);
    }
    assert_int_equal(zkl_histogram_bound_ns(0), UNIT_NS);
    assert_int_equal(zkl_histogram_bound_ns(5), 4000);
    assert_int_equal(zkl_histogram_bound_ns(ZKL_HISTOGRAM_BUCKETS - 1), INT64_MAX);
    assert_true(zkl_histogram_bound_ns(ZKL_HISTOGRAM_BUCKETS - 2) > INT64_C(7) * 3600 * 1000000000);
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* By rank: this many percent of the samples are not above it. */
static int64_t exact(double percent)
{
    double rank = SAMPLES * percent / 100;
    size_t at = (size_t)rank;
    if ((double)at < rank)
        at++;
    return samples[at > 0 ? at - 1 : 0];
}

static void check_percentiles(const struct zkl_histogram *h)
{
    static const double percents[] = {0, 0.1, 1, 10, 25, 50, 75, 90, 99, 99.9, 100};
    qsort(samples, SAMPLES, sizeof samples[0], compare);
    for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++) {
        int64_t is = zkl_histogram_percentile_ns(h, percents[i]), should = exact(percents[i]);
        int64_t error = llabs(is - should);
        if (error > UNIT_NS && error * 5 > should)
            fail_msg("%g percent: %lld ns, not %lld", percents[i], (long long)is,
                     (long long)should);
    }
}

/* Goal: no percentile is farther from the truth than the header says. Method: times of all lengths, and
 * of one length, against their sorted list. */
TEST(percentiles_are_within_the_stated_error)
{
    srand(1);
    for (int range = 1; range < 44; range++) {
        struct zkl_histogram h = {.count = 0};
        for (size_t i = 0; i < SAMPLES; i++) {
            int64_t wide = (int64_t)rand() << 20 ^ rand();
            samples[i] = wide % (INT64_C(1) << range);
            zkl_histogram_add(&h, samples[i]);
        }
        check_percentiles(&h);
    }
}

/* Goal: a time above the last bound still differs from none, and no time is negative. */
TEST(the_ends_are_kept)
{
    struct zkl_histogram h = {.count = 0}, sum = {.count = 0};
    int64_t day = INT64_C(24) * 3600 * 1000000000;
    assert_int_equal(zkl_histogram_percentile_ns(&h, 50), 0);
    assert_int_equal(zkl_histogram_percentile_ns(NULL, 50), 0);
    zkl_histogram_add(&h, -5);
    assert_int_equal(h.buckets[0], 1);
    assert_int_equal(h.sum_ns, 0);
    zkl_histogram_add(&h, day);
    assert_int_equal(zkl_histogram_percentile_ns(&h, 100), day);
    zkl_histogram_merge(&sum, &h);
    zkl_histogram_merge(&sum, &h);
    assert_int_equal(sum.count, 4);
    assert_int_equal(sum.sum_ns, 2 * day);
    assert_int_equal(sum.max_ns, day);
    assert_int_equal(sum.buckets[ZKL_HISTOGRAM_BUCKETS - 1], 2);
}
