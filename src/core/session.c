/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's session as a state machine: how it reacts to the link and the clock, and when it
 * tries a second handle because libzookeeper never reports the expiry of a session that a server
 * has forgotten. A pure step that asks for actions; core.c calls it with each event, under the
 * client's mutex. */
#include "session.h"

#include <assert.h>

#define MS INT64_C(1000000)
#define PAUSE_MIN_NS (1000 * MS)
#define BIT(state) (1u << (state))

static const unsigned allowed[ZKL_SESSION_STATES] = {
    [ZKL_SESSION_STARTING] = BIT(ZKL_SESSION_STARTING) | BIT(ZKL_SESSION_CONNECTED) |
                             BIT(ZKL_SESSION_FAILED) | BIT(ZKL_SESSION_CLOSED),
    [ZKL_SESSION_CONNECTED] = BIT(ZKL_SESSION_STARTING) | BIT(ZKL_SESSION_SUSPENDED) |
                              BIT(ZKL_SESSION_FAILED) | BIT(ZKL_SESSION_CLOSED),
    [ZKL_SESSION_SUSPENDED] = BIT(ZKL_SESSION_STARTING) | BIT(ZKL_SESSION_CONNECTED) |
                              BIT(ZKL_SESSION_PROBING) | BIT(ZKL_SESSION_FAILED) |
                              BIT(ZKL_SESSION_CLOSED),
    [ZKL_SESSION_PROBING] = BIT(ZKL_SESSION_STARTING) | BIT(ZKL_SESSION_CONNECTED) |
                            BIT(ZKL_SESSION_PROBED) | BIT(ZKL_SESSION_FAILED) |
                            BIT(ZKL_SESSION_CLOSED),
    [ZKL_SESSION_PROBED] = BIT(ZKL_SESSION_STARTING) | BIT(ZKL_SESSION_CONNECTED) |
                           BIT(ZKL_SESSION_PROBING) | BIT(ZKL_SESSION_FAILED) |
                           BIT(ZKL_SESSION_CLOSED),
    [ZKL_SESSION_FAILED] = BIT(ZKL_SESSION_CLOSED),
};

struct step {
    struct zkl_session *s;
    const struct zkl_session_event *ev;
    void (*moved)(void *arg, enum zkl_session_state from, const char *why);
    void *arg;
};

const char *zkl_session_state_name(enum zkl_session_state state)
{
    static const char *const names[ZKL_SESSION_STATES] = {
        [ZKL_SESSION_STARTING] = "STARTING",   [ZKL_SESSION_CONNECTED] = "CONNECTED",
        [ZKL_SESSION_SUSPENDED] = "SUSPENDED", [ZKL_SESSION_PROBING] = "PROBING",
        [ZKL_SESSION_PROBED] = "PROBED",       [ZKL_SESSION_FAILED] = "FAILED",
        [ZKL_SESSION_CLOSED] = "CLOSED",
    };
    return names[state];
}

bool zkl_session_may_move(enum zkl_session_state from, enum zkl_session_state to)
{
    return (allowed[from] & BIT(to)) != 0;
}

/* The only place that assigns a state. */
static void move(struct step *step, enum zkl_session_state to, const char *why)
{
    enum zkl_session_state from = step->s->state;
    assert(zkl_session_may_move(from, to));
    step->s->state = to;
    if (step->moved)
        step->moved(step->arg, from, why);
}

void zkl_session_init(struct zkl_session *session, int timeout_ms, int tick_ms)
{
    *session = (struct zkl_session){.state = ZKL_SESSION_STARTING,
                                    .asked_ms = timeout_ms,
                                    .timeout_ms = timeout_ms,
                                    .timer_mono_ns = INT64_MAX,
                                    .proof = {.tick_ns = tick_ms * MS}};
}

static void set_timer(struct step *step, int64_t after_ms)
{
    step->s->timer_mono_ns = after_ms < 0 ? INT64_MAX : step->ev->now.mono_ns + after_ms * MS;
}

