/* SPDX-License-Identifier: Apache-2.0 */
/* zklock break. */
#ifndef ZKLOCK_TOOL_BREAK_H
#define ZKLOCK_TOOL_BREAK_H

#include "command.h"

extern const struct command break_command;

#endif
