/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.pml: one link, over one follower. Is the session alive at the leader as long as a window says
 * that was proved by (i) of the rule: by a request that was answered at least P + 2 D before the proof?
 *
 * Covers: the follower's table of touches (LearnerSessionTracker.touchSession and snapshot), its answers to
 * the leader's pings (Leader.lead, Learner.ping: the touches are taken, then the answer is written, maybe
 * later), late by up to D; the stream to the leader, in order, each packet late by up to D (LearnerHandler,
 * case PING: touches; case REQUEST: PrepRequestProcessor.checkSession, which does not touch); a bucket of
 * expiries that is worked off while touches still succeed (SessionTrackerImpl.run); a follower that freezes,
 * dies or is cut off at any moment, with what is on its way lost from any packet on, and a process that
 * stands still or completions that come late (any time passes between any two steps of the client); a new
 * leader.
 *
 * Abstracted: of the client's requests one is followed, any one, and one proof, any one behind it; all
 * others are touches at the follower, at any time. Its server is a follower: at the leader itself a touch
 * counts at once. The rule takes the NEWEST request answered in time; an older one gives a shorter window
 * in the same way. When the leader asks is free: only how late the answer may come is bounded. Clocks
 * differ by whole ticks at any moment (AHEAD); of R one tick is needed for edges.
 *
 * Rules:       (none) sent time of a request answered WAIT before the proof, + T - R
 *              RULE_OLD: sent time of the proof + 3/4 T;  TOUCH_AT_REQUEST: the same + T - R
 * Dropped:     see run.py, which has a sentence for each
 */
#define PACKETS 3
#define TOUCHED 1
#define PROOF 2
#include "leader.pml"

#ifndef WAIT
#define WAIT (P + 2 * D)
#endif

#ifdef RULE_OLD
#define LENGTH (3 * T / 4)
#else
#define LENGTH (T - R)
#endif
#if defined(RULE_OLD) || defined(TOUCH_AT_REQUEST)
#define NO_REQUEST_NEEDED
#endif

/* --- the follower ----------------------------------------------------------------------------------- */

bool dead;        /* frozen, gone or cut off: the link's end, for good */
bool noted;       /* the session is in the table of touches */
bool holding;     /* touches taken for an answer that is not written yet */
bool held;        /* the session is among them */
byte since_taken; /* age of that */
byte since_last;  /* age of taking the touches for the last answer that was written */

#ifdef TWO_ROUNDS
bool noted_above; /* the observer master's own table, and the age of its last round */
byte since_above;
#define ABOVE_DUE (!dead && since_above >= P)
#else
#define ABOVE_DUE false
#endif

#define ANSWER_DUE (!dead && since_last >= P + late_round)
#define ANY_DUE (BATCH_DUE || ANSWER_DUE || PACKET_DUE || ABOVE_DUE)

inline follower_ends()
{
    dead = true;
    noted = false;
    holding = false;
    held = false;
    since_taken = 0;
    since_last = 0;
#ifdef TWO_ROUNDS
    noted_above = false;
    since_above = 0;
#endif
}

/* --- the client ------------------------------------------------------------------------------------- */

mtype = { NOT_YET, SENT, AT_FOLLOWER, FORWARDED, CHECKED, ANSWERED, OVER };
mtype request = NOT_YET; /* NOT_YET, SENT, AT_FOLLOWER (touched there), ANSWERED (the completion was called) */
mtype proof = NOT_YET;   /* NOT_YET, SENT, FORWARDED, CHECKED (at the leader), ANSWERED: the window */
byte request_age;        /* since the stamp that counts */
byte answered_age;

#define OPEN (proof == ANSWERED && request_age + OVERLAP <= LENGTH)

#ifdef ANY_WRITE
#define PASSES true
#else
#define PASSES !closed
#endif

inline check_proof()
{
    if
    :: PASSES -> proof = CHECKED
    :: else -> proof = OVER
    fi;
    printf("leader: the proof arrives, %e\n", proof)
}

