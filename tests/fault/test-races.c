/* SPDX-License-Identifier: Apache-2.0 */
/* Moments that a test cannot wait for to come by chance: the driver's own parts are driven into
 * them by hand. */
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client.h"
#include "api/place.h"
#include "core/feed.h"
#include "driver/clock.h"
#include "driver/handle.h"

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

/* No wake-up is lost while another waiter is woken a second time: the test wakes three, and between
 * the first and the second (where another thread could take the mutex) it wakes the second
 * again. */
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

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static atomic_int stall; /* 1: the next handle's memory is asked for: wait; 2: it waits */

static void stall_one(atomic_int *gate)
{
    int one = 1;

    if (atomic_compare_exchange_strong(gate, &one, 2))
        wait_until(*gate == 0, WAIT_MS);
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *p = __real_calloc(n, size);

    if (n == 1 && size == sizeof(struct zkl_handle))
        stall_one(&stall);
    return p;
}

/* A client that is closed while it opens its next handle leaves neither threads nor a session
 * behind. The test stops the opening of the expired client's new handle, closes the client, and
 * lets the opening go on. */
WORLD_TEST(close_while_the_next_handle_opens_leaves_nothing)
{
    struct zkl_client *client = world_direct(5000);
    int threads = fault_threads() - 4;

    stall = 1;
    fault_expire(client, 0);
    check_wait(stall == 2, WAIT_MS);
    check_num(zkl_client_close(client, 0), ==, ZKL_ETIMEDOUT);
    stall = 0;
    check_closed(zkl_client_close(client, WAIT_MS));
    check_wait(fault_threads() == threads, 2000);
    world_clear();
    check_wait(flw_connections(zks_host(), zks_port(server, 0)) == 0, 5000);
}

zhandle_t *__real_zookeeper_init2(const char *host, watcher_fn fn, int timeout_ms,
                                  const clientid_t *id, void *context, int flags,
                                  log_callback_fn log);
zhandle_t *__wrap_zookeeper_init2(const char *host, watcher_fn fn, int timeout_ms,
                                  const clientid_t *id, void *context, int flags,
                                  log_callback_fn log);
int __real_zookeeper_close(zhandle_t *zh);
int __wrap_zookeeper_close(zhandle_t *zh);

static atomic_int stall_init, stall_close; /* 1: the next call waits; 2: it waits */
static atomic_bool addresses_changed;      /* while zookeeper_init2 waited: they were freed */

zhandle_t *__wrap_zookeeper_init2(const char *host, watcher_fn fn, int timeout_ms,
                                  const clientid_t *id, void *context, int flags,
                                  log_callback_fn log)
{
    char before[128];

    snprintf(before, sizeof before, "%s", host);
    stall_one(&stall_init);
    if (strncmp(before, host, sizeof before - 1) != 0)
        addresses_changed = true;
    return __real_zookeeper_init2(host, fn, timeout_ms, id, context, flags, log);
}

int __wrap_zookeeper_close(zhandle_t *zh)
{
    stall_one(&stall_close);
    return __real_zookeeper_close(zh);
}

static bool all_are_closed(struct zkl_client *client)
{
    return locked(client->driver, !client->driver->graveyard && !client->driver->burying);
}

/* The undertaker closes no handle that libzookeeper still makes. The undertaker is busy with the
 * first handle when the test closes the client, which drops the third handle on its way. Then the
 * undertaker continues, and after it the opening of the third one. */
WORLD_TEST(the_undertaker_closes_no_handle_on_its_way)
{
    struct zkl_client *client = world_direct(5000);
    int threads = fault_threads() - 4;

    stall_close = 1;
    fault_expire(client, 0);
    check_wait(stall_close == 2 && zkl_client_get_state(client) == ZKL_CLIENT_CONNECTED, WAIT_MS);
    stall_init = 1;
    fault_expire(client, 0);
    check_wait(stall_init == 2, WAIT_MS);
    check_num(zkl_client_close(client, 0), ==, ZKL_ETIMEDOUT);
    stall_close = 0;
    check_wait(all_are_closed(client), WAIT_MS);
    stall_init = 0;
    check_closed(zkl_client_close(client, WAIT_MS));
    check_num(addresses_changed, ==, false);
    check_wait(fault_threads() == threads, WAIT_MS);
    world_clear();
    check_wait(flw_connections(zks_host(), zks_port(server, 0)) == 0, WAIT_MS);
}

