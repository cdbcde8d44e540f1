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

void ask(const struct asker *asker, struct zkl_errand *errands, size_t count)
{
    int64_t deadline_ns = asker->deadline_ns ? asker->deadline_ns : zkl_now_ns() + ASK_MS * MS_NS;
    if (zkl_errands(asker->client, errands, count, deadline_ns, asker->stop) == 0)
        return;
    for (size_t i = 0; i < count; i++)
        errands[i].answer = ZKL_ERRAND_LOST;
}

enum zkl_errand_answer ask_created(const struct asker *asker, const char *path, uint32_t *created)
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

enum zkl_errand_answer ask_rights(const struct asker *asker, const char *path,
                                  struct ask_rights *rights)
{
    char text[16384]; /* an entry is some bytes */
    struct zkl_errand e = {.kind = ZKL_ERRAND_ACL, .path = path, .data = text, .room = sizeof text};
    *rights = (struct ask_rights){0};
    ask(asker, &e, 1);
    for (char *at = text; e.answer == ZKL_ERRAND_OK && *at;) {
        long perms = strtol(at, &at, 10);
        add_rights(rights, perms, at);
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return e.answer;
}

/* Between two transactions, which go to the leader, want a quorum, and change nothing. What is read
 * behind one shows all that was committed before it, and nobody makes the node of a contender again.
 * So a node that the leader did not have before is the server's alone; and one that the server did
 * not show was there all the time if the leader had it before and has it after. */
enum ask_judgement ask_judge(const struct asker *asker, const char *path)
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
    bool was_there = e[0].answer == ZKL_ERRAND_OK, is_there = e[2].answer == ZKL_ERRAND_OK;
    bool shown = e[1].answer == ZKL_ERRAND_OK;
    if (e[0].answer == ZKL_ERRAND_NO_NODE && shown)
        return ASK_GHOST;
    bool hidden = e[1].answer == ZKL_ERRAND_NO_NODE;
    return was_there && is_there && hidden ? ASK_MISSING : ASK_AGREES;
}
