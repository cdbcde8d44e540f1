/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that are under way while their player does something else: what is granted is given back in
 * the callback, by another operation, or by the player in the name of the operation's owner. */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>

enum fiber_state {
    FIBER_IDLE,
    FIBER_WAITING,
    FIBER_HELD, /* its player must release it */
    FIBER_LEAVING,
    FIBER_ENDED /* its player must free it */
};

static const char *const state_text[] = {"an idle operation", "an operation that waits",
                                         "an operation that holds", "an operation that unlocks",
                                         "an operation that has ended"};

struct returned {
    struct fiber *fiber;
    int which;
};

struct fiber {
    struct player *player;
    struct station *station;
    atomic_int state;
    atomic_llong since_ms;
    bool kept; /* until its player gives it back */
    struct zkl_owner *owner;
    int count;             /* of visits: one, or as many as permits or members */
    struct seat inside[4]; /* where they are; the first has the mutex */
    size_t visits[4];
    struct zkl_permit *permits[4]; /* NULL: a mutex, or */
    struct zkl_multi *multi;
    struct returned returned[4];
    atomic_int out;
    int codes[4];
    struct zkl_grant grants[4];
    atomic_ullong may;
    bool endless; /* it waits until it is granted */
    uint64_t op;
    atomic_int callbacks, due;
};

static void move(struct fiber *f, enum fiber_state state)
{
    f->since_ms = net_now_ms();
    f->state = (int)state;
}

static void judge(struct fiber *f, const char *what, int code, uint64_t may)
{
    said(NULL, what, code, may);
    if (++f->callbacks > f->due)
        odd(NULL, "more callbacks than there are operations");
}

/* --- a grant, and what becomes of it ----------------------------------------------------------- */

static void unlocked(struct fiber *f, int which, int code)
{
    visit_unlocked(f->visits[which], code, station_trust(f->station, &f->inside[which]));
}

static void released(int code, void *arg)
{
    struct fiber *f = arg;

    judge(f, "released by an operation", code, MAY_UNLOCK);
    for (int i = 0; i < f->count; i++)
        unlocked(f, i, f->multi != NULL ? f->codes[i] : code);
    move(f, FIBER_ENDED);
}

static void permit_released(int code, void *arg)
{
    struct returned *r = arg;
    struct fiber *f = r->fiber;

    judge(f, "a permit released by an operation", code, MAY_UNLOCK);
    unlocked(f, r->which, code);
    if (--f->out == 0)
        move(f, FIBER_ENDED);
}

/* The last permit that is released ends the operation, possibly during this call. */
static void permits_release(struct fiber *f)
{
    int count = f->count;

    f->out = count;
    f->due += count;
    for (int i = 0; i < count; i++) {
        f->returned[i] = (struct returned){f, i};
        visit_leave(f->visits[i]);
        if (CALLED_BACK(zkl_permit_release_async(f->permits[i], permit_released, &f->returned[i]),
                        MAY_0 | MAY(ZKL_ELOST)) == 0)
            continue;
        f->due--; /* closed */
        if (--f->out == 0)
            move(f, FIBER_ENDED);
    }
}

/* In the callback, or by the player. */
static void release(struct fiber *f)
{
    long long rc;

    move(f, FIBER_LEAVING);
    if (f->permits[0] != NULL) {
        permits_release(f);
        return;
    }
    for (int i = 0; i < f->count; i++)
        visit_leave(f->visits[i]);
    f->due++;
    if (f->multi != NULL)
        rc = CALLED_BACK(zkl_multi_unlock_async(f->owner, f->multi, f->codes, released, f),
                         MAY_0 | MAY(ZKL_ELOST));
    else
        rc = CALLED_BACK(zkl_mutex_unlock_async(f->owner, f->inside[0].mutex, released, f),
                         MAY_0 | MAY(ZKL_ELOST));
    if (rc != 0) { /* closed */
        f->due--;
        move(f, FIBER_ENDED);
    }
}

