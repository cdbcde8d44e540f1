/* SPDX-License-Identifier: Apache-2.0 */
/* The two witnesses of exclusion notice an entry into an occupied lock: the room in memory, and the
 * journal over programs and languages. Nearly all other suites depend on their word. */
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "journal.h"
#include "room.h"

/* --- the room --------------------------------------------------------------------------------- */

TEST(one_is_alone)
{
    struct room room = {0};

    check_num(room_enter(&room, 0), ==, 0);
    check_num(room_enter(&room, 1), ==, room_word_of(0));
    check_num(room_enter(&room, 0), ==, room_word_of(0));
    check_num(room_share(&room), ==, room_word_of(0));
    check_num(room_leave(&room, 1), ==, room_word_of(0));
    check_num(room_unshare(&room), ==, room_word_of(0));
    check_num(room_leave(&room, 0), ==, 0);
    check_num(room_leave(&room, 0), ==, 1);
    check_num(room_unshare(&room), ==, 1);
    check_num(room_enter(&room, 1), ==, 0);
}

TEST(several_share)
{
    struct room room = {0};

    check_num(room_share(&room), ==, 0);
    check_num(room_share(&room), ==, 0);
    check_num(room_sharing(&room), ==, 2);
    check_num(room_enter(&room, 5), ==, 2);
    check_num(room_unshare(&room), ==, 0);
    check_num(room_enter(&room, 5), ==, 1);
    check_num(room_unshare(&room), ==, 0);
    check_num(room_enter(&room, 5), ==, 0);
    check_num(room_downgrade(&room, 4), ==, room_word_of(5));
    check_num(room_downgrade(&room, 5), ==, 0);
    check_num(room_share(&room), ==, 0);
    check_num(room_sharing(&room), ==, 2);
}

TEST(tokens_grow)
{
    struct room room = {0};

    check_num(room_token(&room, true, 0), !=, 0);
    check_num(room_token(&room, true, 5), ==, 0);
    check_num(room_token(&room, false, 7), ==, 0);
    check_num(room_token(&room, false, 6), ==, 0);
    check_num(room_token(&room, false, 5), ==, 5);
    check_num(room_token(&room, true, 7), ==, 7);
    check_num(room_token(&room, true, 8), ==, 0);
    check_num(room_token(&room, false, 8), ==, 8);
}

/* Goal: of two processes that do not lock at all one is seen by the other. Method: one stays inside until the other,
 * which comes in at some moment, has been turned away. */
TEST(processes_see_each_other)
{
    struct room *room =
        mmap(NULL, sizeof *room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1;

    check_true(room != MAP_FAILED);
    check_num(room_enter(room, 1), ==, 0);
    pid_t pid = fork();
    check_num(pid, >=, 0);
    if (pid == 0)
        _exit(room_enter(room, 2) == room_word_of(1) ? 7 : 8);
    check_num(waitpid(pid, &status, 0), ==, pid);
    check_num(WEXITSTATUS(status), ==, 7);
    munmap(room, sizeof *room);
}

/* --- the journal ------------------------------------------------------------------------------ */

struct journal_case {
    const char *lines[4];
    const char *fault;
};

static void check_cases(const struct journal_case *cases, size_t n, const char *parties)
{
    for (size_t i = 0; i < n; i++) {
        struct journal j = {.fd = -1, .parties = parties};
        journal_place(&j, "/w")->permits = 2;
        for (size_t line = 0; line < 4 && cases[i].lines[line] != NULL; line++)
            journal_line(&j, cases[i].lines[line]);
        check_text(j.fault, cases[i].fault);
    }
}

/* An entry beside another worker, readers beside a writer, one permit too many, and an exit without
 * an entry. */
TEST(the_journal_sees_overlaps)
{
    static const struct journal_case cases[] = {
        {{"+x c1 /w", "-x c1 /w", "+x j1 /w", "-x j1 /w"}, ""},
        {{"+x c1 /w", "+x j1 /w"}, "visit 1 of /w: j1 (x) comes in beside c1"},
        {{"+r c1 /w", "+r j1 /w", "-r c1 /w", "-r j1 /w"}, ""},
        {{"+r c1 /w", "+x j1 /w"}, "visit 1 of /w: j1 (x) comes in beside c1"},
        {{"+x c1 /w", "+r j1 /w"}, "visit 1 of /w: j1 (r) comes in beside c1"},
        {{"+x c1 /w", "+r c1 /w", "-x c1 /w", "+r j1 /w"}, ""},
        {{"+p c1 /w", "+p j1 /w", "-p c1 /w", "-p j1 /w"}, ""},
        {{"+p c1 /w", "+p j1 /w", "+p k1 /w"}, "visit 2 of /w: k1 (p) comes in beside c1"},
        {{"+x c1 /w", "-x j1 /w"}, "visit 1 of /w: j1 (x) leaves without having come in"},
        {{"*x c1 /w"}, "not a line of the journal: *x c1 /w"},
        {{"+x c1 /w 12"}, "not a line of the journal: +x c1 /w 12"},
        {{"+x o1 /w"}, "not a line of the journal: +x o1 /w"},
    };

    check_cases(cases, sizeof cases / sizeof cases[0], "cjk");
}

TEST(the_journal_judges_tokens_and_numbers)
{
    static const struct journal_case cases[] = {
        {{"+x o1.1 /w 5 lock-1", "-x o1.1 /w 5 lock-1", "+x n1.1 /w 5 lock-2"},
         "visit 1 of /w: n1.1 (x, token 5, lock-2) has no larger token than before: o1.1"},
        {{"+s o1.1 /w 5 lock-1", "-s o1.1 /w 5 lock-1", "+s o1.2 /w 5 lock-1"}, ""},
        {{"+s o1.1 /w 5 lock-1", "-s o1.1 /w 5 lock-1", "+s n1.2 /w 5 lock-1"},
         "visit 1 of /w: n1.2 (s, token 5, lock-1) has the token of another process: o1.1"},
        {{"+x o1.1 /w 5 lock-1", "+r o1.1 /w 5 lock-1"}, ""},
        {{"+x o1.1 /w 5 lock-1", "-x o1.1 /w 5 lock-1", "+r n1.1 /w 5 lock-2"},
         "visit 1 of /w: n1.1 (r, token 5, lock-2) reads with a token not above the writer's: "
         "o1.1"},
        {{"+p o1.1 /w 0 lease-1"}, "visit 0 of /w: o1.1 (p, token 0, lease-1) has no token"},
        {{"+x o1.1 /w 5 lock-2147483647"},
         "visit 0 of /w: o1.1 (x, token 5, lock-2147483647) was granted an exhausted number"},
        {{"+x o1.1 /w 5 lock--1"},
         "visit 0 of /w: o1.1 (x, token 5, lock--1) was granted an exhausted number"},
        {{"+p o1.1 /w 5 lease-2147483647"}, ""},
    };

    check_cases(cases, sizeof cases / sizeof cases[0], "on");
}
