/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include "chance.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { RECORD_SIZE = 128 };

int record_read(int fd, struct record *record)
{
    char text[RECORD_SIZE + 1] = "";
    ssize_t n = pread(fd, text, RECORD_SIZE, 0);
    *record = (struct record){0};
    if (n <= 0)
        return (int)n;
    if (n == RECORD_SIZE && sscanf(text, "counter=%" SCNu64 " token=%" SCNx64 " writer=%u.%u.%u",
                                   &record->counter, &record->token, &record->writer.process,
                                   &record->writer.life, &record->writer.thread) == 5)
        return 0;
    errno = EILSEQ;
    return -1;
}

static int record_write(int fd, const struct record *record)
{
    char text[RECORD_SIZE + 1];
    int n = snprintf(text, sizeof text, "counter=%" PRIu64 " token=%" PRIx64 " writer=%u.%u.%u",
                     record->counter, record->token, record->writer.process, record->writer.life,
                     record->writer.thread);
    memset(text + n, ' ', (size_t)(RECORD_SIZE - 1 - n));
    text[RECORD_SIZE - 1] = '\n';
    ssize_t written = pwrite(fd, text, RECORD_SIZE, 0);
    if (written == RECORD_SIZE)
        return 0;
    if (written >= 0)
        errno = ENOSPC;
    return -1;
}

static int reopen(int fd, int flags)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC);
}

int fence_open(struct fence *fence, int journal, int record, struct who who, uint64_t epoch_us)
{
    *fence = (struct fence){.record = -1, .journal = -1, .who = who, .epoch_us = epoch_us};
    fence->journal = reopen(journal, O_WRONLY | O_APPEND);
    if (fence->journal >= 0)
        fence->record = reopen(record, O_RDWR);
    if (fence->record >= 0)
        return 0;
    int saved = errno;
    fence_close(fence);
    errno = saved;
    return -1;
}

void fence_close(struct fence *fence)
{
    if (fence->record >= 0)
        close(fence->record);
    if (fence->journal >= 0)
        close(fence->journal);
    fence->record = fence->journal = -1;
}

int fence_note(struct fence *fence, struct witness_line line)
{
    line.who = fence->who;
    line.at_us = clock_us() - fence->epoch_us;
    return witness_append(fence->journal, &line);
}

static int take(struct fence *fence, int operation)
{
    while (flock(fence->record, operation)) {
        if (errno != EINTR)
            return -1;
    }
    return 0;
}

/* The journal's line comes first: then a record without the update that the journal has last can
 * only mean that its writer died in between. */
static enum fence_answer access_locked(struct fence *fence, struct witness_line *line,
                                       uint64_t *counter)
{
    struct record record;
    if (record_read(fence->record, &record))
        return FENCE_FAILED;
    line->found = record.counter;
    if (line->token < record.token)
        line->kind = WITNESS_STALE;
    if (fence_note(fence, *line))
        return FENCE_FAILED;
    if (line->kind == WITNESS_STALE)
        return FENCE_REFUSED;
    if (line->kind == WITNESS_WRITE) {
        if (fence->between)
            fence->between(fence->arg);
        record.counter = line->value;
    }
    *counter = record.counter;
    record.token = line->token;
    record.writer = fence->who;
    return record_write(fence->record, &record) ? FENCE_FAILED : FENCE_ACCEPTED;
}

static enum fence_answer pass(struct fence *fence, struct witness_line line, uint64_t *counter)
{
    if (take(fence, LOCK_EX))
        return FENCE_FAILED;
    enum fence_answer answer = access_locked(fence, &line, counter);
    int saved = errno;
    take(fence, LOCK_UN);
    errno = saved;
    return answer;
}

enum fence_answer fence_enter(struct fence *fence, uint64_t token, uint64_t wait_us,
                              uint64_t *counter)
{
    return pass(fence, (struct witness_line){.kind = WITNESS_ENTER, .token = token, .us = wait_us},
                counter);
}

enum fence_answer fence_write(struct fence *fence, uint64_t token, uint64_t counter)
{
    uint64_t written;
    return pass(fence,
                (struct witness_line){.kind = WITNESS_WRITE, .token = token, .value = counter},
                &written);
}
