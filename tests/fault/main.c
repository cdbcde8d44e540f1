/* SPDX-License-Identifier: Apache-2.0 */
/* Of a program that has no main of its own. */
#include "fault.h"

int main(int argc, char **argv)
{
    return fault_main(argc, argv, NULL);
}
