/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors that a program was started with. */
#ifndef ZKLOCK_TOOL_DESCRIPTORS_H
#define ZKLOCK_TOOL_DESCRIPTORS_H

/* Give standard input, output and error that are closed something that fails as they do: else what
 * is opened next would be taken for one of them. A command that is run finds them closed, as they
 * were. */
void descriptors_fill_standard(void);

#endif
