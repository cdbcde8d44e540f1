/* SPDX-License-Identifier: Apache-2.0 */
/* The witness over programs and languages: a file to which each worker adds a line, by one write with O_APPEND,
 * when it has come in and before it leaves. The order of the lines is the order of these moments, whoever wrote
 * them, and ZooKeeper has no part in it.
 *
 *     +x c1 /path     worker c1 is in, alone             -x c1 /path     it leaves
 *     +r j2 /path     as a reader                        +p k1 /path     with one of several permits
 *     +x o1.3 /path 4711 _c_<uuid>-lock-0000000012       with the token and the node's name
 *     +s o1.3 ...     alone, with a token that its process may have had before (hand-offs, retained nodes)
 *
 * A worker's first letter is its party: a language, or a version of the library; "o1.3" is the third worker of
 * the process "o1". The test judges the lines as they come: it sees a broken rule immediately, and judges the
 * whole when it has read all. */
#ifndef ZKTEST_JOURNAL_H
#define ZKTEST_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOURNAL_INSIDE_MAX 64
#define JOURNAL_PLACES_MAX 32
#define JOURNAL_PARTIES_MAX 4

struct visitor {
    char worker[8];
    char access; /* 'x', 's', 'r' or 'p' */
};

/* What happened on one path. */
struct place {
    char path[120];
    int permits; /* how many with 'p' may be in at a time */
    struct visitor inside[JOURNAL_INSIDE_MAX];
    int crowd;                          /* how many are in */
    char last[8];                       /* the last one that entered */
    int visits;                         /* entries */
    int visits_of[JOURNAL_PARTIES_MAX]; /* of each party, in the order of the journal's */
    int turns;                          /* visits, except those of a worker that is in already */
    int handed_over;                    /* turns that follow one of another party */
    int crowd_max;                      /* most at a time */
    int mixed;                          /* visits that met a worker of another party inside */
    /* the largest token, and that of the last worker that was alone */
    uint64_t newest, written;
    char writer[8]; /* that worker */
    int low, high;  /* nodes' numbers, the smallest and the largest */
};

struct journal {
    int fd;
    const char *parties; /* their letters: "cjk" */
    char rest[400];      /* a line that is not complete yet */
    size_t rest_length;
    struct place places[JOURNAL_PLACES_MAX];
    size_t places_count;
    long lines;
    char fault[500]; /* the first broken rule as a sentence; empty: none */
};

/* Make the file, or make it anew. 0 or -1. */
int journal_open(struct journal *journal, const char *path, const char *parties);
void journal_close(struct journal *journal);
/* The place at path; a new one has one permit. */
struct place *journal_place(struct journal *journal, const char *path);
/* Read what was added, and judge it. False if a rule is or was broken. */
bool journal_read(struct journal *journal);
/* All was read, and nobody writes: of what was read only what it says of later lines is kept. */
void journal_forget(struct journal *journal);
/* Judge one line: for journal_read, and for the witness's own test. */
void journal_line(struct journal *journal, const char *line);
/* Visits of the party with this letter. */
int journal_visits_of(const struct journal *journal, const struct place *place, char party);
/* Of the turns, those that follow one of another party: 0 to 100. */
double journal_share(const struct place *place);

#endif
