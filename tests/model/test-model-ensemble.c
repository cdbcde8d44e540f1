/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulation assumes of servers that are behind or cut off from the others, against three
 * real ones, some of them stopped. */
#include "cluster.h"
#include "pair.h"
#include "sim/fake.h"

#define NODES 3
#define SILENT_MS 3000

static struct side *real;
static int leader, follower, other;

/* --- asking one server ------------------------------------------------------------------------ */

static void ask(size_t client, uint64_t id, struct zkl_request request)
{
    request.id = id;
    check_num(real->calls->send(real, client, &request), ==, ZKL_ANSWER_OK);
}

/* The answer to this id among the client's reports; NULL: none yet. */
static const struct zkl_reply *answer(size_t client, uint64_t id)
{
    real->calls->hear(real, client);
    for (size_t i = 0; i < real->tapes[client].count; i++) {
        const struct told *told = &real->tapes[client].list[i];

        if (told->type == TOLD_REPLY && told->reply.id == id)
            return &told->reply;
    }
    return NULL;
}

static const struct zkl_reply *wait_answer(size_t client, uint64_t id)
{
    check_wait(answer(client, id), WAIT_MS);
    return answer(client, id);
}

static void do_one(size_t client, uint64_t id, struct zkl_request request)
{
    ask(client, id, request);
    check_num(wait_answer(client, id)->answer, ==, ZKL_ANSWER_OK);
}

static void pause_nodes(int a, int b)
{
    check_ok(zks_pause_node(server, (size_t)a));
    if (b >= 0)
        check_ok(zks_pause_node(server, (size_t)b));
}

static void resume_nodes(int a, int b)
{
    check_ok(zks_resume_node(server, (size_t)a));
    if (b >= 0)
        check_ok(zks_resume_node(server, (size_t)b));
}

/* --- asking the simulated ones ---------------------------------------------------------------- */

static struct {
    struct fake_prng prng;
    struct fake fake;
    struct fake_handle *writer, *reader; /* linked, each to a server of its own */
} t;

static void open_simulated(void)
{
    t.prng = (struct fake_prng){.plain = true};
    fake_init(&t.fake, &t.prng);
    t.writer = fake_open(&t.fake);
    t.reader = fake_open(&t.fake);
    fake_connect(t.writer, true);
    fake_connect(t.reader, true);
    fake_message_free(fake_next(t.writer)); /* up */
    fake_message_free(fake_next(t.reader));
}

static void close_simulated(void)
{
    fake_close(t.writer);
    fake_close(t.reader);
    fake_fini(&t.fake);
}

#define UNANSWERED (-1)

static int simulated_answer(struct fake_handle *h, struct zkl_request request)
{
    int answer = UNANSWERED;

    check_num(fake_send(h, &request), ==, ZKL_ANSWER_OK);
    fake_serve(h);
    struct fake_message *message = fake_next(h);
    if (message) {
        answer = (int)message->reply.answer;
        fake_message_free(message);
    }
    return answer;
}

/* --- tests ------------------------------------------------------------------------------------ */

static int open_real(void **state), close_real(void **state);
#define REAL_TEST(name) TEST_IN(name, open_real, close_real)

/* Goal: a server that is behind answers a read with what it knows; a read behind a sync is not older
 * than what was written before that.
 * Method: a follower stands still during a write; its client's read, sync and read are in its inbox
 * when it goes on, before it has heard of the write. */
REAL_TEST(a_read_may_be_old_behind_a_sync_it_is_not)
{
    int old = 0, rounds = 0;
    uint64_t id = 1;

    do_one((size_t)leader, id, ASK(MAKE, "/lag", .flag = true, .data = "0"));
    for (; rounds < 200 && old == 0; rounds++) {
        char before[16], after[16];

        snprintf(before, sizeof before, "%d", rounds);
        snprintf(after, sizeof after, "%d", rounds + 1);
        do_one((size_t)follower, ++id, ASK(SYNC, "/lag"));
        pause_nodes(follower, -1);
        do_one((size_t)leader, ++id, ASK(SET, "/lag", .data = after));
        ask((size_t)follower, ++id, ASK(GET, "/lag"));
        ask((size_t)follower, ++id, ASK(SYNC, "/lag"));
        ask((size_t)follower, ++id, ASK(GET, "/lag"));
        resume_nodes(follower, -1);
        check_text(wait_answer((size_t)follower, id)->data, after);
        const char *first = wait_answer((size_t)follower, id - 2)->data;
        if (strcmp(first, after) != 0) {
            check_text(first, before);
            old++;
        }
    }
    print_message("old in round %d\n", rounds);
    check_num(old, ==, 1);

    check_num(simulated_answer(t.writer, ASK(MAKE, "/lag")), ==, ZKL_ANSWER_OK);
    check_num(simulated_answer(t.reader, ASK(STAT, "/lag")), ==, ZKL_ANSWER_NONODE);
    check_num(simulated_answer(t.reader, ASK(SYNC, "/lag")), ==, ZKL_ANSWER_OK);
    check_num(simulated_answer(t.reader, ASK(STAT, "/lag")), ==, ZKL_ANSWER_OK);
}

/* Goal: a follower that has lost the others answers reads for a while, but not sync.
 * Method: the others stand still; one client of the follower syncs, another one reads after it, and
 * it alone is answered. */
