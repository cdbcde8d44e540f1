/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs among the tests take from their command lines. */
#ifndef ZKL_TESTS_OPTION_H
#define ZKL_TESTS_OPTION_H

/* The value of --OPTION as a number from low to high. Any other text ends the process with status 2
 * and a sentence that starts with the program's name. */
long option_number(const char *option, const char *text, long low, long high);

#endif
