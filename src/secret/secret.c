/* SPDX-License-Identifier: Apache-2.0
 *
 * The format of a credential, and reading it from a file: one piece for the library and for the
 * command, which do not share their internals. The caller owns the text, and wipes it. No lock;
 * this file keeps nothing. src/api/security.c and src/tool/connect.c call it. */
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool fail_system(struct zkl_secret_fault *fault, const char *what, int error)
{
    char text[128];
    fault->error = error;
    snprintf(fault->text, sizeof fault->text, "cannot be %s: %s", what,
             strerror_r(error, text, sizeof text));
    return false;
}

static bool fail_line(struct zkl_secret_fault *fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail_line(struct zkl_secret_fault *fault, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
    fault->error = 0;
    return false;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Opening must not block while a pipe has no writer, which might never come. The read waits for a
 * writer, for some time. */
static int open_file(const char *name)
{
    int fd;
    do
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* True if the same read may be tried again. */
static bool may_read_again(int fd, int64_t until_ms)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    if (errno == EINTR)
        return true;
    if (errno != EAGAIN)
        return false;
    int64_t left_ms = until_ms - now_ms();
    int n = poll(&readable, 1, left_ms > 0 ? (int)left_ms : 0);
    if (n == 0)
        errno = ETIMEDOUT;
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Up to size bytes, or less if a line is complete before. -1 and errno, or how many. */
static ssize_t read_some(int fd, char *buf, size_t size)
{
    int64_t until_ms = now_ms() + ZKL_SECRET_WAIT_MS;
    size_t length = 0;
    while (length < size && !memchr(buf, '\n', length)) {
        ssize_t n = read(fd, buf + length, size - length);
        if (n == 0)
            break;
        if (n > 0)
            length += (size_t)n;
        else if (!may_read_again(fd, until_ms))
            return -1;
    }
    return (ssize_t)length;
}

static bool take_line(char *line, size_t length, struct zkl_secret_fault *fault)
{
    char *end = memchr(line, '\n', length);
    size_t size = end ? (size_t)(end - line) : length;
    if (size > 0 && line[size - 1] == '\r')
        size--;
    if (size == 0)
        return fail_line(fault, "has an empty first line");
    if (size > ZKL_SECRET_MAX)
        return fail_line(fault, "has more than %d bytes in its first line", ZKL_SECRET_MAX);
    if (memchr(line, '\0', size))
        return fail_line(fault, "has a NUL byte in its first line");
    line[size] = '\0';
    return true;
}

bool zkl_secret_read(const char *file, char *line, struct zkl_secret_fault *fault)
{
    line[0] = '\0';
    int fd = open_file(file);
    if (fd < 0)
        return fail_system(fault, "opened", errno);
    ssize_t length = read_some(fd, line, ZKL_SECRET_ROOM - 1);
    int error = errno;
    close(fd);
    if (length < 0 && error == ETIMEDOUT)
        return fail_line(fault, "is a pipe whose writer gave no line within %d s",
                         ZKL_SECRET_WAIT_MS / 1000);
    return length < 0 ? fail_system(fault, "read", error) : take_line(line, (size_t)length, fault);
}

const char *zkl_secret_of_digest(const char *text)
{
    static const char scheme[] = "digest:";
    size_t size = sizeof scheme - 1;
    if (strncmp(text, scheme, size) == 0 && strchr(text + size, ':'))
        text += size;
    const char *colon = strchr(text, ':');
    return colon && colon > text && colon[1] != '\0' ? text : NULL;
}
