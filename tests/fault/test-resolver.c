/* SPDX-License-Identifier: Apache-2.0 */
/* The servers' names: a resolver that is slow, dead, or says another thing than before. It is this
 * program's own, in the place of the C library's, for libzookeeper too; names end with ".test". */
#include "fault.h"

#include <dlfcn.h>
#include <netdb.h>

#include "driver/trouble.h"

#define SESSION_MS lag_session_ms(10000)
#define HANG_MS (2 * WAIT_MS) /* until the test says so */
#define ASK_MS 100            /* deadlines of calls */

static const char *const path = "/resolver/m";

/* --- the resolver ----------------------------------------------------------------------------- */

enum { ENTRIES = 4 };

static struct entry {
    char name[32];
    char address[64]; /* empty: a failure */
    int failure, slow_ms;
} entries[ENTRIES];
static pthread_mutex_t entries_mu = PTHREAD_MUTEX_INITIALIZER;
static atomic_int looking, looks; /* that have not been answered; that were begun */
static atomic_bool hurry;

static void say(int entry, const char *name, const char *address, int failure, int slow_ms)
{
    struct entry said = {.failure = failure, .slow_ms = slow_ms};

    snprintf(said.name, sizeof said.name, "%s", name);
    snprintf(said.address, sizeof said.address, "%s", address);
    pthread_mutex_lock(&entries_mu);
    entries[entry] = said;
    pthread_mutex_unlock(&entries_mu);
}

static void is_at(int entry, const char *name, const char *address)
{
    say(entry, name, address, 0, 0);
}

typedef int resolver_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* What is said of the name now; false: nothing. */
static bool find(const char *name, struct entry *found)
{
    int i = 0;

    pthread_mutex_lock(&entries_mu);
    while (i < ENTRIES && strcmp(entries[i].name, name) != 0)
        i++;
    if (i < ENTRIES)
        *found = entries[i];
    pthread_mutex_unlock(&entries_mu);
    return i < ENTRIES;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    resolver_fn *real = (resolver_fn *)dlsym(RTLD_NEXT, "getaddrinfo");
    struct addrinfo plain = hints != NULL ? *hints : (struct addrinfo){0};
    const char *end = name != NULL ? strrchr(name, '.') : NULL;
    struct entry entry;

    if (end == NULL || strcmp(end, ".test") != 0)
        return real(name, service, hints, found);
    if ((plain.ai_flags & AI_NUMERICHOST) != 0 || !find(name, &entry))
        return EAI_NONAME;
    looks++;
    looking++;
    for (int64_t end_ms = net_now_ms() + entry.slow_ms; net_now_ms() < end_ms && !hurry;)
        net_nap_ms(5);
    looking--;
    plain.ai_flags = AI_NUMERICHOST;
    if (!find(name, &entry) || entry.failure != 0) /* which may have changed meanwhile */
        return entry.failure;
    return real(entry.address, service, &plain, found);
}

/* --- the I/O thread ----------------------------------------------------------------------------- */

/* Only libzookeeper's I/O thread, which has this name, may change what it reads itself (ZOOKEEPER-4699). */
static atomic_int strangers;

static void note_thread(void)
{
    char name[16] = "";

    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strncmp(name, "zkl-io-", strlen("zkl-io-")) != 0)
        strangers++;
}

__typeof__(zoo_set_servers) __real_zoo_set_servers, __wrap_zoo_set_servers;

int __wrap_zoo_set_servers(zhandle_t *handle, const char *hosts)
{
    note_thread();
    return __real_zoo_set_servers(handle, hosts);
}

int __real_zookeeper_interest(zhandle_t *handle, int *fd, int *interest, struct timeval *wait);
int __wrap_zookeeper_interest(zhandle_t *handle, int *fd, int *interest, struct timeval *wait);

int __wrap_zookeeper_interest(zhandle_t *handle, int *fd, int *interest, struct timeval *wait)
{
    note_thread();
    return __real_zookeeper_interest(handle, fd, interest, wait);
}

/* --- how late ---------------------------------------------------------------------------------- */

/* The call must take ms, and not much more: 100 ms in the full length; in short so much that no machine is too busy
 * for it, and well below what the resolver takes. */
