/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions own, as doctor adds it up. */
#include "tests.h"

#include "owned.h"

enum { LENGTH = 996 }; /* of a path: 1000 bytes with its length */

static char path[LENGTH + 1];

static struct zkl_entry *entries_of(int64_t session, size_t count)
{
    struct zkl_entry *entries = calloc(count, sizeof *entries);
    assert_non_null(entries);
    for (size_t i = 0; i < count; i++)
        entries[i] =
            (struct zkl_entry){.size = sizeof *entries, .session = session, .node_path = path};
    return entries;
}

static void note(void *arg, int64_t session, size_t nodes, size_t bytes)
{
    char *text = arg;
    sprintf(text + strlen(text), "%d: %zu %zu;", (int)session, nodes, bytes);
}

/* Goal: a session is named by what it owns at all paths together, from three quarters of the edge
 * on; persistent nodes are of none. Method: 0xfffff is 1048575, the edge 2097102 bytes. */
TEST(sessions_near_the_edge_are_named)
{
    enum { NEAR = 1573 };
    static const struct {
        int64_t session;
        size_t count;
    } locks[] = {{7, NEAR - 1}, {-3, NEAR - 2}, {0, 2 * NEAR}, {7, 1}, {-3, 1}};
    struct seen seen[6] = {{.code = ZKL_EACCES}};
    struct zkl_inspection insides[5];
    char text[200] = "";
    memset(path, 'x', LENGTH);
    for (size_t i = 0; i < 5; i++) {
        insides[i] =
            (struct zkl_inspection){.size = sizeof insides[i],
                                    .count = locks[i].count,
                                    .entries = entries_of(locks[i].session, locks[i].count)};
        seen[i + 1].inside = &insides[i];
    }
    struct look look = {.all = seen, .count = 6};
    assert_int_equal(owned_find(&look, 0, note, text), 0);
    assert_string_equal(text, "7: 1573 1573000;");
    text[0] = '\0';
    assert_int_equal(owned_find(&look, 1, note, text), 0);
    assert_string_equal(text, "-3: 1572 1573572;7: 1573 1574573;");
    for (size_t i = 0; i < 5; i++)
        free((void *)insides[i].entries);
}
