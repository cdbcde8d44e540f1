/* SPDX-License-Identifier: Apache-2.0 */
/* zklock forget. */
#ifndef ZKLOCK_TOOL_FORGET_H
#define ZKLOCK_TOOL_FORGET_H

#include "command.h"

extern const struct command forget_command;

#endif
