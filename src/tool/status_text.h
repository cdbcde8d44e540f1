/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of zklock status: lines for people, JSON for programs. */
#ifndef ZKLOCK_TOOL_STATUS_TEXT_H
#define ZKLOCK_TOOL_STATUS_TEXT_H

#include "look.h"
#include "screen.h"

void status_text(struct sheet *sheet, const struct look *look);
/* 0, or -1: no memory, or it could not be written. */
int status_json(FILE *out, const char *path, const struct look *look);

#endif
