/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on durations, on any machine. Where each thread has a processor as soon as it needs one, a bound is kept
 * to the millisecond. On a machine with much other work the library, the server and the test are slower: then time is
 * counted by what can be done in it, which short pieces of work measure. */
#ifndef ZKTEST_LAG_H
#define ZKTEST_LAG_H

#include <stdbool.h>
#include <stdint.h>

struct lag {
    int64_t at_ns;      /* up to here time has been counted */
    int64_t counted_ns; /* since the beginning */
};

struct lag lag_of_now(void);
/* Nap for a moment. measure: and count what has passed since the last time by how long a piece of work takes now;
 * else by the clock. */
void lag_nap(struct lag *lag, bool measure);

/* Between the two a thread measures all the time. The second returns what counts of the time between them, in ms: no
 * more than has passed. One at a time. */
void lag_begin(void);
int64_t lag_end_ms(void);

/* For what a test excuses on a slow machine alone: is this one slow, by a moment's measure? */
bool lag_is_slow(void);
/* A deadline that others have something to do before: ms, and much longer if it is slow. */
int64_t lag_room_ms(int64_t ms);
/* The timeout of a session that is short so that a test is, and is not to end by itself: longer on a slow machine.
 * The same for the whole program. */
int lag_session_ms(int ms);

#endif
