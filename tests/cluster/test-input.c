/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input: a code of its own for each kind, and a sentence that says what to do. */
#include "check_error.h"
#include "goods.h"

struct bad {
    const char *text;
    const char *word; /* of the detail */
};

/* Goal: zkl_mutex_new refuses each way to write a path wrongly, and what ZooKeeper's own rules refuse (Unicode beyond
 * them, bytes that are no UTF-8), before anything is asked of the server. It says what is wrong. */
WORLD_TEST(malformed_paths_are_explained)
{
    static const struct bad paths[] = {
        {"", "empty"},
        {"locks/a", "slash"},
        {"/", "root"},
        {"/a/", "component"},
        {"//a", "component"},
        {"/a//b", "component"},
        {"/./a", "\".\""},
        {"/a/..", "\"..\""},
        {"/a\nb", "control"},
        {"/a\x7f", "control"},
        {"/zookeeper", "server"},
        {"/zookeeper/quota", "server"},
        {"/c1-\xc2\x85", "control"},
        {"/private-\xee\x80\x80", "private use"},
        {"/surrogate-\xed\xa0\x80", "UTF-8"},
        {"/special-\xef\xbf\xbd", "special"},
        {"/no-utf8-\xff", "UTF-8"},
        {"/cut-\xc3", "UTF-8"},
        {"/beyond-\xf0\x9f\x98\x80", "above U+FFFF"},
    };
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = NULL;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        check_fails(zkl_mutex_new(&mutex, client, paths[i].text, NULL), ZKL_EBADPATH,
                    paths[i].word);
    check_true(mutex == NULL);
}

/* Goal: a client can lock a path of 512 bytes, with anything in it that ZooKeeper accepts. It
 * refuses a path of 513 bytes. */
WORLD_TEST(the_longest_path_works)
{
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = NULL;
    char path[514];

    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    memcpy(path, "/l\xc3\xa4nge .../zookeeper/", 21);
    check_fails(zkl_mutex_new(&mutex, client, path, NULL), ZKL_EBADPATH, "512");
    path[512] = '\0';
    mutex = world_mutex(client, path);
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_node_path(mutex, NULL, 0), >, 512);
    check_ok(zkl_mutex_unlock(mutex));
}

/* Goal: each way to write a server list wrongly is refused, with the list and a reason in words,
 * also in errbuf. */
WORLD_TEST(malformed_server_lists_are_explained)
{
    static const struct bad lists[] = {
        {"", "empty"},
        {"/chroot", "empty"},
        {"localhost", "HOST:PORT"},
        {":2181", "HOST:PORT"},
        {"a:1,,b:2", "HOST:PORT"},
        {"a:1,", "HOST:PORT"},
        {"localhost:", "port"},
        {"localhost:0", "port"},
        {"localhost:65536", "port"},
        {"localhost:2181x", "port"},
        {"local host:2181", "blank"},
        {"localhost:2181/", "slash"},
        {"localhost:2181/a/", "chroot"},
        {"localhost:2181//a", "chroot"},
        {"localhost:2181/../a", "chroot"},
        {"::1:2181", "brackets"},
        {"a:1,fe80::1", "brackets"},
        {"[::1]", "brackets"},
        {"[::1:2181", "brackets"},
        {"[a]:2181", "brackets"},
        {"[127.0.0.1]:2181", "brackets"},
        {"[fe80::1%]:2181", "brackets"},
        {"a]:2181", "HOST:PORT"},
        {"[::1]:0", "port"},
        {"[1:2:3]:2181", "brackets"},
    };
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL;
    char errbuf[512];

    options.errbuf = errbuf;
    options.errbuf_size = sizeof errbuf;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        options.servers = lists[i].text;
        check_fails(zkl_client_open(&client, &options), ZKL_EBADSERVERS, lists[i].word);
        check_text(errbuf, zkl_error_detail());
    }
    check_true(client == NULL);
}

/* The options' field gets the value, of its size. */
static void set_field(struct zkl_client_options *options, size_t at, size_t size, int64_t value)
{
    int32_t brief = (int32_t)value;

    memcpy((char *)options + at, size == sizeof brief ? (void *)&brief : (void *)&value, size);
}

#define BAD(field, value, code, word)                                                              \
    {                                                                                              \
        offsetof(struct zkl_client_options, field),                                                \
            sizeof(((struct zkl_client_options *)NULL)->field), value, code, word                  \
    }

