/* SPDX-License-Identifier: Apache-2.0 */
#define CALLED_DEFINE
#include "goods.h"

#include <string.h>

/* --- the objects ------------------------------------------------------------------------------ */

static const char *below(const char *name, const char *part)
{
    static _Thread_local char path[300];

    snprintf(path, sizeof path, "%s-%s", name, part);
    return path;
}

void goods_make(struct goods *g, const struct zkl_client_options *options,
                struct zkl_client *client, const char *name)
{
    struct zkl_mutex_options of_mutex = ZKL_MUTEX_OPTIONS_INIT;
    struct zkl_lock_options counted = ZKL_LOCK_OPTIONS_INIT;

    *g = (struct goods){.client = client,
                        .options = *options,
                        .wait = ZKL_WAIT_INIT,
                        .timeout_ms = 5000,
                        .lease_ms = 600000,
                        .done_fn = note_completion};
    snprintf(g->path, sizeof g->path, "%s", name);
    of_mutex.metrics = counted.metrics = 1;
    of_mutex.revocable = 1;

    check_ok(zkl_mutex_new(&g->mutex, client, below(name, "mutex"), &of_mutex));
    check_ok(zkl_rwlock_new(&g->rwlock, client, below(name, "rwlock"), NULL));
    check_ok(zkl_semaphore_new(&g->semaphore, client, below(name, "semaphore"), 2, &counted));
    struct zkl_member members[] = {zkl_member_mutex(g->mutex),
                                   zkl_member_mutex(zkl_rwlock_writer(g->rwlock))};
    check_ok(zkl_multi_new(&g->multi, client, members, 2));
    check_ok(zkl_owner_new(&g->owner));
    check_ok(zkl_cancel_new(&g->cancel));
}

void goods_hold(struct goods *g)
{
    check_ok(zkl_multi_lock(g->multi));
    check_ok(zkl_semaphore_acquire(g->semaphore, 1, NULL, &g->permit));
}

void goods_let_go(struct goods *g)
{
    check_ok(zkl_multi_unlock(g->multi, NULL));
    check_ok(zkl_permit_release(g->permit));
    g->permit = NULL;
}

void goods_free(struct goods *g)
{
    enum { FREED_WITHIN_MS = 60000 }; /* operations may still be ending */

    check_wait(zkl_multi_free(g->multi) == 0, FREED_WITHIN_MS);
    check_wait(zkl_semaphore_free(g->semaphore) == 0, FREED_WITHIN_MS);
    check_wait(zkl_owner_free(g->owner) == 0, FREED_WITHIN_MS);
    for (int i = 0; i < g->others_count; i++)
        check_wait(zkl_owner_free(g->others[i]) == 0, FREED_WITHIN_MS);

    check_ok(zkl_rwlock_free(g->rwlock));
    check_ok(zkl_mutex_free(g->mutex));
    zkl_cancel_free(g->cancel);
}

/* --- a call ----------------------------------------------------------------------------------- */

#define AT(pointer) (int64_t)(intptr_t)(pointer)

/* What a call before it stored is gone; a histogram is asked for what was stored. */
static void clear_answers(struct goods *g, const struct call *call)
{
    memset(&g->made, 0, sizeof g->made);
    g->standing = (struct zkl_standing)ZKL_STANDING_INIT;
    for (int i = 0; i < GOODS_MEMBERS; i++)
        g->grants[i] = (struct zkl_grant)ZKL_GRANT_INIT;
    g->client_metrics = (struct zkl_client_metrics)ZKL_CLIENT_METRICS_INIT;
    if (!call_has(call, "histogram"))
        g->lock_metrics = (struct zkl_lock_metrics)ZKL_LOCK_METRICS_INIT;
}

