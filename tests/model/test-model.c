/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated ensemble assumes, each piece as a script that a real server answers alike. */
#include "bytes.h"
#include "cluster.h"
#include "driver/handle.h"
#include "pair.h"
#include "sim/fake.h"
#include "sim/kinds.h"

#define SILENT_MS 1000
#define TICK_MS 100 /* the server's */

static struct pair *p;

static int open_pair(void **state), open_two(void **state), close_pair(void **state);
#define PAIR_TEST(name) TEST_IN(name, open_pair, close_pair)
#define TWO_TEST(name) TEST_IN(name, open_two, close_pair)

/* One request; its answer is this, behind its kind and its path, and nothing else comes. */
#define asks(client, answer, which, at, ...)                                                       \
    do {                                                                                           \
        char line_[256];                                                                           \
        const char *path_ = (at) ? (at) : "";                                                      \
        snprintf(line_, sizeof line_, "%s %s%s%s\n", request_kinds[ZKL_REQ_##which], path_,        \
                 *path_ ? " " : "", answer);                                                       \
        pair_ask(p, client, ASK(which, at, __VA_ARGS__), line_);                                   \
    } while (0)

/* Goal: names carry the parent's count of creations, in ten digits, and grow with czxid.
 * Method: two sessions create by turns; a third node is made and deleted in between. */
TWO_TEST(numbers_count_creations)
{
    asks(0, "ok a z0", MAKE, "/a");
    asks(0, "ok x-0000000000 z1", CREATE, "/a/x-", .data = "me");
    asks(1, "ok y-0000000001 z2", CREATE, "/a/y-", .data = "you");
    asks(0, "ok", DELETE, "/a/x-0000000000");
    asks(1, "ok stranger z3", MAKE, "/a/stranger", .flag = true);
    asks(0, "ok x-0000000003 z4", CREATE, "/a/x-", .data = "me");
    asks(0, "ok [stranger x-0000000003 y-0000000001]", LIST, "/a");
    asks(1, "ok z4 s0 \"me\"", GET, "/a/x-0000000003");
}

/* Goal: what can't be made or found says so: no parent, there already, an ephemeral parent.
 * Method: every kind of request, at a path where it fails. */
PAIR_TEST(failures_are_told_apart)
{
    asks(0, "nonode", CREATE, "/a/x-", .data = "");
    asks(0, "nonode", MAKE, "/a/b");
    asks(0, "nonode", LIST, "/a");
    asks(0, "nonode", LIST_LOCK_PATH, "/a", .watch_id = 1);
    asks(0, "nonode", STAT, "/a");
    asks(0, "nonode", KEEPALIVE, "/a");
    asks(0, "nonode", GET, "/a");
    asks(0, "nonode", WATCH, "/a", .watch_id = 1);
    asks(0, "nonode", SET, "/a", .data = "x");
    asks(0, "nonode", DELETE, "/a");
    asks(0, "nonode", RENEW, "/a");
    asks(0, "nowatcher", UNWATCH, "/a");
    asks(0, "ok", SYNC, "/a");
    asks(0, "nonode", CHECK_ALL, NULL, LIST_OF("/a"));
    asks(0, "nonode", DELETE_ALL, NULL, LIST_OF("/a"));
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    asks(0, "exists", MAKE, "/a");
    asks(0, "ok x-0000000000 z1", CREATE, "/a/x-", .data = "");
    asks(0, "badpath", MAKE, "/a/x-0000000000/b", .flag = true);
    asks(0, "badpath", CREATE, "/a/x-0000000000/y-", .data = "");
    asks(0, "notempty", DELETE, "/a");
    asks(0, "notempty", RENEW, "/a");
    asks(0, "ok z0 n1 [x-0000000000]", LIST_LOCK_PATH, "/a");
}

/* Goal: versions count writes of data, and guard writes and deletions; a new node starts again.
 * Method: right and wrong versions by turns. */
PAIR_TEST(versions_guard)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true, .data = "3");
    asks(0, "notempty", SET, "/a", .data = "4", .flag = true, .version = 1);
    asks(0, "ok z0 v1", SET, "/a", .data = "4", .flag = true);
    asks(0, "ok z0 v2", SET, "/a", .data = "5");
    asks(0, "ok z0 v2 \"5\"", GET, "/a");
    asks(0, "ok x-0000000000 z1", CREATE, "/a/x-", .data = "");
    asks(0, "ok z0 v2 n1", STAT, "/a");
    asks(0, "notempty", DELETE, "/a", .flag = true, .version = 1);
    asks(0, "ok", DELETE, "/a/x-0000000000", .flag = true);
    asks(0, "notempty", DELETE, "/a", .flag = true, .version = 1);
    asks(0, "ok", DELETE, "/a", .flag = true, .version = 2);
    asks(0, "ok a z2", MAKE, "/a");
    asks(0, "ok z2", GET, "/a");
}