/* A probe's drop is part of every way out of the two states that have one. */
static unsigned probe_drop(const struct zkl_session *s)
{
    bool has_probe = s->state == ZKL_SESSION_PROBING || s->state == ZKL_SESSION_PROBED;
    return has_probe ? ZKL_SA_DROP_PROBE : 0;
}

static unsigned start_over(struct step *step, unsigned flags, const char *why)
{
    step->s->id = 0;
    step->s->waits = false;
    zkl_proof_begin(&step->s->proof);
    set_timer(step, -1);
    move(step, ZKL_SESSION_STARTING, why);
    return flags;
}

/* --- servers that end what they have just begun ------------------------------------------------ */

/* A server of another make can end a session with each request that it does not know, one that
 * stops or starts with each connection, and libzookeeper comes back immediately. So the next try
 * waits for a second, then twice as long each time, up to a third of the timeout; and up to a
 * quarter longer, so that clients do not come together. */

static int64_t longest_pause_ns(const struct zkl_session *s)
{
    int64_t third_ns = s->timeout_ms * MS / 3;
    return third_ns > PAUSE_MIN_NS ? third_ns : PAUSE_MIN_NS;
}

static int64_t longer(const struct zkl_session *s, int64_t pause_ns)
{
    int64_t most = longest_pause_ns(s), next = pause_ns == 0 ? PAUSE_MIN_NS : 2 * pause_ns;
    return next < most ? next : most;
}

/* Servers count sessions, so their ids differ in their last bits: this makes them differ in the
 * first ones. */
static int64_t jittered_ns(const struct step *step, int64_t pause_ns)
{
    uint64_t seed = (uint64_t)step->s->id ^ (uint64_t)step->ev->now.mono_ns;
    uint64_t part = seed * UINT64_C(0x9e3779b97f4a7c15) >> 54; /* of 1024 */
    return pause_ns + (step->s->is_exact ? 0 : pause_ns / 4096 * (int64_t)part);
}

/* One of ZooKeeper's lives for its timeout at least, be it while this machine sleeps, unless its
 * server has lost the data (B96). The timeout may be shorter than the least pause. */
static bool ended_at_once(const struct zkl_session *s, int64_t lived_boot_ns)
{
    return lived_boot_ns < longest_pause_ns(s) && lived_boot_ns < s->timeout_ms * MS;
}

/* One that came up and ended unheard of has no id here. by_server: else this client gives it up,
 * which is no fault of the server's and has the least pause. */
static unsigned next_session(struct step *step, unsigned flags, const char *why, bool by_server)
{
    struct zkl_session *s = step->s;
    struct zkl_time now = step->ev->now, born = s->id != 0 ? s->born : now;
    bool is_young = ended_at_once(s, now.boot_ns - born.boot_ns), at_once = is_young && by_server;
    s->pause_ns = at_once ? longer(s, s->pause_ns) : 0;
    int64_t pause_ns = is_young && !by_server ? PAUSE_MIN_NS : s->pause_ns;
    int64_t next_ns = born.mono_ns + jittered_ns(step, pause_ns);
    bool waits = next_ns > now.mono_ns;
    flags |= waits ? ZKL_SA_DROP_HANDLE : ZKL_SA_REPLACE_HANDLE;
    start_over(step, flags, at_once ? "ended at once" : why);
    if (waits)
        s->timer_mono_ns = next_ns;
    return flags;
}

static unsigned use_link(struct step *step, unsigned flags)
{
    step->s->waits = false;
    step->s->use_mono_ns = 0;
    return flags | ZKL_SA_LINK_UP;
}

/* The link is up, but its requests would end it as those before it. Small reads keep it. A pause is
 * one for all links that come and go in it: they may be good, and short. And it stays short: in it
 * a hold is not proved, and links that break for another reason can end that way, too. */
