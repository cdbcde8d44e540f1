/* SPDX-License-Identifier: Apache-2.0
 * What must be true beside what tests/owners/check.c has, and the end. */
#include "world.h"

static void check_permits(const struct world *w)
{
    int out = 0;
    for (int i = 0; i < w->owner_count; i++) {
        const struct owner *o = &w->owners[i];
        if (!o->client->dead && fake_alive(&w->fake, o->client->core.session.id))
            out += owner_permits_out(o);
    }
    if (out > w->bounds->scenario->permits)
        wrong("more permits are out than there are");
}

void check_world(struct world *w)
{
    for (int i = 0; i < w->client_count; i++) {
        if (w->clients[i].dead)
            continue;
        check_window(&w->clients[i]);
        check_core(&w->clients[i], true);
    }
    check_exclusion(w);
    check_permits(w);
}

bool check_done(const struct world *w)
{
    bool done = true;
    for (int i = 0; i < w->client_count; i++) {
        const struct client *c = &w->clients[i];
        done = done && (c->dead || (c->freed && core_is_done(&c->core)));
    }
    return done;
}
