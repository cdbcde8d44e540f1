/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that close clients with answers held back: to be included by their one file.
 *
 * libzookeeper drops completions that are outstanding when a handle is closed, and leaks its own
 * entry for them (B72 in docs/evidence): here it happens now and then, as answers are held back
 * beyond the drain. Its functions have no names, so this hides every
 * leak with libzookeeper in its stack, ours on the completion thread too. The other programs find
 * those. */
#ifndef ZKTEST_LEAKS_H
#define ZKTEST_LEAKS_H

const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libzookeeper_mt\n";
}

#endif