static unsigned use_later(struct step *step, unsigned flags)
{
    struct zkl_session *s = step->s;
    if (s->use_mono_ns == 0)
        s->use_mono_ns = step->ev->now.mono_ns + jittered_ns(step, PAUSE_MIN_NS);
    if (step->ev->now.mono_ns >= s->use_mono_ns)
        return use_link(step, flags);
    s->waits = true;
    s->timer_mono_ns = s->use_mono_ns;
    return flags;
}

/* --- links and sessions ------------------------------------------------------------------------ */

/* up: of the handle's event; its now may be a while ago. */
static unsigned connected(struct step *step, const struct zkl_session_event *up, unsigned flags,
                          const char *why)
{
    bool is_new = step->s->id != up->session;
    if (is_new)
        step->s->born = step->ev->now;
    step->s->id = up->session;
    step->s->timeout_ms = up->timeout_ms;
    step->s->unprovable = up->unprovable;
    zkl_proof_announced(&step->s->proof, up->timeout_ms);
    zkl_proof_link_up(&step->s->proof, step->ev->now.boot_ns, up->opened_boot_ns, up->first);
    set_timer(step, -1);
    move(step, ZKL_SESSION_CONNECTED, why);
    bool later = step->s->useless && !is_new; /* a new one has waited */
    return later ? use_later(step, flags) : use_link(step, flags);
}

/* libzookeeper returns the timeout that a server announced last, which need not be over the link of
 * this event. If nothing was answered over the session's first link, a later one may have raised
 * the timeout, and a new leader returns to the one that the session was made with: no client knows
 * that one any more. */
static bool timeout_is_unknown(const struct zkl_session *s, const struct zkl_session_event *up)
{
    return !up->first && !s->proof.is_known && up->timeout_ms > s->asked_ms;
}

static unsigned give_up(struct step *step)
{
    return next_session(step, probe_drop(step->s) | ZKL_SA_EXPIRE, "its timeout is unknown", false);
}

static unsigned on_up(struct step *step)
{
    const struct zkl_session_event *ev = step->ev;
    unsigned flags = probe_drop(step->s);
    switch (step->s->state) {
    case ZKL_SESSION_STARTING:
    case ZKL_SESSION_SUSPENDED:
    case ZKL_SESSION_PROBING:
    case ZKL_SESSION_PROBED:
        /* A server that hands out another id instead of saying "expired" has dropped the old
         * session. */
        if (step->s->id != 0 && step->s->id != ev->session) {
            flags |= ZKL_SA_EXPIRE;
            zkl_proof_begin(&step->s->proof);
        }
        if (timeout_is_unknown(step->s, ev))
            return give_up(step);
        return connected(step, ev, flags, "connected");
    case ZKL_SESSION_CONNECTED:
    case ZKL_SESSION_FAILED:
    case ZKL_SESSION_CLOSED:
    case ZKL_SESSION_STATES:
        break;
    }
    return 0;
}

/* One that was not used yet was not reported. */
static unsigned link_down(struct zkl_session *s)
{
    bool was_used = zkl_session_connected(s);
    s->waits = false;
    zkl_proof_link_down(&s->proof);
    return was_used ? ZKL_SA_LINK_DOWN : 0;
}

static unsigned on_down(struct step *step)
{
    if (step->s->state != ZKL_SESSION_CONNECTED)
        return 0;
    unsigned flags = link_down(step->s);
    set_timer(step, 2 * (int64_t)step->s->timeout_ms);
    move(step, ZKL_SESSION_SUSPENDED, "link lost");
    return flags;
}

/* The second handle is connected already: it is the next session. */
static unsigned adopt_probe(struct step *step, const char *why)
{
    struct zkl_session_event up = step->s->probe;
    zkl_proof_begin(&step->s->proof);
    if (timeout_is_unknown(step->s, &up))
        return give_up(step);
    start_over(step, 0, why);
    return connected(step, &up, ZKL_SA_EXPIRE | ZKL_SA_ADOPT_PROBE, "second handle");
}

