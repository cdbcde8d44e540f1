/* SPDX-License-Identifier: Apache-2.0 */
/* What players do with the handles that they share: waits of every kind, and what is asked of a hold. */
#include "stress.h"

#include <sched.h>
#include <stdio.h>

/* --- choices ---------------------------------------------------------------------------------- */

int64_t soon_ms(struct player *p)
{
    if (p->patient)
        return PATIENT_MS;
    return chance(&p->chance, 20) ? chance_between(&p->chance, 500, 3000)
                                  : chance_between(&p->chance, 0, 200);
}

int64_t soon_ns(struct player *p)
{
    return zkl_now_ns() + soon_ms(p) * NS_MS;
}

/* Always while all that there is is played once: no call is left to chance. */
static bool sometimes(struct player *p, int percent)
{
    return p->patient || chance(&p->chance, percent);
}

struct zkl_wait some_wait(struct player *p)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.deadline_ns = soon_ns(p);
    wait.lease_ms = sometimes(p, 70) ? 0 : chance_between(&p->chance, ZKL_LEASE_MIN_MS, 3000);
    return wait;
}

/* For a while that others can use. */
void linger(struct player *p)
{
    if (chance(&p->chance, 20))
        net_nap_ms(chance_between(&p->chance, 1, 10));
    for (int i = chance_between(&p->chance, 0, 3); i > 0; i--)
        sched_yield();
}

struct seat *any_seat(struct player *p, struct station *s)
{
    return &s->seats[chance_between(&p->chance, 0, SEATS - 1)];
}

/* --- questions -------------------------------------------------------------------------------- */

void ask_about(struct player *p, struct station *s, struct zkl_mutex *mutex)
{
    struct zkl_guard guard;
    struct zkl_lock_metrics m = ZKL_LOCK_METRICS_INIT;
    struct zkl_standing standing = ZKL_STANDING_INIT;
    enum zkl_reason why;
    struct zoo_op op;
    char node[700];

    CALL(p, zkl_mutex_still_held(mutex, chance_between(&p->chance, 0, 3000)), MAY_0 | MAY_COUNT);
    CALL(p, zkl_mutex_check(mutex, chance_between(&p->chance, 0, 3000)), MAY_CHECK);
    CALL(p, zkl_mutex_hold_count(mutex), MAY_COUNT);
    CALL(p, zkl_mutex_window_ms(mutex), MAY_0 | MAY_COUNT);
    CALL(p, zkl_mutex_hold_state(mutex, &why), MAY_0 | MAY_COUNT);
    CALL(p, zkl_mutex_waiting(mutex, &standing), MAY_0 | MAY_COUNT);
    CALL(p, zkl_mutex_node_path(mutex, node, sizeof node), MAY_COUNT);
    CALL(p, zkl_mutex_revoke_requested(mutex), MAY_0 | MAY_COUNT);
    CALL(p, zkl_guard_mutex_path(mutex, 1, NULL, &guard), MAY_0 | MAY(ZKL_ELOST));
    CALL(p, zkl_guard_mutex(&guard, mutex, 1, NULL, &op), MAY_0 | MAY(ZKL_ELOST));
    CALL(p, zkl_mutex_free(mutex), MAY(ZKL_EBUSY) | MAY(ZKL_EINVAL));
    CALL(p, zkl_mutex_get_metrics(mutex, &m), MAY_0 | MAY(ZKL_EINVAL));
    CALL(p, zkl_mutex_set_callback(s->seats[7].mutex, NULL, NULL), MAY_0);
    if (sometimes(p, 30))
        CALL(p, zkl_mutex_renew(mutex, chance_between(&p->chance, 1, 10000)),
             MAY_0 | MAY(ZKL_ELOST) | MAY(ZKL_EINVAL)); /* of a reader beside others */
}

