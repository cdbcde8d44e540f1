/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of test-lib share: one server for all tests that do not stop it. */
#ifndef ZKTEST_TEST_LIB_H
#define ZKTEST_TEST_LIB_H

#include "check.h"
#include "zkserver.h"

#define WAIT_MS 60000
#define SESSION_MS 30000 /* no session ends by itself in a test */

extern struct zks *shared; /* one node, containers are collected every 300 ms */

#endif
