/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock doctor: finds what is wrong, or soon will be, with the locks at and below a path. It
 * inspects all of them, queries the servers about themselves, and prints its findings, the worst
 * first. One thread; main.c calls it. It owns the result of look.c until it has printed. */
#include "doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ask.h"
#include "compare.h"
#include "connect.h"
#include "cycles.h"
#include "ensemble.h"
#include "look.h"
#include "make/make.h"
#include "owned.h"
#include "peers.h"
#include "say.h"
#include "screen.h"
#include "describe.h"

/* docs/wire-format.md, "Used-up numbers"; and nine tenths of the way there. */
enum { NUMBERS_END = 0x7ff00000, NUMBERS_NEAR = NUMBERS_END / 10 * 9, PEOPLE_MAX = 20 };
enum { SESSION_MS = 10000 }; /* the library's, if the settings have none */

static const char usage[] =
    "usage: zklock doctor [OPTION...] PATH\n"
    "\n"
    "Look for problems with the locks at and below PATH: foreign children, sequence numbers that "
    "are or\n"
    "soon will be used up, ACLs that keep contenders from each other, nodes that will not be "
    "removed,\n"
    "peers that do not wait for each other, threads that wait in a circle, and server settings "
    "that\n"
    "break the window of a hold. Print how Curator, Kazoo and ZooKeeper's C recipe see each path. "
    "Change\n"
    "nothing.\n" SETTINGS_USAGE "  --help                     print this text\n"
    "\n"
    "Exit status: 0 no problem; 1 a problem; 64 invalid usage; 69 no server answered; 77 an ACL "
    "forbids\n"
    "reading.\n";

