/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of the servers: a cut cuts, both ways, and only what it should. */
#include "nets.h"

#include "check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES 3
#define PORT 7000
#define WAIT_MS 10000
#define CUT_MS 300 /* an answer would have come long before */

static struct nets nets;
static pid_t listeners[NODES];

/* A child in the network of a node. */
static pid_t fork_into(size_t node)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setns(open(nets.file[node], O_RDONLY | O_CLOEXEC), CLONE_NEWNET) != 0)
        _exit(2);
    return 0;
}

static void listen_for_ever(size_t node)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, nets.host[node], &a.sin_addr);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 64) != 0)
        _exit(2);
    for (;;)
        pause();
}

/* The child that listens there may not have begun to. */
static bool connects(size_t to, int ms)
{
    int64_t end_ms = net_now_ms() + ms;
    int fd;

    while ((fd = net_connect(nets.host[to], PORT, end_ms)) < 0 && net_now_ms() < end_ms)
        net_nap_ms(5);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool reaches(size_t from, size_t to, int ms)
{
    int status = 0;
    pid_t pid = fork_into(from);

    if (pid == 0)
        _exit(connects(to, ms) ? 0 : 1);
    waitpid(pid, &status, 0);
    check_true(status == 0 || status == 1 << 8);
    return status == 0;
}

TEST(a_cut_is_between_two)
{
    for (size_t i = 0; i < NODES; i++) {
        check_true(reaches(i, (i + 1) % NODES, WAIT_MS));
        check_true(connects(i, WAIT_MS));
    }
    check_ok(nets_cut(&nets, 0, 1, true));
    check_true(!reaches(0, 1, CUT_MS));
    check_true(!reaches(1, 0, CUT_MS));
    check_true(reaches(0, 2, WAIT_MS));
    check_true(reaches(2, 1, WAIT_MS));
    check_true(connects(1, WAIT_MS));
    check_ok(nets_cut(&nets, 0, 1, false));
    check_true(reaches(0, 1, WAIT_MS));
    check_true(reaches(1, 0, WAIT_MS));
}

int main(int argc, char **argv)
{
    char err[200];

    if (nets_start(&nets, NODES, err, sizeof err) != 0) {
        printf("skipped: %s\n", err);
        return 77;
    }
    for (size_t i = 0; i < NODES; i++) {
        listeners[i] = fork_into(i);
        if (listeners[i] == 0)
            listen_for_ever(i);
    }
    int rc = tests_main(argc, argv, NULL, NULL);
    for (size_t i = 0; i < NODES; i++) {
        kill(listeners[i], SIGKILL);
        waitpid(listeners[i], NULL, 0);
    }
    nets_stop(&nets);
    return rc;
}
