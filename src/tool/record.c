/* SPDX-License-Identifier: Apache-2.0
 *
 * The node with the record of the last run, beside the lock's path: read, written in one
 * transaction with a check of the lock's node, removed. Place and text are in docs/wire-format.md,
 * "The last run"; last_run.c makes the decisions that follow from it. One thread; run, forget and
 * status call it. */
#include "record.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "connect.h"
#include "say.h"
#include "describe.h"

enum { AGAIN_MS = 10, END_MS = 5000, PLACE_SIZE = 1024 };

struct place {
    char node[PLACE_SIZE];
    char now[PLACE_SIZE]; /* a child of it, there for the length of a transaction */
};

static struct place place_of(const char *path)
{
    struct place place;
    snprintf(place.node, sizeof place.node, "%s" LAST_RUN_SUFFIX, path);
    snprintf(place.now, sizeof place.now, "%s" LAST_RUN_SUFFIX "/now", path);
    return place;
}

static int fail_denied(const struct place *place)
{
    return fail(EXIT_DENIED,
                "an ACL forbids recording the run: %s needs CREATE on the node above, and READ, "
                "WRITE, CREATE and DELETE of its own",
                place->node);
}

static int fail_foreign(const struct place *place)
{
    return fail(EXIT_CONFIG,
                "%s exists and is not a record that this zklock can read: move it away, or use "
                "another path for the lock",
                place->node);
}

/* Another answer than those that mean something here. */
static int fail_answer(const struct place *place, const struct zkl_errand *e)
{
    switch ((int)e->answer) {
    case ZKL_ERRAND_DENIED:
        return fail_denied(place);
    case ZKL_ERRAND_NO_CHILDREN: /* an ephemeral node stands there */
        return fail_foreign(place);
    case ZKL_ERRAND_LOST:
        return fail(EXIT_NO_SERVER, "%s: no server has answered", place->node);
    default:
        return fail(EXIT_NO_SERVER, "%s: ZooKeeper returned %d", place->node, e->number);
    }
}

/* What stands there. */
struct sight {
    struct zkl_errand e;
    struct last_run last;
    char text[LAST_RUN_TEXT]; /* with a final NUL */
    bool is_foreign;
    int64_t now_ms; /* by the ensemble, just before */
};

static struct zkl_errand reading(const char *node, struct sight *sight)
{
    return (struct zkl_errand){
        .kind = ZKL_ERRAND_GET, .path = node, .data = sight->text, .room = sizeof sight->text};
}

static enum zkl_errand_answer take(struct sight *sight, const struct zkl_errand *e)
{
    bool is_read = e->kind == ZKL_ERRAND_GET && e->answer == ZKL_ERRAND_OK;
    sight->e = *e;
    sight->is_foreign =
        is_read && (e->size >= sizeof sight->text ||
                    !last_run_read(&sight->last, sight->text, e->size, e->mtime_ms));
    return e->answer;
}

static enum zkl_errand_answer read_node(struct asker *asker, const char *node, struct sight *sight)
{
    struct zkl_errand e = reading(node, sight);
    ask(asker, &e, 1);
    return take(sight, &e);
}

static struct zkl_errand write_all(struct asker *asker, const struct zkl_part *parts, size_t count)
{
    struct zkl_errand e = {.kind = ZKL_ERRAND_PARTS, .parts = parts, .part_count = count};
    ask(asker, &e, 1);
    return e;
}

/* With the time by the ensemble: one transaction makes, writes and deletes a node, and the answer
 * to the write has the time. No client sees that node, and no node is touched that a client watches
 * or reads. As it is a write, the read behind it is not older. NO_NODE: there is no record. */