static void granted(int code, void *arg)
{
    struct fiber *f = arg;

    judge(f, "granted to an operation", code, f->may);
    if (code != 0) {
        move(f, FIBER_ENDED);
        return;
    }
    world->granted++;
    for (int i = 0; i < f->count; i++)
        f->visits[i] = visit_enter(f->inside[i].at, f->inside[i].reads,
                                   f->permits[0] != NULL ? zkl_permit_token(f->permits[i])
                                                         : f->grants[i].token);
    if (f->kept)
        move(f, FIBER_HELD);
    else
        release(f);
}

/* The player itself, as the operation's owner. */
static void mutex_end(struct player *p, struct fiber *f)
{
    struct zkl_owner *before = zkl_owner_use(f->owner);

    ask_about(p, f->station, f->inside[0].mutex);
    visit_leave(f->visits[0]);
    unlocked(f, 0, (int)CALL(p, zkl_mutex_unlock(f->inside[0].mutex), MAY_UNLOCK));
    zkl_owner_use(before);
}

static int mutex_begin(struct player *p, struct fiber *f, const struct zkl_wait *wait)
{
    f->count = 1;
    f->inside[0] = *any_seat(p, f->station);
    return (int)CALL(p,
                     zkl_mutex_acquire_async(f->owner, f->inside[0].mutex, wait, &f->grants[0],
                                             granted, f, &f->op),
                     MAY_0 | MAY(ZKL_ECLOSED));
}

static int permits_begin(struct player *p, struct fiber *f, const struct zkl_wait *wait)
{
    f->count = chance_between(&p->chance, 1, 4);
    for (int i = 0; i < f->count; i++)
        f->inside[i] = (struct seat){.at = AT_FOUR};
    return (int)CALL(p,
                     zkl_semaphore_acquire_async(f->station->four, f->count, wait, f->permits,
                                                 granted, f, &f->op),
                     MAY_0 | MAY(ZKL_ECLOSED));
}

static int multi_begin(struct player *p, struct fiber *f, const struct zkl_wait *wait)
{
    int which = chance_between(&p->chance, 0, MULTIS - 1);

    f->multi = f->station->multi[which];
    f->count = (int)f->station->members[which];
    memcpy(f->inside, f->station->member[which], sizeof f->inside);
    return (int)CALL(
        p, zkl_multi_acquire_async(f->owner, f->multi, wait, f->grants, granted, f, &f->op),
        MAY_0 | MAY(ZKL_ECLOSED));
}

/* --- all of them ------------------------------------------------------------------------------ */

static struct fiber *idle_one(struct player *p)
{
    for (int i = 0; i < FIBERS; i++) {
        if (p->fibers[i].state == FIBER_IDLE)
            return &p->fibers[i];
    }
    return NULL;
}

static void prepare(struct player *p, struct fiber *f, struct station *s)
{
    f->station = s;
    f->permits[0] = NULL;
    f->multi = NULL;
    f->op = 0;
    f->callbacks = 0;
    f->due = 1;
    f->may = MAY_WAIT | MAY_TRY;
    f->endless = false;
    for (int i = 0; i < 4; i++) {
        f->visits[i] = NO_VISIT;
        f->codes[i] = 0;
        f->grants[i] = (struct zkl_grant)ZKL_GRANT_INIT;
    }
    CALL(p, zkl_owner_new(&f->owner), MAY_0);
}

static int begin(struct player *p, struct fiber *f, const struct zkl_wait *wait, int variant)
{
    f->kept = variant == 1 || variant == 4;
    if (variant < 4)
        return mutex_begin(p, f, wait);
    if (variant < 6)
        return permits_begin(p, f, wait);
    return multi_begin(p, f, wait);
}

static void clear_away(struct player *p, struct fiber *f, bool callbacks)
{
    if (callbacks && f->callbacks != f->due)
        odd(p, "fewer callbacks than there are operations");
    CALL(p, zkl_owner_free(f->owner), MAY_0);
    f->owner = NULL;
    struct station *s = f->station;
    p->old_op = f->op;
    p->old_station = s;
    p->old_opened = s->opened;
    move(f, FIBER_IDLE);
    station_leave(p, s);
}

