/* SPDX-License-Identifier: Apache-2.0
 * Log-linear histograms; the public calls that read them are in histogram.c. */
#ifndef ZKL_CORE_HISTOGRAM_H
#define ZKL_CORE_HISTOGRAM_H

#include <zklock/metrics.h>

/* A negative time, of clocks read by different threads, is none. */
void zkl_histogram_add(struct zkl_histogram *histogram, int64_t ns);
void zkl_histogram_merge(struct zkl_histogram *into, const struct zkl_histogram *from);

#endif
