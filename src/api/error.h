/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ZKL_API_ERROR_H
#define ZKL_API_ERROR_H

#include <stdbool.h>

#include <zklock/zklock.h>

/* Note the failure for zkl_error_detail: "<sentence of code> (<what>)"; what is a printf text.
 * Returns code. */
int zkl_fail(int code, const char *what, ...) __attribute__((format(printf, 2, 3)));

/* A plain "no" or "none": the detail is empty. */
void zkl_fail_none(void);
/* Note a failure once more, whose detail this is, for the calling thread. */
void zkl_fail_again(const char *detail);

/* 0, or ZKL_EBADTIMEOUT of that call: ms is not from 0 to ZKL_TIMEOUT_MAX_MS. */
int zkl_check_ms(int64_t ms, const char *call);
/* Is it what became of an answer of the server, whose number is known? */
bool zkl_error_is_answer(int code);

#endif
