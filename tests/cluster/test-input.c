/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input: a code of its own for each kind, and a sentence that says what to do. */
#include "cluster.h"

#include "check_error.h"
#include "goods.h"

#include <stdlib.h>
#include <string.h>

/* Goal: a path that ZooKeeper's own rules refuse (Unicode beyond them, bytes that are no UTF-8) is
 * refused as a path, by zkl_mutex_new, before anything is asked of the server. */
WORLD_TEST(paths_that_no_server_takes_are_refused_at_once)
{
    static const char *const paths[] = {"/c1-\xc2\x85",
                                        "/private-\xee\x80\x80",
                                        "/surrogate-\xed\xa0\x80",
                                        "/special-\xef\xbf\xbd",
                                        "/no-utf8-\xff",
                                        "/cut-\xc3",
                                        "/beyond-\xf0\x9f\x98\x80"};
    struct zkl_client *client = world_client();

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct zkl_mutex *mutex = NULL;
        check_num(zkl_mutex_new(&mutex, client, paths[i], NULL), ==, ZKL_EBADPATH);
    }
}

struct bad {
    const char *text;
    const char *word; /* of the detail */
};

/* Goal: each way to write a path wrongly is refused by zkl_mutex_new, which says what is wrong. */
WORLD_TEST(malformed_paths_are_explained)
{
    static const struct bad paths[] = {
        {"", "empty"},         {"locks/a", "slash"},     {"/", "root"},
        {"/a/", "component"},  {"//a", "component"},     {"/a//b", "component"},
        {"/./a", "\".\""},     {"/a/..", "\"..\""},      {"/a\nb", "control"},
        {"/a\x7f", "control"}, {"/zookeeper", "server"}, {"/zookeeper/quota", "server"},
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

/* Goal: open refuses an option out of range, and names it. It cuts errbuf to its size. */
WORLD_TEST(options_out_of_range_are_named)
{
    static const int sessions[] = {-1, 1, 99, 86400001};
    static const int64_t connects[] = {-1, INT64_MIN, ZKL_TIMEOUT_MAX_MS + 1, INT64_MAX};
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL;
    char owner[514], errbuf[4] = "xyz";

    options.errbuf = errbuf;
    options.errbuf_size = 3;
    check_fails(zkl_client_open(NULL, &options), ZKL_EINVAL, "client");
    check_num(strlen(errbuf), ==, 2);
    strcpy(errbuf, "xyz");
    for (size_t i = 0; i < sizeof sessions / sizeof sessions[0]; i++) {
        options.session_timeout_ms = sessions[i];
        check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "session_timeout_ms");
    }
    check_num(strlen(errbuf), ==, 2);
    options = cluster_options();
    for (size_t i = 0; i < sizeof connects / sizeof connects[0]; i++) {
        options.connect_timeout_ms = connects[i];
        check_fails(zkl_client_open(&client, &options), ZKL_EBADTIMEOUT, "connect_timeout_ms");
    }
    options = cluster_options();
    memset(owner, 'o', sizeof owner - 1);
    owner[sizeof owner - 1] = '\0';
    options.servers = NULL;
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "servers");
    options = cluster_options();
    options.owner = owner;

    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "owner");
    check_true(client == NULL);
}

/* Goal: credentials that are half there, and ACLs that cannot be, are refused. */
WORLD_TEST(halves_of_credentials_are_refused)
{
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL;

    options.auth_scheme = "digest";
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "auth_credential");
    options.auth_scheme = NULL;
    options.auth_credential = "alice:secret";
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "auth_scheme");
    check_true(strstr(zkl_error_detail(), "secret") == NULL);
    options.auth_credential = NULL;
    options.acl = ZKL_ACL_CREATOR;
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "ZKL_ACL_CREATOR");
    options.acl = (enum zkl_acl)7;
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "acl");
    check_true(client == NULL);
}

/* Goal: timeouts below 0 or above the limit are refused by each call that takes one, and the
 * largest that is allowed works. */
