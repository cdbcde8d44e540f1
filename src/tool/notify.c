/* SPDX-License-Identifier: Apache-2.0
 *
 * What zklock run tells the service manager: a datagram to the socket whose name is in the
 * environment, as sd_notify(3) says, without its library. This file owns that name. One thread at a
 * time: that which reports the place in the queue, and, once it is joined, the one that runs the
 * command. run.c and standing.c call it. */
#include "notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "plain.h"

static struct {
    struct sockaddr_un to;
    socklen_t to_size;   /* 0: there is none */
    int64_t watchdog_ns; /* after so much silence the service counts as dead; 0: never */
    int64_t told_ns;
} manager;

/* A path, or '@' and a name that is no file's. */
static void take_address(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    if (length < 2 || length >= sizeof manager.to.sun_path || !strchr("/@", name[0]))
        return;
    manager.to.sun_family = AF_UNIX;
    memcpy(manager.to.sun_path, name, length);
    if (name[0] == '@')
        manager.to.sun_path[0] = '\0';
    manager.to_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

/* That of another process may have been inherited. */
static void take_watchdog(const char *usec, const char *pid)
{
    int64_t us = usec && (!pid || strtoll(pid, NULL, 10) == getpid()) ? strtoll(usec, NULL, 10) : 0;
    if (us < INT64_MAX / 1000) /* else it is for ever */
        manager.watchdog_ns = us * 1000;
}

/* A child of a service that started zklock for a purpose of its own must not say that the service
 * is ready, or stops. The manager names the service's own process since systemd 248. */
static bool is_the_service(void)
{
    const char *pid = getenv("SYSTEMD_EXEC_PID");
    return !pid || strtoll(pid, NULL, 10) == getpid();
}

void notify_open(void)
{
    if (!is_the_service())
        return;
    take_address(getenv("NOTIFY_SOCKET"));
    take_watchdog(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"));
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

bool notify_is_on(void)
{
    return manager.to_size != 0;
}

/* False: it could not be sent now. The sentence may have text of others in it. */
static bool tell(const char *variables, const char *sentence)
{
    enum { SENTENCE_SIZE = 1300 };
    char cut[SENTENCE_SIZE], status[PLAIN_TIMES * SENTENCE_SIZE];
    char text[sizeof status + 100];
    if (!notify_is_on())
        return true;
    snprintf(cut, sizeof cut, "%s", sentence ? sentence : "");
    plain(status, cut);
    snprintf(text, sizeof text, "%s%s%s", variables, sentence ? "\nSTATUS=" : "", status);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ssize_t sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL,
                          (const struct sockaddr *)&manager.to, manager.to_size);
    if (fd >= 0)
        close(fd);
    return sent >= 0;
}

void notify_waits(const char *sentence)
{
    tell("EXTEND_TIMEOUT_USEC=30000000", sentence);
}

bool notify_ready(const char *sentence)
{
    return tell("READY=1", sentence);
}

/* A release may take as long as a session, and nothing is proved meanwhile. */
void notify_stops(const char *sentence)
{
    tell("STOPPING=1\nWATCHDOG_USEC=0", sentence);
    manager.watchdog_ns = 0;
}

int64_t notify_proved(int64_t end_ns)
{
    int64_t now = boot_ns(), pause_ns = manager.watchdog_ns / 4;
    if (!notify_is_on() || pause_ns <= 0)
        return INT64_MAX;
    if (end_ns > now && now - manager.told_ns >= pause_ns) {
        tell("WATCHDOG=1", NULL);
        manager.told_ns = now;
    }
    return pause_ns / MS_NS;
}
