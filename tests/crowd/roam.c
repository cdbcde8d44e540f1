/* SPDX-License-Identifier: Apache-2.0 */
#include "roam.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chance.h"
#include "peer.h"

#define ROAMERS_MAX 8
#define UNITS_MAX (2 * ROAM_PATHS + 2)
#define CLOSE_MS 30000
#define MS INT64_C(1000000)
/* Visits of a worker. */
#define GUEST_EACH 20
#define PERMITS_EACH 7

enum access { OUTSIDE, READING, WRITING };
enum patience { FOREVER, DEADLINE, CANCEL, TRY, PATIENCES };

/* One half of one path. */
struct place {
    int path;
    enum access access;
};

/* Places in a random order, each path at most once. */
struct set {
    int count;
    struct place place[ROAM_PATHS];
};

/* A client's handles. Of a mutex READING is NULL. */
struct home {
    struct zkl_client *client;
    struct handle *half[ROAM_PATHS][WRITING + 1], *permits[ROAM_PERMITS];
};

struct roamer {
    struct worker *w; /* NULL: nobody's */
    struct home home; /* of its process, or its own */
    uint64_t chance;
    long visits, tally[TALLIES];
    int holds[ROAM_PATHS][WRITING + 1]; /* how often it has each half, and what it got */
    struct held held[ROAM_PATHS][WRITING + 1];
    char odd[600]; /* the first thing that should not have happened */
    /* Under mu, for who asks and who cancels. */
    int64_t call_since_ns;
    char doing[200];
    struct zkl_cancel *cancel;
};

/* What was acquired by one call and is given back by one: a multi-lock, or one place. */
struct unit {
    struct handle *handle;
    bool multi;
    struct place place;
};

/* What a worker holds at a time. */
struct visit {
    struct set set; /* of the multi-lock */
    int count;
    struct unit units[UNITS_MAX];
};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct roamer roamers[ROAMERS_MAX];

static void nap_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * MS}, NULL);
}

/* --- one call --------------------------------------------------------------------------------- */

static struct handle *handle_at(const struct roamer *r, struct place place)
{
    return r->home.half[place.path][place.access];
}

static void odd(struct roamer *r, const char *what, int rc)
{
    if (r->odd[0] == '\0')
        snprintf(r->odd, sizeof r->odd, "%s: %s: %s: %.200s", r->doing, what, zkl_strerror(rc),
                 zkl_error_detail());
}

/* For who asks: the call, what it is about, and how it should end. */
static void begin(struct roamer *r, const char *call, const struct set *set, const char *end)
{
    pthread_mutex_lock(&mu);
    size_t size = sizeof r->doing, n = (size_t)snprintf(r->doing, size, "%s", call);
    for (int i = 0; i < set->count && n < size; i++)
        n +=
            (size_t)snprintf(r->doing + n, size - n, " %s%s", handle_at(r, set->place[i])->paths[0],
                             set->place[i].access == READING ? ":read" : "");
    if (n < size)
        snprintf(r->doing + n, size - n, "%s", end);
    r->call_since_ns = zkl_now_ns();
    pthread_mutex_unlock(&mu);
}

static void offer(struct roamer *r, struct zkl_cancel *cancel, int64_t call_since_ns)
{
    pthread_mutex_lock(&mu);
    r->cancel = cancel;
    r->call_since_ns = call_since_ns;
    pthread_mutex_unlock(&mu);
}

static void end(struct roamer *r, int rc, int expected)
{
    offer(r, NULL, 0);
    if (rc != expected)
        odd(r, "not as expected", rc);
}

/* The same for acquiring: makes a wait of that patience. */
static struct zkl_wait begin_to_wait(struct roamer *r, const char *call, const struct set *set,
                                     enum patience patience)
{
    static const char *const ends[PATIENCES] = {", no deadline", ", a deadline",
                                                ", a cancel object", ", a try"};
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_cancel *cancel = NULL;

    if (patience == DEADLINE)
        wait.deadline_ns = zkl_now_ns() + chance_between(&r->chance, 0, 60) * MS;
    if (patience == TRY)
        wait.flags = ZKL_WAIT_TRY;
    for (int i = 0; i < set->count; i++)
        r->tally[WANTED] += r->holds[set->place[i].path][set->place[i].access] == 0;
    begin(r, call, set, ends[patience]);
    if (patience == CANCEL && zkl_cancel_new(&cancel) == 0)
        offer(r, cancel, r->call_since_ns);
    wait.cancel = cancel;
    return wait;
}

