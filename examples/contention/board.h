/* SPDX-License-Identifier: Apache-2.0 */
/* What the parent and its processes share while they run: a page of shared memory and three pipes.
 * Nothing of it counts for the verdict; that is computed from the files. */
#ifndef CONTENTION_BOARD_H
#define CONTENTION_BOARD_H

#include "options.h"
#include "witness.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Places where a holder can be made to stand still until the parent has done something to it. */
enum station {
    STATION_NONE,
    STATION_WORKING, /* in the work phase: read, not written */
    STATION_BETWEEN, /* the journal has the update, the record does not */
    STATION_WRITTEN, /* not left yet */
    STATION_LEFT,    /* left, not unlocked yet */
    STATIONS
};

struct board {
    uint64_t epoch_us;
    atomic_bool stop;
    /* The parent asks for a holder at a station; the first that comes by takes the request away,
     * sends a message and waits for its parole, or its death. */
    atomic_int station;
    atomic_bool parole;
    _Atomic uint64_t updates[PROCESSES_MAX]; /* lives together */
    /* To be shown while they run. */
    _Atomic uint64_t acquired[PROCESSES_MAX];
    atomic_int holding[PROCESSES_MAX]; /* the thread's number + 1; 0: none */
    _Atomic uint64_t done[PROCESSES_MAX][THREADS_MAX];
};

enum message_kind {
    MESSAGE_READY,   /* the process has its connection and its threads */
    MESSAGE_FAILED,  /* it cannot go on; text says why */
    MESSAGE_ODD,     /* a call returned what it should not; text says which */
    MESSAGE_STATION, /* a holder stands at the station that was asked for */
};

/* Short enough for one undivided write into the pipe. */
struct message {
    enum message_kind kind;
    struct who who;
    char text[240];
};

/* The parent closes the writing end of a pipe, and so signals all its readers together. */
struct lines {
    int go[2];
    int stop[2];
    int news[2];
};

/* NULL and errno if there is no memory. */
struct board *board_new(void);
void board_free(struct board *board);
/* 0, or -1 and errno. */
int lines_open(struct lines *lines);
void lines_close(struct lines *lines);
/* In a forked child: keep only the child's ends. */
void lines_keep_child(struct lines *lines);
void line_close(int *end);
/* 0, or -1 if the parent has ended. */
int lines_send(const struct lines *lines, const struct message *message);

#endif
