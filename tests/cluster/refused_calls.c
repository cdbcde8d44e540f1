/* SPDX-License-Identifier: Apache-2.0 */
#include "refused_calls.h"

void refused_calls_hold(struct refused_calls *e, struct zkl_client *client)
{
    struct zkl_client_options options = cluster_options();

    *e = (struct refused_calls){.client = client};
    goods_make(&e->goods, &options, client, cluster_path("every"));
    goods_hold(&e->goods);
}

void refused_calls_make(struct refused_calls *e, enum goods_where where)
{
    memset(called_times, 0, sizeof called_times);
    called_on = true;
    e->wrong = goods_call_all(&e->goods, where, e->first, sizeof e->first);
    called_on = false;
    if (called_missing() != 0 && e->wrong++ == 0)
        snprintf(e->first, sizeof e->first, "calls were not made");
    if (where != IN_A_CALLBACK)
        return;
    /* A callback may open a client if it does not wait for the connection. */
    struct zkl_client_options options = e->goods.options;
    options.connect_timeout_ms = 0;
    if (zkl_client_open(&e->opened, &options) != 0 && e->wrong++ == 0)
        snprintf(e->first, sizeof e->first, "zkl_client_open without a wait");
}

void refused_calls_check(struct refused_calls *e)
{
    if (e->wrong > 0)
        fail_msg("%d calls were wrong, the first: %s", e->wrong, e->first);
    check_num(e->goods.refused_ms, <, REFUSED_CALLS_MS);
    check_num(zkl_multi_still_held(e->goods.multi, 1), ==, 1);
    check_num(zkl_permit_still_held(e->goods.permit, 1), ==, 1);
    check_num(zkl_semaphore_permits(e->goods.semaphore), ==, 2);
    check_num(zkl_client_get_state(e->client), ==, ZKL_CLIENT_CONNECTED);
    if (e->opened != NULL)
        check_ok(zkl_client_free(e->opened));
    e->opened = NULL;
}

void refused_calls_release(struct refused_calls *e)
{
    goods_let_go(&e->goods);
    goods_free(&e->goods);
}