static bool is_expected(const struct zkl_wait *wait, int rc)
{
    return rc == 0 || (rc == ZKL_ETIMEDOUT && wait->deadline_ns != ZKL_NO_DEADLINE) ||
           (rc == ZKL_ECANCELED && zkl_cancel_is_set(wait->cancel)) ||
           ((rc == ZKL_EBUSY || rc == ZKL_EUNPROVED) && (wait->flags & ZKL_WAIT_TRY));
}

/* Counts the result, and says what is odd if such a wait can't have it. True if granted. */
static bool end_of_wait(struct roamer *r, const struct zkl_wait *wait, int rc, enum tally granted)
{
    bool forever = wait->deadline_ns == ZKL_NO_DEADLINE && !wait->cancel && !wait->flags;
    long ms = (long)((zkl_now_ns() - r->call_since_ns) / MS);

    if (forever && ms > r->tally[LONGEST_MS])
        r->tally[LONGEST_MS] = ms;
    end(r, rc, is_expected(wait, rc) ? rc : 0);
    zkl_cancel_free(wait->cancel);
    r->tally[rc == 0               ? granted
             : rc == ZKL_ETIMEDOUT ? TIMED_OUT
             : rc == ZKL_ECANCELED ? CANCELED
                                   : BUSY]++;
    return rc == 0;
}

/* --- what is held ----------------------------------------------------------------------------- */

static enum access access_of(const struct roamer *r, int path)
{
    if (r->holds[path][WRITING] > 0)
        return WRITING;
    return r->holds[path][READING] > 0 ? READING : OUTSIDE;
}

/* The journal hears of it when it has been granted, and before it is given back; of a writer that becomes a reader,
 * that it reads first. */
static void change(struct roamer *r, struct place place, int by)
{
    enum access from = access_of(r, place.path);

    r->holds[place.path][place.access] += by;
    enum access to = access_of(r, place.path);
    if (from == to)
        return;
    r->tally[DOWNGRADED] += from == WRITING && to == READING;
    if (to != OUTSIDE)
        note(r->w, '+', r->home.half[place.path][to], &r->held[place.path][to]);
    if (from != OUTSIDE)
        note(r->w, '-', r->home.half[place.path][from], &r->held[place.path][from]);
}

static void came_in(struct roamer *r, struct place place, const struct zkl_grant *grant)
{
    int holds = r->holds[place.path][place.access];

    if (grant->token == 0 || grant->token != zkl_mutex_token(handle_at(r, place)->mutex) ||
        grant->hold_count != holds + 1)
        odd(r, "wrong grant", 0);
    r->held[place.path][place.access].grants[0] = *grant;
    change(r, place, 1);
}

/* A call that acquires. */
static bool take(struct roamer *r, struct visit *v, struct unit unit, const struct set *set,
                 enum patience patience)
{
    bool multi = set == &v->set;
    struct zkl_wait wait = begin_to_wait(r, multi ? "multi" : "mutex", set, patience);
    struct held held;

    if (!end_of_wait(r, &wait, lock(r->w, unit.handle, &wait, &held), multi ? MULTI : SINGLE))
        return false;
    r->tally[UNPROVED] += handle_window_ms(unit.handle, &held) <= 0;
    r->tally[MEMBERS] += multi ? set->count : 0;
    v->units[v->count++] = unit;
    for (int i = 0; i < set->count; i++) {
        r->tally[AGAIN] += multi && r->holds[set->place[i].path][set->place[i].access] > 0;
        came_in(r, set->place[i], &held.grants[i]);
    }
    return true;
}

static void give_back(struct roamer *r, const struct visit *v, const struct unit *unit)
{
    const struct set one = {1, {unit->place}}, *set = unit->multi ? &v->set : &one;
    struct held held;

    for (int i = set->count; i-- > 0;)
        change(r, set->place[i], -1);
    begin(r, "unlock of", set, "");
    end(r, unlock(r->w, unit->handle, &held), 0);
}

/* In any order: a write lock may be released before the read lock under it, a single lock before
 * or after the multi-lock that entered it again. */
