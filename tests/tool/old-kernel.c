/* SPDX-License-Identifier: Apache-2.0 */
/* old-kernel COMMAND...: the command on a kernel that has neither pidfds nor close_range, as those before Linux 5.3 and
 * 5.9: a filter of system calls says so, to all that the command starts as well. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tool/syscalls.h"

#define UNKNOWN(call)                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1),                                             \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)

int main(int argc, char **argv)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        UNKNOWN(SYS_pidfd_open),
        UNKNOWN(SYS_pidfd_send_signal),
        UNKNOWN(SYS_close_range),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};

    if (argc < 2)
        return 2;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fprintf(stderr, "skipped: no filter of system calls can be set here\n");
        return 77;
    }
    if (sys_pidfd_open(getpid()) != -1 || errno != ENOSYS)
        return 3;
    execv(argv[1], argv + 1);
    return 127;
}