/* Goal: open refuses an option out of range, and names it. It cuts errbuf to its size. */
WORLD_TEST(options_out_of_range_are_named)
{
    static char owner[514];
    const struct {
        size_t at, size;
        int64_t value;
        int code;
        const char *word;
    } bad[] = {
        BAD(session_timeout_ms, -1, ZKL_EINVAL, "session_timeout_ms"),
        BAD(session_timeout_ms, 1, ZKL_EINVAL, "session_timeout_ms"),
        BAD(session_timeout_ms, 99, ZKL_EINVAL, "session_timeout_ms"),
        BAD(session_timeout_ms, 86400001, ZKL_EINVAL, "session_timeout_ms"),
        BAD(connect_timeout_ms, -1, ZKL_EBADTIMEOUT, "connect_timeout_ms"),
        BAD(connect_timeout_ms, INT64_MIN, ZKL_EBADTIMEOUT, "connect_timeout_ms"),
        BAD(connect_timeout_ms, ZKL_TIMEOUT_MAX_MS + 1, ZKL_EBADTIMEOUT, "connect_timeout_ms"),
        BAD(connect_timeout_ms, INT64_MAX, ZKL_EBADTIMEOUT, "connect_timeout_ms"),
        BAD(servers, 0, ZKL_EINVAL, "servers"),
        BAD(owner, (intptr_t)owner, ZKL_EINVAL, "owner"),
        BAD(log_level, 5, ZKL_EINVAL, "log_level"),
        BAD(log_level, -1, ZKL_EINVAL, "log_level"),
        BAD(acl, 7, ZKL_EINVAL, "acl"),
        BAD(acl, ZKL_ACL_CREATOR, ZKL_EINVAL, "ZKL_ACL_CREATOR"), /* without a credential */
    };
    struct zkl_client *client = NULL;
    char errbuf[4] = "xyz";

    memset(owner, 'o', sizeof owner - 1);
    for (size_t i = 0; i <= sizeof bad / sizeof bad[0]; i++) {
        struct zkl_client_options options = cluster_options();
        options.errbuf = strcpy(errbuf, "xyz");
        options.errbuf_size = 3;
        if (i == sizeof bad / sizeof bad[0]) {
            check_fails(zkl_client_open(NULL, &options), ZKL_EINVAL, "client");
        } else {
            set_field(&options, bad[i].at, bad[i].size, bad[i].value);
            check_fails(zkl_client_open(&client, &options), bad[i].code, bad[i].word);
        }
        check_num(strlen(errbuf), ==, 2);
    }
    check_true(client == NULL);
}

/* --- times ------------------------------------------------------------------------------------ */

static struct goods goods;

static void set_up_goods(void)
{
    struct zkl_client_options options = cluster_options();

    goods_make(&goods, &options, world_client(), cluster_path("goods"));
}

static bool takes(const struct call *call, enum arg kind)
{
    bool found = false;

    for (int at = 0; at < call->count; at++)
        found = found || call->args[at] == kind;
    return found;
}

static void check_bad_time(const struct call *call, int64_t ms)
{
    char inner[64]; /* of zkl_guard_mutex_path the call that it is made of */

    snprintf(inner, sizeof inner, "%s", call->name);
    if (strstr(inner, "_path"))
        *strstr(inner, "_path") = '\0';
    goods.timeout_ms = goods.need_ms = goods.lease_ms = goods.retain_ms = ms;
    check_num(zkl_semaphore_permits(NULL), ==, 0); /* leaves another detail */
    int64_t said = goods_call(&goods, call, 0);
    if (said != (call->answer == ANSWERS_QUESTION ? 0 : ZKL_EBADTIMEOUT))
        fail_msg("%s with %lld ms: %lld", call->name, (long long)ms, (long long)said);
    check_detail(ZKL_EBADTIMEOUT, inner);
}

/* Goal: timeouts below 0 or above the limit are refused by each call that takes one, and the
 * largest that is allowed works. */
