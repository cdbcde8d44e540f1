/* SPDX-License-Identifier: Apache-2.0 */
#include "outage.h"

#define SLACK_MS 2000 /* a busy machine */

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

struct zkl_client *world_client_of(int session_ms)
{
    struct zkl_client_options options = cluster_options();

    options.session_timeout_ms = session_ms;
    return world_client_with(&options);
}

int64_t took_begin(void)
{
    lag_begin();
    return net_now_ms();
}

void check_took(int64_t start_ms, int least, int most)
{
    int64_t ms = net_now_ms() - start_ms;

    check_num(lag_end_ms(), <=, most + SLACK_MS);
    check_num(ms, >=, least);
}

bool was_late(int rc)
{
    return (rc == ZKL_ELOST || rc == ZKL_EUNCONFIRMED || rc == ZKL_EDOUBT) && lag_is_slow();
}

int state_count(struct scene *s, enum zkl_hold_state state)
{
    int n = 0;

    for (size_t i = 0; i < noted(&s->notes); i++)
        n += s->notes.list[i].state == state;
    return n;
}

struct scene *scene_begin(const char *name, int session_ms)
{
    struct scene *s = world_alloc(sizeof *s);

    *s = (struct scene){.path = cluster_path(name), .notes = NOTES_INIT};
    s->client = world_client_of(session_ms);
    s->other = world_client_of(session_ms);
    s->mutex = world_mutex(s->client, s->path);
    s->others = world_mutex(s->other, s->path);
    s->actor = world_actor();
    s->take = take_of(s->others);
    check_ok(zkl_mutex_set_callback(s->mutex, take_note, &s->notes));
    return s;
}

void scene_end(struct scene *s)
{
    int64_t end_ms = net_now_ms() + WAIT_MS;
    int rc;
    do {
        check_ok(zkl_mutex_lock_for(s->mutex, WAIT_MS));
        rc = zkl_mutex_unlock(s->mutex);
    } while (was_late(rc) && net_now_ms() < end_ms);
    check_ok(rc);
    check_wait(cluster_children(s->path) == 0, WAIT_MS);
}

void check_others_unlock(struct scene *s)
{
    int rc = actor_do(s->actor, do_unlock, s->others);

    if (!was_late(rc))
        check_ok(rc);
}

void begin_waiting(struct scene *s)
{
    actor_begin(s->actor, do_acquire, &s->take);
    check_wait(cluster_children(s->path) == 2, WAIT_MS);
}
