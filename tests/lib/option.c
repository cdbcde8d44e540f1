/* SPDX-License-Identifier: Apache-2.0 */
#include "option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

long option_number(const char *option, const char *text, long low, long high)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);

    if (*text == '\0' || *end != '\0' || n < low || n > high) {
        fprintf(stderr, "%s: --%s takes a number from %ld to %ld, not '%s'\n",
                program_invocation_short_name, option, low, high, text);
        exit(2);
    }
    return n;
}

void option_usage(int option, const char *text)
{
    fputs(text, option == 'h' ? stdout : stderr);
    exit(option == 'h' ? 0 : 2);
}
