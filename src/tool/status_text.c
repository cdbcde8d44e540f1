/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock status for people: a line for each contender in the order of the queue, holders first, and
 * anything unusual about a path. It prints by screen.c and owns nothing. One thread; status.c calls
 * it. */
#include "status_text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "describe.h"
#include "peers.h"

static size_t count_holders(const struct zkl_inspection *inside)
{
    size_t n = 0;
    while (n < inside->count && zkl_inspection_entry(inside, n)->role == ZKL_ENTRY_ROLE_HOLDER)
        n++;
    return n;
}

/* A contender that asks for permits is in the inner queue all the while, and the first there has
 * made its nodes in "leases" as well. */
static size_t count_waiters(const struct zkl_inspection *inside)
{
    size_t queued = 0, permits = 0, entries = 0;
    for (size_t i = 0; i < inside->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(inside, i);
        if (e->role != ZKL_ENTRY_ROLE_WAITER)
            continue;
        entries += e->access == ZKL_ENTRY_ACCESS_ENTRY;
        permits += e->access == ZKL_ENTRY_ACCESS_PERMIT;
        queued += e->access != ZKL_ENTRY_ACCESS_ENTRY && e->access != ZKL_ENTRY_ACCESS_PERMIT;
    }
    return queued + (entries ? entries : permits);
}

static void head(struct sheet *sheet, const struct seen *seen)
{
    const struct zkl_inspection *inside = seen->inside;
    size_t holders = count_holders(inside), waiters = count_waiters(inside);
    char permits[32] = "";
    bool mixed = peers_share_with_semaphore(inside);
    if (inside->permits && !mixed)
        snprintf(permits, sizeof permits, " of %d", inside->permits);
    if (holders == 0 && waiters == 0)
        sheet_line(sheet, STYLE_TITLE, "%s  %s", seen->path,
                   inside->kind == ZKL_LOCK_KIND_SEMAPHORE ? "semaphore, free" : "free");
    else
        sheet_line(sheet, STYLE_TITLE, "%s  %s, %zu%s held, %zu waiting", seen->path,
                   mixed ? "mutex and semaphore" : describe_kind(inside->kind), holders, permits,
                   waiters);
}

static void entry(struct sheet *sheet, const struct seen *seen, const struct zkl_entry *e)
{
    static const char *const roles[] = {[ZKL_ENTRY_ROLE_HOLDER] = "holds",
                                        [ZKL_ENTRY_ROLE_WAITER] = "waits",
                                        [ZKL_ENTRY_ROLE_FOREIGN] = "other"};
    static const enum style styles[] = {[ZKL_ENTRY_ROLE_HOLDER] = STYLE_HOLDER,
                                        [ZKL_ENTRY_ROLE_WAITER] = STYLE_PLAIN,
                                        [ZKL_ENTRY_ROLE_FOREIGN] = STYLE_WARNING};
    char owner[DESCRIBE_SIZE], age[DESCRIBE_SIZE];
    sheet_line(sheet, styles[e->role], "  %s  %-6s  %-28s  %8s  %s%s%s", roles[e->role],
               describe_access(e->access), describe_owner(e, owner), describe_age_of(e, age),
               describe_node(e, seen->path), e->revoke_requested ? "  (asked to release)" : "",
               e->role != ZKL_ENTRY_ROLE_FOREIGN && !e->session && !describe_is_unknown(e)
                   ? "  (not ephemeral)"
                   : "");
}

/* If a run has no end, its holder shows whether it is still running: its node is in the record. */
static bool goes_on(const struct seen *seen)
{
    for (size_t i = 0; seen->inside && i < seen->inside->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(seen->inside, i);
        if (e->role == ZKL_ENTRY_ROLE_HOLDER && (uint64_t)e->czxid == seen->last.token)
            return true;
    }
    return false;
}

static void last_run(struct sheet *sheet, const struct seen *seen)
{
    const struct last_run *last = &seen->last;
    char end[32], took[DESCRIBE_SIZE], begun[32];
    time_t seconds = (time_t)(last->begun_ms / 1000);
    struct tm local;
    if (seen->last_unread)
        sheet_line(sheet, STYLE_WARNING, "  the last run cannot be read");
    if (last->end == RUN_NEVER)
        return;
    localtime_r(&seconds, &local);
    strftime(begun, sizeof begun, "%Y-%m-%d %H:%M:%S", &local);
    if (last->end == RUN_UNENDED)
        sheet_line(sheet, STYLE_PLAIN, "  last run: %s, on %s pid %" PRId64 ", begun %s",
                   goes_on(seen) ? "still running" : "no end is known", last->host, last->pid,
                   begun);
    else
        sheet_line(sheet, STYLE_PLAIN, "  last run: %s after %s, on %s pid %" PRId64 ", begun %s",
                   last_run_describe_end(last, end), describe_age(last->took_ms, took), last->host,
                   last->pid, begun);
}

static void lock(struct sheet *sheet, const struct seen *seen)
{
    head(sheet, seen);
    for (size_t i = 0; i < seen->inside->count; i++)
        entry(sheet, seen, zkl_inspection_entry(seen->inside, i));
    last_run(sheet, seen);
}

void status_text(struct sheet *sheet, const struct look *look)
{
    for (size_t i = 0; i < look->count; i++) {
        const struct seen *seen = &look->all[i];
        if (seen->inside)
            lock(sheet, seen);
        else if (seen->code == ZKL_EACCES)
            sheet_line(sheet, STYLE_WARNING, "%s  cannot be read: the ACL denies READ", seen->path);
        else
            sheet_line(sheet, STYLE_PLAIN, "%s  no lock: the path is too long for a lock",
                       seen->path);
    }
}
