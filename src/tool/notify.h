/* SPDX-License-Identifier: Apache-2.0 */
/* What zklock run tells the service manager that started it, if one did: sd_notify(3), Type=notify
 * in systemd.service(5). */
#ifndef ZKLOCK_TOOL_NOTIFY_H
#define ZKLOCK_TOOL_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* If this process is the service: take the manager's variables out of the environment. What is
 * started later has none, so nothing but zklock speaks for the service. */
void notify_open(void);
/* Is there a manager? */
bool notify_is_on(void);
/* Send a variable, as "READY=1", and the sentence, a line, as STATUS, if it is not NULL. Without a
 * manager, or if it reads nothing now, nothing is sent. Never waits. */
void notify(const char *variable, const char *sentence);
/* The lock is proved until end_ns of CLOCK_BOOTTIME, or not any more (0): tell the watchdog, if it
 * is time to. Returns in how many ms at most it must be called again. */
int64_t notify_proved(int64_t end_ns);

#endif
