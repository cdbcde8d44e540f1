/* SPDX-License-Identifier: Apache-2.0 */
/* A wrong call has its code, and zkl_error_detail() says what to do. */
#ifndef ZKTEST_CHECK_ERROR_H
#define ZKTEST_CHECK_ERROR_H

#include <string.h>

#include "cluster.h"

/* What the last call said is the code's sentence, and particulars with this word among them. */
static inline void check_detail(int code, const char *word)
{
    const char *detail = zkl_error_detail();
    size_t n = strlen(zkl_strerror(code));

    if (strncmp(detail, zkl_strerror(code), n) != 0 || !strstr(detail + n, word))
        fail_msg("code %d says \"%s\", without \"%s\"", code, detail, word);
}

#define check_fails(call, code, word)                                                              \
    do {                                                                                           \
        check_num(call, ==, code);                                                                 \
        check_detail(code, word);                                                                  \
    } while (0)

#endif
