/* SPDX-License-Identifier: Apache-2.0 */
/* zklock status. */
#ifndef ZKLOCK_TOOL_STATUS_H
#define ZKLOCK_TOOL_STATUS_H

#include "command.h"

extern const struct command status_command;

#endif
