/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const fake_names[FAKE_FAULTS] = {
    [FAKE_REQUEST_LOST] = "request lost",
    [FAKE_ANSWER_LOST] = "answer lost",
    [FAKE_EVENT_LOST] = "watch event caught up",
    [FAKE_CUT] = "link cut",
    [FAKE_LAG] = "connected to a lagging server",
    [FAKE_EXPIRY] = "session expired",
    [FAKE_STALE_READ] = "read answered without quorum",
    [FAKE_STALE_SYNC] = "sync answered by a deposed leader",
    [FAKE_NEVER_WRITTEN] = "write kept by a server without quorum",
    [FAKE_COUNTER_STUCK] = "sequence counter stuck",
    [FAKE_COUNTER_BELOW] = "negative sequence number",
    [FAKE_TOUCH_LOST] = "touch lost with its server",
    [FAKE_TOUCH_LATE] = "touch of a session off the queue",
    [FAKE_RAISED] = "timeout raised by a reconnect",
    [FAKE_LOWERED] = "timeout lowered by a reconnect",
    [FAKE_WRONG_ANSWER] = "connected by an earlier attempt's answer",
    [FAKE_OWN_ERROR] = "error by a server of its own",
    [FAKE_UNKNOWN_WRITES] = "write of an unknown session",
    [FAKE_WOULD_NOT] = "request that a server would not do",
    [FAKE_HUNG_UP] = "request that a server hung up on",
    [FAKE_NOT_RESUMED] = "session that no server resumes",
    [FAKE_LATE_WRITE] = "write of an old link carried out over the new one",
};

static const char *const names[SIM_FAULTS] = {
    [SIM_HOLE] = "link that loses everything",
    [SIM_STALL] = "server sits on its answers",
    [SIM_ISOLATED] = "server cut off from the others",
    [SIM_DEPOSED] = "deposed leader",
    [SIM_ELECTION] = "leader elected",
    [SIM_OUTAGE] = "no server for a while",
    [SIM_PROBE_CUT] = "second handle cut",
    [SIM_CONNECT_FAILED] = "connection refused",
    [SIM_REFUSED] = "credential refused",
    [SIM_DATA_LOSS] = "data lost",
    [SIM_PAUSE] = "process paused",
    [SIM_SUSPEND] = "machine suspended",
    [SIM_KILL] = "process killed",
    [SIM_REBIRTH] = "process started again",
    [SIM_CLOSE] = "client closed",
    [SIM_NO_MEMORY] = "request without memory",
    [SIM_NO_WATCH] = "no more watches",
    [SIM_NO_ROOM] = "session owns too much",
    [SIM_TRY] = "try",
    [SIM_DEADLINE] = "deadline passed",
    [SIM_CANCEL] = "cancelled",
    [SIM_THREAD_EXIT] = "owner exits holding",
    [SIM_LEASE] = "lease",
    [SIM_LEASE_RENEWED] = "lease renewed",
    [SIM_LEASE_ENDED] = "lease ended",
    [SIM_DOWNGRADE] = "read lock under the write lock",
    [SIM_ALONE] = "grant by the node's number",
    [SIM_ALONE_MULTI] = "the same in a transaction",
    [SIM_GROUP_COMMIT] = "creates and deletes in one transaction",
    [SIM_MADE_ANEW] = "path made anew in the middle of its count",
    [SIM_BEHIND_OWN] = "place by the node's number",
    [SIM_SEVERAL_PERMITS] = "several permits in one request",
    [SIM_MULTI] = "multi-lock",
    [SIM_MULTI_STOPPED] = "multi-lock stopped",
    [SIM_QUERY] = "query",
    [SIM_REVOKED] = "request to release",
    [SIM_OVERWRITTEN] = "node's data overwritten",
    [SIM_DELETED] = "node deleted by an administrator",
    [SIM_DENIED] = "node that its owner may not check",
    [SIM_ALLOWED] = "node that its owner may check again",
    [SIM_COLLECTED] = "empty container removed",
    [SIM_STRANGER] = "child that is no contender",
    [SIM_COUNTER_ZONE] = "counter in the zone not granted",
    [SIM_COUNTER_END] = "counter at its end",
    [SIM_NO_CONTAINERS] = "server without containers",
    [SIM_NO_CREATE2] = "server without create2",
    [SIM_NO_REMOVE_WATCHES] = "server without removeWatches",
    [SIM_LIMIT_CHANGED] = "number of permits changed",
    [SIM_MISMATCH] = "other number of permits",
    [SIM_LATE_ANSWERS] = "completion thread stands still",
    [SIM_RELINKED_UNHEARD] = "link lost and remade unheard",
    [SIM_CLOSE_CALL] = "server cut off where the window is nearly too long",
    [SIM_EXPIRED_CLOSE] = "session expires right after its window",
    [SIM_READERS_NODE] = "a reader's node is kept for all of a handle",
    [SIM_READER_CAME_IN] = "a reader comes in without a request",
    [SIM_GONE_AT_UNLOCK] = "unlock of a hold that is lost unheard",
    [SIM_DOUBTED] = "unlock of a hold in doubt",
};

/* --- counting ------------------------------------------------------------- */

static const char *contender_name(int state)
{
    return zkl_contender_state_name((enum zkl_contender_state)state);
}

static const char *session_name(int state)
{
    return zkl_session_state_name((enum zkl_session_state)state);
}

static const char *permits_name(int state)
{
    return zkl_bundle_state_name((enum zkl_bundle_state)state);
}