WORLD_TEST(timeouts_out_of_range_are_refused)
{
    static const int64_t bad[] = {-1, INT64_MIN, ZKL_TIMEOUT_MAX_MS + 1, INT64_MAX};
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, cluster_path("timeouts"));

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_fails(zkl_mutex_lock_for(mutex, bad[i]), ZKL_EBADTIMEOUT, "zkl_mutex_lock_for");
        check_fails(zkl_mutex_check(mutex, bad[i]), ZKL_EBADTIMEOUT, "zkl_mutex_check");
        check_true(!zkl_mutex_still_held(mutex, bad[i]));
        check_true(strstr(zkl_error_detail(), "still_held") != NULL);
        check_fails(zkl_client_close(client, bad[i]), ZKL_EBADTIMEOUT, "zkl_client_close");
    }
    check_fails(zkl_mutex_lock_until(mutex, -1, NULL), ZKL_EBADTIMEOUT, "deadline_ns");
    check_ok(zkl_mutex_lock_for(mutex, ZKL_TIMEOUT_MAX_MS));
    check_num(zkl_mutex_still_held(mutex, ZKL_TIMEOUT_MAX_MS), ==, 0);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_mutex_lock_until(mutex, INT64_MAX - 1, NULL));
    check_ok(zkl_mutex_unlock(mutex));
    check_closed(zkl_client_close(client, ZKL_TIMEOUT_MAX_MS));
}

/* --- sizes ---------------------------------------------------------------------------------------
 * What is called with a struct of some size; what that leaves is undone. */

static struct zkl_client *sized_client;
static struct zkl_mutex *sized_mutex;

static int open_with(void *options)
{
    struct zkl_client *client = NULL;
    int rc = zkl_client_open(&client, options);
    if (rc == 0)
        check_ok(zkl_client_free(client));
    return rc;
}

static int make_mutex(void *options)
{
    struct zkl_mutex *mutex = NULL;
    int rc = zkl_mutex_new(&mutex, sized_client, "/sizes", options);
    check_ok(zkl_mutex_free(mutex));
    return rc;
}

static int make_rwlock(void *options)
{
    struct zkl_rwlock *rwlock = NULL;
    int rc = zkl_rwlock_new(&rwlock, sized_client, "/sizes", options);
    check_ok(zkl_rwlock_free(rwlock));
    return rc;
}

static int acquire(const struct zkl_wait *wait, struct zkl_grant *grant)
{
    int rc = zkl_mutex_acquire(sized_mutex, wait, grant);
    if (rc == 0)
        check_ok(zkl_mutex_unlock(sized_mutex));
    return rc;
}

static int acquire_with(void *wait)
{
    return acquire(wait, NULL);
}

static int acquire_into(void *grant)
{
    return acquire(NULL, grant);
}

static int make_multi(void *member)
{
    struct zkl_multi *multi = NULL;
    int rc = zkl_multi_new(&multi, sized_client, member, 1);
    check_ok(zkl_multi_free(multi));
    return rc;
}

static int ask_who_waits(void *standing)
{
    check_num(zkl_mutex_waiting(sized_mutex, standing), ==, 0);
    return zkl_error_detail()[0] == '\0' ? 0 : ZKL_EINVAL;
}

static int look_at_client(void *metrics)
{
    return zkl_client_get_metrics(sized_client, metrics);
}

static int look_at_lock(void *metrics)
{
    return zkl_mutex_get_metrics(sized_mutex, metrics);
}

static int look_at_locks(void *metrics)
{
    return zkl_client_get_lock_metrics(sized_client, metrics);
}

/* A copy of a struct that says another size, in memory that ends where it does, as far as there is any. */
static char *resized(const void *it, size_t own, size_t size)
{
    size_t room = size < sizeof size || size > 2 * own ? sizeof size : size;
    char *copy = calloc(1, room);

    check_true(copy != NULL);
    memcpy(copy, it, room < own ? room : own);
    memcpy(copy, &size, sizeof size);
    return copy;
}

static int call_resized(int (*call)(void *), const void *it, size_t own, size_t size)
{
    char *copy = resized(it, own, size);
    int rc = call(copy);

    check_true(memcmp(copy, &size, sizeof size) == 0);
    free(copy);
    return rc;
}

enum use { IS_READ, IS_FILLED, IS_LEFT }; /* as nobody waits */