inline packet_arrives()
{
    if
    :: packet[0] == TOUCHED ->
        printf("leader: touches come, lost %d\n", taken);
#ifdef TWO_ROUNDS
        noted_above = true
#else
        touch_at_leader()
#endif
    :: else -> check_proof()
    fi;
    shift_packets()
}

inline tick()
{
    printf("  ... a tick\n");
    leader_ages();
    if
    :: !dead ->
        since_last++;
        WHEN(holding, since_taken++);
#ifdef TWO_ROUNDS
        since_above++
#endif
    :: else
    fi;
    packets_age();
    WHEN(request != NOT_YET, age(request_age, LENGTH + 1));
    WHEN(request == ANSWERED && proof == NOT_YET, age(answered_age, WAIT))
}

init {
    atomic { choose_lateness(); printf("late by up to: round %d, packet %d, batch %d\n", late_round, late_packet, late_batch) };
    do
    /* Past its end no window can be wrong, and without the proof there is none. */
    :: request_age > LENGTH || proof == OVER -> break

    :: d_step { !(ANY_DUE) -> tick() }

    /* the leader */
    :: d_step { MAY_TAKE -> take_bucket() }
    :: d_step { MAY_RUN_AHEAD -> run_ahead() }
    :: atomic { taken -> close_session(); assert(!(OPEN)) }
    :: d_step { packets > 0 -> packet_arrives() }
#ifdef TWO_ROUNDS
    :: d_step { !dead && noted_above ->
        noted_above = false; since_above = 0; touch_at_leader();
        printf("observer master: its touches reach the leader\n")
    }
    :: d_step { !dead && !noted_above -> since_above = 0 }
#endif
    :: d_step { !closed && !dead && (proof == NOT_YET || proof == ANSWERED) -> new_leader(); follower_ends(); lose_packets() }

    /* the follower */
    :: d_step { !dead && !noted -> noted = true; printf("follower: touched by a request or a ping\n") }
    :: d_step { !dead && !holding ->
        holding = true; held = noted; noted = false; since_taken = 0;
        printf("follower: takes its touches, %d\n", held)
    }
    :: d_step { holding && (!held || packets < PACKETS) ->
        WHEN(held, put_packet(TOUCHED));
        since_last = since_taken; since_taken = 0; holding = false; held = false; printf("follower: writes its answer to the ping\n") }
    :: d_step { !dead -> follower_ends(); printf("follower: freezes\n") }
    :: d_step { dead && packets > 0 -> lose_packets() }

    /* the client */
#ifdef NO_REQUEST_NEEDED
    :: d_step { proof == NOT_YET ->
        proof = SENT; request = SENT; request_age = 0;
        printf("client: sends a proof\n")
    }
#else
    :: d_step { request == NOT_YET -> request = SENT; request_age = 0; printf("client: sends a request\n") }
    :: d_step { request == SENT && !dead -> request = AT_FOLLOWER; printf("follower: touched by the request\n");
#ifndef PUT_IS_LOST
        noted = true
#endif
    }
    :: d_step { request == AT_FOLLOWER -> request = ANSWERED; answered_age = 0;
#ifdef STAMPED_AT_ANSWER
        request_age = 0;
#endif
        printf("client: its completion is called\n") }
    :: d_step { request == ANSWERED && proof == NOT_YET && answered_age >= WAIT && !(ANY_DUE) ->
        proof = SENT; answered_age = 0;
        printf("client: sends the proof\n")
    }
#endif
#ifdef READ_IS_PROOF
    :: atomic { proof == SENT && !dead ->
        noted = true; proof = ANSWERED;
        printf("client: a read is answered, window open\n");
        assert(!(closed && OPEN))
    }
#else
    :: d_step { proof == SENT && !dead && packets < PACKETS ->
        noted = true; proof = FORWARDED; put_packet(PROOF);
        printf("follower: forwards the proof\n")
    }
    :: atomic { proof == CHECKED && !dead ->
        proof = ANSWERED;
        printf("client: the proof is answered, WINDOW OPEN for %d of %d\n", LENGTH - request_age, T);
        assert(!(closed && OPEN))
    }
#endif
#ifdef WINDOW
    :: atomic { proof == ANSWERED -> assert(false) }
#endif
    od
}
