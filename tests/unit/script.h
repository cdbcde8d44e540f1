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
 *
 * transcript.c reads what is said in text; script.c is the core; commands.c and the files that it calls do what the
 * commands say. */
#ifndef ZKL_TEST_SCRIPT_H
#define ZKL_TEST_SCRIPT_H

#include "tests.h"

#include <zklock/zklock.h>

#include "core/core.h"
#include "core/watch.h"

#define MS INT64_C(1000000)
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
    int64_t lock_path_czxid; /* the last list of a path's */
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

/* There is one at a time. */
extern struct script *const s;

/* A new core, not connected yet, at 0 ms. */
void script_new(void);
/* The same, connected, with nothing recorded. */
void script_connected(void);
/* Ends it: nothing may be left. */
void script_free(void);

struct zkl_time script_now(void);
/* The path of that text, which stays. */
struct zkl_path *script_path(const char *text);

/* Contenders are #1, #2 ... in the order of their lock requests, queries q1, q2 ... of their asking. */
void script_acquire(struct zkl_lock_request lock_request);
struct zkl_contender *script_contender(int number);
void script_close(void);
void script_ask(struct zkl_query query);

void script_event(enum zkl_session_event_type type, int64_t session);
/* The link breaks, and everything that was awaited is answered so, in libzookeeper's order. hung_up: because the server
 * hung up on what it had not answered yet. */
void script_down(bool hung_up);
/* Go there, with the core's timer called whenever it is due. */
void script_at(int64_t ms);

/* --- the server: each answers the oldest awaited request of that kind ----- */

void script_reply(enum zkl_request_kind kind, struct zkl_reply reply);
/* The node gets this number. */
void script_created(int32_t number, int64_t czxid);
/* Children as words: "1:7 r2:8 note" is the node 7 of the first GUID, the node 8 of the second,
 * which may stay without a holder, and a stranger's; "s3:9 S4:10 w5:11 p6:12" are a reader's, one
 * that may stay, a writer's, and a permit's; "s2..5:6" are four. */
void script_listed(enum zkl_request_kind kind, int64_t czxid, const char *children);
/* One of them, in out, which has SCRIPT_NAME_MAX bytes. */
const char *script_child(const char *word, char *out);
/* The watch on the node fires; path as recorded, such as "/r/G1-0000000007". */
void script_fired(const char *path, enum zkl_fired what);
/* The kind of the oldest request that the core still waits for; false: there is none. */
bool script_next(enum zkl_request_kind *kind);

/* Lock, with this number, behind these children; the watches are asked for, */
void script_queue(const char *root, int32_t number, const char *children);
/* and they are armed. */
void script_wait(const char *root, int32_t number, const char *children);

/* --- what is recorded, and the names in it -------------------------------- */

void script_record(const char *format, ...) __attribute__((format(printf, 1, 2)));
void script_forget(void);
extern const char *const script_answers[ZKL_ANSWER_OTHER + 1];
const char *script_code(int code);
const char *script_actions(unsigned actions); /* ZKL_SA_* */

/* --- what is read --------------------------------------------------------- */

#define LINE_SIZE 1000
#define WORDS_MAX 60
#define TEXT_MAX 40000

/* A command: its words, the first of which is its name, and the text from each of them on. */
struct command {
    size_t count;
    const char *words[WORDS_MAX], *texts[WORDS_MAX];
    const char *expected; /* behind "->"; NULL: nothing */
};

/* The test fails, in the line that is being carried out. */
void fail_here(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* A command that leaves words of its line unread fails. */
const char *word(const struct command *c, size_t i);
/* The text from that word on, "" if there is none. */
const char *rest(const struct command *c, size_t i);
/* A number, or a sum of some: "100+7". */
int64_t number_in(const char *text);
int64_t number(const struct command *c, size_t i);
/* A word: in it "" is no text, \n ends a line, \s is a blank, \xHH a byte, \{511a} 511 times an a, and \G is _c_, a GUID of
 * zeros and a dash. Returns its length; out has TEXT_MAX. */
#define NIL_GUID "00000000-0000-4000-8000-000000000000"
size_t read_text(const char *from, char *out);
/* What the command found is what the line expects of it. */
void says(const struct command *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

void says_whether(const struct command *c, bool is); /* "yes" or "no" */

/* Which of them it is; a name is written in one word, "no auth" as no_auth. */
int index_of(const char *const *names, size_t count, const char *text);
#define INDEX_OF(names, text) index_of(names, sizeof(names) / sizeof *(names), text)
/* The same text in memory that stays. */
const char *keep(const char *text);
/* The value of "key=value", or NULL. */
const char *value_of(const char *text, const char *key);

/* In a function that says whether it knows the command c. */
#define DO(name, ...)                                                                              \
    do {                                                                                           \
        if (strcmp(c->words[0], name) == 0) {                                                      \
            __VA_ARGS__;                                                                           \
            return true;                                                                           \
        }                                                                                          \
    } while (0)

/* False: there is no such command. */
bool obey(const struct command *c);
bool obey_kept(const struct command *c);
bool obey_machines(const struct command *c);
bool obey_texts(const struct command *c);
bool obey_tool(const struct command *c);
/* What kept.c has of the core ends with it. */
void end_kept(void);
/* Exactly this was recorded since the last time, but for blanks. */
void expect(const char *text);

#endif