/* --- watches ---------------------------------------------------------------------------------- */

/* Goal: a watch fires once, for one change. A data watch fires for new data and deletion, a child
 * watch for children that come or go and for the node's own deletion. It fires before the answer to
 * the request that caused it.
 * Method: one session watches and changes a node, another one watches the same node. */
TWO_TEST(watches_tell_once)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    pair_send(p, 0, ASK(LIST_LOCK_PATH, "/a", .watch_id = 1));
    pair_send(p, 1, ASK(LIST_LOCK_PATH, "/a", .watch_id = 1));
    pair_send(p, 1, ASK(WATCH, "/a", .watch_id = 1));
    pair_expect(p, 0, "list root /a ok z0\n");
    pair_send(p, 0, ASK(CREATE, "/a/x-", .data = "me"));
    pair_expect(p, 0, "fired changed child /a\ncreate /a/x- ok x-0000000000 z1\n");
    check_text(pair_told(p, 1), "fired changed child /a\n");
    pair_send(p, 0, ASK(CREATE, "/a/x-", .data = "me"));
    pair_expect(p, 0, "create /a/x- ok x-0000000001 z2\n");
    check_text(pair_told(p, 1), "");
    pair_send(p, 0, ASK(SET, "/a", .data = "new"));
    pair_expect(p, 0, "set /a ok z0 v1 n2\n");
    check_text(pair_told(p, 1), "fired changed data /a\n");

    pair_send(p, 0, ASK(WATCH, "/a/x-0000000000", .watch_id = 1));
    pair_send(p, 0, ASK(WATCH, "/a/x-0000000000", .watch_id = 1)); /* two that want to know */
    pair_send(p, 0, ASK(LIST_LOCK_PATH, "/a", .watch_id = 1));
    pair_send(p, 0, ASK(DELETE, "/a/x-0000000000"));
    pair_expect(p, 0,
                "watch /a/x-0000000000 ok z1 s0 \"me\"\n"
                "watch /a/x-0000000000 ok z1 s0 \"me\"\n"
                "list root /a ok z0 v1 n2 [x-0000000000 x-0000000001]\n"
                "fired deleted data /a/x-0000000000\n"
                "fired deleted data /a/x-0000000000\n"
                "fired changed child /a\n"
                "delete /a/x-0000000000 ok\n");
    pair_send(p, 0, ASK(DELETE, "/a/x-0000000001"));
    pair_send(p, 0, ASK(LIST_LOCK_PATH, "/a", .watch_id = 1));
    pair_send(p, 0, ASK(WATCH, "/a", .watch_id = 1));
    pair_send(p, 0, ASK(DELETE, "/a"));
    pair_expect(p, 0,
                "delete /a/x-0000000001 ok\n"
                "list root /a ok z0 v1\n"
                "watch /a ok z0 v1 \"new\"\n"
                "fired deleted data /a\n"
                "fired deleted child /a\n"
                "delete /a ok\n");
}

/* Goal: a removed watch does not fire. One request removes all watches of a path and type. If there
 * is none, the client says so itself.
 * Method: two watches of one type and one of the other on one path. */
TWO_TEST(watches_are_taken_back)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    asks(0, "nowatcher", UNWATCH, "/a");
    pair_send(p, 0, ASK(WATCH, "/a", .watch_id = 1));
    pair_send(p, 0, ASK(WATCH, "/a", .watch_id = 1));
    pair_send(p, 0, ASK(LIST_LOCK_PATH, "/a", .watch_id = 1));
    pair_expect(p, 0, "watch /a ok z0\nwatch /a ok z0\nlist root /a ok z0\n");
    asks(0, "ok", UNWATCH, "/a");
    asks(0, "nowatcher", UNWATCH, "/a");
    pair_send(p, 1, ASK(SET, "/a", .data = ""));
    pair_expect(p, 0, "");
    pair_send(p, 1, ASK(CREATE, "/a/x-", .data = ""));
    pair_expect(p, 0, "fired changed child /a\n");
    asks(0, "nowatcher", UNWATCH, "/a", .flag = true);
    asks(0, "ok z0 v1 n1 [x-0000000000]", LIST_LOCK_PATH, "/a", .watch_id = 1);
    asks(0, "ok", UNWATCH, "/a", .flag = true);
    pair_send(p, 1, ASK(DELETE, "/a/x-0000000000"));
    pair_expect(p, 0, "");
}