#define in_time(ms, call)                                                                          \
    ({                                                                                             \
        lag_begin();                                                                               \
        int rc_ = (call);                                                                          \
        int64_t late_ms_ = lag_end_ms() - (ms);                                                    \
        if (late_ms_ > test_length(100, 2500))                                                     \
            fail_msg("%s: %lld ms late", #call, (long long)late_ms_);                              \
        if (late_ms_ > worst_ms)                                                                   \
            worst_ms = late_ms_;                                                                   \
        rc_;                                                                                       \
    })

static int64_t worst_ms;

static int acquire_async(struct zkl_owner *owner, struct zkl_mutex *mutex, int ms, bool cancel,
                         struct zkl_client *client)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct completion done = {0};
    uint64_t op = 0;

    wait.deadline_ns = zkl_now_ns() + ms * INT64_C(1000000);
    int rc = zkl_mutex_acquire_async(owner, mutex, &wait, NULL, note_completion, &done, &op);
    if (rc == 0 && cancel)
        check_ok(zkl_op_cancel(client, op));
    return fault_outcome(rc, &done);
}

/* Every way to wait, without a link. */
static void check_deadlines(struct zkl_client *client, struct zkl_mutex *mutex)
{
    const struct zkl_inspection *inspection = NULL;
    struct zkl_owner *owner = world_owner();
    struct zkl_wait try = ZKL_WAIT_INIT;

    check_num(in_time(ASK_MS, zkl_mutex_lock_for(mutex, ASK_MS)), ==, ZKL_ETIMEDOUT);
    try.flags = ZKL_WAIT_TRY;
    try.deadline_ns = zkl_now_ns() + ASK_MS * INT64_C(1000000);
    check_num(in_time(ASK_MS, zkl_mutex_acquire(mutex, &try, NULL)), <, 0);
    check_num(in_time(ASK_MS, zkl_inspect(client, path, ASK_MS, &inspection)), <, 0);
    check_num(in_time(ASK_MS, acquire_async(owner, mutex, ASK_MS, false, client)), ==,
              ZKL_ETIMEDOUT);
    check_num(in_time(0, acquire_async(owner, mutex, SESSION_MS, true, client)), ==, ZKL_ECANCELED);
    check_num(in_time(0, zkl_client_get_state(client)), >, 0);
}

/* --- a test's surroundings ---------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < ENTRIES; i++)
        say(i, "", "", 0, 0);
    hurry = false;
    looks = 0;
    worst_ms = 0;
    return 0;
}

static int tear_down(void **state)
{
    hurry = true;
    print_message("    %lld ms late at most\n", (long long)worst_ms);
    check_num(strangers, ==, 0);
    world_end(state);
    return wait_until(looking == 0, WAIT_MS) ? 0 : -1;
}

static int stop_proxy(void *proxy)
{
    proxy_stop(proxy);
    return 0;
}

/* At that port, or at any. */
static struct proxy *proxy_on(const char *address, int port)
{
    struct proxy *proxy = NULL;
    int listen_port = port;

    for (int i = 0; i < 50; i++) {
        if (port == 0)
            check_ok(net_free_ports(&listen_port, 1));
        if (proxy_start_at(&proxy, zks_host(), zks_port(server, 0), address, listen_port) == 0)
            return world_keep(proxy, WORLD_LINK, stop_proxy);
        if (port != 0)
            break;
    }
    fail_msg("can't listen at %s port %d: %s", address, port, strerror(errno));
    return NULL;
}

/* Good to the end of the test. */
__attribute__((format(printf, 1, 2))) static const char *list(const char *format, ...)
{
    char *text = world_alloc(256);
    va_list args;

    va_start(args, format);
    vsnprintf(text, 256, format, args);
    va_end(args);
    return text;
}

/* --- a slow resolver, a dead one --------------------------------------------------------------- */

#define RESOLVER_TEST(name) WORLD_TEST_IN(name, set_up, tear_down)

