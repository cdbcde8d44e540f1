/* SPDX-License-Identifier: Apache-2.0 */
/* An ensemble as the cores of some clients see it: what they may ask of it, and what it reports to
 * them. There are two of the kind, with the same calls: the simulated ensemble, and a real server
 * behind the library's own driver, in which a recorder replaces the core. */
#ifndef ZKTEST_MODEL_SIDE_H
#define ZKTEST_MODEL_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core.h"

#define SIDE_CLIENTS 4
#define SIDE_SESSIONS 64
#define SIDE_ZXIDS 4096

/* A report to a core. */
struct told {
    enum { TOLD_REPLY, TOLD_FIRED, TOLD_UP, TOLD_DOWN, TOLD_EXPIRED } type;
    struct zkl_reply reply; /* its texts are owned */
    uint64_t watch_id;
    enum zkl_fired fired;
    int64_t session; /* UP: which one */
};

/* All reports to one client that the test has not compared yet. */
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
    bool session_ended; /* simulated, in this step: the server removes its nodes in any order */
    int64_t sessions[SIDE_SESSIONS]; /* in the order in which they began */
    size_t session_count;
    int64_t zxids[SIDE_ZXIDS]; /* in the order in which they first occurred */
    size_t zxid_count;
};

struct side_calls {
    /* Open a handle and have it connected. */
    void (*open)(struct side *side, size_t client);
    /* End the session, or, if the link is broken, forget it. */
    void (*close)(struct side *side, size_t client);
    enum zkl_answer (*send)(struct side *side, size_t client, const struct zkl_request *request);
    /* Send a request that gets lost. If the server must carry it out, only the answer gets lost.
     * The link breaks, and stays broken. */
    void (*lose)(struct side *side, size_t client, const struct zkl_request *request,
                 bool carried_out);
    /* The link breaks, and stays broken. */
    void (*cut)(struct side *side, size_t client);
    /* The client can connect again. */
    void (*join)(struct side *side, size_t client);
    /* Hold back what the server sends to this client, or deliver it. A cut loses it. */
    void (*hold)(struct side *side, size_t client, bool hold);
    /* The session ends, by its owner's password or for want of signs of life. */
    void (*expire)(struct side *side, size_t client);
    /* Put what came up to now on the tapes. */
    void (*hear)(struct side *side, size_t client);
    /* Wait until the server has answered everything and every client has received all reports. */
    void (*settle)(struct side *side);
    /* The next sequential child of the path gets this number; for clients that are all linked. */
    void (*set_counter)(struct side *side, const char *path, int32_t number);
    /* The server removes an empty container that once had children. */
    void (*collect)(struct side *side, const char *path);
    /* The server loses all its data; for clients that are all linked, and then tried to come back. */
    void (*wipe)(struct side *side);
    void (*free)(struct side *side);
};
/* With a file's own functions. */
#define SIDE_CALLS                                                                                 \
    {                                                                                              \
        .open = open_client, .close = close_client, .send = send_request, .lose = lose,            \
        .cut = cut, .join = join, .hold = hold, .expire = expire, .hear = hear, .settle = settle,  \
        .set_counter = set_counter, .collect = collect, .wipe = wipe, .free = free_side            \
    }

struct side *simulated_new(void);
/* All paths of it lie below this one on the server, which is made. */
struct side *real_new(const char *chroot);

#endif
