/* SPDX-License-Identifier: Apache-2.0 */
/* Who was inside, judged by a process that has no part of the library, from a file to which each thread of
 * a fleet adds a line when it has come in and before it leaves, by one write with O_APPEND: the order of
 * the lines is the order of these moments.
 *
 *     +x o1.3 /path 4711 _c_<uuid>-lock-0000000012      -x ...
 *
 * That is: in, alone; the third thread of the first process of the old library; place; token; node. Instead
 * of x: s, alone, with a token that its process may have had before (hand-offs, retained nodes); r, as a
 * reader; p, with one of several permits. */
#ifndef ZKFLEET_WITNESS_H
#define ZKFLEET_WITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSIDE_MAX 64
#define PLACES_MAX 32

struct visitor {
    char thread[8];
    char access;
};

struct place {
    char path[120];
    int permits;
    struct visitor inside[INSIDE_MAX];
    int crowd, crowd_max;
    char last[8];             /* the thread that came last */
    uint64_t newest, written; /* the largest token, and that of who was last alone */
    char writer[8];           /* who that was */
    int visits[2];            /* of the old library and of the new one */
    int turns, handed_over;   /* visits, and those that follow one of the other library */
    int low, high;            /* nodes' numbers, the smallest and the largest */
};

struct witness {
    int fd;
    char rest[400]; /* a line that is not complete yet */
    size_t rest_length;
    struct place places[PLACES_MAX];
    size_t count;
    long lines;
    char fault[500]; /* the first broken rule as a sentence; empty: none */
};

/* Make the file, or make it anew. 0 or -1. */
int witness_open(struct witness *w, const char *path);
void witness_close(struct witness *w);
/* A new one has one permit. */
struct place *witness_place(struct witness *w, const char *path);
/* Judge what was added. False if a rule is or was broken. */
bool witness_read(struct witness *w);
void witness_line(struct witness *w, const char *line);

#endif
