/* SPDX-License-Identifier: Apache-2.0
 *
 * Goal: no order of events brings a machine where its table does not allow it, every allowed
 * transition can really happen, and actions fit the state. Method: random events, such as can come
 * in that state, are fed to the two step functions; asserts in the code and checks here watch. The
 * seed is fixed, and printed when something is wrong. */
#include "tests.h"

#include <zklock/zklock.h>

#include "../sim/fake.h"

#define ROUNDS 60000
#define STEPS 40

/* --- one contender and what is known of it -------------------------------- */

struct walk {
    struct fake_prng prng;
    struct zkl_core core; /* its time and its session */
    struct zkl_contender_machine m;
    struct zkl_event ev;
    struct zkl_reply reply;
    struct zkl_actions actions;
    enum zkl_contender_state from;
    bool connected, make_out;
    struct zkl_semaphore_view view;
    bool answered_link; /* the link broke: what is out gets no other answer any more */
    int fails, grants, releases, losses;
};

static uint64_t seed;
static bool reached[ZKL_CONTENDER_STATES][ZKL_CONTENDER_STATES];

static void moved(void *arg, const struct zkl_contender_machine *m, enum zkl_contender_state from,
                  const char *why)
{
    (void)arg;
    assert_non_null(why);
    assert_true(zkl_contender_may_move(from, m->state));
    reached[from][m->state] = true;
}

#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("seed %llu, event %d from %s to %s: not true: %s", (unsigned long long)seed,  \
                     (int)w->ev.type, zkl_contender_state_name(w->from),                           \
                     zkl_contender_state_name(w->m.state), #condition);                            \
    } while (0)

static bool is_request(enum zkl_action_type type)
{
    return type == ZKL_DO_MAKE || type == ZKL_DO_CREATE || type == ZKL_DO_LIST ||
           type == ZKL_DO_SYNC || type == ZKL_DO_BARRIER || type == ZKL_DO_LIST_LOCK_PATH ||
           type == ZKL_DO_STAT || type == ZKL_DO_RENEW || type == ZKL_DO_REVOKE ||
           type == ZKL_DO_DELETE || type == ZKL_DO_WATCH_PRED || type == ZKL_DO_GET_LIMIT ||
           type == ZKL_DO_SET_LIMIT || type == ZKL_DO_WATCH_LIMIT;
}

/* --- do the actions fit? -------------------------------------------------- */

static void check_action(struct walk *w, const struct zkl_action *a)
{
    enum zkl_contender_state state = w->m.state;
    bool left = state == ZKL_CONTENDER_LEAVING || state == ZKL_CONTENDER_ENDED;
    bool permit = w->m.lock_request.naming.role == ZKL_ROLE_PERMIT;
    bool looks = permit && w->m.lock_request.try_only &&
                 !w->m.lock_request.quota.looked; /* its "room" learns that */
    must(!is_request(a->type) || w->connected);
    must(a->type != ZKL_DO_CREATE ||
         (state == ZKL_CONTENDER_QUEUEING && w->m.create_out && !w->m.on_server));
    must(a->type != ZKL_DO_LIST || w->m.list_out);
    must(a->type != ZKL_DO_LIST_LOCK_PATH ||
         (w->m.list_out &&
          (state == (permit ? ZKL_CONTENDER_LISTING : ZKL_CONTENDER_EXHAUSTED) ||
           (state == ZKL_CONTENDER_HOLDING && w->m.watches_contention && !w->m.contended))));
    must(a->type != ZKL_DO_GET_LIMIT || (permit && w->m.limit.out));
    must(a->type != ZKL_DO_SET_LIMIT || (permit && w->m.limit.out && w->view.permits > 0));
    must(a->type != ZKL_DO_WATCH_LIMIT || (permit && w->m.limit.watched));
    must(!permit || state != ZKL_CONTENDER_EXHAUSTED);
    must(a->type != ZKL_DO_REVOKE ||
         (state == ZKL_CONTENDER_EXHAUSTED && zkl_name_is_retained(a->name)));
    must(a->type != ZKL_DO_RENEW || (state == ZKL_CONTENDER_EXHAUSTED && w->m.renew_out));
    must(a->type != ZKL_DO_STAT || (state == ZKL_CONTENDER_RECOVERING && w->m.stat_out));
    must(a->type != ZKL_DO_DELETE || (w->m.delete_out && w->m.on_server && w->m.node[0]));
    must(a->type != ZKL_DO_WATCH_PRED || (a->name && state == ZKL_CONTENDER_WAITING));
    must(a->type != ZKL_DO_WATCH_OWN || w->m.on_server);
    must(a->type != ZKL_DO_WATCH_OWN_LATER || (zkl_contender_puts_off(&w->m) && w->m.on_server));
    must(a->type != ZKL_DO_GRANT || (state == ZKL_CONTENDER_HOLDING && w->m.on_server));
    must(a->type != ZKL_DO_GRANT ||
         w->core.now.boot_ns < zkl_proof_fresh_until(&w->core.session.proof));
    must(a->type != ZKL_DO_GRANT || !permit || (w->view.agreed && w->m.limit.permits > 0));
    must(a->type != ZKL_DO_FAIL || (left && a->code < looks && w->grants == 0));
    must(a->type != ZKL_DO_RELEASED || (left && w->grants == 1));
    must(a->type != ZKL_DO_LOST || left || state == ZKL_CONTENDER_LOSTHOLD);
    must(a->type != ZKL_DO_NOTIFY_STATE || (w->grants == 1 && w->losses == 0));
    w->grants += a->type == ZKL_DO_GRANT;
    w->fails += a->type == ZKL_DO_FAIL;
    w->releases += a->type == ZKL_DO_RELEASED;
    w->losses += a->type == ZKL_DO_LOST;
    w->make_out |= a->type == ZKL_DO_MAKE;
}

