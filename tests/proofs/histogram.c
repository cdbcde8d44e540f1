/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms: each time has one bucket, the one between whose bounds it lies. */
#include "proof.h"

#include "core/histogram.h"

#define LAST (ZKL_HISTOGRAM_BUCKETS - 1)

static uint64_t upper(size_t bucket)
{
    return (uint64_t)zkl_histogram_bound_ns(bucket);
}

/* For every time of 64 bits. */
void each_time_lies_between_its_buckets_bounds(void)
{
    struct zkl_histogram h = {0};
    int64_t ns = nondet_int64();
    uint64_t time = ns > 0 ? (uint64_t)ns : 0;
    size_t bucket = (size_t)any_between(0, LAST);

    zkl_histogram_add(&h, ns);
    prove(h.count == 1 && h.sum_ns == time && h.max_ns == time);
    bool inside =
        (bucket == LAST || time < upper(bucket)) && (bucket == 0 || time >= upper(bucket - 1));
    prove(h.buckets[bucket] == inside);
}

void bounds_grow(void)
{
    size_t bucket = (size_t)any_between(1, LAST);

    prove(upper(bucket - 1) > 0 && upper(bucket - 1) < upper(bucket));
    prove(zkl_histogram_bound_ns(nondet_size()) > 0);
}

/* Two buckets for each doubling: half as much more, or a third, once above the unit. */
void a_bucket_is_at_most_half_as_wide_again(void)
{
    size_t bucket = (size_t)any_between(2, LAST - 1);

    prove(2 * upper(bucket) <= 3 * upper(bucket - 1));
}

/* What is counted in two is counted in one, as long as no sum is beyond 64 bits. */
void merging_adds(void)
{
    struct zkl_histogram into = {0}, from = {0};
    size_t bucket = (size_t)any_between(0, LAST);

    zkl_histogram_add(&into, nondet_int64());
    zkl_histogram_add(&from, nondet_int64());
    struct zkl_histogram before = into;
    zkl_histogram_merge(&into, &from);
    prove(into.count == before.count + from.count && into.sum_ns == before.sum_ns + from.sum_ns);
    prove(into.buckets[bucket] == before.buckets[bucket] + from.buckets[bucket]);
    prove(into.max_ns >= before.max_ns && into.max_ns >= from.max_ns);
    prove(into.max_ns == before.max_ns || into.max_ns == from.max_ns);
}
