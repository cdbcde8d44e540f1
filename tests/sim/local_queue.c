/* SPDX-License-Identifier: Apache-2.0
 * Threads of one handle that take turns on one node, in some of the schedules: they wait, try, lose
 * patience, have leases, hand on, keep the lock without a holder, or exit with it. A thread brings
 * a place (an app) to queue with; the hand-over passes the place. */
#include <string.h>

#include <zklock/zklock.h>

#include "world.h"

#define FOR_EVER_MS 100000000

static struct guest *of_turn(struct zkl_local_waiter *turn)
{
    return (struct guest *)turn;
}

static struct client *of_local_queue(struct zkl_local_queue *local_queue)
{
    return (struct client *)((char *)local_queue - offsetof(struct client, local_queue));
}

bool app_is_place(const struct place *app)
{
    return app->kept || (app - app->client->apps >= APPS + ROOTS && !app_is_reader_place(app));
}

/* --- what is decided ------------------------------------------------------ */

/* First come, first served. */
static void check_first(const struct client *p, const struct guest *first)
{
    for (int i = 0; i < GUESTS; i++) {
        const struct guest *guest = &p->guests[i];
        must(guest == first || !guest->turn.waits || guest->ticket > first->ticket);
    }
}

static void queues(struct zkl_local_queue *local_queue, struct zkl_local_waiter *turn)
{
    struct guest *guest = of_turn(turn);
    if (of_local_queue(local_queue)->dead)
        return;
    check_first(guest->client, guest);
    *guest->place = (struct place){.client = guest->client,
                                   .phase = WAITING,
                                   .root = guest->client->world->local_queue_root,
                                   .in_core = true,
                                   .try_only = turn->lock_request.try_only,
                                   .guest = guest,
                                   .until_ms = INT64_MAX};
}

/* What it brought is of no use. */
static void have(struct guest *guest, struct place *place)
{
    must(place->guest == NULL && place->in_core);
    if (guest->place != place)
        guest->place->phase = IDLE;
    guest->place = place;
    place->guest = guest;
    guest->phase = GRANTED;
}

/* Only a hold that is sure, without a lease, that no other client wants back; and only this often
 * in a row while others queue. */
static void given(struct zkl_local_queue *local_queue, struct zkl_local_waiter *turn)
{
    struct client *p = of_local_queue(local_queue);
    struct place *place = (struct place *)turn->given;
    const struct zkl_contender_machine *m = &turn->given->machine;
    must(m->state == ZKL_CONTENDER_HOLDING && !m->suspect && !m->revoked && m->lease_end_boot == 0);
    must(is_proved(p, turn->given) && !place->lost);
    must(!m->contended || ++place->handed <= local_queue->handoffs_max);
    check_first(p, of_turn(turn));
    have(of_turn(turn), place);
}

static void dropped(struct zkl_local_queue *local_queue, struct zkl_contender *contender)
{
    (void)local_queue;
    must(((struct place *)contender)->guest == NULL);
}

void local_queue_init(struct client *p)
{
    static const struct {
        unsigned handoffs_max;
        int64_t retain_ms;
    } options[] = {{1, 0}, {2, 0}, {0, 20}, {0, FOR_EVER_MS}, {3, 200}, {2, FOR_EVER_MS}};
    size_t which = (size_t)(p->world->seed / LOCAL_QUEUE_ONCE_IN / 2 + (unsigned)name_of(p)) %
                   (sizeof options / sizeof *options);
    p->local_queue = (struct zkl_local_queue){.handoffs_max = options[which].handoffs_max,
                                              .retain_ns = options[which].retain_ms * MS,
                                              .queues = queues,
                                              .given = given,
                                              .dropped = dropped};
    for (int i = 0; i < GUESTS; i++)
        p->guests[i].client = p;
}

/* Before the place itself hears of it. */
void local_queue_notification(struct place *place, const struct zkl_notification *news)
{
    struct guest *guest = place->guest;
    if (news->type == ZKL_NOTIFY_GRANTED) {
        guest->phase = GRANTED;
        guest->until_ms = place->client->world->fake.now_ms + rnd(place->client->world, 60);
    } else if (news->type == ZKL_NOTIFY_FAILED) {
        place->stop_code = guest->stop_code;
        place->guest = NULL;
        guest->phase = IDLE;
    } else if (news->type == ZKL_NOTIFY_RELEASED && !guest && place->phase == GRANTED) {
        place->phase = UNLOCKING; /* given up while it had no holder */
    }
}

/* --- what they do --------------------------------------------------------- */

static struct place *free_place(struct client *p)
{
    for (int i = APPS + ROOTS; i < APPS + ROOTS + PLACES; i++) {
        bool brought = false;
        for (int j = 0; j < GUESTS; j++)
            brought =
                brought || (p->guests[j].phase == WAITING && p->guests[j].place == &p->apps[i]);
        if (p->apps[i].phase == IDLE && !brought)
            return &p->apps[i];
    }
    return NULL;
}

