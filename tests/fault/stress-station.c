/* SPDX-License-Identifier: Apache-2.0 */
/* Clients with handles of each kind, which all threads of a process share. Any thread may close one
 * while others are in its calls; the last thread that leaves it frees it, and opens it anew. */
#include "stress.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "api/client.h"
#include "session_of.h"

#define SESSION_MS 6000

struct station stations[STATIONS];
atomic_bool loop_stop;

/* --- callbacks -------------------------------------------------------------------------------- */

/* What waits is refused in them, what does not wait is not. */
static void call_in_callback(struct zkl_client *client)
{
    struct zkl_client_metrics m = ZKL_CLIENT_METRICS_INIT;

    CALLED_BACK(zkl_client_get_metrics(client, &m), MAY_0);
    CALLED_BACK(zkl_client_get_state(client), MAY_COUNT);
    CALLED_BACK(zkl_client_close(client, 1), MAY(ZKL_EINCALLBACK));
    CALLED_BACK(zkl_client_free(client), MAY(ZKL_EINCALLBACK));
}

static void on_state(struct zkl_client *client, enum zkl_client_state state, void *arg)
{
    struct station *s = arg;

    if (state < ZKL_CLIENT_CONNECTING || state > ZKL_CLIENT_CLOSED ||
        state == ZKL_CLIENT_AUTH_FAILED)
        odd(NULL, "a state that can't be");
    call_in_callback(client);
    s->told++;
}

static void on_event(const struct zkl_log_event *event, void *arg)
{
    struct station *s = arg;

    if (event->kind < ZKL_LOG_KIND_SESSION || event->kind > ZKL_LOG_KIND_RESOLVER ||
        event->message == NULL)
        odd(NULL, "an event of no kind");
    if (strlen(event->message) == 0 || strchr(event->message, '\n') != NULL)
        odd(NULL, "a line that is none");
    s->told++;
    s->told += (long)strlen(event->path) + (long)strlen(event->node);
}

static void on_hold(const struct zkl_hold_event *event, void *arg)
{
    struct station *s = arg;

    if (event->state < ZKL_HOLD_HELD || event->state > ZKL_HOLD_REVOKE_REQUESTED ||
        event->node_path == NULL)
        odd(NULL, "a hold's event that can't be");
    if (event->mutex != NULL) {
        CALLED_BACK(zkl_mutex_hold_count(event->mutex), MAY_0);
        CALLED_BACK(zkl_mutex_lock(event->mutex), MAY(ZKL_EINCALLBACK) | MAY(ZKL_ECLOSED));
    }
    if (event->permit != NULL)
        CALLED_BACK(zkl_permit_window_ms(event->permit), MAY_0 | MAY_COUNT);
    s->told++;
}

/* --- opening ---------------------------------------------------------------------------------- */

static void add_seat(struct player *p, struct station *s, size_t at_seat, enum place at, bool weak,
                     const struct zkl_mutex_options *options)
{
    struct seat *seat = &s->seats[at_seat];

    *seat = (struct seat){.at = at, .weak = weak};
    CALL(p, zkl_mutex_new(&seat->mutex, s->client, place_path[at], options), MAY_0);
}

static void make_mutexes(struct player *p, struct station *s)
{
    struct zkl_mutex_options plain = ZKL_MUTEX_OPTIONS_INIT, posted = plain, handed = plain,
                             retained = plain, broken = plain, kazoo = plain, named = plain;

    plain.metrics = 1;
    posted.posted_unlock = 1;
    handed.local_handoffs_max = 3;
    handed.metrics = 1;
    retained.retain_ms = 300;
    broken.revocable = 1;
    kazoo.names = ZKL_NAMES_KAZOO;
    kazoo.owner = "somebody";
    named.names = ZKL_NAMES_NAMED;
    named.name = "one";
    add_seat(p, s, 0, AT_PLAIN, false, &plain);
    add_seat(p, s, 1, AT_PLAIN, false, NULL);
    add_seat(p, s, 2, AT_PLAIN, true, &posted);
    add_seat(p, s, 3, AT_POSTED, true, &posted);
    add_seat(p, s, 4, AT_HANDED, true, &handed);
    add_seat(p, s, 5, AT_RETAINED, true, &retained);
    add_seat(p, s, 6, AT_BROKEN, false, NULL);
    add_seat(p, s, 7, AT_BROKEN, false, &broken);
    add_seat(p, s, 8, AT_KAZOO, false, &kazoo);
    add_seat(p, s, 9, AT_NAMED, false, &named);
    CALL(p, zkl_mutex_set_callback(s->seats[0].mutex, on_hold, s), MAY_0);
    CALL(p, zkl_mutex_set_callback(s->seats[6].mutex, on_hold, s), MAY_0);
}