/* Goal: over a new link the server reports what the client missed: deleted; deleted and made again:
 * changed; new data, children: changed. The other watches stay armed.
 * Method: one session watches nodes, and each of them gets one of these changes while that session
 * has no link. */
TWO_TEST(reconnect_catches_up)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    static const char *const paths[] = {"/a/gone", "/a/again", "/a/new", "/a/same", "/a/child"};
    for (size_t i = 0; i < 5; i++) {
        pair_send(p, 0, ASK(MAKE, paths[i], .flag = true));
        pair_send(p, 0, ASK(WATCH, paths[i], .watch_id = 1));
        pair_send(p, 0, ASK(LIST_LOCK_PATH, paths[i], .watch_id = 1));
    }
    check_true(pair_agrees(p));
    pair_do(p, cut, 0);
    pair_expect(p, 0, "down\n");
    pair_send(p, 1, ASK(DELETE, "/a/gone"));
    pair_send(p, 1, ASK(DELETE, "/a/again"));
    pair_send(p, 1, ASK(MAKE, "/a/again", .flag = true));
    pair_send(p, 1, ASK(SET, "/a/new", .data = "x"));
    pair_send(p, 1, ASK(MAKE, "/a/child/x", .flag = true));
    pair_send(p, 1, ASK(DELETE, "/a/child/x"));
    check_true(pair_agrees(p));
    pair_do(p, join, 0);
    pair_expect(p, 0,
                "up s0\n"
                "fired deleted data /a/gone\n"
                "fired changed data /a/again\n"
                "fired changed data /a/new\n"
                "fired deleted child /a/gone\n"
                "fired changed child /a/again\n"
                "fired changed child /a/child\n");
    pair_send(p, 1, ASK(DELETE, "/a/same"));
    pair_send(p, 1, ASK(DELETE, "/a/child"));
    pair_send(p, 1, ASK(SET, "/a/again", .data = "x"));
    pair_expect(p, 0,
                "fired deleted data /a/same\n"
                "fired deleted child /a/same\n"
                "fired deleted data /a/child\n");
}

/* Goal: the server no longer has a watch that has fired, even before the client knows: removing it
 * fails, after the event. The server sends a lost event again over the next link, but not one that
 * the client received.
 * Method: the test holds back what the server sends to one client while another one acts. */
TWO_TEST(an_event_on_its_way)
{
    asks(1, "ok a z0", MAKE, "/a", .flag = true);
    asks(1, "ok b z1", MAKE, "/b", .flag = true);
    asks(0, "ok z0", WATCH, "/a", .watch_id = 1);
    pair_do(p, hold, 0, true);
    asks(1, "ok z0 v1", SET, "/a", .data = "1");
    pair_send(p, 0, ASK(UNWATCH, "/a"));
    pair_do(p, hold, 0, false);
    pair_expect(p, 0, "fired changed data /a\nunwatch /a nowatcher\n");

    pair_send(p, 0, ASK(WATCH, "/a", .watch_id = 1));
    pair_send(p, 0, ASK(WATCH, "/b", .watch_id = 1));
    pair_expect(p, 0, "watch /a ok z0 v1 \"1\"\nwatch /b ok z1\n");
    asks(1, "ok", DELETE, "/a");
    check_text(pair_told(p, 0), "fired deleted data /a\n");
    pair_do(p, hold, 0, true);
    asks(1, "ok", DELETE, "/b");
    check_text(pair_told(p, 0), "");
    pair_do(p, cut, 0);
    pair_do(p, join, 0);
    pair_expect(p, 0, "down\nup s0\nfired deleted data /b\n");
}

/* --- transactions ----------------------------------------------------------------------------- */

/* Goal: nodes that are made together have consecutive numbers in one parent, and one zxid.
 * Method: three in two parents, then a look at each. */
TWO_TEST(one_transaction_has_one_zxid)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    asks(0, "ok b z1", MAKE, "/b", .flag = true);
    asks(1, "ok z0", LIST_LOCK_PATH, "/a", .watch_id = 1);
    asks(1, "ok z1", LIST_LOCK_PATH, "/b", .watch_id = 1);
    asks(0, "ok [x-0000000000 y-0000000000 z-0000000001]", CREATE_ALL, NULL,
         LIST_OF("/b/x-", "/a/y-", "/b/z-"), TEXTS("1", "2", "3"));
    check_text(pair_told(p, 1), "fired changed child /b\nfired changed child /a\n");
    asks(0, "ok z2 s0 \"1\"", GET, "/b/x-0000000000");
    asks(0, "ok z2 s0 \"2\"", GET, "/a/y-0000000000");
    asks(0, "ok z2 s0 \"3\"", GET, "/b/z-0000000001");
    asks(0, "ok", CHECK_ALL, NULL, LIST_OF("/b/x-0000000000", "/a/y-0000000000"));
    asks(1, "ok z2 s0 \"1\"", WATCH, "/b/x-0000000000", .watch_id = 1);
    asks(1, "ok z1 n2 [x-0000000000 z-0000000001]", LIST_LOCK_PATH, "/b", .watch_id = 1);
    asks(0, "ok", DELETE_ALL, NULL, LIST_OF("/a/y-0000000000", "/b/x-0000000000", "/a"));
    check_text(pair_told(p, 1), "fired deleted data /b/x-0000000000\nfired changed child /b\n");
}

