/* SPDX-License-Identifier: Apache-2.0
 *
 * Common parsing of the words of all programs and subcommands: options in any place, numbers with
 * bounds, and one sentence for each fault. This file owns nothing. One thread. The subcommands and
 * run_options.c call it. */
#include "args.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "say.h"

/* The words behind the program's name in a hint to its own --help. */
static const char *of_command(const struct args *args)
{
    static char text[32];
    if (!args->command)
        return "";
    snprintf(text, sizeof text, " %s", args->command);
    return text;
}

static int unknown(const struct args *args, int code, const char *word)
{
    if (code == ':')
        return fail(EXIT_USAGE, "%s requires a value: see %s%s --help", word, program_name,
                    of_command(args));
    char letter[] = {'-', (char)optopt, '\0'};
    /* Of several letters, that one. A long option has 0, or a letter that is known. */
    if (optopt > ' ' && optopt < 127 && !(args->letters && strchr(args->letters, optopt)))
        word = letter;
    return fail(EXIT_USAGE, "%s has no option %s: %s%s --help lists them%s",
                args->command ? args->command : program_name, word, program_name, of_command(args),
                args->hint ? args->hint : "");
}

int args_parse(const struct args *args, int argc, char **argv, int *first)
{
    const char *letters = args->letters ? args->letters : ":";
    opterr = 0;
    optind = 0; /* from the beginning, even if getopt was used before */
    for (int code; (code = getopt_long(argc, argv, letters, args->known, NULL)) != -1;) {
        if (code == 1 && args->take_word(args->arg, optarg))
            continue;
        if (code == 1) {
            optind--;
            break;
        }
        int rc = code == '?' || code == ':' ? unknown(args, code, argv[optind - 1])
                                            : args->take(args->arg, code, optarg);
        if (rc != 0)
            return rc;
    }
    *first = optind;
    return 0;
}

int args_parse_one(const struct args *args, int argc, char **argv, const char *what,
                   const char **word)
{
    int first;
    int rc = args_parse(args, argc, argv, &first);
    if (rc != 0)
        return rc;
    if (argc - first != 1)
        return fail(EXIT_USAGE, "%s requires %s, not %d words: see %s%s --help", args->command,
                    what, argc - first, program_name, of_command(args));
    *word = argv[first];
    return 0;
}

int args_number(const char *what, const char *text, int min, int max, int *value)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    /* strtol itself would take "-1", " 1" and "". */
    if (text[0] < '0' || text[0] > '9' || *end || errno || n < min || n > max)
        return fail(EXIT_USAGE, "%s must be a whole number from %d to %d, not \"%s\"", what, min,
                    max, text);
    *value = (int)n;
    return 0;
}

bool seconds_to_ms(const char *text, int64_t *ms)
{
    char *end;
    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return false; /* strtod would take blanks, signs, "inf" and "nan" */
    double seconds = strtod(text, &end);
    if (*end || end == text || seconds > (double)ZKL_TIMEOUT_MAX_MS / 1000)
        return false;
    *ms = (int64_t)(seconds * 1000);
    if ((double)*ms < seconds * 1000)
        ++*ms;
    return true;
}

int args_seconds(const char *what, const char *text, bool zero, int64_t *ms)
{
    if (seconds_to_ms(text, ms) && (zero || *ms > 0))
        return 0;
    return fail(EXIT_USAGE,
                "%s must be a number of seconds from %s to %lld, such as 10 or 0.5, not \"%s\"",
                what, zero ? "0" : "0.001", (long long)ZKL_TIMEOUT_MAX_MS / 1000, text);
}