static void check_step(struct walk *w)
{
    must(w->actions.count <= ZKL_ACTIONS_MAX);
    for (size_t i = 0; i < w->actions.count; i++) {
        const struct zkl_action *a = &w->actions.list[i];
        check_action(w, a);
        must((a->type == ZKL_DO_END) ==
             (w->m.state == ZKL_CONTENDER_ENDED && i + 1 == w->actions.count));
    }
    must(w->m.state != ZKL_CONTENDER_ENDED || w->actions.count > 0);
    must(w->fails <= 1 && w->grants <= 1 && w->releases <= 1 && w->losses <= 1);
    must(w->fails == 0 || w->m.state == ZKL_CONTENDER_LEAVING || w->m.state == ZKL_CONTENDER_ENDED);
    must(w->m.state != ZKL_CONTENDER_HOLDING || (w->m.on_server && w->grants == 1));
    must(w->m.state != ZKL_CONTENDER_WAITING || w->m.on_server);
    must(!w->m.on_server || w->m.node[0]);
    must(!(w->m.on_server && w->m.maybe_on_server));
}

/* --- what can happen ------------------------------------------------------ */

static enum zkl_answer some_answer(struct walk *w)
{
    static const enum zkl_answer answers[] = {
        ZKL_ANSWER_NONODE, ZKL_ANSWER_NOAUTH, ZKL_ANSWER_NOMEM,         ZKL_ANSWER_OTHER,
        ZKL_ANSWER_EXISTS, ZKL_ANSWER_LINK,   ZKL_ANSWER_UNIMPLEMENTED, ZKL_ANSWER_NOTEMPTY};
    if (w->answered_link)
        return ZKL_ANSWER_LINK;
    if (fake_random(&w->prng, 3) > 0)
        return ZKL_ANSWER_OK;
    return answers[fake_random(&w->prng, sizeof answers / sizeof *answers)];
}

static void name_of_ours(struct walk *w, char *name)
{
    static const int32_t numbers[] = {5, 5, 5, 5, INT32_MAX, INT32_MIN, ZKL_SEQUENCE_HARD};
    char prefix[ZKL_NODE_NAME_MAX + 1];
    zkl_name_prefix(&w->m.lock_request.naming, w->m.guid, prefix);
    snprintf(name, 128, "%.48s%010d", prefix, numbers[fake_random(&w->prng, 7)]);
}

static void list_children(struct walk *w)
{
    static char ours[128];
    static const char *children[4];
    w->reply.children = children;
    bool permit = w->m.lock_request.naming.role == ZKL_ROLE_PERMIT;
    if (fake_chance(&w->prng, 2))
        children[w->reply.child_count++] = permit ? "x-lease-0000000003" : "x-lock-0000000003";
    else if (!permit && fake_chance(&w->prng, 4))
        children[w->reply.child_count++] =
            "_c_01020304-0506-8708-890a-0b0c0d0e0f10-lock-0000000002";
    if (fake_chance(&w->prng, 4))
        children[w->reply.child_count++] = permit ? "x-lease-0000000004" : "x-lock-0000000004";
    if (fake_chance(&w->prng, 4))
        children[w->reply.child_count++] = "readme";
    if (w->m.node[0])
        snprintf(ours, sizeof ours, "%s", w->m.node);
    else
        name_of_ours(w, ours);
    if (fake_random(&w->prng, 8) < (w->m.node[0] ? 7 : 4))
        children[w->reply.child_count++] = ours;
}

