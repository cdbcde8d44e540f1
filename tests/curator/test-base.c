/* SPDX-License-Identifier: Apache-2.0 */
/* What Curator's mutex, its multi-lock and its semaphore's mutex have in common (TestInterProcessMutexBase), and
 * cluster/behaviors has not. */
#include "kinds.h"
#include "outage.h"
#include "room.h"

static int end_party(void *party)
{
    party_end(party);
    return 0;
}

static int free_lock(void *lock)
{
    return lock_free(lock);
}

static struct lock *lock_of(const struct kind *kind, struct zkl_client *client, const char *path)
{
    struct lock *lock = world_alloc(sizeof *lock);

    *lock = (struct lock){.kind = kind, .path = path, .client = client};
    lock_open(lock);
    return world_keep(lock, WORLD_LOCK, free_lock);
}

static struct party *thread_of(struct lock *lock)
{
    struct party *party = world_alloc(sizeof *party);

    *party = party_of(lock, THREAD);
    return world_keep(party, WORLD_THREAD, end_party);
}

/* With each of these three. */
static void with_each(void (*check)(const struct kind *kind, const char *path))
{
    static const char *const names[] = {"mutex", "any_thread_mutex", "multi_lock"};

    for (size_t i = 0; i < kind_count; i++) {
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            unsigned long mark = world_mark();
            if (strcmp(kinds[i].name, names[n]) != 0)
                continue;
            check(&kinds[i], cluster_path(names[n]));
            world_clear_since(mark);
        }
    }
}

#define THREADS 10

struct visits {
    atomic_int asking; /* threads that are about to lock */
    struct room room;
    atomic_int overlaps;
};

struct visitor {
    struct visits *visits;
    struct party party; /* of its thread: the crowd's */
    uint32_t number;
};

static int visit(void *arg)
{
    struct visitor *visitor = arg;
    struct visits *visits = visitor->visits;

    visits->asking++;
    int rc = lock_acquire(&visitor->party);
    if (rc != 0)
        return rc;
    visits->overlaps += room_enter(&visits->room, visitor->number) != 0;
    net_nap_ms(10);
    visits->overlaps += room_leave(&visits->room, visitor->number) != 0;
    return lock_release(&visitor->party);
}

static struct visitor visitor_of(struct visits *visits, struct lock *lock, uint32_t number)
{
    struct visitor visitor = {visits, {.lock = lock, .way = THREAD}, number};

    anew(&visitor.party);
    visitor.party.wait.deadline_ns = zkl_now_ns() + WAIT_MS * INT64_C(1000000);
    return visitor;
}

static void check_visits(const struct kind *kind, const char *parent, bool shared)
{
    struct zkl_client *client = world_client();
    struct visitor visitors[THREADS - 1];
    struct visits visits = {0};
    char path[80];

    snprintf(path, sizeof path, "%s/our-lock", parent);
    struct lock *lock = lock_of(kind, client, path);
    struct party *first = thread_of(lock);
    check_ok(take(first));
    check_num(room_enter(&visits.room, THREADS), ==, 0);
    for (uint32_t i = 0; i < THREADS - 1; i++)
        visitors[i] = visitor_of(&visits, shared ? lock : lock_of(kind, client, path), i);
    struct crowd crowd = crowd_begin(visit, visitors);
    check_wait(visits.asking == THREADS - 1, WAIT_MS);
    net_nap_ms(100); /* would do for a wrong grant */
    check_num(room_leave(&visits.room, THREADS), ==, 0);
    check_ok(give(first));
    crowd_end(&crowd);
    check_num(visits.overlaps, ==, 0);
    check_wait(wire_exists(raw, cluster_at(parent), NULL) == WIRE_NONODE, WAIT_MS);
}

static void check_thread_by_thread(const struct kind *kind, const char *parent)
{
    check_visits(kind, parent, false);
    check_visits(kind, parent, true);
}

/* Goal: of ten threads, each with a handle of its own or all with one, each gets the lock, and never two at a time. When the
 * last one has released, the server removes what was made for the lock, the parent too. Method: the first one keeps it until
 * the nine others have asked. Modes: F41. */
WORLD_TEST(many_threads_come_one_by_one)
{
    with_each(check_thread_by_thread);
}