int64_t goods_call(struct goods *g, const struct call *call, unsigned nulls)
{
    static const char nobody[] = "/nobody/_c_00000000-0000-4000-8000-000000000000-lock-0000000001";
    struct zkl_member member =
        g->mutex != NULL ? zkl_member_mutex(g->mutex) : (struct zkl_member)ZKL_MEMBER_INIT;
    struct zkl_mutex_options of_mutex = ZKL_MUTEX_OPTIONS_INIT;
    struct zkl_lock_options of_lock = ZKL_LOCK_OPTIONS_INIT;

    const int64_t values[ARGS] = {
        [ARG_CLIENT] = AT(g->client),
        [ARG_MUTEX] = AT(g->mutex),
        [ARG_RWLOCK] = AT(g->rwlock),
        [ARG_SEMAPHORE] = AT(g->semaphore),
        [ARG_PERMIT] = AT(g->permit),
        [ARG_MULTI] = AT(g->multi),
        [ARG_OWNER] = AT(g->owner),
        [ARG_CANCEL] = AT(g->cancel),
        [ARG_INSPECTION] = AT(g->seen),
        [ARG_PATH] = AT(g->path),
        [ARG_NODE_PATH] = AT(nobody),
        [ARG_SERVERS] = AT(g->options.servers),
        [ARG_CLIENT_OPTIONS] = AT(&g->options),
        [ARG_MUTEX_OPTIONS] = AT(&of_mutex),
        [ARG_LOCK_OPTIONS] = AT(&of_lock),
        [ARG_MEMBER] = AT(&member),
        [ARG_WAIT] = AT(&g->wait),
        [ARG_GRANT] = AT(g->grants),
        [ARG_STANDING] = AT(&g->standing),
        [ARG_LOCK_METRICS] = AT(&g->lock_metrics),
        [ARG_CLIENT_METRICS] = AT(&g->client_metrics),
        [ARG_HISTOGRAM] = AT(&g->lock_metrics.wait),
        [ARG_GUARD] = AT(g->guards),
        [ARG_CHROOT] = AT(""),
        [ARG_BUF] = AT(g->text),
        [ARG_SIZE] = sizeof g->text,
        [ARG_NUMBER] = AT(&g->number),
        [ARG_REASON] = AT(&g->reason),
        [ARG_CODES] = AT(g->codes),
        [ARG_FN] = call_ends(call, "_callback") ? 0 : AT(g->done_fn),
        [ARG_ARG] = AT(&g->done),
        [ARG_OUT_CLIENT] = AT(&g->made.client),
        [ARG_OUT_MUTEX] = AT(&g->made.mutex),
        [ARG_OUT_RWLOCK] = AT(&g->made.rwlock),
        [ARG_OUT_SEMAPHORE] = AT(&g->made.semaphore),
        [ARG_OUT_PERMIT] = AT(g->made.permits),
        [ARG_OUT_MULTI] = AT(&g->made.multi),
        [ARG_OUT_OWNER] = AT(&g->made.owner),
        [ARG_OUT_CANCEL] = AT(&g->made.cancel),
        [ARG_OUT_INSPECTION] = AT(&g->made.seen),
        [ARG_OUT_OP] = AT(&g->op),
        [ARG_TIMEOUT_MS] = g->timeout_ms,
        [ARG_NEED_MS] = g->need_ms,
        [ARG_LEASE_MS] = g->lease_ms,
        [ARG_RETAIN_MS] = g->retain_ms,
        [ARG_DEADLINE_NS] = ZKL_NO_DEADLINE,
        [ARG_CODE] = ZKL_EFORK,
        [ARG_PERMITS] = 2,
        [ARG_COUNT] = g->count > 0 ? g->count : 1,
        [ARG_COUNT_ROOM] = call_is_of(call, ARG_MULTI) ? 2 : 1, /* of guards; of members */
        [ARG_MAX] = 1,
        [ARG_OP] = (int64_t)g->asked_op,
        [ARG_BUCKET] = 1,
        [ARG_PERCENT] = 50,
    };
    int64_t args[sizeof call->args / sizeof call->args[0]] = {0};

    of_mutex.metrics = of_lock.metrics = 1;
    clear_answers(g, call);
    for (int i = 0; i < call->count; i++) {
        const void *instead = g->instead[call->args[i]];
        args[i] = nulls >> i & 1 ? 0 : instead != NULL ? AT(instead) : values[call->args[i]];
    }
    return call->make(args);
}

