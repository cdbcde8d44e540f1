/* SPDX-License-Identifier: Apache-2.0 */
/* What a command under test leaves behind, also when it is killed: a file that it and the test have
 * mapped. */
#ifndef ZKTEST_TOOL_SHARED_H
#define ZKTEST_TOOL_SHARED_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

struct shared {
    atomic_llong alive_ns; /* CLOCK_BOOTTIME, the last time that a command worked */
    atomic_int pid;        /* of the last command that began */
    atomic_int begun, done;
    atomic_int overlaps;    /* found another one at work when it began */
    atomic_int signals[65]; /* how often each one came */
};

/* NULL: no such file, or no memory. */
static inline struct shared *shared_map(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof(struct shared)) == 0)
        at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

#endif