/* The cancel object is set now or never, and freed while an operation waits with it. */
static void choose_wait(struct player *p, struct fiber *f, struct zkl_wait *wait, int variant)
{
    *wait = some_wait(p);
    if (p->patient)
        return;
    wait->flags = chance(&p->chance, 10) ? ZKL_WAIT_TRY : 0;
    f->endless = variant != 1 && variant != 4 && chance(&p->chance, 30);
    if (f->endless) {
        wait->deadline_ns = ZKL_NO_DEADLINE;
        f->may &= ~MAY(ZKL_ETIMEDOUT);
    } else if (chance(&p->chance, 50)) {
        f->may |= MAY(ZKL_ECANCELED);
        CALL(p, zkl_cancel_new(&wait->cancel), MAY_0);
    }
}

static void begin_one(struct player *p, struct station *s, int variant)
{
    struct fiber *f = idle_one(p);
    struct zkl_wait wait;

    if (f == NULL || !station_enter(s, false))
        return;
    prepare(p, f, s);
    choose_wait(p, f, &wait, variant);
    move(f, FIBER_WAITING);
    int rc = begin(p, f, &wait, variant);
    bool cancels = wait.cancel != NULL && chance(&p->chance, 50);
    if (chance(&p->chance, 50))
        zkl_cancel_set(wait.cancel);
    zkl_cancel_free(wait.cancel);
    if (rc != 0)
        clear_away(p, f, false);
    else if (cancels)
        CALL(p, zkl_op_cancel(s->client, f->op), MAY_0);
}

/* --- one cancel object for all ---------------------------------------------------------------- */

struct flock {
    struct zkl_owner *owner[3];
    struct completion done[3];
    int begun;
};

/* Up to three wait, each for an owner of its own; less only if the client is closed meanwhile. */
static void flock_begin(struct player *p, struct flock *flock, struct zkl_mutex *mutex,
                        const struct zkl_wait *wait)
{
    for (int i = 0; i < 3; i++) {
        struct zkl_owner **owner = &flock->owner[flock->begun];
        CALL(p, zkl_owner_new(owner), MAY_0);
        if (CALL(p,
                 zkl_mutex_acquire_async(*owner, mutex, wait, NULL, note_completion,
                                         &flock->done[flock->begun], NULL),
                 MAY_0 | MAY(ZKL_ECLOSED)) == 0)
            flock->begun++;
        else
            CALL(p, zkl_owner_free(*owner), MAY_0);
    }
}

static void expect_canceled(struct player *p, struct flock *flock)
{
    for (int i = 0; i < flock->begun; i++) {
        calling(p, "operations that are canceled while their lock is held");
        while (flock->done[i].calls == 0)
            net_nap_ms(1);
        said(p, "canceled", flock->done[i].code, MAY(ZKL_ECANCELED) | MAY(ZKL_ECLOSED));
        CALL(p, zkl_owner_free(flock->owner[i]), MAY_0);
    }
}

/* They can't be granted, as the player holds the lock, whose session nobody ends. */
static void cancel_all(struct player *p, struct station *s)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_mutex *mutex = s->seats[9].mutex;
    struct flock flock = {.begun = 0};

    if (s->kind == STRUCK || CALL(p, zkl_mutex_lock_for(mutex, soon_ms(p)), MAY_WAIT) != 0)
        return;
    CALL(p, zkl_cancel_new(&wait.cancel), MAY_0);
    flock_begin(p, &flock, mutex, &wait);
    linger(p);
    zkl_cancel_set(wait.cancel);
    zkl_cancel_free(wait.cancel);
    expect_canceled(p, &flock);
    CALL(p, zkl_mutex_unlock(mutex), MAY_UNLOCK);
}