static bool acquires(const struct call *call)
{
    return call_has(call, "_acquire") || call_ends(call, "lock_for") ||
           call_ends(call, "lock_until") || call_ends(call, "_lock") || call_ends(call, "_trylock");
}

/* Where the start is refused nothing has changed: it is done all the same, once there is memory again. */
static int release_async(struct goods *g, const struct call *call, struct zkl_permit *permit)
{
    enum { TRIES = 2000 }; /* tests/fault/alloc.c refuses 1000 in a row at most */
    int rc = ZKL_ENOMEM;

    for (int i = 0; i < TRIES && rc == ZKL_ENOMEM; i++) {
        if (permit != NULL)
            rc = zkl_permit_release_async(permit, g->done_fn, &g->done);
        else if (call_has(call, "_mutex_"))
            rc = zkl_mutex_unlock_async(g->owner, g->mutex, g->done_fn, &g->done);
        else
            rc = zkl_multi_unlock_async(g->owner, g->multi, NULL, g->done_fn, &g->done);
    }
    return rc != 0 ? rc : completion_code(&g->done);
}

static int release(struct goods *g, const struct call *call, struct zkl_permit *permit)
{
    if (call_ends(call, "_async"))
        return release_async(g, call, permit);
    if (permit != NULL)
        return zkl_permit_release(permit);
    return call_has(call, "_mutex_") ? zkl_mutex_unlock(g->mutex)
                                     : zkl_multi_unlock(g->multi, NULL);
}

int goods_undo(struct goods *g, const struct call *call, int64_t answer)
{
    if (call_ends(call, "_owner_use"))
        zkl_owner_use(NULL);

    check_ok(g->made.client != NULL ? zkl_client_free(g->made.client) : 0);
    check_ok(zkl_mutex_free(g->made.mutex));
    check_ok(zkl_rwlock_free(g->made.rwlock));
    check_ok(zkl_semaphore_free(g->made.semaphore));
    check_ok(zkl_multi_free(g->made.multi));
    check_ok(zkl_owner_free(g->made.owner));
    zkl_cancel_free(g->made.cancel);
    zkl_inspection_free(g->made.seen);
    bool begun = call_ends(call, "_async");
    if (answer != 0 || (begun && g->done_fn != note_completion))
        return 0;
    int rc = begun ? completion_code(&g->done) : 0;
    if (rc != 0 || !acquires(call))
        return rc;
    rc = release(g, call, g->made.permits[0]);
    int other = g->made.permits[1] != NULL ? release(g, call, g->made.permits[1]) : 0;
    return rc != 0 ? rc : other;
}

/* --- what it should answer -------------------------------------------------------------------- */

bool call_has(const struct call *call, const char *part)
{
    return strstr(call->name, part) != NULL;
}

bool call_ends(const struct call *call, const char *end)
{
    size_t n = strlen(call->name), m = strlen(end);

    return n >= m && strcmp(call->name + n - m, end) == 0;
}

bool call_is_of(const struct call *call, enum arg kind)
{
    return call->count > 0 && call->args[0] == kind;
}

bool call_is_of_own(const struct call *call)
{
    return call_is_of(call, ARG_MUTEX) || call_is_of(call, ARG_MULTI) ||
           call_is_of(call, ARG_OWNER);
}

#define ANY INT64_MIN

