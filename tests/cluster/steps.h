/* SPDX-License-Identifier: Apache-2.0 */
/* Tests as text: what threads of some clients do one after another, and what each call or question comes to. In a file
 * each test is "test NAME" and lines of steps, some in a line by ";", up to the next test:
 *
 *     [await [MS]] [THREAD:] VERB WORDS [-> EXPECTED] [as NAME] [&]
 *
 * A thread is made when it is first named; without one it is the test's own. With & the step begins in its thread. Then
 * "THREAD: ends" has its result, and "THREAD: waits" sees that it is not over; "THREAD: exits" ends the thread. A call is
 * expected to be OK; behind another code stands what its detail says. The answer to a question is compared by wildcards, which stand for no |, by
 * "> N", or is not to be "!TEXT"; "await" asks until it is so. "as NAME" keeps the answer as $NAME. "repeat N" or "each NAME
 * WORDS", and "end", stand around lines that are done so often. A comment begins with #, and a line goes on behind \.
 *
 * Handles are made by their kind, each of a client of its own at the test's path, which is ".":
 *
 *     mutex a b at=PATH of=HANDLE behind brief session=MS kazoo=1 name=NAME retain=MS handoffs=N revocable posted
 *     rwlock u (with its halves u.read and u.write)   semaphore s permits=N   any m   multi m a b s*2   client c   owner o of=c
 *
 * of: of that handle's client; owner=TEXT: that client's owner text, or with of: the handle's; behind: through the test's
 * proxy, brief: and with a short session; any: a mutex that any thread may unlock; s*2: two permits; an owner has operations,
 * "start m by=o; done o; leave m by=o". "path p" is another path. A node is /NAME, below the test's path, or p/NAME; #N or p#N,
 * the Nth by number; or that of a handle's hold. verbs.c and faults.c have the verbs. */
#ifndef ZKTEST_STEPS_H
#define ZKTEST_STEPS_H

#include "cluster.h"

#define WORDS_MAX 14
#define PERMITS_MAX 64
#define VALUE_MAX 3000

struct handle {
    char name[32];
    const char *path;
    struct zkl_client *client;
    struct zkl_rwlock *rwlock;
    struct zkl_mutex *mutex;
    struct zkl_semaphore *semaphore;
    struct zkl_multi *multi;
    struct zkl_member members[WORDS_MAX]; /* of it */
    size_t count;
    struct zkl_cancel *cancel;
    struct zkl_owner *owner;
    uint64_t op; /* its last one, with what came of it */
    struct completion done;
    struct zkl_grant grant;
    struct zkl_permit *permits[PERMITS_MAX];
    int out; /* of the permits */
    struct notes notes;
};

/* A step that is being done. Only the test's thread may let it fail. */
struct step {
    const char *verb;
    struct actor *actor; /* NULL: the test's thread */
    size_t count;        /* of words, the verb not among them */
    const char *words[WORDS_MAX];
    const char *expected;
    struct handle *handle; /* of a call or a question: the one that it is about now, */
    int number;            /* with its number */
    bool is_call, known;
    char value[VALUE_MAX], detail[400];
};

/* Does it know the step's verb? What is said of its words once; or of each handle that they name. */
bool obey_words(struct step *s);
bool obey_handle(struct step *s);

/* faults.c has what they say of faults. */
bool obey_lies(struct step *s, struct proxy *proxy);
bool obey_fault(struct step *s);
/* Its new proxy's way to lie: lies=sessions, numbers; NULL: none. */
void lie(struct proxy *proxy, const char *how);
/* In a function that says whether it knows the step's verb. */
#define DO(its_name, ...)                                                                          \
    do {                                                                                           \
        if (strcmp(s->verb, its_name) == 0) {                                                      \
            __VA_ARGS__;                                                                           \
            return true;                                                                           \
        }                                                                                          \
    } while (0)

/* A word's handle, or NULL; "s*2" has a number. */
struct handle *handle_of(const char *word, int *number);
void forget_handles(void);

void say(struct step *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The value of the word "key=value", or NULL; and as a number. */
const char *option(const struct step *s, const char *key);
int64_t number(const struct step *s, const char *key, int64_t otherwise);

#endif