/* Goal: one may delete and create, also at one path: the part behind a delete sees it, and who watches what is deleted
 * hears of that. What is made has the transaction's zxid; where one part fails nothing is deleted. Method: each, with the
 * fault at the first and the last part. */
TWO_TEST(a_transaction_deletes_and_creates)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    asks(0, "ok b z1", MAKE, "/b", .flag = true);
    asks(0, "ok x-0000000000 z2", CREATE, "/a/x-", .data = "");
    asks(1, "ok z2 s0", WATCH, "/a/x-0000000000", .watch_id = 1);
    pair_ask(
        p, 0,
        ASK(CREATE_ALL, NULL, LIST_OF("/a/x-0000000000", "/a/y-", "/b/z-"), TEXTS(NULL, "1", "2")),
        "create all ok [ y-0000000001 z-0000000000]\n");
    check_text(pair_told(p, 1), "fired deleted data /a/x-0000000000\n");
    asks(0, "ok z3 s0 \"1\"", GET, "/a/y-0000000001");
    asks(0, "ok z3 s0 \"2\"", GET, "/b/z-0000000000");
    asks(0, "nonode", CREATE_ALL, NULL, LIST_OF("/a/none", "/a/y-"), TEXTS(NULL, ""));
    asks(0, "nonode @1", CREATE_ALL, NULL, LIST_OF("/a/y-0000000001", "/none/z-"), TEXTS(NULL, ""));
    asks(0, "ok [y-0000000001]", LIST, "/a");
    asks(0, "ok w-0000000002 z4", CREATE, "/a/w-", .data = "");
}

/* Goal: a transaction that fails says which part caused that, leaves nothing and takes no number.
 * Method: each kind with the fault at the first, a middle and the last part. */
PAIR_TEST(a_failed_transaction_leaves_nothing)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    asks(0, "ok x-0000000000 z1", CREATE, "/a/x-", .data = "");
    asks(0, "nonode @2", CREATE_ALL, NULL, LIST_OF("/a/x-", "/a/y-", "/none/z-"),
         TEXTS("", "", ""));
    asks(0, "nonode", CREATE_ALL, NULL, LIST_OF("/none/x-", "/a/y-"), TEXTS("", ""));
    asks(0, "nonode @1", DELETE_ALL, NULL, LIST_OF("/a/x-0000000000", "/a/none", "/a"));
    asks(0, "nonode @1", DELETE_ALL, NULL, LIST_OF("/a/x-0000000000", "/a/x-0000000000"));
    asks(0, "notempty", DELETE_ALL, NULL, LIST_OF("/a", "/a/x-0000000000"));
    asks(0, "nonode @2", CHECK_ALL, NULL, LIST_OF("/a", "/a/x-0000000000", "/a/none", "/none"));
    asks(0, "ok y-0000000001 z2", CREATE, "/a/y-", .data = "");
    asks(0, "ok [x-0000000000 y-0000000001]", LIST, "/a");
}

/* Goal: a node under a write node is made, with its exact name, only while that one is there; it
 * takes a number that nobody sees.
 * Method: with the node to check and without; with a node of the name. */
PAIR_TEST(creation_under_a_write_node)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    asks(0, "ok w-0000000000 z1", CREATE, "/a/w-", .data = "");
    asks(0, "ok", CREATE, "/a/r-0000000000", .data = "r", LIST_OF("/a/w-0000000000"));
    asks(0, "exists @1", CREATE, "/a/r-0000000000", .data = "r", LIST_OF("/a/w-0000000000"));
    asks(0, "nonode @1", CREATE, "/none/r", .data = "r", LIST_OF("/a/w-0000000000"));
    asks(0, "ok z2 s0", STAT, "/a/r-0000000000");
    asks(0, "ok w-0000000002 z3", CREATE, "/a/w-", .data = "");
    asks(0, "ok", DELETE, "/a/w-0000000000");
    asks(0, "nonode", CREATE, "/a/r-x", .data = "r", LIST_OF("/a/w-0000000000"));
}

/* --- lost answers, sessions ------------------------------------------------------------------- */

