/* SPDX-License-Identifier: Apache-2.0
 * Commands for the session's machine and for its proof, each by itself. Times are in milliseconds. */
#include "script.h"

#define STATES ZKL_SESSION_STATES
#define EVENTS ZKL_SESSION_EVENT_TYPES

/* --- the session ------------------------------------------------------------ */

static struct zkl_session session;
static struct zkl_session_event event; /* the last one */
static int64_t ahead_ms;               /* CLOCK_BOOTTIME */
static bool moves[STATES][STATES], tried[STATES][EVENTS];

static void moved(void *arg, enum zkl_session_state from, const char *why)
{
    const struct zkl_session *of = arg;
    assert_non_null(why);
    assert_true(zkl_session_may_move(from, of->state));
    moves[from][of->state] = true;
}

static int64_t now_ms(void)
{
    return event.now.mono_ns / MS;
}

static unsigned step(enum zkl_session_event_type type, int64_t ms)
{
    event.type = type;
    event.now = (struct zkl_time){ms * MS, (ms + ahead_ms) * MS};
    return zkl_session_step(&session, &event, moved, &session);
}

static const char *state_is(void)
{
    return zkl_session_state_name(session.state);
}

/* session STATE [TIMEOUT]: one that came there by 2 T at most. Its id is 7. */
static void begin_session(const struct command *c)
{
    int timeout_ms = c->count > 2 ? (int)number(c, 2) : 2000, i = 0;
    enum zkl_session_state to = 0;
    while (to < STATES && strcmp(zkl_session_state_name(to), word(c, 1)) != 0)
        to++;
    const enum zkl_session_event_type by[STATES][5] = {
        [ZKL_SESSION_STARTING] = {EVENTS},
        [ZKL_SESSION_CONNECTED] = {ZKL_SE_UP, EVENTS},
        [ZKL_SESSION_SUSPENDED] = {ZKL_SE_UP, ZKL_SE_DOWN, EVENTS},
        [ZKL_SESSION_PROBING] = {ZKL_SE_UP, ZKL_SE_DOWN, ZKL_SE_TIMER, EVENTS},
        [ZKL_SESSION_PROBED] = {ZKL_SE_UP, ZKL_SE_DOWN, ZKL_SE_TIMER, ZKL_SE_PROBE_UP, EVENTS},
        [ZKL_SESSION_FAILED] = {ZKL_SE_AUTH_FAILED, EVENTS},
        [ZKL_SESSION_CLOSED] = {ZKL_SE_UP, ZKL_SE_CLOSE, EVENTS}};
    zkl_session_init(&session, timeout_ms, 0);
    ahead_ms = 1000000;
    event = (struct zkl_session_event){.session = 7, .timeout_ms = timeout_ms};
    for (int64_t ms = 0; i < 5 && by[to][i] != EVENTS; i++) {
        ms = by[to][i] == ZKL_SE_TIMER ? 2 * timeout_ms : ms;
        event.session = by[to][i] == ZKL_SE_PROBE_UP ? 8 : 7;
        step(by[to][i], ms);
    }
    event.session = 7;
    assert_string_equal(state_is(), word(c, 1));
}

/* on EVENT [at MS] [id=N] [timeout=MS] -> STATE ACTIONS */
static void say_step(const struct command *c)
{
    static const char *const events[EVENTS] = {"up",         "down",  "expired",     "probe up",
                                               "probe down", "timer", "auth failed", "close"};
    enum zkl_session_event_type type = (enum zkl_session_event_type)INDEX_OF(events, word(c, 1));
    int64_t ms = now_ms();
    for (size_t i = 2; i < c->count; i++) {
        if (strcmp(word(c, i), "at") == 0)
            ms = number(c, ++i);
        else if (value_of(word(c, i), "id"))
            event.session = number_in(value_of(word(c, i), "id"));
        else
            event.timeout_ms = (int)number_in(value_of(word(c, i), "timeout"));
    }
    tried[session.state][type] = true;
    unsigned actions = step(type, ms);
    says(c, "%s%s%s", state_is(), actions ? ", " : "", script_actions(actions));
}

/* Every event was tried in every state, and what may be is what was. */
static void check_all_tried(void)
{
    for (int from = 0; from < STATES; from++) {
        for (int of = 0; of < EVENTS; of++)
            assert_true(tried[from][of]);
        for (int to = 0; to < STATES; to++)
            assert_int_equal(moves[from][to], zkl_session_may_move((enum zkl_session_state)from,
                                                                   (enum zkl_session_state)to));
    }
}

/* lives MS LEAST [MOST]: one that comes up now and ends so much later is replaced that long after it came. */
static int64_t replaced_after(int64_t ms)
{
    const unsigned dropped = ZKL_SA_EXPIRE | ZKL_SA_DROP_HANDLE;
    int64_t born_ms = now_ms();
    event.session++;
    step(ZKL_SE_UP, born_ms);
    step(ZKL_SE_DOWN, born_ms + ms);
    unsigned actions = step(ZKL_SE_EXPIRED, born_ms + ms);
    if (!(actions & ZKL_SA_REPLACE_HANDLE)) {
        assert_int_equal(actions, dropped);
        assert_int_equal(step(ZKL_SE_TIMER, session.timer_mono_ns / MS),
                         0); /* not a moment before */
        assert_int_equal(step(ZKL_SE_TIMER, now_ms() + 1), ZKL_SA_REPLACE_HANDLE);
    }
    return now_ms() - born_ms;
}