/* No call waits for it, neither does the end of the client; what opening says names one. Modes: F76. */
RESOLVER_TEST(nobody_waits_for_a_dead_resolver)
{
    static const char *const names[] = {"a.test", "b.test", "c.test"};
    struct zkl_client_options options =
        fault_client_options("a.test:2181,b.test:2181,c.test:2181", SESSION_MS);
    struct zkl_client *client = NULL, *other = NULL;

    for (int i = 0; i < 3; i++)
        say(i, names[i], "", EAI_AGAIN, HANG_MS);
    options.connect_timeout_ms = 0;
    check_ok(in_time(0, zkl_client_open(&client, &options)));
    check_wait(looking == 1, WAIT_MS);
    struct zkl_mutex *mutex = fault_mutex(client, path);
    for (int i = 0; i < test_length(20, 2); i++)
        check_deadlines(client, mutex);
    options.connect_timeout_ms = ASK_MS;
    check_num(in_time(ASK_MS, zkl_client_open(&other, &options)), ==, ZKL_EDISCONNECTED);
    check_true(strstr(zkl_error_detail(), "the lookup of the address of a.test has not finished") !=
               NULL);
    check_ok(zkl_mutex_free(mutex));
    check_num(looking, >=, 1);
    check_ok(in_time(0, zkl_client_close(client, WAIT_MS)));
    check_ok(in_time(0, zkl_client_free(client)));
}

static void heard(const struct zkl_log_event *event, void *arg)
{
    atomic_int *counts = arg;

    if (event->kind == ZKL_LOG_KIND_RESOLVER && strcmp(event->node, "a.test") == 0)
        counts[event->why[0] == '\0']++;
}

/* Before, it is like a server that does not answer: it is said which, in the detail and in the log.
 * Modes: F76. */
RESOLVER_TEST(a_name_may_come_to_exist)
{
    struct proxy *proxy = proxy_on("127.0.0.1", 0);
    struct zkl_client *client = NULL;
    static atomic_int counts[2];
    struct zkl_client_options options =
        fault_client_options(list("a.test:%d", proxy_port(proxy)), 2000);

    say(0, "a.test", "", EAI_NONAME, 0);
    options.log_fn = heard;
    options.log_arg = counts;
    options.connect_timeout_ms = ASK_MS;
    check_num(zkl_client_open(&client, &options), ==, ZKL_EDISCONNECTED);
    check_true(strstr(zkl_error_detail(), "no address for a.test: ") != NULL);
    options.connect_timeout_ms = 0;
    client = world_client_with(&options);
    looks = 0;
    check_wait(looks >= 3 && counts[0] >= 1, WAIT_MS);
    check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_CONNECTING);
    check_num(counts[1], ==, 0);
    is_at(0, "a.test", "127.0.0.1");
    check_wait(fault_connected(client), WAIT_MS);
    check_wait(counts[1] == 1, WAIT_MS);
    check_num(counts[0], <=, 2); /* once for each client, however often it was looked up */
}

/* Calls end by their deadlines, an unlock does too, and the client is back over the address that it
 * knows; the hold stays proved. Modes: F76. */
RESOLVER_TEST(a_link_is_had_back_without_the_resolver)
{
    struct proxy *proxy = proxy_on("127.0.0.1", 0);

    is_at(0, "s.test", "127.0.0.1");
    struct zkl_client *client = world_open(list("s.test:%d", proxy_port(proxy)), SESSION_MS);
    struct holder *h = world_holder(client, path);
    struct zkl_mutex *other = world_mutex(client, "/resolver/o"),
                     *third = world_mutex(client, "/resolver/t");
    check_ok(zkl_mutex_lock(third));

    say(0, "s.test", "127.0.0.1", 0, HANG_MS);
    lose_link(proxy);
    check_wait(looking == 1 && !fault_connected(client), WAIT_MS);
    check_deadlines(client, other);
    check_num(in_time(0, zkl_mutex_unlock(third)), ==, ZKL_EUNCONFIRMED);
    check_ok(proxy_refuse(proxy, false));
    check_wait(fault_connected(client), WAIT_MS);
    check_num(looking, ==, 1);

    fault_check_held(h);
    int held = h->told.held;
    for (int i = 0; i < 300; i++) {
        check_true(zkl_mutex_window_ms(h->mutex) > 0);
        net_nap_ms(10);
    }
    hurry = true;
    check_wait(looking == 0, WAIT_MS);
    fault_check_held(h);
    check_num(h->told.held, <=, held + 1);
    check_ok(zkl_mutex_unlock(h->mutex));
    world_forget(client);
    check_ok(in_time(0, zkl_client_free(client)));
}

