/* SPDX-License-Identifier: Apache-2.0 */
/* The nth request for memory is refused, for every n, in every public call. That it is every one is
 * checked: calls are counted while requests are refused. */
#include "alloc.h"

#include <string.h>

/* --- calls that need none --------------------------------------------------------------------- */

struct held {
    struct zkl_rwlock *rwlock;
    struct zkl_semaphore *semaphore;
    struct zkl_permit *permit;
    struct zkl_multi *multi;
    struct zkl_mutex *spare;
    struct zkl_cancel *cancel;
    const struct zkl_inspection *seen;
};

static void hold_all(struct fixture *s, struct held *h)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_lock_options counted = ZKL_LOCK_OPTIONS_INIT;

    counted.metrics = 1;
    check_ok(zkl_rwlock_new(&h->rwlock, s->client, "/alloc/halves", NULL));
    check_ok(zkl_semaphore_new(&h->semaphore, s->client, "/alloc/permits", 2, &counted));
    check_ok(zkl_cancel_new(&h->cancel));
    h->spare = fault_mutex(s->client, "/alloc/spare");
    struct zkl_member members[] = {zkl_member_mutex(s->mutex),
                                   zkl_member_mutex(zkl_rwlock_writer(h->rwlock))};
    check_ok(zkl_multi_new(&h->multi, s->client, members, 2));
    check_ok(zkl_multi_lock(h->multi));
    check_ok(zkl_semaphore_acquire(h->semaphore, 1, &wait, &h->permit));
    check_ok(zkl_inspect(s->client, alloc_path, WAIT_MS, &h->seen));
}

static void ask_mutex(struct zkl_mutex *mutex)
{
    struct zkl_grant grant = ZKL_GRANT_INIT;
    char node[300];

    check_ok(zkl_mutex_acquire(mutex, NULL, &grant)); /* again */
    check_ok(zkl_mutex_unlock(mutex));
    check_num(zkl_mutex_still_held(mutex, 1), ==, 1);
    check_ok(zkl_mutex_check(mutex, 1));
    check_num(zkl_mutex_hold_count(mutex), ==, 1);
    check_num(zkl_mutex_token(mutex), >, 0);
    check_num(zkl_mutex_window_ms(mutex), >, 0);
    check_num(zkl_mutex_hold_state(mutex, NULL), ==, ZKL_HOLD_HELD);
    check_ok(zkl_mutex_waiting(mutex, NULL));
    check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
    check_ok(zkl_mutex_set_callback(mutex, NULL, NULL));
    check_ok(zkl_mutex_renew(mutex, QUIET_MS));
    check_ok(zkl_mutex_revoke_requested(mutex));
}

static void ask_permit(struct zkl_permit *permit)
{
    char node[300];

    check_num(zkl_permit_still_held(permit, 1), ==, 1);
    check_ok(zkl_permit_check(permit, 1));
    check_num(zkl_permit_token(permit), >, 0);
    check_num(zkl_permit_window_ms(permit), >, 0);
    check_num(zkl_permit_hold_state(permit, NULL), ==, ZKL_HOLD_HELD);
    check_num(zkl_permit_node_path(permit, node, sizeof node), >, 0);
    check_ok(zkl_permit_renew(permit, QUIET_MS));
    check_ok(zkl_permit_revoke_requested(permit));
}

static void ask_figures(struct fixture *s, const struct held *h)
{
    struct zkl_client_metrics of_client = ZKL_CLIENT_METRICS_INIT;
    struct zkl_lock_metrics of_lock = ZKL_LOCK_METRICS_INIT;

    check_ok(zkl_client_get_metrics(s->client, &of_client));
    check_ok(zkl_client_get_lock_metrics(s->client, &of_lock));
    check_num(of_lock.held, ==, 3);
    check_num(zkl_mutex_get_metrics(s->mutex, &of_lock), ==, ZKL_EINVAL); /* made without */
    check_ok(zkl_semaphore_get_metrics(h->semaphore, &of_lock));
    check_num(zkl_histogram_percentile_ns(&of_lock.wait, 50), <=, of_lock.wait.max_ns);
    check_num(zkl_histogram_bound_ns(1), ==, 1000);
}