/* What a later field of the caller's has: it is asked for by what the library reads, and not known to what it fills. */
static void check_later_field(int (*call)(void *), const void *it, size_t own, enum use use)
{
    size_t later = own + sizeof(int64_t);
    char *copy = resized(it, own, later);

    check_ok(call(copy));
    memset(copy + own, 1, later - own);
    check_num(call(copy), ==, use == IS_READ ? ZKL_EINVAL : 0);
    check_num(copy[own], ==, use != IS_FILLED);
    free(copy);
}

static void check_sizes(int (*call)(void *), const void *it, size_t own, enum use use,
                        const char *word)
{
    /* No struct of a compiler's ends where the next one of an array could not begin. */
    const size_t bad[] = {0,       1,       7,       8,        sizeof(void *),
                          own + 1, own + 4, own + 7, SIZE_MAX, SIZE_MAX - 7};

    check_ok(call_resized(call, it, own, own));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (bad[i] % sizeof(void *) == 0 && bad[i] >= own && bad[i] < 4096)
            continue; /* where own + 4 is one that a compiler makes */
        check_num(call_resized(call, it, own, bad[i]), ==, ZKL_EINVAL);
        check_detail(ZKL_EINVAL, word);
    }
    check_later_field(call, it, own, use);
}

/* Goal: a function refuses a struct with a size that none has. It neither writes nor reads that
 * struct or what is behind it. The unknown end of a longer struct must ask for nothing. Where the
 * library fills a struct, that end is 0. The detail says what fills it. */
WORLD_TEST(structs_of_no_sane_size_are_refused)
{
    const struct zkl_client_options options = cluster_options();
    static const struct zkl_mutex_options of_mutex = ZKL_MUTEX_OPTIONS_INIT;
    static const struct zkl_lock_options of_lock = ZKL_LOCK_OPTIONS_INIT;
    static const struct zkl_wait wait = ZKL_WAIT_INIT;
    static const struct zkl_grant grant = ZKL_GRANT_INIT;
    static const struct zkl_standing standing = ZKL_STANDING_INIT;
    static const struct zkl_client_metrics of_client = ZKL_CLIENT_METRICS_INIT;
    static const struct zkl_lock_metrics of_locks = ZKL_LOCK_METRICS_INIT;

    sized_client = world_client();
    struct zkl_mutex_options counted = ZKL_MUTEX_OPTIONS_INIT;
    counted.metrics = 1;
    sized_mutex = world_mutex_with(sized_client, cluster_path("sizes"), &counted);
    const struct zkl_member member = zkl_member_mutex(sized_mutex);
    check_sizes(open_with, &options, sizeof options, IS_READ, "ZKL_CLIENT_OPTIONS_INIT");
    check_sizes(make_mutex, &of_mutex, sizeof of_mutex, IS_READ, "ZKL_MUTEX_OPTIONS_INIT");
    check_sizes(make_rwlock, &of_lock, sizeof of_lock, IS_READ, "ZKL_LOCK_OPTIONS_INIT");
    check_sizes(make_multi, &member, sizeof member, IS_READ, "");
    check_sizes(acquire_with, &wait, sizeof wait, IS_READ, "ZKL_WAIT_INIT");
    check_sizes(acquire_into, &grant, sizeof grant, IS_FILLED, "ZKL_GRANT_INIT");
    check_sizes(ask_who_waits, &standing, sizeof standing, IS_LEFT, "ZKL_STANDING_INIT");
    check_sizes(look_at_client, &of_client, sizeof of_client, IS_FILLED, "ZKL_CLIENT_METRICS_INIT");
    check_sizes(look_at_locks, &of_locks, sizeof of_locks, IS_FILLED, "ZKL_LOCK_METRICS_INIT");
    check_sizes(look_at_lock, &of_locks, sizeof of_locks, IS_FILLED, "ZKL_LOCK_METRICS_INIT");
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

static struct goods goods;
static int nulls_refused, nulls_taken;
static char first[500];

static void set_up_goods(void)
{
    struct zkl_client_options options = cluster_options();

    goods_make(&goods, &options, world_client(), cluster_path("goods"));
}

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
