/* SPDX-License-Identifier: Apache-2.0 */
/* Moments that a test cannot wait for to come by chance: the driver's own parts are driven into
 * them by hand. */
#include "fault.h"

#include "api/awaited_query.h"
#include "api/place.h"
#include "core/feed.h"
#include "driver/clock.h"

/* --- wakers ----------------------------------------------------------------------------------- */

struct sleeper {
    struct zkl_waker waker;
    struct zkl_driver *driver;
    struct sleeper *again; /* is woken from within our own wake-up */
    int woken;
};

static void on_woken(struct zkl_waker *waker)
{
    struct sleeper *s = (struct sleeper *)waker;
    struct sleeper *again = s->again;

    s->woken++;
    s->again = NULL;
    if (again == NULL)
        return;
    zkl_driver_lock(s->driver);
    zkl_driver_wake(s->driver, &again->waker);
    zkl_driver_unlock(s->driver);
}

/* The test wakes three, and between the first and the second (where another thread could take the
 * mutex) it wakes the second again. */
WORLD_TEST(a_second_wake_up_loses_no_other)
{
    struct zkl_client *client = world_direct(5000);
    struct zkl_driver *d = client->driver;
    struct sleeper s[3] = {0};

    for (int i = 0; i < 3; i++) {
        zkl_waker_init(&s[i].waker, on_woken);
        s[i].driver = d;
    }
    zkl_driver_lock(d);
    for (int i = 0; i < 3; i++)
        zkl_driver_wake(d, &s[i].waker);
    s[0].again = s[2].again = &s[1]; /* whichever end the driver wakes first */
    zkl_driver_unlock(d);
    for (int i = 0; i < 3; i++)
        check_num(s[i].woken, >=, 1);
    for (int i = 0; i < 3; i++)
        zkl_waker_fini(&s[i].waker);
}

/* --- a handle that is opened while the client closes ------------------------------------------ */

__typeof__(calloc) __real_calloc, __wrap_calloc;

static atomic_int stall; /* where the next handle's memory is asked for */

void *__wrap_calloc(size_t n, size_t size)
{
    void *p = __real_calloc(n, size);

    if (n == 1 && size == sizeof(struct zkl_handle))
        fault_stall(&stall);
    return p;
}

static void check_closes(struct zkl_client *client, int threads)
{
    check_closed(zkl_client_close(client, WAIT_MS));
    check_wait(fault_threads() == threads, WAIT_MS);
    world_clear();
    check_wait(flw_connections(zks_host(), zks_port(server, 0)) == 0, WAIT_MS);
}

WORLD_TEST(close_while_the_next_handle_opens_leaves_nothing)
{
    struct zkl_client *client = world_direct(5000);
    int threads = fault_threads() - 4;

    stall = ARMED;
    fault_expire(client, 0);
    check_wait(stall == STALLED, WAIT_MS);
    check_num(zkl_client_close(client, 0), ==, ZKL_ETIMEDOUT);
    stall = OFF;
    check_closes(client, threads);
}

__typeof__(zookeeper_init2) __real_zookeeper_init2, __wrap_zookeeper_init2;
__typeof__(zookeeper_close) __real_zookeeper_close, __wrap_zookeeper_close;

static atomic_int stall_init, stall_close;
static atomic_bool addresses_changed; /* while zookeeper_init2 waited: they were freed */

zhandle_t *__wrap_zookeeper_init2(const char *host, watcher_fn fn, int timeout_ms,
                                  const clientid_t *id, void *context, int flags,
                                  log_callback_fn log)
{
    char before[128];

    snprintf(before, sizeof before, "%s", host);
    fault_stall(&stall_init);
    if (strncmp(before, host, sizeof before - 1) != 0)
        addresses_changed = true;
    return __real_zookeeper_init2(host, fn, timeout_ms, id, context, flags, log);
}

int __wrap_zookeeper_close(zhandle_t *zh)
{
    fault_stall(&stall_close);
    return __real_zookeeper_close(zh);
}

/* It is busy with the first handle when the test closes the client, which drops the third one while
 * libzookeeper still makes it. */