/* Goal: a request whose answer is lost was carried out, one that is lost itself was not; both are
 * answered by LINK, after the news of the broken link; the session goes on.
 * Method: each lost once, for each kind that the library has to clear up after. */
TWO_TEST(lost_answers)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    for (int carried_out = 0; carried_out < 2; carried_out++) {
        pair_lose(p, 0, ASK(CREATE, "/a/x-", .data = "me"), carried_out);
        pair_expect(p, 0, "down\ncreate /a/x- link\n");
        pair_ask(p, 1, ASK(LIST, "/a"),
                 carried_out ? "list /a ok [x-0000000000]\n" : "list /a ok\n");
        pair_do(p, join, 0);
        pair_expect(p, 0, "up s0\n");
    }
    pair_ask(p, 0, ASK(STAT, "/a/x-0000000000"), "stat /a/x-0000000000 ok z1 s0\n");
    pair_lose(p, 0, ASK(CREATE_ALL, NULL, LIST_OF("/a/y-", "/a/z-"), TEXTS("", "")), true);
    pair_expect(p, 0, "down\ncreate all link\n");
    pair_do(p, join, 0);
    pair_ask(p, 0, ASK(LIST, "/a"), "up s0\nlist /a ok [x-0000000000 y-0000000001 z-0000000002]\n");
    pair_lose(p, 0, ASK(DELETE, "/a/x-0000000000"), true);
    pair_expect(p, 0, "down\ndelete /a/x-0000000000 link\n");
    pair_do(p, join, 0);
    pair_lose(p, 0, ASK(WATCH, "/a/y-0000000001", .watch_id = 1), true);
    pair_do(p, join, 0);
    pair_expect(p, 0, "up s0\ndown\nwatch /a/y-0000000001 link\nup s0\n");
    asks(0, "nowatcher", UNWATCH, "/a/y-0000000001");
    pair_send(p, 1, ASK(DELETE, "/a/y-0000000001"));
    pair_expect(p, 0, "");
    pair_lose(p, 0, ASK(CHECK_ALL, NULL, LIST_OF("/a", "/a/y-0000000001")), true);
    pair_expect(p, 0, "down\nheartbeat link\n");
}

/* Goal: requests that are sent while the link is down end with LINK at the next try that fails.
 * Method: two of them, with the server out of reach. */
PAIR_TEST(requests_without_a_link)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    asks(0, "ok z0", WATCH, "/a", .watch_id = 1);
    pair_do(p, cut, 0);
    pair_expect(p, 0, "down\n");
    pair_send(p, 0, ASK(STAT, "/a"));
    pair_send(p, 0, ASK(MAKE, "/b", .flag = true));
    pair_send(p, 0, ASK(UNWATCH, "/a"));
    pair_send(p, 0, ASK(UNWATCH, "/b"));
    pair_expect(p, 0, "stat /a link\nmake /b link\nunwatch /a link\nunwatch /b link\n");
    pair_do(p, join, 0);
    pair_ask(p, 0, ASK(STAT, "/b"), "up s0\nstat /b nonode\n");
}

/* Goal: when a session ends, the server removes its ephemeral nodes, all in one transaction, and
 * fires their watches. The client hears of the end when it comes back, and can send nothing any
 * more; its own watches do not fire.
 * Method: the test ends a session with nodes while its client is away. */
TWO_TEST(expiry_takes_the_nodes)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    asks(0, "ok x-0000000000 z1", CREATE, "/a/x-", .data = "");
    asks(1, "ok x-0000000001 z2", CREATE, "/a/x-", .data = "");
    asks(0, "ok z2 s1", WATCH, "/a/x-0000000001", .watch_id = 1);
    asks(1, "ok z1 s0", WATCH, "/a/x-0000000000", .watch_id = 1);
    asks(1, "ok z0 n2 [x-0000000000 x-0000000001]", LIST_LOCK_PATH, "/a", .watch_id = 1);
    pair_do(p, cut, 0);
    pair_do(p, expire, 0);
    pair_expect(p, 0, "down\n");
    check_text(pair_told(p, 1), "fired deleted data /a/x-0000000000\nfired changed child /a\n");
    asks(1, "ok [x-0000000001]", LIST, "/a");
    asks(1, "ok", DELETE, "/a/x-0000000001");
    pair_do(p, join, 0);
    pair_expect(p, 0, "expired\n");
    asks(0, "refused: link", STAT, "/a");
    pair_do(p, close, 0);
    pair_do(p, open, 0);
    pair_ask(p, 0, ASK(CREATE, "/a/x-", .data = ""), "up s2\ncreate /a/x- ok x-0000000002 z3\n");
}