WORLD_TEST(timeouts_out_of_range_are_refused)
{
    static const int64_t bad[] = {-1, INT64_MIN, ZKL_TIMEOUT_MAX_MS + 1, INT64_MAX};
    int calls = 0;

    set_up_goods();
    goods_hold(&goods);
    for (size_t i = 0; i < CALLED_COUNT; i++) {
        const struct call *call = &called_calls[i];
        if (!takes(call, ARG_TIMEOUT_MS) && !takes(call, ARG_NEED_MS) &&
            !takes(call, ARG_LEASE_MS) && !takes(call, ARG_RETAIN_MS))
            continue;
        calls++;
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
            check_bad_time(call, bad[k]);
    }
    print_message("    %d calls with a time\n", calls);
    goods_let_go(&goods);
    check_num(zkl_rwlock_retain_readers(goods.rwlock, 3600001), ==, ZKL_EBADTIMEOUT);
    check_ok(zkl_rwlock_retain_readers(goods.rwlock, 3600000));
    check_fails(zkl_mutex_lock_until(goods.mutex, -1, NULL), ZKL_EBADTIMEOUT, "deadline_ns");
    check_ok(zkl_mutex_lock_for(goods.mutex, ZKL_TIMEOUT_MAX_MS));
    check_num(zkl_mutex_still_held(goods.mutex, ZKL_TIMEOUT_MAX_MS), ==, 0);
    check_ok(zkl_mutex_unlock(goods.mutex));
    check_ok(zkl_mutex_lock_until(goods.mutex, INT64_MAX - 1, NULL));
    check_ok(zkl_mutex_unlock(goods.mutex));
    check_closed(zkl_client_close(goods.client, ZKL_TIMEOUT_MAX_MS));
    goods_free(&goods);
}

/* --- sizes of structs ------------------------------------------------------------------------- */

enum use { IS_READ, IS_FILLED, IS_LEFT }; /* as nobody waits */

struct sized {
    enum arg kind;
    const void *it;
    size_t own;
    enum use use;
    const char *word; /* that the detail of another size has */
};

/* A copy that says another size, in memory that ends where it does, as far as there is any. */
static char *resized(const struct sized *s, size_t size)
{
    size_t room = size < sizeof size || size > 2 * s->own ? sizeof size : size;
    char *copy = calloc(1, room);

    check_true(copy != NULL);
    memcpy(copy, s->it, room < s->own ? room : s->own);
    memcpy(copy, &size, sizeof size);
    return copy;
}

/* A question that was wrong says so by its detail. What the call leaves is undone. */
static int64_t call_with(const struct call *call, enum arg kind, const void *copy)
{
    goods.instead[kind] = copy;
    int64_t said = goods_call(&goods, call, 0);
    goods.instead[kind] = NULL;
    if (call->answer == ANSWERS_QUESTION && zkl_error_detail()[0] != '\0')
        return said == 0 ? ZKL_EINVAL : said;
    check_ok(said == ZKL_EINVAL ? 0 : goods_undo(&goods, call, said));
    return said;
}

/* What a later field of the caller's has: it is asked for by what the library reads, and not known to what it fills. */
static void check_later_field(const struct call *call, const struct sized *s, int64_t good)
{
    size_t later = s->own + sizeof(int64_t);
    char *copy = resized(s, later);

    check_num(call_with(call, s->kind, copy), ==, good);
    memset(copy + s->own, 1, later - s->own);
    check_num(call_with(call, s->kind, copy), ==, s->use == IS_READ ? ZKL_EINVAL : good);
    check_num(copy[s->own], ==, s->use != IS_FILLED);
    free(copy);
}

static void check_sizes(const struct call *call, const struct sized *s)
{
    /* No struct of a compiler's ends where the next one of an array could not begin. */
    const size_t bad[] = {0,          1,          7,          8,        sizeof(void *),
                          s->own + 1, s->own + 4, s->own + 7, SIZE_MAX, SIZE_MAX - 7};
    char *own = resized(s, s->own);
    int64_t good = call_with(call, s->kind, own);

    free(own);
    if (good == ZKL_EINVAL)
        fail_msg("%s refuses %s: %s", call->name, s->word, zkl_error_detail());
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (bad[i] % sizeof(void *) == 0 && bad[i] >= s->own && bad[i] < 4096)
            continue; /* where own + 4 is one that a compiler makes */
        char *copy = resized(s, bad[i]);
        int64_t said = call_with(call, s->kind, copy);
        if (said != ZKL_EINVAL)
            fail_msg("%s takes %s of %zu bytes", call->name, s->word, bad[i]);
        check_detail(ZKL_EINVAL, s->word);
        check_true(memcmp(copy, &bad[i], sizeof bad[i]) == 0);
        free(copy);
    }
    check_later_field(call, s, good);
}

/* Goal: a function refuses a struct with a size that none has. It neither writes nor reads that
 * struct or what is behind it. The unknown end of a longer struct must ask for nothing. Where the
 * library fills a struct, that end is 0. The detail says what fills it. Method: each call with each struct that it takes;
 * but several grants are an array. */
