/* SPDX-License-Identifier: Apache-2.0
 *
 * The node with the record of the last run, beside the lock's path: read, written in one
 * transaction with a check of the lock's node, removed. Place and text are in docs/wire-format.md,
 * "The last run"; last_run.c makes the decisions that follow from it. One thread; run, forget and
 * status call it, with a connection of raw.c. */
#include "record.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zklock/guard.h>

#include "clock.h"
#include "connect.h"
#include "say.h"
#include "describe.h"

enum { AGAIN_MS = 10, END_MS = 5000 };

/* The node's place, as raw's connection names it. */
struct place {
    char *node;
    char *now; /* a child of it, there for the length of a transaction */
};

static void place_fini(struct place *place)
{
    free(place->node);
    free(place->now);
}

static int place_init(struct place *place, const struct raw *raw, const char *path)
{
    char text[ZKL_GUARD_PATH_SIZE];
    snprintf(text, sizeof text, "%s" LAST_RUN_SUFFIX, path);
    place->node = raw_path(raw, text);
    snprintf(text, sizeof text, "%s" LAST_RUN_SUFFIX "/now", path);
    place->now = raw_path(raw, text);
    if (place->node && place->now)
        return 0;
    place_fini(place);
    return fail(EXIT_SYSTEM, "out of memory");
}

static int fail_denied(const struct place *place)
{
    return fail(EXIT_DENIED,
                "an ACL forbids recording the run: %s needs CREATE on the node above, and READ, "
                "WRITE, CREATE and DELETE of its own",
                place->node);
}

static int fail_node(const struct place *place, int code)
{
    return code == ZNOAUTH ? fail_denied(place)
                           : fail(EXIT_NO_SERVER, "%s: %s", place->node, raw_error(code));
}

/* What stands there. */
struct sight {
    struct last_run last;
    char text[LAST_RUN_TEXT]; /* with a final NUL */
    struct Stat stat;
    int64_t now_ms; /* by the ensemble, just before */
};

/* ZooKeeper's code. ZBADARGUMENTS: the node is not ours. */
static int read_node(struct raw *raw, const char *node, struct sight *sight)
{
    size_t length = sizeof sight->text - 1;
    int rc = raw_get(raw, node, sight->text, &length, &sight->stat);
    if (rc != ZOK)
        return rc;
    if (length >= sizeof sight->text)
        return ZBADARGUMENTS;
    sight->text[length] = '\0';
    return last_run_read(&sight->last, sight->text, length, sight->stat.mtime) ? ZOK
                                                                               : ZBADARGUMENTS;
}

static int fail_foreign(const struct place *place)
{
    return fail(EXIT_CONFIG,
                "%s exists and is not a record that this zklock can read: move it away, or use "
                "another path for the lock",
                place->node);
}

/* The time by the ensemble: one transaction makes, writes and deletes a node, and the answer to the
 * write has the time. No client sees that node, and no node is touched that a client watches or
 * reads. As it is a write, a later read over this connection is not older. ZNONODE: there is no
 * record. */
static int ask_time(struct raw *raw, const struct place *place, int64_t *now_ms)
{
    struct zoo_op ops[3];
    struct Stat stat = {0};
    int blamed;
    zoo_create_op_init(&ops[0], place->now, "", 0, raw_acl(raw), 0, NULL, 0);
    zoo_set_op_init(&ops[1], place->now, "", 0, -1, &stat);
    zoo_delete_op_init(&ops[2], place->now, -1);
    int rc = raw_multi(raw, 3, ops, &blamed);
    *now_ms = stat.mtime;
    return rc;
}

/* Both. */
static int look(struct raw *raw, const struct place *place, struct sight *sight)
{
    int rc = ask_time(raw, place, &sight->now_ms);
    return rc == ZOK ? read_node(raw, place->node, sight) : rc;
}

/* --- the beginning ------------------------------------------------------- */

enum { AGAIN = -3 }; /* beside what record_begin returns */

static int judge(const struct record *r, const struct last_run *last, int64_t now_ms)
{
    char age[DESCRIBE_SIZE];
    int64_t since_ms = now_ms - last->begun_ms;
    switch (last_run_verdict(last, now_ms, r->within_ms, r->retry_failed)) {
    case VERDICT_EARLY:
        if (r->verbose)
            say("too early: the last run, on %s, began %s %s", last->host,
                describe_age(since_ms < 0 ? -since_ms : since_ms, age),
                since_ms < 0 ? "in the future, by the clock of the ensemble's leader" : "ago");
        return RECORD_EARLY;
    case VERDICT_RUN_CLOCK_BACK:
        say("the last run, on %s, began %s in the future by the clock of the ensemble's leader, "
            "which was set back: it does not count",
            last->host, describe_age(-since_ms, age));
        return 0;
    case VERDICT_RUN:
    default:
        return 0;
    }
}

