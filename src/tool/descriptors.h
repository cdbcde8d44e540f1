/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors that a program was started with. */
#ifndef ZKLOCK_TOOL_DESCRIPTORS_H
#define ZKLOCK_TOOL_DESCRIPTORS_H

#include <stdbool.h>

/* Give standard input, output and error that are closed something that fails as they do: else what
 * is opened next would be taken for one of them. A command that is run finds them closed, as they
 * were. */
void descriptors_fill_standard(void);

/* What the subcommand that opens most needs at a time, run with a record and a terminal, with some
 * to spare for the look-up of names. */
enum { DESCRIPTORS_NEEDED = 20 };

/* That many can be opened: a lack shows here, and not later as a server that cannot be reached or a
 * file that cannot be read. */
bool descriptors_suffice(void);

#endif
