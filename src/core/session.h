/* SPDX-License-Identifier: Apache-2.0
 * The client's session as a state machine: how it reacts to the link and the clock, and when it
 * tries a second handle because libzookeeper never reports the expiry of a session that a server
 * has forgotten. */
#ifndef ZKL_CORE_SESSION_H
#define ZKL_CORE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "contender.h"
#include "proof.h"

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

    /* UP, PROBE_UP: */
    int64_t session;
    int timeout_ms;         /* announced */
    int64_t opened_boot_ns; /* read before the handle was opened; CLOCK_BOOTTIME */
    bool first;             /* the handle never had a link before */
    bool unprovable;        /* the server is of another make: how it ends sessions is not known */
};

/* What the driver must do with its handles, as flags; executed in this order. */
enum zkl_session_action {
    ZKL_SA_LINK_UP = 1, /* notify the contenders */
    ZKL_SA_LINK_DOWN = 2,
    ZKL_SA_EXPIRE = 4,         /* all holds are lost, all nodes deleted */
    ZKL_SA_REPLACE_HANDLE = 8, /* drop the handle, open another */
    ZKL_SA_OPEN_PROBE = 16,
    ZKL_SA_DROP_PROBE = 32,
    ZKL_SA_ADOPT_PROBE = 64, /* the probe becomes the handle, the old one is dropped */
    ZKL_SA_FAIL = 128,       /* credential refused: all callers are notified */
    ZKL_SA_CLOSED = 256,
    ZKL_SA_FIRST_READ = 512,   /* the core's: the first read was answered */
    ZKL_SA_DROP_HANDLE = 1024, /* drop the handle: REPLACE_HANDLE follows after a pause */
    /* the core's: end the link, and make the next one to another server */
    ZKL_SA_LEAVE_SERVER = 2048
};

struct zkl_session {
    enum zkl_session_state state;
    int64_t id;                     /* 0: none */
    int asked_ms;                   /* timeout asked for */
    int timeout_ms;                 /* announced last; before the first connection asked_ms */
    struct zkl_session_event probe; /* how the second handle came up last */
    int64_t timer_mono_ns;          /* INT64_MAX: none */
    struct zkl_time born;           /* when the session came up */
    int64_t pause_ns;    /* before the next session, as the last one ended early; 0: none */
    int64_t use_mono_ns; /* when the next link is used; 0: one was since the last pause */
    bool useless;        /* set by the core: the last links ended without the answer that counts */
    bool waits;          /* CONNECTED, but the link is not used before the timer */
    bool is_exact;       /* pauses are no longer than that: for tests/explore, which knows no ids */
    bool unprovable;     /* as its last link said */
    struct zkl_proof proof;
};

void zkl_session_init(struct zkl_session *session, int timeout_ms, int tick_ms);

/* Returns ZKL_SA_* flags. */
unsigned zkl_session_step(struct zkl_session *session, const struct zkl_session_event *event,
                          void (*moved)(void *arg, enum zkl_session_state from, const char *why),
                          void *arg);

bool zkl_session_may_move(enum zkl_session_state from, enum zkl_session_state to);
const char *zkl_session_state_name(enum zkl_session_state state);

/* --- asked for at every step: inline ------------------------------------------------------- */

static inline bool zkl_session_connected(const struct zkl_session *session)
{
    return session->state == ZKL_SESSION_CONNECTED && !session->waits;
}

/* The smallest that was announced; before that what was asked for. */
static inline int64_t zkl_session_timeout_ns(const struct zkl_session *session)
{
    int64_t announced = session->proof.timeout_ns;
    return announced != 0 ? announced : session->asked_ms * INT64_C(1000000);
}

/* What the machines go by: on a server of another make it is the window that a ZooKeeper would have.
 * 0: empty. */
static inline int64_t zkl_session_window_end(const struct zkl_session *session)
{
    return zkl_proof_window_end(&session->proof);
}

/* What owners are told. 0: empty. */
static inline int64_t zkl_session_proved_until(const struct zkl_session *session)
{
    return session->unprovable ? 0 : zkl_session_window_end(session);
}

#endif