static void leave(struct roamer *r, struct visit *v)
{
    while (v->count > 0) {
        int at = chance_between(&r->chance, 0, v->count - 1);
        struct unit unit = v->units[at];
        v->units[at] = v->units[--v->count];
        give_back(r, v, &unit);
    }
}

/* --- locking ---------------------------------------------------------------------------------- */

static bool lock_one(struct roamer *r, struct visit *v, struct place place, enum patience patience)
{
    struct set one = {1, {place}};

    return take(r, v, (struct unit){.handle = handle_at(r, place), .place = place}, &one, patience);
}

static bool lock_multi(struct roamer *r, struct visit *v, struct handle *multi,
                       enum patience patience)
{
    return take(r, v, (struct unit){.handle = multi, .multi = true}, &v->set, patience);
}

/* A reader that asks for the write lock: its call fails immediately, whoever else is there. */
static bool upgrades(const struct roamer *r, const struct set *set)
{
    for (int i = 0; i < set->count; i++) {
        const int *holds = r->holds[set->place[i].path];
        if (set->place[i].access == WRITING && holds[WRITING] == 0 && holds[READING] > 0)
            return true;
    }
    return false;
}

static void refused(struct roamer *r, const struct visit *v, struct handle *multi)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct held held;

    begin(r, "upgrading multi", &v->set, "");
    end(r, lock(r->w, multi, &wait, &held), ZKL_EDEADLK);
    r->tally[REFUSED]++;
}

static int make_multi(struct roamer *r, const struct set *set, struct handle *multi)
{
    struct handle *members[ROAM_PATHS];

    for (int i = 0; i < set->count; i++)
        members[i] = handle_at(r, set->place[i]);
    begin(r, "new multi", set, "");
    int rc = handle_of(multi, r->home.client, members, (size_t)set->count);
    end(r, rc, 0);
    return rc;
}

/* --- what comes next, by chance ---------------------------------------------------------------- */

static struct place draw_half(struct roamer *r, int path)
{
    bool reads = path >= ROAM_MUTEXES && chance(&r->chance, 50);

    return (struct place){path, reads ? READING : WRITING};
}

static struct set draw_set(struct roamer *r)
{
    struct set set = {.count = chance_between(&r->chance, 1, ROAM_PATHS)};
    int paths[ROAM_PATHS];

    for (int i = 0; i < ROAM_PATHS; i++)
        paths[i] = i;
    for (int i = 0; i < set.count; i++) {
        int at = chance_between(&r->chance, i, ROAM_PATHS - 1), path = paths[at];
        paths[at] = paths[i];
        set.place[i] = draw_half(r, path);
    }
    return set;
}

/* By the paths. */
static int compare_places(const void *one, const void *other)
{
    return ((const struct place *)one)->path - ((const struct place *)other)->path;
}

static void sort_set(struct set *set)
{
    qsort(set->place, (size_t)set->count, sizeof set->place[0], compare_places);
}

/* Half of the waits have no end but the grant: a deadlock among those is for ever. */
static enum patience draw_patience(struct roamer *r)
{
    static const enum patience often[] = {FOREVER,  FOREVER,  FOREVER, FOREVER, FOREVER,
                                          DEADLINE, DEADLINE, CANCEL,  CANCEL,  TRY};

    return often[chance_between(&r->chance, 0, 9)];
}

static void work(struct roamer *r)
{
    if (chance(&r->chance, 50))
        return;
    sched_yield();
    if (chance(&r->chance, 20))
        nap_ms(chance_between(&r->chance, 1, 3));
}

/* --- visits ----------------------------------------------------------------------------------- */

/* Some members singly, before. The first ones in order, so that the multi-lock waits only for what
 * comes after them; or any, if it does not wait for ever. The other half of a read-write lock now
 * and then. */
static bool lock_some_before(struct roamer *r, struct visit *v, bool any)
{
    struct set sorted = v->set;

    sort_set(&sorted);
    int first = any ? chance_between(&r->chance, 0, sorted.count - 1) : 0;
    int last = chance_between(&r->chance, first, sorted.count - 1);
    for (int i = first; i <= last; i++) {
        struct place place = sorted.place[i];
        if (chance(&r->chance, 30))
            place = draw_half(r, place.path);
        if (!lock_one(r, v, place, draw_patience(r)))
            return false;
    }
    return true;
}

