/* SPDX-License-Identifier: Apache-2.0 */
#include "nets.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NET "10.77"

/* A command of the shell, whose words are ours; its output is thrown away. True if it succeeded. */
static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool run(const char *format, ...)
{
    char command[600], quiet[640];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    snprintf(quiet, sizeof quiet, "{ %s; } >/dev/null 2>&1 </dev/null", command);
    return system(quiet) == 0;
}

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? write(fd, text, strlen(text)) : -1;

    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(text);
}

/* As a user that is root only in there. */
static bool unshare_as_user(void)
{
    char map[40];

    snprintf(map, sizeof map, "0 %d 1", (int)geteuid());
    int gid = (int)getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 || !write_file("/proc/self/uid_map", map))
        return false;
    snprintf(map, sizeof map, "0 %d 1", gid);
    return write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", map);
}

/* The child keeps its namespace until the caller ends. -1: it has none. */
static pid_t drop_anchor(void)
{
    int ready[2];
    char byte = 0;

    if (pipe2(ready, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNET) != 0 || write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    bool there = pid > 0 && read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    return there ? pid : -1;
}

static bool join(struct nets *nets, size_t i)
{
    int n = (int)i + 1;

    nets->anchor[i] = drop_anchor();
    if (nets->anchor[i] < 0)
        return false;
    snprintf(nets->host[i], sizeof nets->host[i], NET ".%d.2", n);
    snprintf(nets->file[i], sizeof nets->file[i], "/proc/%d/ns/net", (int)nets->anchor[i]);
    return run("ip link add node%d type veth peer name out netns %d && "
               "ip addr add " NET ".%d.1/24 dev node%d && ip link set node%d up",
               n, (int)nets->anchor[i], n, n, n) &&
           run("nsenter --net=%s sh -c 'ip link set lo up && ip addr add " NET
               ".%d.2/24 dev out && "
               "ip link set out up && ip route add default via " NET ".%d.1'",
               nets->file[i], n, n);
}

int nets_start(struct nets *nets, size_t nodes, char *err, size_t size)
{
    *nets = (struct nets){.nodes = 0};
    if (!run("command -v ip && command -v nsenter")) {
        snprintf(err, size, "ip (iproute2) or nsenter (util-linux) is not installed");
        return -1;
    }
    if (unshare(CLONE_NEWNET) != 0 && !unshare_as_user()) {
        snprintf(err, size, "no network namespaces for this user");
        return -1;
    }
    nets->nodes = nodes;
    bool made = run("ip link set lo up") && write_file("/proc/sys/net/ipv4/ip_forward", "1");
    for (size_t i = 0; made && i < nodes; i++)
        made = join(nets, i);
    if (made && nets_cut(nets, 0, nodes - 1, true) == 0 && nets_cut(nets, 0, nodes - 1, false) == 0)
        return 0;
    nets_stop(nets);
    snprintf(err, size, "virtual interfaces or routing rules can't be made here");
    return -1;
}

void nets_stop(struct nets *nets)
{
    for (size_t i = 0; i < nets->nodes; i++) {
        if (nets->anchor[i] <= 0)
            continue;
        kill(nets->anchor[i], SIGKILL);
        waitpid(nets->anchor[i], NULL, 0);
    }
    nets->nodes = 0;
}

int nets_cut(const struct nets *nets, size_t one, size_t other, bool cut)
{
    const char *does = cut ? "add" : "del", *a = nets->host[one], *b = nets->host[other];
    bool there = run("ip rule %s from %s to %s blackhole", does, a, b);
    bool back = run("ip rule %s from %s to %s blackhole", does, b, a);

    return there && back ? 0 : -1;
}
