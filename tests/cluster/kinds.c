/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds.h"

#define HANDOFFS 3

/* --- handles ---------------------------------------------------------------------------------- */

static int make_mutex(struct lock *lock)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    options.posted_unlock = lock->kind->posts;
    options.local_handoffs_max = lock->kind->takes_turns ? HANDOFFS : 0;
    return zkl_mutex_new(&lock->mutex, lock->client, lock->path, &options);
}

static int make_reader(struct lock *lock)
{
    int rc = zkl_rwlock_new(&lock->rwlock, lock->client, lock->path, NULL);
    lock->mutex = zkl_rwlock_reader(lock->rwlock);
    return rc;
}

static int make_writer(struct lock *lock)
{
    int rc = zkl_rwlock_new(&lock->rwlock, lock->client, lock->path, NULL);
    lock->mutex = zkl_rwlock_writer(lock->rwlock);
    return rc;
}

static int make_loose(struct lock *lock)
{
    return zkl_semaphore_mutex_new(&lock->mutex, lock->client, lock->path, NULL);
}

static int make_permit(struct lock *lock)
{
    return zkl_semaphore_new(&lock->semaphore, lock->client, lock->path, 1, NULL);
}

/* Of two members, the second one named first. */
static int make_whole(struct lock *lock, struct zkl_member second)
{
    lock->mutex = cluster_mutex(lock->client, below(lock->path, "a"));
    struct zkl_member members[] = {second, zkl_member_mutex(lock->mutex)};
    return zkl_multi_new(&lock->multi, lock->client, members, 2);
}

static int make_multi(struct lock *lock)
{
    lock->second = cluster_mutex(lock->client, below(lock->path, "b"));
    return make_whole(lock, zkl_member_mutex(lock->second));
}

static int make_multi_of_any_thread(struct lock *lock)
{
    check_ok(zkl_semaphore_mutex_new(&lock->second, lock->client, below(lock->path, "b"), NULL));
    return make_whole(lock, zkl_member_mutex(lock->second));
}

static int make_multi_of_permit(struct lock *lock)
{
    check_ok(zkl_semaphore_new(&lock->semaphore, lock->client, below(lock->path, "b"), 1, NULL));
    return make_whole(lock, zkl_member_semaphore(lock->semaphore, 1));
}

/* A rival of a multi-lock has the second member alone. */
static int make_second(struct lock *lock)
{
    return zkl_mutex_new(&lock->mutex, lock->client, below(lock->path, "b"), NULL);
}

static int make_second_of_any_thread(struct lock *lock)
{
    return zkl_semaphore_mutex_new(&lock->mutex, lock->client, below(lock->path, "b"), NULL);
}

void lock_open(struct lock *lock)
{
    if (lock->kind->make(lock) != 0)
        fail_msg("%s", zkl_error_detail());
}

/* --- nodes ------------------------------------------------------------------------------------ */

static bool mutex_has(const char *path, int n)
{
    return cluster_children(path) == n;
}

/* The first one that waits has a lease already, and the inner mutex until it is granted. */
static bool permit_has(const char *path, int n)
{
    return cluster_children(below(path, "leases")) == (n < 2 ? n : 2) &&
           cluster_children(below(path, "locks")) == (n < 2 ? 0 : n - 1);
}

/* The first rival waits for the second member and has the first, the others wait for that. */
static int behind_first(const char *path, int n)
{
    int at_first = cluster_children(below(path, "a"));
    if (n == 0)
        return -at_first;
    return n - (at_first > 1 ? at_first - 1 : 0);
}

static bool multi_has(const char *path, int n)
{
    return mutex_has(below(path, "b"), behind_first(path, n));
}

static bool mixed_has(const char *path, int n)
{
    return permit_has(below(path, "b"), behind_first(path, n));
}

/* --- the calls of each type ------------------------------------------------------------------- */

#define FIRST 1 /* the number of the member of a multi-lock whose path comes first */

