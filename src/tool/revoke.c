/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock revoke: asks the holders of a lock to release it, and waits for that on request.
 * src/api/revoke.c does the asking. One thread; main.c calls it. It owns its client for the length
 * of the command. */
#include "revoke.h"

#include <stdio.h>
#include <stdlib.h>

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

/* 0: the node is deleted, or the deadline had passed already and the request was made. ETIMEDOUT:
 * still there. */
static int ask(const struct revoke *r, const char *node, int64_t deadline_ns, bool only)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.deadline_ns = deadline_ns;
    int code = zkl_revoke(r->client, node, &wait, 0);
    bool done = code == ZKL_ENONODE || (only && code == ZKL_ETIMEDOUT);
    return done ? 0 : code;
}

/* A repeated request does no harm, so the wait for one does not delay the next request. */
static int wait_for(const struct revoke *r, const struct zkl_entry *e, int64_t deadline_ns)
{
    char owner[DESCRIBE_SIZE];
    int code = ask(r, e->node_path, deadline_ns, false);
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
        char owner[DESCRIBE_SIZE];
        int code = ask(r, asked[i]->node_path, 1, true);
        if (code != 0)
            return fail_code(code);
        plain_print(stdout, "asked %s to release %s\n", describe_owner(asked[i], owner),
                    asked[i]->node_path);
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

/* No lock with a holder: so it may be a contender's node. */
static int revoke_node(const struct revoke *r)
{
    struct look look;
    const struct zkl_entry *entry;
    int code = look_up(&look, r->client, r->path, &entry);
    int rc = EXIT_DONE;
    if (code == 0 && entry->role != ZKL_ENTRY_ROLE_FOREIGN)
        rc = revoke(r, &entry, 1);
    else if (code == 0 || code == ZKL_ENONODE)
        plain_print(stdout, "%s has no holder\n", r->path);
    else
        rc = fail_code(code);
    look_free(&look);
    return rc;
}

static int with_client(const struct revoke *r)
{
    const struct zkl_inspection *inside;
    int code = zkl_inspect(r->client, r->path, LOOK_MS, &inside);
    if (code != 0)
        return fail_code(code);
    bool held = inside->count > 0 && zkl_inspection_entry(inside, 0)->role == ZKL_ENTRY_ROLE_HOLDER;
    int rc = held ? revoke_holders(r, inside) : revoke_node(r);
    zkl_inspection_free(inside);
    return rc;
}

static int run(int argc, char **argv)
{
    struct revoke r = {0};
    struct args args = {.command = "revoke", .known = known, .take = take, .arg = &r};
    int rc = args_parse_one(&args, argc, argv, "one PATH", &r.path);
    if (rc == 0)
        rc = tool_connect(&r.client, &r.settings, CONNECT_MS);
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