/* The same transaction checks that the lock is held. version -1: it makes the node. */
static int write_begin(struct record *r, const struct place *place, int32_t version)
{
    struct zkl_guard guard;
    struct zoo_op ops[RAW_OPS];
    struct Stat stat = {0};
    int count = zkl_guard_multi(&guard, 1, r->claim->multi, 0, NULL, ops), blamed;
    if (count < 0)
        return count == ZKL_ELOST ? AGAIN : fail_code(count); /* the window may open again */
    if (version < 0)
        zoo_create_op_init(&ops[count++], place->node, "", 0, raw_acl(r->raw), 0, NULL, 0);
    zoo_set_op_init(&ops[count++], place->node, r->text, (int)strlen(r->text),
                    version < 0 ? 0 : version, &stat);
    r->sent = true;
    int rc = raw_multi(r->raw, count, ops, &blamed);
    if (rc == ZNONODE && blamed == 0)
        return fail(EXIT_LOST, "the lock was lost before the command began");
    if (rc == ZNONODE || rc == ZNODEEXISTS || rc == ZBADVERSION || rc == ZCONNECTIONLOSS)
        return AGAIN;
    if (rc != ZOK)
        return fail_node(place, rc);
    r->run.begun_ms = stat.mtime;
    return 0;
}

static void keep_former(struct record *r, const struct sight *seen)
{
    bool counts = seen->last.end != RUN_NEVER && seen->last.end != RUN_NOT_STARTED;
    if (!counts || last_run_with_beginning(&seen->last, seen->text, r->former) >= LAST_RUN_TEXT)
        r->former[0] = '\0';
}

/* A lost answer is resolved here: the record may be our own beginning. */
static int try_begin_at(struct record *r, const struct place *place)
{
    struct sight seen;
    int rc = look(r->raw, place, &seen);
    if (rc == ZNONODE)
        return write_begin(r, place, -1);
    if (rc == ZNODEEXISTS)
        return fail(EXIT_CONFIG, "%s exists: delete it", place->now);
    if (rc == ZCONNECTIONLOSS)
        return AGAIN;
    if (rc == ZBADARGUMENTS)
        return fail_foreign(place);
    if (rc != ZOK)
        return fail_node(place, rc);
    if (strcmp(seen.text, r->text) == 0) {
        r->run.begun_ms = seen.stat.mtime;
        return 0;
    }
    rc = judge(r, &seen.last, seen.now_ms);
    if (rc != 0)
        return rc;
    keep_former(r, &seen);
    return write_begin(r, place, seen.stat.version);
}

/* Opens a useless connection anew. */
static int open_anew(struct record *r, int ms, int stop)
{
    if (r->raw && raw_is_open(r->raw))
        return 0;
    raw_close(r->raw);
    r->raw = NULL;
    return raw_open(&r->raw, r->settings, ms, stop);
}

static int try_begin(struct record *r)
{
    struct place place;
    int rc = open_anew(r, CONNECT_MS, r->stop);
    if (rc == 0)
        rc = place_init(&place, r->raw, r->claim->options.paths[0]);
    if (rc != 0)
        return rc;
    rc = try_begin_at(r, &place);
    place_fini(&place);
    return rc;
}

static void describe(struct record *r)
{
    r->run = (struct last_run){
        .end = RUN_UNENDED, .pid = getpid(), .token = zkl_multi_token(r->claim->multi, 0)};
    gethostname(r->run.host, sizeof r->run.host - 1);
    last_run_write(&r->run, r->text);
}

static bool is_stopped(const struct record *r)
{
    struct pollfd stop = {.fd = r->stop, .events = POLLIN};
    return poll(&stop, 1, 0) > 0;
}

static int begin(struct record *r)
{
    int64_t until = zkl_now_ns() + claim_timeout_ns(r->claim);
    int rc;
    /* Look for a beginning that may have been recorded as long as the lock can last. */
    while (((rc = try_begin(r)) == AGAIN || (rc == EXIT_NO_SERVER && r->sent)) && !is_stopped(r)) {
        if (atomic_load(&r->claim->lost))
            return fail(EXIT_LOST, "the lock was lost before the command began");
        if (zkl_now_ns() >= until)
            return fail(EXIT_NO_SERVER,
                        "the run could not be recorded: no server has answered for too long");
        poll(NULL, 0, AGAIN_MS);
    }
    return rc != 0 && is_stopped(r) ? RECORD_STOPPED : rc;
}

int record_begin(struct record *r)
{
    describe(r);
    int rc = begin(r);
    r->begun_ns = boot_ns();
    r->written = rc == 0;
    raw_close(r->raw); /* a run may be long */
    r->raw = NULL;
    if (rc != 0 && rc != RECORD_EARLY && r->sent)
        record_end(r, RUN_NOT_STARTED, 0);
    return rc;
}

