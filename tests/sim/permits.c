/* SPDX-License-Identifier: Apache-2.0
 * A semaphore: in each process a handle on it. How many permits there were and are, who changes that, and how many
 * may be out. tests/owners has those who acquire some together. */
#include "world.h"

#define USUAL 3

/* Strangers have as many as there usually are, for good: who wants some waits for a greater number. */
static void take_all(struct world *w)
{
    char path[] = SIM_LEASES "/x-lease-0000000000";
    fake_write(&w->fake, fake_find(&w->fake, SIM_LEASES), "3");
    for (int i = 0; i < USUAL; i++, path[sizeof path - 2]++)
        fake_create(&w->fake, path, 0, 0);
}

void permits_init(struct world *w)
{
    w->semaphores = chance(w, 2);
    if (!w->semaphores)
        return;
    w->mismatch = chance(w, 6);
    if (w->mismatch)
        happened(w, SIM_MISMATCH);
    w->limit_changes = chance(w, 3);
    w->full = w->seed % FULL_ONCE_IN == 2; /* not drawn */
    if (chance(w, 3) || w->full) {         /* as Curator makes it */
        fake_create(&w->fake, SIM_SEMAPHORE, 0, 0);
        fake_create(&w->fake, SIM_LEASES, 0, 0);
    }
    if (w->full)
        take_all(w);
    for (int i = 0; i < CLIENTS; i++)
        w->clients[i].view.permits = USUAL + (w->mismatch && i == 0);
}

bool may_fail_for_permits(const struct client *c, int code)
{
    const struct world *w = c->world;
    return (code == ZKL_EMISMATCH && (w->mismatch || (w->limit_changes && !c->view.agreed))) ||
           (code == ZKL_EINVAL && w->limit_changes);
}

/* --- how many ------------------------------------------------------------- */

void permits_note_limit(struct world *w)
{
    const struct fake_node *leases = fake_find(&w->fake, SIM_LEASES);
    int number = leases && leases->text ? atoi(leases->text) : 0;
    size_t last = (w->limit_count + LIMITS_KEPT - 1) % LIMITS_KEPT;
    if (w->limit_count > 0 && w->limits[last].number == number)
        return;
    w->limits[w->limit_count % LIMITS_KEPT].zxid = w->fake.zxid;
    w->limits[w->limit_count++ % LIMITS_KEPT].number = number;
}

void permits_note_list(struct client *p, int64_t zxid)
{
    each_of(p->owners, OWNERS_EACH, o) {
        bool undecided = false;
        for (int j = 0; o->kind == PART_PERMITS && o->phase == WAITING && j < o->count; j++) {
            enum zkl_contender_state state = o->place[j].contender.machine.state;
            undecided |= state != ZKL_CONTENDER_HOLDING && state != ZKL_CONTENDER_CONFIRMING;
        }
        if (undecided)
            o->listed_zxid = zxid;
    }
}

/* Between the list that decided and now there was a moment at which as many were allowed as are out: what was lowered
 * since then takes back no grant. */
static int most_allowed(const struct world *w, int64_t since)
{
    int most = 0;
    for (size_t i = 0; i < LIMITS_KEPT && i < w->limit_count; i++) {
        size_t at = (w->limit_count - 1 - i) % LIMITS_KEPT;
        most = w->limits[at].number > most ? w->limits[at].number : most;
        if (w->limits[at].zxid <= since)
            break;
    }
    return most;
}

void permits_were_granted(struct owner *o)
{
    struct world *w = o->client->world;
    permits_note_limit(w);
    if (permits_out(w) > most_allowed(w, o->listed_zxid))
        wrong("more permits are out than there are");
}

/* --- what others do ------------------------------------------------------- */

static void remove_empty(struct world *w, struct fake_node *node)
{
    happened(w, SIM_COLLECTED);
    fake_delete(&w->fake, node);
}

void permits_interfere(struct world *w)
{
    static const char *const numbers[] = {"1", "2", "3", "4", "5", "", "note"};
    struct fake_node *leases = fake_find(&w->fake, SIM_LEASES);
    struct fake_node *gate = fake_find(&w->fake, GATE);
    const char *number = numbers[rnd(w, sizeof numbers / sizeof *numbers)];
    if (leases && chance(w, 2)) {
        happened(w, SIM_LIMIT_CHANGED);
        say("[%6lld] the number of permits is \"%s\" now", (long long)w->fake.now_ms, number);
        fake_write(&w->fake, leases, number);
    } else if (leases && !fake_has_children(&w->fake, SIM_LEASES)) {
        remove_empty(w, leases);
    } else if (gate && !fake_has_children(&w->fake, GATE)) {
        remove_empty(w, gate);
    }
}

void permits_raise(struct world *w)
{
    struct fake_node *leases = fake_find(&w->fake, SIM_LEASES);
    if (w->full && leases)
        fake_write(&w->fake, leases, "99");
    w->limit_changes |= w->full;
    w->full = false;
}
