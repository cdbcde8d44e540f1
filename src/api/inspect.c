/* SPDX-License-Identifier: Apache-2.0
 *
 * One inspection of a lock: list it, read each child, and judge the children as contenders judge
 * each other (src/core/listing.c). This file owns the result until the user frees it. Users call it
 * from any thread, without a lock held; it blocks in awaited_query.c, up to the deadline given. */
#include <zklock/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/listing.h"
#include "driver/clock.h"
#include "error.h"
#include "awaited_query.h"

#define MS INT64_C(1000000)
#define AT_ONCE 512 /* children that are asked about in one go */
#define LEASES "leases"
#define LOCKS "locks"

/* --- the inspection's memory -------------------------------------------- */

struct text {
    struct text *next;
    char text[];
};

/* Its first member is the caller's result. */
struct inspection {
    struct zkl_inspection seen;
    struct zkl_entry *entries;
    struct text *texts;
};

void zkl_inspection_free(const struct zkl_inspection *inspection)
{
    struct inspection *all = (struct inspection *)inspection;
    if (!all)
        return;
    while (all->texts) {
        struct text *text = all->texts;
        all->texts = text->next;
        free(text);
    }
    free(all->entries);
    free(all);
}

/* A copy of the three, one after the other; NULL: no memory. */
static const char *keep_text(struct inspection *all, const char *a, size_t length_a, const char *b,
                             const char *c)
{
    size_t length_b = strlen(b), length_c = strlen(c);
    struct text *text = malloc(sizeof *text + length_a + length_b + length_c + 1);
    if (!text)
        return NULL;
    memcpy(text->text, a, length_a);
    memcpy(text->text + length_a, b, length_b);
    memcpy(text->text + length_a + length_b, c, length_c + 1);
    text->next = all->texts;
    all->texts = text;
    return text->text;
}

/* --- children ----------------------------------------------------------- */

struct child {
    enum zkl_listed_in in;
    bool denied;
    const char *name; /* the end of the path in its question, which is the inspection's */
};

struct look {
    struct zkl_client *client;
    const char *path;
    int64_t deadline;
    struct inspection *all;
    struct child *children;
    struct zkl_awaited_query *queries; /* about each of them */
    size_t count;
    int permits;
};

static int fail_answer(const struct zkl_awaited_query *q)
{
    const char *path = q->query.path;
    if (q->answer == ZKL_ANSWER_NOAUTH)
        return zkl_fail(ZKL_EACCES, "zkl_inspect: %.512s: the ACL denies READ", path);
    return zkl_fail(zkl_answer_code(q->answer), "zkl_inspect: %.512s: ZooKeeper returned %d", path,
                    q->number);
}

static int request(const struct look *look, struct zkl_awaited_query *queries, size_t count)
{
    int rc = zkl_query_all(look->client, queries, count, look->deadline, NULL);
    return rc == 0 ? 0 : zkl_fail(rc, "zkl_inspect: %s", look->path);
}

static int no_memory(const struct look *look)
{
    return zkl_fail(ZKL_ENOMEM, "zkl_inspect: %s", look->path);
}

static bool grow(struct look *look, size_t by)
{
    size_t room = look->count + by + 1;
    struct child *children = realloc(look->children, room * sizeof *children);
    if (children)
        look->children = children;
    struct zkl_awaited_query *queries = realloc(look->queries, room * sizeof *queries);
    if (queries)
        look->queries = queries;
    return children && queries;
}

static bool is_top(const char *path)
{
    return strcmp(path, "/") == 0;
}

/* The names of a list become children to be asked about. */
static int add_children(struct look *look, const struct zkl_awaited_query *list,
                        enum zkl_listed_in in, const char *skip, const char *skip_too)
{
    if (!grow(look, list->child_count))
        return no_memory(look);
    for (size_t i = 0; i < list->child_count; i++) {
        const char *name = list->children[i];
        if ((skip && strcmp(name, skip) == 0) || (skip_too && strcmp(name, skip_too) == 0))
            continue;
        size_t length = is_top(list->query.path) ? 0 : strlen(list->query.path);
        const char *path = keep_text(look->all, list->query.path, length, "/", name);
        if (!path)
            return no_memory(look);
        look->children[look->count] = (struct child){.in = in, .name = path + length + 1};
        look->queries[look->count++] = zkl_awaited_query_of(ZKL_REQ_GET, path);
    }
    return 0;
}

/* --- the layout of a semaphore ------------------------------------------ */

