/* SPDX-License-Identifier: Apache-2.0 */
#include "peek.h"

#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PREFIX "_c_01234567-89ab-4def-8123-456789abcdef-"

const char *contender(const char *root, const char *marker, const char *owner)
{
    static char nodes[8][256];
    static unsigned last;
    char *node = nodes[++last % 8], asked[256];

    for (const char *slash = strchr(root + 1, '/');; slash = strchr(slash + 1, '/')) {
        snprintf(asked, sizeof asked, "%.*s", slash ? (int)(slash - root) : (int)strlen(root),
                 root);
        int rc = wire_create(raw, asked, "", WIRE_PERSISTENT, NULL, 0);
        check_true(rc == 0 || rc == WIRE_NODEEXISTS);
        if (!slash)
            break;
    }
    snprintf(asked, sizeof asked, "%s/" PREFIX "%s", root, marker);
    check_ok(wire_create(raw, asked, owner, WIRE_EPHEMERAL_SEQUENTIAL, node, sizeof nodes[0]));
    return node;
}

const char *owner_text(int thread)
{
    static char texts[4][128];
    static unsigned last;
    char *text = texts[++last % 4], host[64] = "";

    gethostname(host, sizeof host - 1);
    snprintf(text, sizeof texts[0], "%s %d %d", host, (int)getpid(), thread);
    return text;
}

/* --- the terminal ------------------------------------------------------------------------------ */

struct typist *typist_start(int columns, const char *const argv[])
{
    struct typist *t = calloc(1, sizeof *t);
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};

    check_true(t);
    t->pid = forkpty(&t->keyboard, NULL, NULL, &size);
    check_num(t->pid, >=, 0);
    if (t->pid == 0) {
        setenv("TERM", "xterm", 1);
        execv(argv[0], (char *const *)argv);
        _exit(98);
    }
    fcntl(t->keyboard, F_SETFL, O_NONBLOCK);
    fcntl(t->keyboard, F_SETFD, FD_CLOEXEC);
    return t;
}

static bool has_written(struct typist *t, const char *words)
{
    ssize_t n = read(t->keyboard, t->screen + t->length, sizeof t->screen - 1 - t->length);

    if (n > 0)
        t->length += (size_t)n;
    return strstr(t->screen, words) != NULL;
}

void typist_wait(struct typist *t, const char *words)
{
    if (!wait_until(has_written(t, words), WAIT_MS))
        fail_msg("not on the screen: \"%s\", but \"%s\"", words, t->screen);
}

void typist_type(struct typist *t, const char *keys)
{
    check_num(write(t->keyboard, keys, strlen(keys)), ==, strlen(keys));
}

int typist_end(struct typist *t)
{
    int status;

    check_wait((has_written(t, "\n"), waitpid(t->pid, &status, WNOHANG) == t->pid), WAIT_MS);
    close(t->keyboard);
    free(t);
    return status;
}
