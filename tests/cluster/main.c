/* SPDX-License-Identifier: Apache-2.0 */
/* Of a program that has no main of its own. */
#include "cluster.h"

int main(int argc, char **argv)
{
    return cluster_main(argc, argv);
}