/* What the rules below do not say. */
static const struct {
    const char *name;
    int64_t due[AFTER_CLOSE + 1];
} others[] = {
    {"zkl_client_session_id", {1, 1, ANY, 0, 0}}, /* a callback's state may be any */
    {"zkl_client_server", {1, 1, ANY, ZKL_EFORK, ZKL_ECLOSED}},

    {"zkl_semaphore_permits", {1, 1, 1, 0, 1}},
    {"zkl_semaphore_waiting", {0, 0, 0, 0, 0}},
    {"zkl_op_waiting", {0, 0, 0, 0, 0}},
    {"zkl_mutex_waiting", {0, 0, 0, 0, 0}},
    {"zkl_mutex_revoke_requested", {0, 0, 0, 0, 0}},
    {"zkl_permit_revoke_requested", {0, 0, 0, 0, 0}},
    {"zkl_mutex_hold_count", {1, 0, 0, 0, 1}}, /* an unlock is due */
    {"zkl_mutex_hold_state", {1, 0, 0, 0, 1}}, /* lost */
    {"zkl_multi_hold_state", {1, 0, 0, 0, 1}},
    {"zkl_permit_hold_state", {1, 1, 1, 0, 1}},
    {"zkl_mutex_node_path", {1, ZKL_ENOTOWNER, ZKL_ENOTOWNER, ZKL_EFORK, 1}},
    {"zkl_multi_node_path", {1, ZKL_ENOTOWNER, ZKL_ENOTOWNER, ZKL_EFORK, 1}},
    {"zkl_guard_multi_paths", {1, ZKL_ENOTOWNER, ZKL_ENOTOWNER, ZKL_EFORK, ZKL_ELOST}},
    {"zkl_revoke", {ZKL_ENONODE, ZKL_ENONODE, ZKL_EINCALLBACK, ZKL_EFORK, ZKL_ECLOSED}},
    {"zkl_break", {ZKL_ENONODE, ZKL_ENONODE, ZKL_EINCALLBACK, ZKL_EFORK, ZKL_ECLOSED}},
    {"zkl_client_dispatch", {ZKL_EINVAL, ZKL_EINVAL, ZKL_EINCALLBACK, ZKL_EFORK, ZKL_EINVAL}},
    {"zkl_permit_release_async", {ZKL_EINVAL, ZKL_EINVAL, ZKL_EINVAL, ZKL_EFORK, ZKL_EINVAL}},
    {"zkl_client_close_async", {ZKL_EINVAL, ZKL_EINVAL, ZKL_EINVAL, ZKL_EFORK, ZKL_EINVAL}},
    {"zkl_owner_free", {0, 0, 0, ZKL_EFORK, 0}},
    {"zkl_owner_use", {0, 0, 0, 0, 0}},     /* NULL: the thread itself was used before */
    {"zkl_cancel_is_set", {1, 1, 1, 1, 1}}, /* by the call before it */
    {"zkl_error_is_retryable", {0, 0, 0, 0, 0}},
    {"zkl_error_is_lost", {0, 0, 0, 0, 0}},
    {"zkl_histogram_percentile_ns", {ANY, ANY, ANY, ANY, ANY}},
};

bool call_is_of_client(const struct call *call)
{
    return call_is_of_own(call) || call_is_of(call, ARG_CLIENT) || call_is_of(call, ARG_PERMIT) ||
           call_is_of(call, ARG_SEMAPHORE);
}

int64_t goods_due(const struct call *call, enum goods_where where)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(others[i].name, call->name) == 0)
            return others[i].due[where];
    }
    if (where == IN_A_CHILD && call_says(call, ZKL_EFORK))
        return ZKL_EFORK;
    if (where == IN_A_CALLBACK && call->waits)
        return ZKL_EINCALLBACK;
    if (where == AFTER_CLOSE && call_says(call, ZKL_ECLOSED))
        return ZKL_ECLOSED;
    if (call_ends(call, "_free") && call_says(call, ZKL_EBUSY))
        return ZKL_EBUSY;
    if (where == AFTER_CLOSE && call_says(call, ZKL_ELOST) && !call_ends(call, "_async"))
        return ZKL_ELOST;
    if (call_is_of_own(call) && call_says(call, ZKL_ENOTOWNER) &&
        (where != BY_THE_HOLDER || call_ends(call, "_async")))
        return ZKL_ENOTOWNER;
    if (call->answer == ANSWERS_QUESTION)
        return where == BY_THE_HOLDER || !call_is_of_client(call) ||
               (where < IN_A_CHILD && !call_is_of_own(call));

    bool some =
        call_ends(call, "_path") || call_ends(call, "_prometheus") || call_ends(call, "_get_state");
    return call->answer == ANSWERS_POINTER || (some && !call_has(call, "guard"));
}

