/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests that are text need of C. */
#include "shared.h"
#include "wall.h"

#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "lag.h"
#include "wire.h"
#include "dev/zkserver.h"

/* What world.py and hooks.py have written again of C's structs: a changed one is noticed by its size. In the order of
 * hooks.py. */
extern const size_t sizes[];
const size_t sizes[] = {
    sizeof(struct zks_options), sizeof(struct wire_stat), sizeof(struct wire_acl),
    sizeof(struct wire_names),  sizeof(struct lag),       sizeof(struct shared),
    sizeof(struct wall),
};

/* Is this the number of a system call that waits for a descriptor? */
bool is_poll(long number);
bool is_poll(long number)
{
#ifdef SYS_poll
    if (number == SYS_poll)
        return true;
#endif
    return number == SYS_ppoll;
}

/* A child of the test's that has a number of the test's choice. -1: that may not be chosen here. */
pid_t stranger_with(pid_t number);
pid_t stranger_with(pid_t number)
{
    struct clone_args args = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);

    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (pid == 0)
        pause();
    return pid;
}
