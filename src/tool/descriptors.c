/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptors that a program was started with: it opens 0 to 2 if the caller had closed them,
 * so that no connection gets their numbers. Each main function calls this once, before anything
 * opens a descriptor, with one thread. */
#include "descriptors.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The wrong way round: a read of standard input fails, and so does a write to the others. */
void descriptors_fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    }
}

/* Objects of their own: the system's table of open files may be the one that is full. */
bool descriptors_suffice(void)
{
    int fds[DESCRIPTORS_NEEDED], count = 0;
    while (count < DESCRIPTORS_NEEDED && (fds[count] = eventfd(0, EFD_CLOEXEC)) >= 0)
        count++;
    bool suffice = count == DESCRIPTORS_NEEDED;
    while (count > 0)
        close(fds[--count]);
    return suffice;
}