WORLD_TEST(structs_of_no_sane_size_are_refused)
{
    static const struct zkl_mutex_options of_mutex = ZKL_MUTEX_OPTIONS_INIT;
    static const struct zkl_lock_options of_lock = ZKL_LOCK_OPTIONS_INIT;
    static const struct zkl_wait wait = ZKL_WAIT_INIT;
    static struct zkl_grant grant = ZKL_GRANT_INIT;
    static struct zkl_standing standing = ZKL_STANDING_INIT;
    static struct zkl_client_metrics of_client = ZKL_CLIENT_METRICS_INIT;
    static struct zkl_lock_metrics of_locks = ZKL_LOCK_METRICS_INIT;
    int pairs = 0;

    set_up_goods();
    const struct zkl_client_options options = goods.options;
    const struct zkl_member member = zkl_member_mutex(goods.mutex);
#define SIZED(kind, it, ...)                                                                       \
    {                                                                                              \
        kind, &(it), sizeof(it), __VA_ARGS__                                                       \
    }
    const struct sized all[] = {
        SIZED(ARG_CLIENT_OPTIONS, options, IS_READ, "ZKL_CLIENT_OPTIONS_INIT"),
        SIZED(ARG_MUTEX_OPTIONS, of_mutex, IS_READ, "ZKL_MUTEX_OPTIONS_INIT"),
        SIZED(ARG_LOCK_OPTIONS, of_lock, IS_READ, "ZKL_LOCK_OPTIONS_INIT"),
        SIZED(ARG_MEMBER, member, IS_READ, ""),
        SIZED(ARG_WAIT, wait, IS_READ, "ZKL_WAIT_INIT"),
        SIZED(ARG_GRANT, grant, IS_FILLED, "ZKL_GRANT_INIT"),
        SIZED(ARG_STANDING, standing, IS_LEFT, "ZKL_STANDING_INIT"),
        SIZED(ARG_CLIENT_METRICS, of_client, IS_FILLED, "ZKL_CLIENT_METRICS_INIT"),
        SIZED(ARG_LOCK_METRICS, of_locks, IS_FILLED, "ZKL_LOCK_METRICS_INIT"),
    };
    for (size_t i = 0; i < CALLED_COUNT * sizeof all / sizeof all[0]; i++) {
        const struct call *call = &called_calls[i % CALLED_COUNT];
        const struct sized *s = &all[i / CALLED_COUNT];
        if (takes(call, s->kind) && !(s->kind == ARG_GRANT && call_has(call, "_multi_"))) {
            check_sizes(call, s);
            pairs++;
        }
    }
    print_message("    %d calls with a struct\n", pairs);
    goods_free(&goods);
}

/* Goal: elements of an array lie as far apart as the first is long. The library refuses an element
 * that says another size, before it looks at the element by that size. */
WORLD_TEST(arrays_of_several_sizes_are_refused)
{
    struct zkl_client *client = world_client();
    struct zkl_mutex *one = world_mutex(client, cluster_path("array-one"));
    struct zkl_mutex *two = world_mutex(client, cluster_path("array-two"));
    struct zkl_member *members = world_alloc(2 * sizeof *members);
    struct zkl_grant *grants = world_alloc(2 * sizeof *grants);
    struct zkl_multi *multi = NULL;

    members[0] = zkl_member_mutex(one);
    members[1] = zkl_member_mutex(two);
    members[1].size += sizeof(int64_t);
    check_fails(zkl_multi_new(&multi, client, members, 2), ZKL_EINVAL, "sizes");
    members[1].size = 0;
    check_num(zkl_multi_new(&multi, client, members, 2), ==, ZKL_EINVAL);
    members[1].size = sizeof members[1];
    members[1].mutex = NULL;
    check_num(zkl_multi_new(&multi, client, members, 2), ==, ZKL_EINVAL);
    members[1] = zkl_member_mutex(two);
    check_num(zkl_multi_new(&multi, client, members, 0), ==, ZKL_EINVAL);
    check_num(zkl_multi_new(&multi, client, members, 65), ==, ZKL_EINVAL);
    multi = world_multi(client, members, 2);
    grants[0].size = sizeof grants[0];
    check_num(zkl_multi_acquire(multi, NULL, grants), ==, ZKL_EINVAL);
    grants[1].size = sizeof grants[1] + sizeof(int64_t);
    check_fails(zkl_multi_acquire(multi, NULL, grants), ZKL_EINVAL, "sizes");
    grants[1].size = sizeof grants[1];
    check_ok(zkl_multi_acquire(multi, NULL, grants));
    check_true(grants[0].token != 0 && grants[1].token != 0);
    check_ok(zkl_multi_unlock(multi, NULL));
}