int lock_acquire(struct party *p)
{
    const struct lock *l = p->lock;
    if (l->multi)
        return zkl_multi_acquire(l->multi, &p->wait, p->grants);
    return l->kind->is_permit ? zkl_semaphore_acquire(l->semaphore, 1, &p->wait, &p->permit)
                              : zkl_mutex_acquire(l->mutex, &p->wait, p->grants);
}

int lock_start(struct party *p, zkl_done_fn fn, void *arg)
{
    const struct lock *l = p->lock;
    if (l->multi)
        return zkl_multi_acquire_async(p->owner, l->multi, &p->wait, p->grants, fn, arg, &p->op);
    if (l->kind->is_permit)
        return zkl_semaphore_acquire_async(l->semaphore, 1, &p->wait, &p->permit, fn, arg, &p->op);
    return zkl_mutex_acquire_async(p->owner, l->mutex, &p->wait, p->grants, fn, arg, &p->op);
}

static struct zkl_permit *permit_out(struct party *p)
{
    struct zkl_permit *permit = p->permit;
    p->permit = NULL;
    return permit;
}

int lock_release(struct party *p)
{
    if (p->lock->multi)
        return zkl_multi_unlock(p->lock->multi, p->codes);
    return p->lock->kind->is_permit ? zkl_permit_release(permit_out(p))
                                    : zkl_mutex_unlock(p->lock->mutex);
}

int lock_start_release(struct party *p, zkl_done_fn fn, void *arg)
{
    if (p->lock->multi)
        return zkl_multi_unlock_async(p->owner, p->lock->multi, p->codes, fn, arg);
    return p->lock->kind->is_permit ? zkl_permit_release_async(permit_out(p), fn, arg)
                                    : zkl_mutex_unlock_async(p->owner, p->lock->mutex, fn, arg);
}

