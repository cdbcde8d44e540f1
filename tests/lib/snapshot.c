/* SPDX-License-Identifier: Apache-2.0 */
/* The file, as ZooKeeper 3.8's FileSnap writes it, all numbers big-endian:
 *   header    "ZKSN", int version (2), long database
 *   sessions  int n, then n times: long id, int timeout
 *   ACLs      int n, then n times: long key, int m, then m times: int perms, text scheme, text id
 *   nodes     text path, buffer data, long ACL key, stat (below); the path "/" ends the list
 *   seal      long Adler32 of all before it, text "/"
 * The root's path is the empty text. With the digest feature on, more follows behind the seal, and since
 * 3.9 the last zxid too, if it is not turned off. */
#include "snapshot.h"

#include "jute.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x5a4b534e /* "ZKSN" */
#define STAT_SIZE 60     /* 4 longs, 3 ints, 2 longs */
#define CVERSION_AT 36   /* behind czxid, mzxid, ctime, mtime and version */

struct image {
    struct jute_in in;
    char file[PATH_MAX];
};

static int fail(char *err, size_t size, const char *what, const char *name)
{
    snprintf(err, size, "%s: %s", name, what);
    return -1;
}

/* --- the file --------------------------------------------------------------------------------- */

/* The newest has the highest number, in hexadecimal, behind its name. */
static int find_newest(const char *data_dir, char *file, size_t size)
{
    char dir[PATH_MAX - 300];
    struct dirent *e;
    long long best = -1;
    DIR *d;

    snprintf(dir, sizeof dir, "%s/version-2", data_dir);
    d = opendir(dir);
    if (d == NULL)
        return -1;
    while ((e = readdir(d)) != NULL) {
        long long zxid;
        if (strncmp(e->d_name, "snapshot.", 9) != 0)
            continue;
        zxid = strtoll(e->d_name + 9, NULL, 16);
        if (zxid > best) {
            best = zxid;
            snprintf(file, size, "%s/%s", dir, e->d_name);
        }
    }
    closedir(d);
    return best >= 0 ? 0 : -1;
}

static int load(struct image *im)
{
    FILE *f = fopen(im->file, "re");
    long n;

    if (f == NULL)
        return -1;
    if (fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) > 0 &&
        (im->in.data = malloc((size_t)n)) != NULL) {
        rewind(f);
        im->in.n = fread(im->in.data, 1, (size_t)n, f);
    }
    fclose(f);
    return im->in.n > 0 ? 0 : -1;
}

static int store(const struct image *im)
{
    FILE *f = fopen(im->file, "we");
    size_t n;

    if (f == NULL)
        return -1;
    n = fwrite(im->in.data, 1, im->in.n, f);
    return fclose(f) == 0 && n == im->in.n ? 0 : -1;
}

/* --- walking through it ----------------------------------------------------------------------- */

static void skip_head(struct jute_in *in)
{
    if (jute_int(in) != MAGIC)
        in->failed = true;
    jute_take(in, "IL");
    for (int32_t n = jute_int(in); n > 0 && !in->failed; n--)
        jute_take(in, "LI");
    for (int32_t n = jute_int(in); n > 0 && !in->failed; n--) {
        jute_take(in, "L");
        for (int32_t m = jute_int(in); m > 0 && !in->failed; m--)
            jute_take(in, "ITT");
    }
}

/* A node's path, and its Stat behind it. */
struct found {
    unsigned char *path, *stat;
};

/* Go through all nodes, up to the seal. Both are NULL if the path is not there. */
static struct found find(struct jute_in *in, const char *path)
{
    struct found found = {NULL, NULL};

    skip_head(in);
    while (!in->failed) {
        unsigned char *name, *stat;
        size_t n = jute_buffer(in, &name);
        if (n == 1 && name[0] == '/')
            break;
        jute_take(in, "TL");
        stat = jute_bytes(in, STAT_SIZE);
        if (stat != NULL && name != NULL && n == strlen(path) && memcmp(name, path, n) == 0)
            found = (struct found){name, stat};
    }
    return in->failed ? (struct found){NULL, NULL} : found;
}

static uint32_t adler32(const unsigned char *data, size_t n)
{
    uint32_t a = 1;
    uint32_t b = 0;

    for (size_t i = 0; i < n; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* --- what callers want ------------------------------------------------------------------------ */

/* Load the newest snapshot, check it, and find the path in it. im->in.at is at the seal then. */
static int open_image(struct image *im, const char *data_dir, const char *path, struct found *found,
                      char *err, size_t size)
{
    memset(im, 0, sizeof *im);
    if (find_newest(data_dir, im->file, sizeof im->file) != 0)
        return fail(err, size, "no snapshot in it: the server was never started", data_dir);
    if (load(im) != 0)
        return fail(err, size, strerror(errno), im->file);
    *found = find(&im->in, path);
    if (im->in.failed || im->in.n - im->in.at < 13)
        return fail(err, size, "not understood", im->file);
    if (bytes_get64(im->in.data + im->in.at) != (int64_t)adler32(im->in.data, im->in.at))
        return fail(err, size, "its checksum is wrong", im->file);
    if (im->in.n - im->in.at != 13)
        return fail(err, size, "more is behind its seal; see no_digest", im->file);
    if (found->stat == NULL)
        return fail(err, size, "not in the newest snapshot: restart the server once more", path);
    return 0;
}

static int close_image(struct image *im, char *err, size_t size)
{
    bytes_put64(im->in.data + im->in.at, (int64_t)adler32(im->in.data, im->in.at));
    return store(im) == 0 ? 0 : fail(err, size, strerror(errno), im->file);
}

int snap_get_counter(const char *data_dir, const char *path, int32_t *next, char *err, size_t size)
{
    struct found found;
    struct image im;
    int rc = open_image(&im, data_dir, path, &found, err, size);

    if (rc == 0)
        *next = bytes_get32(found.stat + CVERSION_AT);
    free(im.in.data);
    return rc;
}

int snap_set_counter(const char *data_dir, const char *path, int32_t next, char *err, size_t size)
{
    struct found found;
    struct image im;
    int rc = open_image(&im, data_dir, path, &found, err, size);

    if (rc == 0) {
        bytes_put32(found.stat + CVERSION_AT, next);
        rc = close_image(&im, err, size);
    }
    free(im.in.data);
    return rc;
}

int snap_rename(const char *data_dir, const char *path, const char *renamed, char *err, size_t size)
{
    struct found found;
    struct image im;
    int rc = open_image(&im, data_dir, path, &found, err, size);

    if (rc == 0 && strlen(path) != strlen(renamed))
        rc = fail(err, size, "another length", renamed);
    if (rc == 0) {
        memcpy(found.path, renamed, strlen(renamed));
        rc = close_image(&im, err, size);
    }
    free(im.in.data);
    return rc;
}
