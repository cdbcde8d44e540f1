/* SPDX-License-Identifier: Apache-2.0 */
/* A client's end and its confirmation. libzookeeper waits 1.5 s for the server to hang up, and does not say whether it
 * did: an end that took as long is not confirmed (src/driver/handle.c). A machine with much other work needs as long. */
#ifndef ZKTEST_CLOSED_H
#define ZKTEST_CLOSED_H

#include <zklock/error.h>

#include "check.h"
#include "lag.h"
#include "tool/net.h"

#define CLOSE_CONFIRMED_MS 1400

/* close: a call that returns 0, or ZKL_ETIMEDOUT if the end is not confirmed. */
#define check_closed(close)                                                                        \
    do {                                                                                           \
        int64_t closed_from_ms_ = net_now_ms();                                                    \
        lag_begin();                                                                               \
        int closed_ = (close);                                                                     \
        bool slow_ = lag_end_ms() < CLOSE_CONFIRMED_MS &&                                          \
                     net_now_ms() - closed_from_ms_ >= CLOSE_CONFIRMED_MS;                         \
        if (closed_ != ZKL_ETIMEDOUT || !slow_)                                                    \
            check_num(closed_, ==, 0);                                                             \
    } while (0)

#endif
