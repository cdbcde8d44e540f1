/* SPDX-License-Identifier: Apache-2.0 */
#include "shared.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>

struct shared *shared_new(void)
{
    void *at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                    -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void shared_free(struct shared *b)
{
    munmap(b, sizeof *b);
}

void shared_fail(struct shared *b, const char *format, ...)
{
    int none = 0;
    va_list args;

    if (atomic_compare_exchange_strong(&b->failed, &none, 1)) {
        va_start(args, format);
        vsnprintf(b->why, sizeof b->why, format, args);
        va_end(args);
        b->failed = 2;
    }
    b->stop = true;
}

bool shared_failed(const struct shared *b)
{
    return b->failed == 2;
}

long shared_sum(const struct shared *b, int first_seat, int seats, enum tally tally)
{
    long sum = 0;

    for (int i = first_seat; i < first_seat + seats; i++)
        sum += b->seat[i].tally[tally];
    return sum;
}

const char *soak_path(int path)
{
    static const char *const paths[SOAK_PATHS] = {"/soak/0", "/soak/1", "/soak/2",
                                                  "/soak/3", "/soak/4", "/soak/5"};
    return paths[path];
}

const char *half_name(int path, enum access access)
{
    if (path < SOAK_MUTEXES)
        return "";
    return access == READING ? ":read" : ":write";
}

/* --- the witness ------------------------------------------------------------------------------ */

static int print_visitor(char *text, size_t size, const struct shared *b, int seat, int path)
{
    const struct seat *s = &b->seat[seat];

    return snprintf(text, size, " process %d (pid %d, thread %d) as a %s;", seat / SOAK_THREADS,
                    s->pid, s->tid, s->access[path] == WRITING ? "writer" : "reader");
}

static bool overlap(struct shared *b, int seat, int path, const char *does)
{
    char inside[250] = "";
    size_t n = 0;

    for (int i = 0; i < SOAK_SEATS && n < sizeof inside; i++) {
        if (i != seat && b->seat[i].access[path] != OUTSIDE)
            n += (size_t)print_visitor(inside + n, sizeof inside - n, b, i, path);
    }
    b->overlap = true;
    shared_fail(b, "overlap on %s: process %d (pid %d, thread %d) %s; inside:%s", soak_path(path),
                seat / SOAK_THREADS, b->seat[seat].pid, b->seat[seat].tid, does, inside);
    return false;
}

static bool come_in(struct shared *b, int seat, int path, enum access as)
{
    if (as == WRITING)
        return room_enter(&b->path[path], (uint32_t)seat) == 0 ||
               overlap(b, seat, path, "comes in as a writer");
    return room_share(&b->path[path]) == 0 || overlap(b, seat, path, "comes in as a reader");
}

static bool go_out(struct shared *b, int seat, int path, enum access from)
{
    if (from == READING)
        return room_unshare(&b->path[path]) == 0 ||
               overlap(b, seat, path, "goes out as a reader and was not in");
    return room_leave(&b->path[path], (uint32_t)seat) == 0 ||
           overlap(b, seat, path, "goes out as a writer and was not alone");
}

static bool check_token(struct shared *b, int seat, int path, enum access as, uint64_t token)
{
    uint64_t before = room_token(&b->path[path], as == WRITING, token);

    if (before != 0)
        shared_fail(b, "%s: process %d comes in with token %llx after %llx", soak_path(path),
                    seat / SOAK_THREADS, (unsigned long long)token, (unsigned long long)before);
    return before == 0;
}

static bool step(struct shared *b, int seat, int path, enum access to, uint64_t token)
{
    enum access from = (enum access)b->seat[seat].access[path];

    if (from == OUTSIDE)
        return come_in(b, seat, path, to) && (token == 0 || check_token(b, seat, path, to, token));
    if (to == OUTSIDE)
        return go_out(b, seat, path, from);
    return room_downgrade(&b->path[path], (uint32_t)seat) == 0 ||
           overlap(b, seat, path, "becomes a reader and was not alone");
}

bool witness_move(struct shared *b, int seat, int path, enum access to, uint64_t token)
{
    if (!step(b, seat, path, to, token))
        return false;
    b->seat[seat].access[path] = (int)to;
    return true;
}

void witness_permits(struct shared *b, int seat, int change)
{
    int out = atomic_fetch_add(&b->permits, change) + change;

    if (out <= SOAK_PERMITS)
        return;
    b->overlap = true;
    shared_fail(b, "overlap: %d permits of %d are out since process %d came in", out, SOAK_PERMITS,
                seat / SOAK_THREADS);
}
