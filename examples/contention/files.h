/* SPDX-License-Identifier: Apache-2.0 */
/* Journal and record, made anew for each run. */
#ifndef CONTENTION_FILES_H
#define CONTENTION_FILES_H

struct files {
    int journal; /* O_APPEND */
    int record;
};

/* Make both files in the folder keep, or, if that is NULL, in a temporary folder (TMPDIR) that
 * is removed again immediately: the descriptors are all that the run needs. So nothing is left
 * behind, whatever ends the run. 0, or -1 and one line on stderr. */
int files_make(struct files *files, const char *keep);
void files_close(struct files *files);

#endif
