/* SPDX-License-Identifier: Apache-2.0 */
/* Under which sanitizer is this compiled? gcc says it by macros, clang by features. */
#ifndef ZKTEST_SANITIZER_H
#define ZKTEST_SANITIZER_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(UNDER_ASAN)
#define UNDER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) && !defined(UNDER_TSAN)
#define UNDER_TSAN 1
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

#endif
