/* SPDX-License-Identifier: Apache-2.0 */
/* links.pml: connections of one session, one after the other, through one follower. Is the session alive at
 * the leader as long as a window says that was proved by (ii) of the rule: by the link's start?
 *
 * Covers: a connection that the client gave up while its request for a session is still on its way or
 * already at the follower, which reads it in any order with the next one's; Learner.pendingRevalidations,
 * keyed by session: the answer to one connection's REVALIDATE declares the other connected; REVALIDATE at
 * the leader (LearnerHandler.revalidateSession -> touchSession), which can come while the session's bucket
 * is taken, and its answer, which can come at any time later; CONNECTED put into the completion queue when
 * the answer comes and handled at any time later, after the end of its link too; the loss of all requests
 * told before the next socket exists (handle_error, cleanup_bufs in zookeeper.c); the session's first
 * connection; a follower cut off or frozen; a new leader, before and after the window was given.
 *
 * Abstracted: one request is followed, any one, that ended before the link in question: its sent time is
 * the link's start. Touches by the follower's rounds come at any time, or not at all. Connections
 * through another follower: to this session they are touches at any time, and the leader knows the owner
 * of a session (SessionMovedException), so that a proof never passes over a connection that lost it.
 *
 * What the rule's "over L" and "ended before" are there for is shown by ANY_LINK (a request answered over an
 * earlier link counts as in (i)), JUDGED_AT_CALL (a proof belongs to the link that the last session event told
 * of, which may be gone) and SENT_IS_ENOUGH (a request sent before CONNECTED counts for the start).
 *
 * Bound: CONNECTIONS of the session after the first; the leader's age and all times are free.
 */
#define PACKETS 4
#define PROOF 15 /* in the stream; else the number of the connection that asks */
#include "leader.pml"

#ifndef CONNECTIONS
#define CONNECTIONS 3
#endif
#ifndef WAIT
#define WAIT D
#endif
#define LENGTH (T - R)

mtype = { NOT_YET, SENT, FORWARDED, CHECKED, ANSWERED, OVER };

/* --- the follower ----------------------------------------------------------------------------------- */

byte answers;               /* from the leader, in order: "valid" so often */
byte pending;               /* pendingRevalidations: the connection, or 0 */
byte arrived;               /* bits: the follower has read the request of that connection */

#define BIT(connection) (1 << (connection))
#define HAS_ARRIVED(connection) ((arrived & BIT(connection)) != 0)
#define ANY_DUE (BATCH_DUE || PACKET_DUE)

/* The follower reads what a client's socket brought. put() into the map and the packet to the leader are one
 * step here: the wait between them is part of the packet's. */
inline ask_leader(connection)
{
    arrived = arrived | BIT(connection);
    pending = connection;
    put_packet(connection);
    printf("follower: reads connection %d's request, asks the leader\n", connection)
}

/* --- the client ------------------------------------------------------------------------------------- */

byte current;           /* its connection, by number; 0: none yet */
bool alive;             /* the follower has not lost it */
bool up;                /* the follower took the session up on it, and the library saw that */
mtype connected = NOT_YET; /* the session event of that: NOT_YET, SENT (it is queued), ANSWERED (handled) */
byte connected_age;     /* since it was handled, up to WAIT */
mtype request = NOT_YET; /* NOT_YET, SENT, OVER: its end is queued (ANSWERED: with ANY_LINK only) */
bool counts;            /* the request ended before the current connection's socket existed */
bool first;             /* the current connection is the session's first */
byte start_age;         /* since the stamp that counts */
#ifdef ANY_LINK
byte answered_age;      /* since the request was answered, over an earlier link */
#endif
mtype proof = NOT_YET;

#define OPEN (proof == ANSWERED && start_age + OVERLAP <= LENGTH)

#ifdef ANY_LINK
#define LONG_ENOUGH (request == ANSWERED && answered_age >= P + 2 * D)
#else
#define LONG_ENOUGH (first || connected_age >= WAIT)
#endif

inline connection_ends()
{
    alive = false;
    up = false;
#ifndef JUDGED_AT_CALL
    connected = NOT_YET;
    connected_age = 0;
    counts = false;
    first = false;
#endif
    WHEN(proof == SENT || proof == FORWARDED || proof == CHECKED, proof = OVER)
}

inline open_connection()
{
    connection_ends();
    current++;
    alive = true;
    WHEN(request == SENT, request = OVER; printf("client: the request ends with connection loss\n"));
    /* Else, with JUDGED_AT_CALL only, what belongs to the old link is still believed. */
    WHEN(connected == NOT_YET, counts = (request == OVER || request == ANSWERED));
    printf("client: opens connection %d\n", current)
}

/* finishSessionInit, and the client's library reads it. */
inline leader_answers()
{
    answers--;
    if
    :: pending != 0 && pending == current && alive && !up ->
        up = true;
        WHEN(connected == NOT_YET, connected = SENT);
        printf("follower: the leader's answer, for connection %d: CONNECTED is queued\n", pending)
    :: else -> printf("follower: the leader's answer, connection %d\n", pending)
    fi;
    pending = 0
}