static void start(struct guest *guest)
{
    struct client *p = guest->client;
    struct world *w = p->world;
    guest->place = free_place(p);
    if (!guest->place)
        return;
    guest->turn = (struct zkl_local_waiter){.contender = &guest->place->contender};
    guest->turn.lock_request =
        (struct zkl_lock_request){.path = &p->paths[w->local_queue_root],
                                  .data = "owner",
                                  .unlisted = true,
                                  .try_only = chance(w, 6),
                                  .try_behind_retained = chance(w, 2),
                                  .watch_own = chance(w, 4),
                                  .posted = chance(w, 4),
                                  .retained = p->local_queue.retain_ns > 0,
                                  .lease_ns = chance(w, 8) ? (1 + rnd(w, 100)) * MS : 0};
    bool ahead = chance(w, 10);
    guest->ticket = ++p->tickets * (ahead ? -1 : 1);
    guest->phase = WAITING;
    guest->stop_code = 0;
    guest->until_ms = chance(w, 3) ? w->fake.now_ms + rnd(w, 400) : INT64_MAX;
    say("[%6lld] %d guest %d joins%s", (long long)w->fake.now_ms, name_of(p),
        (int)(guest - p->guests), guest->turn.lock_request.try_only ? " (try)" : "");
    enum zkl_local_queue_answer answer =
        zkl_local_queue_join(core_of(p), now_of(p), &p->local_queue, &guest->turn, ahead);
    if (answer == ZKL_LOCAL_QUEUE_BUSY)
        guest->phase = IDLE;
    if (answer == ZKL_LOCAL_QUEUE_GIVEN)
        have(guest, (struct place *)guest->turn.given);
}

static void stop(struct guest *guest)
{
    struct client *p = guest->client;
    guest->stop_code = guest->turn.lock_request.try_only ? ZKL_EBUSY : ZKL_ETIMEDOUT;
    say("[%6lld] %d guest %d gives up", (long long)p->world->fake.now_ms, name_of(p),
        (int)(guest - p->guests));
    if (guest->turn.waits) {
        zkl_local_queue_leave(&p->local_queue, &guest->turn);
        guest->phase = IDLE;
    } else {
        zkl_core_stop(core_of(p), now_of(p), &guest->place->contender, guest->stop_code);
    }
    must(guest->phase != WAITING);
}

/* What was handed to it has no lease yet. */
static void begin(struct guest *guest)
{
    struct client *p = guest->client;
    int64_t lease_ns = guest->turn.lock_request.lease_ns;
    if (guest->turn.given && lease_ns > 0)
        (void)zkl_core_renew(core_of(p), now_of(p), &guest->place->contender, lease_ns);
    guest->turn.lock_request.lease_ns = 0;
    guest->until_ms = p->world->fake.now_ms + rnd(p->world, 60);
}

static void unlock(struct guest *guest)
{
    struct client *p = guest->client;
    struct place *place = guest->place;
    bool exits = chance(p->world, 8);
    say("[%6lld] %d guest %d %s", (long long)p->world->fake.now_ms, name_of(p),
        (int)(guest - p->guests), exits ? "exits" : "unlocks");
    guest->phase = IDLE;
    place->guest = NULL;
    if (exits) {
        place->phase = ORPHANED;
        zkl_core_abandon(core_of(p), now_of(p), &place->contender, ZKL_REASON_OWNER_EXITED);
        return;
    }
    struct unlocked unlocked = check_unlock(p, &place->contender, place->deleted_guid);
    if (zkl_local_queue_pass(core_of(p), now_of(p), &p->local_queue, &place->contender)) {
        check_unlocked(p->world, &unlocked, ZKL_OK);
    } else {
        place->phase = UNLOCKING;
        place->unlocked = unlocked;
        zkl_core_release(core_of(p), now_of(p), &place->contender);
    }
}

bool local_queue_keep(struct place *member)
{
    struct client *p = member->client;
    if (!p->world->local_queue || member->root != p->world->local_queue_root)
        return false;
    struct unlocked unlocked = check_unlock(p, &member->contender, member->deleted_guid);
    member->kept = true; /* before anything is heard of it */
    member->kept = zkl_local_queue_pass(core_of(p), now_of(p), &p->local_queue, &member->contender);
    if (member->kept)
        check_unlocked(p->world, &unlocked, ZKL_OK);
    return member->kept;
}

/* If there are no other processes, the threads of one process are often alone. */
static unsigned rarely(const struct client *p)
{
    if (p->world->local_queue_root != LOCAL_QUEUE_ROOT)
        return 4;
    return name_of(p) > 0 ? 100 : 15;
}

static void run(struct guest *guest)
{
    struct world *w = guest->client->world;
    bool due = guest->until_ms <= w->fake.now_ms;
    if (guest->phase == WAITING && (due || (w->calm && guest->until_ms != INT64_MAX)))
        stop(guest);
    else if (guest->phase == GRANTED && guest->turn.lock_request.lease_ns > 0)
        begin(guest);
    else if (guest->phase == GRANTED && (due || w->calm))
        unlock(guest);
    else if (guest->phase == IDLE && proc_is_lively(guest->client) &&
             chance(w, rarely(guest->client)))
        start(guest);
}

/* Some process waits for what this one may keep: then it must be notified, and give it up. */
static bool is_wanted(const struct world *w)
{
    for (int i = 0; i < CLIENTS * ALL_APPS; i++) {
        const struct place *app = &w->clients[i / ALL_APPS].apps[i % ALL_APPS];
        if (app->phase == WAITING && app->root == w->local_queue_root)
            return true;
    }
    return false;
}

void local_queue_run(struct client *p)
{
    struct world *w = p->world;
    if (!w->local_queue)
        return;
    for (int i = 0; i < GUESTS; i++)
        run(&p->guests[i]);
    for (int i = APPS + ROOTS; i < APPS + ROOTS + PLACES; i++) {
        struct place *place = &p->apps[i];
        if (!place->in_core && (place->phase == ANSWERED || place->phase == ORPHANED))
            place->phase = IDLE;
    }
    if (w->calm ? !is_wanted(w) : chance(w, 300))
        zkl_local_queue_drop(core_of(p), now_of(p), &p->local_queue);
}

bool local_queue_done(const struct client *p)
{
    bool done = p->local_queue.state == ZKL_LOCAL_QUEUE_FREE && !p->local_queue.first;
    for (int i = 0; i < GUESTS; i++)
        done = done && p->guests[i].phase == IDLE;
    return done;
}