/* The number of permits, or what else stands there. */
static bool answer_limit(struct walk *w)
{
    static const char *const texts[] = {"2", "2", "2", "1", "3", "", "two", "200000"};
    w->ev.type = fake_chance(&w->prng, 4) ? ZKL_EV_LIMIT_SET : ZKL_EV_LIMIT;
    w->reply.data = texts[fake_random(&w->prng, sizeof texts / sizeof *texts)];
    w->reply.data_size = strlen(w->reply.data);
    return w->m.limit.out;
}

static void answer_create(struct walk *w)
{
    static char name[128];
    w->ev.type = ZKL_EV_CREATED;
    memset(w->m.guid, 'a', ZKL_GUID_LEN);
    name_of_ours(w, name);
    w->reply.name = name;
    w->reply.czxid = 100 + fake_random(&w->prng, 100);
}

/* The list behind a create is answered after it, except one that could not be sent. */
static bool answer_list(struct walk *w)
{
    bool refused = w->reply.answer == ZKL_ANSWER_LINK || w->reply.answer == ZKL_ANSWER_NOMEM;
    if (w->m.create_out && !refused)
        return false;
    bool rooted =
        w->m.state == ZKL_CONTENDER_EXHAUSTED || w->m.limit.watched || w->m.watches_contention;
    w->ev.type = rooted ? ZKL_EV_LOCK_PATH_LISTED : ZKL_EV_LISTED;
    w->reply.czxid = 50 + fake_random(&w->prng, 200);
    if (w->reply.answer == ZKL_ANSWER_OK)
        list_children(w);
    return true;
}

static bool answer_something(struct walk *w)
{
    w->reply.answer = some_answer(w);
    switch (fake_random(&w->prng, 7)) {
    case 6:
        return answer_limit(w);
    case 0:
        answer_create(w);
        return w->m.create_out;
    case 1:
        return w->m.list_out && answer_list(w);
    case 2:
        w->ev.type = ZKL_EV_STATTED;
        w->reply.node_session = fake_chance(&w->prng, 4) ? 9 : 7;
        w->reply.czxid = 120;
        return w->m.stat_out && w->m.state == ZKL_CONTENDER_RECOVERING;
    case 3:
        w->ev.type = ZKL_EV_DELETED;
        return w->m.delete_out;
    case 4:
        w->ev.type = ZKL_EV_RENEWED;
        return w->m.renew_out;
    default:
        w->ev.type = ZKL_EV_MADE;
        if (!w->make_out || w->m.state != ZKL_CONTENDER_MAKING)
            return false;
        w->make_out = false;
        return true;
    }
}

static bool anything_out(const struct walk *w)
{
    const struct zkl_contender_machine *m = &w->m;
    return m->create_out || m->list_out || m->delete_out || m->limit.out ||
           (m->stat_out && m->state == ZKL_CONTENDER_RECOVERING) ||
           (m->renew_out && m->state == ZKL_CONTENDER_EXHAUSTED) ||
           (w->make_out && m->state == ZKL_CONTENDER_MAKING);
}

static bool change_link(struct walk *w)
{
    if (w->connected) {
        w->ev.type = ZKL_EV_LINK_DOWN;
        w->connected = false;
        w->answered_link = true;
        return true;
    }
    if (anything_out(w)) /* each is answered before the next link */
        return false;
    w->ev.type = ZKL_EV_LINK_UP;
    w->connected = true;
    w->answered_link = false;
    return true;
}

static bool expire(struct walk *w)
{
    w->ev.type = ZKL_EV_EXPIRED;
    w->connected = w->make_out = w->answered_link = false;
    return true;
}

