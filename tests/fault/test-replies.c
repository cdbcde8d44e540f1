/* SPDX-License-Identifier: Apache-2.0 */
/* What is outstanding as a client is closed. */
#include "bench.h"
#include "under_way.h"

#define SESSION_MS lag_session_ms(6000) /* a busy machine is not to lose it by silence */
#define LATER_MS 50
#define SOON_MS 1000 /* far below the 1.5 s for which libzookeeper waits */

static const char *const path = "/replies/m";

#define REPLY_TEST(name)                                                                           \
    BENCH_TEST_OF(name, bench_make_path(bench_begin(path, SESSION_MS, QUIET_MS)))

#define DRAIN_MS 200 /* by the library, before it closes */
#define MOMENT_MS 20 /* if no caller waits for an answer */

static atomic_int calls_at_close; /* of the handle that is closed */
static _Atomic int64_t closed_ns;

__typeof__(zookeeper_close) __real_zookeeper_close, __wrap_zookeeper_close;

int __wrap_zookeeper_close(zhandle_t *zh)
{
    struct zkl_handle *h = (struct zkl_handle *)zoo_get_context(zh);

    calls_at_close = locked(h->driver, (int)calls_of_handle(h));
    closed_ns = zkl_now_ns();
    return __real_zookeeper_close(zh);
}

/* What is held comes once the close has begun, and nothing is outstanding when libzookeeper closes. On a busy machine that
 * wait may end first. */
static void check_close_waits(struct bench *b, int ms)
{
    int64_t begun_ns = zkl_now_ns();

    calls_at_close = -1;
    act_begin(b->actor, act_close_client, NULL, b->client);
    check_wait(!fault_connected(b->client), WAIT_MS);
    proxy_release(b->proxy);
    check_ok(act_end(b->actor, WAIT_MS));
    if (closed_ns - begun_ns < ms * INT64_C(1000000))
        check_num(calls_at_close, ==, 0);
}

/* libzookeeper can lose and leak what is outstanding when it is closed just as it passes an answer on; so a close that
 * waits for one waits for the keepalive behind it, too. */
REPLY_TEST(a_close_that_gets_an_answer_waits_for_the_keepalives)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.posted_unlock = 1;
    world_drop(b->mutex);
    b->mutex = world_mutex_with(b->client, path, &options);
    check_ok(zkl_mutex_lock_for(b->mutex, WAIT_MS));
    check_ok(proxy_hold_reply(b->proxy, PROXY_DELETE, 1));
    check_ok(proxy_hold_request(b->proxy, PROXY_EXISTS, 1));
    check_ok(zkl_mutex_unlock(b->mutex));
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
    proxy_delay_ms(b->proxy, LATER_MS); /* of what comes from now on: the keepalive's answer */
    check_close_waits(b, DRAIN_MS);
}

REPLY_TEST(a_close_waits_a_moment_for_the_keepalive)
{
    check_ok(proxy_hold_reply(b->proxy, PROXY_EXISTS, 1));
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
    check_close_waits(b, MOMENT_MS);
}

/* A server that is silent may just stand still for some seconds: without the close's request before the link is given up
 * the locks of the client stay for a session timeout. */
REPLY_TEST(a_silent_server_gets_the_close_at_once)
{
    check_ok(proxy_hold_reply(b->proxy, PROXY_EXISTS, 1));
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
    proxy_reset_counts(b->proxy);
    lag_begin();
    act_begin(b->actor, act_close_client, NULL, b->client);
    check_ok(proxy_wait_count(b->proxy, PROXY_CLOSE, 1, WAIT_MS));
    check_num(lag_end_ms(), <, SOON_MS);
    proxy_release(b->proxy);
    check_ok(act_end(b->actor, WAIT_MS));
}
