/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a test and what it has started have mapped. */
#ifndef ZKTEST_TOOL_MAPPED_H
#define ZKTEST_TOOL_MAPPED_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Made if it is not there. NULL: no such file, or no memory. */
static inline void *mapped_file(const char *name, size_t size)
{
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

#endif
