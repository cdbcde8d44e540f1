/* SPDX-License-Identifier: Apache-2.0 */
/* Readers in one node that stays, in bad company: crowds of every kind of call, threads that end or are cancelled inside,
 * events that are lost, sessions that end, children of a process, more clients than may keep a node. */
#include "cached.h"
#include "chance.h"
#include "room.h"

/* --- a crowd of all kinds ------------------------------------------------------------------------- */

#define HANDLES 4
#define PLAYERS 10
#define CROWD_MS 2500

static struct {
    struct zkl_client *client[3];
    struct user u[HANDLES];  /* two of one client, one each of two others, the last keeps none */
    struct zkl_mutex *mutex; /* of the same path */
    struct zkl_mutex *aside;
    struct zkl_multi *multi; /* reader of u[0] and aside */
    bool retains;
    struct room room;
    atomic_int wrong, odd;
    atomic_bool stop;
    atomic_long reads, writes, together;
} all;

static void odd(const char *what, int rc)
{
    fprintf(stderr, "odd: %s: %d\n", what, rc);
    atomic_fetch_add(&all.odd, 1);
}

static void in_as_reader(uint64_t *state)
{
    all.wrong += room_share(&all.room) != 0;
    all.together += room_sharing(&all.room) > 1;
    if (chance(state, 5))
        net_nap_ms(chance_between(state, 0, 3));
    all.wrong += room_unshare(&all.room) != 0;
    all.reads++;
}

static void in_as_writer(uint64_t *state)
{
    all.wrong += room_enter(&all.room, 0) != 0;
    if (chance(state, 20))
        net_nap_ms(chance_between(state, 0, 3));
    all.wrong += room_leave(&all.room, 0) != 0;
    all.writes++;
}

static int want(struct zkl_mutex *m, uint64_t *state)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_grant grant = ZKL_GRANT_INIT;
    int kind = chance_between(state, 0, 9);
    if (kind == 0)
        wait.flags = ZKL_WAIT_TRY;
    if (kind == 1)
        wait.flags = ZKL_WAIT_TRY | ZKL_WAIT_SYNC;
    if (kind == 2)
        wait.deadline_ns = zkl_now_ns() + chance_between(state, 0, 30) * INT64_C(1000000);
    if (kind == 3)
        wait.lease_ms = 60000;
    int rc = zkl_mutex_acquire(m, &wait, &grant);
    bool ok = rc == 0 || (kind <= 1 && rc == ZKL_EBUSY) || (kind == 2 && rc == ZKL_ETIMEDOUT);
    if (!ok)
        odd("acquire", rc);
    if (rc == 0 && (grant.hold_count != 1 || grant.token == 0 || grant.window_ms <= 0))
        odd("grant", (int)grant.window_ms);
    if (rc == 0 && grant.token != zkl_mutex_token(m))
        odd("token", 0);
    return rc;
}

static void give(struct zkl_mutex *m)
{
    int rc = zkl_mutex_unlock(m);
    if (rc != 0)
        odd("unlock", rc);
}

static void read_some(struct user *u, uint64_t *state)
{
    if (want(u->read, state) != 0)
        return;
    int more = chance(state, 20) ? chance_between(state, 1, 3) : 0;
    for (int i = 0; i < more; i++) {
        int rc = zkl_mutex_trylock(u->read);
        if (rc != 0)
            odd("again", rc);
    }
    if (chance(state, 5) && zkl_mutex_trylock(u->write) != ZKL_EDEADLK)
        odd("upgrade", 0);
    in_as_reader(state);
    if (zkl_mutex_hold_count(u->read) != more + 1)
        odd("count", more);
    for (int i = 0; i < more; i++)
        give(u->read);
    if (!zkl_mutex_still_held(u->read, 1))
        odd("still_held", 0);
    give(u->read);
    if (zkl_mutex_unlock(u->read) != ZKL_ENOTOWNER)
        odd("unlock twice", 0);
}

static void write_some(struct user *u, uint64_t *state)
{
    if (want(u->write, state) != 0)
        return;
    in_as_writer(state);
    if (chance(state, 50)) {
        int rc = zkl_mutex_lock(u->read);
        if (rc != 0)
            odd("downgrade", rc);
        give(u->write);
        if (rc == 0) {
            in_as_reader(state);
            give(u->read);
        }
        return;
    }
    give(u->write);
}

static void several(uint64_t *state)
{
    bool before = chance(state, 50);
    if (before && want(all.u[0].read, state) != 0)
        before = false;
    int rc = zkl_multi_trylock(all.multi);
    if (rc != 0 && rc != ZKL_EBUSY)
        odd("multi", rc);
    if (rc == 0) {
        in_as_reader(state);
        if (zkl_multi_check(all.multi, 0) != 0)
            odd("multi check", 0);
    }
    if (before)
        give(all.u[0].read);
    if (rc == 0) {
        in_as_reader(state);
        int codes[2];
        rc = zkl_multi_unlock(all.multi, codes);
        if (rc != 0)
            odd("multi unlock", rc);
    }
}

