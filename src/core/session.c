/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's session as a state machine: how it reacts to the link and the clock, and when it
 * tries a second handle because libzookeeper never reports the expiry of a session that a server
 * has forgotten. A pure step that asks for actions; core.c calls it with each event, under the
 * client's mutex. */
#include "session.h"

#include <assert.h>

#define MS INT64_C(1000000)
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
    zkl_proof_begin(&step->s->proof);
    set_timer(step, -1);
    move(step, ZKL_SESSION_STARTING, why);
    return flags;
}

/* up: of the handle's event; its now may be a while ago. */
static unsigned connected(struct step *step, const struct zkl_session_event *up, unsigned flags,
                          const char *why)
{
    step->s->id = up->session;
    step->s->timeout_ms = up->timeout_ms;
    zkl_proof_announced(&step->s->proof, up->timeout_ms);
    zkl_proof_link_up(&step->s->proof, step->ev->now.boot_ns, up->opened_boot_ns, up->first);
    set_timer(step, -1);
    move(step, ZKL_SESSION_CONNECTED, why);
    return flags | ZKL_SA_LINK_UP;
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
    unsigned flags = probe_drop(step->s) | ZKL_SA_EXPIRE | ZKL_SA_REPLACE_HANDLE;
    return start_over(step, flags, "its timeout is unknown");
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

static unsigned on_down(struct step *step)
{
    if (step->s->state != ZKL_SESSION_CONNECTED)
        return 0;
    zkl_proof_link_down(&step->s->proof);
    set_timer(step, 2 * (int64_t)step->s->timeout_ms);
    move(step, ZKL_SESSION_SUSPENDED, "link lost");
    return ZKL_SA_LINK_DOWN;
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
    unsigned flags = probe_drop(step->s) | ZKL_SA_EXPIRE | ZKL_SA_REPLACE_HANDLE;
    switch (step->s->state) {
    case ZKL_SESSION_CONNECTED:
        flags |= ZKL_SA_LINK_DOWN;
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
    return start_over(step, flags, "expired");
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
    assert(step->s->state == ZKL_SESSION_PROBED); /* no other state has a timer */
    return adopt_probe(step, "server does not know the session");
}

static unsigned stop(struct step *step, enum zkl_session_state to, unsigned flags, const char *why)
{
    if (step->s->state == ZKL_SESSION_CLOSED || step->s->state == to)
        return 0;
    flags |= probe_drop(step->s);
    if (step->s->state == ZKL_SESSION_CONNECTED)
        flags |= ZKL_SA_LINK_DOWN;
    zkl_proof_link_down(&step->s->proof);
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
    case ZKL_SESSION_EVENT_TYPES: /* not reached: it is their number */
        break;                    /* not reached: likewise */
    }
    return 0; /* not reached: likewise */
}
