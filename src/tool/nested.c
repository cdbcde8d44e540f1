/* SPDX-License-Identifier: Apache-2.0
 *
 * A zklock run inside the command of another one. The outer one waits for the inner one, and only
 * the environment (ZKLOCK_TOKEN) shows it: so the inner one writes that token into its nodes, for
 * zklock doctor. This file owns nothing. Any thread; connect.c and cycles.c call it. */
#include "nested.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNDER " under "

/* Several paths are one lock: any of its tokens will do, and the first is as good as another. */
const char *nested_owner(char text[NESTED_SIZE])
{
    const char *variable = getenv("ZKLOCK_TOKEN");
    char host[65] = "";
    size_t digits = variable ? strspn(variable, "0123456789") : 0;
    if (digits == 0 || digits > 20 || gethostname(host, sizeof host - 1) != 0)
        return NULL;
    snprintf(text, NESTED_SIZE, "%s %ld %ld" UNDER "%.*s", host, (long)getpid(), (long)gettid(),
             (int)digits, variable);
    return text;
}

uint64_t nested_under(const struct zkl_entry *e)
{
    const char *at = e->host[0] ? strstr(e->owner, UNDER) : NULL;
    return at ? strtoull(at + strlen(UNDER), NULL, 10) : 0;
}