/* Each look takes longer than two thirds of the session timeout, the first too. Modes: F76. */
RESOLVER_TEST(a_client_comes_behind_a_slow_resolver)
{
    enum { SHORT_MS = 2000, LOOK_MS = 1500 };
    struct proxy *proxy = proxy_on("127.0.0.1", 0);

    say(0, "s.test", "127.0.0.1", 0, LOOK_MS);
    struct zkl_client *client = world_open(list("s.test:%d", proxy_port(proxy)), SHORT_MS);
    struct zkl_mutex *mutex = world_mutex(client, path);
    for (int i = 0; i < test_length(20, 3); i++) {
        fault_bounce(client, proxy);
        check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
        zkl_mutex_unlock(mutex);
    }
}

/* A name behind the first one that takes long costs no more than a moment. Modes: F76. */
RESOLVER_TEST(the_others_do_not_wait_for_a_slow_name)
{
    int port = proxy_port(proxy_on("127.0.0.1", 0));

    is_at(0, "s.test", "127.0.0.1");
    say(1, "dead.test", "", EAI_AGAIN, HANG_MS);
    world_open(list("s.test:%d,dead.test:%d", port, port), SESSION_MS);
    check_num(looking, ==, 1);
}

/* --- an ensemble that moves --------------------------------------------------------------------- */

/* Within a session timeout, in its session, with its hold; nobody listens any more where the name
 * led before. Modes: F77. */
RESOLVER_TEST(an_ensemble_that_moves_is_followed)
{
    static const char *const places[] = {"127.0.0.1", "127.0.0.2", "127.0.0.3"};
    struct proxy *proxies[3];

    for (int i = 0; i < 3; i++)
        proxies[i] = proxy_on(places[i], i == 0 ? 0 : proxy_port(proxies[0]));
    is_at(0, "s.test", places[0]);
    struct zkl_client *client = world_open(list("s.test:%d", proxy_port(proxies[0])), SESSION_MS);
    struct holder *h = world_holder(client, path);
    for (int i = 1; i <= test_length(60, 6); i++) {
        struct proxy *from = proxies[(i - 1) % 3], *to = proxies[i % 3];
        int64_t links = fault_links(client);
        if (i % 2 == 0) /* it moves first */
            is_at(0, "s.test", places[i % 3]);
        lose_link(from);
        is_at(0, "s.test", places[i % 3]);
        check_wait(fault_links(client) > links && fault_is_at(client, proxy_address(to)),
                   SESSION_MS);
        fault_check_held(h);
        check_ok(proxy_refuse(from, false));
    }
    check_ok(zkl_mutex_unlock(h->mutex));
}

/* The attempt that waits there for an answer ends after two thirds of the timeout. Modes: F77. */
RESOLVER_TEST(an_ensemble_that_falls_silent_is_followed)
{
    struct proxy *before = proxy_on("127.0.0.1", 0);
    int port = proxy_port(before);
    struct proxy *after = proxy_on("127.0.0.2", port);

    is_at(0, "s.test", "127.0.0.1");
    struct zkl_client *client = world_open(list("s.test:%d", port), SESSION_MS);
    proxy_hole(before, PROXY_BOTH);
    check_wait(!fault_connected(client), WAIT_MS);
    net_nap_ms(SESSION_MS / 20); /* the next attempt waits for an answer by now, if it can */
    is_at(0, "s.test", "127.0.0.2");
    check_wait(fault_connected(client), SESSION_MS);
    check_num(proxy_counts(after, PROXY_CONNECT), >=, 1);
}

/* The addresses without their ports are the same as before, which is all that libzookeeper
 * compares. Modes: F77. */
RESOLVER_TEST(servers_that_change_places_are_followed)
{
    struct proxy *before = proxy_on("127.0.0.1", 0);
    int port = proxy_port(before), other_port = 0;
    struct proxy *after = proxy_on("127.0.0.2", port);

    check_ok(net_free_ports(&other_port, 1)); /* where nobody listens */
    is_at(0, "a.test", "127.0.0.1");
    is_at(1, "b.test", "127.0.0.2");
    struct zkl_client *client =
        world_open(list("a.test:%d,b.test:%d", port, other_port), SESSION_MS);
    is_at(0, "a.test", "127.0.0.2");
    is_at(1, "b.test", "127.0.0.1");
    lose_link(before);
    check_wait(proxy_counts(after, PROXY_CONNECT) > 0 && fault_connected(client), SESSION_MS);
}

