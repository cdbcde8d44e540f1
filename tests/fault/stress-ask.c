/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at locks, asking for them and taking them away; figures; wrong calls; forked children. */
#include "stress.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- looking ---------------------------------------------------------------------------------- */

static void check_seen(struct player *p, enum place at, const struct zkl_inspection *seen)
{
    int holders = 0;

    for (size_t i = 0; i < seen->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(seen, i);
        bool half_made = at == AT_ONE || place_room(at) > 1; /* one of its parts is not there yet */
        holders += e->role == ZKL_ENTRY_ROLE_HOLDER && e->access != ZKL_ENTRY_ACCESS_READ;
        if ((e->role == ZKL_ENTRY_ROLE_FOREIGN && !half_made) || e->node_path == NULL ||
            e->owner == NULL || (e->waits_for != ZKL_NO_ENTRY && e->waits_for >= seen->count))
            odd(p, e->node_path != NULL ? e->node_path : "an entry without a path");
    }
    if (seen->kind != ZKL_LOCK_KIND_SEMAPHORE && holders > place_room(at))
        odd(p, "too many holders at one moment");
}

static void ask_for(struct player *p, struct station *s, const struct zkl_entry *e)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    const uint64_t may = MAY_ASK | MAY(ZKL_ENONODE);

    wait.deadline_ns =
        chance(&p->chance, 20) ? 1 : zkl_now_ns() + chance_between(&p->chance, 0, 300) * NS_MS;
    if (chance(&p->chance, 50))
        CALL(p,
             zkl_revoke(s->client, e->node_path, &wait,
                        chance(&p->chance, 50) ? ZKL_INSPECT_FORCE : 0),
             may);
    else
        CALL(p,
             zkl_break(s->client, e->node_path, chance(&p->chance, 50) ? e->czxid : 0, 0,
                       soon_ms(p)),
             may);
}

static void look(struct player *p, struct station *s, enum place at)
{
    const struct zkl_inspection *seen = NULL;

    if (CALL(p, zkl_inspect(s->client, place_path[at], soon_ms(p), &seen), MAY_ASK) != 0)
        return;
    check_seen(p, at, seen);
    if (at == AT_BROKEN && seen->count > 0)
        ask_for(p, s,
                zkl_inspection_entry(seen,
                                     (size_t)chance_between(&p->chance, 0, (int)seen->count - 1)));
    zkl_inspection_free(seen);
}

void act_look(struct player *p, struct station *s, int variant)
{
    static const char gone[] =
        STRESS_TOP "/broken/_c_00000000-0000-4000-8000-000000000000-lock-0000000001";
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.deadline_ns = soon_ns(p);
    if (variant < 2)
        look(p, s,
             variant == 0 ? AT_BROKEN : (enum place)chance_between(&p->chance, 0, PLACES - 1));
    else if (variant == 2) /* 0: an answer was lost, and the next one says that it is deleted */
        CALL(p, zkl_revoke(s->client, gone, &wait, 0),
             MAY_0 | MAY(ZKL_ENONODE) | MAY(ZKL_ETIMEDOUT) | MAY(ZKL_EDISCONNECTED) |
                 MAY(ZKL_ECLOSED));
    else
        CALL(p, zkl_break(s->client, gone, 0, 0, soon_ms(p)),
             MAY(ZKL_ENONODE) | MAY(ZKL_ETIMEDOUT) | MAY(ZKL_EDISCONNECTED) | MAY(ZKL_ECLOSED));
}

/* --- figures ---------------------------------------------------------------------------------- */

static void check_figures(struct player *p, const struct zkl_lock_metrics *m)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < ZKL_HISTOGRAM_BUCKETS; i++)
        sum += m->wait.buckets[i];
    if (sum != m->wait.count || m->acquisitions != m->wait.count)
        odd(p, "figures that don't add up");
    if (CALL(p, zkl_histogram_percentile_ns(&m->wait, 99), MAY_0 | MAY_COUNT) >
        (long long)m->wait.max_ns)
        odd(p, "a percentile above the longest");
    CALL(p, zkl_histogram_bound_ns((size_t)chance_between(&p->chance, 0, 71)), MAY_COUNT);
}

void act_figures(struct player *p, struct station *s, int variant)
{
    struct zkl_client_metrics of_client = ZKL_CLIENT_METRICS_INIT;
    struct zkl_lock_metrics of_lock = ZKL_LOCK_METRICS_INIT;
    char text[20000];

    (void)variant;
    CALL(p, zkl_client_get_state(s->client), MAY_COUNT);
    CALL(p, zkl_client_session_id(s->client) != 0, MAY_0 | MAY_COUNT);
    CALL(p, zkl_client_server(s->client, text, sizeof text),
         MAY_COUNT | MAY(ZKL_EDISCONNECTED) | MAY(ZKL_ECLOSED));
    CALL(p, zkl_client_set_servers(s->client, s->kind == PROXIED ? world->proxied : world->direct),
         MAY_0 | MAY(ZKL_ECLOSED));
    CALL(p, zkl_client_get_metrics(s->client, &of_client), MAY_0);
    CALL(p, zkl_client_get_lock_metrics(s->client, &of_lock), MAY_0);
    check_figures(p, &of_lock);
    CALL(p, zkl_mutex_get_metrics(s->seats[0].mutex, &of_lock), MAY_0);
    check_figures(p, &of_lock);
    CALL(p, zkl_semaphore_get_metrics(s->four, &of_lock), MAY_0);
    check_figures(p, &of_lock);
    long long length = CALL(p, zkl_metrics_prometheus(s->client, text, sizeof text), MAY_COUNT);
    if (strlen(text) !=
        (size_t)(length < (long long)sizeof text ? length : (long long)sizeof text - 1))
        odd(p, "a text of another length");
}