static bool ask(struct walk *w)
{
    static const int reasons[] = {ZKL_REASON_CLOSED, ZKL_REASON_OWNER_EXITED};
    bool owned = w->grants == 1 && w->releases == 0;
    switch (fake_random(&w->prng, 4)) {
    case 0:
        w->ev.type = ZKL_EV_STOP;
        w->ev.code = ZKL_ETIMEDOUT;
        return fake_chance(&w->prng, 4);
    case 1:
        w->ev.type = ZKL_EV_ABANDON;
        w->ev.reason = reasons[fake_random(&w->prng, 2)];
        return owned && fake_chance(&w->prng, 3);
    case 2:
        w->ev.type = ZKL_EV_STAY;
        w->ev.idle = fake_chance(&w->prng, 2);
        return owned && w->m.state == ZKL_CONTENDER_HOLDING &&
               w->m.lock_request.naming.role == ZKL_ROLE_LOCK;
    default:
        w->ev.type = ZKL_EV_RELEASE;
        return owned && w->m.state != ZKL_CONTENDER_RELEASING;
    }
}

static bool notice(struct walk *w)
{
    static const enum zkl_event_type types[] = {
        ZKL_EV_PRED_FIRED,      ZKL_EV_PRED_FIRED,  ZKL_EV_OWN_DELETED, ZKL_EV_OWN_CHANGED,
        ZKL_EV_LOCK_PATH_FIRED, ZKL_EV_NODE_GONE,   ZKL_EV_PROVED,      ZKL_EV_WINDOW_ENDED,
        ZKL_EV_WATCHED,         ZKL_EV_LEASE_ENDED, ZKL_EV_REVOKED,     ZKL_EV_LIMIT_FIRED,
        ZKL_EV_WAITED,          ZKL_EV_UNCHECKED,   ZKL_EV_CHECKED};
    w->ev.type = types[fake_random(&w->prng, sizeof types / sizeof *types)];
    if (w->ev.type == ZKL_EV_WATCHED || w->ev.type == ZKL_EV_UNCHECKED)
        w->reply.answer = some_answer(w);
    if (w->ev.type == ZKL_EV_PRED_FIRED)
        w->ev.pred_proof = (enum zkl_pred_proof)fake_random(&w->prng, ZKL_PRED_PROOF_PROVEN + 1);
    if (w->ev.type == ZKL_EV_WAITED)
        return zkl_contender_puts_off(&w->m);
    return w->ev.type == ZKL_EV_WATCHED || w->connected || w->ev.type == ZKL_EV_WINDOW_ENDED;
}

static bool choose(struct walk *w)
{
    if (w->m.state == ZKL_CONTENDER_NEW) {
        w->ev.type = ZKL_EV_START;
        return true;
    }
    switch (fake_random(&w->prng, 24)) {
    case 0:
        return expire(w);
    case 1:
    case 2:
        return change_link(w);
    case 3:
    case 4:
        return ask(w);
    case 5:
    case 6:
    case 7:
        return notice(w);
    default:
        return answer_something(w);
    }
}

static void walk_one(struct walk *w)
{
    struct zkl_session *session = &w->core.session;
    w->reply = (struct zkl_reply){0};
    w->ev = (struct zkl_event){.reply = &w->reply};
    w->core.now = (struct zkl_time){1000, 5000};
    w->core.tracer.moved = moved;
    if (w->m.lease_end_boot != 0 && fake_chance(&w->prng, 6))
        w->core.now.boot_ns = w->m.lease_end_boot;
    /* The window ends at 4000 or 6000, and 500 before that it is too late for a grant. */
    *session = (struct zkl_session){.id = 7, .proof = {.timeout_ns = 4000}};
    session->proof.touched_boot = fake_chance(&w->prng, 4) ? 250 : 2250;
    if (!choose(w))
        return;
    session->state = w->connected ? ZKL_SESSION_CONNECTED : ZKL_SESSION_SUSPENDED;
    w->ev.full = !(zkl_contender_counts(&w->m) & 1u << ZKL_COUNT_OWNS) && fake_chance(&w->prng, 8);
    w->from = w->m.state;
    zkl_contender_step(&w->core, &w->m, &w->ev, &w->actions);
    check_step(w);
}

