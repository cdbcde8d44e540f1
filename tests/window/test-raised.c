/* SPDX-License-Identifier: Apache-2.0 */
/* A server gives a client a longer session timeout than the one with which the session was made:
 * the next leader counts with the old one.
 *
 * Two followers have different minSessionTimeout. A client makes its session at the one, loses
 * the link and connects to the other, which gives it more; it holds. Then the leader is killed,
 * and in the same moment the client's link breaks without a word. Another client waits for the
 * lock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chance.h"
#include "length.h"
#include "tool/net.h"
#include "option.h"
#include "proxy.h"
#include "testbed.h"

enum { MADE_AT, RAISED_AT, LEADER };
#define RAISED_MS 12000
#define RAISED_LINE "minSessionTimeout=12000"
#define NEAR_64 8 /* an eighth of the timeout */

struct test {
    struct testbed testbed;
    struct proxy *proxies[2]; /* of MADE_AT and of RAISED_AT */
    uint64_t chance;
    int runs, overlaps, slack_64;
};

/* Of servers that are equal the one with the highest number is elected. */
static void make_lead(struct test *t)
{
    for (int i = 0; zks_wait_leader(t->testbed.zks, WAIT_MS) != LEADER; i++) {
        int leader = zks_leader(t->testbed.zks);
        if (i == 10)
            give_up("the wrong server leads");
        if (leader >= 0 && zks_restart_node(t->testbed.zks, (size_t)leader) != 0)
            give_up("a server does not come back");
    }
}

static void wait_for(const char *what, const atomic_int *number, int value)
{
    int64_t end_ms = net_now_ms() + WAIT_MS;

    while (*number != value) {
        if (net_now_ms() > end_ms)
            give_up(what);
        net_nap_ms(2);
    }
}

static struct seat *bring_up(struct test *t, int session_ms, bool tick_said)
{
    struct seat *s = &t->testbed.shared->seats[0];

    memset(s, 0, sizeof *s);
    snprintf(s->servers, sizeof s->servers, "%s,%s", proxy_address(t->proxies[MADE_AT]),
             proxy_address(t->proxies[RAISED_AT]));
    snprintf(s->path, sizeof s->path, "/raised-%d", t->runs);
    s->session_ms = session_ms;
    s->tick_ms = tick_said ? t->testbed.tick_ms : 0;
    s->role = ROLE_STANDING;
    proxy_refuse(t->proxies[RAISED_AT], true);
    seat_start(&t->testbed, 0);
    wait_for("the first one does not hold", &s->ready, 1);
    wait_for("the session has another timeout", &s->timeout_ms, session_ms);
    return s;
}

/* Moves the client to the other server, and waits there. A timeout that the client does not
 * believe leaves no trace. */
static void raise(struct test *t, struct seat *s)
{
    int64_t before = proxy_counts(t->proxies[RAISED_AT], PROXY_CONNECT);

    proxy_refuse(t->proxies[MADE_AT], true);
    proxy_refuse(t->proxies[RAISED_AT], false);
    proxy_cut(t->proxies[MADE_AT]);
    if (proxy_wait_count(t->proxies[RAISED_AT], PROXY_CONNECT, before + 1, WAIT_MS) != 0)
        give_up("the client does not come to the other server");
    net_nap_ms(s->session_ms / 2 + chance_between(&t->chance, 0, s->session_ms / 4));
}

static void show(struct test *t, const struct seat *s, int64_t margin, int64_t computed)
{
    int slack_64 = (int)((margin - computed) * 64 / (s->session_ms * MS));

    printf("  T %5d ms, negotiated %5d ms%s: margin %6" PRId64 " ms, computed %6" PRId64 " ms%s\n",
           s->session_ms, s->timeout_ms, s->tick_ms ? ", tick said" : "", margin / MS,
           computed / MS, margin <= 0 ? "  OVERLAP" : "");
    t->overlaps += margin <= 0;
    if (t->runs == 0 || slack_64 < t->slack_64)
        t->slack_64 = slack_64;
}

static void run_once(struct test *t)
{
    int session_ms = 1000 * chance_between(&t->chance, 4, 6);
    bool tick_said = chance(&t->chance, 60);
    struct rival rival;

    make_lead(t);
    struct seat *s = bring_up(t, session_ms, tick_said);
    raise(t, s);
    struct zkl_client *client = rival_client(&t->testbed, MADE_AT);
    rival_begin(&rival, client, s->path);
    net_nap_ms(chance_between(&t->chance, 0, session_ms / 4));
    proxy_hole(t->proxies[RAISED_AT], PROXY_BOTH);
    zks_kill_node(t->testbed.zks, LEADER);
    int64_t told = relay_told(t->testbed.relay, s->session);
    if (zks_wait_leader(t->testbed.zks, WAIT_MS) < 0)
        give_way("no new leader");
    int64_t led = net_boot_ns();
    rival_end(&rival);
    if (rival.granted_ns == 0)
        give_up("the other one was never granted");
    int64_t end = rule_end_ns(&t->testbed, s, told);
    show(t, s, rival.granted_ns - s->end_ns, expiry_ns(&t->testbed, led, session_ms) - end);
    t->runs++;
    seat_end(s);
    zkl_client_close(client, 1000);
    zkl_client_free(client);
    proxy_cut(t->proxies[RAISED_AT]);
    proxy_heal(t->proxies[RAISED_AT]);
    proxy_refuse(t->proxies[MADE_AT], false);
    zks_start_node(t->testbed.zks, LEADER);
    if (zks_wait_ready(t->testbed.zks, ZKS_READY_MS) != 0)
        give_up("the old leader does not come back");
}

int main(int argc, char **argv)
{
    struct test t = {0};
    struct zks_options options = {.node_extra = {[RAISED_AT] = RAISED_LINE}};

    seat_if_asked(argc, argv);
    int tick_ms = argc > 1 ? (int)option_number("tick", argv[1], 100, 2000) : 500;
    int wanted = argc > 2 ? atoi(argv[2]) : (int)test_length(30, 2);
    t.chance = argc > 3 ? strtoull(argv[3], NULL, 10) : testbed_seed();
    printf("test-raised %d %d %" PRIu64 "  (tick, runs, seed)\n", tick_ms, wanted, t.chance);
    int rc = testbed_start(&t.testbed, tick_ms, &options);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < 2; i++) {
        if (proxy_start(&t.proxies[i], zks_host(), zks_port(t.testbed.zks, i)) != 0)
            give_up("no proxy");
    }
    while (t.runs < wanted || (t.slack_64 > NEAR_64 && t.runs < TRIES * wanted))
        run_once(&t);
    printf("%d runs, %d overlaps; at best %d/64 of T above the computed margin\n", t.runs,
           t.overlaps, t.slack_64);
    proxy_stop(t.proxies[0]);
    proxy_stop(t.proxies[1]);
    testbed_end(&t.testbed);
    if (t.overlaps == 0 && t.slack_64 > NEAR_64)
        printf("no run came near the margin that was computed: the test is not aimed\n");
    return t.overlaps > 0 || t.slack_64 > NEAR_64 ? 1 : 0;
}
