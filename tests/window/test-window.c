/* SPDX-License-Identifier: Apache-2.0 */
/* A holder's window is over before somebody else gets the lock: aimed at the moments in which
 * the least is known of its session.
 *
 * Three servers. A relay passes each PING of the leader to one follower late, by up to D, a
 * sixteenth of the session timeout. Clients of that follower are idle or stopped for a while and
 * then lock, or hold already, all at one moment: when a PING is late. As soon as they have their
 * answers, the test cuts the follower off, or stops it: the leader has heard of nothing since
 * the PING before. Other clients, at the other follower, wait for the same locks. The test
 * compares each window's end with the moment in which the other client had the lock.
 *
 * How good the aim is: from what the relay has seen the test knows when the leader ends each
 * session. So it also knows the least margin that any rule leaves which counts on D and no more.
 * Some run must come near that one. A run in which the machine itself was later than D shows
 * nothing, whatever came out; the test does it again. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chance.h"
#include "length.h"
#include "tool/net.h"
#include "option.h"
#include "testbed.h"

#define LONG_RUNS 100
#define NEAR_64 8 /* an eighth of T */

static const char *const role_names[ROLES] = {"idle", "stopped", "standing", "stopped holder",
                                              "late"};

struct test {
    struct testbed testbed;
    bool tick_said;
    uint64_t chance;
    int batch;
    /* what came out */
    int runs, overlaps, beyond, withheld, not_aimed;
    struct scenario {
        int runs, near;
        int64_t least_ns; /* margin */
        int slack_64;     /* margin less the computed one in 1/64 of T: the smallest */
    } scenarios[ROLES];
};

struct outcome {
    int64_t told, margin, computed;
    bool beyond;
};

struct batch {
    int session_ms, seats;
    size_t follower, other;
    bool freeze, patient;
    int64_t last_round, held_at, cut_at, gap;
};

/* --- one batch -------------------------------------------------------------------------------- */

static void draw_batch(struct test *t, struct batch *b, int seats)
{
    int leader = zks_wait_leader(t->testbed.zks, WAIT_MS), least_s = 4,
        most_s = (int)test_length(30, 5);

    if (leader < 0)
        give_up("no leader");
    memset(b, 0, sizeof *b);
    b->seats = seats;
    b->session_ms = 1000 * chance_between(&t->chance, least_s, most_s);
    if (chance(&t->chance, 50))
        b->session_ms = 4000; /* the most runs in the least time */
    b->follower = (size_t)(leader + chance_between(&t->chance, 1, 2)) % NODES;
    b->other = NODES - (size_t)leader - b->follower;
    b->freeze = chance(&t->chance, 40);
    b->patient = chance(&t->chance, 20);
}

static void draw_seat(struct test *t, const struct batch *b, int i)
{
    struct seat *s = &t->testbed.shared->seats[i];

    memset(s, 0, sizeof *s);
    snprintf(s->servers, sizeof s->servers, "%s", zks_address(t->testbed.zks, b->follower));
    snprintf(s->path, sizeof s->path, "/window-%d-%d", t->batch, i);
    s->session_ms = b->session_ms;
    s->tick_ms = t->tick_said ? t->testbed.tick_ms : 0;
    s->role = (enum role)(i < ROLES ? i : chance_between(&t->chance, 0, ROLES - 1));
    if (b->patient) /* these may have to connect again first */
        s->role = i % 2 ? ROLE_STOPPED : ROLE_STOPPED_HOLDER;
    s->absent_ms = b->session_ms * chance_between(&t->chance, 10, 90) / 100;
    if (s->role == ROLE_LATE)
        s->absent_ms /= 2;
}

/* How long before the aimed moment the test must open the seat. */
static int64_t lead_ms(const struct seat *s, const struct batch *b)
{
    return s->role == ROLE_IDLE ? s->absent_ms : s->absent_ms + b->session_ms / 4 + 200;
}

static bool is_absent(const struct seat *s)
{
    return s->role == ROLE_STOPPED || s->role == ROLE_STOPPED_HOLDER;
}

/* In the middle of the time for which a PING may be late, which comes when all had time to be brought
 * up: the leader sends one each half tick. */