/* Goal: the server removes the nodes of a closed session immediately, but not those of one that the
 * client left without a link.
 * Method: another session watches both. */
TWO_TEST(closing_takes_the_nodes)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    asks(0, "ok x-0000000000 z1", CREATE, "/a/x-", .data = "");
    asks(1, "ok z1 s0", WATCH, "/a/x-0000000000", .watch_id = 1);
    pair_do(p, close, 0);
    pair_expect(p, 1, "fired deleted data /a/x-0000000000\n");
    pair_do(p, open, 0);
    pair_ask(p, 0, ASK(CREATE, "/a/x-", .data = ""), "up s2\ncreate /a/x- ok x-0000000001 z2\n");
    pair_do(p, cut, 0);
    pair_do(p, close, 0);
    asks(1, "ok z2 s2", STAT, "/a/x-0000000001");
}

/* --- roots ------------------------------------------------------------------------------------ */

/* Goal: the server removes an empty container that once had children. A create below it then finds no
 * parent. Made again, its numbers begin at 0 while czxids go on. Watches on it report its end.
 * Method: the server collects one. */
TWO_TEST(containers_vanish)
{
    asks(0, "ok c z0", MAKE, "/c");
    asks(0, "ok x-0000000000 z1", CREATE, "/c/x-", .data = "");
    asks(0, "ok z0 n1", WATCH, "/c", .watch_id = 1);
    pair_send(p, 0, ASK(DELETE, "/c/x-0000000000")); /* from here on the server may remove it */
    pair_do(p, collect, "/c");
    pair_expect(p, 0, "delete /c/x-0000000000 ok\nfired deleted data /c\n");
    asks(0, "nonode", CREATE, "/c/x-", .data = "");
    asks(1, "ok c z2", MAKE, "/c");
    asks(0, "ok x-0000000000 z3", CREATE, "/c/x-", .data = "");
}

/* Goal: a renewed root is another node, whose numbers begin at 0, with the same data.
 * Method: one without data, one with, one that is not empty. */
TWO_TEST(a_renewed_root_counts_from_0)
{
    asks(0, "ok plain z0", MAKE, "/plain", .flag = true);
    asks(0, "ok data z1", MAKE, "/data", .flag = true, .data = "kept");
    static const char *const roots[] = {"/plain", "/data"};
    for (size_t i = 0; i < 2; i++) {
        char prefix[32], node[32];

        snprintf(prefix, sizeof prefix, "%s/x-", roots[i]);
        snprintf(node, sizeof node, "%s/x-0000000000", roots[i]);
        pair_send(p, 0, ASK(CREATE, prefix, .data = ""));
        pair_send(p, 0, ASK(RENEW, roots[i]));
        check_true(pair_agrees(p));
        pair_send(p, 0, ASK(DELETE, node));
        check_true(pair_agrees(p));
        pair_send(p, 1, ASK(WATCH, roots[i], .watch_id = 1));
        pair_send(p, 1, ASK(LIST_LOCK_PATH, roots[i], .watch_id = 1));
        check_true(pair_agrees(p));
        pair_send(p, 0, ASK(RENEW, roots[i]));
        check_true(pair_agrees(p));
        pair_send(p, 0, ASK(CREATE, prefix, .data = ""));
        check_true(pair_agrees(p));
        check_text(pair_name(p, 0, 0), "x-0000000000");
        pair_send(p, 0, ASK(GET, roots[i]));
        check_true(pair_agrees(p));
    }
    check_text(pair_told(p, 0), "get /data ok z7 n1 \"kept\"\n");
}

/* Goal: at its end the counter sticks: the server gives the last number again and again, to names
 * that do not exist yet.
 * Method: the counter patched to its last but one number, then one creation after another. */
PAIR_TEST(the_counter_sticks_at_its_end)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    pair_do(p, set_counter, "/a", INT32_MAX - 1);
    pair_expect(p, 0, "down\nup s0\n");
    asks(0, "ok x-2147483646 z1", CREATE, "/a/x-", .data = "");
    asks(0, "ok x-2147483647 z2", CREATE, "/a/x-", .data = "");
    asks(0, "exists", CREATE, "/a/x-", .data = "");
    asks(0, "ok y-2147483647 z3", CREATE, "/a/y-", .data = "");
    asks(0, "ok", DELETE, "/a/x-2147483647");
    asks(0, "ok x-2147483647 z4", CREATE, "/a/x-", .data = "");
    asks(0, "ok [v-2147483647]", CREATE_ALL, NULL, LIST_OF("/a/v-"), TEXTS(""));
    asks(0, "ok [t-2147483647 t--2147483648 t--2147483647]", CREATE_ALL, NULL,
         LIST_OF("/a/t-", "/a/t-", "/a/t-"), TEXTS("", "", ""));
}

