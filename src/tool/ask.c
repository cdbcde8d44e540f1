/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that no lock sends, over the library's connection, and what their answers mean: rights,
 * counters, and whether a server shows what its leader has. Each wait has a bound. One thread;
 * doctor.c, compare.c and record.c call this file. */
#include "ask.h"

#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "clock.h"

/* Of an ACL. */
enum { PERM_READ = 1, PERM_CREATE = 4, PERM_DELETE = 8 };

void ask(struct asker *asker, struct zkl_errand *errands, size_t count)
{
    int64_t deadline_ns = asker->deadline_ns ? asker->deadline_ns : zkl_now_ns() + ASK_MS * MS_NS;
    if (!asker->waits_no_more &&
        zkl_errands(asker->client, errands, count, deadline_ns, asker->cancel) == 0)
        return;
    asker->waits_no_more = asker->deadline_ns == 0;
    for (size_t i = 0; i < count; i++)
        errands[i].answer = ZKL_ERRAND_LOST;
}

enum zkl_errand_answer ask_created(struct asker *asker, const char *path, uint32_t *created)
{
    struct zkl_errand e = {.kind = ZKL_ERRAND_STAT, .path = path};
    ask(asker, &e, 1);
    *created = e.created;
    return e.answer;
}

static void add_rights(struct ask_rights *rights, long perms, const char *scheme)
{
    const long lock = PERM_READ | PERM_CREATE | PERM_DELETE;
    rights->one_can_lock |= (perms & lock) == lock;
    if (strncmp(scheme, " world\n", strlen(" world\n")) != 0)
        return;
    rights->all_read |= (perms & PERM_READ) != 0;
    rights->all_delete |= (perms & PERM_DELETE) != 0;
    rights->all_create |= (perms & PERM_CREATE) != 0;
}

static struct ask_rights rights_of(char *acl)
{
    struct ask_rights rights = {0};
    while (*acl) {
        long perms = strtol(acl, &acl, 10);
        add_rights(&rights, perms, acl);
        acl += strcspn(acl, "\n");
        acl += *acl == '\n';
    }
    return rights;
}

/* With as much room as was needed before: an ACL can have thousands of entries. */
enum zkl_errand_answer ask_rights(struct asker *asker, const char *path, struct ask_rights *rights)
{
    struct zkl_errand e = {.kind = ZKL_ERRAND_ACL, .path = path, .size = 1000};
    *rights = (struct ask_rights){0};
    do {
        free(e.data);
        e.room = e.size + 1;
        e.data = malloc(e.room);
        if (!e.data)
            return ZKL_ERRAND_OTHER;
        ask(asker, &e, 1);
    } while (e.answer == ZKL_ERRAND_OK && e.size >= e.room);
    if (e.answer == ZKL_ERRAND_OK)
        *rights = rights_of(e.data);
    free(e.data);
    return e.answer;
}

/* Between two transactions, which go to the leader, want a quorum, and change nothing. What is read
 * behind one shows all that was committed before it, and nobody makes the node of a contender again.
 * So a node that the leader did not have before is the server's alone; and one that the server did
 * not show was there all the time if the leader had it before and has it after. */
enum ask_judgement ask_judge(struct asker *asker, const char *path)
{
    const struct zkl_part check = {.what = ZKL_PART_CHECK, .path = path, .version = -1};
    struct zkl_errand e[] = {
        {.kind = ZKL_ERRAND_PARTS, .parts = &check, .part_count = 1},
        {.kind = ZKL_ERRAND_GET, .path = path},
        {.kind = ZKL_ERRAND_PARTS, .parts = &check, .part_count = 1},
    };
    ask(asker, e, 3);
    for (int i = 0; i < 3; i++) {
        if (e[i].answer == ZKL_ERRAND_LOST || e[i].answer == ZKL_ERRAND_OTHER)
            return ASK_UNDECIDED;
    }
    enum zkl_errand_answer before = e[0].answer, shown = e[1].answer, after = e[2].answer;
    if (before == ZKL_ERRAND_NO_NODE && shown == ZKL_ERRAND_OK)
        return ASK_GHOST;
    bool was_there = before == ZKL_ERRAND_OK && after == ZKL_ERRAND_OK;
    return was_there && shown == ZKL_ERRAND_NO_NODE ? ASK_MISSING : ASK_AGREES;
}
