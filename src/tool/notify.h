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
/* Each of these sends the sentence, too, as the service's status, if it is not NULL, and waits for
 * nothing. The service waits: its start may take half a minute longer from now on. */
void notify_waits(const char *sentence);
/* It is ready. False: the manager has no room for that now, and must be told again. */
bool notify_ready(const char *sentence);
/* It stops, which no watchdog watches. */
void notify_stops(const char *sentence);
/* The lock is proved until end_ns of CLOCK_BOOTTIME, or not any more (0): tell the watchdog, if it
 * is time to. Returns in how many ms at most it must be called again. */
int64_t notify_proved(int64_t end_ns);

#endif