/* The first handle connects again while the client opens a second one for it: the second is not needed
 * any more, and must not stay. The link is down long enough for the client to try a second handle, whose
 * opening the test stops. The first one hears that its session has ended. */
WORLD_TEST(a_second_handle_that_is_not_wanted_any_more_does_not_stay)
{
    int threads = fault_threads() + 4;

    struct proxy *proxy = world_proxy();
    struct zkl_client *client = world_through(proxy, 1000);
    check_ok(proxy_refuse(proxy, true));
    stall = 1;
    proxy_cut(proxy);
    check_wait(stall == 2, WAIT_MS);
    check_ok(proxy_refuse(proxy, false));
    check_wait(zkl_client_get_state(client) != ZKL_CLIENT_SUSPENDED, WAIT_MS);
    stall = 0;
    check_wait(zkl_client_get_state(client) == ZKL_CLIENT_CONNECTED, WAIT_MS);
    check_wait(fault_threads() == threads + 1, WAIT_MS); /* the proxy's */
    check_wait(proxy_connections(proxy) == 1, WAIT_MS);
}

/* --- traces after the close ------------------------------------------------------------------- */

static void count_event(const struct zkl_log_event *event, void *arg)
{
    (void)event;
    ++*(atomic_int *)arg;
}

/* A hold that is given back after the close is the last thing of its client, traces or not: with a
 * log callback lock, close, unlock, free; everything ends (under a leak checker: and is freed). */
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

/* Goal: no call returns 0 with an empty window. Method: between the grant and the waiter's next step the server
 * is found not to let its node be checked. */
WORLD_TEST(a_grant_that_can_not_be_checked_fails)
{
    static const char *const path = "/races/u";
    struct zkl_client *client = world_direct(5000);
    struct zkl_client *other = world_direct(5000);
    struct zkl_mutex *mutex = world_mutex(client, path), *rival = world_mutex(other, path);
    struct actor *actor = world_actor();
    struct wire *wire = world_wire();

    check_ok(zkl_mutex_lock_for(rival, WAIT_MS));
    actor_begin(actor, act_lock, mutex, NULL);
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
    check_num(actor_end(actor, WAIT_MS), ==, ZKL_EACCES);
    check_ok(zkl_mutex_unlock(rival));
    check_ok(actor_do(actor, act_lock, mutex, NULL));
    check_ok(actor_do(actor, act_unlock, mutex, NULL));
    fault_check_rest(client, wire, path, WAIT_MS);
}

/* All but READ stays. */
static void forbid(struct wire *w, const char *node)
{
    const struct wire_acl acl = {.perms = 30, .scheme = "world", .id = "anyone"};
    check_ok(wire_set_acl(w, node, &acl, 1));
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

static size_t unchecked(struct zkl_client *client)
{
    return locked(client->driver, client->driver->core.counts[ZKL_COUNT_UNCHECKED]);
}

/* Goal: neither does one of several. Method: while a multi-lock without a deadline waits for its second path, READ is taken
 * from its node at the first. */
WORLD_TEST(a_member_that_can_not_be_checked_fails_all)
{
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
    actor_begin(waiter, act_multi_lock, NULL, multi);
    check_wait(holds_one_and_is_next_for_another(client), WAIT_MS);
    fault_only_child(wire, "/races/m/a", node, sizeof node, NULL);
    forbid(wire, node);
    check_wait(unchecked(client) == 1, WAIT_MS);
    check_ok(zkl_mutex_unlock(rival));
    check_num(actor_end(waiter, WAIT_MS), ==, ZKL_EACCES);
}
