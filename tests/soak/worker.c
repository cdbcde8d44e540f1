/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <sched.h>
#include <unistd.h>

#include "call_results.h"
#include "tool/net.h"

#define UNITS_MAX (2 * SOAK_PATHS + 2)
/* Visits of a thread. */
#define GUEST_EACH 20
#define PERMITS_EACH 7

/* What was acquired by one call and is given back by one: a multi-lock, or (NULL) one place. */
struct unit {
    struct zkl_multi *multi;
    struct place place;
};

/* What a thread holds at a time. */
struct visit {
    struct set set; /* of the multi-lock */
    int count;
    struct unit units[UNITS_MAX];
};

static bool goes_on(const struct worker *w)
{
    return !w->shared->stop;
}

static struct zkl_mutex *handle(const struct worker *w, struct place place)
{
    const struct process *p = w->process;

    if (place.path < SOAK_MUTEXES)
        return p->mutexes[place.path];
    struct zkl_rwlock *rwlock = p->rwlocks[place.path - SOAK_MUTEXES];
    return place.access == READING ? zkl_rwlock_reader(rwlock) : zkl_rwlock_writer(rwlock);
}

static void work(struct worker *w)
{
    if (chance(&w->chance, 50))
        return;
    sched_yield();
    if (chance(&w->chance, 20))
        net_nap_ms(chance_between(&w->chance, 1, 3));
}

/* --- what is held ----------------------------------------------------------------------------- */

static enum access access_of(const struct worker *w, int path)
{
    if (w->holds[path][WRITING] > 0)
        return WRITING;
    return w->holds[path][READING] > 0 ? READING : OUTSIDE;
}

/* The witness hears of it when it has been granted, and before it is given back. */
static void move(struct worker *w, int path, enum access to, uint64_t token)
{
    enum access from = (enum access)w->seat->access[path];

    if (from == to)
        return;
    if (from == WRITING && to == READING)
        count_in(w, DOWNGRADED);
    witness_move(w->shared, w->number, path, to, token);
}

static void look(struct worker *w, struct place place)
{
    int64_t now = net_boot_ns(), window = zkl_mutex_window_ms(handle(w, place));

    if (window > 0)
        note_proved(w, place, now + window * INT64_C(1000000));
    else
        count_in(w, UNPROVED);
}

static void held(struct worker *w, struct place place)
{
    struct zkl_mutex *mutex = handle(w, place);

    w->holds[place.path][place.access]++;
    look(w, place);
    if (zkl_mutex_token(mutex) == 0)
        call_odd(w, "no token", 0);
    move(w, place.path, access_of(w, place.path), zkl_mutex_token(mutex));
}

static void gives_back(struct worker *w, struct place place)
{
    w->holds[place.path][place.access]--;
    move(w, place.path, access_of(w, place.path), 0);
}

static void give_back(struct worker *w, const struct visit *v, const struct unit *unit)
{
    const struct set one = {1, {unit->place}}, *set = unit->multi ? &v->set : &one;

    for (int i = set->count; i-- > 0;)
        gives_back(w, set->place[i]);
    call_say(w, "unlock of", set, "");
    int codes[SOAK_PATHS];
    note_begin(w, "release", set);
    int rc = unit->multi ? zkl_multi_unlock(unit->multi, codes)
                         : (codes[0] = zkl_mutex_unlock(handle(w, unit->place)));
    calls_write_codes(w->number, codes, set->count);
    call_check(w, rc, 0);
}

/* In any order: a write lock may be released before the read lock under it, a single lock before
 * or after the multi-lock that entered it again. */
static void leave(struct worker *w, struct visit *v)
{
    while (v->count > 0) {
        int at = chance_between(&w->chance, 0, v->count - 1);
        struct unit unit = v->units[at];
        v->units[at] = v->units[--v->count];
        give_back(w, v, &unit);
    }
}

/* --- locking ---------------------------------------------------------------------------------- */

static bool lock_one(struct worker *w, struct visit *v, struct place place, enum patience patience)
{
    struct set one = {1, {place}};
    struct zkl_grant grant = ZKL_GRANT_INIT;
    struct zkl_wait wait = call_begin(w, "mutex", &one, patience);

    note_begin(w, patience == TRY ? "acquire try" : "acquire", &one);
    int rc = zkl_mutex_acquire(handle(w, place), &wait, &grant);
    calls_write_grants(w->number, rc, &grant, 1);
    if (!call_end(w, &wait, rc, SINGLE))
        return false;
    v->units[v->count++] = (struct unit){.place = place};
    held(w, place);
    return true;
}