/* --- every call ------------------------------------------------------------------------------- */

static int nulls_refused, nulls_taken;
static char first[500];

/* The detail names the argument; or says nothing, of a call that has to do with no client. */
static bool is_told(const struct call *call, int at)
{
    char name[40] = " is NULL";

    if (call->answer == ANSWERS_POINTER || call_is_of(call, ARG_CANCEL) ||
        call_is_of(call, ARG_HISTOGRAM))
        return true;
    if (at >= 0)
        snprintf(name, sizeof name, ": %s is NULL", call->names[at]);
    return strstr(zkl_error_detail(), name) != NULL ||
           (at == 0 && call_ends(call, "_new") &&
            strstr(zkl_error_detail(), "the handle is NULL") != NULL);
}

/* Nothing else is wrong with the call, so it is refused for that; or not, if the header says that it may be NULL.
 * at: argument; -1: all. */
static void check_null(const struct call *call, int at)
{
    unsigned nulls = at < 0 ? call->pointers : 1u << at;
    bool taken = (nulls & ~call->optional) == 0 || (call->ignores_null && (nulls & 1) != 0);
    int64_t due = call->answer == ANSWERS_CODE ? ZKL_EINVAL : 0;

    check_num(zkl_mutex_lock_for(goods.mutex, -1), ==, ZKL_EBADTIMEOUT); /* leaves another detail */
    int64_t said = goods_call(&goods, call, nulls);
    if (taken ? said == ZKL_EINVAL : said != due || !is_told(call, at))
        fail_msg("%s with NULL for %#x, which %s: %lld, %s", call->name, nulls,
                 taken ? "may be" : "may not be", (long long)said, zkl_error_detail());
    check_ok(goods_undo(&goods, call, said));
    if (call_ends(call, "multi_unlock") && said == 0)
        check_ok(zkl_multi_lock(goods.multi));
    *(taken ? &nulls_taken : &nulls_refused) += 1;
}

/* Goal: no pointer may be NULL but those of which the header says so, and the call says what is NULL. Method: each
 * pointer of each call in turn, with good arguments beside it, then all of them. */
WORLD_TEST(null_is_refused_unless_the_header_takes_it)
{
    set_up_goods();
    check_ok(zkl_semaphore_acquire(goods.semaphore, 1, NULL, &goods.permit));
    nulls_refused = nulls_taken = 0;

    for (int i = 0; i < 2 * CALLED_COUNT; i++) {
        const struct call *call = &called_calls[i % CALLED_COUNT];
        if (i == CALLED_COUNT)
            check_ok(zkl_multi_lock(goods.multi));

        if ((i < CALLED_COUNT) != call_ends(call, "_async")) /* which would wait for this thread */
            continue;

        for (int at = 0; at < call->count; at++) {
            if ((call->pointers >> at & 1) && call->args[at] != ARG_ARG)
                check_null(call, at);
        }
        if (call->pointers != 0)
            check_null(call, -1);
    }
    print_message("    %d refused, %d taken\n", nulls_refused, nulls_taken);
    goods_let_go(&goods);

    goods_free(&goods);
}

static void check_calls(int wrong)
{
    if (wrong > 0)
        fail_msg("%d calls were wrong, the first: %s", wrong, first);
}

static int call_in_another_thread(void *unused)
{
    (void)unused;
    return goods_call_all(&goods, IN_ANOTHER_THREAD, first, sizeof first);
}

/* Goal: each call answers what its header says: to the thread that holds, to another one, and after the close, when holds
 * count as lost. Modes: F17. */
WORLD_TEST(every_call_answers_as_its_header_says)
{
    struct actor *actor = world_actor();

    set_up_goods();
    goods_hold(&goods);
    check_calls(goods_call_all(&goods, BY_THE_HOLDER, first, sizeof first));
    check_calls(actor_do(actor, call_in_another_thread, NULL));
    check_closed(zkl_client_close(goods.client, WAIT_MS));
    check_calls(goods_call_all(&goods, AFTER_CLOSE, first, sizeof first));
    check_num(zkl_multi_unlock(goods.multi, NULL), ==, ZKL_ELOST);
    check_num(zkl_permit_release(goods.permit), ==, ZKL_ELOST);
    goods_free(&goods);
}
