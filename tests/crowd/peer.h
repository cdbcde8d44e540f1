/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the peer of zklock: a worker, and what it writes of its locks: its answers, the record of calls for
 * tests/linear, and the journal. */
#ifndef ZKCROWD_PEER_H
#define ZKCROWD_PEER_H

#include <pthread.h>

#include "calls.h"
#include "handle.h"

#define LINE_MAX_ 2048

struct worker {
    char name[8];
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t cond;
    char order[LINE_MAX_];     /* under mu; "": none */
    struct zkl_cancel *cancel; /* under mu, of what it waits for; NULL: none */
    unsigned long random;
    struct held held;         /* what its last lock gave */
    struct zkl_client *guest; /* a client of its own; NULL: none */
};

/* Its client, and one more as the command line has it. */
struct zkl_client *peer_client(void);
int peer_open(struct zkl_client **client);

/* "NAME TEXT MORE" */
void answer(const struct worker *w, const char *text, const char *more);
/* A line of the record: calls.h, "verb" with the blank before it. */
void record(const struct worker *w, char way, int64_t ns, const char *verb, const struct handle *h);
/* Of ms, 0: a try, below 0: without an end. */
struct zkl_wait wait_for(int64_t ms);
/* The calls, which are recorded; and a look at the window. */
int lock(struct worker *w, struct handle *h, const struct zkl_wait *wait, struct held *held);
int unlock(struct worker *w, struct handle *h, struct held *held);
/* '+' or '-' in the journal: it has come in to the nth place of this handle, it leaves. */
void note_place(const struct worker *w, char way, const struct handle *h, const struct held *held,
                size_t n);
/* "do", without that word: steps.c. */
void steps_do(struct worker *w, char **words);

/* --- what the peer of chaos has besides: chaos/play.c; else none of them is there -------------------------------- */

#define IN_CHAOS __attribute__((weak))
/* "play": what a worker does until the end. */
IN_CHAOS void peer_play(struct worker *w, const char *single);
/* Before its client is opened: what its journal is, and its number, which the command line has instead of a credential. */
IN_CHAOS void peer_prepare(struct zkl_client_options *options, int journal, int number);
/* A callback heard of a loss. */
IN_CHAOS void peer_told_lost(const struct zkl_hold_event *event);

#endif