static bool contender_may(int from, int to)
{
    return zkl_contender_may_move((enum zkl_contender_state)from, (enum zkl_contender_state)to);
}

/* The driver reports a lost link before the session's end (B60), so this one does not come about;
 * the core takes it as it comes. */
static bool session_may(int from, int to)
{
    if (from == ZKL_SESSION_CONNECTED && to == ZKL_SESSION_STARTING)
        return false;
    return zkl_session_may_move((enum zkl_session_state)from, (enum zkl_session_state)to);
}

static const char *local_queue_name(int state)
{
    return zkl_local_queue_state_name((enum zkl_local_queue_state)state);
}

static bool local_queue_may(int from, int to)
{
    return zkl_local_queue_may_move((enum zkl_local_queue_state)from,
                                    (enum zkl_local_queue_state)to);
}

static const char *cache_name(int state)
{
    return zkl_read_cache_state_name((enum zkl_read_cache_state)state);
}

static bool cache_may(int from, int to)
{
    return zkl_read_cache_may_move((enum zkl_read_cache_state)from, (enum zkl_read_cache_state)to);
}

static bool permits_may(int from, int to)
{
    return zkl_bundle_may_move((enum zkl_bundle_state)from, (enum zkl_bundle_state)to);
}

void tally_move(struct tally *tally, const struct zkl_trace *trace)
{
    if (trace->kind == ZKL_TRACE_SESSION)
        tally->session[trace->from][trace->to]++;
    else if (trace->kind == ZKL_TRACE_PERMITS)
        tally->permits[trace->from][trace->to]++;
    else if (trace->kind == ZKL_TRACE_LOCAL_QUEUE)
        tally->local_queue[trace->from][trace->to]++;
    else if (trace->kind == ZKL_TRACE_CACHE)
        tally->cache[trace->from][trace->to]++;
}

static void add(uint64_t *to, const uint64_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

#define ADD(field)                                                                                 \
    add((uint64_t *)sum->field, (const uint64_t *)one->field, sizeof one->field / sizeof(uint64_t))

void tally_add(struct tally *sum, const struct tally *one)
{
    sum->schedules += one->schedules;
    sum->grants += one->grants;
    sum->losses += one->losses;
    sum->margins += one->margins;
    if (one->margins > 0 && (sum->margins == one->margins || one->margin_ns < sum->margin_ns))
        sum->margin_ns = one->margin_ns;
    if (one->longest_heal_ms > sum->longest_heal_ms)
        sum->longest_heal_ms = one->longest_heal_ms;
    ADD(faults);
    ADD(fake);
    ADD(failures);
    ADD(contender);
    ADD(session);
    ADD(permits);
    ADD(local_queue);
    ADD(cache);
    for (int i = 0; i < TALLY_STEPS; i++)
        sum->steps[i] += one->steps[i];
}

unsigned tally_median(const struct tally *tally)
{
    uint64_t below = 0;
    unsigned steps = 0;
    while (steps < TALLY_STEPS - 1 && (below += tally->steps[steps]) * 2 < tally->schedules)
        steps++;
    return steps;
}

/* --- printing ------------------------------------------------------------- */

struct report {
    const struct tally *tally;
    unsigned at_least;
    int rare;
};

/* What befalls a read lock under its write lock only, whose create was not answered. */
#define DOWNGRADES_PART 5
static bool is_of_downgrades(const char *what)
{
    static const char *const moves[] = {"RECOVERING -> CONFIRMING", "RECOVERING -> HOLDING",
                                        "RECOVERING -> ENDED", "CONFIRMING -> ENDED"};
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        if (strstr(what, moves[i]))
            return true;
    }
    return false;
}

static void print_one(struct report *r, uint64_t count, const char *what)
{
    double per_million =
        r->tally->schedules ? 1e6 * (double)count / (double)r->tally->schedules : 0;
    bool rare =
        per_million < (is_of_downgrades(what) ? r->at_least / DOWNGRADES_PART : r->at_least);
    r->rare += rare;
    printf("%12.0f  %s%s\n", per_million, what, rare ? "  (rare)" : "");
}

static void print_moves(struct report *r, const char *who, const uint64_t *counts, int states,
                        const char *(*name)(int), bool (*may)(int from, int to))
{
    char what[64];
    for (int i = 0; i < states * states; i++) {
        snprintf(what, sizeof what, "%s %s -> %s", who, name(i / states), name(i % states));
        if (may(i / states, i % states))
            print_one(r, counts[i], what);
    }
}

int tally_print(const struct tally *tally, unsigned at_least)
{
    struct report r = {tally, at_least, 0};
    printf("how often in a million schedules (of %" PRIu64 "):\n", tally->schedules);
    for (int i = 0; i < FAKE_FAULTS; i++)
        print_one(&r, tally->fake[i], fake_names[i]);
    for (int i = 0; i < SIM_FAULTS; i++)
        print_one(&r, tally->faults[i], names[i]);
    print_moves(&r, "contender", &tally->contender[0][0], ZKL_CONTENDER_STATES, contender_name,
                contender_may);
    print_moves(&r, "session", &tally->session[0][0], ZKL_SESSION_STATES, session_name,
                session_may);
    print_moves(&r, "permits", &tally->permits[0][0], ZKL_BUNDLE_STATES, permits_name, permits_may);
    print_moves(&r, "local queue", &tally->local_queue[0][0], ZKL_LOCAL_QUEUE_STATES,
                local_queue_name, local_queue_may);
    print_moves(&r, "cache", &tally->cache[0][0], ZKL_READ_CACHE_STATES, cache_name, cache_may);
    return r.rare;
}
