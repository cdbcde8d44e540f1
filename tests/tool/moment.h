/* SPDX-License-Identifier: Apache-2.0 */
/* The moment in which zklock's guard has read /proc and not yet signalled anybody: moment.c, loaded into
 * it, holds the guard there until the test says so. */
#ifndef ZKTEST_TOOL_MOMENT_H
#define ZKTEST_TOOL_MOMENT_H

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOMENT_VARIABLE "ZKL_TEST_MOMENT_FILE" /* where they meet */

struct moment {
    atomic_int reached, over;
};

/* NULL: no such file, or no memory. */
static inline struct moment *moment_map(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof(struct moment)) == 0)
        at = mmap(NULL, sizeof(struct moment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

#endif
