/* SPDX-License-Identifier: Apache-2.0 */
/* For path.py: nine everyday calls, each some times, with the functions of the library that they enter. The library is
 * built with -finstrument-functions, so it calls the two hooks below. Prints for each cycle "call NAME", and then the
 * addresses in the order of entering, a thread's number before each. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <zklock/zklock.h>

#define CYCLES 12
#define ENTRIES_MAX 20000

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

static struct entry {
    int thread;
    void *function;
} entries[ENTRIES_MAX];
static atomic_size_t entered;
static atomic_bool records;
static atomic_int threads;
static _Thread_local int thread;
static _Thread_local bool watches; /* it looks at what the others do */

void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    if (!records || watches)
        return;
    if (thread == 0)
        thread = ++threads;
    size_t at = atomic_fetch_add(&entered, 1);
    if (at < ENTRIES_MAX)
        entries[at] = (struct entry){thread, function};
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function;
    (void)site;
}

static void check(int rc, const char *what)
{
    if (rc == ZKL_OK)
        return;
    fprintf(stderr, "path.c: %s: %s: %s\n", what, zkl_strerror(rc), zkl_error_detail());
    exit(1);
}

#define must(call) check(call, #call)

static void begin(void)
{
    entered = 0;
    records = true;
}

static void end(const char *name)
{
    records = false;
    if (entered > ENTRIES_MAX)
        check(ZKL_EINVAL, "more calls than there is room for");
    printf("call %s\n", name);
    for (size_t i = 0; i < entered; i++)
        printf("%d %p\n", entries[i].thread, entries[i].function);
}

/* --- a second owner ---------------------------------------------------------------------------- */

/* It has the lock, and lets go when the other one waits for it. */
struct other {
    struct zkl_mutex *mine, *theirs;
    pthread_t thread;
    pthread_barrier_t has_it;
};

static void *hold_until_awaited(void *arg)
{
    struct other *other = arg;
    must(zkl_mutex_lock(other->mine));
    pthread_barrier_wait(&other->has_it);
    pthread_barrier_wait(&other->has_it); /* they record */
    watches = true;
    struct zkl_standing standing = ZKL_STANDING_INIT;
    for (;;) {
        int waiting = zkl_mutex_waiting(other->theirs, &standing);
        if (waiting > 0 && (other->mine == other->theirs || standing.before > 0))
            break;
        usleep(1000);
    }
    watches = false;
    must(zkl_mutex_unlock(other->mine));
    return NULL;
}

static void behind(struct zkl_mutex *mine, struct zkl_mutex *theirs, const char *name)
{
    struct other other = {.mine = theirs, .theirs = mine};
    pthread_barrier_init(&other.has_it, NULL, 2);
    if (pthread_create(&other.thread, NULL, hold_until_awaited, &other) != 0)
        check(ZKL_ENOMEM, "pthread_create");
    pthread_barrier_wait(&other.has_it);
    begin();
    pthread_barrier_wait(&other.has_it);
    must(zkl_mutex_lock(mine));
    pthread_join(other.thread, NULL);
    end(name);
    pthread_barrier_destroy(&other.has_it);
    must(zkl_mutex_unlock(mine));
}

/* --- the calls --------------------------------------------------------------------------------- */

struct world {
    struct zkl_client *client, *second;
    struct zkl_mutex *mutex, *rival, *retained, *turns, *one, *two;
    struct zkl_rwlock *rwlock, *cached;
    struct zkl_semaphore *semaphore;
    struct zkl_multi *multi;
};

static void open_world(struct world *w)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_mutex_options retains = ZKL_MUTEX_OPTIONS_INIT, turns = ZKL_MUTEX_OPTIONS_INIT;
    options.servers = getenv("ZKLOCK_SERVERS");
    options.session_timeout_ms = 30000; /* so that few calls of a heartbeat are among the others */
    retains.retain_ms = 3600000;
    turns.local_handoffs_max = 1000;
    must(zkl_client_open(&w->client, &options));
    must(zkl_client_open(&w->second, &options));
    must(zkl_mutex_new(&w->mutex, w->client, "/path/mutex", NULL));
    must(zkl_mutex_new(&w->rival, w->second, "/path/mutex", NULL));
    must(zkl_mutex_new(&w->retained, w->client, "/path/retained", &retains));
    must(zkl_mutex_new(&w->turns, w->client, "/path/turns", &turns));
    must(zkl_mutex_new(&w->one, w->client, "/path/one", NULL));
    must(zkl_mutex_new(&w->two, w->client, "/path/two", NULL));
    must(zkl_rwlock_new(&w->rwlock, w->client, "/path/rwlock", NULL));
    must(zkl_rwlock_new(&w->cached, w->client, "/path/cached", NULL));
    must(zkl_rwlock_retain_readers(w->cached, 3600000));
    must(zkl_semaphore_new(&w->semaphore, w->client, "/path/semaphore", 3, NULL));
    struct zkl_member members[2] = {zkl_member_mutex(w->one), zkl_member_mutex(w->two)};
    must(zkl_multi_new(&w->multi, w->client, members, 2));
}

static void close_world(struct world *w)
{
    zkl_multi_free(w->multi);
    zkl_semaphore_free(w->semaphore);
    zkl_rwlock_free(w->cached);
    zkl_rwlock_free(w->rwlock);
    struct zkl_mutex *mutexes[] = {w->mutex, w->rival, w->retained, w->turns, w->one, w->two};
    for (size_t i = 0; i < sizeof mutexes / sizeof *mutexes; i++)
        zkl_mutex_free(mutexes[i]);
    must(zkl_client_close(w->client, 10000));
    must(zkl_client_close(w->second, 10000));
    zkl_client_free(w->client);
    zkl_client_free(w->second);
}

static void lock_and_unlock(struct zkl_mutex *mutex, const char *name)
{
    begin();
    must(zkl_mutex_lock(mutex));
    must(zkl_mutex_unlock(mutex));
    end(name);
}

static void cycle(struct world *w)
{
    struct zkl_permit *permit;

    begin();
    must(zkl_mutex_lock(w->mutex));
    end("lock, free");
    begin();
    must(zkl_mutex_unlock(w->mutex));
    end("unlock");
    behind(w->mutex, w->rival, "lock behind another client, its unlock included");
    lock_and_unlock(zkl_rwlock_reader(w->rwlock), "read lock + unlock");
    lock_and_unlock(w->retained, "retained mutex, lock + unlock");
    lock_and_unlock(zkl_rwlock_reader(w->cached), "retained reader, lock + unlock");
    begin();
    must(zkl_semaphore_acquire(w->semaphore, 1, NULL, &permit));
    must(zkl_permit_release(permit));
    end("semaphore, 1 of 3, acquire + release");
    begin();
    must(zkl_multi_lock(w->multi));
    must(zkl_multi_unlock(w->multi, NULL));
    end("multi-lock of 2, lock + unlock");
    behind(w->turns, w->turns, "local hand-off");
}

int main(void)
{
    struct world world;
    open_world(&world);
    printf("at %p\n", (void *)(uintptr_t)&zkl_client_open);
    for (int i = 0; i < CYCLES; i++)
        cycle(&world);
    close_world(&world);
    return 0;
}
