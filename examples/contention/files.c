/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int make_in(struct files *files, const char *dir, int flags)
{
    int at = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (at < 0)
        return -1;
    files->journal = openat(at, "journal", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0600);
    files->record = openat(at, "record", O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
    int saved = errno;
    close(at);
    errno = saved;
    return files->journal < 0 || files->record < 0 ? -1 : 0;
}

static int complain(const char *what, const char *dir)
{
    fprintf(stderr, "contention: %s %s: %s\n", what, dir, strerror(errno));
    return -1;
}

static void remove_names(const char *dir)
{
    int at = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (at >= 0) {
        unlinkat(at, "journal", 0);
        unlinkat(at, "record", 0);
        close(at);
    }
    rmdir(dir);
}

static int make_unnamed(struct files *files)
{
    char dir[PATH_MAX];
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent)
        parent = "/tmp";
    if (snprintf(dir, sizeof dir, "%s/contention-XXXXXX", parent) >= (int)sizeof dir ||
        !mkdtemp(dir))
        return complain("cannot make a folder (TMPDIR says where) in", parent);
    int rc = make_in(files, dir, O_EXCL);
    if (rc)
        complain("cannot make files in", dir);
    remove_names(dir);
    return rc;
}

int files_make(struct files *files, const char *keep)
{
    files->journal = files->record = -1;
    if (!keep)
        return make_unnamed(files);
    return make_in(files, keep, O_TRUNC) ? complain("--keep: cannot make files in", keep) : 0;
}

void files_close(struct files *files)
{
    if (files->journal >= 0)
        close(files->journal);
    if (files->record >= 0)
        close(files->record);
}