/* A reader that asks for the write lock: its call fails immediately, whoever else is there. */
static bool upgrades(const struct worker *w, const struct set *set)
{
    for (int i = 0; i < set->count; i++) {
        const int *holds = w->holds[set->place[i].path];
        if (set->place[i].access == WRITING && holds[WRITING] == 0 && holds[READING] > 0)
            return true;
    }
    return false;
}

static void check_grants(struct worker *w, const struct visit *v, const struct zkl_grant *grants)
{
    for (int i = 0; i < v->set.count; i++) {
        struct place place = v->set.place[i];
        int holds = w->holds[place.path][place.access];
        if (grants[i].token != zkl_mutex_token(handle(w, place)) ||
            grants[i].hold_count != holds + 1)
            call_odd(w, "wrong grants", 0);
        w->seat->tally[AGAIN] += holds > 0;
    }
}

static bool lock_multi(struct worker *w, struct visit *v, struct zkl_multi *multi,
                       enum patience patience)
{
    struct zkl_grant grants[SOAK_PATHS];

    for (int i = 0; i < v->set.count; i++)
        grants[i] = (struct zkl_grant)ZKL_GRANT_INIT;
    struct zkl_wait wait = call_begin(w, "multi", &v->set, patience);
    note_begin(w, patience == TRY ? "acquire try" : "acquire", &v->set);
    int rc = zkl_multi_acquire(multi, &wait, grants);
    calls_write_grants(w->number, rc, grants, v->set.count);
    if (!call_end(w, &wait, rc, MULTI))
        return false;
    check_grants(w, v, grants);
    v->units[v->count++] = (struct unit){.multi = multi};
    for (int i = 0; i < v->set.count; i++)
        held(w, v->set.place[i]);
    w->seat->tally[MEMBERS] += v->set.count;
    return true;
}

static void refused(struct worker *w, const struct visit *v, struct zkl_multi *multi)
{
    call_say(w, "upgrading multi", &v->set, "");
    note_begin(w, "acquire", &v->set);
    int rc = zkl_multi_acquire(multi, NULL, NULL);
    calls_write_grants(w->number, rc, NULL, 0);
    call_check(w, rc, ZKL_EDEADLK);
    count_in(w, REFUSED);
}

static struct zkl_multi *new_multi(struct worker *w, const struct set *set)
{
    struct zkl_member members[SOAK_PATHS];
    struct zkl_multi *multi = NULL;

    for (int i = 0; i < set->count; i++)
        members[i] = zkl_member_mutex(handle(w, set->place[i]));
    call_say(w, "new multi", set, "");
    call_check(w, zkl_multi_new(&multi, w->process->client, members, (size_t)set->count), 0);
    return multi;
}

/* --- visits ----------------------------------------------------------------------------------- */

/* Some members singly, before. The first ones in order, so that the multi-lock waits only for what
 * comes after them; or any, if it does not wait for ever. The other half of a read-write lock now
 * and then. */
static bool lock_some_before(struct worker *w, struct visit *v, bool any)
{
    struct set sorted = v->set;

    sort_set(&sorted);
    int first = any ? chance_between(&w->chance, 0, sorted.count - 1) : 0;
    int last = chance_between(&w->chance, first, sorted.count - 1);
    for (int i = first; i <= last; i++) {
        struct place place = sorted.place[i];
        if (chance(&w->chance, 30))
            place = draw_half(&w->chance, place.path);
        if (!lock_one(w, v, place, draw_patience(&w->chance)))
            return false;
    }
    return true;
}

static void enter_again(struct worker *w, struct visit *v, struct zkl_multi *multi)
{
    if (chance(&w->chance, 10))
        lock_multi(w, v, multi, draw_patience(&w->chance));
    if (chance(&w->chance, 20))
        lock_one(w, v, v->set.place[chance_between(&w->chance, 0, v->set.count - 1)],
                 draw_patience(&w->chance));
}

/* Modes: F25, F26. */
static void visit_multi(struct worker *w, struct visit *v, struct zkl_multi *multi)
{
    bool before = chance(&w->chance, 30), any = chance(&w->chance, 30);
    enum patience patience = draw_patience(&w->chance);

    if (before && any && (patience == FOREVER || patience == CANCEL))
        patience = chance(&w->chance, 50) ? DEADLINE : TRY;
    if (before && !lock_some_before(w, v, any))
        return;
    if (upgrades(w, &v->set)) {
        refused(w, v, multi);
    } else if (lock_multi(w, v, multi, patience)) {
        enter_again(w, v, multi);
        work(w);
    }
}