/* --- several are woken together --------------------------------------------------------------- */

static void give_back_one(struct player *p, struct station *s, struct zkl_owner *owner, int code)
{
    struct zkl_owner *before = zkl_owner_use(owner);

    if (said(p, "a reader behind a writer", code, MAY_0 | MAY(ZKL_ECLOSED)) == 0)
        CALL(p, zkl_mutex_unlock(zkl_rwlock_reader(s->rwlock)), MAY_UNLOCK);
    zkl_owner_use(before);
    CALL(p, zkl_owner_free(owner), MAY_0);
}

/* Release as soon as one reader has it: a writer may queue behind that reader, and the next reader
 * behind the writer. */
static void expect_grants(struct player *p, struct station *s, struct flock *flock)
{
    int at = 0;

    for (int left = flock->begun; left > 0; left--) {
        calling(p, "readers that wait for a writer that has left");
        while (flock->owner[at] == NULL || flock->done[at].calls == 0) {
            at = (at + 1) % flock->begun;
            net_nap_ms(at == 0);
        }
        give_back_one(p, s, flock->owner[at], flock->done[at].code);
        flock->owner[at] = NULL;
    }
}

/* Readers of one client wait for one writer without a deadline. When the writer leaves, every reader
 * must be granted. */
static void wake_all(struct player *p, struct station *s)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_mutex *writes = zkl_rwlock_writer(s->rwlock);
    struct flock flock = {.begun = 0};

    if (!fibers_idle(p) || CALL(p, zkl_mutex_lock_for(writes, soon_ms(p)), MAY_WAIT) != 0)
        return;
    flock_begin(p, &flock, zkl_rwlock_reader(s->rwlock), &wait);
    net_nap_ms(chance_between(&p->chance, 0, 50)); /* most are queued by then */
    CALL(p, zkl_mutex_unlock(writes), MAY_UNLOCK);
    expect_grants(p, s, &flock);
}

void act_fiber(struct player *p, struct station *s, int variant)
{
    if (p->old_station == s && p->old_opened == s->opened) /* has ended: no effect */
        CALL(p, zkl_op_cancel(s->client, p->old_op), MAY_0);
    if (variant == FIBER_VARIANTS - 1)
        cancel_all(p, s);
    else if (variant == FIBER_VARIANTS - 2)
        wake_all(p, s);
    else
        begin_one(p, s, variant);
}

void fibers_make(struct player *p)
{
    p->fibers = calloc(FIBERS, sizeof *p->fibers);
    if (p->fibers == NULL)
        abort();
    for (int i = 0; i < FIBERS; i++)
        p->fibers[i].player = p;
}

static void end_held(struct player *p, struct fiber *f)
{
    if (f->permits[0] != NULL) {
        release(f);
        return;
    }
    mutex_end(p, f);
    move(f, FIBER_ENDED);
}

void fibers_reap(struct player *p)
{
    for (int i = 0; i < FIBERS; i++) {
        struct fiber *f = &p->fibers[i];
        if (f->state == FIBER_HELD)
            end_held(p, f);
        if (f->state == FIBER_ENDED)
            clear_away(p, f, true);
    }
}

bool fibers_idle(const struct player *p)
{
    for (int i = 0; i < FIBERS; i++) {
        if (p->fibers[i].state != FIBER_IDLE)
            return false;
    }
    return true;
}

void fibers_end(struct player *p)
{
    while (!fibers_idle(p)) {
        fibers_reap(p);
        net_nap_ms(1);
    }
}

const char *fibers_hang(struct player *p, int64_t now_ms)
{
    for (int i = 0; p->fibers != NULL && i < FIBERS; i++) {
        struct fiber *f = &p->fibers[i];
        int state = f->state;
        int64_t since_ms = f->since_ms;
        if ((state == FIBER_WAITING || state == FIBER_LEAVING) && f->state == state &&
            now_ms - since_ms > HANG_MS)
            return state_text[state];
    }
    return NULL;
}