static void make_others(struct player *p, struct station *s)
{
    struct zkl_lock_options counted = ZKL_LOCK_OPTIONS_INIT;

    counted.metrics = 1;
    CALL(p, zkl_rwlock_new(&s->rwlock, s->client, place_path[AT_HALVES], &counted), MAY_0);
    CALL(p, zkl_semaphore_mutex_new(&s->one, s->client, place_path[AT_ONE], NULL), MAY_0);
    CALL(p, zkl_semaphore_new(&s->four, s->client, place_path[AT_FOUR], 4, &counted), MAY_0);
    CALL(p, zkl_semaphore_new(&s->many, s->client, place_path[AT_MANY], 2, NULL), MAY_0);
    CALL(p, zkl_semaphore_set_callback(s->many, on_hold, s), MAY_0);
    s->seats[10] = (struct seat){.mutex = s->one, .at = AT_ONE};
    s->seats[11] = (struct seat){zkl_rwlock_reader(s->rwlock), AT_HALVES, true, false};
    s->seats[12] = (struct seat){zkl_rwlock_writer(s->rwlock), AT_HALVES, false, false};
}

static void make_multis(struct player *p, struct station *s)
{
    struct zkl_member first[] = {
        zkl_member_mutex(s->seats[0].mutex), zkl_member_mutex(zkl_rwlock_writer(s->rwlock)),
        zkl_member_semaphore(s->four, 1), zkl_member_mutex(s->seats[8].mutex)};
    struct zkl_member second[] = {zkl_member_mutex(s->one), zkl_member_semaphore(s->four, 2),
                                  zkl_member_mutex(s->seats[5].mutex),
                                  zkl_member_mutex(s->seats[4].mutex)};

    s->members[0] = 4;
    s->members[1] = 4;
    CALL(p, zkl_multi_new(&s->multi[0], s->client, first, 4), MAY_0);
    CALL(p, zkl_multi_new(&s->multi[1], s->client, second, 4), MAY_0);
    s->member[0][0] = s->seats[0];
    s->member[0][1] = s->seats[12];
    s->member[0][2] = (struct seat){.at = AT_FOUR};
    s->member[0][3] = s->seats[8];
    s->member[1][0] = s->seats[10];
    s->member[1][1] = (struct seat){.at = AT_FOUR};
    s->member[1][2] = s->seats[5];
    s->member[1][3] = s->seats[4]; /* by its path between two that belong to no thread */
}

void station_open(struct player *p, struct station *s)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    char why[300] = "";

    bool proxied = s->kind == PROXIED || (s->kind == LOOP && chance(&p->chance, 50));
    options.servers = proxied ? world->proxied : world->direct;
    options.session_timeout_ms = SESSION_MS;
    options.owner = s->kind == LOOP ? "a loop" : NULL;
    options.state_fn = on_state;
    options.log_fn = on_event;
    options.state_arg = options.log_arg = s;
    options.log_level = s->kind == STRUCK ? ZKL_LOG_INFO : ZKL_LOG_DEBUG;
    options.errbuf = why;
    options.errbuf_size = sizeof why;
    if (CALL(p, zkl_client_open(&s->client, &options), MAY_0) != 0) {
        fprintf(stderr, "stress: %s\n", why);
        _exit(1);
    }
    s->opened++;
    if (s->kind == LOOP)
        CALL(p, zkl_client_event_fd(s->client), MAY_0 | MAY_COUNT);
    make_mutexes(p, s);
    make_others(p, s);
    make_multis(p, s);
}