static int64_t aimed_ms(const struct test *t, const struct batch *b)
{
    int64_t earliest_ms = 0, now = net_boot_ns(), half_ms = t->testbed.tick_ms / 2;
    int64_t next_ms = relay_seen(t->testbed.relay, b->follower).ping_ns / MS + b->session_ms / 32;

    for (int i = 0; i < b->seats; i++) {
        int64_t first_ms = lead_ms(&t->testbed.shared->seats[i], b) + 100;
        earliest_ms = first_ms > earliest_ms ? first_ms : earliest_ms;
    }
    earliest_ms += now / MS + 2 * half_ms;
    int64_t rounds = (earliest_ms - next_ms) / half_ms + 1;
    return net_now_ms() + next_ms + rounds * half_ms - now / MS;
}

/* Opens the seat, and stops or blocks it as long before the aimed moment as was drawn. */
static void bring_up_seat(struct test *t, const struct batch *b, int i, int64_t left_ms)
{
    struct seat *s = &t->testbed.shared->seats[i];

    if (s->pid == 0 && left_ms <= lead_ms(s, b))
        seat_start(&t->testbed, i);
    if (s->ready && !s->is_away && left_ms <= s->absent_ms) {
        if (is_absent(s))
            kill(s->pid, SIGSTOP);
        s->block = s->role == ROLE_LATE;
        s->is_away = true;
    }
}

static void bring_up(struct test *t, const struct batch *b)
{
    int64_t aim_ms = aimed_ms(t, b), left_ms;
    int64_t hold_ms =
        b->session_ms / 32 + t->testbed.tick_ms * 3 / 4; /* before the PING before it */
    bool holds = false;

    while ((left_ms = aim_ms - net_now_ms()) > 0) {
        for (int i = 0; i < b->seats; i++)
            bring_up_seat(t, b, i, left_ms);
        if (!holds && left_ms <= hold_ms) {
            relay_hold(t->testbed.relay, b->follower);
            holds = true;
        }
        net_nap_ms(1);
    }
}

/* It was answered what it had to ask after the aimed moment. */
static bool has_struck(const struct seat *s, int64_t go_at)
{
    return s->role < ROLE_STANDING ? s->granted_ns != 0 : s->end_seen_ns > go_at;
}

static bool have_struck(const struct test *t, const struct batch *b, int64_t go_at)
{
    for (int i = 0; i < b->seats; i++) {
        if (!has_struck(&t->testbed.shared->seats[i], go_at))
            return false;
    }
    return true;
}

static void let_go(struct test *t, const struct batch *b)
{
    for (int i = 0; i < b->seats; i++) {
        t->testbed.shared->seats[i].go = 1;
        if (is_absent(&t->testbed.shared->seats[i]))
            kill(t->testbed.shared->seats[i].pid, SIGCONT);
    }
}

static void cut_off(struct test *t, struct batch *b)
{
    struct relay_seen seen = relay_seen(t->testbed.relay, b->follower);

    b->last_round = seen.round_ns;
    b->gap = seen.gap_ns;
    b->cut_at = relay_cut(t->testbed.relay, b->follower);
    if (b->freeze && zks_pause_node(t->testbed.zks, b->follower) != 0) {
        /* It has ended by itself, as a server does that can't go on: this batch counts for nothing. */
        b->freeze = false;
        b->gap = INT64_MAX;
        if (zks_start_node(t->testbed.zks, b->follower) != 0)
            give_up("the follower can't be started again");
    }
}

/* At a PING that is late the test releases all seats. When all had their answers, or at the last
 * moment, it cuts the follower off. Patient: not before all had their answers, some PINGs later
 * if need be. */
static void strike(struct test *t, struct batch *b)
{
    int64_t late_ns = b->session_ms * MS / 16, go_at = 0;
    int rounds = b->patient ? 1 + b->session_ms / t->testbed.tick_ms : 1;

    for (int i = 0; i < rounds; i++) {
        if (i > 0)
            relay_hold(t->testbed.relay, b->follower);
        b->held_at = relay_wait_held(t->testbed.relay, b->follower, WAIT_MS);
        if (b->held_at == 0)
            give_way("no PING comes");
        while (net_boot_ns() < b->held_at + late_ns / 2)
            net_nap_ms(1);
        if (go_at == 0) {
            go_at = net_boot_ns();
            let_go(t, b);
        }
        while (!have_struck(t, b, go_at) && net_boot_ns() < b->held_at + late_ns * 3 / 4)
            net_nap_ms(1);
        if (have_struck(t, b, go_at))
            break;
        if (i + 1 < rounds)
            relay_pass(t->testbed.relay, b->follower);
    }
    cut_off(t, b);
}