static void enter_again(struct roamer *r, struct visit *v, struct handle *multi)
{
    if (chance(&r->chance, 10))
        lock_multi(r, v, multi, draw_patience(r));
    if (chance(&r->chance, 20))
        lock_one(r, v, v->set.place[chance_between(&r->chance, 0, v->set.count - 1)],
                 draw_patience(r));
}

/* Modes: F25, F26. */
static void visit_multi(struct roamer *r, struct visit *v, struct handle *multi)
{
    bool before = chance(&r->chance, 30), any = chance(&r->chance, 30);
    enum patience patience = draw_patience(r);

    if (before && any && (patience == FOREVER || patience == CANCEL))
        patience = chance(&r->chance, 50) ? DEADLINE : TRY;
    if (before && !lock_some_before(r, v, any))
        return;
    if (upgrades(r, &v->set)) {
        refused(r, v, multi);
    } else if (lock_multi(r, v, multi, patience)) {
        enter_again(r, v, multi);
        work(r);
    }
}

static void one_multi(struct roamer *r)
{
    struct visit v = {.set = draw_set(r)};
    struct handle multi;

    if (make_multi(r, &v.set, &multi) != 0)
        return;
    visit_multi(r, &v, &multi);
    leave(r, &v);
    begin(r, "free multi", &v.set, "");
    end(r, multi.kind->free(&multi), 0);
}

/* One by one, in the order of the paths; of a read-write lock the other half too, now and then. */
static void one_by_one(struct roamer *r)
{
    struct visit v = {.set = draw_set(r)};
    bool held_all = true;

    sort_set(&v.set);
    for (int i = 0; held_all && i < v.set.count; i++) {
        struct place place = v.set.place[i], below = {place.path, READING};
        held_all = lock_one(r, &v, place, draw_patience(r));
        if (held_all && place.path >= ROAM_MUTEXES && chance(&r->chance, 30))
            held_all = lock_one(r, &v, below, draw_patience(r));
    }
    if (held_all)
        work(r);
    leave(r, &v);
}

/* What waits for permits watches the children of a path, which stay when others are done. */
static void some_permits(struct roamer *r)
{
    struct handle *h = r->home.permits[chance_between(&r->chance, 0, ROAM_PERMITS - 1)];
    const struct set none = {0};
    struct zkl_wait wait = begin_to_wait(r, "permits", &none, draw_patience(r));
    struct held held;

    if (!end_of_wait(r, &wait, lock(r->w, h, &wait, &held), PERMITS))
        return;
    note(r->w, '+', h, &held);
    work(r);
    note(r->w, '-', h, &held);
    begin(r, "release of permits", &none, "");
    end(r, unlock(r->w, h, &held), 0);
}

/* A hold with a callback has not been lost: no session ends here. */
static void check_losses(struct roamer *r)
{
    for (int i = 0; i < ROAM_PATHS * (WRITING + 1); i++) {
        const struct handle *h = r->home.half[i / (WRITING + 1)][i % (WRITING + 1)];
        if (h != NULL && h->lost > 0)
            odd(r, "a hold is lost", 0);
    }
}

/* --- a client of its own ------------------------------------------------------------------------ */

static bool went_well(struct roamer *r, const char *what, int rc)
{
    if (rc != 0)
        odd(r, what, rc);
    return rc == 0;
}

/* The locks of this name: the first ones are mutexes. */
static bool find_home(struct home *home, struct zkl_client *client, const char *name)
{
    bool all = true;
    char whole[40];

    *home = (struct home){.client = client};
    for (int i = 0; i < ROAM_PATHS; i++) {
        for (int k = i < ROAM_MUTEXES ? WRITING : READING; k <= WRITING; k++) {
            snprintf(whole, sizeof whole, "%s%d%s", name, i,
                     i < ROAM_MUTEXES ? ""
                     : k == READING   ? ".read"
                                      : ".write");
            home->half[i][k] = handle_find(whole);
            all = all && home->half[i][k] != NULL;
        }
    }
    for (int i = 0; i < ROAM_PERMITS; i++) {
        snprintf(whole, sizeof whole, "%sp%d", name, i + 1);
        home->permits[i] = handle_find(whole);
    }
    return all;
}

