/* SPDX-License-Identifier: Apache-2.0
 * Owners of locks on the ensemble in memory, and what must be true of them: for schedules that are drawn
 * (tests/sim) and for all there are (tests/explore). It is compiled for each of the two with that one's world.h,
 * which includes this file and says what a client and a world are. Both have in them what is used here by name
 * (core, places, owners, fake and so on), and answer the same questions, as functions or macros:
 *
 * - of checks: now_of, boot_of; client_is_gone, client_hears, timers_are_late; may_end_alive (may a session be
 *   given up before it ends?), may_be_denied, data_was_lost, counter_is_odd, must_be_gone (the nodes of a session,
 *   at the end), may_answer (queries like this);
 * - of owners: core_of; may_fail, may_fail_for_permits (with this code, for no reason of the request),
 *   is_troubled, order_is_lost (of a request for permits), has_roles, may_keep;
 * - of the port: saying, client_sends, client_draws, handle_opens, handle_goes, is_of_a_transaction, link_is_late;
 * - and they may take note: note_news, unlock_was_noted, permits_were_granted, reader_came_in,
 *   readers_node_opened, contender_moved, machine_moved, reply_comes. */
#ifndef ZKL_TESTS_OWNERS_H
#define ZKL_TESTS_OWNERS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/bundle.h"
#include "core/local_queue.h"
#include "core/read_cache.h"
#include "sim/fake.h"

#define MS INT64_C(1000000)
#define BOOT_AHEAD_MS 5000000 /* code that mixes up the two clocks must fail */

#define MEMBERS 3 /* of a multi-lock, or permits of one request */

enum phase { IDLE, WAITING, GRANTED, UNLOCKING, ANSWERED, ORPHANED };

enum part_kind { PART_LOCK, PART_MULTI, PART_TURN, PART_READER, PART_PERMITS, PART_QUERY };

struct client;
struct world;
struct part;

/* What was true of a hold as its owner unlocked it. */
struct unlocked {
    bool proved; /* the window was open */
    bool gone;   /* the node was deleted: another owner may have the lock already */
};

/* A contender in its owner's memory, first in it. */
struct place {
    struct zkl_contender contender;
    struct owner *owner; /* whose it is now; NULL: nobody's */
    struct client *client;
    enum part_kind kind; /* what it is for */
    enum phase phase;
    int root;
    bool in_core, lost, suspect, revoked;
    bool kept; /* a multi-lock's: for those who take turns, until it is given up */
    int stop_code;
    unsigned handed;                     /* how often while others queued */
    char writer_guid[ZKL_GUID_LEN + 1];  /* of the node whose write lock it has already */
    char deleted_guid[ZKL_GUID_LEN + 1]; /* by a stranger: no exclusion is promised for it */
    char grouped_guid[ZKL_GUID_LEN + 1]; /* of a node that was made in a transaction */
    int64_t session;                     /* of its grant */
    int64_t told_until_boot; /* the window that its owner could see before the loss, if known */
    struct unlocked unlocked;
};

/* A request for permits: the gate, and leases. */
struct permits {
    struct zkl_bundle bundle; /* first */
    struct zkl_contender gate;
    struct zkl_bundle_member members[1 + MEMBERS];
};

/* A thread. */
struct owner {
    struct zkl_local_waiter turn; /* first */
    struct permits *permits;      /* NULL: it wants none */
    struct zkl_query query;
    const struct part *part; /* explore: what it wants */
    struct owner *writer;    /* whose write lock it downgrades; NULL: nobody's */
    struct client *client;
    enum part_kind kind;
    int count;           /* of places: PART_MULTI and PART_PERMITS */
    struct place *place; /* with those the first */
    struct zkl_contender *members[MEMBERS];
    enum phase phase; /* PART_LOCK: its place has it */
    int cycles;       /* that are over */
    int tickets;      /* the order in which those of a client must get their turns */
    int stop_code;    /* its permits were stopped with */
    bool try_only;
    bool ahead;       /* PART_TURN: it joins before those who wait */
    unsigned without; /* PART_MULTI: the places that are left out, as bits */
    bool over;        /* the core is done with its permits */
    bool inside;      /* PART_READER: in the node of all, which is its place */
    /* sim: */
    bool holds;
    int64_t until_ms;    /* the plan: give up or unlock then */
    int64_t listed_zxid; /* of the last list of leases that came while one was undecided */
};

