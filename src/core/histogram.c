/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-linear histograms: each time counts in one of 72 buckets, two for each doubling. The calls
 * that read them are public, as they need nothing but the histogram. No lock of its own: the guard
 * of the object that contains a histogram guards it. dispatch_reply.c and src/api count; users read
 * copies. */
#include "histogram.h"

#define UNIT_NS 500 /* times below it are not distinguished */
#define LAST (ZKL_HISTOGRAM_BUCKETS - 1)

/* Each doubling of the unit has two buckets, as the bit behind the first one says. */
static size_t bucket_of(uint64_t units)
{
    if (units < 2)
        return (size_t)units;
    unsigned doublings = 63 - (unsigned)__builtin_clzll(units);
    size_t bucket = 2 * doublings + ((units >> (doublings - 1)) & 1);
    return bucket < LAST ? bucket : LAST;
}

int64_t zkl_histogram_bound_ns(size_t bucket)
{
    if (bucket >= LAST)
        return INT64_MAX;
    if (bucket < 2)
        return (int64_t)(bucket + 1) * UNIT_NS;
    return (int64_t)(3 + (bucket & 1)) * UNIT_NS << (bucket / 2 - 1);
}

void zkl_histogram_add(struct zkl_histogram *h, int64_t ns)
{
    uint64_t time = ns > 0 ? (uint64_t)ns : 0;
    h->count++;
    h->sum_ns += time;
    if (time > h->max_ns)
        h->max_ns = time;
    h->buckets[bucket_of(time / UNIT_NS)]++;
}

void zkl_histogram_merge(struct zkl_histogram *into, const struct zkl_histogram *from)
{
    into->count += from->count;
    into->sum_ns += from->sum_ns;
    if (from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
    for (size_t i = 0; i < ZKL_HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

/* The value with the same relative error from both ends of the bucket. */
static int64_t middle(size_t bucket)
{
    if (bucket == 0)
        return UNIT_NS / 2;
    double low = (double)zkl_histogram_bound_ns(bucket - 1);
    double high = (double)zkl_histogram_bound_ns(bucket);
    return (int64_t)(2 * low * high / (low + high));
}

int64_t zkl_histogram_percentile_ns(const struct zkl_histogram *h, double percent)
{
    if (!h || h->count == 0)
        return 0;
    double wanted = (double)h->count * percent / 100;
    uint64_t below = 0;
    size_t bucket = 0;
    while (bucket < LAST &&
           (below + h->buckets[bucket] == 0 || (double)(below + h->buckets[bucket]) < wanted))
        below += h->buckets[bucket++];
    int64_t longest = (int64_t)h->max_ns;
    int64_t value = bucket < LAST ? middle(bucket) : longest;
    return value < longest ? value : longest;
}
