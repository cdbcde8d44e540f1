/* SPDX-License-Identifier: Apache-2.0 */
/* zklock revoke. */
#ifndef ZKLOCK_TOOL_REVOKE_H
#define ZKLOCK_TOOL_REVOKE_H

#include "command.h"

extern const struct command revoke_command;

#endif