static bool has_child(const struct zkl_awaited_query *list, const char *name)
{
    for (size_t i = 0; i < list->child_count; i++) {
        if (strcmp(list->children[i], name) == 0)
            return true;
    }
    return false;
}

static bool has_contender(const struct zkl_awaited_query *list, bool leases)
{
    static const struct zkl_naming permit = {.role = ZKL_ROLE_PERMIT};
    struct zkl_naming naming;
    struct zkl_node_name place;
    for (size_t i = 0; i < list->child_count; i++) {
        const char *name = list->children[i];
        if (leases ? zkl_name_parse(name, &permit, &place)
                   : zkl_name_recognise(name, &naming, &place))
            return true;
    }
    return false;
}

enum { LIST_LEASES, GET_LEASES, LIST_LOCKS, SEMAPHORE_QUESTIONS };

/* A permit makes it one, whatever else is there: a server removes "locks" when it has become empty.
 * Without permits, contenders in "locks" alone, or in the path itself, are those of other locks. */
static bool is_semaphore(const struct zkl_awaited_query *lock_path,
                         const struct zkl_awaited_query *q)
{
    if (has_contender(&q[LIST_LEASES], true))
        return true;
    bool both = q[LIST_LEASES].answer == ZKL_ANSWER_OK && q[LIST_LOCKS].answer == ZKL_ANSWER_OK;
    return both && !has_contender(&q[LIST_LEASES], false) &&
           (has_contender(&q[LIST_LOCKS], false) || !has_contender(lock_path, false));
}

static int take_semaphore(struct look *look, const struct zkl_awaited_query *lock_path,
                          const struct zkl_awaited_query *q)
{
    for (int i = 0; i < SEMAPHORE_QUESTIONS; i++) {
        if (q[i].answer != ZKL_ANSWER_OK && q[i].answer != ZKL_ANSWER_NONODE)
            return fail_answer(&q[i]);
    }
    if (!is_semaphore(lock_path, q))
        return add_children(look, lock_path, ZKL_IN_LOCK_PATH, NULL, NULL);
    look->all->seen.kind = ZKL_LOCK_KIND_SEMAPHORE;
    if (q[GET_LEASES].data && q[GET_LEASES].data_size <= ZKL_ANSWER_DATA_MAX)
        look->permits = zkl_permits_parse(q[GET_LEASES].data, q[GET_LEASES].data_size);
    int rc = add_children(look, lock_path, ZKL_IN_LOCK_PATH, LEASES, LOCKS);
    if (rc == 0)
        rc = add_children(look, &q[LIST_LEASES], ZKL_IN_LEASES, NULL, NULL);
    if (rc == 0)
        rc = add_children(look, &q[LIST_LOCKS], ZKL_IN_LOCKS, NULL, NULL);
    return rc;
}

static int list_semaphore(struct look *look, const struct zkl_awaited_query *lock_path)
{
    size_t length = strlen(look->path);
    const char *leases = keep_text(look->all, look->path, length, "/", LEASES);
    const char *locks = keep_text(look->all, look->path, length, "/", LOCKS);
    if (!leases || !locks)
        return no_memory(look);
    struct zkl_awaited_query q[SEMAPHORE_QUESTIONS] = {
        [LIST_LEASES] = zkl_awaited_query_of(ZKL_REQ_LIST_LOCK_PATH, leases),
        [GET_LEASES] = zkl_awaited_query_of(ZKL_REQ_GET, leases),
        [LIST_LOCKS] = zkl_awaited_query_of(ZKL_REQ_LIST_LOCK_PATH, locks),
    };
    int rc = request(look, q, SEMAPHORE_QUESTIONS);
    if (rc == 0)
        rc = take_semaphore(look, lock_path, q);
    zkl_awaited_query_clear(q, SEMAPHORE_QUESTIONS);
    return rc;
}

/* --- looking ------------------------------------------------------------ */

static int list_lock_path(struct look *look, const struct zkl_awaited_query *lock_path)
{
    if (lock_path->answer == ZKL_ANSWER_NONODE)
        return 0;
    if (lock_path->answer != ZKL_ANSWER_OK)
        return fail_answer(lock_path);
    if (has_child(lock_path, LEASES))
        return list_semaphore(look, lock_path);
    return add_children(look, lock_path, ZKL_IN_LOCK_PATH, NULL, NULL);
}

