/* SPDX-License-Identifier: Apache-2.0
 *
 * The place of waiting calls in their queues: the answer of a handle, or of an operation, while a
 * call waits for its lock. It sends nothing: the core knows all of it already (core/place.c). This
 * file owns nothing, and reads with the client's mutex. Users call it from any thread, callbacks
 * included. */
#include "core/place.h"
#include "error.h"
#include "op.h"
#include "permit_request.h"
#include "sized.h"

/* Whose waits the query is about: those of one handle, or of one operation. */
struct wanted {
    const struct zkl_mutex *mutex;
    const struct zkl_op *op;
};

static const struct zkl_op *op_of(const struct zkl_place *place)
{
    return place->caller->op;
}

/* A member of a multi-lock may have its lock already while another one waits. */
static bool waits(const struct zkl_place *place)
{
    return !place->bundle || place->contender.machine.state != ZKL_CONTENDER_HOLDING;
}

static bool is_wanted(const struct wanted *wanted, const struct zkl_place *place)
{
    bool is_its = wanted->op ? op_of(place) == wanted->op : place->mutex == wanted->mutex;
    return is_its && waits(place);
}

/* It waits for its turn within this handle: for those of its threads that came before, and for all
 * that the one which queues for them waits for. */
static uint64_t before_in_handle(const struct zkl_place *place)
{
    uint64_t before = 1, beyond = 0;
    for (const struct zkl_local_waiter *w = place->local_waiter.prev; w; w = w->prev)
        before++;
    for (const struct zkl_place *it = place->client->waiting; it; it = it->wait_next) {
        struct zkl_queue_place queue_place = zkl_queue_place_of(&it->contender);
        if (it->mutex == place->mutex && queue_place.before > beyond)
            beyond = queue_place.before;
    }
    return before + beyond;
}

static void fill(struct zkl_standing *standing, const struct zkl_place *place)
{
    struct zkl_queue_place queue_place = zkl_queue_place_of(zkl_contender_in_queue(place));
    struct zkl_standing ours = ZKL_STANDING_INIT;
    ours.since_ns = place->began_ns;
    ours.before = place->local_waiter.waits ? before_in_handle(place) : queue_place.before;
    zkl_text_copy(ours.predecessor, sizeof ours.predecessor, queue_place.predecessor);
    zkl_text_copy(ours.owner, sizeof ours.owner, queue_place.owner);
    zkl_sized_write(standing, &ours, sizeof ours);
}

/* The list has the one that came last first; of a multi-lock so the member that is waited for. */
static int look(struct zkl_client *client, const struct wanted *wanted,
                struct zkl_standing *standing)
{
    const struct zkl_place *first = NULL;
    int count = 0;
    for (const struct zkl_place *it = client->waiting; it; it = it->wait_next) {
        if (!is_wanted(wanted, it))
            continue;
        first = it;
        count++;
    }
    if (first && standing)
        fill(standing, first);
    return count;
}

/* 0, or what is wrong. */
static int check(const struct zkl_client *client, const struct zkl_standing *standing,
                 const char *call)
{
    int rc = zkl_client_check(client, true, call);
    if (rc == 0 && standing &&
        !zkl_sized_is_good(standing, ZKL_SIZED_LEAST(struct zkl_standing, owner)))
        rc = zkl_fail(ZKL_EINVAL, "%s: initialize standing with ZKL_STANDING_INIT", call);
    return rc;
}

static int count_waiting(const struct zkl_mutex *mutex, struct zkl_standing *standing,
                         const char *call)
{
    if (check(mutex->client, standing, call) != 0)
        return 0;
    ZKL_SHIELDED();
    zkl_driver_lock(mutex->client->driver);
    int count = look(mutex->client, &(struct wanted){.mutex = mutex}, standing);
    zkl_driver_unlock(mutex->client->driver);
    zkl_fail_none();
    return count;
}

int zkl_mutex_waiting(struct zkl_mutex *mutex, struct zkl_standing *standing)
{
    if (mutex)
        return count_waiting(mutex, standing, "zkl_mutex_waiting");
    zkl_fail(ZKL_EINVAL, "zkl_mutex_waiting: mutex is NULL");
    return 0;
}

int zkl_semaphore_waiting(struct zkl_semaphore *semaphore, struct zkl_standing *standing)
{
    if (semaphore)
        return count_waiting(&semaphore->base, standing, "zkl_semaphore_waiting");
    zkl_fail(ZKL_EINVAL, "zkl_semaphore_waiting: semaphore is NULL");
    return 0;
}

static bool look_at_op(struct zkl_client *client, uint64_t id, struct zkl_standing *standing)
{
    const struct zkl_op *op = zkl_op_find(client, id);
    return op && look(client, &(struct wanted){.op = op}, standing) > 0;
}

int zkl_op_waiting(struct zkl_client *client, uint64_t op, struct zkl_standing *standing)
{
    static const char call[] = "zkl_op_waiting";
    if (!client)
        zkl_fail(ZKL_EINVAL, "%s: client is NULL", call);
    if (!client || check(client, standing, call) != 0)
        return 0;
    ZKL_SHIELDED();
    zkl_driver_lock(client->driver);
    bool is_waiting = look_at_op(client, op, standing);
    zkl_driver_unlock(client->driver);
    zkl_fail_none();
    return is_waiting;
}