static void *exits_inside(void *arg)
{
    uint64_t state = (uint64_t)(uintptr_t)arg;
    struct user *u = &all.u[chance_between(&state, 0, HANDLES - 1)];
    if (want(u->read, &state) == 0)
        in_as_reader(&state);
    return NULL;
}

static void *is_cancelled_inside(void *arg)
{
    uint64_t state = (uint64_t)(uintptr_t)arg;
    struct user *u = &all.u[chance_between(&state, 0, HANDLES - 1)];
    int before;
    for (;;) {
        if (want(u->read, &state) != 0)
            continue;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                               &before); /* what the test counts must be right */
        in_as_reader(&state);
        pthread_setcancelstate(before, NULL);
        pthread_testcancel();
        give(u->read);
    }
    return NULL;
}

/* A thread that ends while it is in. */
static void ends(uint64_t *state)
{
    bool is_cancelled = chance(state, 50);
    pthread_t thread;
    void *seed = (void *)(uintptr_t)chance_next(state);
    if (pthread_create(&thread, NULL, is_cancelled ? is_cancelled_inside : exits_inside, seed) !=
        0) {
        odd("thread", 0);
        return;
    }
    net_nap_ms(chance_between(state, 0, 5));
    if (is_cancelled)
        pthread_cancel(thread);
    pthread_join(thread, NULL);
}

static int play(void *number)
{
    uint64_t state = 7919 * (uint64_t) * (int *)number + 13;
    while (!atomic_load(&all.stop)) {
        int n = chance_between(&state, 0, 999);
        struct user *u = &all.u[chance_between(&state, 0, HANDLES - 1)];
        if (n < 930)
            read_some(u, &state);
        else if (n < 950)
            write_some(u, &state);
        else if (n < 960 && want(all.mutex, &state) == 0) {
            in_as_writer(&state);
            give(all.mutex);
        } else if (n < 970)
            several(&state);
        else if (n < 985)
            ends(&state);
        else if (n < 990 && u != &all.u[HANDLES - 1] && all.retains)
            zkl_rwlock_retain_readers(u->rwlock, chance_between(&state, 0, 300));
        else if (n < 993)
            zkl_mutex_set_callback(u->read, NULL, NULL);
    }
    return 0;
}

static void check_crowd(const int64_t retain_ms[HANDLES])
{
    const char *path = cluster_path("crowd");
    int numbers[PLAYERS];

    memset(&all, 0, sizeof all);
    for (int i = 0; i < 3; i++)
        all.client[i] = world_client();
    all.retains = retain_ms[0] > 0;
    for (int i = 0; i < HANDLES; i++)
        all.u[i] = user_of(all.client[i > 0 ? i - 1 : 0], path, retain_ms[i]);
    all.mutex = world_mutex(all.client[1], path);
    all.aside = world_mutex(all.client[0], cluster_path("aside"));
    struct zkl_member members[] = {zkl_member_mutex(all.u[0].read), zkl_member_mutex(all.aside)};
    all.multi = world_multi(all.client[0], members, 2);
    for (int i = 0; i < PLAYERS; i++)
        numbers[i] = i + 1;
    struct crowd crowd = crowd_begin(play, numbers);
    int64_t end = net_now_ms() + CROWD_MS;
    while (net_now_ms() < end && atomic_load(&all.odd) == 0 && atomic_load(&all.wrong) == 0) {
        long writes = atomic_load(&all.writes), reads = atomic_load(&all.reads);
        check_wait(atomic_load(&all.writes) > writes && atomic_load(&all.reads) > reads, WAIT_MS);
    }
    check_wait(atomic_load(&all.together) > 0, WAIT_MS);
    atomic_store(&all.stop, true);
    crowd_end(&crowd);
    print_message("%ld reads, %ld writes\n", atomic_load(&all.reads), atomic_load(&all.writes));
    check_num(atomic_load(&all.wrong), ==, 0);
    check_num(atomic_load(&all.odd), ==, 0);
    world_clear();
    check_wait(cluster_children(path) == 0, WAIT_MS);
}

/* Goal: whatever threads do, of several handles and clients, no writer meets anybody, and all calls say what they should:
 * with nodes that stay, and without. */
WORLD_TEST(a_crowd_of_all_kinds)
{
    check_crowd((int64_t[]){50, LONG_MS, 200, 0});
    check_crowd((int64_t[]){0, 0, 0, 0});
}

/* --- readers who never stop -------------------------------------------------------------------------- */

#define BUSY 4