void ask_permit(struct player *p, struct zkl_permit *permit)
{
    struct zkl_guard guard;
    struct zoo_op op;
    char node[700];

    CALL(p, zkl_permit_still_held(permit, chance_between(&p->chance, 0, 3000)), MAY_0 | MAY_COUNT);
    CALL(p, zkl_permit_check(permit, chance_between(&p->chance, 0, 3000)), MAY_CHECK);
    CALL(p, zkl_permit_window_ms(permit), MAY_0 | MAY_COUNT);
    CALL(p, zkl_permit_hold_state(permit, NULL), MAY_COUNT);
    CALL(p, zkl_permit_node_path(permit, node, sizeof node), MAY_COUNT);
    CALL(p, zkl_permit_revoke_requested(permit), MAY_0 | MAY_COUNT);
    CALL(p, zkl_guard_permit_path(permit, 1, NULL, &guard), MAY_0 | MAY(ZKL_ELOST));
    CALL(p, zkl_guard_permit(&guard, permit, 1, NULL, &op), MAY_0 | MAY(ZKL_ELOST));
    if (sometimes(p, 30))
        CALL(p, zkl_permit_renew(permit, chance_between(&p->chance, 1, 10000)),
             MAY_0 | MAY(ZKL_ELOST));
}

/* --- cancel objects --------------------------------------------------------------------------- */

/* One that somebody may set. Each player of a process has a place for his. */
static struct box {
    pthread_mutex_t mu;
    struct zkl_cancel *cancel;
    bool taken; /* somebody is about to set it */
} boxes[PLAYERS] = {[0 ... PLAYERS - 1] = {.mu = PTHREAD_MUTEX_INITIALIZER}};

static struct zkl_cancel *put_out(struct player *p)
{
    struct box *box = &boxes[p->number];
    struct zkl_cancel *cancel = NULL;

    CALL(p, zkl_cancel_new(&cancel), MAY_0);
    pthread_mutex_lock(&box->mu);
    box->cancel = cancel;
    box->taken = false;
    pthread_mutex_unlock(&box->mu);
    return cancel;
}

/* It may be freed as soon as its bit can be seen, while the call that sets it still goes on. */
static void take_back(struct player *p, struct zkl_cancel *cancel, bool seen)
{
    struct box *box = &boxes[p->number];

    pthread_mutex_lock(&box->mu);
    bool taken = box->taken;
    box->cancel = NULL;
    pthread_mutex_unlock(&box->mu);
    if (seen && !taken)
        odd(p, "canceled by nobody");
    calling(p, "the setting of a cancel object");
    while (taken && !seen && zkl_cancel_is_set(cancel) == 0)
        sched_yield();
    p->call = NULL;
    zkl_cancel_free(cancel);
}

/* Of somebody, or of nobody. */
static void set_one(struct player *p)
{
    struct box *box = &boxes[chance_between(&p->chance, 0, PLAYERS - 1)];

    pthread_mutex_lock(&box->mu);
    struct zkl_cancel *cancel = box->taken ? NULL : box->cancel;
    box->taken = box->taken || cancel != NULL;
    pthread_mutex_unlock(&box->mu);
    zkl_cancel_set(cancel);
}

void act_cancel(struct player *p, struct station *s, int variant)
{
    struct zkl_cancel *cancel = NULL;
    struct seat *seat = any_seat(p, s);

    if (variant > 0) {
        set_one(p);
        return;
    }
    CALL(p, zkl_cancel_new(&cancel), MAY_0);
    zkl_cancel_set(cancel);
    CALL(p, zkl_cancel_is_set(cancel), MAY_COUNT);
    CALL(p, zkl_mutex_lock_until(seat->mutex, ZKL_NO_DEADLINE, cancel),
         MAY(ZKL_ECANCELED) | MAY(ZKL_ECLOSED));
    zkl_cancel_free(cancel);
}

/* --- one mutex -------------------------------------------------------------------------------- */

static int want_until(struct player *p, struct zkl_mutex *mutex)
{
    struct zkl_cancel *cancel = put_out(p);
    int rc = (int)CALL(p, zkl_mutex_lock_until(mutex, soon_ns(p), cancel),
                       MAY_WAIT | MAY(ZKL_ECANCELED));

    take_back(p, cancel, rc == ZKL_ECANCELED);
    return rc;
}

static int want_all(struct player *p, struct zkl_mutex *mutex, struct zkl_grant *grant)
{
    struct zkl_wait wait = some_wait(p);

    wait.cancel = put_out(p);
    int rc = (int)CALL(p, zkl_mutex_acquire(mutex, &wait, grant), MAY_WAIT | MAY(ZKL_ECANCELED));
    take_back(p, wait.cancel, rc == ZKL_ECANCELED);
    if (rc == 0 && (grant->token == 0 || grant->hold_count != 1))
        odd(p, "a grant that is none");
    return rc;
}