static void ask_all(struct fixture *s, const struct held *h)
{
    int number = 0;
    char node[1024];

    check_true(strlen(zkl_version(&number)) > 0);
    check_true(strlen(zkl_strerror(ZKL_ENOMEM)) > 0);
    check_text(zkl_error_name(ZKL_ENOMEM), "ZKL_ENOMEM");
    check_num(zkl_mutex_lock_for(s->mutex, -1), ==, ZKL_EBADTIMEOUT);
    check_true(strstr(zkl_error_detail(), "-1") != NULL);
    check_num(zkl_error_is_retryable(ZKL_ENOMEM), ==, 1);
    check_num(zkl_error_is_lost(ZKL_ENOMEM), ==, 0);
    check_num(zkl_now_ns(), >, 0);
    check_num(zkl_cancel_is_set(h->cancel), ==, 0);
    zkl_cancel_set(h->cancel);
    check_num(zkl_client_get_state(s->client), ==, ZKL_CLIENT_CONNECTED);
    check_num(zkl_client_session_id(s->client), !=, 0);
    check_num(zkl_client_server(s->client, node, sizeof node), >, 0);
    check_ok(zkl_op_waiting(s->client, 1, NULL));
    ask_mutex(s->mutex);
    check_true(zkl_rwlock_reader(h->rwlock) != zkl_rwlock_writer(h->rwlock));
    check_num(zkl_semaphore_permits(h->semaphore), ==, 2);
    check_ok(zkl_semaphore_waiting(h->semaphore, NULL));
    check_ok(zkl_semaphore_set_callback(h->semaphore, NULL, NULL));
    ask_permit(h->permit);
    check_num(zkl_multi_still_held(h->multi, 1), ==, 1);
    check_ok(zkl_multi_check(h->multi, 1));
    check_num(zkl_multi_window_ms(h->multi), >, 0);
    check_num(zkl_multi_hold_state(h->multi, NULL), ==, ZKL_HOLD_HELD);
    check_num(zkl_multi_token(h->multi, 1), >, 0);
    check_num(zkl_multi_node_path(h->multi, 1, node, sizeof node), >, 0);
    struct zkl_guard guards[2];
    check_ok(zkl_guard_mutex_path(s->mutex, 1, NULL, &guards[0]));
    check_ok(zkl_guard_permit_path(h->permit, 1, NULL, &guards[0]));
    check_num(zkl_guard_multi_paths(h->multi, 1, NULL, guards, 2), ==, 2);
    ask_figures(s, h);
}

/* Calls that only look, set or free something, and a re-entry, ask for no memory at all. */
static void these_calls_need_no_memory(void **state)
{
    struct fixture *s = *state;
    struct held h;

    hold_all(s, &h);
    alloc_arm(1, 1000000);
    ask_all(s, &h);
    check_num(zkl_mutex_free(s->mutex), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_free(h.spare));
    zkl_inspection_free(h.seen);
    zkl_cancel_free(h.cancel);
    int before = alloc_asked_here();
    alloc_disarm();
    check_num(before, ==, 0);

    check_ok(zkl_multi_unlock(h.multi, NULL));
    check_ok(zkl_permit_release(h.permit));
    alloc_arm(1, 1000000);
    check_ok(zkl_multi_free(h.multi));
    check_ok(zkl_rwlock_free(h.rwlock));
    check_ok(zkl_semaphore_free(h.semaphore));
    check_num(alloc_asked_here(), ==, 0);
    alloc_disarm();
}

/* Every function that the library exports was called while requests were refused, in one of the
 * tests of this program: alone this one fails. */
static void that_was_every_call(void **state)
{
    (void)state;
    check_num(called_missing(), ==, 0);
}

/* --- main ------------------------------------------------------------------------------------- */

static size_t add(struct CMUnitTest *all, size_t count, const struct CMUnitTest *part, size_t n)
{
    memcpy(all + count, part, n * sizeof *part);
    return count + n;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest last[] = {
        ALLOC_TEST(these_calls_need_no_memory),
        cmocka_unit_test(that_was_every_call),
    };
    struct CMUnitTest tests[50];
    size_t n = add(tests, 0, alloc_mutex_tests, alloc_mutex_count);

    n = add(tests, n, alloc_kinds_tests, alloc_kinds_count);
    n = add(tests, n, alloc_ask_tests, alloc_ask_count);
    n = add(tests, n, alloc_async_tests, alloc_async_count);
    n = add(tests, n, last, sizeof last / sizeof last[0]);
    return fault_run(argc, argv, tests, n, NULL);
}
