/* SPDX-License-Identifier: Apache-2.0 */
#include "witness.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const names[WITNESS_KINDS] = {
    [WITNESS_RUN] = "run",     [WITNESS_START] = "start",   [WITNESS_STOP] = "stop",
    [WITNESS_ENTER] = "enter", [WITNESS_WRITE] = "write",   [WITNESS_STALE] = "stale",
    [WITNESS_LEAVE] = "leave", [WITNESS_FREED] = "freed",   [WITNESS_DONE] = "done",
    [WITNESS_KILLED] = "kill", [WITNESS_PAUSED] = "paused", [WITNESS_WOKEN] = "woken",
};

int witness_append(int journal, const struct witness_line *line)
{
    char text[WITNESS_LINE_SIZE + 1];
    int n = snprintf(text, sizeof text,
                     "%s %u.%u.%u token=%" PRIx64 " value=%" PRIu64 " found=%" PRIu64 " us=%" PRIu64
                     " at=%" PRIu64,
                     names[line->kind], line->who.process, line->who.life, line->who.thread,
                     line->token, line->value, line->found, line->us, line->at_us);
    if (n < 0 || n >= WITNESS_LINE_SIZE) {
        errno = EOVERFLOW;
        return -1;
    }
    memset(text + n, ' ', (size_t)(WITNESS_LINE_SIZE - 1 - n));
    text[WITNESS_LINE_SIZE - 1] = '\n';
    ssize_t written = write(journal, text, WITNESS_LINE_SIZE);
    if (written == WITNESS_LINE_SIZE)
        return 0;
    if (written >= 0)
        errno = ENOSPC;
    return -1;
}

static int parse(const char text[WITNESS_LINE_SIZE], struct witness_line *line)
{
    char copy[WITNESS_LINE_SIZE];
    char name[8];
    if (text[WITNESS_LINE_SIZE - 1] != '\n')
        return -1;
    memcpy(copy, text, sizeof copy);
    copy[sizeof copy - 1] = '\0';
    if (sscanf(copy,
               "%7s %u.%u.%u token=%" SCNx64 " value=%" SCNu64 " found=%" SCNu64 " us=%" SCNu64
               " at=%" SCNu64,
               name, &line->who.process, &line->who.life, &line->who.thread, &line->token,
               &line->value, &line->found, &line->us, &line->at_us) != 9)
        return -1;
    for (int kind = 0; kind < WITNESS_KINDS; kind++) {
        if (!strcmp(name, names[kind])) {
            line->kind = (enum witness_kind)kind;
            return 0;
        }
    }
    return -1;
}

FILE *witness_open(int journal)
{
    int fd = dup(journal);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    int saved = errno;
    if (!file && fd >= 0)
        close(fd);
    errno = saved;
    if (file)
        rewind(file);
    return file;
}

int witness_read(FILE *journal, struct witness_line *line)
{
    char text[WITNESS_LINE_SIZE];
    size_t n = fread(text, 1, sizeof text, journal);
    if (n == 0)
        return 0;
    return n != sizeof text || parse(text, line) ? -1 : 1;
}
