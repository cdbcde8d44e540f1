/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire.h"

#define PIECE (64 << 10)
#define SESSION_MS 60000

static void leak_memory(void)
{
    static void
        *last; /* each piece points to the one before it: a compiler must not leave it out */
    void *piece = malloc(PIECE);

    if (piece == NULL)
        return;
    memset(piece, 1, PIECE);
    memcpy(piece, &last, sizeof last);
    last = piece;
}

static void *sleep_on(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void leak_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, sleep_on, NULL) == 0)
        pthread_detach(thread);
}

/* With a node that stays, or itself. */
static void leak_session(const struct shared *b, bool closed)
{
    struct wire *wire;

    if (wire_open(&wire, "127.0.0.1", atoi(strchr(b->servers, ':') + 1), SESSION_MS) != 0)
        return;
    if (!closed)
        return;
    wire_create(wire, "/left-", "", WIRE_SEQUENTIAL, NULL, 0);
    wire_close(wire);
}

void leak_some(struct shared *b)
{
    switch (b->leak) {
    case LEAK_MEMORY:
        leak_memory();
        break;
    case LEAK_DESCRIPTORS:
        if (dup(STDERR_FILENO) < 0)
            shared_fail(b, "no more descriptors");
        break;
    case LEAK_THREADS:
        leak_thread();
        break;
    case LEAK_NODES:
        leak_session(b, true);
        break;
    case LEAK_SESSIONS:
        leak_session(b, false);
        break;
    case LEAK_NOTHING:
    case LEAKS:
        break;
    }
}
