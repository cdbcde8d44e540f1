/* SPDX-License-Identifier: Apache-2.0 */
#include "play.h"

#include <stdio.h>

#include "call_results.h"
#include "chance.h"
#include "tool/net.h"

#define MS INT64_C(1000000)

void count_in(struct player *w, enum tally tally)
{
    w->shared->tally[tally]++;
}

int64_t call_begin(struct player *w)
{
    w->seat->call_since_ms = net_now_ms();
    return net_boot_ns();
}

void call_end(struct player *w)
{
    w->seat->call_since_ms = 0;
}

void call_odd(struct player *w, const char *what, int rc)
{
    shared_odd(w->shared, "seat %d (%s): %s: %d, %s: %s", w->number, role_name(w->role), what, rc,
               zkl_strerror(rc), zkl_error_detail());
}

/* --- the record of calls ---------------------------------------------------------------------- */

/* Readers of this client share a node, which stays: see make_rwlock. */
static bool is_cached(const struct player *w, enum place place, enum access access)
{
    return place == RWLOCK && access == READING && client_caches(w->client);
}

/* "read=/chaos/rwlock". Where threads may have one node in turn: see options_at. */
static void add_place(struct calls_line *line, const struct player *w, enum place place,
                      enum access access)
{
    char half[20];

    if (access == PERMIT)
        snprintf(half, sizeof half, "permit%d", PERMITS_MAX);
    else
        snprintf(half, sizeof half, "%s",
                 is_cached(w, place, access)          ? "cached"
                 : access == READING                  ? "read"
                 : place == MUTEX || place == REVOKED ? "shared"
                 : place == SINGLE                    ? "once"
                                                      : "alone");
    calls_add(line, " %s=/chaos/%s", half, place_name((int)place));
}

int64_t ask_begin(struct player *w, const struct zkl_wait *wait, const struct wish *wishes,
                  int count)
{
    unsigned flags = wait != NULL ? wait->flags : 0;
    int64_t now = call_begin(w);
    struct calls_line line = calls_line('?', now, w->number);
    unsigned wants = 0;

    calls_add(&line, " acquire%s%s", flags & ZKL_WAIT_TRY ? " try" : "",
              flags & ZKL_WAIT_SYNC ? " sync" : "");
    for (int i = 0; i < count; i++)
        add_place(&line, w, wishes[i].place, wishes[i].access);
    calls_write(&line);
    for (int i = 0; i < count; i++)
        wants |= 1U << wishes[i].place;
    w->seat->wants_since_ms = w->seat->call_since_ms;
    w->seat->wants = flags & ZKL_WAIT_TRY ? 0 : wants;
    return now;
}

void ask_end(struct player *w, int rc, const struct zkl_grant *grants, int count)
{
    w->seat->wants = 0;
    calls_write_grants(w->number, rc, grants, count);
    call_end(w);
}

static struct record *held(const struct granted *h, int i)
{
    return &h->w->seat->hold[h->slots[i]];
}

static void note_hand(const struct granted *h, char way, int64_t ns, const char *verb)
{
    struct calls_line line = calls_line(way, ns, h->w->number);

    calls_add(&line, "%s", verb);
    for (int i = 0; i < h->count; i++)
        add_place(&line, h->w, (enum place)held(h, i)->place, (enum access)held(h, i)->access);
    calls_write(&line);
}

/* --- holds ------------------------------------------------------------------------------------ */

struct record *granted_add(struct granted *h, enum place place, enum access access,
                           int64_t asked_ns, uint64_t token)
{
    struct seat *seat = h->w->seat;
    int64_t now = net_boot_ns();
    int slot = 0;

    while (seat->open[slot])
        slot++;
    seat->hold[slot] = (struct record){.asked_ns = asked_ns,
                                       .begun_ns = now,
                                       .until_ns = now,
                                       .token = token,
                                       .serial = ++seat->serial,
                                       .seat = h->w->number,
                                       .place = (uint8_t)place,
                                       .access = (uint8_t)access,
                                       .cached = is_cached(h->w, place, access),
                                       .era = (uint8_t)h->w->shared->era};
    seat->open[slot] = true;
    h->w->shared->grants[place]++;
    h->slots[h->count++] = slot;
    return &seat->hold[slot];
}

/* --- the window ------------------------------------------------------------------------------- */

static int64_t permits_window_ms(const struct granted *h)
{
    int64_t least = zkl_permit_window_ms(h->permits[0]);

    for (int i = 1; i < h->count; i++) {
        int64_t one = zkl_permit_window_ms(h->permits[i]);
        least = one < least ? one : least;
    }
    return least;
}

static int64_t window_ms(const struct granted *h)
{
    if (h->multi != NULL)
        return zkl_multi_window_ms(h->multi);
    return h->mutex != NULL ? zkl_mutex_window_ms(h->mutex) : permits_window_ms(h);
}

/* For this test's own test: what does not look believes that it holds until now, and writes. */
static bool looks(const struct granted *h)
{
    return h->w->shared->broken != BREAK_WINDOW || held(h, 0)->place == LEASE;
}