/* Whatever comes of the follower once it is cut off: nothing of its sessions has come to the leader. */
static void check_cut(const struct test *t, const struct batch *b)
{
    for (int i = 0; i < b->seats; i++) {
        if (relay_told(t->testbed.relay, t->testbed.shared->seats[i].session) > b->cut_at)
            give_up("the follower is not cut off");
    }
}

static void wait_for_rivals(struct test *t, const struct batch *b, struct rival *rivals)
{
    struct zkl_client *client = rival_client(&t->testbed, b->other);

    for (int i = 0; i < b->seats; i++)
        rival_begin(&rivals[i], client, t->testbed.shared->seats[i].path);
    for (int i = 0; i < b->seats; i++) {
        for (; rivals[i].ended_ns == 0; net_nap_ms(5))
            check_cut(t, b);
    }
    for (int i = 0; i < b->seats; i++)
        rival_end(&rivals[i]);
    net_nap_ms(50); /* a window that opens again would be seen */
    zkl_client_close(client, 1000);
    zkl_client_free(client);
}

/* --- what came out ---------------------------------------------------------------------------- */

/* The machine itself was later than is assumed. */
static bool is_void(const struct test *t, const struct batch *b)
{
    int64_t most = t->testbed.tick_ms * MS / 2 + b->session_ms * MS / 16;

    return b->last_round == 0 || b->cut_at - b->last_round > most || b->gap > most;
}

static void show_seat(const struct batch *b, const struct seat *s, const struct outcome *o)
{
    printf("  %-14s T %5d ms, away %5d ms: ", role_names[s->role], b->session_ms, s->absent_ms);
    if (s->end_ns == 0) {
        printf("not granted\n");
        return;
    }
    printf("margin %6" PRId64 " ms, computed %6" PRId64 " ms, leader heard %6" PRId64
           " ms before the last proof%s\n",
           o->margin / MS, o->computed / MS,
           o->told ? (int64_t)((s->end_seen_ns - o->told) / MS) : 0,
           o->margin <= 0 ? "  OVERLAP" : (o->beyond ? "  BEYOND T" : ""));
}

static void count(struct test *t, const struct batch *b, const struct seat *s,
                  const struct outcome *o)
{
    struct scenario *c = &t->scenarios[s->role];
    int slack_64 = (int)((o->margin - o->computed) * 64 / (b->session_ms * MS));

    t->runs++;
    t->overlaps += o->margin <= 0;
    t->beyond += o->beyond;
    c->runs++;
    c->near +=
        slack_64 >= 0 && slack_64 <= NEAR_64; /* below 0: the relay saw what the leader never got */
    if (o->margin < c->least_ns || c->runs == 1)
        c->least_ns = o->margin;
    if (slack_64 < c->slack_64 || c->runs == 1)
        c->slack_64 = slack_64;
}

/* Beyond: the window lasted longer than a timeout after the leader heard of the session last.
 * Only because the leader's clock has ticks did the session still live then. */
static void judge(struct test *t, const struct batch *b, const struct seat *s,
                  const struct rival *r)
{
    struct outcome o = {.told = relay_told(t->testbed.relay, s->session)};

    if (r->granted_ns == 0 && s->end_ns > r->ended_ns) {
        t->not_aimed++; /* it holds on: its follower found a leader again */
        return;
    }
    if (r->granted_ns == 0)
        give_up("the other one was never granted");
    o.margin = r->granted_ns - s->end_ns;
    o.computed =
        expiry_ns(&t->testbed, o.told, b->session_ms) - rule_end_ns(&t->testbed, s, o.told);
    o.beyond = o.told && s->end_ns > o.told + b->session_ms * MS;
    if (s->end_ns == 0)
        t->withheld++;
    else if (o.told == 0)
        t->not_aimed++; /* its session was another one in the end */
    else
        count(t, b, s, &o);
    show_seat(b, s, &o);
}

