/* SPDX-License-Identifier: Apache-2.0 */
/* What a session may own: the end of one that owns too much takes an ensemble down for good
 * (ZOOKEEPER-4306). The servers have a small jute.maxbuffer, which moves the edge down to where few
 * nodes are enough. */
#include "fault.h"

#include <signal.h>

#define SESSION_MS lag_session_ms(4000)
#define MAX_BUFFER 80000 /* room for a heartbeat: it checks 128 nodes */
#define EDGE                                                                                       \
    (2 * MAX_BUFFER - 32 - 4 - 12) /* for the paths: less a header, their number, a digest */
#define LONGEST 512                /* of a lock's path */
#define NODE_MORE (4 + 1 + 55)     /* of its node, */
#define COUNTED (NODE_MORE + 1)    /* which the client counts with a minus before its number */
/* So many nodes own EDGE together, and so much is that as the client counts. */
#define EDGE_COUNTED (EDGE + EDGE / (LONGEST + NODE_MORE) + 1)
#define LOCKS_MAX 2000

/* --- the ensemble ----------------------------------------------------------------------------- */

static void start_servers(size_t nodes, int max_buffer)
{
    char err[512] = "", jvm[64];
    struct zks_options options = {.nodes = nodes, .jvm_extra = jvm};

    zks_stop(server);
    server = NULL;
    snprintf(jvm, sizeof jvm, "-Djute.maxbuffer=%d", max_buffer);
    if (zks_start(&server, &options, err, sizeof err) != 0)
        fail_msg("%s", err);
}

static bool runs(size_t node)
{
    return zks_pid(server, node) != 0;
}

static size_t count_ended(void)
{
    size_t ended = 0;
    for (size_t i = 0; i < zks_nodes(server); i++)
        ended += !runs(i);
    return ended;
}

/* Those that run. */
static void restart_all(void)
{
    for (size_t i = 0; i < zks_nodes(server); i++) {
        if (!runs(i))
            continue;
        check_ok(zks_stop_node(server, i));
        check_ok(zks_start_node(server, i));
    }
}

/* All start again with what they wrote, and serve. */
static void check_starts_again(void)
{
    check_num(count_ended(), ==, 0);
    restart_all();
    check_ok(zks_wait_ready(server, ZKS_READY_MS));
    struct zkl_mutex *mutex = world_mutex(world_direct(QUIET_MS), "/ephemerals/after");
    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(mutex));
}

/* --- a client that owns much ------------------------------------------------------------------ */

struct crowd {
    struct zkl_client *client;
    struct zkl_owner *owner; /* of all that it locks: the thread's */
    struct zkl_mutex *mutexes[LOCKS_MAX];
    struct completion granted[LOCKS_MAX];
    size_t count, bytes;
};

static struct crowd *open_crowd(const char *servers, int64_t max)
{
    struct crowd *c = world_alloc(sizeof *c);
    struct zkl_client_options options = fault_client_options(servers, SESSION_MS);

    options.ephemeral_bytes_max = max;
    c->client = world_client_with(&options);
    c->owner = world_owner();
    zkl_owner_use(c->owner);
    return c;
}

static struct zkl_mutex *next_mutex(struct crowd *c, size_t length)
{
    char path[LONGEST + 1];

    check_num(c->count, <, LOCKS_MAX);
    snprintf(path, sizeof path, "/ephemerals/%0*zu", (int)length - 12, c->count);
    return c->mutexes[c->count] = world_mutex(c->client, path);
}

/* The code of locking one more, at a path of this length. */
static int lock_one(struct crowd *c, size_t length)
{
    struct zkl_mutex *mutex = next_mutex(c, length);
    int rc = zkl_mutex_lock_for(mutex, QUIET_MS);

    if (rc == 0) {
        c->count++;
        c->bytes += length + NODE_MORE;
    } else {
        world_drop(mutex);
    }
    return rc;
}

/* So many more of the longest, all under way together. */
static void lock_many(struct crowd *c, size_t n)
{
    size_t first = c->count;

    for (; c->count < first + n; c->count++) {
        struct zkl_mutex *mutex = next_mutex(c, LONGEST);
        c->bytes += LONGEST + NODE_MORE;
        check_ok(zkl_mutex_acquire_async(c->owner, mutex, NULL, NULL, note_completion,
                                         &c->granted[c->count], NULL));
    }
    for (size_t i = first; i < c->count; i++)
        check_ok(completion_code(&c->granted[i]));
}

