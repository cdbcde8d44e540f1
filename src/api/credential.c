/* SPDX-License-Identifier: Apache-2.0 */
#include "credential.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"

int zkl_credential_check(const struct zkl_client_options *o)
{
    int sources = (o->auth_credential != NULL) + (o->auth_file != NULL) + (o->auth_env != NULL);
    if (sources != (o->auth_scheme != NULL))
        return zkl_fail(ZKL_EINVAL, "zkl_client_open: auth_scheme goes with exactly one of "
                                    "auth_credential, auth_file and auth_env");
    return 0;
}

void zkl_credential_drop(char *credential)
{
    if (credential)
        explicit_bzero(credential, strlen(credential));
    free(credential);
}

static int copy(const char *text, char **credential)
{
    *credential = strdup(text);
    return *credential ? 0 : zkl_fail(ZKL_ENOMEM, "zkl_client_open");
}

/* --- the environment ---------------------------------------------------- */

static int from_env(const char *name, char **credential)
{
    const char *text = getenv(name);
    if (!text)
        return zkl_fail(ZKL_EINVAL, "zkl_client_open: auth_env: the variable \"%.256s\" is not set",
                        name);
    if (text[0] == '\0')
        return zkl_fail(ZKL_EINVAL, "zkl_client_open: auth_env: the variable \"%.256s\" is empty",
                        name);
    if (strlen(text) > ZKL_CREDENTIAL_MAX)
        return zkl_fail(ZKL_EINVAL,
                        "zkl_client_open: auth_env: the variable \"%.256s\" has more than %d bytes",
                        name, ZKL_CREDENTIAL_MAX);
    return copy(text, credential);
}

/* --- a file ------------------------------------------------------------- */

/* What the system said of the file. */
static int fail_file(const char *name, const char *what, int error)
{
    char text[128];
    int code = error == EMFILE || error == ENFILE ? ZKL_ESYSTEM
               : error == ENOMEM                  ? ZKL_ENOMEM
                                                  : ZKL_EINVAL;
    return zkl_fail(code, "zkl_client_open: auth_file \"%.256s\" can't be %s: %s", name, what,
                    strerror_r(error, text, sizeof text));
}

/* Not to be waited for when a pipe has no writer, who might never come; a writer is. */
static int open_file(const char *name)
{
    int fd;
    do
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* True if the same read may be tried again. */
static bool may_read_again(int fd)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    if (errno == EAGAIN)
        return poll(&readable, 1, -1) >= 0 || errno == EINTR;
    return errno == EINTR;
}

/* Up to size bytes, or less if a line is complete before. -1 and errno, or how many. */
static ssize_t read_line(int fd, char *buf, size_t size)
{
    size_t length = 0;
    while (length < size && !memchr(buf, '\n', length)) {
        ssize_t n = read(fd, buf + length, size - length);
        if (n == 0)
            break;
        if (n > 0)
            length += (size_t)n;
        else if (!may_read_again(fd))
            return -1;
    }
    return (ssize_t)length;
}

/* The first line of buf as text, without the end of the line, a file's of Windows too. */
static int take_line(const char *name, char *buf, size_t length, char **credential)
{
    char *end = memchr(buf, '\n', length);
    size_t line = end ? (size_t)(end - buf) : length;
    if (line > 0 && buf[line - 1] == '\r')
        line--;
    if (line == 0)
        return zkl_fail(ZKL_EINVAL,
                        "zkl_client_open: the first line of auth_file \"%.256s\" is empty", name);
    if (line > ZKL_CREDENTIAL_MAX)
        return zkl_fail(
            ZKL_EINVAL,
            "zkl_client_open: the first line of auth_file \"%.256s\" has more than %d bytes", name,
            ZKL_CREDENTIAL_MAX);
    if (memchr(buf, '\0', line))
        return zkl_fail(ZKL_EINVAL,
                        "zkl_client_open: the first line of auth_file \"%.256s\" has a NUL byte",
                        name);
    buf[line] = '\0';
    return copy(buf, credential);
}

static int from_file(const char *name, char **credential)
{
    char buf[ZKL_CREDENTIAL_MAX + 3]; /* with "\r\n", and room for a NUL */
    int fd = open_file(name);
    if (fd < 0)
        return fail_file(name, "opened", errno);
    ssize_t length = read_line(fd, buf, sizeof buf - 1);
    int error = errno;
    close(fd);
    int rc = length < 0 ? fail_file(name, "read", error)
                        : take_line(name, buf, (size_t)length, credential);
    explicit_bzero(buf, sizeof buf);
    return rc;
}

int zkl_credential_get(const struct zkl_client_options *o, char **credential)
{
    *credential = NULL;
    if (o->auth_file)
        return from_file(o->auth_file, credential);
    if (o->auth_env)
        return from_env(o->auth_env, credential);
    return o->auth_credential ? copy(o->auth_credential, credential) : 0;
}
