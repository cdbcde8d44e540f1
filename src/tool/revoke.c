/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock revoke: asks the holders of a lock to release it, and waits for that on request.
 * src/api/revoke.c does the asking. One thread; main.c calls it. It owns its client for the length
 * of the command. */
#include "revoke.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "connect.h"
#include "look.h"
#include "plain.h"
#include "say.h"
#include "describe.h"

enum { OPTION_WITHIN = 300 };

static const char usage[] =
    "usage: zklock revoke [OPTION...] PATH|NODE\n"
    "\n"
    "Ask all holders of the lock at PATH, or the one contender at NODE, to release the lock. They "
    "need\n"
    "not comply: zklock break takes a lock away.\n"
    "\n"
    "  --within SEC               wait at most SEC seconds for the release (\"0.5\"; 0: only "
    "ask)\n" SETTINGS_USAGE "  --help                     print this text\n"
    "\n"
    "Exit status: 0 asked, and with --within released, or there was no holder; 1 still held after "
    "SEC;\n"
    "64 invalid usage; 69 no server answered; 77 an ACL forbids it.\n";

static const struct option known[] = {
    {"within", required_argument, NULL, OPTION_WITHIN},
    SETTINGS_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct revoke {
    struct settings settings;
    const char *path;
    int64_t within_ms;
    struct zkl_client *client;
};

static int take(void *arg, int code, const char *value)
{
    struct revoke *r = arg;
    if (code != OPTION_WITHIN)
        return settings_take(&r->settings, code, value);
    return args_seconds("--within", value, true, &r->within_ms);
}

/* --- asking ------------------------------------------------------------- */

/* 0: the node is deleted. ETIMEDOUT: asked, and still there at the deadline. */
static int ask(const struct revoke *r, const char *node, int64_t deadline_ns)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.deadline_ns = deadline_ns;
    int code = zkl_revoke(r->client, node, &wait, 0);
    return code == ZKL_ENONODE ? 0 : code;
}

static int ask_now(const struct revoke *r, const struct zkl_entry *e)
{
    char owner[DESCRIBE_SIZE];
    int code = ask(r, e->node_path, 1);
    if (code == ZKL_ETIMEDOUT)
        plain_print(stdout, "asked %s to release %s\n", describe_owner(e, owner), e->node_path);
    else if (code == 0)
        plain_print(stdout, "%s has just released %s\n", describe_owner(e, owner), e->node_path);
    else
        return fail_code(code);
    return EXIT_DONE;
}

/* A repeated request does no harm, so the wait for one does not delay the next request. */
static int wait_for(const struct revoke *r, const struct zkl_entry *e, int64_t deadline_ns)
{
    char owner[DESCRIBE_SIZE];
    int code = ask(r, e->node_path, deadline_ns);
    if (code == ZKL_ETIMEDOUT)
        return fail(EXIT_CONFLICT,
                    "%s was asked and has not released the lock: zklock break %s takes it away",
                    describe_owner(e, owner), e->node_path);
    return code == 0 ? EXIT_DONE : fail_code(code);
}

static int revoke(const struct revoke *r, const struct zkl_entry *const *asked, size_t count)
{
    int64_t now = zkl_now_ns();
    for (size_t i = 0; i < count; i++) {
        int rc = ask_now(r, asked[i]);
        if (rc != EXIT_DONE)
            return rc;
    }
    fflush(stdout);
    int rc = EXIT_DONE;
    for (size_t i = 0; i < count && r->within_ms > 0; i++) {
        int each = wait_for(r, asked[i], now + r->within_ms * 1000000);
        rc = rc == EXIT_DONE ? each : rc;
    }
    return rc;
}

/* --- whom --------------------------------------------------------------- */

static int revoke_holders(const struct revoke *r, const struct zkl_inspection *inside)
{
    size_t holders = 0;
    while (holders < inside->count &&
           zkl_inspection_entry(inside, holders)->role == ZKL_ENTRY_ROLE_HOLDER)
        holders++;
    const struct zkl_entry **asked = calloc(holders + 1, sizeof *asked);
    if (!asked)
        return fail(EXIT_SYSTEM, "out of memory");
    for (size_t i = 0; i < holders; i++)
        asked[i] = zkl_inspection_entry(inside, i);
    int rc = revoke(r, asked, holders);
    free(asked);
    return rc;
}

static int has_no_holder(const struct revoke *r)
{
    plain_print(stdout, "%s has no holder\n", r->path);
    return EXIT_DONE;
}

/* ZooKeeper removes the path of a free lock: so one that does not exist has no holder. But nothing
 * except nodes of contenders belongs below a lock, and a contender's name is no lock's. */
static int revoke_nothing(const struct revoke *r, const struct look *look)
{
    bool is_node = look->count > 0 && seen_is_busy(&look->all[0]);
    int code = is_node ? 0 : ask(r, r->path, 1);
    if (code == ZKL_EFOREIGN)
        return has_no_holder(r);
    if (code != 0)
        return fail_code(code);
    return fail(EXIT_CONFLICT, "the node %s does not exist: zklock status shows the nodes",
                r->path);
}

/* No lock with a holder: so it may be a contender's node. */
static int revoke_node(const struct revoke *r)
{
    struct look look;
    const struct zkl_entry *entry;
    int code = look_up(&look, r->client, r->path, &entry), rc;
    if (code == 0 && entry->role != ZKL_ENTRY_ROLE_FOREIGN)
        rc = revoke(r, &entry, 1);
    else if (code == 0 || code == ZKL_EFOREIGN)
        rc = has_no_holder(r);
    else if (code == ZKL_ENONODE)
        rc = revoke_nothing(r, &look);
    else
        rc = fail_code(code);
    look_free(&look);
    return rc;
}

static bool is_held(const struct look *look)
{
    const struct zkl_inspection *inside = look->all[0].inside;
    return inside->count > 0 && zkl_inspection_entry(inside, 0)->role == ZKL_ENTRY_ROLE_HOLDER;
}

/* The path of a node may be longer than that of a lock. */
static int with_client(const struct revoke *r)
{
    struct look look;
    if (strlen(r->path) > LOOK_PATH_MAX)
        return revoke_node(r);
    int code = look_at(&look, r->client, r->path);
    if (code != 0)
        return fail_code(code);
    int rc = is_held(&look) ? revoke_holders(r, look.all[0].inside) : revoke_node(r);
    look_free(&look);
    return rc;
}

static int run(int argc, char **argv)
{
    struct revoke r = {0};
    struct args args = {.command = "revoke", .known = known, .take = take, .arg = &r};
    int rc = args_parse_one(&args, argc, argv, "one PATH", &r.path);
    if (rc == 0)
        rc = tool_connect(&r.client, &r.settings, CONNECT_MS, NULL);
    if (rc == 0)
        rc = with_client(&r);
    if (r.client)
        tool_disconnect(r.client);
    settings_fini(&r.settings);
    return rc;
}

const struct command revoke_command = {
    .name = "revoke",
    .summary = "ask the holders of a lock to release it",
    .usage = usage,
    .run = run,
};
