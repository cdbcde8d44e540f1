/* SPDX-License-Identifier: Apache-2.0 */
/* An ensemble as the cores of some clients see it: what they may ask of it, and what they are told.
 * There are two of the kind, with the same calls: the simulated one, and a real server behind the
 * library's own driver, in which a recorder has the place of the core. */
#ifndef ZKTEST_MODEL_SIDE_H
#define ZKTEST_MODEL_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core.h"

#define SIDE_CLIENTS 4
#define SIDE_SESSIONS 64
#define SIDE_ZXIDS 4096

/* Something that a core is told. */
struct told {
    enum { TOLD_REPLY, TOLD_FIRED, TOLD_UP, TOLD_DOWN, TOLD_EXPIRED } type;
    struct zkl_reply reply; /* its texts are owned */
    uint64_t watch_id;
    enum zkl_fired fired;
    int64_t session; /* UP: which one */
};

/* All that one client was told and that has not been compared yet. */
struct tape {
    struct told *list;
    size_t count, room;
};
void tape_add(struct tape *tape, struct told told);
void tape_reply(struct tape *tape, const struct zkl_reply *reply); /* copies the texts */
void tape_clear(struct tape *tape);

struct side {
    const struct side_calls *calls;
    struct tape tapes[SIDE_CLIENTS];
    bool linked[SIDE_CLIENTS], held[SIDE_CLIENTS];
    int64_t sessions[SIDE_SESSIONS]; /* in the order in which they began */
    size_t session_count;
    int64_t zxids[SIDE_ZXIDS]; /* in the order in which they were first told */
    size_t zxid_count;
};

struct side_calls {
    const char *name;
    /* Open a handle and have it connected. */
    void (*open)(struct side *side, size_t client);
    /* End the session, or, if the link is broken, forget it. */
    void (*close)(struct side *side, size_t client);
    enum zkl_answer (*send)(struct side *side, size_t client, const struct zkl_request *request);
    /* Send what gets lost: the request, or if it is to be carried out only the answer. The link
     * breaks, and stays so. */
    void (*lose)(struct side *side, size_t client, const struct zkl_request *request,
                 bool carried_out);
    /* The link breaks, and stays so. */
    void (*cut)(struct side *side, size_t client);
    /* It can be made again. */
    void (*join)(struct side *side, size_t client);
    /* What the server says to this client stays on its way, or comes on; lost by cut. */
    void (*hold)(struct side *side, size_t client, bool hold);
    /* The session ends, by its owner's password or for want of signs of life. */
    void (*expire)(struct side *side, size_t client);
    /* Put what came up to now on the tapes. */
    void (*hear)(struct side *side, size_t client);
    /* Until everything is answered and everybody knows all. */
    void (*settle)(struct side *side);
    /* The next sequential child of the path gets this number; for clients that are all linked. */
    void (*set_counter)(struct side *side, const char *path, int32_t number);
    /* An empty container that was used goes. */
    void (*collect)(struct side *side, const char *path);
    /* The server loses all its data; for clients that are all linked, and then tried to come back. */
    void (*wipe)(struct side *side);
    void (*free)(struct side *side);
};

struct side *simulated_new(void);
/* All paths of it lie below this one on the server, which is made. */
struct side *real_new(const char *chroot);

#endif