WORLD_TEST(the_undertaker_closes_no_handle_on_its_way)
{
    struct zkl_client *client = world_direct(5000);
    int threads = fault_threads() - 4;

    stall_close = ARMED;
    fault_expire(client, 0);
    check_wait(stall_close == STALLED && fault_connected(client), WAIT_MS);
    stall_init = ARMED;
    fault_expire(client, 0);
    check_wait(stall_init == STALLED, WAIT_MS);
    check_num(zkl_client_close(client, 0), ==, ZKL_ETIMEDOUT);
    stall_close = OFF;
    check_wait(locked(client->driver, !client->driver->graveyard && !client->driver->burying),
               WAIT_MS);
    stall_init = OFF;
    check_closes(client, threads);
    check_num(addresses_changed, ==, false);
}

/* The first handle connects again while the client opens a second one for it, and hears that its
 * session has ended. */
WORLD_TEST(a_second_handle_that_is_not_wanted_any_more_does_not_stay)
{
    int threads = fault_threads() + 4;
    struct proxy *proxy = world_proxy();
    struct zkl_client *client = world_through(proxy, 1000);
    check_ok(proxy_refuse(proxy, true));
    stall = ARMED;
    proxy_cut(proxy);
    check_wait(stall == STALLED, WAIT_MS);
    check_ok(proxy_refuse(proxy, false));
    check_wait(zkl_client_get_state(client) != ZKL_CLIENT_SUSPENDED, WAIT_MS);
    stall = OFF;
    check_wait(fault_connected(client), WAIT_MS);
    check_wait(fault_threads() == threads + 1, WAIT_MS); /* the proxy's */
    check_wait(proxy_connections(proxy) == 1, WAIT_MS);
}

/* --- traces after the close ------------------------------------------------------------------- */

static void count_event(const struct zkl_log_event *event, void *arg)
{
    (void)event;
    ++*(atomic_int *)arg;
}

/* Under a leak checker. */
WORLD_TEST(unlock_after_close_with_traces_frees_the_client)
{
    int threads = fault_threads();
    static atomic_int lines;
    struct zkl_client_options options = fault_client_options(zks_connect_string(server), 5000);

    options.log_fn = count_event;
    options.log_arg = &lines;
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, "/traces");
    check_ok(zkl_mutex_lock(mutex));
    check_closed(zkl_client_close(client, WAIT_MS));
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    world_drop(mutex);
    check_num(atomic_load(&client->refs), ==, 1); /* the user's own */
    world_clear();
    check_wait(fault_threads() <= threads, 2000);
    check_num(lines, >, 0);
}

/* --- a grant that its caller has not seen yet -------------------------------------------------- */

static bool waits(struct zkl_client *client)
{
    zkl_driver_lock(client->driver);
    const struct zkl_place *place = client->waiting;
    bool waits = place && place->contender.machine.state == ZKL_CONTENDER_WAITING &&
                 place->contender.machine.pred_is_exclusive_mutex;
    zkl_driver_unlock(client->driver);
    return waits;
}

/* No call returns 0 with an empty window: between the grant and the waiter's next step the server is found not to let its
 * node be checked. */
WORLD_TEST(a_grant_that_can_not_be_checked_fails)
{
    static const char *const path = "/races/u";
    struct zkl_client *client = world_direct(5000);
    struct zkl_client *other = world_direct(5000);
    struct zkl_mutex *mutex = world_mutex(client, path), *rival = world_mutex(other, path);
    struct actor *actor = world_actor();
    struct wire *wire = world_wire();

    check_ok(zkl_mutex_lock_for(rival, WAIT_MS));
    act_begin(actor, act_lock, mutex, NULL);
    check_wait(waits(client) && fault_proved(client), WAIT_MS);
    zkl_driver_lock(client->driver);
    struct zkl_core *core = &client->driver->core;
    struct zkl_contender *c = &client->waiting->contender;
    core->now = zkl_clock_now();
    zkl_core_feed(
        core, c,
        (struct zkl_event){.type = ZKL_EV_PRED_FIRED, .pred_proof = ZKL_PRED_PROOF_PROVEN});
    check_num(c->machine.state, ==, ZKL_CONTENDER_HOLDING);
    zkl_core_feed_answer(core, c, ZKL_EV_UNCHECKED, ZKL_ANSWER_NOAUTH);
    zkl_driver_unlock(client->driver);
    check_num(act_end(actor, WAIT_MS), ==, ZKL_EACCES);
    check_ok(zkl_mutex_unlock(rival));
    act_begin(actor, act_lock, mutex, NULL);
    actor_passes(actor);
    fault_check_rest(client, wire, path, WAIT_MS);
}