static void ignore(int code, void *arg)
{
    (void)code, (void)arg;
}

/* NULL, or what is wrong with the answer. */
const char *goods_wrong(const struct call *call, enum goods_where where, int64_t said)
{
    int64_t due = goods_due(call, where);

    if (due == ANY)
        return NULL;
    if ((said > 0 ? 1 : said) != due)
        return "another answer";
    if (due < 0 && strstr(zkl_error_detail(), zkl_strerror((int)due)) == NULL)
        return "another detail";
    if (where == IN_A_CHILD && call->answer == ANSWERS_QUESTION && call_is_of_client(call) &&
        (strstr(zkl_error_detail(), zkl_strerror(ZKL_EFORK)) == NULL ||
         strstr(zkl_error_detail(), call->name) == NULL))
        return "no reason for a no";
    return NULL;
}

bool goods_leave_out(const struct call *call, enum goods_where where)
{
    if (where == IN_ANOTHER_THREAD)
        return call->waits;
    bool frees = call_ends(call, "_free") && (where == AFTER_CLOSE || call_is_of(call, ARG_CLIENT));
    return where != IN_A_CALLBACK && where != IN_A_CHILD &&
           (frees || call_ends(call, "_unlock") || call_ends(call, "_release") ||
            call_ends(call, "_close") || call_ends(call, "_event_fd"));
}

/* With an owner that the process made itself, and that the operation of a multi-lock may keep. */
static int64_t call_with_another_owner(struct goods *g, const struct call *call)
{
    struct zkl_owner *owner = g->owner;

    check_ok(zkl_owner_new(&g->owner));
    int64_t said = goods_call(g, call, 0);
    if (call_ends(call, "_use"))
        check_true(zkl_owner_use(NULL) == g->owner);
    goods_undo(g, call, said);
    check_num(g->others_count, <, GOODS_OWNERS);
    g->others[g->others_count++] = g->owner;
    g->owner = owner;
    return said;
}

int64_t goods_call_once(struct goods *g, const struct call *call, enum goods_where where)
{
    bool spare = call_ends(call, "_close_async") || call_ends(call, "_release_async");

    g->done_fn = ignore;
    /* An operation that begins is over. */
    g->wait.deadline_ns = call_ends(call, "_async") ? 1 : zkl_now_ns() + INT64_C(5000000000);
    if (call_ends(call, "_owner_use") ||
        (call_ends(call, "multi_acquire_async") && where != IN_A_CHILD))
        return call_with_another_owner(g, call);
    int64_t said = goods_call(g, call, where != IN_A_CHILD && spare ? 1u << (call->count - 2) : 0);
    goods_undo(g, call, said);
    if (call_ends(call, "_cancel_free"))
        check_ok(zkl_cancel_new(&g->cancel));
    if (call_ends(call, "_owner_free") && said == 0)
        check_ok(zkl_owner_new(&g->owner));
    return said;
}

int goods_call_all(struct goods *g, enum goods_where where, char *first, size_t size)
{
    int count = 0;

    g->refused_ms = 0;

    for (int i = 0; i < CALLED_COUNT; i++) {
        const struct call *call = &called_calls[i];
        if (goods_leave_out(call, where))
            continue;
        int64_t start_ms = net_now_ms(), said = goods_call_once(g, call, where);
        g->refused_ms += said < 0 ? net_now_ms() - start_ms : 0;
        const char *what = goods_wrong(call, where, said);
        if (what != NULL && count++ == 0)
            snprintf(first, size, "%s: %s: %lld, not %lld (%s)", call->name, what, (long long)said,
                     (long long)goods_due(call, where), zkl_error_detail());
    }
    return count;
}
