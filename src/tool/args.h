/* SPDX-License-Identifier: Apache-2.0 */
/* Common parsing of the words of all programs and subcommands. */
#ifndef ZKLOCK_TOOL_ARGS_H
#define ZKLOCK_TOOL_ARGS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

struct args {
    const char *command; /* the subcommand's name; NULL: the program has none */
    const struct option *known;
    const char *letters; /* as getopt has them, beginning with ":"; or NULL */
    const char *hint;    /* a hint for a user with an unknown option, or NULL */
    /* 0, or the exit status after a sentence. */
    int (*take)(void *arg, int code, const char *value);
    /* With letters that begin with "-:": a word that is no option, in order. False: it and all
     * behind it are none of the program's. */
    bool (*take_word)(void *arg, char *word);
    void *arg;
};

/* Take the options among the words. Those that are none are then the last, from *first on. 0, or
 * the exit status after a sentence. */
int args_parse(const struct args *args, int argc, char **argv, int *first);
/* The same, with exactly one word that is no option: *word, "a PATH" or the like. */
int args_parse_one(const struct args *args, int argc, char **argv, const char *what,
                   const char **word);

/* what is "--permits" or the like. 0, or the exit status after a sentence. */
int args_number(const char *what, const char *text, int min, int max, int *value);
/* Likewise a time in seconds, which may be 0 only if zero says so. */
int args_seconds(const char *what, const char *text, bool zero, int64_t *ms);
/* Seconds with an optional fraction, as milliseconds rounded up: "0.5", "10". False if it is none,
 * or more than ten years. */
bool seconds_to_ms(const char *text, int64_t *ms);

#endif
