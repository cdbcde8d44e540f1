/* SPDX-License-Identifier: Apache-2.0 */
/* What all models share: the scale of time, and the leader's clock for one session.
 *
 * Time is in whole ticks. No clock counts from a beginning: each thing has an age, which stops where
 * nothing depends on it any more, so the state space is finite though the time is not bounded. Any number
 * of steps fits into a tick, in any order. Bounds are kept by not letting a tick pass: what has to be done
 * by then is done first. Since all bounds are whole numbers, a run in real time that breaks the promise can
 * be shifted to whole ticks with the same order of its steps; a window counts as open at its last tick
 * too, so that nothing is lost by that. */

#define WHEN(condition, step) if :: condition -> step :: else fi

#ifndef T
#define T 16 /* the session timeout */
#endif
#ifndef P
#define P 4 /* tick / 2, the tick being T / 2: the leader asks for touches so often */
#endif
#ifndef D
#define D 1 /* how late things may be */
#endif
#ifndef R
#define R 1 /* clock rates and rounding; whatever is below a tick is in it here */
#endif

/* How late each single thing may be: a round by D, and a packet and a batch together by another D, split in
 * any way. D_FOR_EACH: each of the three by D. */
byte late_round;  /* a follower's answer to the leader's ping */
byte late_packet; /* a packet from the follower to the leader */
byte late_batch;  /* SessionTrackerImpl.run: from a bucket's being taken to the last setSessionClosing */

#ifndef MORE_ROUND
#define MORE_ROUND 0
#endif
#ifndef MORE_PACKET
#define MORE_PACKET 0
#endif
#ifndef MORE_BATCH
#define MORE_BATCH 0
#endif

inline choose_lateness()
{
#ifdef D_FOR_EACH
    late_round = D;
    late_packet = D;
    late_batch = D;
#else
    late_round = D;
    late_batch = D;
    do
    :: late_batch > 0 -> late_batch--; late_packet++
    :: break
    od;
#endif
#ifdef NO_BATCHES
    late_batch = 0;
#endif
    late_round = late_round + MORE_ROUND;
    late_packet = late_packet + MORE_PACKET;
    late_batch = late_batch + MORE_BATCH;
}

/* So many ticks must two holds overlap to count. 0 where the rule should hold; 1 where it should not, so that
 * what is found is more than an edge. */
#ifndef OVERLAP
#define OVERLAP 0
#endif

/* The timeout that the leader really uses; less than T is against an assumption. */
#ifndef GRANTED
#define GRANTED T
#endif

/* So many ticks may the leader's clock run ahead of the client's in the life of one window. */
#ifndef AHEAD
#define AHEAD 0
#endif
byte ahead = AHEAD;

byte quiet;     /* age of the last touch that counts, up to T */
bool taken;     /* the session's bucket is off the queue (ExpiryQueue.poll): touches succeed and are lost */
byte taken_age;
bool closed;    /* setSessionClosing: the nodes go, and somebody else is granted the lock */

/* SessionTrackerImpl.touchSession. A touch of a session whose bucket is taken puts it into a new bucket,
 * but run() has it in the set that it works off. */
inline touch_at_leader()
{
    WHEN(!taken && !closed, quiet = 0)
}

/* ExpiryQueue rounds up to whole ticks of the server, and the thread may be late: so at any time from the
 * timeout on. */
#define MAY_TAKE (!taken && !closed && quiet >= GRANTED)

inline take_bucket()
{
    taken = true;
    taken_age = 0;
    printf("leader: takes the session's bucket off the queue\n")
}

#define MAY_RUN_AHEAD (ahead > 0 && !closed && quiet < GRANTED)

inline run_ahead()
{
    ahead--;
    quiet++;
    printf("leader: its clock runs a tick ahead\n")
}

inline close_session()
{
    closed = true;
    taken = false;
    taken_age = 0;
    quiet = 0;
    ahead = 0;
    printf("leader: EXPIRES the session, another client may be granted\n")
}

/* A new leader's tracker: made after the quorum of NEWLEADER, each session with its whole timeout.
 * The proof's answer says that it was committed before that. */
inline new_leader()
{
    quiet = 0;
    taken = false;
    taken_age = 0;
    printf("leader: a new one, with whole timeouts\n")
}

#define BATCH_DUE (taken && taken_age >= late_batch)

inline age(value, limit)
{
    WHEN(value < (limit), value++)
}

inline leader_ages()
{
    WHEN(!closed, age(quiet, GRANTED));
    WHEN(taken, taken_age++)
}

/* --- the stream from a follower to the leader, in order ---------------------------------------------- */

#ifdef PACKETS
byte packet[PACKETS];
byte packet_age[PACKETS];
byte packets;
byte which; /* of them; 0 between steps */

#define PACKET_DUE (packets > 0 && packet_age[0] >= late_packet)

inline put_packet(what)
{
    packet[packets] = what;
    packet_age[packets] = 0;
    packets++
}

inline shift_packets()
{
    for (which : 1 .. PACKETS - 1) {
        packet[which - 1] = packet[which];
        packet_age[which - 1] = packet_age[which]
    }
    packet[PACKETS - 1] = 0;
    packet_age[PACKETS - 1] = 0;
    packets--;
    which = 0
}

inline lose_packets()
{
    do
    :: packets > 0 -> shift_packets()
    :: else -> break
    od;
    which = 0 /* a step may not end with a loop */
}

inline packets_age()
{
    for (which : 0 .. PACKETS - 1) {
        packet_age[which] = (which < packets -> packet_age[which] + 1 : 0)
    }
    which = 0
}
#endif
