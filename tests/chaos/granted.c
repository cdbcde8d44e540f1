/* SPDX-License-Identifier: Apache-2.0 */
#include "play.h"

#include <stdio.h>

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

/* --- holds ------------------------------------------------------------------------------------ */

struct record *granted_hold(const struct granted *h, int i)
{
    return &h->w->seat->hold[h->slots[i]];
}

/* The handle of the nth. */
static const struct handle *place_at(const struct granted *h, int i)
{
    return handle_place(h->as, (size_t)i);
}

static void add(struct granted *h, int64_t asked_ns)
{
    struct seat *seat = h->w->seat;
    const struct handle *at = place_at(h, h->count);
    int64_t now = net_boot_ns();
    int slot = 0;

    while (seat->open[slot])
        slot++;
    seat->hold[slot] = (struct record){.asked_ns = asked_ns,
                                       .begun_ns = now,
                                       .until_ns = now,
                                       .token = h->held.grants[h->count].token,
                                       .serial = ++seat->serial,
                                       .seat = h->w->number,
                                       .place = (uint8_t)place_of(at->paths[0]),
                                       .access = at->access == 'r'   ? READING
                                                 : at->access == 'p' ? PERMIT
                                                                     : ALONE,
                                       .cached = at->shares_node,
                                       .era = (uint8_t)h->w->shared->era};
    seat->open[slot] = true;
    h->w->shared->grants[seat->hold[slot].place]++;
    h->slots[h->count++] = slot;
}

int granted_take(struct granted *h, struct player *w, struct handle *handle,
                 const struct zkl_wait *wait)
{
    bool outside =
        w->shared->broken == BREAK_LOCK && w->number == 0 && handle == handle_find("mutex");
    size_t places = handle_places(handle);
    unsigned wants = 0;

    /* One that does not lock has its own lock: nobody else is excluded. */
    *h = (struct granted){.w = w, .handle = outside ? handle_find("rare") : handle, .as = handle};
    for (size_t i = 0; i < places; i++)
        wants |= 1U << place_of(handle_place(handle, i)->paths[0]);
    int64_t asked_ns = call_begin(w);
    w->seat->wants_since_ms = w->seat->call_since_ms;
    w->seat->wants = wait->flags & ZKL_WAIT_TRY ? 0 : wants;
    int rc = lock(w->worker, h->handle, wait, &h->held);
    w->seat->wants = 0;
    call_end(w);
    while (rc == 0 && (size_t)h->count < places)
        add(h, asked_ns);
    return rc;
}

/* --- the window ------------------------------------------------------------------------------- */

/* For this test's own test: what does not look believes that it holds until now, and writes. */
static bool looks(const struct granted *h)
{
    return h->w->shared->broken != BREAK_WINDOW || granted_hold(h, 0)->place == LEASE;
}

/* Proved from before the look on, for as long as the window then was: until when, or 0. */
static int64_t prove(struct granted *h)
{
    int64_t now = net_boot_ns(), recorded = zkl_now_ns();
    int64_t window = looks(h) ? handle_window_ms(h->handle, &h->held) : 0;

    for (int i = 0; !looks(h) && i < h->count; i++)
        granted_hold(h, i)->until_ns = now;
    if (!looks(h) || window > 0)
        record(h->w->worker, '~', recorded + (window > 0 ? window * MS : 0), "", h->handle);
    if (!looks(h))
        return INT64_MAX;
    if (window < 0)
        call_odd(h->w, "window", (int)window);
    for (int i = 0; window > 0 && i < h->count; i++)
        granted_hold(h, i)->until_ns = now + window * MS;
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
        const struct record *r = granted_hold(h, i);
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

int granted_renew(struct granted *h, int lease_ms)
{
    record(h->w->worker, '<', zkl_now_ns(), "", h->handle);
    return zkl_mutex_renew(h->handle->mutex, lease_ms);
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
    struct record *r = granted_hold(h, i);

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

void granted_leave(struct granted *h)
{
    int64_t now = net_boot_ns();

    for (int i = 0; i < h->count; i++)
        granted_hold(h, i)->left_ns = now;
    call_begin(h->w);
    unlock(h->w->worker, h->handle, &h->held);
    call_end(h->w);
    for (int i = 0; i < h->count; i++) {
        if (h->held.codes[i] == ZKL_ELOST && chance(&h->w->chance, 50))
            write_all(h, 0); /* of somebody who did not look */
        close_hold(h, i, h->held.codes[i]);
    }
    h->count = 0;
}
