/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs among the tests take from their command lines. */
#ifndef ZKL_TESTS_OPTION_H
#define ZKL_TESTS_OPTION_H

/* The value of --OPTION as a number from low to high. Any other text ends the process with status 2
 * and a sentence that starts with the program's name. */
long option_number(const char *option, const char *text, long low, long high);

/* For what else getopt_long says: 'h', which is --help, ends the process with the text, anything else with the text
 * as an error and status 2. */
_Noreturn void option_usage(int option, const char *text);

#endif