/* --- wrong calls ------------------------------------------------------------------------------ */

void act_wrong(struct player *p, struct station *s, int variant)
{
    struct zkl_mutex *mutex = any_seat(p, s)->mutex;
    struct zkl_standing standing = ZKL_STANDING_INIT;
    int number = 0;
    char node[100];

    (void)variant;
    CALL(p, zkl_mutex_lock_for(mutex, -1), MAY(ZKL_EBADTIMEOUT) | MAY(ZKL_ECLOSED));
    if (strlen(zkl_error_detail()) == 0 || strlen(zkl_version(&number)) == 0)
        odd(p, "no text");
    for (int code = 1; code > -40; code--) {
        if (strlen(zkl_strerror(code)) == 0 || strlen(zkl_error_name(code)) == 0 ||
            (zkl_error_is_retryable(code) && zkl_error_is_lost(code)))
            odd(p, "a code that is none");
    }
    CALL(p, zkl_mutex_lock(NULL), MAY(ZKL_EINVAL));
    CALL(p, zkl_mutex_unlock(s->seats[9].mutex), MAY(ZKL_ENOTOWNER) | MAY(ZKL_ELOST));
    CALL(p, zkl_mutex_node_path(s->seats[9].mutex, node, sizeof node), MAY(ZKL_ENOTOWNER));
    CALL(p, zkl_mutex_renew(s->seats[9].mutex, 10), MAY(ZKL_ENOTOWNER));
    CALL(p, zkl_mutex_free(zkl_rwlock_reader(s->rwlock)), MAY(ZKL_EINVAL));
    CALL(p, zkl_multi_unlock(s->multi[0], NULL), MAY(ZKL_ENOTOWNER) | MAY(ZKL_ELOST));
    CALL(p, zkl_op_cancel(s->client, chance_next(&p->chance)), MAY_0);
    CALL(p, zkl_op_waiting(s->client, p->old_op, &standing), MAY_0 | MAY_COUNT);
}

/* --- children --------------------------------------------------------------------------------- */

/* Each call says there what its header says. One thread there may make none of its own under the thread sanitizer, so
 * act_client opens a client. */
static void call_all(struct player *p, struct goods *g)
{
    char text[500];

    for (int i = 0; i < CALLED_COUNT; i++) {
        const struct call *call = &called_calls[i];
        if (call_ends(call, "_client_open") || (g->permit == NULL && call_is_of(call, ARG_PERMIT)))
            continue;
        calling(p, call->name);
        int64_t answer = goods_call_once(g, call, IN_A_CHILD);
        p->call = NULL;
        const char *wrong = goods_wrong(call, IN_A_CHILD, answer);
        snprintf(text, sizeof text, "%s in a child: %lld: %s", call->name, (long long)answer,
                 wrong);
        if (wrong != NULL)
            odd(p, text);
    }
}

static void child(struct player *p, struct station *s, struct zkl_permit *permit,
                  struct zkl_owner *owner)
{
    int before = world->odd;

    alarm(HANG_MS / 2000);
    p->patient = false;
    struct goods goods = {.client = s->client,
                          .rwlock = s->rwlock,
                          .semaphore = s->four,
                          .permit = permit,
                          .multi = s->multi[0],
                          .owner = owner,
                          .path = STRESS_TOP "/plain",
                          .options.servers = "a:1",
                          .wait = ZKL_WAIT_INIT,
                          .timeout_ms = 1000,
                          .lease_ms = 1000};
    CALL(p, zkl_cancel_new(&goods.cancel), MAY_0);
    goods.mutex = s->seats[0].mutex;
    call_all(p, &goods);
    goods.mutex = s->one;
    call_all(p, &goods);
    if (!UNDER_TSAN)
        act_client(p, NULL, 0);

    _exit(world->odd > before);
}

static void fork_here(struct player *p, struct station *s, struct zkl_permit *permit,
                      struct zkl_owner *owner)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        child(p, s, permit, owner);
    calling(p, "a forked child");
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        char text[100];
        snprintf(text, sizeof text, "a child %d ended with status %x", (int)pid, (unsigned)status);
        odd(p, text);
    }
    p->call = NULL;
}

/* A child has what its parent holds, and can do nothing with it. In the address sanitizer's allocator another
 * thread's lock stays taken in it; gcc's thread sanitizer runs no such children at all. */
void act_fork(struct player *p, struct station *s, int variant)
{
    struct zkl_owner *owner = NULL;
    struct zkl_permit *permit = NULL;
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_mutex *mutex = s->seats[0].mutex;

    (void)variant;
#ifdef __clang__
    if (UNDER_ASAN)
        return;
#else
    if (UNDER_ASAN || UNDER_TSAN)
        return;
#endif
    CALL(p, zkl_owner_new(&owner), MAY_0);
    wait.deadline_ns = soon_ns(p);
    CALL(p, zkl_semaphore_acquire(s->four, 1, &wait, &permit), MAY_WAIT);
    int rc = (int)CALL(p, zkl_mutex_lock_for(mutex, soon_ms(p)), MAY_WAIT);
    fork_here(p, s, permit, owner);
    if (rc == 0)
        CALL(p, zkl_mutex_unlock(mutex), MAY_UNLOCK);
    if (permit != NULL)
        CALL(p, zkl_permit_release(permit), MAY_UNLOCK);
    CALL(p, zkl_owner_free(owner), MAY_0);
}