static enum zkl_errand_answer look(struct asker *asker, const struct place *place,
                                   struct sight *sight)
{
    const struct zkl_part parts[] = {{ZKL_PART_MAKE, place->now, "", -1},
                                     {ZKL_PART_SET, place->now, "", -1},
                                     {ZKL_PART_DELETE, place->now, NULL, -1}};
    struct zkl_errand e[] = {{.kind = ZKL_ERRAND_PARTS, .parts = parts, .part_count = 3},
                             reading(place->node, sight)};
    ask(asker, e, 2);
    sight->now_ms = e[0].mtime_ms;
    return take(sight, e[0].answer == ZKL_ERRAND_OK ? &e[1] : &e[0]);
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
static int write_begin(struct record *r, struct asker *asker, const struct place *place,
                       int32_t version)
{
    char held[PLACE_SIZE];
    int code = zkl_multi_check(r->claim->multi, 0);
    if (code == ZKL_ELOST || code == ZKL_EDOUBT)
        return AGAIN; /* the window may open again */
    if (code == 0 && (code = zkl_multi_node_path(r->claim->multi, 0, held, sizeof held)) > 0)
        code = 0;
    if (code != 0)
        return fail_code(code);
    struct zkl_part parts[3] = {{ZKL_PART_CHECK, held, NULL, -1}};
    size_t count = 1;
    if (version < 0)
        parts[count++] = (struct zkl_part){ZKL_PART_MAKE, place->node, "", -1};
    parts[count++] =
        (struct zkl_part){ZKL_PART_SET, place->node, r->text, version < 0 ? 0 : version};
    r->sent = true;
    struct zkl_errand e = write_all(asker, parts, count);
    if (e.answer == ZKL_ERRAND_NO_NODE && e.blamed == 0)
        return fail(EXIT_LOST, "the lock was lost before the command began");
    if (e.answer == ZKL_ERRAND_NO_NODE || e.answer == ZKL_ERRAND_EXISTS ||
        e.answer == ZKL_ERRAND_BAD_VERSION || e.answer == ZKL_ERRAND_LOST)
        return AGAIN;
    if (e.answer != ZKL_ERRAND_OK)
        return fail_answer(place, &e);
    r->run.begun_ms = e.mtime_ms;
    return 0;
}

static void keep_former(struct record *r, const struct sight *seen)
{
    bool counts = seen->last.end != RUN_NEVER && seen->last.end != RUN_NOT_STARTED;
    if (!counts || last_run_with_beginning(&seen->last, seen->text, r->former) >= LAST_RUN_TEXT)
        r->former[0] = '\0';
}

/* A lost answer is resolved here: the record may be our own beginning. */
static int try_begin(struct record *r, struct asker *asker)
{
    const struct place place = place_of(r->claim->options.paths[0]);
    struct sight seen;
    enum zkl_errand_answer answer = look(asker, &place, &seen);
    if (answer == ZKL_ERRAND_NO_NODE)
        return write_begin(r, asker, &place, -1);
    if (answer == ZKL_ERRAND_EXISTS)
        return fail(EXIT_CONFIG, "%s exists: delete it", place.now);
    if (answer == ZKL_ERRAND_LOST)
        return AGAIN;
    if (seen.is_foreign)
        return fail_foreign(&place);
    if (answer != ZKL_ERRAND_OK)
        return fail_answer(&place, &seen.e);
    if (strcmp(seen.text, r->text) == 0) {
        r->run.begun_ms = seen.e.mtime_ms;
        return 0;
    }
    int rc = judge(r, &seen.last, seen.now_ms);
    if (rc != 0)
        return rc;
    keep_former(r, &seen);
    return write_begin(r, asker, &place, seen.e.version);
}

static void describe(struct record *r)
{
    r->run = (struct last_run){
        .end = RUN_UNENDED, .pid = getpid(), .token = zkl_multi_token(r->claim->multi, 0)};
    gethostname(r->run.host, sizeof r->run.host - 1);
    last_run_write(&r->run, r->text);
}

static int begin(struct record *r)
{
    int64_t until = zkl_now_ns() + claim_timeout_ns(r->claim);
    struct asker asker = {.client = r->claim->client, .deadline_ns = until, .cancel = r->cancel};
    int rc;
    /* Look for a beginning that may have been recorded as long as the lock can last. */
    while ((rc = try_begin(r, &asker)) == AGAIN && !zkl_cancel_is_set(r->cancel)) {
        if (atomic_load(&r->claim->lost))
            return fail(EXIT_LOST, "the lock was lost before the command began");
        if (zkl_now_ns() >= until)
            return fail(EXIT_NO_SERVER,
                        "the run could not be recorded: no server has answered for too long");
        poll(NULL, 0, AGAIN_MS);
    }
    return rc != 0 && zkl_cancel_is_set(r->cancel) ? RECORD_STOPPED : rc;
}

int record_begin(struct record *r)
{
    describe(r);
    int rc = begin(r);
    r->begun_ns = boot_ns();
    r->written = rc == 0;
    if (rc != 0 && rc != RECORD_EARLY && r->sent)
        record_end(r, RUN_NOT_STARTED, 0);
    return rc;
}

/* --- the end ------------------------------------------------------------- */

/* The record decides, and not the lock: as long as our beginning is in it no other run has begun
 * since, so a run whose lock was lost has an end too. */
static int try_end(struct record *r, struct asker *asker)
{
    const struct place place = place_of(r->claim->options.paths[0]);
    struct sight seen;
    char end[LAST_RUN_TEXT];
    enum zkl_errand_answer answer = look(asker, &place, &seen);
    if (answer == ZKL_ERRAND_NO_NODE) /* forgotten, as was asked for */
        return 0;
    if (answer == ZKL_ERRAND_LOST)
        return AGAIN;
    if (answer != ZKL_ERRAND_OK)
        return fail_answer(&place, &seen.e);
    bool ours = !seen.is_foreign && strcmp(seen.text, r->text) == 0;
    if (ours)
        r->run.begun_ms = seen.e.mtime_ms;
    if (r->run.end == RUN_NOT_STARTED && r->former[0])
        strcpy(end, r->former);
    else
        last_run_write(&r->run, end);
    if (!seen.is_foreign && strcmp(seen.text, end) == 0)
        return 0; /* the answer was lost */
    if (!ours)
        return r->written ? fail(EXIT_CONFLICT, "another client changed %s while the command ran",
                                 place.node)
                          : 0;
    const struct zkl_part set = {ZKL_PART_SET, place.node, end, seen.e.version};
    struct zkl_errand e = write_all(asker, &set, 1);
    if (e.answer == ZKL_ERRAND_BAD_VERSION || e.answer == ZKL_ERRAND_NO_NODE ||
        e.answer == ZKL_ERRAND_LOST)
        return AGAIN;
    return e.answer == ZKL_ERRAND_OK ? 0 : fail_answer(&place, &e);
}

void record_end(struct record *r, enum run_end end, int value)
{
    int64_t now = boot_ns(), until = zkl_now_ns() + END_MS * MS_NS;
    struct asker asker = {.client = r->claim->client, .deadline_ns = until};
    int rc;
    r->run.end = end;
    r->run.value = value;
    r->run.took_ms = (now - r->begun_ns) / MS_NS;
    while ((rc = try_end(r, &asker)) == AGAIN && zkl_now_ns() < until)
        poll(NULL, 0, AGAIN_MS);
    if (rc != 0)
        say(r->written
                ? "how the command ended is not recorded: with --retry-failed it will run again"
                : "the run may be recorded as begun: then it will not run again without "
                  "--retry-failed");
}

/* --- for others ---------------------------------------------------------- */

bool record_read(struct asker *asker, const char *path, struct last_run *run)
{
    const struct place place = place_of(path);
    struct sight seen;
    enum zkl_errand_answer answer = read_node(asker, place.node, &seen);
    *run = (struct last_run){.end = RUN_NEVER};
    if (answer == ZKL_ERRAND_OK && !seen.is_foreign)
        *run = seen.last;
    return answer == ZKL_ERRAND_OK || answer == ZKL_ERRAND_NO_NODE;
}

static int fail_unknown(const struct place *place)
{
    return fail(EXIT_CONFLICT, "no run is recorded: the node %s does not exist", place->node);
}

static int fail_forget(const struct place *place, const struct zkl_errand *e)
{
    if (e->answer != ZKL_ERRAND_DENIED)
        return fail_answer(place, e);
    return fail(EXIT_DENIED,
                "an ACL forbids removing the record: that takes READ of %s, and DELETE on the node "
                "above, or WRITE of its own",
                place->node);
}

/* Only the version that was read: a run that begins meanwhile is not forgotten. */
int record_forget(struct asker *asker, const char *path)
{
    const struct place place = place_of(path);
    struct sight seen;
    enum zkl_errand_answer answer = read_node(asker, place.node, &seen);
    if (seen.is_foreign)
        return fail_foreign(&place);
    if (answer != ZKL_ERRAND_OK)
        return answer == ZKL_ERRAND_NO_NODE ? fail_unknown(&place) : fail_forget(&place, &seen.e);
    const struct zkl_part deletion = {ZKL_PART_DELETE, place.node, NULL, seen.e.version};
    const struct zkl_part emptying = {ZKL_PART_SET, place.node, "", seen.e.version};
    struct zkl_errand e = write_all(asker, &deletion, 1);
    if (e.answer == ZKL_ERRAND_DENIED)
        e = write_all(asker, &emptying, 1);
    if (e.answer == ZKL_ERRAND_NO_NODE)
        return fail_unknown(&place);
    if (e.answer == ZKL_ERRAND_NOT_EMPTY)
        return fail(EXIT_CONFIG,
                    "%s has nodes below it that do not belong to zklock: delete those first",
                    place.node);
    if (e.answer == ZKL_ERRAND_BAD_VERSION)
        return fail(EXIT_CONFLICT,
                    "a run has just begun or ended: look at it before you remove its record");
    if (e.answer == ZKL_ERRAND_LOST)
        return fail(EXIT_NO_SERVER,
                    "%s: no server has answered, so it may be removed: try again to know",
                    place.node);
    return e.answer == ZKL_ERRAND_OK ? 0 : fail_forget(&place, &e);
}