/* --- another list ------------------------------------------------------------------------------ */

/* Of addresses or of names; it keeps its session and its hold when the old server is gone. While a link is
 * there, it stays. Modes: F77, F93. */
RESOLVER_TEST(a_client_is_given_other_servers)
{
    struct proxy *proxies[2] = {proxy_on("127.0.0.1", 0), proxy_on("127.0.0.1", 0)};
    const char *servers[2] = {proxy_address(proxies[0]), list("a.test:%d", proxy_port(proxies[1]))};

    is_at(0, "a.test", "127.0.0.1");
    struct zkl_client *client = world_open(servers[0], SESSION_MS);
    struct holder *h = world_holder(client, path);
    for (int i = 1; i <= test_length(20, 4); i++) {
        struct proxy *from = proxies[(i + 1) % 2], *to = proxies[i % 2];
        check_ok(zkl_client_set_servers(client, servers[i % 2]));
        check_true(fault_is_at(client, proxy_address(from)));
        check_ok(proxy_refuse(to, false));
        lose_link(from);
        check_wait(fault_is_at(client, proxy_address(to)) && zkl_mutex_still_held(h->mutex, 1) == 1,
                   WAIT_MS);
        fault_check_held(h);
    }
    check_ok(zkl_mutex_unlock(h->mutex));
}

/* Again and again. Nobody waits for the lookup, and nothing of the former lists is used any more, for which
 * ASan looks. A name that is in both keeps its address. Modes: F76, F93. */
RESOLVER_TEST(a_list_is_replaced_amid_a_lookup)
{
    struct proxy *proxy = proxy_on("127.0.0.1", 0);
    const char *servers = list("a.test:%d", proxy_port(proxy));
    const char *both = list("b.test:1,%s,c.test:2", servers);

    is_at(0, "a.test", "127.0.0.1");
    say(1, "b.test", "127.0.0.1", 0, HANG_MS);
    struct zkl_client *client = world_open(servers, SESSION_MS);
    check_ok(in_time(0, zkl_client_set_servers(client, both)));
    check_wait(looking == 1, WAIT_MS);
    for (int i = 0; i < 10; i++)
        check_ok(in_time(0, zkl_client_set_servers(client, i % 2 ? both : "c.test:3,d.test:4")));
    fault_bounce(client, proxy);
    hurry = true;
    is_at(1, "b.test", "127.0.0.1");
    check_wait(looking == 0, WAIT_MS);
    hurry = false;
    check_ok(zkl_client_set_servers(client, servers));
}

RESOLVER_TEST(other_servers_are_refused)
{
    static const char *const wrong[] = {"", "a", "a:0", "a:1,", "[x]:1"};
    struct zkl_client *client = world_direct(SESSION_MS);
    const char *rooted = list("%s/app", zks_connect_string(server));

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_num(zkl_client_set_servers(client, wrong[i]), ==, ZKL_EBADSERVERS);
        check_true(strlen(zkl_error_detail()) > 0);
    }
    check_num(zkl_client_set_servers(client, "[::1%]:1"), ==, ZKL_EBADSERVERS);
    check_num(zkl_client_set_servers(client, NULL), ==, ZKL_EINVAL);
    check_num(zkl_client_set_servers(NULL, "a:1"), ==, ZKL_EINVAL);
    check_num(zkl_client_set_servers(client, "a:1/other"), ==, ZKL_EINVAL);
    check_true(strstr(zkl_error_detail(), "chroot") != NULL);
    struct zkl_client_options options = fault_client_options(rooted, SESSION_MS);
    options.connect_timeout_ms = 0; /* nobody has made the chroot */
    struct zkl_client *below = world_client_with(&options);
    check_ok(zkl_client_set_servers(below, rooted));
    check_num(zkl_client_set_servers(below, zks_connect_string(server)), ==, ZKL_EINVAL);
    check_true(strstr(zkl_error_detail(), "/app") != NULL);
    check_closed(zkl_client_close(client, WAIT_MS));
    check_num(zkl_client_set_servers(client, zks_connect_string(server)), ==, ZKL_ECLOSED);
}

