/* SPDX-License-Identifier: Apache-2.0 */
#include "outage.h"

void server_down(void)
{
    check_ok(zks_kill_node(server, 0));
}

void server_back(void)
{
    check_ok(zks_start_node(server, 0));
    cluster_raw_close(NULL);
    check_ok(cluster_raw_open(NULL));
}

struct zkl_client *client_of(int session_ms)
{
    struct zkl_client_options options = cluster_options();

    options.session_timeout_ms = session_ms;
    return cluster_client_with(&options);
}