static int try_all(struct player *p, struct zkl_mutex *mutex)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.flags = ZKL_WAIT_TRY | (chance(&p->chance, 50) ? ZKL_WAIT_SYNC : 0);
    return (int)CALL(p, zkl_mutex_acquire(mutex, &wait, NULL), MAY_TRY);
}

static int want(struct player *p, struct zkl_mutex *mutex, int variant)
{
    struct zkl_grant grant = ZKL_GRANT_INIT;

    /* Wait without a deadline only if this player has no operation that it must end itself
     * meanwhile. */
    switch (variant == 0 && !fibers_idle(p) ? 2 : variant) {
    case 0:
        return (int)CALL(p, zkl_mutex_lock(mutex), MAY_0 | MAY(ZKL_ECLOSED));
    case 1:
        return (int)CALL(p, zkl_mutex_trylock(mutex), MAY_TRY);
    case 2:
        return (int)CALL(p, zkl_mutex_lock_for(mutex, soon_ms(p)), MAY_WAIT);
    case 3:
        return want_until(p, mutex);
    case 4:
        return try_all(p, mutex);
    default:
        return want_all(p, mutex, &grant);
    }
}

/* Once more, which no other contender can prevent. */
static void enter_again(struct player *p, struct seat *seat)
{
    if (seat->at == AT_ONE) /* it would wait for itself */
        return;
    int rc =
        (int)CALL(p, zkl_mutex_lock_for(seat->mutex, 0), MAY_0 | MAY(ZKL_ELOST) | MAY(ZKL_ECLOSED));
    if (rc == 0)
        CALL(p, zkl_mutex_unlock(seat->mutex), MAY_0 | MAY(ZKL_EDOUBT) | MAY(ZKL_ELOST));
}

static void hold(struct player *p, struct station *s, struct seat *seat)
{
    world->granted++;
    size_t visit = visit_enter(seat->at, seat->reads, zkl_mutex_token(seat->mutex));
    linger(p);
    if (sometimes(p, 30))
        ask_about(p, s, seat->mutex);
    if (sometimes(p, 30))
        enter_again(p, seat);
    if (seat->at == AT_BROKEN && chance(&p->chance, 50))
        net_nap_ms(chance_between(&p->chance, 5, 50));
    visit_leave(visit);
    int rc = (int)CALL(p, zkl_mutex_unlock(seat->mutex), MAY_UNLOCK);
    visit_unlocked(visit, rc, station_trust(s, seat));
}

/* Through another handle of the path. */
static void be_refused(struct player *p, struct station *s, const struct seat *seat)
{
    if (seat == &s->seats[0])
        CALL(p, zkl_mutex_lock(s->seats[1].mutex), MAY(ZKL_EDEADLK) | MAY(ZKL_ECLOSED));
}

void act_mutex(struct player *p, struct station *s, int variant)
{
    struct seat *seat = p->patient ? &s->seats[variant % SEATS] : any_seat(p, s);

    if (want(p, seat->mutex, variant % 6) != 0)
        return;
    be_refused(p, s, seat);
    hold(p, s, seat);
}

void act_owner(struct player *p, struct station *s, int variant)
{
    struct zkl_owner *owner = NULL;

    CALL(p, zkl_owner_new(&owner), MAY_0);
    struct zkl_owner *before = zkl_owner_use(owner);
    act_mutex(p, s, variant);
    CALL(p, zkl_owner_free(owner), MAY(ZKL_EBUSY));
    if (zkl_owner_use(before) != owner)
        odd(p, "another owner was used");
    CALL(p, zkl_owner_free(owner), MAY_0);
}

/* --- halves ----------------------------------------------------------------------------------- */

static void downgrade(struct player *p, struct station *s)
{
    struct zkl_mutex *reads = zkl_rwlock_reader(s->rwlock), *writes = zkl_rwlock_writer(s->rwlock);
    enum trust trust = station_trust(s, &s->seats[12]);

    if (CALL(p, zkl_mutex_lock_for(writes, soon_ms(p)), MAY_WAIT) != 0)
        return;
    size_t written = visit_enter(AT_HALVES, false, zkl_mutex_token(writes));
    linger(p);
    int rc = (int)CALL(p, zkl_mutex_lock_for(reads, soon_ms(p)), MAY_WAIT | MAY(ZKL_ELOST));
    visit_leave(written);
    size_t read = rc == 0 ? visit_enter(AT_HALVES, true, zkl_mutex_token(reads)) : NO_VISIT;
    visit_unlocked(written, (int)CALL(p, zkl_mutex_unlock(writes), MAY_UNLOCK), trust);
    if (rc != 0)
        return;
    linger(p);
    CALL(p, zkl_mutex_lock(writes), MAY(ZKL_EDEADLK) | MAY(ZKL_ECLOSED));
    visit_leave(read);
    visit_unlocked(read, (int)CALL(p, zkl_mutex_unlock(reads), MAY_UNLOCK), trust);
}