static const struct option known[] = {
    SETTINGS_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct doctor {
    struct settings settings;
    const char *path;
    struct zkl_client *client;
    struct asker asker;
    struct compare compare;
    struct look look;
    struct sheet sheet;
    bool creator; /* the settings want ACLs for the creator alone */
    size_t problems;
    bool failed; /* a question got no answer */
};

static int take(void *arg, int code, const char *value)
{
    struct doctor *d = arg;
    return settings_take(&d->settings, code, value);
}

static void found(struct doctor *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void found(struct doctor *d, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    sheet_line(&d->sheet, STYLE_WARNING, "  problem: %s", length < 0 ? format : text);
    d->problems++;
    if (length >= 0)
        free(text);
}

/* --- each contender ----------------------------------------------------- */

/* What others do with a child that zklock ignores. */
static const char *what_others_do(const struct seen *seen, const struct zkl_entry *e)
{
    if (strncmp(describe_node(e, seen->path), "leases/", 7) == 0)
        return "Curator counts it as a permit";
    return peers_stops_curator(seen->inside, e) ? "Curator waits for it for ever"
                                                : "other libraries may not";
}

static void check_foreign(struct doctor *d, const struct seen *seen, const struct zkl_entry *e)
{
    found(d, "%s is not a contender and does not belong here: zklock ignores it, but %s; %s",
          describe_node(e, seen->path), what_others_do(seen, e),
          e->children > 0 ? "what is below it needs another path"
                          : "delete it, or move it elsewhere");
}

static void check_node(struct doctor *d, const struct seen *seen, const struct zkl_entry *e)
{
    const char *node = describe_node(e, seen->path);
    if (e->role == ZKL_ENTRY_ROLE_FOREIGN)
        check_foreign(d, seen, e);
    else if (e->session == 0 && !describe_is_unknown(e))
        found(d, "%s is not ephemeral and stays until it is deleted: zklock break %s", node,
              e->node_path);
}

static bool is_no_answer(enum zkl_errand_answer answer)
{
    return answer != ZKL_ERRAND_OK && answer != ZKL_ERRAND_NO_NODE && answer != ZKL_ERRAND_DENIED;
}

/* Waiting is watching, for which Curator and Kazoo read the node before theirs. */
static void check_node_acl(struct doctor *d, const struct seen *seen, const struct zkl_entry *e,
                           const struct ask_rights *lock)
{
    struct ask_rights rights;
    enum zkl_errand_answer answer = ask_rights(&d->asker, e->node_path, &rights);
    d->failed |= is_no_answer(answer);
    bool unreadable = answer == ZKL_ERRAND_OK && lock->all_read && !rights.all_read;
    if (answer == ZKL_ERRAND_DENIED || unreadable)
        found(d,
              "not all clients that may queue can read %s: Curator and Kazoo fail when they must "
              "wait for it",
              describe_node(e, seen->path));
}

/* --- each lock ---------------------------------------------------------- */

static void check_numbers(struct doctor *d, const char *path)
{
    uint32_t created;
    enum zkl_errand_answer answer = ask_created(&d->asker, path, &created);
    d->failed |= is_no_answer(answer);
    if (answer != ZKL_ERRAND_OK || created < NUMBERS_NEAR)
        return;
    if (created >= NUMBERS_END)
        found(d,
              "the sequence numbers of %s are used up (%" PRIu32
              "): zklock renews the path once its queue is empty, but Curator and Kazoo may fail; "
              "keep the queue empty, or delete the path",
              path, created);
    else
        found(d,
              "the sequence numbers of %s will soon be used up (%" PRIu32
              " of %d): delete the path when its queue is empty",
              path, created, NUMBERS_END);
}

/* The lock's own ACL, as far as it can be read. */
static struct ask_rights check_acl(struct doctor *d, const char *path)
{
    struct ask_rights rights;
    enum zkl_errand_answer answer = ask_rights(&d->asker, path, &rights);
    d->failed |= is_no_answer(answer);
    if (answer == ZKL_ERRAND_DENIED)
        found(d, "the ACL of %s cannot be read with this credential", path);
    if (answer != ZKL_ERRAND_OK)
        return rights;
    if (!rights.one_can_lock)
        found(d,
              "no client has all of READ, CREATE and DELETE on %s, so no client can lock: change "
              "its ACL",
              path);
    if (d->creator && (rights.all_delete || rights.all_create))
        found(d,
              "any client may create or delete nodes in %s, although the setting acl is creator: "
              "change its ACL",
              path);
    return rights;
}

static void check_root(struct doctor *d, const char *path, struct ask_rights *rights)
{
    *rights = check_acl(d, path);
    check_numbers(d, path);
}

/* A semaphore queues below "locks"; "leases" needs no order. */
static void check_semaphore(struct doctor *d, const struct seen *seen, struct ask_rights *rights)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/locks", seen->path);
    check_root(d, path, rights);
    snprintf(path, sizeof path, "%s/leases", seen->path);
    check_acl(d, path);
    if (!seen->inside->permits)
        sheet_line(&d->sheet, STYLE_PLAIN,
                   "  the path has no number of permits: all clients must give the same");
}

static void report_peers(struct doctor *d, const struct zkl_inspection *inside)
{
    struct peer_view views[PEERS];
    peer_views(views, inside);
    for (size_t i = 0; i < PEERS; i++)
        sheet_line(&d->sheet, STYLE_PLAIN, "  %s: %s", views[i].name, views[i].text);
    const char *conflict = peers_conflict(inside);
    if (conflict)
        found(d, "%s", conflict);
}

/* No contender is there, so the path may as well be a folder, and this is no problem. */
static void report_stopper(struct doctor *d, const char *path, const struct zkl_inspection *inside)
{
    for (size_t i = 0; i < inside->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(inside, i);
        if (peers_stops_curator(inside, e)) {
            sheet_line(
                &d->sheet, STYLE_WARNING,
                "  %s is no contender: if Curator locks %s itself, it waits for that child for "
                "ever",
                describe_node(e, path), path);
            return;
        }
    }
}

static void check_unknown(struct doctor *d, const struct seen *seen)
{
    sheet_line(&d->sheet, STYLE_TITLE, "%s", seen->path);
    if (seen->code == ZKL_EACCES)
        found(d, "it cannot be read with this credential: use one that has READ");
    else
        sheet_line(&d->sheet, STYLE_PLAIN, "  no lock: the path is too long for a lock");
}

static void check_lock(struct doctor *d, const struct seen *seen)
{
    struct ask_rights rights;
    const struct zkl_inspection *inside = seen->inside;
    if (!inside) {
        check_unknown(d, seen);
        return;
    }
    sheet_line(&d->sheet, STYLE_TITLE, "%s  %s", seen->path, describe_kind(inside->kind));
    if (inside->kind == ZKL_LOCK_KIND_SEMAPHORE)
        check_semaphore(d, seen, &rights);
    else
        check_root(d, seen->path, &rights);
    if (inside->kind == ZKL_LOCK_KIND_NONE) {
        report_stopper(d, seen->path, inside);
        return;
    }
    report_peers(d, inside);
    for (size_t i = 0; i < inside->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(inside, i);
        check_node(d, seen, e);
        if (e->role != ZKL_ENTRY_ROLE_FOREIGN)
            check_node_acl(d, seen, e, &rights);
    }
}

/* --- the servers -------------------------------------------------------- */

struct servers {
    struct doctor *doctor;
    bool titled;
};

static void report_server(void *arg, bool problem, const char *text)
{
    struct servers *s = arg;
    if (!s->titled)
        sheet_line(&s->doctor->sheet, STYLE_TITLE, "servers");
    s->titled = true;
    if (problem)
        found(s->doctor, "%s", text);
    else
        sheet_line(&s->doctor->sheet, STYLE_PLAIN, "  %s", text);
}

/* The value of a setting in seconds; a wrong one has been refused already. */
static int setting_ms(const struct doctor *d, enum setting setting, int unset_ms)
{
    const char *text = d->settings.text[setting];
    int64_t ms;
    return text && seconds_to_ms(text, &ms) ? (int)ms : unset_ms;
}

static void check_make(struct doctor *d)
{
    if (zkl_make_is_other(zkl_client_session_id(d->client)))
        found(d, "the server " NO_ZOOKEEPER);
}

static void check_servers(struct doctor *d)
{
    struct servers servers = {.doctor = d};
    ensemble_check(d->settings.text[SETTING_SERVERS],
                   setting_ms(d, SETTING_SESSION_TIMEOUT, SESSION_MS),
                   setting_ms(d, SETTING_TICK, 0), report_server, &servers);
    compare_servers(&d->compare, d->path, report_server, &servers);
}

/* --- all together ------------------------------------------------------- */

/* What no node shows: docs/man/zklock-doctor.1. */
#define IF_SO                                                                                      \
    "for ever if no wait has a deadline and each thread has what its node says (no local "         \
    "hand-off, no several owners in one thread, no command that left its group): look again, and " \
    "if it stands, end "

static bool still_waits(struct doctor *d, const struct waiting *step)
{
    const struct zkl_inspection *now = NULL;
    if (zkl_inspect(d->client, step->lock->path, LOOK_MS, &now) != 0) {
        d->failed = true;
        return false;
    }
    const struct zkl_entry *waiter = look_again(now, step->waiter);
    bool waits =
        waiter && waiter->role == ZKL_ENTRY_ROLE_WAITER && look_again(now, step->whom) != NULL;
    zkl_inspection_free(now);
    return waits;
}

/* The locks were inspected one after the other, while their queues lived. All who still wait for
 * the same node waited for it together, when the last lock had been inspected. */
static void report_cycle(void *arg, const struct waiting *steps, size_t count)
{
    struct doctor *d = arg;
    for (size_t i = 0; i < count; i++) {
        if (!still_waits(d, &steps[i]))
            return;
    }
    if (count == 1)
        found(d, "this one seems to wait for itself, " IF_SO "its wait with zklock break");
    else
        found(d,
              "these %zu seem to wait for each other, " IF_SO "the wait of one with zklock break",
              count);
    for (size_t i = 0; i < count && i < PEOPLE_MAX; i++) {
        char owner[DESCRIBE_SIZE];
        sheet_line(&d->sheet, STYLE_PLAIN, "    %s waits for %s, node %s",
                   describe_owner(steps[i].waiter, owner), steps[i].lock->path,
                   steps[i].waiter->node_path);
    }
}

/* The path itself, if it has no contenders and only others are listed above. */
static void examine_folder(struct doctor *d)
{
    const struct zkl_inspection *inside = NULL;
    bool listed = d->look.count > 0 && strcmp(d->look.all[0].path, d->path) == 0;
    if (!listed && zkl_inspect(d->client, d->path, LOOK_MS, &inside) == 0 &&
        inside->kind == ZKL_LOCK_KIND_NONE)
        report_stopper(d, d->path, inside);
    zkl_inspection_free(inside);
}

static void report_owner(void *arg, int64_t session, size_t nodes, size_t bytes)
{
    found(arg,
          "session 0x%" PRIx64 " owns %zu nodes of locks with %zu bytes of paths: if it ends with "
          "more than %d, servers with the usual jute.maxbuffer do not start again; let its process "
          "release some, or use several clients",
          (uint64_t)session, nodes, bytes, OWNED_MAX);
}

static int examine(struct doctor *d, const struct screen *screen)
{
    check_make(d);
    check_servers(d);
    examine_folder(d);
    for (size_t i = 0; i < d->look.count; i++)
        check_lock(d, &d->look.all[i]);
    const char *chroot = strchr(d->settings.text[SETTING_SERVERS], '/');
    if (cycles_find(&d->look, report_cycle, d) != 0 ||
        owned_find(&d->look, chroot ? strlen(chroot) : 0, report_owner, d) != 0)
        return fail(EXIT_SYSTEM, "out of memory");
    sheet_line(&d->sheet, STYLE_PLAIN, "%zu lock%s, %zu problem%s", d->look.count,
               d->look.count == 1 ? "" : "s", d->problems, d->problems == 1 ? "" : "s");
    if (sheet_print(&d->sheet, screen) != 0)
        return fail(EXIT_SYSTEM, "standard output cannot be written");
    if (d->failed)
        return fail(EXIT_NO_SERVER, "not all requests were answered: try again");
    return d->problems ? EXIT_CONFLICT : EXIT_DONE;
}

static int with_connections(struct doctor *d)
{
    struct screen screen;
    screen_init(&screen, stdout);
    const char *acl = d->settings.text[SETTING_ACL];
    d->creator = acl && strcmp(acl, "creator") == 0;
    int code = look_below(&d->look, d->client, d->path);
    if (code != 0)
        return fail_code(code);
    int rc = sheet_open(&d->sheet) ? examine(d, &screen) : EXIT_SYSTEM;
    if (d->sheet.lines)
        sheet_close(&d->sheet);
    look_free(&d->look);
    return rc;
}

static int run(int argc, char **argv)
{
    struct doctor d = {0};
    struct args args = {.command = "doctor", .known = known, .take = take, .arg = &d};
    int rc = args_parse_one(&args, argc, argv, "one PATH", &d.path);
    if (rc == 0)
        rc = tool_connect(&d.client, &d.settings, CONNECT_MS, NULL);
    d.asker = (struct asker){.client = d.client};
    if (rc == 0)
        rc = compare_open(&d.compare, &d.settings);
    if (rc == 0)
        rc = with_connections(&d);
    compare_close(&d.compare);
    if (d.client)
        tool_disconnect(d.client);
    settings_fini(&d.settings);
    return rc;
}

const struct command doctor_command = {
    .name = "doctor",
    .summary = "look for problems with locks",
    .usage = usage,
    .run = run,
};