/* Until then a node that may not be checked ends the call: that is how its grant is confirmed. */
static bool holds_one_and_is_next_for_another(struct zkl_client *client)
{
    zkl_driver_lock(client->driver);
    const struct zkl_core *core = &client->driver->core;
    bool settled =
        core->counts[ZKL_COUNT_HEARTBEATS] == 2 && core->counts[ZKL_COUNT_AWAITS_PROOF] == 0;
    zkl_driver_unlock(client->driver);
    return settled;
}

/* Neither does one of several: while a multi-lock without a deadline waits for its second path, READ is taken from its
 * node at the first. */
WORLD_TEST(a_member_that_can_not_be_checked_fails_all)
{
    static const struct wire_acl no_read = {30, "world", "anyone"};
    struct wire *wire = world_wire();
    struct zkl_client *client = world_direct(5000);
    struct zkl_client *other = world_direct(5000);
    struct zkl_mutex *a = world_mutex(client, "/races/m/a"), *b = world_mutex(client, "/races/m/b");
    struct zkl_mutex *rival = world_mutex(other, "/races/m/b");
    struct zkl_member members[2] = {zkl_member_mutex(a), zkl_member_mutex(b)};
    struct zkl_multi *multi = world_multi(client, members, 2);
    struct actor *waiter = world_actor();
    char node[512];

    check_ok(zkl_mutex_lock(rival));
    act_begin(waiter, act_multi_lock, NULL, multi);
    check_wait(holds_one_and_is_next_for_another(client), WAIT_MS);
    fault_only_child(wire, "/races/m/a", node, sizeof node, NULL);
    check_ok(wire_set_acl(wire, node, &no_read, 1));
    check_wait(locked(client->driver, client->driver->core.counts[ZKL_COUNT_UNCHECKED]) == 1,
               WAIT_MS);
    check_ok(zkl_mutex_unlock(rival));
    check_num(act_end(waiter, WAIT_MS), ==, ZKL_EACCES);
}

/* --- a number of permits that is being set ------------------------------------------------------- */

static struct zkl_semaphore *taken_from;
static int taken_rc;

__typeof__(zkl_query_all) __real_zkl_query_all, __wrap_zkl_query_all;

int __wrap_zkl_query_all(struct zkl_client *client, struct zkl_awaited_query *queries, size_t count,
                         int64_t deadline_ns, struct zkl_cancel *cancel)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_permit *permit;
    int rc = __real_zkl_query_all(client, queries, count, deadline_ns, cancel);

    if (taken_from) {
        wait.deadline_ns = zkl_now_ns() + WAIT_MS * INT64_C(1000000);
        taken_rc = zkl_semaphore_acquire(taken_from, 1, &wait, &permit);
        if (taken_rc == 0)
            check_ok(zkl_permit_release(permit));
    }
    return rc;
}

/* Another thread is just setting the number by the same handle. Modes: F43. */
WORLD_TEST(a_first_acquire_beside_a_change_is_no_mismatch)
{
    struct wire *wire = world_wire();
    struct zkl_client *client = world_direct(30000);
    struct zkl_semaphore *semaphore = world_semaphore(client, "/permits", 3, NULL);

    check_ok(wire_create(wire, "/permits", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(wire, "/permits/locks", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(wire, "/permits/leases", "3", WIRE_PERSISTENT, NULL, 0));
    taken_from = semaphore;
    check_ok(zkl_semaphore_set_permits(semaphore, 5, NULL));
    taken_from = NULL;
    check_num(taken_rc, ==, 0);
}