/* Up to date: behind a sync, as a server can lag behind. */
static int list(struct look *look)
{
    struct zkl_awaited_query q[] = {zkl_awaited_query_of(ZKL_REQ_SYNC, look->path),
                                    zkl_awaited_query_of(ZKL_REQ_LIST_LOCK_PATH, look->path)};
    int rc = request(look, q, 2);
    if (rc == 0)
        rc = list_lock_path(look, &q[1]);
    zkl_awaited_query_clear(q, 2);
    return rc;
}

/* Not all together: their number has no bound. */
static int query_all(const struct look *look, struct zkl_awaited_query *queries, size_t count)
{
    int rc = 0;
    for (size_t at = 0; at < count && rc == 0; at += AT_ONCE)
        rc = request(look, &queries[at], count - at < AT_ONCE ? count - at : AT_ONCE);
    return rc;
}

static bool is_denied(const struct zkl_awaited_query *q)
{
    return q->answer == ZKL_ANSWER_NOAUTH;
}

/* The server asks for the right only once it has found the node. */
static bool is_there(const struct zkl_awaited_query *q)
{
    return q->answer == ZKL_ANSWER_OK || is_denied(q);
}

/* A query of a node without the right to read it: a newer server reveals only that the node
 * exists. */
static int query_denied(struct look *look)
{
    size_t denied = 0, n = 0;
    for (size_t i = 0; i < look->count; i++) {
        look->children[i].denied = is_denied(&look->queries[i]);
        denied += look->children[i].denied;
    }
    if (denied == 0)
        return 0;
    struct zkl_awaited_query *again = malloc(denied * sizeof *again);
    if (!again)
        return no_memory(look);
    for (size_t i = 0; i < look->count; i++) {
        if (is_denied(&look->queries[i]))
            again[n++] = zkl_awaited_query_of(ZKL_REQ_STAT, look->queries[i].query.path);
    }
    int rc = query_all(look, again, denied);
    n = 0;
    for (size_t i = 0; i < look->count && rc == 0; i++) {
        if (look->children[i].denied)
            look->queries[i] = again[n++];
    }
    free(again);
    return rc;
}

static int query_children(struct look *look)
{
    int rc = query_all(look, look->queries, look->count);
    if (rc == 0)
        rc = query_denied(look);
    for (size_t i = 0; i < look->count && rc == 0; i++) {
        const struct zkl_awaited_query *q = &look->queries[i];
        if (!is_there(q) && q->answer != ZKL_ANSWER_NONODE)
            rc = fail_answer(q);
    }
    return rc;
}

/* --- filling in entries ------------------------------------------------- */

/* A number without sign at the end or before a blank; NULL: there is none. */
static const char *take_number(const char *at, int64_t *number)
{
    size_t digits = strspn(at, "0123456789");
    if (digits == 0 || digits > 18 || (at[digits] != ' ' && at[digits] != '\0'))
        return NULL;
    *number = strtoll(at, NULL, 10);
    return at + digits;
}

/* What zklock run adds when it runs under another lock: " under TOKEN". */
static bool is_under(const char *at)
{
    static const char under[] = " under ";
    size_t length = sizeof under - 1;
    if (strncmp(at, under, length) != 0)
        return false;
    size_t digits = strspn(at + length, "0123456789");
    return digits > 0 && at[length + digits] == '\0';
}

/* "host pid thread". */
static bool parse_owner(struct inspection *all, struct zkl_entry *e)
{
    size_t length = strcspn(e->owner, " ");
    int64_t pid, thread;
    const char *at = e->owner + length;
    e->host = "";
    if (length == 0 || *at != ' ' || !(at = take_number(at + 1, &pid)) || *at != ' ' ||
        !(at = take_number(at + 1, &thread)) || (*at != '\0' && !is_under(at)))
        return true;
    e->host = keep_text(all, e->owner, length, "", "");
    e->pid = pid;
    e->thread = thread;
    return e->host != NULL;
}

static bool fill_owner(struct inspection *all, struct zkl_entry *e,
                       const struct zkl_awaited_query *q)
{
    e->owner = "";
    e->revoke_requested = q->data && zkl_is_revocation(q->data, q->data_size);
    bool is_text = q->data && q->data_size <= ZKL_ANSWER_DATA_MAX &&
                   zkl_text_is_printable(q->data, q->data_size);
    if (is_text && !e->revoke_requested)
        e->owner = keep_text(all, q->data, q->data_size, "", "");
    return e->owner && parse_owner(all, e);
}