void act_halves(struct player *p, struct station *s, int variant)
{
    struct seat *seat = &s->seats[11 + variant % 2];

    if (sometimes(p, 5))
        CALL(p, zkl_rwlock_retain_readers(s->rwlock, chance_between(&p->chance, 0, 200)),
             MAY_0 | MAY(ZKL_ECLOSED));
    if (variant >= 2)
        downgrade(p, s);
    else if (want(p, seat->mutex, chance_between(&p->chance, 0, 5)) == 0)
        hold(p, s, seat);
}

/* --- permits ---------------------------------------------------------------------------------- */

static void give_back(struct player *p, struct station *s, struct zkl_permit *permit, size_t visit)
{
    visit_leave(visit);
    visit_unlocked(visit, (int)CALL(p, zkl_permit_release(permit), MAY_UNLOCK),
                   station_trust(s, &s->seats[10]));
}

static void change_number(struct player *p, struct station *s)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.deadline_ns = soon_ns(p);
    CALL(p, zkl_semaphore_set_permits(s->many, chance_between(&p->chance, 2, 3), &wait), MAY_ASK);
    CALL(p, zkl_semaphore_permits(s->many), MAY_0 | MAY_COUNT);
    CALL(p, zkl_semaphore_waiting(s->many, NULL), MAY_0 | MAY_COUNT);
}

static void permit_free(struct player *p, struct zkl_semaphore *semaphore)
{
    struct zkl_lock_metrics m = ZKL_LOCK_METRICS_INIT;

    CALL(p, zkl_semaphore_free(semaphore), MAY(ZKL_EBUSY));
    CALL(p, zkl_semaphore_get_metrics(semaphore, &m), MAY_0 | MAY(ZKL_EINVAL));
}

void act_permits(struct player *p, struct station *s, int variant)
{
    enum place at = variant % 2 ? AT_MANY : AT_FOUR;
    struct zkl_semaphore *semaphore = at == AT_MANY ? s->many : s->four;
    struct zkl_wait wait = some_wait(p);
    struct zkl_permit *permits[4];
    size_t visits[4];
    int count = chance_between(&p->chance, 1, at == AT_MANY ? 2 : 4);

    if (variant >= 4) {
        change_number(p, s);
        return;
    }
    wait.flags = !p->patient && chance(&p->chance, 20) ? ZKL_WAIT_TRY : 0;
    if (CALL(p, zkl_semaphore_acquire(semaphore, count, &wait, permits),
             MAY_WAIT | MAY_TRY | (at == AT_MANY ? MAY(ZKL_EMISMATCH) : 0)) != 0)
        return;
    for (int i = 0; i < count; i++)
        visits[i] = visit_enter(at, false, zkl_permit_token(permits[i]));
    ask_permit(p, permits[0]);
    permit_free(p, semaphore);
    linger(p);
    for (int i = 0; i < count; i++)
        give_back(p, s, permits[i], visits[i]);
}

/* --- several ---------------------------------------------------------------------------------- */

static int want_multi(struct player *p, struct zkl_multi *multi, int variant)
{
    struct zkl_wait wait;
    struct zkl_grant grants[4] = {ZKL_GRANT_INIT, ZKL_GRANT_INIT, ZKL_GRANT_INIT, ZKL_GRANT_INIT};
    struct zkl_cancel *cancel = NULL;
    int rc;

    switch (variant == 0 && !fibers_idle(p) ? 2 : variant) {
    case 0:
        return (int)CALL(p, zkl_multi_lock(multi), MAY_0 | MAY(ZKL_ECLOSED));
    case 1:
        return (int)CALL(p, zkl_multi_trylock(multi), MAY_TRY);
    case 2:
        return (int)CALL(p, zkl_multi_lock_for(multi, soon_ms(p)), MAY_WAIT);
    case 3:
        cancel = put_out(p);
        rc = (int)CALL(p, zkl_multi_lock_until(multi, soon_ns(p), cancel),
                       MAY_WAIT | MAY(ZKL_ECANCELED));
        take_back(p, cancel, rc == ZKL_ECANCELED);
        return rc;
    default:
        wait = some_wait(p);
        return (int)CALL(p, zkl_multi_acquire(multi, &wait, grants), MAY_WAIT);
    }
}