static void one_multi(struct worker *w)
{
    struct visit v = {.set = draw_set(&w->chance)};
    struct zkl_multi *multi = new_multi(w, &v.set);

    if (!multi)
        return;
    visit_multi(w, &v, multi);
    leave(w, &v);
    call_say(w, "free multi", &v.set, "");
    call_check(w, zkl_multi_free(multi), 0);
}

/* One by one, in the order of the paths; of a read-write lock the other half too, now and then. */
static void one_by_one(struct worker *w)
{
    struct visit v = {.set = draw_set(&w->chance)};
    bool held_all = true;

    sort_set(&v.set);
    for (int i = 0; held_all && i < v.set.count; i++) {
        struct place place = v.set.place[i], below = {place.path, READING};
        held_all = lock_one(w, &v, place, draw_patience(&w->chance));
        if (held_all && place.path >= SOAK_MUTEXES && chance(&w->chance, 30))
            held_all = lock_one(w, &v, below, draw_patience(&w->chance));
    }
    if (held_all)
        work(w);
    leave(w, &v);
}

/* What waits for permits watches the children of a path, which stay when others are done. */
static void some_permits(struct worker *w)
{
    struct zkl_permit *permits[SOAK_PERMITS];
    int count = chance_between(&w->chance, 1, SOAK_PERMITS);
    const struct set none = {0};
    struct zkl_wait wait = call_begin(w, "permits", &none, draw_patience(&w->chance));
    int rc = zkl_semaphore_acquire(w->process->semaphore, count, &wait, permits);

    if (!call_end(w, &wait, rc, PERMITS))
        return;
    witness_permits(w->shared, w->number, count);
    work(w);
    witness_permits(w->shared, w->number, -count);
    for (int i = 0; i < count; i++) {
        call_say(w, "release of a permit", &none, "");
        call_check(w, zkl_permit_release(permits[i]), 0);
    }
}

/* One by one, with a client of its own: connections, threads and sessions come and go. Nobody cancels. */
static void one_as_guest(struct worker *w)
{
    struct process *home = w->process;
    struct process guest = {
        .shared = w->shared, .number = home->number, .mu = PTHREAD_MUTEX_INITIALIZER};

    if (process_join(&guest) != 0)
        return;
    w->process = &guest;
    one_by_one(w);
    w->process = home;
    process_part(&guest);
    count_in(w, GUESTS);
}

/* A thread that does not lock, for the witness's own test. */
static void trespass(struct worker *w)
{
    int path = chance_between(&w->chance, 0, SOAK_PATHS - 1), released = 0;
    const struct set one = {1, {{path, WRITING}}};

    note_begin(w, "acquire", &one);
    calls_write_grants(w->number, 0, &(struct zkl_grant){.hold_count = 1}, 1);
    if (witness_move(w->shared, w->number, path, WRITING, 0))
        witness_move(w->shared, w->number, path, OUTSIDE, 0);
    note_begin(w, "release", &one);
    calls_write_codes(w->number, &released, 1);
    net_nap_ms(1);
}

static bool is_trespasser(const struct worker *w)
{
    int process = w->number / SOAK_THREADS;

    return w->number % SOAK_THREADS == 0 && process >= 1 && process <= w->shared->trespassers;
}

/* While the parent looks. Between two looks each thread has at least one visit. */
static void stand_still(struct worker *w)
{
    int look = w->shared->pause;

    if (look == 0)
        return;
    w->shared->still++;
    while (w->shared->pause == look && goes_on(w))
        net_nap_ms(2);
}

static void visit(struct worker *w, long number)
{
    if (is_trespasser(w))
        trespass(w);
    else if (number % PERMITS_EACH == 1)
        some_permits(w);
    else if (w->process->number < SOAK_PROCESSES - SOAK_SINGLES)
        one_multi(w);
    else if (number % GUEST_EACH == 0)
        one_as_guest(w);
    else
        one_by_one(w);
}

void *worker_main(void *arg)
{
    struct worker *w = arg;

    w->seat->pid = getpid();
    w->seat->tid = gettid();
    for (long number = 0; goes_on(w); number++) {
        visit(w, number);
        if (w->number == SOAK_THREADS)
            leak_some(w->shared);
        stand_still(w);
    }
    return NULL;
}