/* pauses_differ: of 100 clients fewer than 10 come back as the first one does. */
static void check_pauses(void)
{
    int64_t first_ms = 0;
    int same = 0;
    for (int i = 0; i < 100; i++) {
        zkl_session_init(&session, 12000, 0);
        event = (struct zkl_session_event){
            .session = 1000 + i, .timeout_ms = 12000, .now = {5000 * MS, 0}};
        int64_t after_ms = replaced_after(3);
        first_ms = i == 0 ? after_ms : first_ms;
        same += after_ms == first_ms;
    }
    assert_in_range(same, 1, 9);
}

static bool session_does(const struct command *c)
{
    DO("session", begin_session(c));
    DO("on", say_step(c));
    DO("slept", ahead_ms += number(c, 1));
    DO("touched", session.proof.touched_boot = number(c, 1) * MS);
    DO("answered",
       zkl_proof_answered(&session.proof, number(c, 2) * MS,
                          zkl_proof_stamp(&session.proof, number(c, 1) * MS, false), true));
    DO("known", session.proof.is_known = true);
    DO("useless", session.useless = true);
    DO("used", assert_int_equal(zkl_session_connected(&session), number(c, 1)));
    DO("session_window", says(c, "%lld", (long long)(zkl_session_window_end(&session) / MS)));
    DO("session_id", says(c, "%d", (int)session.id));
    DO("pause", says(c, "%d", (int)(session.pause_ns / MS)));
    DO("timer", int64_t at = session.timer_mono_ns;
       says(c, at == INT64_MAX ? "none" : "%lld", (long long)(at / MS)));
    DO("timer_in", assert_in_range(session.timer_mono_ns - event.now.mono_ns, number(c, 1) * MS,
                                   number(c, 2) * MS));
    DO("all_tried", check_all_tried());
    DO("lives", assert_in_range(replaced_after(number(c, 1)), number(c, 2),
                                number(c, c->count > 3 ? 3 : 2)));
    DO("pauses_differ", check_pauses());
    return false;
}

/* --- the proof: times from when the handle was opened ------------------------ */

#define OPENED 10000

static struct zkl_proof proof;
static struct zkl_stamp stamp;

static int64_t at(const struct command *c, size_t i)
{
    return (OPENED + number(c, i)) * MS;
}

static bool asked(int64_t sent_ns, int64_t answered_ns, bool writes)
{
    struct zkl_stamp one = zkl_proof_stamp(&proof, sent_ns, writes);
    return zkl_proof_answered(&proof, answered_ns, one, true);
}

static void say_time(const struct command *c, int64_t ns)
{
    if (ns == 0 || ns == INT64_MAX)
        says(c, ns == 0 ? "none" : "never");
    else
        says(c, "%lld", (long long)(ns / MS - OPENED));
}

/* For ten timeouts an answer each millisecond, 2 ms late, and each 50 ms a proof, which rests on one that was 600 ms old,
 * or not much more. */
static void be_busy(void)
{
    for (int64_t ms = OPENED; ms < OPENED + 16000; ms++) {
        asked(ms * MS, (ms + 2) * MS, ms % 50 == 0);
        if (ms > OPENED + 1200 && ms % 50 == 0)
            assert_in_range(zkl_proof_window_end(&proof) / MS, ms + 1500 - 632, ms + 1500 - 602);
    }
}

/* every MS for MS: a read each so often, the answer to which comes 1 ms later */
static void read_every(int64_t step_ms, int64_t until_ms)
{
    for (int64_t ms = OPENED; ms < OPENED + until_ms; ms += step_ms)
        asked(ms * MS, (ms + 1) * MS, false);
}

static bool proof_does(const struct command *c)
{
    static const char *const links[] = {"later", "first"};
    /* of 1600 ms, a link from then on, the servers' tick */
    DO("proof", proof = (struct zkl_proof){.tick_ns = c->count > 3 ? number(c, 3) * MS : 0};
       zkl_proof_announced(&proof, 1600);
       zkl_proof_link_up(&proof, at(c, 1), OPENED * MS, INDEX_OF(links, word(c, 2))));
    DO("proof_up", zkl_proof_link_up(&proof, at(c, 1), OPENED * MS, false));
    DO("proof_down", zkl_proof_link_down(&proof));
    DO("proof_begin", zkl_proof_begin(&proof));
    DO("announced", zkl_proof_announced(&proof, (int)number(c, 1)));
    DO("timeout", says(c, "%d", (int)(proof.timeout_ns / MS)));
    /* SENT ANSWERED -> is it a proof? */
    DO("read", says_whether(c, asked(at(c, 1), at(c, 2), false)));
    DO("write", says_whether(c, asked(at(c, 1), at(c, 1) + MS, true)));
    DO("stamp",
       stamp = zkl_proof_stamp(&proof, at(c, 1), c->count > 2 && strcmp(word(c, 2), "write") == 0));
    DO("stamp_proves", say_time(c, stamp.proves_boot));
    DO("next_stamp", zkl_proof_stamp(&proof, at(c, 1), false)); /* of one that has not ended */
    DO("handed_back", zkl_proof_handed_back(&proof, stamp));
    DO("unsent", stamp.sent_boot = 0);
    DO("stamp_ends",
       says_whether(c, zkl_proof_answered(&proof, at(c, 1), stamp, strcmp(word(c, 2), "OK") == 0)));
    DO("end", say_time(c, zkl_proof_window_end(&proof)));
    DO("heartbeat_due", say_time(c, zkl_proof_heartbeat_due(&proof)));
    DO("enough", say_time(c, zkl_proof_enough_at(&proof, at(c, 1))));
    DO("fresh_after", assert_true(zkl_proof_fresh_until(&proof) > at(c, 1)));
    DO("be_busy", be_busy());
    DO("read_every", read_every(number(c, 1), number(c, 2)));
    return false;
}

bool obey_machines(const struct command *c)
{
    return session_does(c) || proof_does(c);
}