/* What is left of it is what was made. */
static void free_guest(struct roamer *r, struct zkl_client *client, const char *name, int made)
{
    char each[40];

    for (int i = 0; i < made; i++) {
        snprintf(each, sizeof each, "%s%d", name, i);
        went_well(r, "drop", handle_drop(each));
    }
    went_well(r, "close", zkl_client_close(client, CLOSE_MS));
    went_well(r, "free", zkl_client_free(client));
}

/* One by one, with a client of its own: connections, threads and sessions come and go. Nobody cancels. */
static void one_as_guest(struct roamer *r)
{
    struct home home = r->home;
    struct zkl_client *client;
    char name[12], each[40];
    int made = 0;

    if (!went_well(r, "open", peer_open(&client)))
        return;
    snprintf(name, sizeof name, "G%s.", r->w->name);
    for (bool well = true; well && made < ROAM_PATHS; made += well) {
        const struct handle *like = home.half[made][made < ROAM_MUTEXES ? WRITING : READING];
        const char *const options[] = {like->has_callback ? "revocable=callback" : NULL, NULL};
        snprintf(each, sizeof each, "%s%d", name, made);
        well = went_well(r, "new",
                         handle_new(client, each, like->kind->name, like->paths[0], options));
    }
    if (made == ROAM_PATHS && find_home(&r->home, client, name))
        one_by_one(r);
    check_losses(r);
    r->home = home;
    free_guest(r, client, name, made);
    r->tally[GUESTS]++;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* Sets the cancel object of one of the workers, if its call has one, now and then. */
static void *cancel_main(void *arg)
{
    uint64_t state = 1000;

    for (;;) {
        nap_ms(chance_between(&state, 1, 12));
        pthread_mutex_lock(&mu);
        zkl_cancel_set(roamers[chance_between(&state, 0, ROAMERS_MAX - 1)].cancel);
        pthread_mutex_unlock(&mu);
    }
    return arg;
}

static struct roamer *roamer_of(struct worker *w)
{
    struct roamer *r = roamers;
    pthread_t canceller;

    pthread_mutex_lock(&mu);
    if (r->w == NULL && pthread_create(&canceller, NULL, cancel_main, NULL) != 0)
        abort();
    while (r->w != NULL && r->w != w)
        r++;
    r->w = w;
    pthread_mutex_unlock(&mu);
    return r;
}

static void visit(struct roamer *r, bool multi)
{
    long number = r->visits++;

    if (number % PERMITS_EACH == 1)
        some_permits(r);
    else if (multi)
        one_multi(r);
    else if (number % GUEST_EACH == 0)
        one_as_guest(r);
    else
        one_by_one(r);
    check_losses(r);
}

/* LOCKS multi|singly VISITS MS SEED: for MS at least, and VISITS at least. */
void roam(struct worker *w, char **words)
{
    struct roamer *r = roamer_of(w);
    long visits = words[4] != NULL ? atol(words[2]) : 0;
    char text[400] = "";
    size_t n = 0;

    if (visits == 0 || !find_home(&r->home, peer_client(), words[0])) {
        answer(w, "error", "roam LOCKS multi|singly VISITS MS SEED, of locks that are there");
        return;
    }
    int64_t end_ns = zkl_now_ns() + atol(words[3]) * MS;
    r->chance = strtoull(words[4], NULL, 10) + w->random;
    memset(r->tally, 0, sizeof r->tally);
    for (long i = 0; (i < visits || zkl_now_ns() < end_ns) && r->odd[0] == '\0'; i++)
        visit(r, strcmp(words[1], "multi") == 0);
    for (int i = 0; i < TALLIES; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%ld ", r->tally[i]);
    answer(w, r->odd[0] != '\0' ? "error" : "ok", r->odd[0] != '\0' ? r->odd : text);
}

/* MS: who has been in one call for longer. */
void roam_tell_calls(const struct worker *w, char **words)
{
    int64_t now = zkl_now_ns(), bound_ns = atol(words[0]) * MS;
    char text[1500] = "";
    size_t n = 0;

    pthread_mutex_lock(&mu);
    for (const struct roamer *r = roamers; r < roamers + ROAMERS_MAX; r++) {
        int64_t ns = r->call_since_ns != 0 ? now - r->call_since_ns : 0;
        if (ns > bound_ns && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s is for %.1f s in %s; ", r->w->name,
                                  (double)ns / 1e9, r->doing);
    }
    pthread_mutex_unlock(&mu);
    answer(w, n > 0 ? "error" : "ok", text);
}
