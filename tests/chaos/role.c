/* SPDX-License-Identifier: Apache-2.0 */
#include "play.h"

#include <string.h>

#include <zklock/inspect.h>

#include "chance.h"
#include "tool/net.h"

#define MS INT64_C(1000000)
#define RARELY 3000
#define LINGER_NS (INT64_C(30) * 1000 * MS) /* of a node whose session has to end first */

/* --- acquiring -------------------------------------------------------------------------------- */

static bool is_expected(const struct zkl_wait *wait, int rc)
{
    bool try = (wait->flags & ZKL_WAIT_TRY) != 0;

    return rc == 0 || (rc == ZKL_ETIMEDOUT && wait->deadline_ns != ZKL_NO_DEADLINE) ||
           (rc == ZKL_ECANCELED && wait->cancel != NULL) ||
           ((rc == ZKL_EBUSY || rc == ZKL_EDISCONNECTED || rc == ZKL_EUNPROVED) && try);
}

static bool answered(struct player *w, const struct zkl_wait *wait, const char *what, int rc)
{
    if (!is_expected(wait, rc))
        call_odd(w, what, rc);
    w->seat->busy += rc == ZKL_EBUSY;
    count_in(w, rc == 0                   ? GRANTED
                : rc == ZKL_ETIMEDOUT     ? TIMED_OUT
                : rc == ZKL_ECANCELED     ? CANCELED
                : rc == ZKL_EDISCONNECTED ? UNREACHED
                                          : TOLD_BUSY);
    return rc == 0;
}

static bool take(struct player *w, struct granted *h, struct handle *handle,
                 const struct zkl_wait *wait)
{
    return answered(w, wait, "acquire", granted_take(h, w, handle, wait));
}

static bool visit(struct player *w, struct handle *handle, const struct zkl_wait *wait, int most_ms)
{
    struct granted h;

    if (!take(w, &h, handle, wait))
        return false;
    granted_work(&h, most_ms);
    granted_leave(&h);
    return true;
}

/* Now and then a long one, so that what stops a process meets holders. */
static int length_ms(struct player *w)
{
    return chance(&w->chance, 20) ? chance_between(&w->chance, 50, 400) : 10;
}

/* So often with a deadline, of at most that. */
static struct zkl_wait some_wait(struct player *w, int percent, int most_ms)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    if (chance(&w->chance, percent))
        wait.deadline_ns = zkl_now_ns() + chance_between(&w->chance, 1, most_ms) * MS;
    return wait;
}

/* --- the roles -------------------------------------------------------------------------------- */

static bool play_simply(struct player *w)
{
    bool pair = w->role == PERMIT_USER && chance(&w->chance, 50);
    struct handle *handle = w->role == ONE_PERMIT ? w->single
                            : w->role == PLAIN    ? handle_find("mutex")
                                                  : handle_find(pair ? "pair" : "permits");
    struct zkl_wait wait = some_wait(w, w->role == PERMIT_USER ? 20 : 0, 300);

    return visit(w, handle, &wait, length_ms(w));
}

/* A deadline, or a cancel object that is set beforehand or not at all. */
static bool play_hurried(struct player *w)
{
    struct zkl_wait wait = some_wait(w, 100, 400);
    struct zkl_cancel *cancel = NULL;

    if (chance(&w->chance, 20) && zkl_cancel_new(&cancel) == 0) {
        wait.cancel = cancel;
        if (chance(&w->chance, 50))
            zkl_cancel_set(cancel);
    }
    bool granted = visit(w, handle_find("mutex"), &wait, length_ms(w));
    zkl_cancel_free(cancel);
    return granted;
}

/* A node of this call may exist from from_ns on. Unless unlock says that it was removed, it may
 * exist until its session has ended for sure. */
static void stands(struct player *w, enum record_kind kind, int64_t from_ns, int64_t until_ns)
{
    struct record r = {.kind = (uint8_t)kind,
                       .place = RARE,
                       .seat = w->number,
                       .serial = w->seat->serial,
                       .asked_ns = from_ns,
                       .begun_ns = net_boot_ns(),
                       .until_ns = until_ns};

    record_write(w->client->fd, &r);
}

/* Few contenders ever use this lock, so a try that gets "busy" must have met one of them. The record
 * is written before the call, in case the process is killed during it. */
static bool try_rare(struct player *w, const struct zkl_wait *wait)
{
    int64_t from_ns = net_boot_ns();
    long busy = w->shared->seat[w->number].busy;

    w->seat->serial++;
    stands(w, THERE, from_ns, from_ns + LINGER_NS);
    bool granted = visit(w, handle_find("rare"), wait, 5);
    if (w->seat->busy > busy)
        stands(w, BUSY, from_ns, 0);
    return granted;
}