/* --- the end ------------------------------------------------------------- */

/* The record decides, and not the lock: as long as our beginning is in it no other run has begun
 * since, so a run whose lock was lost has an end too. */
static int try_end(struct record *r, const struct place *place)
{
    struct sight seen;
    struct zoo_op op;
    char end[LAST_RUN_TEXT];
    int blamed, rc = look(r->raw, place, &seen);
    if (rc == ZNONODE) /* forgotten, as was asked for */
        return 0;
    if (rc == ZCONNECTIONLOSS)
        return AGAIN;
    bool ours = rc == ZOK && strcmp(seen.text, r->text) == 0;
    if (ours)
        r->run.begun_ms = seen.stat.mtime;
    if (r->run.end == RUN_NOT_STARTED && r->former[0])
        strcpy(end, r->former);
    else
        last_run_write(&r->run, end);
    if (rc == ZOK && strcmp(seen.text, end) == 0)
        return 0; /* the answer was lost */
    if (rc == ZBADARGUMENTS || (rc == ZOK && !ours))
        return r->written ? fail(EXIT_CONFLICT, "another client changed %s while the command ran",
                                 place->node)
                          : 0;
    if (rc != ZOK)
        return fail_node(place, rc);
    zoo_set_op_init(&op, place->node, end, (int)strlen(end), seen.stat.version, NULL);
    rc = raw_multi(r->raw, 1, &op, &blamed);
    if (rc == ZBADVERSION || rc == ZNONODE || rc == ZCONNECTIONLOSS)
        return AGAIN;
    return rc == ZOK ? 0 : fail_node(place, rc);
}

static int write_end(struct record *r)
{
    struct place place;
    int rc = open_anew(r, END_MS, -1);
    if (rc == 0)
        rc = place_init(&place, r->raw, r->claim->options.paths[0]);
    if (rc != 0)
        return rc;
    rc = try_end(r, &place);
    place_fini(&place);
    return rc;
}

void record_end(struct record *r, enum run_end end, int value)
{
    int64_t now = boot_ns(), until = zkl_now_ns() + END_MS * MS_NS;
    int rc;
    r->run.end = end;
    r->run.value = value;
    r->run.took_ms = (now - r->begun_ns) / MS_NS;
    while ((rc = write_end(r)) == AGAIN && zkl_now_ns() < until)
        poll(NULL, 0, AGAIN_MS);
    if (rc != 0)
        say(r->written
                ? "how the command ended is not recorded: with --retry-failed it will run again"
                : "the run may be recorded as begun: then it will not run again without "
                  "--retry-failed");
    raw_close(r->raw);
    r->raw = NULL;
}

/* --- for others ---------------------------------------------------------- */

bool record_read(struct raw *raw, const char *path, struct last_run *run)
{
    struct place place;
    struct sight seen;
    *run = (struct last_run){.end = RUN_NEVER};
    if (place_init(&place, raw, path) != 0)
        return false;
    int rc = read_node(raw, place.node, &seen);
    place_fini(&place);
    if (rc == ZOK)
        *run = seen.last;
    return rc == ZOK || rc == ZNONODE || rc == ZBADARGUMENTS;
}

static int fail_unknown(const struct place *place)
{
    return fail(EXIT_CONFLICT, "no run is recorded: the node %s does not exist", place->node);
}

/* Only the version that was read: a run that begins meanwhile is not forgotten. */
static int forget_at(struct raw *raw, const struct place *place)
{
    struct sight seen;
    struct zoo_op op;
    int blamed, rc = read_node(raw, place->node, &seen);
    if (rc == ZBADARGUMENTS)
        return fail_foreign(place);
    if (rc != ZOK)
        return rc == ZNONODE ? fail_unknown(place) : fail_node(place, rc);
    zoo_delete_op_init(&op, place->node, seen.stat.version);
    rc = raw_multi(raw, 1, &op, &blamed);
    if (rc == ZNOAUTH) {
        zoo_set_op_init(&op, place->node, "", 0, seen.stat.version, NULL);
        rc = raw_multi(raw, 1, &op, &blamed);
    }
    if (rc == ZNONODE)
        return fail_unknown(place);
    if (rc == ZNOTEMPTY)
        return fail(EXIT_CONFIG,
                    "%s has nodes below it that do not belong to zklock: delete those first",
                    place->node);
    if (rc == ZBADVERSION)
        return fail(EXIT_CONFLICT,
                    "a run has just begun or ended: look at it before you remove its record");
    return rc == ZOK ? 0 : fail_node(place, rc);
}

int record_forget(struct raw *raw, const char *path)
{
    struct place place;
    int rc = place_init(&place, raw, path);
    if (rc != 0)
        return rc;
    rc = forget_at(raw, &place);
    place_fini(&place);
    return rc;
}
