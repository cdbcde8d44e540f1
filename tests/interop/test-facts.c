/* SPDX-License-Identifier: Apache-2.0 */
/* Which clients exclude each other on one path, measured, and what the peers do that a user of
 * theirs would not expect. A test here must fail when a peer's release changes that:
 * docs/peers.md describes for users what these tests find, meson.build where peers surprise theirs. */
#include "interop.h"

#include <stdio.h>
#include <string.h>

#define STILL_MS 300 /* how long somebody who waits is watched */

static int children(const char *path)
{
    int n = wire_count(raw, path);

    return n < 0 ? 0 : n;
}

/* 504 for 5.4.0. */
static int release_of(const char *worker)
{
    const char *text = ask("%s version", worker);
    int major = 0, minor = 0;

    check_num(sscanf(text, "ok %2d.%2d.", &major, &minor), ==, 2);
    return major * 100 + minor;
}

/* --- who excludes whom ------------------------------------------------------------------------ */

struct contender {
    const char *excludes; /* a column for each that comes later, in this order; below */
    char language;
    const char *handle; /* as "new" has it */
    const char *kind;   /* likewise, with options */
    const char *half;
    const char *title;
};

/* A row for each holder. 'x': who comes later has to wait; '.': it gets in beside the holder. Two exclude each other if
 * both fields have an 'x'. In short: ours wait for every known name (a named mutex for its own only), Curator and Kazoo
 * for what they make themselves, Kazoo's plain Lock not even for its readers. */
static const struct contender contenders[] = {
    // clang-format off
    {"xxxxxx.x.....xx..xxx..", 'c', "A", "mutex", "", "zklock mutex"},
    {"x.xx.x...x......xx.x..", 'c', "B", "rwlock", ".read", "zklock reader"},
    {"xxxxxx..xx.....xxxxx..", 'c', "B", "rwlock", ".write", "zklock writer"},
    {"xxxxxx....xxxx...xxx..", 'c', "C", "mutex names=kazoo", "", "zklock mutex, Kazoo's names"},
    {"x.xx.x......x....x.x..", 'c', "D", "rwlock names=kazoo", ".read", "zklock reader, Kazoo's names"},
    {"xxxxxx....xxxx...xxx..", 'c', "D", "rwlock names=kazoo", ".write", "zklock writer, Kazoo's names"},
    {"......x...............", 'c', "E", "mutex name=report", "", "zklock mutex named report"},
    {"xxxxxx.x.....xx..xxx..", 'j', "A", "mutex", "", "Curator mutex"},
    {"x.xx.x...x......xx.x..", 'j', "B", "rwlock", ".read", "Curator reader"},
    {"xxxxxx..xx.....xxxxx..", 'j', "B", "rwlock", ".write", "Curator writer"},
    {"xxxxxx....xxxx...xxx..", 'k', "A", "mutex", "", "Kazoo Lock"},
    {"x.xx.x......x....x.x..", 'k', "B", "rwlock", ".read", "Kazoo ReadLock"},
    {"xxxxxx....xxxx...xxx..", 'k', "B", "rwlock", ".write", "Kazoo WriteLock"},
    {"xxxxxx....xxxx...xxx..", 'k', "C", "mutex pattern=-lock-", "", "Kazoo Lock with pattern -lock-"},
    {"xxxxxx.x.....xx..xxx..", 'k', "D", "mutex names=curator", "", "Kazoo named -lock-"},
    {"x.xx.x...x......xx.x..", 'k', "E", "rwlock names=curator", ".read", "Kazoo named __READ__"},
    {"xxxxxx..xx.....xxxxx..", 'k', "E", "rwlock names=curator", ".write", "Kazoo named __WRIT__"},
    {"xxxxxx....xxxx...xxx..", 'k', "F", "mutex pattern=-lock-,__WRIT__,__READ__,__rlock__", "", "Kazoo Lock, all patterns"},
    {"x.xx.x......x....x.x..", 'k', "G", "rwlock pattern=-lock-,__WRIT__", ".read", "Kazoo ReadLock, all patterns"},
    {"xxxxxx....xxxx...xxx..", 'k', "H", "rwlock pattern=-lock-,__WRIT__,__READ__", ".write", "Kazoo WriteLock, all patterns"},
    {"....................xx", 'c', "F", "single", "", "zklock semaphore mutex"},
    {"....................xx", 'j', "C", "single", "", "Curator semaphore mutex"},
    // clang-format on
};

