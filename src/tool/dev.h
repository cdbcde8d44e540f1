/* SPDX-License-Identifier: Apache-2.0 */
/* zklock dev. */
#ifndef ZKLOCK_TOOL_DEV_H
#define ZKLOCK_TOOL_DEV_H

#include "command.h"

extern const struct command dev_command;

#endif
