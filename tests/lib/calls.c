/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int file = -1;

static void open_file(void)
{
    const char *path = getenv("ZKL_CALLS");

    if (path != NULL && (file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) < 0)
        abort();
}

struct calls_line calls_line(char way, int64_t ns, int thread)
{
    struct calls_line line = {.length = 0};

    calls_add(&line, "%c %lld %d.%d", way, (long long)ns, (int)getpid(), thread);
    return line;
}

void calls_add(struct calls_line *line, const char *format, ...)
{
    size_t room = sizeof line->text - 1 - (size_t)line->length; /* and the newline */
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line->text + line->length, room, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= room)
        abort();
    line->length += n;
}

void calls_write(struct calls_line *line)
{
    pthread_once(&once, open_file);
    if (file < 0)
        return;
    line->text[line->length++] = '\n';
    if (write(file, line->text, (size_t)line->length) != line->length)
        abort();
}

void calls_write_wipe(int64_t from_ns, int64_t until_ns)
{
    struct calls_line line = {.length = 0};

    calls_add(&line, "w %lld %lld", (long long)from_ns, (long long)until_ns);
    calls_write(&line);
}
