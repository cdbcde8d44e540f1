/* SPDX-License-Identifier: Apache-2.0 */
/* zklock doctor. */
#ifndef ZKLOCK_TOOL_DOCTOR_H
#define ZKLOCK_TOOL_DOCTOR_H

#include "command.h"

extern const struct command doctor_command;

#endif
