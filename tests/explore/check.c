/* SPDX-License-Identifier: Apache-2.0
 * What must be true beside what tests/owners/check.c has, and the end. */
#include "world.h"

void check_world(struct world *w)
{
    for (int i = 0; i < w->client_count; i++) {
        if (w->clients[i].dead)
            continue;
        check_window(&w->clients[i]);
        check_core(&w->clients[i], true);
    }
    check_exclusion(w);
    if (permits_out(w) > w->bounds->scenario->permits)
        wrong("more permits are out than there are");
}

bool check_done(const struct world *w)
{
    bool done = true;
    each_client(w, c) {
        done = done && (c->dead || (c->freed && core_is_done(&c->core)));
    }
    return done;
}
