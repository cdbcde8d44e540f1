/* SPDX-License-Identifier: Apache-2.0 */
#include "shared.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096
#define HEAD ((sizeof(struct shared) + PAGE - 1) / PAGE * PAGE)

const struct history_place chaos_places[PLACES] = {
    {"mutex", 1, false},  {"lease", 1, false},
    {"rwlock", 1, false}, {"permits", PERMITS_MAX, false},
    {"single", 1, false}, {"revoked", 1, false},
    {"rare", 1, false}};

const char *place_name(int place)
{
    return chaos_places[place].name;
}

int place_of(const char *path)
{
    const char *at = path + strlen("/chaos/");

    for (int i = 0; i < PLACES; i++) {
        if (strlen(place_name(i)) == strcspn(at, "/") &&
            strncmp(at, place_name(i), strcspn(at, "/")) == 0)
            return i;
    }
    return RARE;
}

const char *role_name(int role)
{
    static const char *const names[ROLES] = {
        "lock",  "lock with a deadline", "try",      "read and write", "permits", "multi-lock",
        "lease", "semaphore's mutex",    "revocable"};
    return names[role];
}

struct shared *shared_map(int fd)
{
    void *at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

struct shared *shared_new(int *fd)
{
    *fd = memfd_create("chaos", 0);
    if (*fd < 0 || ftruncate(*fd, HEAD) != 0 || fcntl(*fd, F_SETFL, O_APPEND) != 0)
        return NULL;
    return shared_map(*fd);
}

void shared_odd(struct shared *b, const char *format, ...)
{
    int none = 0;
    va_list args;

    b->odd++;
    va_start(args, format);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    if (!atomic_compare_exchange_strong(&b->failed, &none, 1))
        return;
    va_start(args, format);
    vsnprintf(b->why, sizeof b->why, format, args);
    va_end(args);
    b->failed = 2;
}

/* --- the journal ------------------------------------------------------------------------------ */

void record_write(int fd, const struct record *record)
{
    if (write(fd, record, sizeof *record) != sizeof *record)
        abort();
}

struct record *records_read(int fd, size_t *n)
{
    struct stat st;
    struct record *records;

    if (fstat(fd, &st) != 0)
        return NULL;
    size_t size = (size_t)st.st_size - HEAD;
    records = malloc(size + 1);
    for (size_t at = 0; records != NULL && at < size;) {
        ssize_t got = pread(fd, (char *)records + at, size - at, (off_t)(HEAD + at));
        if (got <= 0)
            abort();
        at += (size_t)got;
    }
    *n = size / sizeof *records;
    return records;
}