static void ask_multi(struct player *p, struct zkl_multi *multi)
{
    struct zkl_guard guards[8];
    struct zoo_op ops[8];
    char node[700];

    CALL(p, zkl_multi_still_held(multi, 1), MAY_0 | MAY_COUNT);
    CALL(p, zkl_multi_check(multi, 1), MAY_CHECK);
    CALL(p, zkl_multi_window_ms(multi), MAY_0 | MAY_COUNT);
    CALL(p, zkl_multi_hold_state(multi, NULL), MAY_0 | MAY_COUNT);
    CALL(p, zkl_multi_node_path(multi, 0, node, sizeof node), MAY_COUNT | MAY(ZKL_ENOTOWNER));
    CALL(p, zkl_guard_multi_paths(multi, 1, NULL, guards, 8), MAY_COUNT | MAY(ZKL_ELOST));
    CALL(p, zkl_guard_multi(guards, 8, multi, 1, NULL, ops), MAY_COUNT | MAY(ZKL_ELOST));
    CALL(p, zkl_multi_free(multi), MAY(ZKL_EBUSY));
}

void act_multi(struct player *p, struct station *s, int variant)
{
    int which = variant / 5 % MULTIS;
    struct zkl_multi *multi = s->multi[which];
    size_t visits[4], n = s->members[which];
    int codes[4] = {0};

    if (want_multi(p, multi, variant % 5) != 0)
        return;
    world->granted++;
    for (size_t i = 0; i < n; i++)
        visits[i] = visit_enter(s->member[which][i].at, s->member[which][i].reads,
                                zkl_multi_token(multi, i));
    linger(p);
    ask_multi(p, multi);
    for (size_t i = 0; i < n; i++)
        visit_leave(visits[i]);
    CALL(p, zkl_multi_unlock(multi, codes), MAY_UNLOCK);
    for (size_t i = 0; i < n; i++) {
        visit_unlocked(visits[i], codes[i], station_trust(s, &s->member[which][i]));
    }
}

/* --- clients ---------------------------------------------------------------------------------- */

void act_close(struct player *p, struct station *s, int variant)
{
    station_close(p, s, variant);
}

void act_strike(struct player *p, struct station *s, int variant)
{
    (void)variant;
    if (s->kind == STRUCK)
        station_strike(p, s);
}

/* One of the player's own, by the server's name; variant 1: through the proxy, with a bound. */
void act_client(struct player *p, struct station *s, int variant)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_client *client = NULL;
    struct zkl_mutex *mutex = NULL;
    char named[64], why[300] = "";

    (void)s;
    snprintf(named, sizeof named, "localhost:%d", world->port);
    options.servers = variant == 0 ? named : world->proxied;
    options.connect_timeout_ms = variant == 0 ? 0 : (int)soon_ms(p) + 1;
    options.errbuf = why;
    options.errbuf_size = sizeof why;
    if (CALL(p, zkl_client_open(&client, &options), MAY_0 | MAY(ZKL_EDISCONNECTED)) != 0)
        return;
    CALL(p, zkl_mutex_new(&mutex, client, place_path[AT_PLAIN], NULL), MAY_0);
    int rc = (int)CALL(p, zkl_mutex_lock_for(mutex, soon_ms(p)), MAY_WAIT);
    if (rc == 0 && chance(&p->chance, 50)) {
        CALL(p, zkl_client_close(client, soon_ms(p)), MAY_0 | MAY(ZKL_ETIMEDOUT));
        CALL(p, zkl_mutex_unlock(mutex), MAY(ZKL_ELOST));
    } else if (rc == 0) {
        CALL(p, zkl_mutex_unlock(mutex), MAY_UNLOCK);
    }
    bool before = chance(&p->chance, 50);
    if (before)
        CALL(p, zkl_mutex_free(mutex), MAY_0);
    CALL(p, zkl_client_free(client), MAY_0);
    if (!before)
        CALL(p, zkl_mutex_free(mutex), MAY_0);
}
