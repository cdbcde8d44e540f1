/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks: what is called when, and what may be called from within one. */
#include "refused_calls.h"

/* Each call of the mutex's callback waits at the gate. */
static void hold_up(struct notes *notes, sem_t *gate, struct zkl_mutex *mutex)
{
    check_ok(sem_init(gate, 0, 0));
    notes->gate = gate;
    check_ok(zkl_mutex_set_callback(mutex, take_note, notes));
}

static int64_t window_end(struct zkl_mutex *mutex)
{
    return net_now_ms() + zkl_mutex_window_ms(mutex);
}

/* Goal: not even for what was queued before. Method: the first call is held up until two more states are queued, the
 * second call frees. */
WORLD_TEST(nothing_is_called_after_a_free_within_the_callback)
{
    static struct notes notes = NOTES_INIT;
    static sem_t gate;
    struct locker l = locker_behind(cluster_path("free-within"), NULL, SESSION_MS);

    hold_up(&notes, &gate, l.mutex);
    notes.free_at = 2;
    check_ok(zkl_mutex_lock(l.mutex));
    int64_t end = window_end(l.mutex);
    net_nap_ms(20); /* so that a new proof shows in milliseconds */
    proxy_cut(l.proxy);
    check_wait(noted(&notes) == 1, WAIT_MS); /* SUSPECT; HELD is queued behind it */
    check_wait(window_end(l.mutex) > end + 10, WAIT_MS);
    proxy_cut(l.proxy);
    check_wait(zkl_client_get_state(l.client) != ZKL_CLIENT_CONNECTED, WAIT_MS); /* SUSPECT again */
    zkl_mutex_unlock(l.mutex);
    for (int i = 0; i < 8; i++)
        sem_post(&gate);
    check_wait(noted(&notes) >= 2 && running(&notes) == 0, WAIT_MS);
    world_forget(l.mutex);
    world_drop(l.client); /* after it no callback runs */
    check_ok(notes.freed);
    check_num(noted(&notes), ==, 2);
}

struct other {
    struct zkl_mutex *mutex;
    struct notes *notes;
    size_t running_after;
    int rc;
    sem_t done;
};

static void free_the_other(const struct zkl_hold_event *event, void *arg)
{
    struct other *other = arg;

    (void)event;
    other->rc = zkl_mutex_free(other->mutex);
    other->running_after = running(other->notes);
    sem_post(&other->done);
}

static void delete_node_of(struct zkl_mutex *mutex)
{
    check_ok(wire_delete(raw, node_of(mutex), -1));
}

/* Goal: two callbacks that waited for each other would wait forever. Method: the mutex's callback blocks until the other
 * client's is done. */
WORLD_TEST(free_from_another_clients_callback_is_refused)
{
    static struct notes notes = NOTES_INIT;
    static struct other other;
    static sem_t gate;
    struct zkl_mutex *mutex = world_mutex(world_client(), cluster_path("free-a"));
    struct zkl_mutex *trigger = world_mutex(world_client(), cluster_path("free-b"));

    other = (struct other){.mutex = mutex, .notes = &notes, .rc = 1};
    sem_init(&other.done, 0, 0);
    hold_up(&notes, &gate, mutex);
    check_ok(zkl_mutex_set_callback(trigger, free_the_other, &other));
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_lock(trigger));
    delete_node_of(mutex);
    check_wait(running(&notes) == 1, WAIT_MS);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    delete_node_of(trigger);
    check_wait(sem_trywait(&other.done) == 0, WAIT_MS);
    check_num(other.rc, ==, ZKL_EINCALLBACK);
    check_num(other.running_after, ==, 1);
    sem_post(&gate);
    check_num(zkl_mutex_unlock(trigger), ==, ZKL_ELOST);
    world_clear();
    check_num(running(&notes), ==, 0);
}

static int do_free(void *mutex)
{
    return zkl_mutex_free(mutex);
}

/* --- calls within callbacks ------------------------------------------------------------------ */

struct within {
    struct refused_calls calls;
    atomic_bool go; /* the next callback makes the calls */
    sem_t done;
    unsigned long mark; /* what is made for it comes behind */
};

static void make_calls(struct within *w)
{
    if (!atomic_exchange(&w->go, false))
        return;
    refused_calls_make(&w->calls, IN_A_CALLBACK);
    sem_post(&w->done);
}

static void on_hold(const struct zkl_hold_event *event, void *arg)
{
    (void)event;
    make_calls(arg);
}

static void on_client_state(struct zkl_client *client, enum zkl_client_state state, void *arg)
{
    (void)client;
    (void)state;
    make_calls(arg);
}