#define CONTENDERS (sizeof contenders / sizeof contenders[0])

static void try_beside(const struct contender *holder, const struct contender *later, char *cell)
{
    check_says("ok", "%c1 lock %s%s 0", holder->language, holder->handle, holder->half);
    const char *text = ask("%c2 lock %s%s 0", later->language, later->handle, later->half);
    *cell = strcmp(text, "ok") == 0 ? '.' : strcmp(text, "no") == 0 ? 'x' : '?';
    if (*cell == '?')
        print_error("%s beside %s: %s\n", later->title, holder->title, text);
    if (*cell == '.')
        check_says("ok", "%c2 unlock %s%s", later->language, later->handle, later->half);
    check_says("ok", "%c1 unlock %s%s", holder->language, holder->handle, holder->half);
}

/* Two halves of a lock come from one handle. */
static bool is_first_half(size_t i)
{
    const struct contender *c = &contenders[i];

    return i == 0 || c->language != c[-1].language || strcmp(c->handle, c[-1].handle) != 0;
}

static void make_contenders(const char *path)
{
    for (size_t i = CONTENDERS; i-- > 0;) { /* Kazoo first, as it makes a path that stays */
        const struct contender *c = &contenders[i];
        if (is_first_half(i)) {
            size_t kind = strcspn(c->kind, " ");
            check_says("ok", "%c1 new %s %.*s %s%s", c->language, c->handle, (int)kind, c->kind,
                       path, c->kind + kind);
        }
    }
}

static void drop_contenders(void)
{
    for (size_t i = 0; i < CONTENDERS; i++) {
        if (is_first_half(i))
            check_says("ok", "%c1 drop %s", contenders[i].language, contenders[i].handle);
    }
}

INTEROP_TEST(test_who_excludes_whom)
{
    char seen[CONTENDERS][CONTENDERS + 1];
    int wrong = 0;

    make_contenders("/facts");
    for (size_t row = 0; row < CONTENDERS; row++) {
        for (size_t column = 0; column < CONTENDERS; column++)
            try_beside(&contenders[row], &contenders[column], &seen[row][column]);
        seen[row][CONTENDERS] = '\0';
        bool same = strcmp(seen[row], contenders[row].excludes) == 0;
        print_message("%s  %s%s%s\n", seen[row], contenders[row].title,
                      same ? "" : ", not as expected: ", same ? "" : contenders[row].excludes);
        wrong += !same;
    }
    drop_contenders();
    check_no_contender("/facts");
    check_num(wrong, ==, 0);
}

/* --- Curator ---------------------------------------------------------------------------------- */

/* A child that is no contender, but sorts before the contenders' numbers, keeps everybody out. */
INTEROP_TEST(test_curator_counts_strangers)
{
    play("k1 new L mutex /stranger names=curator; j1 new L mutex /stranger; "
         "c1 new L mutex /stranger");
    check_ok(wire_create(raw, "/stranger/0", "", WIRE_PERSISTENT, NULL, 0));
    check_says("no", "j1 lock L %d", STILL_MS);
    play("c1 lock L 0; c1 unlock L; k1 lock L 0; k1 unlock L");
    check_ok(wire_delete(raw, "/stranger/0", -1));
    play("j1 lock L 0; j1 unlock L; c1 drop L");
}

/* Up to Curator 5.4 the reader that its writer becomes has a number of its own, behind the writers that
 * wait already, and one of them is let in beside it. From 5.5 on it has its writer's place. */
INTEROP_TEST(test_curators_place_in_a_downgrade)
{
    const bool keeps_it = release_of("j1") >= 505;

    play("j1 new L rwlock /downgrade-j; c1 new L rwlock /downgrade-j; j1 lock L.write 0");
    say("c1 lock L.write 20000");
    check_wait(children("/downgrade-j") == 2, ANSWER_MS);
    play("j1 lock L.read 0; j1 unlock L.write");
    if (keeps_it)
        assert_null(answer_within("c1", STILL_MS));
    else
        check_answers("ok", "c1"); /* beside Curator's reader */
    check_says("ok", "j1 unlock L.read");
    if (keeps_it)
        check_answers("ok", "c1");
    play("c1 unlock L.write; c1 drop L");
}

