/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the kernel that the C library has wrappers for since 2.34 (close_range) and 2.36
 * (pidfds) only. Here they are wanted with 2.31, and on kernels that don't have them. All are
 * async-signal-safe. */
#ifndef ZKLOCK_SERVERS_SYSCALLS_H
#define ZKLOCK_SERVERS_SYSCALLS_H

#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* The same on all machines but alpha. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* A descriptor of the process, or -1: ENOSYS before Linux 5.3. */
static inline int sys_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0U);
}

/* 0 or -1, as kill(). */
static inline int sys_pidfd_kill(int pidfd, int signal)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0U);
}

/* Close all descriptors from this one on. */
void sys_close_from(int first);

#endif
