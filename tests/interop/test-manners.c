/* SPDX-License-Identifier: Apache-2.0 */
/* Beside exclusion: asking a holder of another language to release, and listing the contenders. */
#include "interop.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STILL_MS 300

static const char *node_of(const char *answer_text)
{
    check_begins(answer_text, "ok /");
    return answer_text + strlen("ok ");
}

/* The whole path. */
static void only_child(const char *path, char *child, size_t size)
{
    struct wire_names names;

    check_ok(wire_children(raw, path, &names));
    check_num(names.n, ==, 1);
    snprintf(child, size, "%s/%s", path, names.name[0]);
    wire_names_free(&names);
}

/* --- asking a holder to release --------------------------------------------------------------- */

/* Curator's Revoker asks our holder, which hears of it by its callback and when it asks, or only
 * when it asks. */
static void check_revoked_by_curator(const char *path, const char *how, const char *kind,
                                     const char *half)
{
    check_says("ok", "c1 new L %s %s revocable=%s", kind, path, how);
    check_says("ok", "c1 lock L%s 0", half);
    check_says("no", "c1 revoked L%s %d", half, STILL_MS);
    const char *node = node_of(ask("c1 node L%s", half));
    check_says("ok", "j1 revoke %s", node);
    check_says("ok", "c1 revoked L%s %d", half, ANSWER_MS / 2);
    check_says("ok", "c1 unlock L%s", half);
    check_says("ok", "c1 lock L%s 0", half); /* a hold of its own, that nobody asked for */
    check_says("no", "c1 revoked L%s %d", half, STILL_MS);
    check_says("ok", "c1 unlock L%s", half);
    check_says("ok", "c1 drop L");
    check_no_contender(path);
}

INTEROP_TEST(test_curator_asks_ours)
{
    check_revoked_by_curator("/revoke-callback", "callback", "mutex", "");
    check_revoked_by_curator("/revoke-poll", "poll", "mutex", "");
    check_revoked_by_curator("/revoke-read", "callback", "rwlock", ".read");
    check_revoked_by_curator("/revoke-write", "poll", "rwlock", ".write");
    check_revoked_by_curator("/revoke-permit", "callback", "semaphore", "");
    check_revoked_by_curator("/revoke-permit-poll", "poll", "semaphore", "");
}

/* Ours asks a holder of Curator's, first without a wait and then with one. A revocable node of
 * Curator's has no data, so nobody can say whose it is. */
static void check_revoked_by_ours(const char *path, const char *kind, const char *half)
{
    char node[300];

    check_says("ok", "j1 new L %s %s revocable=1", kind, path);
    check_says("ok", "j1 lock L%s 0", half);
    only_child(path, node, sizeof node);
    check_says("ok ", "j1 list L%s", half);
    check_says("no", "c1 revoke %s 0", node);
    check_says("ok", "j1 revoked L%s %d", half, ANSWER_MS / 2);
    say("c1 revoke %s %d", node, ANSWER_MS / 2);
    check_says("ok", "j1 revoked L%s %d", half, ANSWER_MS / 2);
    assert_null(answer_within("c1", STILL_MS));
    check_says("ok", "j1 unlock L%s", half);
    check_answers("ok", "c1");
    check_no_contender(path);
}

INTEROP_TEST(test_ours_asks_curator)
{
    check_revoked_by_ours("/revoke-j", "mutex", "");
    check_revoked_by_ours("/revoke-j-read", "rwlock", ".read");
    check_revoked_by_ours("/revoke-j-write", "rwlock", ".write");
}

/* --- listing the contenders ------------------------------------------------------------------- */

/* A holder of ours and a waiter of Kazoo's, as Curator's getParticipantNodes and Kazoo's contenders
 * show them. */
INTEROP_TEST(test_peers_list_ours)
{
    play("k1 new L mutex /list names=curator owner=kiosk; j1 new L mutex /list; "
         "c1 new L mutex /list owner=gantry; c1 lock L 0");
    say("k1 lock L 20000");
    check_wait(wire_count(raw, "/list") == 2, ANSWER_MS);
    check_says("ok gantry|kiosk", "j1 list L");
    check_says("ok gantry|kiosk", "k2 list L");
    check_says("ok", "c1 unlock L");
    check_answers("ok", "k1");
    check_says("ok kiosk", "j1 list L");
    play("k1 unlock L; c1 drop L");
}