REAL_TEST(a_follower_alone_answers_reads)
{
    struct wire *w;

    do_one((size_t)leader, 1, ASK(MAKE, "/alone", .flag = true));
    do_one((size_t)follower, 1, ASK(SYNC, "/alone"));
    check_ok(wire_open(&w, zks_host(), zks_port(server, (size_t)follower), SESSION_MS));
    pause_nodes(leader, other);
    ask((size_t)follower, 2, ASK(SYNC, "/alone"));
    for (int i = 0; i < 20; i++)
        check_ok(wire_exists(w, "/", NULL));
    check_true(!answer((size_t)follower, 2));
    resume_nodes(leader, other);
    wire_abandon(w);
    check_ok(zks_wait_ready(server, ZKS_READY_MS));
    wait_answer((size_t)follower, 2); /* late, or lost with the link */

    fake_isolate(t.reader, false);
    check_num(simulated_answer(t.writer, ASK(MAKE, "/a")), ==, ZKL_ANSWER_OK);
    check_num(simulated_answer(t.reader, ASK(STAT, "/a")), ==, ZKL_ANSWER_NONODE);
    check_num(simulated_answer(t.reader, ASK(SYNC, "/a")), ==, UNANSWERED);
}

/* Goal: a leader that has lost the others, and does not know it yet, answers reads and sync, as if
 * what it knows were new; a write waits.
 * Method: both followers stand still; a write, then many a sync and read of another client. */
REAL_TEST(a_leader_alone_answers_sync)
{
    struct wire *w;

    do_one((size_t)leader, 1, ASK(MAKE, "/lead", .flag = true));
    check_ok(wire_open(&w, zks_host(), zks_port(server, (size_t)leader), SESSION_MS));
    pause_nodes(follower, other);
    ask((size_t)leader, 2, ASK(SET, "/lead", .data = "x"));
    for (int i = 0; i < 20; i++) {
        check_ok(wire_sync(w, "/"));
        check_ok(wire_exists(w, "/", NULL));
    }
    check_true(!answer((size_t)leader, 2));
    resume_nodes(follower, other);
    wire_abandon(w);
    check_ok(zks_wait_ready(server, ZKS_READY_MS));
    wait_answer((size_t)leader, 2);

    fake_isolate(t.reader, true);
    check_num(simulated_answer(t.writer, ASK(MAKE, "/a")), ==, ZKL_ANSWER_OK);
    check_num(simulated_answer(t.reader, ASK(SYNC, "/a")), ==, ZKL_ANSWER_OK);
    check_num(simulated_answer(t.reader, ASK(STAT, "/a")), ==, ZKL_ANSWER_NONODE);
    check_num(simulated_answer(t.reader, ASK(SET, "/a", .data = "")), ==, UNANSWERED);
}

static bool is_gone(struct wire *w, const char *path)
{
    check_ok(wire_sync(w, path));
    return wire_exists(w, path, NULL) == WIRE_NONODE;
}

/* Goal: a new leader gives each session its whole timeout again.
 * Method: a session falls silent and some of its time passes; then the leader is killed, and from
 * there on the session's node stays for a whole timeout. */
REAL_TEST(an_election_renews_sessions)
{
    const char *path = cluster_path("elect");
    struct wire *w, *look = NULL;

    int64_t opened_ms = net_now_ms();
    check_ok(wire_open(&w, zks_host(), zks_port(server, (size_t)follower), SILENT_MS));
    check_ok(wire_create(w, path, "", WIRE_EPHEMERAL, NULL, 0));
    net_nap_ms(SILENT_MS / 2);
    wire_abandon(w);
    check_ok(zks_kill_node(server, (size_t)leader));
    int64_t killed_ms = net_now_ms();
    if (killed_ms - opened_ms >= SILENT_MS) {
        print_message("skipped: too slow to kill the leader before the session's end\n");
        skip();
    }
    check_ok(zks_wait_ready(server, ZKS_READY_MS));
    check_ok(wire_open(&look, zks_host(), zks_port(server, (size_t)follower), SESSION_MS));
    check_wait(is_gone(look, path), WAIT_MS);
    check_num(net_now_ms() - killed_ms, >=, SILENT_MS);
    wire_close(look);
    check_ok(zks_start_node(server, (size_t)leader));
    check_ok(zks_wait_ready(server, ZKS_READY_MS));

    int64_t session = t.writer->session;
    int timeout_ms = fake_timeout_ms(&t.fake, session);
    fake_break(t.writer);
    fake_pass(&t.fake, timeout_ms - 1);
    fake_elect(&t.fake);
    fake_pass(&t.fake, timeout_ms - 1);
    check_true(fake_alive(&t.fake, session));
    fake_pass(&t.fake, 1 + t.fake.rules.tick_ms);
    check_true(!fake_alive(&t.fake, session));
}

/* --- the program ------------------------------------------------------------------------------ */

static int open_real(void **state)
{
    if (cluster_raw_open(state) != 0)
        return -1;
    leader = zks_wait_leader(server, WAIT_MS);
    check_num(leader, >=, 0);
    follower = (leader + 1) % NODES;
    other = (leader + 2) % NODES;
    real = real_new(cluster_path("ensemble"));
    for (size_t i = 0; i < NODES; i++)
        real->calls->open(real, i);
    open_simulated();
    return 0;
}

static int close_real(void **state)
{
    real->calls->free(real);
    close_simulated();
    return cluster_raw_close(state);
}

int main(int argc, char **argv)
{
    cluster_server.nodes = NODES;
    return cluster_main(argc, argv);
}