#define each_client(world, client) each_of((world)->clients, (world)->client_count, client)
#define each_owner(world, owner) each_of((world)->owners, (world)->owner_count, owner)
#define each_place(world, place) each_of((world)->places, (world)->place_count, place)

/* --- what went wrong ------------------------------------------------------ */

/* Where the trace goes; NULL: there is none. */
extern FILE *say_to;
/* A line of it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A promise is broken: where and which, in words without figures that change as the schedule is made shorter; the
 * details are in the trace. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            wrong("%s:%d: not true: %s", __FILE__, __LINE__, #condition);                          \
    } while (0)

/* --- port.c --------------------------------------------------------------- */

int name_of(const struct client *c);
/* Its core, port and paths. */
void client_begin(struct client *c, int timeout_ms, int declared_ms);
void client_drop_handles(struct client *c, void (*how)(struct fake_handle *h));
/* In one moment; its session is left behind. */
void client_dies(struct client *c);
/* The handles that the core has asked for; true: there was one. */
bool client_opens(struct client *c);
/* libzookeeper's completion thread calls back once; false: nothing has come. */
bool client_is_told(struct client *c, struct fake_handle *h);

/* --- owners.c ------------------------------------------------------------- */

/* It begins with what it is for: count places, or as many as its client's owners of that kind share. */
void owner_begin(struct owner *o, struct client *c, enum part_kind kind, int count, int root);
void owners_notification(struct client *c, struct zkl_contender *contender,
                         const struct zkl_notification *news);
/* It has nothing, and wants nothing. */
bool owner_is_idle(const struct owner *o);
/* For PART_TURN and PART_READER: one that nobody has; NULL: there is none. */
struct place *free_place(const struct client *c, enum part_kind kind);
void owner_start(struct owner *o, struct zkl_lock_request *lock_request);
bool owner_may_stop(const struct owner *o);
void owner_stop(struct owner *o, int code);
bool owner_has_it(const struct owner *o);
void owner_unlock(struct owner *o);
void owner_exit(struct owner *o);
void owner_renew(struct owner *o, int64_t lease_ns);
/* One of several by itself, unlocked or left. */
void place_unlock(struct place *place);
void place_exit(struct place *place);
/* A member of the multi-lock stays, for those of its client who take turns; false: it can't. */
bool place_keep(struct place *place);
/* Those of this client who were answered go on. */
void owners_run(struct client *c);
void owners_forget(struct client *c);
void owners_note_deletion(struct world *w, const char *path);
/* All permits that are out, as far as can be proved now. */
int permits_out(const struct world *w);

/* --- check.c -------------------------------------------------------------- */

/* Does the session's window, and the lease if there is one, prove it now? */
bool is_proved(const struct place *place);
/* A hold was reported as SUSPECT, and was so before or not, or as HELD. */
void check_state(const struct world *w, bool was_suspect, const struct zkl_notification *news);
/* At the moment of a grant: what the core can know, */
void check_granted(const struct place *place);
/* and what is true. */
void check_grant(struct world *w, const struct place *place);
/* When a contender gets to HOLDING by what its server has just shown it. */
void check_hold(const struct client *c, const struct zkl_contender_machine *m);
/* A hold was reported as lost. */
void check_loss(struct world *w, const struct place *place, int reason);
/* An owner is about to unlock. */
struct unlocked check_unlock(const struct place *place);
/* What it received. */
void check_unlocked(struct world *w, const struct unlocked *unlocked, int code);
/* A session is about to expire. */
void check_expiry(struct world *w, int64_t session);
/* What the core knows of itself, whatever it was told; the tables are large: what is wrong with them stays so for a
 * while. */
void check_figures(const struct client *c, bool with_tables);
/* That, and what it knows of its contenders and its watches. */
void check_core(const struct client *c, bool with_tables);
void check_exclusion(struct world *w);
/* By the true clock the session lives as long as its window. */
void check_window(const struct client *c);
/* A query is answered with something that can be true. */
void check_answer(const struct client *c, const struct zkl_query *query, int code,
                  const struct zkl_reply *reply);
/* A heartbeat has no unchecked node in it, which would fail all of it. */
void check_heartbeat(const struct client *c);
/* Nothing of it is under way, or wanted. */
bool core_is_done(const struct zkl_core *core);
/* No node of a session that lives, and no watch. */
void check_nothing_left(struct world *w);

#endif
