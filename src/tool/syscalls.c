/* SPDX-License-Identifier: Apache-2.0
 *
 * Closes the descriptors that a process was started with, also if the kernel has no call for that
 * (before Linux 5.9) or a sandbox denies it. This file owns nothing. Children call it before they
 * become another program, so all of it is async-signal-safe. */
#include "syscalls.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

#define WITHOUT_A_LIST_MAX 65536 /* without /proc: how many are tried */

/* The descriptor that an entry of /proc/self/fd is for, -1: of none. */
static int number_of(const char *name)
{
    int number = 0;
    for (const char *at = name; *at; at++) {
        if (*at < '0' || *at > '9')
            return -1;
        number = 10 * number + (*at - '0');
    }
    return number;
}

/* Reading the folder continues behind the number it was at, whatever is closed meanwhile. */
static void close_listed(int folder, int first)
{
    _Alignas(struct dirent64) char entries[2048];
    long length;
    while ((length = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
        for (long at = 0; at < length;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(entries + at);
            int number = number_of(entry->d_name);
            if (number >= first && number != folder)
                close(number);
            at += entry->d_reclen;
        }
    }
}

void sys_close_from(int first)
{
    if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0)
        return;
    close(first); /* or there may be no room for the list */
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0)
        close_listed(folder, first);
    for (int fd = first; folder < 0 && fd < WITHOUT_A_LIST_MAX; fd++)
        close(fd);
    if (folder >= first)
        close(folder);
}
