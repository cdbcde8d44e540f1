/* SPDX-License-Identifier: Apache-2.0 */
#include "status_text.h"

#include <inttypes.h>
#include <string.h>

#include "tell.h"

static size_t count(const struct zkl_inspection *inside, enum zkl_entry_role role)
{
    size_t n = 0;
    for (size_t i = 0; i < inside->count; i++)
        n += inside->entries[i].role == role;
    return n;
}

static void head(struct sheet *sheet, const struct seen *seen)
{
    const struct zkl_inspection *inside = seen->inside;
    size_t holders = count(inside, ZKL_ROLE_HOLDER), waiters = count(inside, ZKL_ROLE_WAITER);
    char permits[32] = "";
    if (inside->permits)
        snprintf(permits, sizeof permits, " of %d", inside->permits);
    if (holders == 0 && waiters == 0)
        sheet_line(sheet, STYLE_TITLE, "%s  %s", seen->path,
                   inside->kind == ZKL_KIND_SEMAPHORE ? "semaphore, free" : "free");
    else
        sheet_line(sheet, STYLE_TITLE, "%s  %s, %zu%s held, %zu waiting", seen->path,
                   tell_kind(inside->kind), holders, permits, waiters);
}

static void entry(struct sheet *sheet, const struct seen *seen, const struct zkl_entry *e)
{
    static const char *const roles[] = {
        [ZKL_ROLE_HOLDER] = "holds", [ZKL_ROLE_WAITER] = "waits", [ZKL_ROLE_FOREIGN] = "other"};
    static const enum style styles[] = {[ZKL_ROLE_HOLDER] = STYLE_HOLDER,
                                        [ZKL_ROLE_WAITER] = STYLE_PLAIN,
                                        [ZKL_ROLE_FOREIGN] = STYLE_WARNING};
    char owner[TELL_SIZE], age[TELL_SIZE];
    sheet_line(sheet, styles[e->role], "  %s  %-6s  %-28s  %8s  %s%s%s", roles[e->role],
               tell_access(e->access), tell_owner(e, owner), tell_age(e->age_ms, age),
               tell_node(e, seen->path), e->revoke_requested ? "  (asked to let go)" : "",
               e->role != ZKL_ROLE_FOREIGN && !e->session ? "  (not ephemeral)" : "");
}

void status_text(struct sheet *sheet, const struct look *look)
{
    for (size_t i = 0; i < look->count; i++) {
        const struct seen *seen = &look->all[i];
        if (seen->denied) {
            sheet_line(sheet, STYLE_WARNING, "%s  can't be read: no READ", seen->path);
            continue;
        }
        head(sheet, seen);
        for (size_t k = 0; k < seen->inside->count; k++)
            entry(sheet, seen, &seen->inside->entries[k]);
    }
}
