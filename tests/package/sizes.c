/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: a program and a library that were built with different headers get on, in both directions. sizes.py builds this with
 * today's headers and with ones that have a later field in each struct (-DLATER), and runs each with either library. What
 * is behind a struct that the library fills must stay as it is.
 * Arguments: how to go on: "same", or "older", where the library does not know the later fields. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/async.h>
#include <zklock/inspect.h>
#include <zklock/metrics.h>
#include <zklock/zklock.h>

#define CANARY 0x5a
#define BEHIND 64

#define TRUE(condition) must(condition, #condition, __LINE__)

static void must(int condition, const char *text, int line)
{
    if (condition)
        return;
    fprintf(stderr, "sizes: line %d: not true: %s (%s)\n", line, text, zkl_error_detail());
    exit(1);
}

static int is_whole(const unsigned char behind[BEHIND])
{
    for (size_t i = 0; i < BEHIND; i++) {
        if (behind[i] != CANARY)
            return 0;
    }
    return 1;
}

/* A struct that the library fills, with something behind it. */
#define FILLED(type, name, init)                                                                   \
    struct {                                                                                       \
        struct type it;                                                                            \
        unsigned char behind[BEHIND];                                                              \
    } name = {init, {0}};                                                                          \
    memset(name.behind, CANARY, BEHIND)

/* Constants: they can be statics. */
static struct zkl_client_options client_options = ZKL_CLIENT_OPTIONS_INIT;
static struct zkl_lock_options lock_options = ZKL_LOCK_OPTIONS_INIT;
static struct zkl_mutex_options mutex_options = ZKL_MUTEX_OPTIONS_INIT;
static struct zkl_wait wait_for_long = ZKL_WAIT_INIT;
static struct zkl_grant grants[2] = {ZKL_GRANT_INIT, ZKL_GRANT_INIT};

static void see_locks(struct zkl_client *client, struct zkl_mutex *mutex)
{
    FILLED(zkl_grant, grant, ZKL_GRANT_INIT);
    FILLED(zkl_standing, standing, ZKL_STANDING_INIT);
    TRUE(zkl_mutex_acquire(mutex, &wait_for_long, &grant.it) == 0);
    TRUE(grant.it.token != 0 && grant.it.hold_count == 1 && grant.it.size == sizeof grant.it);
    TRUE(is_whole(grant.behind));
    TRUE(zkl_mutex_waiting(mutex, &standing.it) == 0 && is_whole(standing.behind));

    const struct zkl_inspection *seen;
    TRUE(zkl_inspect(client, "/sizes/a", 10000, &seen) == 0);
    TRUE(seen->count == 1 && zkl_inspection_entry(seen, 0)->role == ZKL_ENTRY_ROLE_HOLDER);
    zkl_inspection_free(seen);
    TRUE(zkl_mutex_unlock(mutex) == 0);
}

static void see_figures(struct zkl_client *client, struct zkl_mutex *mutex)
{
    FILLED(zkl_lock_metrics, of_lock, ZKL_LOCK_METRICS_INIT);
    FILLED(zkl_client_metrics, of_client, ZKL_CLIENT_METRICS_INIT);
    TRUE(zkl_mutex_get_metrics(mutex, &of_lock.it) == 0 && is_whole(of_lock.behind));
    TRUE(of_lock.it.acquisitions == 1);
    TRUE(zkl_client_get_lock_metrics(client, &of_lock.it) == 0 && is_whole(of_lock.behind));
    TRUE(zkl_client_get_metrics(client, &of_client.it) == 0 && is_whole(of_client.behind));
    TRUE(of_client.it.connections == 1);
}

static void take_both(struct zkl_client *client, struct zkl_mutex *a, struct zkl_mutex *b)
{
    struct zkl_member members[] = {zkl_member_mutex(b), zkl_member_mutex(a)};
    struct zkl_multi *both;
    TRUE(zkl_multi_new(&both, client, members, 2) == 0);
    TRUE(zkl_multi_acquire(both, &wait_for_long, grants) == 0);
    TRUE(grants[0].token != 0 && grants[1].token != 0 && grants[1].hold_count == 1);
    TRUE(zkl_multi_unlock(both, NULL) == 0 && zkl_multi_free(both) == 0);
}

/* The library must not take for nothing what it does not know. */
static void set_later_fields(struct zkl_client *client, struct zkl_mutex *mutex)
{
#ifdef LATER
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    struct zkl_lock_options of_all = ZKL_LOCK_OPTIONS_INIT;
    struct zkl_client_options of_client = client_options;
    struct zkl_client *none;
    struct zkl_mutex *other;
    struct zkl_rwlock *halves;
    wait.later = options.later = of_all.later = of_client.later = 1;
    TRUE(zkl_mutex_acquire(mutex, &wait, NULL) == ZKL_EINVAL);
    TRUE(zkl_mutex_new(&other, client, "/sizes/c", &options) == ZKL_EINVAL);
    TRUE(zkl_rwlock_new(&halves, client, "/sizes/c", &of_all) == ZKL_EINVAL);
    TRUE(zkl_client_open(&none, &of_client) == ZKL_EINVAL);
#else
    (void)client;
    (void)mutex;
#endif
}

int main(int argc, char **argv)
{
    struct zkl_client *client;
    struct zkl_mutex *a, *b;
    struct zkl_rwlock *halves;
    client_options.servers = getenv("ZKLOCK_SERVERS");
    client_options.connect_timeout_ms = 60000;
    mutex_options.metrics = lock_options.metrics = 1;
    wait_for_long.deadline_ns = zkl_now_ns() + INT64_C(60000000000);
    TRUE(zkl_client_open(&client, &client_options) == 0);
    TRUE(zkl_mutex_new(&a, client, "/sizes/a", &mutex_options) == 0);
    TRUE(zkl_rwlock_new(&halves, client, "/sizes/halves", &lock_options) == 0);
    TRUE(zkl_mutex_new(&b, client, "/sizes/b", NULL) == 0);
    see_locks(client, a);
    see_figures(client, a);
    take_both(client, a, b);
    if (argc > 1 && strcmp(argv[1], "older") == 0)
        set_later_fields(client, a);
    TRUE(zkl_rwlock_free(halves) == 0);
    TRUE(zkl_mutex_free(a) == 0 && zkl_mutex_free(b) == 0 && zkl_client_free(client) == 0);
    printf("sizes: a wait has %zu bytes, client options %zu\n", sizeof wait_for_long,
           sizeof client_options);
    return 0;
}
