/* SPDX-License-Identifier: Apache-2.0
 * A core on a script: its requests and its notifications become lines of text, and the test
 * answers. Time is virtual, in milliseconds; CLOCK_BOOTTIME runs 5,000 seconds ahead of
 * CLOCK_MONOTONIC.
 *
 * A GUID is written Gn for the n-th one that was asked for, a node's name Gn- and its number.
 * Lines look so:
 *     [    10] #1 NEW -> QUEUEING: started        the core's trace
 *       > create /r/G1-                           a request
 *       #1 granted 101                            news, here a grant with its token
 *       session: link up                          what the driver must do
 *       q1: OK                                    an answer to a query
 */
#ifndef ZKL_TEST_SCRIPT_H
#define ZKL_TEST_SCRIPT_H

#include "tests.h"

#include "core/core.h"

#define SCRIPT_TIMEOUT_MS 3000
#define SCRIPT_SESSION 0xa
#define SCRIPT_CONTENDERS 300
#define SCRIPT_PATHS 100
#define SCRIPT_QUERIES 24
#define SCRIPT_NAME_MAX 160

struct script_request {
    uint64_t id, watch_id;
    enum zkl_request_kind kind;
    struct zkl_stamp stamp;
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
};

struct script {
    struct zkl_core core;
    struct zkl_port port;
    int64_t now_ms;
    int64_t zxid; /* the next create's */
    int guids;
    char text[32768];
    size_t length;
    bool quiet;              /* record nothing */
    int64_t lock_path_czxid; /* script_lock_path_listed's last one */
    bool
        /* they are recorded, and the test answers them; else they are answered immediately */
        keepalives;
    bool was_up;
    bool unprovable; /* the server is of another make */
    bool young;      /* sessions are as old as they are; else each has lived for an hour */
    struct script_request requests[512];
    size_t request_count;
    enum zkl_answer refuse[ZKL_REQUEST_KINDS]; /* what send answers; OK: takes it */
    int refusals;                              /* how many times one was refused */
    struct zkl_contender contenders[SCRIPT_CONTENDERS];
    bool live[SCRIPT_CONTENDERS];
    int lost[SCRIPT_CONTENDERS]; /* how often each heard LOST */
    struct zkl_path paths[SCRIPT_PATHS];
    struct zkl_query queries[SCRIPT_QUERIES];
    int asked;
};

/* The path of that text. */
struct zkl_path *script_path(struct script *s, const char *text);
/* A new core, not connected yet, at 0 ms. There is one at a time. */
struct script *script_new(void);
/* The same, connected, with nothing recorded. */
struct script *script_connected(void);
/* Ends it: nothing may be left. */
void script_free(struct script *s);

/* --- the owner: contenders are #1, #2 ... in the order of their lock requests ---- */

void script_acquire(struct script *s, struct zkl_lock_request lock_request);
void script_lock(struct script *s, const char *root);
void script_try(struct script *s, const char *root, bool sync);
void script_try_behind_retained(struct script *s, const char *root);
void script_lock_watched(struct script *s,
                         const char *root); /* needs to learn of a deletion immediately */
/* A reader whose node may stay, and a writer's try. */
void script_read(struct script *s, const char *root);
void script_write(struct script *s, const char *root);
/* May be granted by its number: always of the same path. */
void script_lock_unlisted(struct script *s, const char *root);
void script_stop(struct script *s, int number, int code);
void script_unlock(struct script *s, int number);
void script_abandon(struct script *s, int number);
void script_close(struct script *s);
struct zkl_contender *script_contender(struct script *s, int number);

/* --- queries: q1, q2 ... in the order of their asking --------------------- */

void script_ask(struct script *s, struct zkl_query query);
void script_withdraw(struct script *s, int number);

/* --- the link ------------------------------------------------------------- */

void script_event(struct script *s, enum zkl_session_event_type type);
void script_up(struct script *s, int64_t session);
/* The link breaks, and everything that was awaited is answered so; in libzookeeper's order. */
void script_down(struct script *s);
/* The same because the server hung up on what it had not answered yet: all that is awaited. */
void script_hang_up(struct script *s);

/* --- time ----------------------------------------------------------------- */

/* Go there, with the core's timer called whenever it is due. */
void script_at(struct script *s, int64_t ms);
/* The process is stopped until then: no timer runs meanwhile. */
void script_sleep_until(struct script *s, int64_t ms);

/* --- the server: each answers the oldest awaited request of that kind ----- */

void script_answer(struct script *s, enum zkl_request_kind kind, enum zkl_answer answer);
void script_reply(struct script *s, enum zkl_request_kind kind, struct zkl_reply reply);
/* The node gets this number; its czxid is the next zxid. */
void script_created(struct script *s, int32_t number);
/* No answer says that. */
void script_created_plain(struct script *s, int32_t number);
/* Children as words: "1:7 r2:8 note" is the node 7 of the first GUID, the node 8 of the second,
 * which may stay without a holder, and a stranger's; "s3:9 S4:10 w5:11 p6:12" are a reader's, one
 * that may stay, a writer's, and a permit's. */
void script_listed(struct script *s, const char *children);
/* One of them, in out, which has SCRIPT_NAME_MAX bytes. */
const char *script_child(const char *word, char *out);
void script_lock_path_listed(struct script *s, int64_t czxid, const char *children);
void script_statted(struct script *s, int64_t session, int64_t czxid);
/* A heartbeat found this one of its nodes missing. */
void script_missing(struct script *s, size_t check);
/* The watch on the node fires; path as recorded, such as "/r/G1-0000000007". */
void script_fired(struct script *s, const char *path, enum zkl_fired what);

/* The kind of the oldest request that the core still waits for; false: there is none. */
bool script_next(struct script *s, enum zkl_request_kind *kind);

/* --- shortcuts ------------------------------------------------------------ */

/* Lock, uncontended, with this number. */
void script_hold(struct script *s, const char *root, int32_t number);
/* Lock, with this number, behind these children; the watches are asked for. */
void script_queue(struct script *s, const char *root, int32_t number, const char *children);
/* The same, and they are armed. */
void script_wait(struct script *s, const char *root, int32_t number, const char *children);

/* --- what was recorded ---------------------------------------------------- */

/* Exactly this since the last time. */
void script_expect_at(struct script *s, const char *text, const char *file, int line);
#define script_expect(s, text) script_expect_at(s, text, __FILE__, __LINE__)
/* Does this occur in it? It stays recorded. */
bool script_has(const struct script *s, const char *text);
void script_forget(struct script *s);

/* --- names ---------------------------------------------------------------- */

/* What is recorded for an answer, */
extern const char *const script_answers[ZKL_ANSWER_OTHER + 1];
/* and for a code of the library. */
const char *script_code(int code);

#endif