TEST(random_events_respect_the_table)
{
    struct zkl_path path = {.text = "/a/b", .length = 4};
    for (seed = 1; seed <= ROUNDS; seed++) {
        struct walk w = {.prng.state = seed,
                         .m = {.state = ZKL_CONTENDER_NEW, .lock_request.path = &path}};
        w.connected = !fake_chance(&w.prng, 5);
        w.m.lock_request.try_only = fake_chance(&w.prng, 4);
        w.m.lock_request.try_sync = fake_chance(&w.prng, 2);
        w.m.lock_request.try_behind_retained = fake_chance(&w.prng, 2);
        w.m.lock_request.watch_own = fake_chance(&w.prng, 2);
        w.m.lock_request.posted = fake_chance(&w.prng, 3);
        w.m.lock_request.lease_ns = fake_chance(&w.prng, 3) ? 2000 : 0;
        if (fake_chance(&w.prng, 4)) {
            w.m.lock_request.naming.role = ZKL_ROLE_READ;
            strcpy(w.m.downgrade_from, fake_chance(&w.prng, 2) ? "x-__WRIT__0000000005" : "");
        }
        if (fake_chance(&w.prng, 4)) {
            w.m.lock_request.naming.role = ZKL_ROLE_PERMIT;
            w.m.downgrade_from[0] = '\0';
            w.view.permits = (int)fake_random(&w.prng, 3);
            w.m.lock_request.quota = (struct zkl_quota){.view = &w.view,
                                                        .want = 1 + (int)fake_random(&w.prng, 2),
                                                        .looked = fake_chance(&w.prng, 2)};
        }
        for (int i = 0; i < STEPS && w.m.state != ZKL_CONTENDER_ENDED; i++)
            walk_one(&w);
    }
}

/* Goal: the table allows nothing that does not happen. Method: what the walks above have not
 * reached. */
TEST(every_allowed_transition_was_reached)
{
    int missing = 0;
    for (int from = 0; from < ZKL_CONTENDER_STATES; from++) {
        for (int to = 0; to < ZKL_CONTENDER_STATES; to++) {
            enum zkl_contender_state a = (enum zkl_contender_state)from,
                                     b = (enum zkl_contender_state)to;
            if (!zkl_contender_may_move(a, b) || reached[from][to])
                continue;
            print_message("not reached: %s -> %s\n", zkl_contender_state_name(a),
                          zkl_contender_state_name(b));
            missing++;
        }
    }
    assert_int_equal(missing, 0);
}

/* --- the session ---------------------------------------------------------- */

static void session_moved(void *arg, enum zkl_session_state from, const char *why)
{
    const struct zkl_session *s = arg;
    assert_non_null(why);
    assert_true(zkl_session_may_move(from, s->state));
}

static void check_session(const struct zkl_session *s, enum zkl_session_state from,
                          unsigned actions)
{
    bool had_probe = from == ZKL_SESSION_PROBING || from == ZKL_SESSION_PROBED;
    bool has_probe = s->state == ZKL_SESSION_PROBING || s->state == ZKL_SESSION_PROBED;
    bool up = s->state == ZKL_SESSION_CONNECTED, was_up = from == ZKL_SESSION_CONNECTED;
    assert_int_equal((actions & ZKL_SA_LINK_UP) != 0, up && !was_up);
    assert_int_equal((actions & ZKL_SA_LINK_DOWN) != 0, was_up && !up);
    bool replaced = had_probe && has_probe && (actions & ZKL_SA_OPEN_PROBE);
    assert_int_equal((actions & ZKL_SA_OPEN_PROBE) != 0, (has_probe && !had_probe) || replaced);
    assert_int_equal((actions & (ZKL_SA_DROP_PROBE | ZKL_SA_ADOPT_PROBE)) != 0,
                     (had_probe && !has_probe) || replaced);
    assert_true(!(actions & ZKL_SA_EXPIRE) || s->proof.touched_boot == 0);
    assert_true(!up || s->id != 0);
}

/* Goal: link, probe and expiry are reported exactly when they change. Method: random events as time
 * passes. */
TEST(random_session_events_respect_the_table)
{
    struct fake_prng prng = {.state = 4711};
    for (int round = 0; round < 5000; round++) {
        struct zkl_session s;
        struct zkl_session_event ev = {.timeout_ms = 1000};
        zkl_session_init(&s, 1000, 0);
        for (int i = 0; i < 60; i++) {
            unsigned late = fake_random(&prng, ZKL_SESSION_EVENT_TYPES * 4);
            enum zkl_session_state from = s.state;
            ev.type = (enum zkl_session_event_type)(late % ZKL_SESSION_EVENT_TYPES);
            if ((ev.type == ZKL_SE_CLOSE || ev.type == ZKL_SE_AUTH_FAILED) && late > 8)
                ev.type = ZKL_SE_TIMER;
            ev.now.mono_ns += (int64_t)fake_random(&prng, 1500) * 1000000;
            ev.session = 7 + (int64_t)fake_random(&prng, 2);
            unsigned actions = zkl_session_step(&s, &ev, session_moved, &s);
            check_session(&s, from, actions);
            if (s.state == ZKL_SESSION_CONNECTED)
                s.proof.touched_boot = ev.now.mono_ns + 1;
        }
    }
}
