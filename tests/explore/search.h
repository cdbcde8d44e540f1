/* SPDX-License-Identifier: Apache-2.0
 * All that may come, depth first; each state once. */
#ifndef ZKL_EXPLORE_SEARCH_H
#define ZKL_EXPLORE_SEARCH_H

#include "world.h"

#define PATH_MAX_LENGTH 4000
#define SENTENCE 256

struct path {
    int length;
    unsigned char choices[PATH_MAX_LENGTH];
};

struct limits {
    double seconds;  /* 0: none */
    uint64_t states; /* likewise */
    int depth;       /* of the choices; 0: none */
    bool audit;
    struct digest wanted; /* it ends where this is met */
};

struct result {
    bool complete, violated;
    uint64_t states, steps, calm_states;
    int depth;
    double seconds;
    char sentence[SENTENCE];
    bool in_calm; /* it went wrong when no faults came any more, behind the path */
    struct path path;
    struct digest key; /* of what the audit found */
};

void search(const struct bounds *bounds, const struct limits *limits, struct result *result);
/* The shortest path to something that is wrong, as far as it is found in this time. */
void shorten(const struct bounds *bounds, struct result *result, double seconds);
/* What differs in the two states that the audit took for one. */
void explain_audit(const struct bounds *bounds, struct result *result);
/* With a trace; true: it went wrong. */
bool replay(const struct bounds *bounds, const struct path *path, struct result *result);

#endif
