/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* pipe2 */
#include "board.h"

#include "chance.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(struct message) <= PIPE_BUF, "a message is one undivided write");

struct board *board_new(void)
{
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return NULL;
    board->epoch_us = clock_us();
    return board;
}

void board_free(struct board *board)
{
    munmap(board, sizeof *board);
}

int lines_open(struct lines *lines)
{
    *lines = (struct lines){{-1, -1}, {-1, -1}, {-1, -1}};
    if (pipe2(lines->go, O_CLOEXEC) == 0 && pipe2(lines->stop, O_CLOEXEC) == 0 &&
        pipe2(lines->news, O_CLOEXEC) == 0)
        return 0;
    int saved = errno;
    lines_close(lines);
    errno = saved;
    return -1;
}

void line_close(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

void lines_close(struct lines *lines)
{
    for (int i = 0; i < 2; i++) {
        line_close(&lines->go[i]);
        line_close(&lines->stop[i]);
        line_close(&lines->news[i]);
    }
}

void lines_keep_child(struct lines *lines)
{
    line_close(&lines->go[1]);
    line_close(&lines->stop[1]);
    line_close(&lines->news[0]);
}

int lines_send(const struct lines *lines, const struct message *message)
{
    ssize_t n;
    do {
        n = write(lines->news[1], message, sizeof *message);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *message ? 0 : -1;
}
