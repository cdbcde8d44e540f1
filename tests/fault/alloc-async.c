/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: one is begun and ends in its callback, or none is. */
#include "alloc.h"

/* rc is what the start said; what the operation came to. */
static int ended(struct completion *done, int rc)
{
    if (rc == 0)
        rc = completion_code(done);
    return rc;
}

static bool close_it(struct fixture *s, int n, int count)
{
    struct zkl_client *client = fault_open(zks_connect_string(server), SESSION_MS);
    struct completion done = {0};

    alloc_arm(n, count);
    int rc = ended(&done, zkl_client_close_async(client, note_completion, &done));
    bool struck = alloc_disarm();
    check_true(rc == 0 || (struck && rc == ZKL_ENOMEM));
    check_ok(zkl_client_free(client));
    alloc_check_works(s, s->client, s->mutex);
    return struck;
}

/* An operation that closes the client needs memory to begin with, and for nothing after that. */
ALLOC_TEST(no_memory_for_a_close_by_operation)
{
    alloc_play(*state, close_it);
}

/* The descriptor of an event loop, and running callbacks, ask for none. */
ALLOC_TEST(an_event_loop_needs_no_memory)
{
    struct zkl_client *client = fault_open(zks_connect_string(server), SESSION_MS);

    alloc_arm(1, 1000000);
    check_num(zkl_client_event_fd(client), >=, 0);
    check_num(zkl_client_dispatch(client, 1), ==, 0);
    check_num(alloc_asked_here(), ==, 0);
    alloc_disarm();
    check_ok(zkl_client_free(client));
}