static void show_batch(const struct test *t, const struct batch *b)
{
    printf("batch %d: tick %d ms%s, T %d ms, follower %zu %s%s, %" PRId64
           " ms after its last round; longest silence %" PRId64 " ms%s\n",
           t->batch, t->testbed.tick_ms, t->tick_said ? " (said)" : "", b->session_ms, b->follower,
           b->freeze ? "stopped" : "cut off", b->patient ? ", patient" : "",
           (b->cut_at - b->last_round) / MS, b->gap / MS,
           is_void(t, b) ? ": NOT AIMED, this machine was later than assumed" : "");
}

static void heal(struct test *t, const struct batch *b)
{
    if (b->freeze && zks_resume_node(t->testbed.zks, b->follower) != 0)
        give_up("the follower can't be resumed");
    relay_heal(t->testbed.relay, b->follower);
    if (zks_wait_ready(t->testbed.zks, ZKS_READY_MS) != 0)
        give_up("the follower does not come back");
}

static void run_batch(struct test *t, int seats)
{
    struct batch b;
    struct rival rivals[SEATS_MAX];

    t->batch++;
    t->tick_said = chance(&t->chance, 60);
    draw_batch(t, &b, seats);
    for (int i = 0; i < seats; i++)
        draw_seat(t, &b, i);
    relay_jitter(t->testbed.relay, b.follower, b.session_ms / 32, chance_next(&t->chance));
    relay_reset_gap(t->testbed.relay, b.follower);
    bring_up(t, &b);
    strike(t, &b);
    wait_for_rivals(t, &b, rivals);
    show_batch(t, &b);
    for (int i = 0; i < seats; i++) {
        seat_end(&t->testbed.shared->seats[i]);
        if (!is_void(t, &b))
            judge(t, &b, &t->testbed.shared->seats[i], &rivals[i]);
    }
    t->not_aimed += is_void(t, &b) ? seats : 0;
    fflush(stdout);
    heal(t, &b);
}

/* --- main ------------------------------------------------------------------------------------- */

/* At least one scenario came so near, in a short run; each of them in a long one. */
static bool is_aimed(const struct test *t)
{
    int near = 0, seen = 0;

    for (int i = 0; i < ROLES; i++) {
        seen += t->scenarios[i].runs > 0;
        near += t->scenarios[i].near > 0;
    }
    return t->runs >= LONG_RUNS ? near == seen : near > 0;
}

static void show_scenarios(const struct test *t)
{
    for (int i = 0; i < ROLES; i++) {
        const struct scenario *c = &t->scenarios[i];
        if (c->runs > 0)
            printf("  %-14s %3d runs, least margin %6" PRId64
                   " ms, at best %3d/64 of T above the computed\n",
                   role_names[i], c->runs, c->least_ns / MS, c->slack_64);
    }
}

static int sum_up(const struct test *t, int wanted)
{
    printf("tick %d ms: %d runs, %d overlaps, %d windows beyond T; %d not granted, %d not aimed\n",
           t->testbed.tick_ms, t->runs, t->overlaps, t->beyond, t->withheld, t->not_aimed);
    show_scenarios(t);
    if (t->overlaps > 0 || t->beyond > 0)
        return 1;
    if (t->runs + t->withheld < wanted) {
        printf("skipped: this machine was too slow\n");
        return 77;
    }
    if (!is_aimed(t))
        printf("no run came near the margin that was computed: the test is not aimed\n");
    return is_aimed(t) ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct test t = {0};

    seat_if_asked(argc, argv);
    int tick_ms = argc > 1 ? (int)option_number("tick", argv[1], 100, 2000) : 500;
    int wanted = argc > 2 ? atoi(argv[2]) : (int)test_length(170, ROLES);
    int seats = wanted < 10 ? ROLES : 10;
    t.chance = argc > 3 ? strtoull(argv[3], NULL, 10) : testbed_seed();
    printf("test-window %d %d %" PRIu64 "  (tick, runs, seed)\n", tick_ms, wanted, t.chance);
    int rc = testbed_start(&t.testbed, tick_ms, NULL);
    if (rc != 0)
        return rc;
    for (int i = 0;
         i < TRIES * (wanted / seats + 1) && (t.runs + t.withheld < wanted || !is_aimed(&t)); i++)
        run_batch(&t, seats);
    rc = sum_up(&t, wanted);
    testbed_end(&t.testbed);
    return rc;
}
