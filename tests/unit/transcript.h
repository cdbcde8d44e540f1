/* SPDX-License-Identifier: Apache-2.0
 * Between the reader of transcripts, transcript.c, and what their commands do, commands.c. */
#ifndef ZKL_TEST_TRANSCRIPT_H
#define ZKL_TEST_TRANSCRIPT_H

#include "script.h"

#define LINE_SIZE 1000
#define WORDS_MAX 60
#define TEXT_MAX 40000

/* A command: its words, the first of which is its name, and the text from each of them on. */
struct command {
    size_t count;
    const char *words[WORDS_MAX], *texts[WORDS_MAX];
};

/* The test's; "again" and "new" make another one. */
extern struct script *s;

/* The test fails, in the line that is being carried out. */
void fail_here(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* A command that leaves words of its line unread fails. */
const char *word(const struct command *c, size_t i);
/* The text from that word on, "" if there is none. */
const char *rest(const struct command *c, size_t i);
/* A number, or a sum of some: "100+7". */
int64_t number_in(const char *text);
int64_t number(const struct command *c, size_t i);

/* False: there is no such command. */
bool obey(const struct command *c);
/* Exactly this was recorded since the last time, but for blanks. */
void expect(const char *text);

#endif