/* Without an owner text there are the host, the process and the thread. Each half of Curator's lock
 * lists its own kind. */
INTEROP_TEST(test_peers_list_readers_of_ours)
{
    char host[65], expected[100];

    play("j1 new L rwlock /list-readers; c1 new L rwlock /list-readers; c1 lock L.read 0");
    check_ok(gethostname(host, sizeof host));
    snprintf(expected, sizeof expected, "ok %s %d ", host, peer_pid("c"));
    check_begins(ask("j1 list L.read"), expected);
    check_says("ok ", "j1 list L.write");
    play("c1 unlock L.read; c1 drop L");
}

/* zkl_inspect of a queue in which all three stand. Curator's default data is its address. */
INTEROP_TEST(test_ours_lists_the_peers)
{
    play("k1 new L mutex /inspect pattern=-lock- owner=kiosk; j1 new L mutex /inspect; "
         "c1 new L mutex /inspect owner=gantry; j1 lock L 0");
    say("c1 lock L 20000");
    check_wait(wire_count(raw, "/inspect") == 2, ANSWER_MS);
    say("k1 lock L 20000");
    check_wait(wire_count(raw, "/inspect") == 3, ANSWER_MS);
    check_says("ok mutex|holder lock curator 127.0.0.1|waiter lock curator gantry >0"
               "|waiter lock kazoo kiosk >1",
               "c2 list L");
    check_says("ok", "j1 unlock L");
    check_answers("ok", "c1");
    check_says("ok", "c1 unlock L");
    check_answers("ok", "k1");
    check_says("ok mutex|holder lock kazoo kiosk", "c2 list L");
    play("k1 unlock L; c1 drop L");
}

INTEROP_TEST(test_ours_lists_readers_of_the_peers)
{
    play("k1 new L rwlock /inspect-rw names=curator owner=kiosk; "
         "j1 new L rwlock /inspect-rw revocable=1; c1 new L rwlock /inspect-rw owner=gantry; "
         "j1 lock L.read 0; k1 lock L.read 0");
    say("c1 lock L.write 20000");
    check_wait(wire_count(raw, "/inspect-rw") == 3, ANSWER_MS);
    say("k2 lock L.read 20000");
    check_wait(wire_count(raw, "/inspect-rw") == 4, ANSWER_MS);
    check_says("ok rwlock|holder read curator |holder read curator kiosk"
               "|waiter write curator gantry >1|waiter read curator kiosk >2",
               "c2 list L.read");
    play("j1 unlock L.read; k1 unlock L.read");
    check_answers("ok", "c1");
    check_says("ok", "c1 unlock L.write");
    check_answers("ok", "k2");
    play("k2 unlock L.read; c1 drop L");
}

/* Leases of both, a lease that waits, and its owner's place in the queue for it: getParticipantNodes
 * and zkl_inspect. */
INTEROP_TEST(test_semaphores_are_listed)
{
    play("j1 new L semaphore /inspect-s permits=2; "
         "c1 new L semaphore /inspect-s permits=2 owner=gantry; c1 lock L 0");
    check_says("ok",
               "j1 lock L 20000"); /* our node in the inner lock may be there for a moment more */
    const char *text = ask("j1 list L");
    assert_non_null(strstr(text, "gantry"));
    assert_non_null(strstr(text, "127.0.0.1"));
    say("j2 lock L 20000");
    check_wait(wire_count(raw, "/inspect-s/leases") == 3, ANSWER_MS);
    check_says("ok semaphore|holder permit curator gantry|holder permit curator 127.0.0.1"
               "|waiter permit curator 127.0.0.1|waiter entry curator 127.0.0.1",
               "c2 list L");
    check_says("ok", "c1 unlock L");
    check_answers("ok", "j2");
    play("j2 unlock L; j1 unlock L; c1 drop L");
}