static void on_event(const struct zkl_log_event *event, void *arg)
{
    (void)event;
    make_calls(arg);
}

static void check_calls(struct within *w)
{
    check_wait(sem_trywait(&w->done) == 0, WAIT_MS);
    refused_calls_check(&w->calls);
}

static void cause_an_event(struct within *w)
{
    struct zkl_mutex *other = world_mutex(w->calls.client, cluster_path("event"));

    w->go = true;
    check_ok(zkl_mutex_lock(other));
    check_calls(w);
    check_ok(zkl_mutex_unlock(other));
}

/* What is done to the node of a hold, and what its unlock says then. */
static void disturb_a_mutex(struct within *w, void (*disturb)(struct zkl_mutex *mutex), int code)
{
    struct zkl_mutex *other = world_mutex(w->calls.client, cluster_path("disturbed"));

    check_ok(zkl_mutex_set_callback(other, on_hold, w));
    check_ok(zkl_mutex_lock(other));
    w->go = true;
    disturb(other);
    check_calls(w);
    check_num(zkl_mutex_unlock(other), ==, code);
}

static void lose_a_permit(struct within *w)
{
    struct zkl_permit *permit = NULL;
    char node[300];

    struct zkl_semaphore *other = world_semaphore(w->calls.client, cluster_path("permit"), 1, NULL);
    check_ok(zkl_semaphore_set_callback(other, on_hold, w));
    check_ok(zkl_semaphore_acquire(other, 1, NULL, &permit));
    check_num(zkl_permit_node_path(permit, node, sizeof node), >, 0);
    w->go = true;
    check_ok(wire_delete(raw, cluster_at(node), -1));
    check_calls(w);
    check_num(zkl_permit_release(permit), ==, ZKL_ELOST);
}

/* A client with this callback, or with none, that holds one of everything. */
static void open_within(struct within *w, struct proxy *proxy, zkl_client_state_fn state_fn,
                        zkl_log_fn log_fn)
{
    struct zkl_client_options options = cluster_options();

    *w = (struct within){.mark = world_mark()};
    sem_init(&w->done, 0, 0);
    options.servers = cluster_servers(proxy_address(proxy));
    options.state_fn = state_fn;
    options.log_fn = log_fn;
    options.log_level = ZKL_LOG_DEBUG;
    options.state_arg = options.log_arg = w;
    refused_calls_hold(&w->calls, world_client_with(&options));
}

static void close_within(struct within *w)
{
    refused_calls_release(&w->calls);
    world_clear_since(w->mark);
    sem_destroy(&w->done);
}

/* Goal: what waits says so immediately, even if its lock is free, and all other calls work. Modes: F46. */
WORLD_TEST(every_call_in_every_callback)
{
    struct proxy *proxy = world_proxy();
    static struct within w;

    open_within(&w, proxy, NULL, NULL);
    disturb_a_mutex(&w, delete_node_of, ZKL_ELOST);
    disturb_a_mutex(&w, ask_for, 0);
    lose_a_permit(&w);
    close_within(&w);

    open_within(&w, proxy, NULL, on_event);
    cause_an_event(&w);
    close_within(&w);

    open_within(&w, proxy, on_client_state, NULL);
    w.go = true;
    proxy_cut(proxy);
    check_wait(sem_trywait(&w.done) == 0, WAIT_MS);
    check_wait(zkl_multi_still_held(w.calls.goods.multi, 1) == 1 &&
                   zkl_client_get_state(w.calls.client) == ZKL_CLIENT_CONNECTED,
               WAIT_MS);
    refused_calls_check(&w.calls);
    close_within(&w);
}

/* Modes: F46. */
WORLD_TEST(a_slow_callback_stalls_only_the_free_of_its_mutex)
{
    static struct notes notes = NOTES_INIT;
    static sem_t gate;
    struct zkl_client *client = world_client();
    struct zkl_mutex *slow = world_mutex(client, cluster_path("slow"));
    struct zkl_mutex *quick = world_mutex(client, cluster_path("quick"));
    struct actor *actor = world_actor();

    hold_up(&notes, &gate, slow);
    check_ok(zkl_mutex_lock(slow));
    delete_node_of(slow);
    check_wait(running(&notes) == 1, WAIT_MS);
    check_num(zkl_mutex_unlock(slow), ==, ZKL_ELOST);
    check_ok(zkl_mutex_lock(quick));
    actor_begin(actor, do_lock, quick);
    check_ok(zkl_mutex_unlock(quick));
    check_ok(actor_result(actor));
    check_ok(actor_do(actor, do_unlock, quick));
    world_drop(quick);
    world_forget(slow);
    actor_begin(actor, do_free, slow);
    net_nap_ms(100); /* would do for a free that does not wait */
    check_true(!actor_is_done(actor));
    sem_post(&gate);
    check_ok(actor_result(actor));
    check_num(running(&notes), ==, 0);
}