static void heard_of_list(const struct zkl_log_event *event, void *count)
{
    if (event->kind == ZKL_LOG_KIND_RESOLVER && strcmp(event->node, "/zookeeper/config") == 0 &&
        strstr(event->message, "it names no servers") != NULL)
        (*(atomic_int *)count)++;
}

/* A single server gives none: the client that wants to follow it says so once. Modes: F93. */
RESOLVER_TEST(an_ensemble_without_a_list_changes_nothing)
{
    struct proxy *proxy = world_proxy();
    struct zkl_client_options options = fault_client_options(proxy_address(proxy), SESSION_MS);
    static atomic_int count;

    options.follow_ensemble = 1;
    options.connect_timeout_ms = WAIT_MS;
    options.log_fn = heard_of_list;
    options.log_arg = &count;
    struct zkl_client *client = world_client_with(&options);
    check_wait(count == 1, WAIT_MS);
    fault_bounce(client, proxy);
    struct zkl_mutex *mutex = world_mutex(client, path);
    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(mutex));
    check_num(count, ==, 1);
}

/* As section "an open client takes other servers" wants it: the resolver's list is another one now. */
static void go_to(struct zkl_client *client, const char *host, int port)
{
    struct zkl_driver *d = client->driver;

    zkl_driver_lock(d);
    free(d->resolver.addresses);
    check_true(asprintf(&d->resolver.addresses, "%s:%d", host, port) > 0);
    unsigned serial = ++d->resolver.serial;
    zkl_driver_kick(d);
    zkl_driver_unlock(d);
    check_wait(locked(d, d->current->serial == serial), WAIT_MS);
}

/* Not before. The next attempt goes to them, where nobody listens at first, and libzookeeper, which then says nothing of
 * the link's end, does not keep the client from hearing of it: what that link proved does not extend to the next one.
 * Modes: F77. */
RESOLVER_TEST(addresses_are_taken_when_the_link_fails)
{
    struct proxy *first = proxy_on("127.0.0.1", 0);
    int dead, port = proxy_port(first);
    struct proxy *second = proxy_on("127.0.0.2", port);

    check_ok(net_free_ports(&dead, 1));
    is_at(0, "s.test", "127.0.0.1");
    struct zkl_client *client = world_open(list("s.test:%d", port), SESSION_MS);
    struct holder *h = world_holder(client, path);
    struct zkl_client_metrics before = fault_metrics(client);
    go_to(client, "127.0.0.3", dead);
    net_nap_ms(SESSION_MS / 20);
    check_num(fault_metrics(client).disconnections, ==, before.disconnections);
    proxy_cut(first);
    check_wait(!fault_connected(client), WAIT_MS);
    check_num(fault_metrics(client).disconnections, ==, before.disconnections + 1);
    go_to(client, "127.0.0.2", port);
    check_wait(fault_connected(client) && zkl_mutex_window_ms(h->mutex) > 0, WAIT_MS);
    check_num(proxy_counts(second, PROXY_CONNECT), ==, 1);
    check_num(fault_metrics(client).disconnections, ==, before.disconnections + 1);
    check_num(fault_metrics(client).connections, ==, before.connections + 1);
    fault_check_held(h);
    check_ok(zkl_mutex_unlock(h->mutex));
}

/* --- addresses ---------------------------------------------------------------------------------- */

/* Nor the thread for it. */
RESOLVER_TEST(addresses_need_no_resolver)
{
    int threads = fault_threads();

    is_at(0, "s.test", "127.0.0.1");
    world_direct(SESSION_MS);
    int of_addresses = fault_threads() - threads;
    check_num(looks, ==, 0);
    world_clear();
    check_wait(fault_threads() <= threads, WAIT_MS);
    world_open(list("s.test:%d", zks_port(server, 0)), SESSION_MS);
    check_num(fault_threads() - threads, ==, of_addresses + 1);
}

