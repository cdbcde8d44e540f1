/* SPDX-License-Identifier: Apache-2.0
 * The format of a credential, and reading it from a file: one piece for the library and for the
 * command, which do not share their internals. */
#ifndef ZKL_SECRET_SECRET_H
#define ZKL_SECRET_SECRET_H

#include <stdbool.h>

#define ZKL_SECRET_MAX 4096                  /* bytes */
#define ZKL_SECRET_ROOM (ZKL_SECRET_MAX + 3) /* with "\r\n", and a NUL */
#define ZKL_SECRET_WAIT_MS 10000             /* how long a pipe's writer may take for the line */

struct zkl_secret_fault {
    int error;      /* errno, or 0: it is not the system's */
    char text[192]; /* the fault, to follow the file's name */
};

/* The first line of a file, without the end of the line, a file's of Windows too, as text in
 * line[ZKL_SECRET_ROOM], which the caller wipes in each case. False: *fault says why there is
 * none. */
bool zkl_secret_read(const char *file, char *line, struct zkl_secret_fault *fault);

/* Where "USER:PASSWORD" begins: in "digest:USER:PASSWORD" behind the scheme. A second colon
 * distinguishes that from a user named "digest". NULL: it is neither. */
const char *zkl_secret_of_digest(const char *text);

#endif