static bool play_try(struct player *w)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.flags = ZKL_WAIT_TRY | (chance(&w->chance, 30) ? ZKL_WAIT_SYNC : 0);
    if (chance_between(&w->chance, 1, RARELY) == 1)
        return try_rare(w, &wait);
    return visit(w, handle_find("mutex"), &wait, length_ms(w));
}

/* A writer that becomes a reader: nobody writes in between. */
static void downgrade(struct player *w, struct granted *writer)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct granted reader;
    int rc = granted_take(&reader, w, handle_find("rwlock.read"), &wait);

    if (rc != 0 && rc != ZKL_ELOST)
        call_odd(w, "downgrade", rc);
    if (rc == 0) {
        count_in(w, DOWNGRADED);
        granted_hold(&reader, 0)->below = 1;
        granted_use(&reader);
    }
    granted_leave(writer);
    if (rc == 0) {
        granted_work(&reader, length_ms(w));
        granted_leave(&reader);
    }
}

static bool play_reads(struct player *w)
{
    bool reads = chance(&w->chance, 60);
    struct zkl_wait wait = some_wait(w, 20, 300);
    struct granted h;

    if (!take(w, &h, handle_find(reads ? "rwlock.read" : "rwlock.write"), &wait))
        return false;
    granted_work(&h, length_ms(w));
    if (!reads && chance(&w->chance, 40))
        downgrade(w, &h);
    else
        granted_leave(&h);
    return true;
}

static bool play_several(struct player *w)
{
    struct handle *members[] = {
        handle_find("mutex"), handle_find(chance(&w->chance, 50) ? "rwlock.read" : "rwlock.write"),
        handle_find("permits")};
    int first = chance_between(&w->chance, 0, 1), count = chance_between(&w->chance, 2, 3 - first);
    struct zkl_wait wait = some_wait(w, 30, 300);
    struct handle multi;

    int rc = handle_of(&multi, peer_client(), members + first, (size_t)count);
    if (rc != 0) {
        call_odd(w, "new multi-lock", rc);
        return false;
    }
    bool granted = visit(w, &multi, &wait, length_ms(w));
    rc = multi.kind->free(&multi);
    if (rc != 0)
        call_odd(w, "free multi-lock", rc);
    return granted;
}

/* Shorter or longer than the work; renewed or not. */
static bool play_leases(struct player *w)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct granted h;

    wait.lease_ms = chance_between(&w->chance, 20, 400);
    if (!take(w, &h, handle_find("lease"), &wait))
        return false;
    granted_work(&h, chance_between(&w->chance, 10, 100));
    if (chance(&w->chance, 50)) {
        int rc = granted_renew(&h, chance_between(&w->chance, 20, 400));
        if (rc != 0 && rc != ZKL_ELOST)
            call_odd(w, "renew", rc);
        granted_work(&h, chance_between(&w->chance, 10, 300));
    }
    granted_leave(&h);
    return true;
}

static bool may_be_asked(int rc)
{
    return rc == 0 || rc == ZKL_ETIMEDOUT || rc == ZKL_EDISCONNECTED || rc == ZKL_ENONODE;
}

/* Ask the holder to release, if there is one. */
static void ask_to_go(struct player *w, const char *path)
{
    const struct zkl_inspection *seen = NULL;
    struct zkl_wait wait = some_wait(w, 100, 1000);

    call_begin(w);
    int rc = zkl_inspect(peer_client(), path, 500, &seen);
    if (rc == 0 && seen->count > 0 && seen->entries[0].role == ZKL_ENTRY_ROLE_HOLDER) {
        rc = zkl_revoke(peer_client(), seen->entries[0].node_path, &wait, 0);
        count_in(w, ASKED);
    }
    call_end(w);
    if (!may_be_asked(rc))
        call_odd(w, "revoke", rc);
    zkl_inspection_free(seen);
}

static bool play_asked_to_go(struct player *w)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    int64_t end_ms = net_now_ms() + chance_between(&w->chance, 20, 1500);
    struct granted h;

    if (chance(&w->chance, 30))
        ask_to_go(w, "/chaos/revoked");
    if (!take(w, &h, handle_find("revoked"), &wait))
        return false;
    do {
        granted_use(&h);
        net_nap_ms(2);
    } while (net_now_ms() < end_ms && zkl_mutex_revoke_requested(h.handle->mutex) == 0);
    granted_leave(&h);
    return true;
}

bool role_play(struct player *w)
{
    static bool (*const plays[ROLES])(struct player *) = {
        play_simply,  play_hurried, play_try,    play_reads,      play_simply,
        play_several, play_leases,  play_simply, play_asked_to_go};

    return plays[w->role](w);
}
