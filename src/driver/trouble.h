/* SPDX-License-Identifier: Apache-2.0
 * Why there is no link, or one that is of no use, in words for a user. */
#ifndef ZKL_DRIVER_TROUBLE_H
#define ZKL_DRIVER_TROUBLE_H

#include <stdbool.h>
#include <stddef.h>

struct zkl_driver;

/* With the mutex. "; ..." behind a sentence; "" if nothing is known, or nothing is wrong. */
void zkl_trouble_tell(const struct zkl_driver *d, char *text, size_t size);
#define ZKL_TROUBLE_SIZE 512

/* What a line of libzookeeper's log says, behind "TIME:PROCESS(THREAD):LEVEL@FUNCTION@LINE: ". Compare
 * its beginning: further on there may be names of nodes, which others choose. */
const char *zkl_trouble_said(const char *message);
/* A line of libzookeeper's log, on its I/O thread. True: a connection failed. find_reason: why
 * OpenSSL did there, or "". */
bool zkl_trouble_note(const char *message, const char *(*find_reason)(void));
/* Around a fork: the mutex of what was noted. */
void zkl_trouble_before_fork(void);
void zkl_trouble_after_fork(void);

#endif
