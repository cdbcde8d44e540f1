/* SPDX-License-Identifier: Apache-2.0 */
/* One process of a fleet: threads that lock and unlock, with one client. This source is compiled
 * twice: with the headers and objects of the old library and with the new ones. So it uses
 * nothing newer than what the old one has, except names in old_names.h. tests/lib/journal.h has
 * the lines that it writes.
 *
 *     peer SERVERS JOURNAL NAME CREDENTIAL ROUNDS WORKER...
 *
 * It writes "ready" when it is connected, begins when it reads a byte, ends with "done", all on
 * its standard streams. WORKER is "KIND PATH[,PATH...] [OPTION...]": the kinds and options are
 * in peer-handle.c. */
#ifndef ZKFLEET_PEER_H
#define ZKFLEET_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include <zklock/zklock.h>

#define PATHS_MAX 4
#define PERMITS_MAX 4

struct settings {
    bool tries, syncs, naps, downgrades, ends_late; /* ends_late: now and then a lease runs out */
    bool timed;                                     /* short deadlines, again and again */
    int64_t lease_ms;
    int threads, count, permits;
    char name[40]; /* of a named lock; "": none */
    char access;   /* of the journal's lines */
};

/* What the threads of one WORKER share. */
struct handle {
    const struct kind *kind;
    struct settings settings;
    char paths[PATHS_MAX][64];
    int paths_count;
    struct zkl_mutex *mutex;
    struct zkl_mutex *members[PATHS_MAX];
    struct zkl_rwlock *rwlock;
    struct zkl_semaphore *semaphore;
    struct zkl_multi *multi;
};

/* What one lock gave. */
struct hold {
    struct zkl_mutex *mutex; /* that of a rwlock which is held */
    struct zkl_permit *permits[PERMITS_MAX];
};

struct kind {
    const char *name;
    int (*make)(struct handle *h, struct zkl_client *client,
                const struct zkl_mutex_options *options);
    int (*lock)(struct handle *h, const struct zkl_wait *wait, struct hold *hold);
    int (*unlock)(struct handle *h, struct hold *hold);
    /* The nth of what is held: its place, its token, its node. False: there is no nth. */
    bool (*held)(struct handle *h, const struct hold *hold, int n, char *place, uint64_t *token,
                 char *node);
    int (*free)(struct handle *h);
};

#define PLACE_SIZE 120
#define NODE_SIZE 1300

/* 0 or a code; on standard error why. */
int handle_make(struct handle *h, struct zkl_client *client, const char *worker);

#endif