/* Goal: a burst of creations may get past the end, to the smallest number and further, and fall back:
 * what the simulation draws at random; none fails while the names differ.
 * Method: 60 creations in one go, the numbers read out of the answers. */
PAIR_TEST(a_burst_gets_past_the_counters_end)
{
    char line[64], prefix[32];
    int last = 0;

    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    pair_do(p, set_counter, "/a", INT32_MAX - 1);
    pair_expect(p, 0, "down\nup s0\n");
    for (int i = 0; i < 60; i++) {
        snprintf(prefix, sizeof prefix, "/a/%d-", i);
        pair_send(p, 0, ASK(CREATE, prefix, .data = ""));
    }
    pair_settle(p);
    for (int i = 0; i < 60; i++) {
        snprintf(line, sizeof line, "create /a/%d- ok %d-", i, i);
        const char *told = strstr(pair_told(p, 0), line);
        if (!told)
            fail_msg("no \"%s\" in\n%s", line, pair_told(p, 0));
        long number = strtol(told + strlen(line), NULL, 10);
        if (number < INT32_MAX - 1 && number >= INT32_MIN + 60L)
            fail_msg("the number %ld in a burst", number);
        last += number == INT32_MAX;
    }
    check_num(last, >=, 1);
}

/* --- the server ------------------------------------------------------------------------------- */

/* Goal: a server that lost its data refuses each client that has seen newer data than the server has.
 * Such a client hears nothing, not even that its session has ended; others begin anew.
 * Method: the test wipes the data under a client, which tries to come back three times. */
PAIR_TEST(a_wiped_server_tells_nothing)
{
    asks(0, "ok a z0", MAKE, "/a", .flag = true);
    asks(0, "ok x-0000000000 z1", CREATE, "/a/x-", .data = "");
    pair_do(p, wipe);
    pair_expect(p, 0, "down\n");
    asks(0, "link", STAT, "/a");
    pair_do(p, open, 1);
    pair_expect(p, 1, "up s1\n");
    asks(1, "nonode", LIST, "/a");
    check_text(pair_told(p, 0), "");
}

/* The newest zxid that a client of libzookeeper has seen, which it sends when it connects. */
struct teller {
    atomic_int connects, events;
    _Atomic int64_t zxid;
};

/* In the proxy. A connect request is: protocol version, zxid, and more. */
static size_t take_zxid(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    struct teller *t = arg;

    if (dir == PROXY_TO_SERVER && op == PROXY_CONNECT && size >= 4 + 8) {
        t->zxid = bytes_get64(frame + 4);
        t->connects++;
    }
    return size;
}

static void count_event(zhandle_t *zh, int type, int zk_state, const char *path, void *arg)
{
    struct teller *t = arg;

    (void)zh, (void)zk_state, (void)path;
    t->events += type == ZOO_CHANGED_EVENT;
}

static void log_nothing(const char *line)
{
    (void)line;
}

/* Goal: since 3.9 (ZOOKEEPER-4655) an event has the zxid of the server's state, before 3.9 it has none.
 * Method: the newest zxid that a raw client received, before and after an event. */