/* Own exactly so many bytes. */
static void own(struct crowd *c, size_t bytes)
{
    lock_many(c, (bytes - c->bytes) / (LONGEST + NODE_MORE) - 1);
    check_ok(lock_one(c, (bytes - c->bytes) / 2 - NODE_MORE));
    check_ok(lock_one(c, bytes - c->bytes - NODE_MORE));
    check_num(c->bytes, ==, bytes);
}

static void free_crowd(struct crowd *c)
{
    for (size_t i = 0; i < c->count; i++)
        (void)zkl_mutex_unlock(c->mutexes[i]);
    zkl_owner_use(NULL);
    world_clear();
}

/* In a process of its own, which is killed when it owns so many bytes. */
static void own_and_be_killed(size_t bytes, int64_t max)
{
    int ready[2];
    char byte;

    check_ok(pipe(ready));
    pid_t pid = fork();
    if (pid == 0) {
        own(open_crowd(zks_connect_string(server), max), bytes);
        (void)!write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    check_num(pid, >, 0);
    close(ready[1]);
    check_num(read(ready[0], &byte, 1), ==, 1);
    close(ready[0]);
    check_ok(kill(pid, SIGKILL));
    check_num(waitpid(pid, NULL, 0), ==, pid);
}

/* --- each kind of lock ------------------------------------------------------------------------ */

static void check_full(int rc)
{
    check_num(rc, ==, ZKL_EFULL);
    check_true(strstr(zkl_error_detail(), "exceed 130 bytes") != NULL);
    check_true(zkl_error_is_retryable(rc));
}

/* A client owns all that it may. What is held stays so, and what is given back can be used again.
 * */
WORLD_TEST(each_kind_of_lock_is_refused)
{
    struct zkl_client_options options = fault_client_options(zks_connect_string(server), QUIET_MS);
    struct zkl_client *client = NULL;
    struct zkl_permit *permit;
    struct zkl_owner *owner = world_owner();
    struct wire *wire = world_wire();

    options.ephemeral_bytes_max = -1;
    check_num(zkl_client_open(&client, &options), ==, ZKL_EINVAL);
    options.ephemeral_bytes_max = 130; /* not two of them */
    client = world_client_with(&options);
    struct zkl_mutex *held = world_mutex(client, "/kinds"), *other = world_mutex(client, "/kind1");
    struct zkl_member members[] = {zkl_member_mutex(held), zkl_member_mutex(other)};
    struct zkl_rwlock *rwlock = world_rwlock(client, "/kind2", NULL);
    struct zkl_semaphore *semaphore = world_semaphore(client, "/kind3", 2, NULL);
    struct zkl_multi *multi = world_multi(client, members, 2);

    check_full(zkl_multi_lock(multi));
    check_wait(fault_metrics(client).ephemeral_bytes == 0, WAIT_MS);
    check_ok(zkl_mutex_lock(held));
    check_num(fault_metrics(client).ephemeral_bytes, ==, 6 + COUNTED);
    check_full(zkl_mutex_lock(other));
    check_full(zkl_mutex_trylock(other));
    check_full(zkl_mutex_lock(zkl_rwlock_reader(rwlock)));
    check_full(zkl_mutex_lock(zkl_rwlock_writer(rwlock)));
    check_full(zkl_semaphore_acquire(semaphore, 1, NULL, &permit));
    check_num(async_lock(owner, other), ==, ZKL_EFULL);
    check_true(zkl_mutex_still_held(held, 1) == 1);
    check_ok(zkl_mutex_unlock(held));

    check_ok(zkl_mutex_lock(zkl_rwlock_writer(rwlock)));
    check_full(zkl_mutex_lock(zkl_rwlock_reader(rwlock))); /* no downgrade; the write lock stays */
    check_ok(zkl_mutex_unlock(zkl_rwlock_writer(rwlock)));
    check_ok(async_lock(owner, other));
    check_ok(async_unlock(owner, other));
    check_wait(fault_metrics(client).ephemeral_bytes == 0, WAIT_MS);

    check_num(fault_children(wire, "/kind1"), ==, 0);
    check_num(fault_children(wire, "/kind2"), ==, 0);
    check_num(fault_children(wire, "/kind3"), ==, 0);
}

/* --- without the bound ------------------------------------------------------------------------ */

/* One byte above the edge, the server writes what it can't read: it works on, and does not start
 * again. Modes: F83. */
WORLD_TEST(one_byte_too_many_ends_a_server)
{
    start_servers(1, MAX_BUFFER);
    struct crowd *c = open_crowd(zks_connect_string(server), INT64_MAX);
    own(c, EDGE + 1);
    check_closed(zkl_client_close(c->client, WAIT_MS));
    free_crowd(c);
    restart_all();
    check_wait(!runs(0), ZKS_READY_MS);
}

/* Of three, those that have led and written it are lost, until no majority is left: the followers
 * hang up on it, so each leader steps down, and the next one writes it anew. Modes: F83. */
WORLD_TEST(one_byte_too_many_ends_an_ensemble)
{
    start_servers(3, MAX_BUFFER);
    struct crowd *c = open_crowd(zks_connect_string(server), INT64_MAX);
    own(c, EDGE + 1);
    (void)zkl_client_close(c->client, WAIT_MS);
    free_crowd(c);
    check_wait(zks_leader(server) < 0, ZKS_READY_MS);
    for (int n = 1; n <= 5 && count_ended() < 2; n++) {
        restart_all();
        /* To start and elect, to write it and step down: more time with each round. */
        (void)wait_until(count_ended() >= 2 || zks_leader(server) >= 0, 4 * n * SESSION_MS);
        (void)wait_until(count_ended() >= 2 || zks_leader(server) < 0, 4 * n * SESSION_MS);
    }
    check_num(count_ended(), >=, 2);
}

/* --- with it ---------------------------------------------------------------------------------- */

static void close_at_the_edge(void)
{
    struct crowd *c = open_crowd(zks_connect_string(server), EDGE_COUNTED);
    own(c, EDGE);
    check_num(lock_one(c, 20), ==, ZKL_EFULL);
    check_closed(zkl_client_close(c->client, WAIT_MS));
    free_crowd(c);
}

static void expire_at_the_edge(void)
{
    struct crowd *c = open_crowd(zks_connect_string(server), EDGE_COUNTED);
    own(c, EDGE);
    fault_renew_session(c->client);
    for (size_t i = 0; i < c->count; i++) {
        check_num(zkl_mutex_unlock(c->mutexes[i]), ==, ZKL_ELOST);
        world_drop(c->mutexes[i]);
    }
    c->count = c->bytes = 0;
    own(c, EDGE); /* in the next session */
    check_num(lock_one(c, 20), ==, ZKL_EFULL);
    check_ok(zkl_mutex_unlock(c->mutexes[0]));
    check_ok(zkl_mutex_lock_for(c->mutexes[0], QUIET_MS));
    free_crowd(c);
}

/* The session ends by a close, by the loss of the process and by an expiry. Modes: F83. */
WORLD_TEST(the_edge_harms_nobody)
{
    for (size_t nodes = 1; nodes <= 3; nodes += 2) {
        start_servers(nodes, MAX_BUFFER);
        close_at_the_edge();
        own_and_be_killed(EDGE, EDGE_COUNTED);
        expire_at_the_edge();
        /* the killed one's nodes are gone */
        struct wire *wire = fault_wire();
        char path[LONGEST + 1];
        snprintf(path, sizeof path, "/ephemerals/%0*d", LONGEST - 12, 0);
        check_wait(fault_children(wire, path) == 0, WAIT_MS);
        wire_close(wire);
        check_starts_again();
    }
}

/* Modes: F83. */
WORLD_TEST(the_usual_bound_is_below_the_usual_edge)
{
    start_servers(1, 0xfffff);
    struct crowd *c = open_crowd(zks_connect_string(server), 0);
    lock_many(c, 1000000 / (LONGEST + COUNTED));
    check_num(lock_one(c, LONGEST), ==, ZKL_EFULL);
    check_true(strstr(zkl_error_detail(), "exceed 1000000 bytes") != NULL);
    check_closed(zkl_client_close(c->client, WAIT_MS));
    free_crowd(c);
    check_starts_again();
}
