/* SPDX-License-Identifier: Apache-2.0 */
/* Of a program whose tests need nothing around them. */
#include "tests.h"

int main(int argc, char **argv)
{
    return tests_main(argc, argv, NULL, NULL);
}
