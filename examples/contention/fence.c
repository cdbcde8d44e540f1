/* SPDX-License-Identifier: Apache-2.0 */
#include "fence.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 128 }; /* of the record, and of a line of the journal */

struct record {
    uint64_t counter, token;
    struct who writer;
};

struct line {
    const char *kind;
    uint64_t token, value, found, us;
};

uint64_t clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Fills the text up, which has this length. */
static void pad(char text[SIZE + 1], int length)
{
    memset(text + length, ' ', (size_t)(SIZE - 1 - length));
    text[SIZE - 1] = '\n';
}

static int whole(ssize_t written)
{
    if (written == SIZE)
        return 0;
    if (written >= 0)
        errno = ENOSPC;
    return -1;
}

/* --- the record ---------------------------------------------------------------------------------
 */

static int record_read(int fd, struct record *r)
{
    char text[SIZE + 1] = "";
    ssize_t n = pread(fd, text, SIZE, 0);
    *r = (struct record){0};
    if (n <= 0)
        return (int)n;
    if (n == SIZE &&
        sscanf(text, "counter=%" SCNu64 " token=%" SCNx64 " writer=%u.%u.%u", &r->counter,
               &r->token, &r->writer.process, &r->writer.life, &r->writer.thread) == 5)
        return 0;
    errno = EILSEQ;
    return -1;
}

static int record_write(int fd, const struct record *r)
{
    char text[SIZE + 1];
    pad(text, snprintf(text, sizeof text, "counter=%" PRIu64 " token=%" PRIx64 " writer=%u.%u.%u",
                       r->counter, r->token, r->writer.process, r->writer.life, r->writer.thread));
    return whole(pwrite(fd, text, SIZE, 0));
}

static int reopen(int fd, int flags)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC);
}

int fence_open(struct fence *fence, int journal, int record)
{
    fence->journal = reopen(journal, O_WRONLY | O_APPEND);
    fence->record = reopen(record, O_RDWR);
    return fence->journal < 0 || fence->record < 0 ? -1 : 0;
}

static int append(struct fence *fence, const struct line *line)
{
    char text[SIZE + 1];
    int n = snprintf(text, sizeof text,
                     "%s %u.%u.%u token=%" PRIx64 " value=%" PRIu64 " found=%" PRIu64 " us=%" PRIu64
                     " at=%" PRIu64,
                     line->kind, fence->who.process, fence->who.life, fence->who.thread,
                     line->token, line->value, line->found, line->us, clock_us() - fence->epoch_us);
    if (n >= SIZE) {
        errno = EOVERFLOW;
        return -1;
    }
    pad(text, n);
    return whole(write(fence->journal, text, SIZE));
}

int fence_note(struct fence *fence, const char *kind, uint64_t token, uint64_t value, uint64_t us)
{
    return append(fence, &(struct line){.kind = kind, .token = token, .value = value, .us = us});
}

/* --- access -------------------------------------------------------------------------------------
 */

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
static enum fence_answer access_locked(struct fence *fence, struct line *line, bool writes,
                                       uint64_t *counter)
{
    struct record record;
    if (record_read(fence->record, &record))
        return FENCE_FAILED;
    bool stale = line->token < record.token;
    line->found = record.counter;
    if (stale)
        line->kind = "stale";
    if (append(fence, line))
        return FENCE_FAILED;
    if (stale)
        return FENCE_REFUSED;
    if (writes) {
        fence->between(fence->arg);
        record.counter = line->value;
    }
    *counter = record.counter;
    record.token = line->token;
    record.writer = fence->who;
    return record_write(fence->record, &record) ? FENCE_FAILED : FENCE_ACCEPTED;
}

static enum fence_answer pass(struct fence *fence, struct line line, bool writes, uint64_t *counter)
{
    if (take(fence, LOCK_EX))
        return FENCE_FAILED;
    enum fence_answer answer = access_locked(fence, &line, writes, counter);
    int saved = errno;
    take(fence, LOCK_UN);
    errno = saved;
    return answer;
}

enum fence_answer fence_enter(struct fence *fence, uint64_t token, uint64_t wait_us,
                              uint64_t *counter)
{
    return pass(fence, (struct line){.kind = "enter", .token = token, .us = wait_us}, false,
                counter);
}

enum fence_answer fence_write(struct fence *fence, uint64_t token, uint64_t counter)
{
    uint64_t written;
    return pass(fence, (struct line){.kind = "write", .token = token, .value = counter}, true,
                &written);
}
