/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others, names and data of nodes, made safe for a line on a terminal: characters that
 * would steer the terminal, reverse or break the line, or be invisible are written as in bash's
 * $'...'. */
#ifndef ZKLOCK_TOOL_PLAIN_H
#define ZKLOCK_TOOL_PLAIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

enum { PLAIN_TIMES = 4 }; /* as long as the text at most */

/* out has room for PLAIN_TIMES * strlen(text) + 1. Control characters, those that are not seen or
 * change the direction, and bytes that are no UTF-8 become "\n", "\u202e", "\U000e0041", "\xff".
 * The rest stays. */
void plain(char *out, const char *text);

/* Print so what the format makes; a newline at its end stays one. */
void plain_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void plain_vprint(FILE *to, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

#endif
