/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the programs on standard error: one line, one sentence, behind the program's name. */
#ifndef ZKLOCK_TOOL_SAY_H
#define ZKLOCK_TOOL_SAY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "exits.h"

/* "zklock", unless a main function sets it first. */
extern const char *program_name;

/* How long a reader of standard error is waited for; then the line is omitted. SAY_WAITS: for ever.
 * 0 while a lock is held that must be watched. */
enum { SAY_WAITS = -1 };
extern atomic_int say_waits_ms;

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, and gives the status back: return fail(EXIT_USAGE, "..."). */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says why the library's last call on this thread failed, and gives the exit status for its
 * code. */
int fail_code(int code);

/* The exit status of a program that has printed to standard output: this one; or, if it is 0 and
 * not all could be written, another one after a sentence. */
int check_output(int status);

/* What the library's last call on this thread says behind this text and a semicolon, which is where
 * it says why no server was of use: from the semicolon on, for %.*s. Length 0: nothing. */
const char *reason_behind(const char *what, int *length);

#endif
