/* SPDX-License-Identifier: Apache-2.0
 * diagrams STATES.MD: the arrows "A --> B" of the page of states are the tables of allowed transitions, all of
 * them and no other. */
#include <stdio.h>
#include <string.h>

#include "core/bundle.h"
#include "core/session.h"
#include "core/local_queue.h"
#include "core/read_cache.h"

#define STATES_MAX 32

struct machine {
    const char *what;
    int count;
    const char *(*name)(int state);
    bool (*may_move)(int from, int to);
    bool drawn[STATES_MAX][STATES_MAX];
};

/* What a machine calls its states, and which may follow which. */
#define MACHINE(kind)                                                                              \
    static const char *kind##_name(int state)                                                      \
    {                                                                                              \
        return zkl_##kind##_state_name((enum zkl_##kind##_state)state);                            \
    }                                                                                              \
    static bool kind##_may_move(int from, int to)                                                  \
    {                                                                                              \
        return zkl_##kind##_may_move((enum zkl_##kind##_state)from, (enum zkl_##kind##_state)to);  \
    }
MACHINE(contender)
MACHINE(session)
MACHINE(bundle)
MACHINE(local_queue)
MACHINE(read_cache)

static int find(const struct machine *m, const char *name)
{
    for (int i = 0; i < m->count; i++) {
        if (strcmp(m->name(i), name) == 0)
            return i;
    }
    return -1;
}

/* True if both names are states of this machine. */
static bool draw(struct machine *m, const char *from, const char *to)
{
    int a = find(m, from), b = find(m, to);
    if (a >= 0 && b >= 0)
        m->drawn[a][b] = true;
    return a >= 0 && b >= 0;
}

static int read_arrows(FILE *page, struct machine *machines, size_t count)
{
    char line[256], from[32], to[32];
    int wrong = 0;
    while (fgets(line, sizeof line, page)) {
        if (sscanf(line, " %31[A-Z] --> %31[A-Z]", from, to) != 2)
            continue;
        bool known = false;
        for (size_t i = 0; i < count; i++)
            known = draw(&machines[i], from, to) || known;
        if (!known) {
            printf("no machine has the states of %s --> %s\n", from, to);
            wrong++;
        }
    }
    return wrong;
}

static int compare(const struct machine *m)
{
    int wrong = 0;
    for (int a = 0; a < m->count; a++) {
        for (int b = 0; b < m->count; b++) {
            if (m->drawn[a][b] == m->may_move(a, b))
                continue;
            printf("%s: %s --> %s is %s\n", m->what, m->name(a), m->name(b),
                   m->drawn[a][b] ? "drawn, but not allowed" : "allowed, but not drawn");
            wrong++;
        }
    }
    return wrong;
}

int main(int argc, char **argv)
{
    static struct machine machines[] = {
        {"contender", ZKL_CONTENDER_STATES, contender_name, contender_may_move, {{false}}},
        {"session", ZKL_SESSION_STATES, session_name, session_may_move, {{false}}},
        {"request for permits", ZKL_BUNDLE_STATES, bundle_name, bundle_may_move, {{false}}},
        {"local queue", ZKL_LOCAL_QUEUE_STATES, local_queue_name, local_queue_may_move, {{false}}},
        {"readers in one node",
         ZKL_READ_CACHE_STATES,
         read_cache_name,
         read_cache_may_move,
         {{false}}},
    };
    const size_t count = sizeof machines / sizeof *machines;
    FILE *page = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!page)
        return puts("usage: diagrams docs/states.md"), 2;
    int wrong = read_arrows(page, machines, count);
    fclose(page);
    for (size_t i = 0; i < count; i++)
        wrong += compare(&machines[i]);
    return wrong != 0;
}
