/* SPDX-License-Identifier: Apache-2.0 */
/* zklock run. */
#ifndef ZKLOCK_TOOL_RUN_H
#define ZKLOCK_TOOL_RUN_H

#include "command.h"

extern const struct command run_command;

#endif
