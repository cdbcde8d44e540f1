/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of the programs on standard error: one line, one sentence, behind the program's name, in
 * one write, as several processes share the stream. This file owns the name. Any thread; all files
 * of the programs call it. */
#include "say.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zklock/zklock.h>

#include "net.h"
#include "plain.h"

const char *program_name = "zklock";
atomic_int say_waits_ms = SAY_WAITS;

/* In one write: several processes share the stream. */
static void say_list(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
static void say_list(const char *format, va_list args)
{
    char text[1500], line[PLAIN_TIMES * sizeof text];
    int waits_ms = say_waits_ms;
    /* A signal does not end this wait: the write behind it has no end. */
    if (waits_ms != SAY_WAITS && !net_ready(STDERR_FILENO, POLLOUT, net_now_ms() + waits_ms))
        return;
    vsnprintf(text, sizeof text, format, args);
    plain(line, text);
    fprintf(stderr, "%s: %s\n", program_name, line);
}

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_list(format, args);
    va_end(args);
}

int fail(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_list(format, args);
    va_end(args);
    return status;
}

static int status_of(int code)
{
    switch (code) {
    case ZKL_EBUSY:
    case ZKL_ECANCELED:
    case ZKL_ENONODE:
    case ZKL_EFOREIGN:
        return EXIT_CONFLICT;
    case ZKL_EBADPATH:
    case ZKL_EDEADLK:
        return EXIT_USAGE;
    case ZKL_EINVAL:
    case ZKL_EBADSERVERS:
    case ZKL_ENOCHROOT:
    case ZKL_EMISMATCH:
    case ZKL_EUNSUPPORTED:
        return EXIT_CONFIG;
    case ZKL_ETIMEDOUT: /* a server that is connected and silent; a lock's is handled in run.c */
    case ZKL_EDISCONNECTED:
    case ZKL_EUNPROVED:
    case ZKL_EREADONLY:
        return EXIT_NO_SERVER;
    case ZKL_EACCES:
    case ZKL_EAUTH:
        return EXIT_DENIED;
    case ZKL_ENOMEM:
    case ZKL_ESYSTEM:
    case ZKL_EFULL:
        return EXIT_SYSTEM;
    case ZKL_ELOST:
    case ZKL_EDOUBT:
        return EXIT_LOST;
    default:
        return EXIT_INTERNAL;
    }
}

int fail_code(int code)
{
    const char *detail = zkl_error_detail(); /* empty if the code is not from a call */
    return fail(status_of(code), "%s", detail[0] ? detail : zkl_strerror(code));
}

int check_output(int status)
{
    bool written = fflush(stdout) == 0 && !ferror(stdout);
    return written || status != EXIT_DONE ? status
                                          : fail(EXIT_SYSTEM, "standard output cannot be written");
}

const char *reason_behind(const char *what, int *length)
{
    const char *detail = zkl_error_detail(), *found = strstr(detail, what);
    const char *reason = found ? found + strlen(what) : "";
    bool is_one = strncmp(reason, "; ", 2) == 0;
    *length = is_one ? (int)strlen(reason) - 1 : 0; /* without the last parenthesis */
    return is_one ? reason : "";
}