inline packet_arrives()
{
    if
    :: packet[0] == PROOF ->
        if
        :: proof == FORWARDED && !closed -> proof = CHECKED
        :: proof == FORWARDED && closed -> proof = OVER
        :: else
        fi;
        printf("leader: the proof arrives, %e\n", proof)
    :: packet[0] != PROOF && !closed ->
        printf("leader: touched by connection %d's REVALIDATE, lost %d\n", packet[0], taken);
        touch_at_leader();
        answers++
    :: else /* not valid: the session is over, and so is the client's window if it hears of it */
    fi;
    shift_packets()
}

/* Frozen, cut off from the leader or following a new one: a follower closes all connections. */
inline follower_ends()
{
    connection_ends();
    pending = 0;
    answers = 0;
    arrived = (1 << (current + 1)) - 1
}

inline tick()
{
    printf("  ... a tick\n");
    leader_ages();
    packets_age();
    WHEN(request != NOT_YET, age(start_age, LENGTH + 1));
    WHEN(connected == ANSWERED && proof == NOT_YET, age(connected_age, WAIT))
#ifdef ANY_LINK
    ;
    WHEN(request == ANSWERED && proof == NOT_YET, age(answered_age, P + 2 * D))
#endif
}

init {
    atomic { choose_lateness(); printf("late by up to: packet %d, batch %d\n", late_packet, late_batch) };
    /* The session's first connection: the opening of the handle is its start, and a session that was just made
     * is in no bucket that could be taken. Or any later moment of its life: quiet for any time, as far as
     * the client lets it be. */
    if
    :: atomic { true ->
        first = true; current = 0; request = OVER; counts = true; connected = SENT; alive = true; up = true;
        printf("client: opens the handle, the session is made\n")
    }
    :: true
    fi;
    do
    :: start_age > LENGTH || proof == OVER -> break

    :: d_step { !(ANY_DUE) -> tick() }

    /* the leader */
    :: d_step { MAY_TAKE -> take_bucket() }
    :: d_step { MAY_RUN_AHEAD -> run_ahead() }
    :: atomic { taken -> close_session(); assert(!(OPEN)) }
    :: d_step { packets > 0 -> packet_arrives() }
    :: d_step { !closed && !taken && quiet > 0 -> quiet = 0; printf("leader: touched by a round\n") }
    :: d_step { !closed && proof != CHECKED -> new_leader(); lose_packets(); follower_ends() }

    /* the follower: an earlier connection's request, or the current one's */
    :: d_step { current >= 1 && !HAS_ARRIVED(1) && packets < PACKETS -> ask_leader(1) }
#if CONNECTIONS >= 2
    :: d_step { current >= 2 && !HAS_ARRIVED(2) && packets < PACKETS -> ask_leader(2) }
#endif
#if CONNECTIONS >= 4
    :: d_step { current >= 4 && !HAS_ARRIVED(4) && packets < PACKETS -> ask_leader(4) }
#endif
#if CONNECTIONS >= 3
    :: d_step { current >= 3 && !HAS_ARRIVED(3) && packets < PACKETS -> ask_leader(3) }
#endif
    :: d_step { answers > 0 -> leader_answers() }
    :: d_step { alive -> follower_ends(); printf("follower: freezes, or is cut off\n") }
    :: d_step { !alive && packets > 0 -> lose_packets() }

    /* the client */
    :: d_step { request == NOT_YET -> request = SENT; start_age = 0; printf("client: sends a request\n") }
    :: d_step { current < CONNECTIONS && proof != ANSWERED -> open_connection() }
    :: d_step { connected == SENT -> connected = ANSWERED; connected_age = 0;
#ifdef STAMPED_WHEN_HANDLED
        WHEN(counts, start_age = 0);
#endif
#ifdef SENT_IS_ENOUGH
        WHEN(request == SENT, counts = true);
#endif
        printf("client: handles CONNECTED\n") }
#ifdef ANY_LINK
    :: d_step { connected == ANSWERED && up && request == SENT ->
        request = ANSWERED; answered_age = 0;
        printf("client: the request is answered\n")
    }
#endif
    :: d_step { connected == ANSWERED && counts && proof == NOT_YET && LONG_ENOUGH && !(ANY_DUE) ->
        proof = SENT;
        printf("client: sends the proof\n")
    }
    :: d_step { proof == SENT && up && packets < PACKETS ->
        proof = FORWARDED; put_packet(PROOF);
        printf("follower: forwards the proof\n")
    }
    :: atomic { proof == CHECKED && up ->
        proof = ANSWERED;
        printf("client: the proof is answered, WINDOW OPEN for %d of %d\n", LENGTH - start_age, T);
        assert(!(closed && OPEN))
    }
#ifdef WINDOW
    :: atomic { proof == ANSWERED -> assert(false) }
#endif
    od
}
