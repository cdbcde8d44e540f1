/* SPDX-License-Identifier: Apache-2.0 */
/* The witness of exclusion in memory notices an entry into an occupied lock. Nearly all other suites depend on its word;
 * that of the others, crowd/journal.py, has test_journal.py. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "room.h"

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