/* Ours keeps its place, in Curator's eyes and Kazoo's too. Modes: F36. */
INTEROP_TEST(test_our_downgrade_keeps_its_place)
{
    static const char *const waiters[] = {"j1", "k1"};

    play("k1 new L rwlock /downgrade-c names=curator; j1 new L rwlock /downgrade-c; "
         "c1 new L rwlock /downgrade-c");
    for (size_t i = 0; i < 2; i++) {
        check_says("ok", "c1 lock L.write 0");
        say("%s lock L.write 20000", waiters[i]);
        check_wait(children("/downgrade-c") == 2, ANSWER_MS);
        play("c1 lock L.read 0; c1 unlock L.write");
        assert_null(answer_within(waiters[i], STILL_MS));
        check_says("ok", "c1 unlock L.read");
        check_answers("ok", waiters[i]);
        check_says("ok", "%s unlock L.write", waiters[i]);
    }
    check_says("ok", "c1 drop L");
}

/* Curator's semaphore knows only the number that each client was given. Ours have the number
 * that stands at the path. */
INTEROP_TEST(test_curator_semaphores_disagree)
{
    play("j1 new L semaphore /permits permits=3; c1 new L semaphore /permits permits=2; "
         "c1 lock L 0; c2 lock L 0; c3 lock L 0 -> no");
    check_says("ok", "j1 lock L 0"); /* a third one */
    play("j2 lock L 0 -> no; c1 unlock L");
    check_says("no", "c3 lock L 0"); /* two are still out */
    play("j1 unlock L; c3 lock L 0; c3 unlock L; c2 unlock L; c1 drop L");
}

/* A holder of Curator's or Kazoo's does not hear that its node was deleted: it goes on, and gives back
 * what it has not any more, beside ours. */
INTEROP_TEST(test_peers_miss_a_deleted_node)
{
    static const char *const holders[] = {"j1", "k1"};
    struct wire_names names;
    char node[200];

    play("k1 new L mutex /deleted names=curator; j1 new L mutex /deleted; c1 new L mutex /deleted");
    for (size_t i = 0; i < 2; i++) {
        check_says("ok", "%s lock L 0", holders[i]);
        check_ok(wire_children(raw, "/deleted", &names));
        check_num(names.n, ==, 1);
        snprintf(node, sizeof node, "/deleted/%s", names.name[0]);
        wire_names_free(&names);
        check_ok(wire_delete(raw, node, -1));
        check_says("ok", "c1 lock L 0");
        check_says("ok", "%s unlock L", holders[i]);
        check_says("ok", "c1 unlock L");
    }
    check_says("ok", "c1 drop L");
}

/* --- Kazoo ------------------------------------------------------------------------------------ */

/* Up to Kazoo 2.8 a ReadLock waits for the last writer in the list, though that one came after it and
 * waits for it: neither ever gets in. From 2.9 on it does, as ours in its place. Modes: F35. */
INTEROP_TEST(test_kazoo_reader_before_later_writers)
{
    const bool gets_in = release_of("k1") >= 209;

    play("k1 new L rwlock /reader-k; c1 new L rwlock /reader-k names=kazoo; k1 lock L.write 0");
    say("k2 lock L.read %d", gets_in ? 20000 : 3000);
    check_wait(children("/reader-k") == 2, ANSWER_MS);
    say("c1 lock L.write 20000");
    check_wait(children("/reader-k") == 3, ANSWER_MS);
    check_says("ok", "k1 unlock L.write");
    assert_null(answer_within("c1", STILL_MS)); /* the reader is before it */
    check_answers(gets_in ? "ok" : "no", "k2"); /* or waits for it, until its time is up */
    if (gets_in)
        check_says("ok", "k2 unlock L.read");
    check_answers("ok", "c1");
    check_says("ok", "c1 unlock L.write");

    check_says("ok", "k1 lock L.write 0");
    say("c1 lock L.read 20000");
    check_wait(children("/reader-k") == 2, ANSWER_MS);
    say("k2 lock L.write 20000");
    check_wait(children("/reader-k") == 3, ANSWER_MS);
    check_says("ok", "k1 unlock L.write");
    check_answers("ok", "c1");
    check_says("ok", "c1 unlock L.read");
    check_answers("ok", "k2");
    play("k2 unlock L.write; c1 drop L");
}

