/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/watch.h"
#include "under_way.h"

/* --- the order of the grants ------------------------------------------------------------------ */

void crowd_queue_init(struct crowd_queue *queue, size_t size)
{
    *queue = (struct crowd_queue){.size = size};
    pthread_mutex_init(&queue->mu, NULL);
    queue->order = calloc(size, sizeof(struct crowd_place *));
    check_true(queue->order != NULL);
}

void crowd_queue_fini(struct crowd_queue *queue)
{
    pthread_mutex_destroy(&queue->mu);
    free(queue->order);
}

static void add(struct crowd_queue *queue, struct crowd_place *place)
{
    pthread_mutex_lock(&queue->mu);
    if (queue->count < queue->size)
        queue->order[queue->count] = place;
    queue->count++;
    pthread_mutex_unlock(&queue->mu);
}

size_t crowd_queue_count(struct crowd_queue *queue)
{
    pthread_mutex_lock(&queue->mu);
    size_t n = queue->count;
    pthread_mutex_unlock(&queue->mu);
    return n;
}

struct crowd_place *crowd_queue_at(struct crowd_queue *queue, size_t i)
{
    pthread_mutex_lock(&queue->mu);
    struct crowd_place *place = i < queue->count && i < queue->size ? queue->order[i] : NULL;
    pthread_mutex_unlock(&queue->mu);
    return place;
}

/* --- what the driver reports ------------------------------------------------------------------ */

static void on_notification(struct zkl_port *port, struct zkl_contender *contender,
                            const struct zkl_notification *news)
{
    struct crowd *crowd = zkl_driver_of(port)->config.arg;
    struct crowd_place *place = (struct crowd_place *)contender;

    if (news->type == ZKL_NOTIFY_GRANTED) {
        place->granted = true;
        place->grants++;
        crowd->granted++;
        if (crowd->queue != NULL)
            add(crowd->queue, place);
    } else if (news->type == ZKL_NOTIFY_FAILED) {
        place->failed = true;
        place->code = news->code;
        crowd->failed++;
    } else if (news->type == ZKL_NOTIFY_ENDED) {
        place->ended = true;
        crowd->ended++;
    }
}

static void on_session(void *arg, unsigned actions)
{
    struct crowd *crowd = arg;

    if (actions & ZKL_SA_LINK_UP)
        crowd->links++;
}

static void show(void *arg, const struct zkl_trace *trace)
{
    char line[ZKL_TRACE_MAX];

    (void)arg;
    zkl_trace_format(trace, line);
    fprintf(stderr, "        %s\n", line);
}

/* --- life ------------------------------------------------------------------------------------- */

struct crowd *crowd_open(const char *servers, int session_ms, size_t size,
                         struct crowd_queue *queue)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);

    check_true(crowd != NULL);
    crowd->queue = queue;
    crowd->size = size;
    crowd->places = calloc(size, sizeof *crowd->places);
    crowd->paths = calloc(size, sizeof *crowd->paths);
    check_true(crowd->places != NULL && crowd->paths != NULL);
    struct zkl_driver_config config = {.servers = strdup(servers),
                                       .chroot = strdup(""),
                                       .session_timeout_ms = session_ms,
                                       .notification = on_notification,
                                       .session = on_session,
                                       .log = getenv("ZKL_FAULT_TRACE") != NULL ? show : NULL,
                                       .arg = crowd};
    check_ok(zkl_driver_new(&crowd->driver, &config));
    check_wait(crowd_connected(crowd), WAIT_MS);
    return crowd;
}

bool crowd_close(struct crowd *crowd)
{
    int64_t deadline = zkl_clock_mono_ns() + WAIT_MS * INT64_C(1000000);
    bool confirmed = zkl_driver_close(crowd->driver, deadline);

    check_num(crowd->ended, ==, crowd->begun);
    zkl_driver_free(crowd->driver);
    for (size_t i = 0; i < crowd->path_count; i++)
        free((char *)crowd->paths[i].text);
    free(crowd->paths);
    free(crowd->places);
    free(crowd);
    return confirmed;
}

static struct zkl_path *path_of(struct crowd *crowd, const char *text)
{
    size_t i = 0;
    while (i < crowd->path_count && strcmp(crowd->paths[i].text, text) != 0)
        i++;
    if (i == crowd->path_count)
        crowd->paths[crowd->path_count++] = zkl_path_of(strdup(text));
    return &crowd->paths[i];
}

struct crowd_place *crowd_acquire(struct crowd *crowd, const char *path)
{
    size_t i = crowd->begun++;
    check_true(i < crowd->size);
    struct zkl_lock_request lock_request = {
        .path = path_of(crowd, path), .data = "crowd", .naming = {.role = ZKL_ROLE_LOCK}};
    struct crowd_place *place = &crowd->places[i];
    place->crowd = crowd;
    zkl_driver_lock(crowd->driver);
    zkl_core_acquire(&crowd->driver->core, zkl_clock_now(), &place->contender, &lock_request);
    zkl_driver_unlock(crowd->driver);
    return place;
}

static void give_back(struct crowd_place *place)
{
    struct zkl_core *core = &place->crowd->driver->core;

    if (place->ended || place->failed)
        return;
    if (place->granted)
        zkl_core_release(core, zkl_clock_now(), &place->contender);
    else
        zkl_core_stop(core, zkl_clock_now(), &place->contender, ZKL_ECANCELED);
}

void crowd_release(struct crowd_place *place)
{
    zkl_driver_lock(place->crowd->driver);
    give_back(place);
    zkl_driver_unlock(place->crowd->driver);
}

void crowd_stop_all(struct crowd *crowd)
{
    /* The last first: whoever is before somebody else is not granted on the way. */
    for (size_t i = crowd->begun; i-- > 0;)
        crowd_release(&crowd->places[i]);
}

/* --- looking ---------------------------------------------------------------------------------- */

size_t crowd_waiting(struct crowd *crowd)
{
    size_t n = 0;

    zkl_driver_lock(crowd->driver);
    for (size_t i = 0; i < crowd->begun; i++) {
        const struct crowd_place *place = &crowd->places[i];
        n += !place->ended && place->contender.machine.state == ZKL_CONTENDER_WAITING;
    }
    zkl_driver_unlock(crowd->driver);
    return n;
}

size_t crowd_watches(struct crowd *crowd)
{
    struct zkl_core *core = &crowd->driver->core;

    zkl_driver_lock(crowd->driver);
    size_t n = core->watch_count;
    for (struct zkl_watch *w = core->removing; w != NULL; w = w->next)
        n++;
    zkl_driver_unlock(crowd->driver);
    return n;
}

int64_t crowd_session(struct crowd *crowd)
{
    return locked(crowd->driver, crowd->driver->core.session.id);
}

size_t crowd_calls(struct crowd *crowd)
{
    return locked(crowd->driver, calls_of(crowd->driver));
}

bool crowd_puts_off(struct crowd *crowd)
{
    return locked(crowd->driver, crowd->driver->core.put_off_mono_ns != INT64_MAX);
}

bool crowd_connected(struct crowd *crowd)
{
    return locked(crowd->driver, zkl_session_connected(&crowd->driver->core.session));
}
