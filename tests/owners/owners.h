/* SPDX-License-Identifier: Apache-2.0
 * Owners of locks on the ensemble in memory, and what must be true of them: for schedules that are drawn
 * (tests/sim) and for all there are (tests/explore). It is compiled for each of the two with that one's world.h,
 * which includes this file and says what a client and a world are. Both have in them what is used here by name
 * (core, places, fake and so on), and answer these questions: name_of, now_of, core_of; client_is_gone,
 * client_hears, timers_are_late; may_be_denied, may_end_alive, data_was_lost, counter_is_odd, must_be_gone,
 * unlock_was_noted. */
#ifndef ZKL_TESTS_OWNERS_H
#define ZKL_TESTS_OWNERS_H

#include "core/bundle.h"
#include "core/local_queue.h"
#include "core/read_cache.h"
#include "sim/fake.h"

#define MS INT64_C(1000000)
#define BOOT_AHEAD_MS 5000000 /* code that mixes up the two clocks must fail */

enum phase { IDLE, WAITING, GRANTED, UNLOCKING, ANSWERED, ORPHANED, INSIDE };

/* What was true of a hold as its owner unlocked it. */
struct unlocked {
    bool proved; /* the window was open */
    bool gone;   /* the node was deleted: another owner may have the lock already */
};

/* --- what went wrong ------------------------------------------------------ */

/* A line of the trace, if there is one. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A promise is broken: where and which, in words without figures that change as the schedule is made shorter; the
 * details are in the trace. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            wrong("%s:%d: not true: %s", __FILE__, __LINE__, #condition);                          \
    } while (0)

/* --- check.c -------------------------------------------------------------- */

struct client;
struct world;
struct place;

/* Does the session's window, and the lease if there is one, prove it now? */
bool is_proved(const struct client *c, const struct zkl_contender *contender);
/* A hold was reported as SUSPECT, and was so before or not, or as HELD. */
void check_state(const struct world *w, bool was_suspect, const struct zkl_notification *news);
/* At the moment of a grant. */
void check_grant(struct world *w, const struct place *place);
/* When a contender gets to HOLDING by what its server has just shown it. */
void check_hold(const struct client *c, const struct zkl_contender_machine *m);
/* A hold was reported as lost. */
void check_loss(struct world *w, const struct place *place, int reason);
/* An owner is about to unlock; deleted_guid as in struct place. */
struct unlocked check_unlock(const struct client *c, const struct zkl_contender *contender,
                             const char *deleted_guid);
/* What it received. */
void check_unlocked(struct world *w, const struct unlocked *unlocked, int code);
/* A session is about to expire. */
void check_expiry(struct world *w, int64_t session);
/* What the core knows of itself, its contenders and its watches; the tables are large: what is wrong with them
 * stays so for a while. */
void check_core(const struct client *c, bool with_tables);
void check_exclusion(struct world *w);
/* By the true clock the session lives as long as its window. */
void check_window(const struct client *c);
/* A heartbeat has no unchecked node in it, which would fail all of it. */
void check_heartbeat(const struct client *c);
/* Nothing of it is under way, or wanted. */
bool core_is_done(const struct zkl_core *core);
/* No node of a session that lives, and no watch. */
void check_nothing_left(struct world *w);

#endif
