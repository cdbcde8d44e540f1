/* SPDX-License-Identifier: Apache-2.0 */
/* The witness: a file to which a peer adds a line, by one write with O_APPEND, when it has come into
 * a critical section and before it leaves. The order of the lines is the order of these moments,
 * whatever language wrote them, and ZooKeeper has no part in it.
 *
 *     +x c1 /path     worker c1 is in, alone             -x c1 /path     it leaves
 *     +r j2 /path     as a reader                        +p k1 /path     with one of several permits
 *
 * A worker's first letter is its language. The lines are judged as they come: a broken rule is known
 * at once, and the whole is judged when all is read. */
#ifndef ZKINTEROP_JOURNAL_H
#define ZKINTEROP_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#define JOURNAL_INSIDE_MAX 32
#define JOURNAL_PLACES_MAX 32

struct visitor {
    char worker[8];
    char access; /* 'x', 'r' or 'p' */
};

/* What happened on one path. */
struct place {
    char path[64];
    int permits; /* how many with 'p' may be in at a time */
    struct visitor inside[JOURNAL_INSIDE_MAX];
    int crowd;        /* how many are in */
    char last;        /* the language of who came last */
    int visits;       /* who came in */
    int visits_of[3]; /* of each language, in the order of journal_languages */
    int turns;        /* visits but for those of a worker that is in already */
    int handed_over;  /* turns that follow one of another language */
    int crowd_max;    /* most at a time */
    int mixed;        /* visits that met somebody of another language inside */
};

extern const char journal_languages[]; /* "cjk": C, Java, Python */

struct journal {
    int fd;
    char rest[256]; /* a line that is not complete yet */
    size_t rest_length;
    struct place places[JOURNAL_PLACES_MAX];
    size_t places_count;
    char fault[256]; /* the first broken rule as a sentence; empty: none */
};

/* Make the file. 0 or -1. */
int journal_open(struct journal *journal, const char *path);
void journal_close(struct journal *journal);
/* The place at path; a new one has one permit. */
struct place *journal_place(struct journal *journal, const char *path);
/* Read what was added, and judge it. False if a rule is or was broken. */
bool journal_read(struct journal *journal);
/* Judge one line: for journal_read, and for the witness's own test. */
void journal_line(struct journal *journal, const char *line);
/* 0 to 100. */
double journal_share(const struct place *place);

#endif