static bool fill_entry(struct inspection *all, const struct zkl_listed *listed, bool denied,
                       const struct zkl_awaited_query *q, int64_t now_ms)
{
    static const char *const peers[] = {
        [ZKL_PEER_CURATOR] = "curator",
        [ZKL_PEER_KAZOO] = "kazoo",
        [ZKL_PEER_ZOOKEEPER] = "zookeeper",
    };
    struct zkl_entry *e = &all->entries[all->seen.count++];
    bool contends = listed->role != ZKL_ENTRY_ROLE_FOREIGN;
    int64_t age_ms = q->czxid != 0 ? now_ms - q->ctime_ms : 0;
    *e = (struct zkl_entry){.size = sizeof *e,
                            .role = listed->role,
                            .access = listed->access,
                            .node_path = q->query.path,
                            .peer = contends ? peers[listed->place.peer] : "",
                            .sequence = contends ? listed->place.sequence : 0,
                            .czxid = (uint64_t)q->czxid,
                            .session = q->session,
                            .age_ms = age_ms > 0 ? age_ms : 0,
                            .denied = denied,
                            .waits_for = listed->waits_for,
                            .children = q->node_children > 0 ? (size_t)q->node_children : 0};
    bool named = contends && listed->naming.names == ZKL_NAMES_NAMED;
    e->name = named ? keep_text(all, listed->naming.name, strlen(listed->naming.name), "", "") : "";
    return e->name && fill_owner(all, e, q);
}

static int fill_entries(struct look *look, struct zkl_listed *listed)
{
    struct inspection *all = look->all;
    size_t count = 0;
    for (size_t i = 0; i < look->count; i++) {
        const struct zkl_awaited_query *q = &look->queries[i];
        if (is_there(q)) /* else the child has been deleted meanwhile */
            listed[count++] = (struct zkl_listed){.name = look->children[i].name,
                                                  .in = look->children[i].in,
                                                  .session = q->session,
                                                  .given = i};
    }
    enum zkl_lock_kind kind = zkl_listing_judge(listed, count, look->permits);
    if (all->seen.kind == ZKL_LOCK_KIND_NONE) /* else what surrounds the contenders decides */
        all->seen.kind = kind;
    all->seen.permits = look->permits;
    all->entries = calloc(count + 1, sizeof *all->entries);
    all->seen.entries = all->entries;
    int64_t now_ms = zkl_clock_real_ms();
    for (size_t i = 0; i < count; i++) {
        size_t given = listed[i].given;
        if (!all->entries || !fill_entry(all, &listed[i], look->children[given].denied,
                                         &look->queries[given], now_ms))
            return no_memory(look);
    }
    return all->entries ? 0 : no_memory(look);
}

static int look_at(struct look *look)
{
    int rc = list(look);
    if (rc == 0)
        rc = query_children(look);
    if (rc != 0)
        return rc;
    struct zkl_listed *listed = calloc(look->count + 1, sizeof *listed);
    rc = listed ? fill_entries(look, listed) : no_memory(look);
    free(listed);
    return rc;
}

static int inspect(struct zkl_client *client, const char *path, int64_t timeout_ms,
                   const struct zkl_inspection **inspection)
{
    struct look look = {.client = client,
                        .path = path,
                        .deadline = zkl_clock_mono_ns() + timeout_ms * MS,
                        .all = calloc(1, sizeof *look.all)};
    if (!look.all)
        return no_memory(&look);
    look.all->seen.size = sizeof look.all->seen;
    zkl_client_ref(client);
    int rc = look_at(&look);
    zkl_awaited_query_clear(look.queries, look.count);
    free(look.queries);
    free(look.children);
    zkl_client_unref(client);
    if (rc == 0)
        *inspection = &look.all->seen;
    else
        zkl_inspection_free(&look.all->seen);
    return rc;
}

static int check(struct zkl_client *client, const char *path, int64_t timeout_ms,
                 const struct zkl_inspection **inspection)
{
    static const char call[] = "zkl_inspect";
    if (!client || !path || !inspection)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call,
                        !client ? "client" : (!path ? "path" : "inspection"));
    const char *fault = is_top(path) ? NULL : zkl_path_fault(path);
    if (fault)
        return zkl_fail(ZKL_EBADPATH, "\"%.64s\" %s", path, fault);
    if (zkl_check_ms(timeout_ms, call) != 0)
        return ZKL_EBADTIMEOUT;
    return zkl_query_check(client, call);
}

int zkl_inspect(struct zkl_client *client, const char *path, int64_t timeout_ms,
                const struct zkl_inspection **inspection)
{
    int rc = check(client, path, timeout_ms, inspection);
    if (rc != 0)
        return rc;
    ZKL_SHIELDED();
    return inspect(client, path, timeout_ms, inspection);
}