/* Kazoo makes the path once for each Lock object. If the path was a container, as ours and
 * Curator's are, and the server removed it while nobody was there, the object can't be used any
 * more. */
INTEROP_TEST(test_kazoo_misses_a_container)
{
    struct wire_stat stat;

    play("k1 new L mutex /container bare=1 pattern=-lock-; c1 new L mutex /container");
    check_says("ok", "c1 lock L 0"); /* the path is a container now */
    check_ok(wire_create(raw, "/container/0", "", WIRE_PERSISTENT, NULL, 0)); /* and stays */
    play("k1 lock L 0 -> no; c1 unlock L; k1 lock L 0; k1 unlock L");
    check_ok(wire_delete(raw, "/container/0", -1));
    check_wait(wire_exists(raw, "/container", &stat) == WIRE_NONODE, ANSWER_MS);
    check_begins(ask("k1 lock L 0"), "error NoNodeError");
    check_says("ok", "k1 drop L");
    check_says("ok", "k1 new L mutex /container pattern=-lock-"); /* that stays */
    play("k1 lock L 0; c1 lock L 0 -> no; k1 unlock L; c1 drop L");
}

/* --- go-zookeeper ----------------------------------------------------------------------------- */

/* What it can't read as a number in a queue makes its Lock fail, and its own node stays there until its session
 * ends, before everybody who comes later. Such are strangers, and up to the release of 2018 (Debian 12's)
 * readers and writers and Kazoo's plain names; 1.0 reads the numbers behind "__", and waits for those. */
static void check_go_fails(const char *path, const char *holder)
{
    struct wire_names names;
    char node[200];

    check_says("ok", "g1 new L mutex %s", path);
    check_begins(ask("g1 lock L 0"), "error");
    check_ok(wire_children(raw, path, &names));
    check_num(names.n, ==, 2);
    for (size_t i = 0; i < names.n; i++) {
        snprintf(node, sizeof node, "%s/%s", path, names.name[i]);
        if (strcmp(names.name[i], holder) != 0 && strstr(names.name[i], "-lock-") != NULL)
            check_ok(wire_delete(raw, node, -1));
    }
    wire_names_free(&names);
    check_num(children(path), ==, 1);
    check_says("ok", "g1 drop L");
}

/* c1 holds something there, which release gives up. */
static void check_go_waits(const char *path, const char *release)
{
    check_says("ok", "g1 new L mutex %s", path);
    say("g1 lock L 0");
    check_wait(children(path) == 2, ANSWER_MS);
    assert_null(answer_within("g1", STILL_MS));
    check_says("ok", "c1 unlock %s", release);
    check_answers("ok", "g1");
    play("g1 unlock L; g1 drop L");
}

INTEROP_TEST(test_go_trips_over_strangers)
{
    skip_without_go();
    play("c1 new L rwlock /trips-rw; c1 lock L.read 0");
    if (release_of("g1") < 100) {
        check_go_fails("/trips-rw", "");
        check_says("ok", "c1 unlock L.read");
    } else {
        check_go_waits("/trips-rw", "L.read");
    }
    check_says("ok", "c1 drop L");

    play("c1 new L mutex /trips; c1 lock L 0");
    check_ok(wire_create(raw, "/trips/config-x", "", WIRE_PERSISTENT, NULL, 0));
    check_says("ok", "c1 unlock L");
    check_go_fails("/trips", "config-x");
    check_says("ok", "c1 lock L 0"); /* which is no matter to ours */
    play("c1 unlock L; c1 drop L");
}

INTEROP_TEST(test_go_and_kazoos_names)
{
    skip_without_go();
    play("c1 new L mutex /names-g names=kazoo; c1 lock L 0");
    if (release_of("g1") < 100) {
        check_go_fails("/names-g", "");
        check_says("ok", "c1 unlock L");
    } else {
        check_go_waits("/names-g", "L");
    }
    check_says("ok", "c1 drop L");
}
