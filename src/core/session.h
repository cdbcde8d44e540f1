/* SPDX-License-Identifier: Apache-2.0
 * The client's session as a state machine: what the link and the clock do to it, and when a second
 * handle is tried because libzookeeper never reports the expiry of a session that a server has
 * forgotten. */
#ifndef ZKL_CORE_SESSION_H
#define ZKL_CORE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "contender.h"

enum zkl_session_state {
    ZKL_SESSION_STARTING, /* no session yet, or the next one after an expiry */
    ZKL_SESSION_CONNECTED,
    ZKL_SESSION_SUSPENDED, /* the link is down */
    ZKL_SESSION_PROBING,   /* still down; a second handle is trying too */
    ZKL_SESSION_PROBED,    /* the second one connected; the first has a last chance */
    ZKL_SESSION_FAILED,    /* credential refused */
    ZKL_SESSION_CLOSED,
    ZKL_SESSION_STATES
};

enum zkl_session_event_type {
    ZKL_SE_UP, /* session, timeout_ms */
    ZKL_SE_DOWN,
    ZKL_SE_EXPIRED,
    ZKL_SE_PROBE_UP, /* the second handle connected: session, timeout_ms */
    ZKL_SE_PROBE_DOWN,
    ZKL_SE_TIMER,
    ZKL_SE_AUTH_FAILED,
    ZKL_SE_CLOSE,
    ZKL_SESSION_EVENT_TYPES
};

struct zkl_session_event {
    enum zkl_session_event_type type;
    struct zkl_time now;
    int64_t session;
    int timeout_ms; /* negotiated */
};

/* What the driver is to do with its handles, as flags; executed in this order. */
enum zkl_session_action {
    ZKL_SA_LINK_UP = 1, /* tell the contenders */
    ZKL_SA_LINK_DOWN = 2,
    ZKL_SA_EXPIRE = 4,         /* all holds are lost, all nodes gone */
    ZKL_SA_REPLACE_HANDLE = 8, /* drop the handle, open another */
    ZKL_SA_OPEN_PROBE = 16,
    ZKL_SA_DROP_PROBE = 32,
    ZKL_SA_ADOPT_PROBE = 64, /* the probe becomes the handle, the old one is dropped */
    ZKL_SA_FAIL = 128,       /* credential refused: everybody is told */
    ZKL_SA_CLOSED = 256,
    ZKL_SA_HELLO = 512 /* the core's: the first read was answered */
};

struct zkl_session {
    enum zkl_session_state state;
    int64_t id;     /* 0: none */
    int timeout_ms; /* negotiated; asked for, before the first connection */
    int64_t probe_id;
    int probe_timeout_ms;
    int64_t timer_mono_ns; /* INT64_MAX: none */
    int64_t
        proved_boot_ns; /* send time of the last answered quorum write; 0: none in this session */
};

void zkl_session_init(struct zkl_session *session, int timeout_ms);

/* Returns ZKL_SA_* flags. */
unsigned zkl_session_step(struct zkl_session *session, const struct zkl_session_event *event,
                          void (*moved)(void *arg, enum zkl_session_state from, const char *why),
                          void *arg);

bool zkl_session_may_move(enum zkl_session_state from, enum zkl_session_state to);
const char *zkl_session_state_name(enum zkl_session_state state);

/* A quorum write that was sent then has been answered. */
void zkl_session_proved(struct zkl_session *session, int64_t sent_boot_ns);

/* --- asked for at every step: inline ------------------------------------------------------- */

static inline bool zkl_session_connected(const struct zkl_session *session)
{
    return session->state == ZKL_SESSION_CONNECTED;
}

/* So many quarters of the timeout after the last proof, on CLOCK_BOOTTIME. */
static inline int64_t zkl_session_quarters(const struct zkl_session *session, int quarters)
{
    return session->proved_boot_ns + (int64_t)session->timeout_ms * 250000 * quarters;
}

/* The window: three quarters of the negotiated timeout after the SEND time of the last answered
 * quorum write. The quarter is for what a follower keeps from the leader (it hands session touches
 * on every half tick) and for the clocks' drift. 0: empty. */
static inline int64_t zkl_session_window_end(const struct zkl_session *session)
{
    return session->proved_boot_ns == 0 ? 0 : zkl_session_quarters(session, 3);
}

/* A grant wants more than a window's last moments: two heartbeats may be due, no more. */
static inline int64_t zkl_session_fresh_until(const struct zkl_session *session)
{
    return session->proved_boot_ns == 0 ? 0 : zkl_session_quarters(session, 2);
}

/* When the next heartbeat is due. */
static inline int64_t zkl_session_heartbeat_due(const struct zkl_session *session)
{
    return zkl_session_quarters(session, 1);
}

#endif