/* --- permits in their own callback ------------------------------------------------------------ */

/* What a callback does with the permit of its event. */
struct giver {
    atomic_int events;
    int waits, starts; /* what zkl_permit_release and its twin said at the first event */
    char detail[300];
    struct completion done;
};

static void give_back(const struct zkl_hold_event *event, void *arg)
{
    struct giver *giver = arg;

    if (atomic_load(&giver->events) == 0) {
        giver->waits = zkl_permit_release(event->permit);
        giver->starts = zkl_permit_release_async(event->permit, note_completion, &giver->done);
        snprintf(giver->detail, sizeof giver->detail, "%s", zkl_error_detail());
    }
    atomic_fetch_add(&giver->events, 1);
}

/* Goal: the multi-lock would have a freed handle. In the permit's own callback it is refused, too. */
WORLD_TEST(a_multi_locks_permit_is_not_given_back_alone)
{
    const char *path = cluster_path("members-permit");
    struct zkl_client *client = world_client();
    static struct giver giver = {.waits = 1, .starts = 1};
    char node[300];

    struct zkl_semaphore *semaphore = world_semaphore(client, path, 2, NULL);
    check_ok(zkl_semaphore_set_callback(semaphore, give_back, &giver));
    struct zkl_member member = zkl_member_semaphore(semaphore, 2);
    struct zkl_multi *multi = world_multi(client, &member, 1);
    check_ok(zkl_multi_lock(multi));
    check_num(zkl_multi_node_path(multi, 0, node, sizeof node), >, 0);
    check_ok(wire_set(raw, cluster_at(node), "__REVOKE__", -1));
    check_wait(atomic_load(&giver.events) == 1, WAIT_MS);
    check_num(giver.waits, ==, ZKL_EINVAL);
    check_num(giver.starts, ==, ZKL_EINVAL);
    check_true(strstr(giver.detail, "multi-lock") != NULL);
    check_num(zkl_multi_still_held(multi, 1), ==, 1);
    check_ok(zkl_multi_unlock(multi, NULL));
    check_num(giver.done.calls, ==, 0);
}

/* Goal: a callback can release its own permit with the call that does not wait. No event of the
 * permit follows, though more had gathered. Method: another callback blocks the client's callbacks
 * until both the request to release and the loss of the permit have come. */
WORLD_TEST(a_permit_is_given_back_in_its_own_callback)
{
    const char *path = cluster_path("own-permit");
    struct zkl_client *client = world_client();
    struct zkl_mutex *trigger = world_mutex(client, cluster_path("own-trigger"));
    static struct notes notes = NOTES_INIT;
    static struct giver giver = {.waits = 1, .starts = 1};
    struct zkl_permit *permit;
    char node[300];
    static sem_t gate;

    hold_up(&notes, &gate, trigger);
    struct zkl_semaphore *semaphore = world_semaphore(client, path, 1, NULL);
    check_ok(zkl_semaphore_set_callback(semaphore, give_back, &giver));
    check_ok(zkl_mutex_lock(trigger));
    check_ok(zkl_semaphore_acquire(semaphore, 1, NULL, &permit));
    check_num(zkl_permit_node_path(permit, node, sizeof node), >, 0);
    delete_node_of(trigger);
    check_wait(running(&notes) == 1, WAIT_MS);
    check_ok(wire_set(raw, cluster_at(node), "__REVOKE__", -1));
    check_wait(zkl_permit_revoke_requested(permit) == 1, WAIT_MS);
    check_ok(wire_delete(raw, cluster_at(node), -1));
    check_wait(zkl_permit_check(permit, 0) == ZKL_ELOST, WAIT_MS);
    check_num(atomic_load(&giver.events), ==, 0);
    sem_post(&gate);
    check_num(completion_code(&giver.done), ==, ZKL_ELOST);
    check_num(giver.waits, ==, ZKL_EINCALLBACK);
    check_ok(giver.starts);
    check_num(zkl_mutex_unlock(trigger), ==, ZKL_ELOST);
    check_wait(zkl_semaphore_free(semaphore) == 0, WAIT_MS);
    world_forget(semaphore);
    world_clear();
    check_num(atomic_load(&giver.events), ==, 1);
}