/* --- using ------------------------------------------------------------------------------------ */

enum trust station_trust(const struct station *s, const struct seat *seat)
{
    if (s->kind == STRUCK || seat->at == AT_BROKEN)
        return seat->weak ? TRUST_NOTHING : TRUST_SERVER;
    return TRUST_THE_WINDOW;
}

bool station_enter(struct station *s, bool also_closing)
{
    pthread_mutex_lock(&s->mu);
    bool open = !s->gone && (also_closing || !s->closing);
    s->users += open;
    pthread_mutex_unlock(&s->mu);
    return open;
}

struct station *station_take(struct player *p)
{
    struct station *s = &stations[chance_between(&p->chance, 0, STATIONS - 1)];

    return station_enter(s, false) ? s : NULL;
}

/* So that the next one finds it open. */
static void make_anew(struct player *p, struct station *s)
{
    station_end(p, s);
    station_open(p, s);
    pthread_mutex_lock(&s->mu);
    s->closing = s->gone = false;
    pthread_mutex_unlock(&s->mu);
}

void station_leave(struct player *p, struct station *s)
{
    pthread_mutex_lock(&s->mu);
    s->users--;
    bool last = s->closing && s->users == 0;
    s->gone = s->gone || last;
    pthread_mutex_unlock(&s->mu);
    if (last)
        make_anew(p, s);
}

/* The caller is one of its users. */
void station_close(struct player *p, struct station *s, int variant)
{
    pthread_mutex_lock(&s->mu);
    bool first = !s->closing;
    s->closing = true;
    pthread_mutex_unlock(&s->mu);
    if (!first)
        return;
    if (variant == 0) {
        CALL(p, zkl_client_close(s->client, chance_between(&p->chance, 0, 2000)),
             MAY_0 | MAY(ZKL_ETIMEDOUT));
    } else if (variant == 1) {
        s->close_begun = true;
        CALL(p, zkl_client_close_async(s->client, note_completion, &s->closed), MAY_0);
    }
}

/* --- the session's end ------------------------------------------------------------------------ */

void station_strike(struct player *p, struct station *s)
{
    clientid_t id = {0};

    (void)p;
    if (session_of(s->client->driver, &id))
        wire_kill_session(zks_host(), world->port, id.client_id, id.passwd);
}

/* --- the end ---------------------------------------------------------------------------------- */

void station_end(struct player *p, struct station *s)
{
    for (size_t i = 0; i < MULTIS; i++)
        CALL(p, zkl_multi_free(s->multi[i]), MAY_0);
    for (size_t i = 0; i < SEATS - 2; i++)
        CALL(p, zkl_mutex_free(s->seats[i].mutex), MAY_0);
    CALL(p, zkl_rwlock_free(s->rwlock), MAY_0);
    CALL(p, zkl_semaphore_free(s->four), MAY_0);
    CALL(p, zkl_semaphore_free(s->many), MAY_0);
    CALL(p, zkl_client_free(s->client), MAY_0);
    if (s->close_begun) {
        if (s->closed.calls != 1 || (s->closed.code != 0 && s->closed.code != ZKL_ETIMEDOUT))
            odd(p, "an asynchronous close that did not end well");
        s->close_begun = false;
        s->closed.calls = 0;
    }
    s->client = NULL;
}

/* --- the loop --------------------------------------------------------------------------------- */

static void dispatch(struct player *p, struct station *s)
{
    int fd = (int)CALL(p, zkl_client_event_fd(s->client), MAY_0 | MAY_COUNT | MAY(ZKL_ECLOSED));

    if (fd >= 0)
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 20);
    else
        net_nap_ms(2);
    CALL(p, zkl_client_dispatch(s->client, chance_between(&p->chance, 1, 10)),
         MAY_0 | MAY_COUNT | MAY(ZKL_EBUSY));
}

void *station_loop(void *arg)
{
    struct player *p = arg;
    struct station *s = &stations[LOOP];

    while (!loop_stop) {
        if (!station_enter(s, true)) {
            net_nap_ms(1);
            continue;
        }
        dispatch(p, s);
        station_leave(p, s);
    }
    return NULL;
}