/* In brackets, alone and in a list, with a chroot, and as what a name leads to. */
RESOLVER_TEST(ipv6_works)
{
    struct wire *wire = world_wire();
    int port = 0, fd;

    check_ok(net_free_ports(&port, 1));
    fd = net_listen_at("::1", port);
    if (fd < 0) {
        print_message("skipped: this machine has no ::1\n");
        skip();
    }
    close(fd);
    struct proxy *proxy = proxy_on("::1", port);
    is_at(0, "six.test", "::1");
    check_ok(wire_create(wire, "/chrooted", "", WIRE_PERSISTENT, NULL, 0));
    const char *const lists[] = {"[::1]:%d", "[0:0:0:0:0:0:0:1]:%d,127.0.0.1:1",
                                 "127.0.0.1:1,[::1]:%d", "[::1]:%d/chrooted", "six.test:%d"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const char *at = strstr(lists[i], "%d");
        const char *servers = list("%.*s%d%s", (int)(at - lists[i]), lists[i], port, at + 2);
        struct zkl_mutex *mutex = world_mutex(world_open(servers, SESSION_MS), path);
        check_ok(zkl_mutex_lock(mutex));
        check_ok(zkl_mutex_unlock(mutex));
    }
    check_num(proxy_counts(proxy, PROXY_CONNECT), >=, 5);
}

/* --- handles ------------------------------------------------------------------------------------ */

static atomic_int close_takes_ms, closings;

__typeof__(zookeeper_close) __real_zookeeper_close, __wrap_zookeeper_close;

/* It can take 4.5 s where a server does not answer. */
int __wrap_zookeeper_close(zhandle_t *handle)
{
    closings++;
    for (int64_t start_ms = net_now_ms(); net_now_ms() < start_ms + close_takes_ms;)
        net_nap_ms(5);
    closings--;
    return __real_zookeeper_close(handle);
}

/* Meanwhile the next session is there, deadlines and cancellations are in time, and holds stay proved. Modes: F78. */
RESOLVER_TEST(a_handle_that_is_long_in_closing_delays_nobody)
{
    struct zkl_owner *owner = world_owner();
    struct zkl_cancel *cancel = world_cancel();
    struct zkl_client *client = world_direct(SESSION_MS), *rival = world_direct(SESSION_MS);
    struct zkl_mutex *mutex = world_mutex(client, path),
                     *other = world_mutex(client, "/resolver/o");
    struct zkl_mutex *theirs = world_mutex(rival, path);
    struct actor *a = world_actor();
    int64_t session = fault_session(client);
    check_ok(zkl_mutex_lock(theirs));
    close_takes_ms = HANG_MS;
    fault_expire(client, 0);
    check_wait(closings == 1, WAIT_MS);
    check_wait(fault_connected(client) && fault_session(client) != session, WAIT_MS);
    check_ok(zkl_mutex_lock(other));
    check_num(in_time(ASK_MS, zkl_mutex_lock_for(mutex, ASK_MS)), ==, ZKL_ETIMEDOUT);
    check_num(in_time(ASK_MS, acquire_async(owner, mutex, ASK_MS, false, client)), ==,
              ZKL_ETIMEDOUT);
    act_begin(a, act_lock_cancel, mutex, cancel);
    net_nap_ms(ASK_MS);
    zkl_cancel_set(cancel);
    check_num(in_time(0, act_end(a, WAIT_MS)), ==, ZKL_ECANCELED);
    check_true(zkl_mutex_window_ms(other) > 0);
    check_num(closings, ==, 1);
    close_takes_ms = 0;
    check_wait(closings == 0, WAIT_MS);
    check_ok(zkl_mutex_unlock(other));
    check_ok(zkl_mutex_unlock(theirs));
}

static const char *no_reason(void)
{
    return "";
}

/* The level DEBUG, which the program may set, makes libzookeeper log nodes' names, which others choose, on any
 * thread. None of them passes for a connection that failed. Modes: F77. */
TEST(a_name_is_no_failure)
{
    static const char failure[] = "Socket 127.0.0.1:2181 zk retcode=-4, errno=111(refused): none";
    static const char header[] = "2026-01-01 00:00:00,000:1(0x1):";
    char line[300];

    snprintf(line, sizeof line, "%sZOO_ERROR@check_events@1: %s", header, failure);
    check_true(zkl_trouble_note(line, no_reason));
    snprintf(line, sizeof line, "%sZOO_DEBUG@process@1: Calling a watcher for node [/a: %s]",
             header, failure);
    check_true(!zkl_trouble_note(line, no_reason));
    check_true(!zkl_trouble_note(failure, no_reason));
}