/* Proved from before the look on, for as long as the window then was: until when, or 0. */
static int64_t prove(struct granted *h)
{
    int64_t now = net_boot_ns(), window = looks(h) ? window_ms(h) : 0;

    for (int i = 0; !looks(h) && i < h->count; i++)
        held(h, i)->until_ns = now;
    if (!looks(h) || window > 0)
        note_hand(h, '~', now + (window > 0 ? window * MS : 0), "");
    if (!looks(h))
        return INT64_MAX;
    if (window < 0)
        call_odd(h->w, "window", (int)window);
    for (int i = 0; window > 0 && i < h->count; i++)
        held(h, i)->until_ns = now + window * MS;
    return window > 0 ? now + window * MS : 0;
}

/* --- what the lock protects ------------------------------------------------------------------- */

/* It keeps the largest token that it has seen and refuses smaller ones. */
static bool resource_takes(struct shared *b, const struct record *r)
{
    unsigned long long newest = b->newest[r->place];

    do {
        if (r->token < newest || r->era != b->era)
            return false;
    } while (!atomic_compare_exchange_weak(&b->newest[r->place], &newest, r->token));
    return true;
}

/* Nobody newer can have written while the window is open. Modes: F9. */
static void write_all(struct granted *h, int64_t proved_until_ns)
{
    for (int i = 0; i < h->count; i++) {
        const struct record *r = held(h, i);
        if (r->access != ALONE || resource_takes(h->w->shared, r))
            continue;
        count_in(h->w, STALE_REFUSED);
        if (net_boot_ns() < proved_until_ns)
            shared_odd(h->w->shared,
                       "%s: the write of seat %d was refused while its window was open, token %llx "
                       "after %llx",
                       place_name(r->place), h->w->number, (unsigned long long)r->token,
                       (unsigned long long)h->w->shared->newest[r->place]);
    }
}

void granted_write_late(struct granted *h)
{
    write_all(h, 0);
}

int granted_renew(struct granted *h, int lease_ms)
{
    note_hand(h, '<', net_boot_ns(), "");
    return zkl_mutex_renew(h->mutex, lease_ms);
}

bool granted_use(struct granted *h)
{
    int64_t until_ns = prove(h);

    if (until_ns == 0)
        return false;
    if (chance(&h->w->chance, 20)) /* whatever may come between the look and the write */
        net_nap_ms(chance_between(&h->w->chance, 0, 5));
    write_all(h, until_ns);
    return true;
}

void granted_work(struct granted *h, int most_ms)
{
    int times = chance_between(&h->w->chance, 1, 3);
    bool ever = false;

    for (int i = 0; i < times; i++) {
        ever = granted_use(h) || ever;
        net_nap_ms(chance_between(&h->w->chance, 0, most_ms / times));
    }
    granted_use(h);
    if (!ever)
        count_in(h->w, UNPROVED);
}

/* --- giving back ------------------------------------------------------------------------------ */

/* 0: the node had stood to the end, so nobody else was in between. Not confirmed: nobody was all the same, as
 * the window was open when unlock began. */
static void close_hold(struct granted *h, int i, int rc)
{
    struct player *w = h->w;
    struct record *r = held(h, i);

    bool whole = rc == 0 || rc == ZKL_EUNCONFIRMED;

    if (!whole && !zkl_error_is_lost(rc))
        call_odd(w, "unlock", rc);
    if (rc == ZKL_EUNCONFIRMED)
        count_in(w, UNCONFIRMED);
    if (rc == ZKL_EDOUBT)
        count_in(w, DOUBTED);
    if (rc == ZKL_ELOST && !r->cached) /* one callback for all readers of a node */
        w->client->process->owed[r->place]++;
    r->code = (int16_t)rc;
    if (whole || !looks(h) || r->left_ns < r->until_ns)
        r->until_ns = r->left_ns;
    record_write(w->client->fd, r);
    w->seat->open[h->slots[i]] = false;
}

static void unlock(struct granted *h, int *codes)
{
    int of_members[8];

    call_begin(h->w);
    if (h->multi != NULL) {
        zkl_multi_unlock(h->multi, of_members);
        for (int i = 0; i < h->count; i++)
            codes[i] = of_members[h->members[i]];
    } else if (h->mutex != NULL) {
        codes[0] = zkl_mutex_unlock(h->mutex);
    } else {
        for (int i = 0; i < h->count; i++)
            codes[i] = zkl_permit_release(h->permits[i]);
    }
    call_end(h->w);
}

void granted_leave(struct granted *h)
{
    int codes[CHAOS_SLOTS] = {0};
    int64_t now = net_boot_ns();

    for (int i = 0; i < h->count; i++)
        held(h, i)->left_ns = now;
    note_hand(h, '?', now, " release");
    unlock(h, codes);
    calls_write_codes(h->w->number, codes, h->count);
    for (int i = 0; i < h->count; i++) {
        if (codes[i] == ZKL_ELOST && chance(&h->w->chance, 50))
            granted_write_late(h);
        close_hold(h, i, codes[i]);
    }
    h->count = 0;
}