static struct {
    struct zkl_mutex *read;
    atomic_bool stop;
    atomic_bool link_breaks; /* an unlock may not know what became of it */
    atomic_long reads;
    atomic_int inside;
} busy;

static bool may_be_said(int rc)
{
    bool unsure = rc == ZKL_EUNCONFIRMED || rc == ZKL_EDOUBT;
    return rc == 0 || (unsure && atomic_load(&busy.link_breaks));
}

/* Some other thread of these is in whenever one leaves. */
static int never_stop(void *unused)
{
    (void)unused;
    while (!atomic_load(&busy.stop)) {
        int rc = zkl_mutex_lock(busy.read);
        if (rc != 0)
            return rc;
        atomic_fetch_add(&busy.inside, 1);
        int64_t until = net_now_ms() + 30;
        while (atomic_load(&busy.inside) < 2 && net_now_ms() < until)
            net_nap_ms(1);
        net_nap_ms(1);
        atomic_fetch_sub(&busy.inside, 1);
        rc = zkl_mutex_unlock(busy.read);
        if (!may_be_said(rc))
            return rc;
        atomic_fetch_add(&busy.reads, 1);
    }
    return 0;
}

static struct crowd begin_busy(struct zkl_mutex *read)
{
    atomic_store(&busy.stop, false);
    busy.read = read;
    long before = atomic_load(&busy.reads);
    struct crowd crowd = crowd_of(never_stop, NULL, 0, BUSY);
    check_wait(atomic_load(&busy.reads) > before + 20, WAIT_MS);
    return crowd;
}

static void end_busy(struct crowd *crowd)
{
    atomic_store(&busy.stop, true);
    crowd_end(crowd);
}

static atomic_int spoiled;

/* The proxy changes the path in events of children: the client loses them, as if the server used
 * its watch up in silence. */
static size_t spoil_events(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    enum { TYPE_AT = 16, CHILD = 4 };
    (void)arg;
    if (dir != PROXY_TO_CLIENT || op != PROXY_EVENT || size < 28 || frame[TYPE_AT + 3] != CHILD)
        return size;
    frame[size - 1] ^= 1;
    atomic_fetch_add(&spoiled, 1);
    return size;
}

/* Goal: the next list finds a writer whose event was lost, while readers never stop, who keep no writer of their own handle
 * out either. */
WORLD_TEST(a_lost_event_is_made_up_for)
{
    const char *path = cluster_path("spoiled");
    struct proxy *proxy;

    struct user r = user_of(world_client_through(&proxy, BRIEF_MS), path, LONG_MS);
    struct user w = user_of(world_client(), path, 0);
    keep(&r);
    struct crowd crowd = begin_busy(r.read);
    proxy_set_hook(proxy, spoil_events, NULL);
    check_ok(zkl_mutex_lock_for(w.write, WAIT_MS));
    check_num(atomic_load(&spoiled), >, 0);
    check_ok(zkl_mutex_unlock(w.write));
    proxy_set_hook(proxy, NULL, NULL);
    cycle(r.write, 1);
    end_busy(&crowd);
}

WORLD_TEST(close_under_busy_readers)
{
    const char *path = cluster_path("closed");

    for (int i = 0; i < 5; i++) {
        struct user r = user_of(world_client(), path, LONG_MS);
        struct crowd crowd = begin_busy(r.read);
        check_closed(zkl_client_close(r.client, WAIT_MS));
        for (int a = 0; a < BUSY; a++) {
            int rc = actor_result(crowd.actors[a]);
            /* Of a node of its own; or lost, by what a reader sees first: its window's end, or its loss. */
            if (rc != ZKL_ECLOSED && rc != ZKL_EUNCONFIRMED && rc != ZKL_EDOUBT)
                check_num(rc, ==, ZKL_ELOST);
        }
        check_wait(cluster_children(path) <= 0, WAIT_MS);
    }
}

/* --- waiters while the node closes ------------------------------------------------------------------------- */

static int lock_for_200(void *m)
{
    return zkl_mutex_lock_for(m, 200);
}