/* All questions about a hold; a multi-lock is asked about one of its members where it has a number. */
#define ASK(said, type, handle, ...)                                                               \
    do {                                                                                           \
        (said)->token = zkl_##type##_token(__VA_ARGS__);                                           \
        (said)->length = zkl_##type##_node_path(__VA_ARGS__, (said)->node, sizeof(said)->node);    \
        (said)->length_none = zkl_##type##_node_path(__VA_ARGS__, NULL, 0);                        \
        (said)->length_cut = zkl_##type##_node_path(__VA_ARGS__, (said)->cut, sizeof(said)->cut);  \
        (said)->window_ms = zkl_##type##_window_ms(handle);                                        \
        (said)->held = zkl_##type##_still_held(handle, 0);                                         \
        (said)->held_half = zkl_##type##_still_held(handle, (said)->window_ms / 2);                \
        (said)->held_beyond = zkl_##type##_still_held(handle, SESSION_MS);                         \
        (said)->beyond_explained = zkl_error_detail()[0] != '\0';                                  \
        (said)->held_negative = zkl_##type##_still_held(handle, -1);                               \
        (said)->negative_explained = zkl_error_detail()[0] != '\0';                                \
        (said)->check_negative = zkl_##type##_check(handle, -1);                                   \
        (said)->check_beyond = zkl_##type##_check(handle, 10 * SESSION_MS);                        \
        (said)->check = zkl_##type##_check(handle, 0);                                             \
        (said)->check_explained = strstr(zkl_error_detail(), #type "_check") != NULL;              \
        (said)->state = zkl_##type##_hold_state(handle, &(said)->reason);                          \
        (said)->state_explained = zkl_error_detail()[0] != '\0';                                   \
        (said)->state_alone = zkl_##type##_hold_state(handle, NULL);                               \
    } while (0)

void lock_ask(struct party *p)
{
    struct zkl_mutex *mutex = p->lock->mutex;
    struct answers *said = &p->said;

    *said = (struct answers){0};
    if (p->permit) {
        ASK(said, permit, p->permit, p->permit);
        said->count = 1;
        said->revoked = zkl_permit_revoke_requested(p->permit);
    } else if (mutex) {
        if (p->lock->multi)
            ASK(said, multi, p->lock->multi, p->lock->multi, FIRST);
        else
            ASK(said, mutex, mutex, mutex);
        said->count = zkl_mutex_hold_count(mutex);
        said->revoked = zkl_mutex_revoke_requested(mutex);
    }
}

int lock_waiting(struct lock *lock, struct zkl_standing *standing)
{
    if (lock->semaphore && zkl_semaphore_waiting(lock->semaphore, NULL) > 0)
        return zkl_semaphore_waiting(lock->semaphore, standing);
    if (lock->second && zkl_mutex_waiting(lock->second, NULL) > 0)
        return zkl_mutex_waiting(lock->second, standing);
    return lock->mutex ? zkl_mutex_waiting(lock->mutex, standing) : 0;
}

int lock_set_callback(struct lock *lock, zkl_hold_fn fn, void *arg)
{
    return lock->kind->is_permit ? zkl_semaphore_set_callback(lock->semaphore, fn, arg)
                                 : zkl_mutex_set_callback(lock->mutex, fn, arg);
}

int lock_free(struct lock *lock)
{
    int rc = zkl_multi_free(lock->multi);
    if (rc == 0)
        rc = lock->rwlock ? zkl_rwlock_free(lock->rwlock) : zkl_mutex_free(lock->mutex);
    if (rc == 0)
        rc = zkl_mutex_free(lock->second);
    if (rc == 0)
        rc = zkl_semaphore_free(lock->semaphore);
    if (rc == 0)
        *lock = (struct lock){0};
    return rc;
}

#define KIND(its_name, its_make, its_has, its_place, its_rival, ...)                               \
    {                                                                                              \
        .name = its_name, .make = its_make, .has = its_has, .place = its_place,                    \
        .rival = its_rival, __VA_ARGS__                                                            \
    }
#define OF_PERMITS .of_handle = true, .parts = {"leases", "locks"}
#define OF_TWO .is_multi = true, .parts = {"a", "b", "b/leases", "b/locks"}

const struct kind kinds[] = {
    KIND("mutex", make_mutex, mutex_has, "", "mutex", .costs = {3, 4, 4, 1}),
    KIND("posting_mutex", make_mutex, mutex_has, "", "mutex", .posts = true, .costs = {3, 4, 4, 1}),
    KIND("sharing_mutex", make_mutex, mutex_has, "", "mutex", .takes_turns = true,
         .costs = {3, 4, 4, 1}),
    KIND("reader", make_reader, mutex_has, "", "writer", .is_shared = true, .costs = {3, 4, 4, 1}),
    KIND("writer", make_writer, mutex_has, "", "writer", .costs = {3, 4, 4, 1}),
    KIND("any_thread_mutex", make_loose, permit_has, "/leases", "any_thread_mutex", OF_PERMITS,
         .costs = {7, 8, 9, 2}),
    KIND("permit", make_permit, permit_has, "/leases", "permit", OF_PERMITS, .is_permit = true,
         .costs = {7, 8, 9, 2}),
    KIND("multi_lock", make_multi, multi_has, "/b", "second", .parts = {"a", "b"}, .is_multi = true,
         .costs = {4, 4, 5, 2}),
    KIND("multi_lock_of_any_thread", make_multi_of_any_thread, mixed_has, "/b/leases",
         "second_of_any_thread", OF_TWO, .costs = {9, 10, 12, 6}),
    KIND("multi_lock_of_permit", make_multi_of_permit, mixed_has, "/b/leases",
         "second_of_any_thread", OF_TWO, .costs = {9, 10, 12, 6}),
    KIND("second", make_second, NULL, NULL, NULL),
    KIND("second_of_any_thread", make_second_of_any_thread, NULL, NULL, NULL, .of_handle = true),
};
const size_t kind_count = sizeof kinds / sizeof *kinds;

/* --- parties ---------------------------------------------------------------------------------- */

void anew(struct party *p)
{
    p->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    for (int i = 0; i < 2; i++) {
        p->grants[i] = (struct zkl_grant)ZKL_GRANT_INIT;
        p->grants[i].token = UNTOUCHED;
    }
}

struct party party_of(struct lock *lock, enum way way)
{
    struct party p = {.lock = lock, .way = way};
    anew(&p);
    if (way == THREAD)
        p.actor = actor_new();
    else
        p.owner = new_owner();
    return p;
}

void party_end(struct party *p)
{
    if (p->actor)
        actor_end(p->actor);
    check_ok(zkl_owner_free(p->owner));
}

static int acquire_here(void *party)
{
    struct party *p = party;
    int rc = lock_acquire(p);
    snprintf(p->detail, sizeof p->detail, "%s", zkl_error_detail());
    return rc;
}

void begin(struct party *p)
{
    if (p->way == THREAD) {
        actor_begin(p->actor, acquire_here, p);
    } else {
        p->started = lock_start(p, note_completion, &p->done);
        snprintf(p->detail, sizeof p->detail, "%s", zkl_error_detail());
    }
}

bool is_done(struct party *p)
{
    return p->way == THREAD ? actor_is_done(p->actor)
                            : p->started != 0 || atomic_load(&p->done.calls) > 0;
}

int result(struct party *p)
{
    if (p->way == THREAD)
        return actor_result(p->actor);
    if (p->started != 0) {
        check_num(p->done.calls, ==, 0);
        return p->started;
    }
    check_wait(is_done(p), WAIT_MS);
    memcpy(p->detail, p->done.detail, sizeof p->detail);
    check_true(!pthread_equal(p->done.thread, pthread_self()));
    return completion_code(&p->done);
}

static int take_now(struct party *p)
{
    begin(p);
    return result(p);
}

/* Questions are the thread's, or those of the owner that a thread acts for. */
static int as_party(struct party *p, actor_fn fn, void *arg)
{
    if (p->way == THREAD)
        return actor_do(p->actor, fn, arg);
    check_true(zkl_owner_use(p->owner) == NULL);
    check_num(zkl_owner_free(p->owner), ==, ZKL_EBUSY); /* a thread would go on with freed memory */
    check_true(strstr(zkl_error_detail(), "uses the owner") != NULL);
    int rc = fn(arg);
    check_true(zkl_owner_use(NULL) == p->owner);
    return rc;
}

int take_here(struct party *p)
{
    anew(p);
    return as_party(p, acquire_here, p);
}

int take(struct party *p)
{
    anew(p);
    return take_now(p);
}

int take_try(struct party *p)
{
    anew(p);
    p->wait.flags = ZKL_WAIT_TRY;
    return take_now(p);
}

int take_for(struct party *p, int64_t ms)
{
    anew(p);
    p->wait.deadline_ns = zkl_now_ns() + ms * INT64_C(1000000);
    return take_now(p);
}

int take_lease(struct party *p, int64_t ms)
{
    anew(p);
    p->wait.lease_ms = ms;
    return take_now(p);
}

int take_with(struct party *p, struct zkl_cancel *cancel)
{
    anew(p);
    p->wait.cancel = cancel;
    return take_now(p);
}

static int release_here(void *party)
{
    struct party *p = party;
    int rc = lock_release(p);
    snprintf(p->detail, sizeof p->detail, "%s", zkl_error_detail());
    return rc;
}

int give(struct party *p)
{
    if (p->way == THREAD)
        return actor_do(p->actor, release_here, p);
    struct completion done = {0};
    int rc = lock_start_release(p, note_completion, &done);
    if (rc != 0)
        return rc;
    check_wait(atomic_load(&done.calls) > 0, WAIT_MS);
    memcpy(p->detail, done.detail, sizeof p->detail);
    return completion_code(&done);
}

struct renewal {
    struct party *party;
    int64_t lease_ms;
};

static int renew_here(void *renewal)
{
    struct renewal *r = renewal;
    return r->party->lock->kind->is_permit ? zkl_permit_renew(r->party->permit, r->lease_ms)
                                           : zkl_mutex_renew(r->party->lock->mutex, r->lease_ms);
}

int renew(struct party *p, int64_t lease_ms)
{
    return as_party(p, renew_here, &(struct renewal){p, lease_ms});
}

static int ask_here(void *party)
{
    lock_ask(party);
    return 0;
}

const struct answers *ask(struct party *p)
{
    as_party(p, ask_here, p);
    return &p->said;
}