static unsigned on_expired(struct step *step)
{
    unsigned flags = probe_drop(step->s) | ZKL_SA_EXPIRE;
    switch (step->s->state) {
    case ZKL_SESSION_CONNECTED:
        flags |= link_down(step->s);
        break;
    case ZKL_SESSION_STARTING:
    case ZKL_SESSION_SUSPENDED:
    case ZKL_SESSION_PROBING:
        break;
    case ZKL_SESSION_PROBED:
        return adopt_probe(step, "expired");
    case ZKL_SESSION_FAILED:
    case ZKL_SESSION_CLOSED:
    case ZKL_SESSION_STATES:
        return 0;
    }
    return next_session(step, flags, "expired", true);
}

static unsigned on_probe_up(struct step *step)
{
    if (step->s->state != ZKL_SESSION_PROBING)
        return 0;
    step->s->probe = *step->ev;
    /* After an outage of all servers both handles come back, and the old session may live for a
     * timeout more. A server that is just starting can leave the first one's attempt unanswered,
     * which libzookeeper gives two thirds of a timeout. */
    set_timer(step, step->s->timeout_ms);
    move(step, ZKL_SESSION_PROBED, "second handle connected");
    return 0;
}

static unsigned on_probe_down(struct step *step)
{
    if (step->s->state != ZKL_SESSION_PROBED)
        return 0;
    /* It has a session now, which the server may forget as it did the first one's: then another. */
    set_timer(step, 2 * (int64_t)step->s->timeout_ms);
    move(step, ZKL_SESSION_PROBING, "second handle lost its link");
    return 0;
}

static unsigned on_timer(struct step *step)
{
    if (step->ev->now.mono_ns < step->s->timer_mono_ns)
        return 0;
    set_timer(step, -1);
    if (step->s->state == ZKL_SESSION_SUSPENDED) {
        move(step, ZKL_SESSION_PROBING, "no connection for two timeouts");
        return ZKL_SA_OPEN_PROBE;
    }
    if (step->s->state == ZKL_SESSION_PROBING)
        return ZKL_SA_DROP_PROBE | ZKL_SA_OPEN_PROBE;
    if (step->s->state == ZKL_SESSION_STARTING)
        return ZKL_SA_REPLACE_HANDLE;
    if (step->s->state == ZKL_SESSION_CONNECTED)
        return use_link(step, 0);
    assert(step->s->state == ZKL_SESSION_PROBED); /* no other state has a timer */
    return adopt_probe(step, "server does not know the session");
}

static unsigned stop(struct step *step, enum zkl_session_state to, unsigned flags, const char *why)
{
    if (step->s->state == ZKL_SESSION_CLOSED || step->s->state == to)
        return 0;
    flags |= probe_drop(step->s);
    flags |= link_down(step->s);
    set_timer(step, -1);
    move(step, to, why);
    return flags;
}

unsigned zkl_session_step(struct zkl_session *session, const struct zkl_session_event *event,
                          void (*moved)(void *arg, enum zkl_session_state from, const char *why),
                          void *arg)
{
    struct step step = {session, event, moved, arg};
    switch (event->type) {
    case ZKL_SE_UP:
        return on_up(&step);
    case ZKL_SE_DOWN:
        return on_down(&step);
    case ZKL_SE_EXPIRED:
        return on_expired(&step);
    case ZKL_SE_PROBE_UP:
        return on_probe_up(&step);
    case ZKL_SE_PROBE_DOWN:
        return on_probe_down(&step);
    case ZKL_SE_TIMER:
        return on_timer(&step);
    case ZKL_SE_AUTH_FAILED:
        return stop(&step, ZKL_SESSION_FAILED, ZKL_SA_FAIL, "credential refused");
    case ZKL_SE_CLOSE:
        return stop(&step, ZKL_SESSION_CLOSED, ZKL_SA_CLOSED, "closed");
    case ZKL_SESSION_EVENT_TYPES:
        assert(!"the number of the types is none");
    }
    return 0; /* not reached: each type has returned */
}