WORLD_TEST(who_gives_up_is_gone)
{
    const char *path = cluster_path("gives-up");
    struct user r = user_of(world_client(), path, LONG_MS), w = user_of(world_client(), path, 0);
    struct actor *inside = world_actor(), *writer = world_actor(), *late = world_actor();

    for (int own = 0; own < 2; own++) {
        struct zkl_mutex *write = own ? r.write : w.write;
        keep(&r);
        check_ok(actor_do(inside, do_lock, r.read));
        struct cancel_wait wait = {.mutex = write}, behind = {.mutex = r.read};
        wait.cancel = world_cancel();
        behind.cancel = world_cancel();
        actor_begin(writer, do_lock_cancel, &wait);
        check_wait(cluster_children(path) == 2, WAIT_MS);
        check_wait(actor_do(late, lock_for_200, r.read) == ZKL_ETIMEDOUT ||
                       actor_do(late, do_unlock, r.read) != 0,
                   WAIT_MS);
        check_num(actor_do(late, lock_for_200, r.read), ==, ZKL_ETIMEDOUT);
        check_num(actor_do(late, do_trylock, r.read), ==, ZKL_EBUSY);
        actor_begin(late, do_lock_cancel, &behind);
        check_wait(cluster_children(path) == 3, WAIT_MS);
        zkl_cancel_set(behind.cancel);
        check_num(actor_result(late), ==, ZKL_ECANCELED);
        zkl_cancel_set(wait.cancel);
        check_num(actor_result(writer), ==, ZKL_ECANCELED);
        check_wait(cluster_children(path) == 1, WAIT_MS);
        check_ok(actor_do(late, do_cycle, r.read));
        check_ok(actor_do(inside, do_unlock, r.read));
        check_wait(cluster_children(path) == 0, WAIT_MS);
    }
}

/* --- children of the process ---------------------------------------------------------------------------- */

static int use_in_child(void *user)
{
    struct user *u = user;
    if (zkl_mutex_lock(u->read) != ZKL_EFORK || zkl_mutex_trylock(u->write) != ZKL_EFORK)
        return 1;
    if (zkl_mutex_unlock(u->read) != ZKL_EFORK || zkl_mutex_still_held(u->read, 0))
        return 2;
    if (zkl_rwlock_free(u->rwlock) != ZKL_EFORK ||
        zkl_rwlock_retain_readers(u->rwlock, 0) != ZKL_EFORK)
        return 3;
    return 0;
}

WORLD_TEST(a_child_is_not_in)
{
    const char *path = cluster_path("child");
    struct user r = user_of(world_client(), path, LONG_MS), w = user_of(world_client(), path, 0);
    skip_under_gcc_tsan();
    keep(&r);
    check_ok(zkl_mutex_lock(r.read));
    check_ok(in_child(use_in_child, &r));
    check_true(zkl_mutex_still_held(r.read, 1));
    check_ok(zkl_mutex_unlock(r.read));
    cycle(w.write, 1);
}

/* --- many clients ----------------------------------------------------------------------------------------- */

#define CLIENTS 36

/* The requests of n reads, one after the other. */
static int64_t cost_of(struct proxy *proxy, struct zkl_mutex *read, int n)
{
    proxy_reset_counts(proxy);
    cycle(read, n);
    return requests(proxy);
}

/* Goal: more clients read than may keep a node. The other clients read as without a kept node. They
 * cost no more requests, except a try at times. A try for the writer asks all. */
WORLD_TEST(at_most_32_keep_one)
{
    enum { N = 20 };
    const char *path = cluster_path("many");
    struct user u[CLIENTS];
    struct proxy *proxy, *bare_proxy;
    for (int i = 0; i < CLIENTS; i++) {
        struct zkl_client *client =
            i < CLIENTS - 1 ? world_client() : world_client_through(&proxy, SESSION_MS);
        u[i] = user_of(client, path, LONG_MS);
        cycle(u[i].read, 1);
    }
    check_wait(cluster_children(path) == 32, WAIT_MS);
    struct user bare = user_of(world_client_through(&bare_proxy, SESSION_MS), path, 0);
    cycle(bare.read, 1);
    int64_t plain = cost_of(bare_proxy, bare.read, N);
    int64_t beyond = cost_of(proxy, u[CLIENTS - 1].read, N);
    check_num(beyond, <=, plain + N / 2);
    for (int i = 0; i < CLIENTS; i++)
        cycle(u[i].read, 1);
    check_wait(cluster_children(path) == 32, WAIT_MS);
    check_try_gets(bare.write);
    check_ok(zkl_mutex_unlock(bare.write));
}

/* --- the link comes and goes --------------------------------------------------------------------------------- */

WORLD_TEST(a_flapping_link)
{
    const char *path = cluster_path("flap");
    struct proxy *proxy;
    struct user r = user_of(world_client_through(&proxy, BRIEF_MS), path, LONG_MS);
    struct user w = user_of(world_client(), path, 0);
    atomic_store(&busy.link_breaks, true);
    struct crowd crowd = begin_busy(r.read);
    for (int i = 0; i < 15; i++) {
        proxy_cut(proxy);
        cycle(w.write, 1);
        long before = atomic_load(&busy.reads);
        check_wait(atomic_load(&busy.reads) > before + 5, WAIT_MS);
    }
    end_busy(&crowd);
    atomic_store(&busy.link_breaks, false);
    world_clear();
    check_wait(cluster_children(path) <= 0, WAIT_MS);
}
