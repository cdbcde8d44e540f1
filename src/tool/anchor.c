/* SPDX-License-Identifier: Apache-2.0
 *
 * The anchor: a child of zklock in the command's process group, which does nothing but tell zklock
 * what signals it was sent, those of zklock itself left out. Killers that choose by name must not
 * take it for zklock, or a signal to zklock alone would look like one to all: so it has a name of
 * its own and the command's command line. A process with one thread; job.c starts it, and it owns
 * its end of the socket. */
#include "anchor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "exits.h"
#include "net.h"
#include "signals.h"
#include "syscalls.h"

/* --- the process --------------------------------------------------------- */

/* Where the kernel reads the command line of this process: the fields 48 and 49 of its state. */
static char *own_command_line(size_t *size)
{
    enum { FIRST = 3, START = 48 };
    char text[2048];
    char *start, *end;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    char *field = strrchr(text, ')');
    for (int i = FIRST - 1; field && i < START; i++)
        field = strchr(field + 1, ' ');
    if (!field)
        return NULL;
    start = (char *)strtoul(field, &field, 10);
    end = (char *)strtoul(field, NULL, 10);
    *size = start && end > start ? (size_t)(end - start) : 0;
    return *size ? start : NULL;
}

static void take_command_line(char **argv)
{
    size_t size, used = 0;
    char *line = own_command_line(&size);
    char *text = line ? calloc(1, size) : NULL; /* the arguments may lie in the line themselves */
    if (!text)
        return;
    for (size_t i = 0; argv[i]; i++) {
        size_t length = strlen(argv[i]) + 1;
        if (length > size - used)
            break;
        memcpy(text + used, argv[i], length);
        used += length;
    }
    memcpy(line, text, size);
    free(text);
}

static void tell(int socket, const struct heard *heard)
{
    send(socket, heard, sizeof *heard, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void tell_signals(int socket, int signals, pid_t zklock)
{
    struct sent sent;
    while (signals_read(signals, &sent)) {
        if (sent.sender != zklock || sent.by_kernel)
            tell(socket, &(struct heard){.number = sent.number, .time_ns = boot_ns()});
    }
}

static void watch(int socket, int signals, pid_t zklock)
{
    char question;
    tell(socket, &(struct heard){.number = 0});
    for (ssize_t n = 1; n != 0;) {
        struct pollfd from[] = {{.fd = socket, .events = POLLIN},
                                {.fd = signals, .events = POLLIN}};
        poll(from, 2, -1);
        n = recv(socket, &question, 1, MSG_DONTWAIT);
        tell_signals(socket, signals, zklock);
        if (n > 0)
            tell(socket, &(struct heard){.number = 0});
    }
}

/* Nothing that a caller waits for is kept open or in use. */
static void be_anchor(int socket, pid_t zklock, pid_t group, char **argv) __attribute__((noreturn));
static void be_anchor(int socket, pid_t zklock, pid_t group, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "anchor");
    take_command_line(argv);
    setpgid(0, group);
    dup2(socket, 0);
    sys_close_from(1);
    int signals = signals_open_counted();
    if (chdir("/") == 0 && signals >= 0)
        watch(0, signals, zklock);
    _exit(EXIT_SYSTEM);
}

/* --- zklock's side ------------------------------------------------------- */

/* A killer that found the anchor before it has its name, or a signal that ended it, would make of
 * one signal to the command two, or none, so the anchor is waited for. */
bool anchor_start(struct anchor *anchor, pid_t group, char **argv)
{
    pid_t zklock = getpid();
    struct heard ready;
    sigset_t before;
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
        return false;
    anchor->socket = sockets[0];
    signals_block_all(&before);
    anchor->pid = fork();
    if (anchor->pid == 0)
        be_anchor(sockets[1], zklock, group, argv);
    int error = errno;
    signals_restore(&before);
    close(sockets[1]);
    if (anchor->pid > 0) {
        setpgid(anchor->pid, group);
        if (net_ready(anchor->socket, POLLIN, net_now_ms() + ANCHOR_ANSWER_MS))
            anchor_hear(anchor, &ready);
    }
    errno = error;
    return anchor->pid > 0;
}

bool anchor_ask(const struct anchor *anchor)
{
    return anchor->socket >= 0 && send(anchor->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

bool anchor_hear(struct anchor *anchor, struct heard *heard)
{
    if (anchor->socket < 0)
        return false;
    ssize_t n = recv(anchor->socket, heard, sizeof *heard, MSG_DONTWAIT);
    if (n == sizeof *heard)
        return true;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    close(anchor->socket);
    anchor->socket = -1;
    return false;
}
