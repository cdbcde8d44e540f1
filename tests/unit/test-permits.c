/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a bundle's states; permits.txt has the rest of a request for permits. */
#include "core/bundle.h"
#include "script.h"

/* Goal: each state has a name of its own. */
TEST(states_have_names)
{
    for (int i = 0; i < ZKL_BUNDLE_STATES; i++) {
        const char *name = zkl_bundle_state_name((enum zkl_bundle_state)i);
        assert_non_null(name);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(name, zkl_bundle_state_name((enum zkl_bundle_state)j));
    }
}
