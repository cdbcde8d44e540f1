/* SPDX-License-Identifier: Apache-2.0 */
#include "descriptors.h"

#include <fcntl.h>
#include <unistd.h>

/* The wrong way round: a read of standard input fails, and so does a write to the others. */
void descriptors_fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    }
}
