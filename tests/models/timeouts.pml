/* SPDX-License-Identifier: Apache-2.0 */
/* timeouts.pml: which timeout does a window count with? A session has several: the one stored at its creation
 * (SessionTrackerImpl.commitSession, sessionsWithTimeout), and each link's own, which its server may raise
 * to its minSessionTimeout or lower to its maxSessionTimeout (ZooKeeperServer.processConnectRequest).
 *
 * Covers: each touch counts with the timeout of the link that it comes from, also one that was noted for an
 * earlier link and comes late (LearnerSessionTracker's table: session and timeout), and moves the end of
 * the session forward or BACK (SessionTrackerImpl.touchSession, ExpiryQueue.update); a reconnect is a
 * touch that the client hears of later, or never; a new leader gives whole stored timeouts, at any moment.
 *
 * Abstracted: how a touch is proved; here a window may begin with any touch while the client has a link,
 * which is the best that (i) and (ii) of the rule can have proved. Batches of expiries are in the others.
 *
 * Rule:     (none) DESIGN: the smallest timeout announced for this session;  BELIEVE_LAST: the newest
 * Dropped:  LOWERED: a server may grant less than the session has;
 *           LOWERED and HEARD_AT_ONCE: the same, but the client handles it before any time passes
 * WINDOW:   shows that windows do open, so that no promise holds because nothing happens
 */
#define WHEN(condition, step) if :: condition -> step :: else fi

#ifndef STORED
#define STORED 4
#endif
#ifndef RAISED
#define RAISED 12
#endif
#ifndef LESS
#define LESS 2
#endif
#ifndef R
#define R 1
#endif
#ifndef OVERLAP
#define OVERLAP 0
#endif

byte left = STORED;       /* until the leader may expire the session */
bool closed;
bool was_raised;          /* some link had that timeout: a touch with it may come at any time */
bool was_lowered;
byte told;                /* announced, not yet handled by the client; 0: nothing is on its way */
byte smallest = STORED;   /* announced so far */
byte last = STORED;
bool linked = true;
bool proved;
byte proved_age;

#ifdef BELIEVE_LAST
#define BELIEVED last
#else
#define BELIEVED smallest
#endif
#define OPEN (proved && proved_age + R + OVERLAP <= BELIEVED)

inline connect(granted)
{
    left = granted;
    told = granted;
    linked = false;
    printf("leader: touched by a new link with a timeout of %d\n", granted)
}

inline touch(granted)
{
    left = granted;
    printf("leader: touched with %d\n", granted)
}

inline hear()
{
    last = told;
    WHEN(told < smallest, smallest = told);
    told = 0;
    linked = true;
    printf("client: handles CONNECTED, with a timeout of %d\n", last)
}

inline tick()
{
    printf("  ... a tick\n");
    WHEN(left > 0, left--);
    WHEN(proved && proved_age <= RAISED, proved_age++)
}

#ifdef HEARD_AT_ONCE
#define MUST_HEAR (told != 0)
#else
#define MUST_HEAR false
#endif

init {
    do
    :: closed -> break
    :: d_step { !MUST_HEAR -> tick() }

    /* the leader */
    :: atomic { left == 0 ->
        closed = true;
        printf("leader: EXPIRES the session, another client may be granted\n");
        assert(!(OPEN))
    }
    :: d_step { !MUST_HEAR ->
        linked = false; told = 0; left = STORED;
        printf("leader: a new one, with the stored timeout of %d\n", STORED)
    }

    /* links */
    :: d_step { !MUST_HEAR -> connect(STORED) }
    :: d_step { !MUST_HEAR -> was_raised = true; connect(RAISED) }
#ifdef LOWERED
    :: d_step { !MUST_HEAR -> was_lowered = true; connect(LESS) }
#endif
    :: d_step { told != 0 -> hear() }
    :: d_step { (linked || told != 0) && !MUST_HEAR ->
        linked = false; told = 0;
        printf("client: its link is cut\n")
    }

    /* touches of this link, or of an earlier one */
    :: d_step { touch(STORED) }
    :: d_step { was_raised -> touch(RAISED) }
    :: d_step { was_lowered -> touch(LESS) }
    :: d_step { linked ->
        touch(last); proved = true; proved_age = 0;
        printf("client: that is proved, WINDOW OPEN for %d\n", BELIEVED - R)
    }
#ifdef WINDOW
    :: atomic { proved -> assert(false) }
#endif
    od
}