CLUSTER_TEST(a_newer_servers_events_have_a_zxid)
{
    const char *path = cluster_path("event");
    struct wire *w;

    check_ok(wire_create(raw, path, "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_open(&w, zks_host(), zks_port(server, 0), SESSION_MS));
    check_ok(wire_watch(w, path));
    int64_t before = wire_last_zxid(w);
    check_ok(wire_set(raw, path, "x", -1));
    check_num(wire_wait_event(w, WAIT_MS, NULL, 0), ==, WIRE_CHANGED);
    int version = flw_version(zks_host(), zks_port(server, 0));
    check_num(version, >, 0);
    check_num(wire_last_zxid(w), ==, version >= 30900 ? wire_last_zxid(raw) : before);
    check_ok(wire_exists(w, path, NULL));
    check_num(wire_last_zxid(w), >, before);
    wire_close(w);
}

/* Goal: whatever an event says, libzookeeper keeps no zxid of it, so a client may meet an older state of the server
 * behind it, after a broken link.
 * Method: the zxid that it sends when it comes back after an event, and after an answer. */
CLUSTER_TEST(an_event_moves_no_zxid)
{
    static struct teller t;
    const char *path = cluster_path("event");
    struct Stat stat;

    check_ok(wire_create(raw, path, "", WIRE_PERSISTENT, NULL, 0));
    struct proxy *proxy = proxy_before(server, 0);
    proxy_set_hook(proxy, take_zxid, &t);
    zhandle_t *zh =
        zookeeper_init2(proxy_address(proxy), NULL, SESSION_MS, NULL, NULL, 0, log_nothing);
    check_true(zh != NULL);
    check_wait(zoo_state(zh) == ZOO_CONNECTED_STATE, WAIT_MS);
    check_ok(zoo_wexists(zh, path, count_event, &t, &stat));
    check_ok(wire_set(raw, path, "x", -1));
    int64_t change = wire_last_zxid(raw);
    check_wait(t.events == 1, WAIT_MS);
    proxy_cut(proxy);
    check_wait(t.connects == 2 && zoo_state(zh) == ZOO_CONNECTED_STATE, WAIT_MS);
    check_num(t.zxid, >, 0);
    check_num(t.zxid, <, change);
    check_ok(zoo_exists(zh, path, 0, &stat));
    check_num(stat.mzxid, ==, change);
    proxy_cut(proxy);
    check_wait(t.connects == 3, WAIT_MS);
    check_num(t.zxid, >=, change);
    zookeeper_close(zh);
    proxy_stop(proxy);

    struct fake_prng prng = {.plain = true};
    struct fake fake;
    fake_init(&fake, &prng);
    struct fake_handle *h = fake_open(&fake);
    fake_connect(h, true);
    fake_create(&fake, "/a", 0, 0);
    fake_catch_up(h, fake.zxid);
    fake_send(h, &ASK(WATCH, "/a", .watch_id = 1));
    check_true(fake_serve(h));
    struct fake_message *message;
    while ((message = fake_next(h)))
        fake_message_free(message);
    int64_t before = h->seen;
    fake_write(&fake, fake_find(&fake, "/a"), "x");
    fake_catch_up(h, fake.zxid);
    message = fake_next(h);
    check_true(message && message->type == FAKE_FIRED);
    fake_message_free(message);
    check_num(h->seen, ==, before);
    check_num(h->view, >, before);
    fake_close(h);
    fake_fini(&fake);
}

/* Goal: a silent session ends a timeout after its last sign of life, at the next tick; of the simulated
 * one the last ping, and what the server had noted since the leader asked it last, may be lost with it.
 * Method: a raw client creates an ephemeral node and falls silent; the same with many seeds on the
 * simulated ensemble. The real one's upper bound has room for a busy machine. */
CLUSTER_TEST(a_silent_session_expires_in_time)
{
    const char *path = cluster_path("silent");
    struct wire *w;

    check_ok(wire_open(&w, zks_host(), zks_port(server, 0), SILENT_MS));
    check_num(wire_session_ms(w), ==, SILENT_MS);
    int64_t sent_ms = net_now_ms();
    check_ok(wire_create(w, path, "", WIRE_EPHEMERAL, NULL, 0));
    int64_t answered_ms = net_now_ms();
    check_wait(wire_exists(raw, path, NULL) == WIRE_NONODE, WAIT_MS);
    int64_t gone_ms = net_now_ms();
    wire_abandon(w);
    check_num(gone_ms - sent_ms, >=, SILENT_MS);
    check_num(gone_ms - answered_ms, <=, SILENT_MS + TICK_MS + 5000);

    for (unsigned seed = 0; seed < 200; seed++) {
        struct fake_prng prng = {.state = seed};
        struct fake fake;
        int64_t ms = 0;

        fake_init(&fake, &prng);
        struct fake_handle *h = fake_open(&fake);
        fake_connect(h, true);
        int64_t session = h->session, timeout_ms = fake_timeout_ms(&fake, session);
        fake_pass(&fake, 10 * timeout_ms + 3 * seed); /* a link that works is a sign of life */
        check_true(fake_alive(&fake, session));
        fake_break(h);
        for (; fake_alive(&fake, session); ms++)
            fake_pass(&fake, 1);
        check_num(ms, >=, timeout_ms - timeout_ms / 3 - fake.rules.round_ms);
        check_num(ms, <=, timeout_ms + fake.rules.tick_ms);
        fake_close(h);
        fake_fini(&fake);
    }
}

static int open_pair(void **state)
{
    if (cluster_raw_open(state) != 0)
        return -1;
    p = pair_new();
    pair_do(p, open, 0);
    pair_expect(p, 0, "up s0\n");
    return 0;
}

static int open_two(void **state)
{
    if (open_pair(state) != 0)
        return -1;
    pair_do(p, open, 1);
    pair_expect(p, 1, "up s1\n");
    return 0;
}

static int close_pair(void **state)
{
    pair_free(p);
    return cluster_raw_close(state);
}

int main(int argc, char **argv)
{
    cluster_server.no_digest = true; /* for the counters */
    return cluster_main(argc, argv);
}
