/* SPDX-License-Identifier: Apache-2.0 */
/* The credential from a file and from the environment: it opens what belongs to it, whatever is wrong
 * with its source is said by the source's name, and its text is nowhere. */
#include "check_error.h"
#include "creator.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#define CREDENTIAL "alice:sesame"
#define WORD "sesame"
#define VARIABLE "ZKL_TEST_CREDENTIAL"
#define MOST 4096

/* --- sources ---------------------------------------------------------------------------------- */

/* A file in the server's folder, which is removed with that folder. */
static const char *file_with(const char *bytes, size_t size)
{
    static char name[512];
    static unsigned last;

    snprintf(name, sizeof name, "%s/credential-%u", zks_dir(server), ++last);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check_num(fd, >=, 0);
    check_num(write(fd, bytes, size), ==, size);
    check_ok(close(fd));
    return name;
}

enum source { GIVEN = 1, BY_FILE = 2, BY_ENV = 4, ANY = GIVEN | BY_FILE | BY_ENV };

/* The options get the text from there. How it is named. */
static const char *set_source(struct zkl_client_options *options, enum source source,
                              const char *text, size_t size)
{
    *options = creator_options();
    if (source == BY_FILE)
        return options->auth_file = file_with(text, size);
    if (source == BY_ENV) {
        check_ok(setenv(VARIABLE, text, 1));
        return options->auth_env = VARIABLE;
    }
    options->auth_credential = text;
    return "auth_credential";
}

static struct zkl_client *client_from(enum source source, const char *text)
{
    struct zkl_client_options options;
    const char *name = set_source(&options, source, text, strlen(text));
    struct zkl_client *client = world_client_with(&options);

    if (source != GIVEN) /* it was copied */
        check_ok(source == BY_FILE ? unlink(name) : unsetenv(name));
    return client;
}

static void check_silent(const char *text)
{
    if (strstr(text, WORD))
        fail_msg("\"%s\" reveals the credential", text);
}

static void check_bad(const struct zkl_client_options *options, const char *name, const char *word)
{
    struct zkl_client *client = NULL;
    char why[768];

    struct zkl_client_options o = *options;
    o.errbuf = why;
    o.errbuf_size = sizeof why;
    check_fails(zkl_client_open(&client, &o), ZKL_EINVAL, word);
    check_detail(ZKL_EINVAL, name);
    check_silent(zkl_error_detail());
    check_text(why, zkl_error_detail());
    check_true(client == NULL);
}

static void check_bad_file(const char *name, const char *word)
{
    struct zkl_client_options options = creator_options();

    options.auth_file = name;
    check_bad(&options, name, word);
}

/* --- what belongs to it ----------------------------------------------------------------------- */

/* Lock and unlock what is alice's. */
static void check_is_alice(struct zkl_client *client, const char *path)
{
    struct zkl_mutex *mutex = world_mutex(client, path);

    check_ok(zkl_mutex_lock(mutex));
    check_creators(node_of(mutex));
    check_creators(cluster_at(path));
    check_ok(zkl_mutex_unlock(mutex));
}

/* Goal: a file's first line is the credential, whatever ends that line and comes after it. The file may be deleted
 * afterwards. A credential from any source may have its scheme in front, as the command zklock writes it. */
WORLD_TEST(each_source_has_the_credential_on_its_first_line)
{
    static const struct {
        unsigned sources;
        const char *text;
    } cases[] = {
        {ANY, CREDENTIAL},
        {ANY, "digest:" CREDENTIAL},
        {BY_FILE, CREDENTIAL "\n"},
        {BY_FILE, CREDENTIAL "\r\n"},
        {BY_FILE, CREDENTIAL "\nbob:builder\n"},
    };
    const char *path = cluster_path("credential");

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (unsigned source = GIVEN; source <= BY_ENV; source *= 2) {
            if (cases[i].sources & source)
                check_is_alice(client_from(source, cases[i].text), path);
        }
    }
}

static int write_late(void *fd)
{
    net_nap_ms(50);
    bool written = write(*(int *)fd, CREDENTIAL "\n", strlen(CREDENTIAL) + 1) > 0;
    return close(*(int *)fd) != 0 || !written;
}

/* Goal: a pipe is as good as a file, also if its writer is slow. The client refuses a pipe without
 * a writer instead of waiting for one. */
WORLD_TEST(a_pipe_is_read_as_a_file_is)
{
    struct zkl_client_options options = creator_options();
    struct actor *actor = world_actor();
    char name[512];
    int fds[2];

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    check_ok(pipe(fds));
    snprintf(name, sizeof name, "/dev/fd/%d", fds[0]);
    actor_begin(actor, write_late, &fds[1]);
    options.auth_file = name;
    struct zkl_client *client = world_client_with(&options);
    check_ok(actor_result(actor));
    check_is_alice(client, cluster_path("pipe"));
    check_ok(close(fds[0]));
    snprintf(name, sizeof name, "%s/fifo", zks_dir(server));
    check_ok(mkfifo(name, 0600));
    check_bad_file(name, "empty");
}

WORLD_TEST(the_longest_credential_works)
{
    char text[MOST + 1] = "alice:";

    memset(text + 6, 's', MOST - 6);
    text[MOST] = '\0';
    cycle(world_mutex(client_from(BY_FILE, text), cluster_path("longest")), 1);
}

/* As in Curator's TestLockACLs. Method: another client's parent, which lets others make nodes below it. */
WORLD_TEST(what_is_made_gets_the_acl_and_what_was_there_keeps_its_own)
{
    const char *parent = cluster_path("parent-of-others");
    struct wire_acl acl = {PERM_READ | PERM_CREATE, "ip", "127.0.0.1"};
    char text[256];

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    check_ok(wire_create_acl(raw, cluster_at(parent), "", WIRE_PERSISTENT, &acl, 1, NULL, 0));
    check_is_alice(client_from(BY_ENV, CREDENTIAL), below(parent, "bar"));
    check_ok(wire_get_acl(raw, cluster_at(parent), text, sizeof text));
    check_text(text, "5:ip:127.0.0.1");
}

/* --- what does not ---------------------------------------------------------------------------- */

/* Of a client behind a proxy that has just been refused, or accepted, without hearing of it: the first answer to
 * the credential was lost with its link, the second one is held back. */
static void unheard(struct zkl_client_options *options, struct proxy **proxy, struct actor *actor,
                    struct zkl_mutex **mutex)
{
    *proxy = world_proxy_for(options);
    options->session_timeout_ms = BRIEF_MS;
    options->connect_timeout_ms = 0;
    options->auth_credential = CREDENTIAL;
    check_ok(proxy_drop_reply(*proxy, PROXY_AUTH, 1, PROXY_THEN_SILENT));
    *mutex = world_mutex(world_client_with(options), cluster_path("unheard"));
    actor_begin(actor, do_lock, *mutex);
    check_ok(proxy_wait_dropped(*proxy, WAIT_MS));
    lose_link(*proxy);
    proxy_reset_counts(*proxy);
    check_ok(proxy_hold_reply(*proxy, PROXY_AUTH, 1));
    check_ok(proxy_refuse(*proxy, false));
    check_ok(proxy_wait_held(*proxy, WAIT_MS));
}

/* Goal: nothing is sent before the server is known to have accepted the credential, also where its first answer was
 * lost: a refusal ends the session at any moment. Method: it is held back while a lock is due. */
WORLD_TEST(a_lost_answer_to_the_credential_is_made_up_for)
{
    for (int accepted = 0; accepted < 2; accepted++) {
        struct zkl_client_options options = creator_options();
        struct actor *actor = world_actor();
        struct zkl_mutex *mutex = NULL;
        struct proxy *proxy = NULL;

        if (!accepted)
            options.auth_scheme = "nonsense";
        unheard(&options, &proxy, actor, &mutex);
        net_nap_ms(200); /* would do to send more */
        int64_t keepalives = proxy_counts(proxy, PROXY_EXISTS);
        check_num(keepalives, <=, 1); /* under way until a link counts (timers.c) */
        check_num(proxy_counts(proxy, PROXY_ANY) - proxy_counts(proxy, PROXY_PING) - keepalives, ==,
                  proxy_counts(proxy, PROXY_AUTH));
        proxy_release(proxy);
        check_num(actor_result(actor), ==, accepted ? 0 : ZKL_EAUTH);
        if (accepted)
            check_ok(actor_do(actor, do_unlock, mutex));
    }
}

struct refused {
    struct zkl_client_options options;
    bool multi;
};

/* A multi-lock of three, or a mutex. */
static int lock_some(struct zkl_client *client, bool multi)
{
    static const char *const paths[] = {"/refused-0", "/refused-1", "/refused-2"};
    struct zkl_mutex *mutexes[3] = {NULL};
    struct zkl_member members[3];
    struct zkl_multi *whole = NULL;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < 3; i++) {
        rc = zkl_mutex_new(&mutexes[i], client, paths[i], NULL);
        members[i] = zkl_member_mutex(mutexes[i]);
    }
    if (rc == 0)
        rc = zkl_multi_new(&whole, client, members, 3);
    if (rc == 0)
        rc = multi ? zkl_multi_lock(whole) : zkl_mutex_lock(mutexes[0]);
    zkl_multi_free(whole);
    for (size_t i = 0; i < 3; i++)
        zkl_mutex_free(mutexes[i]);
    return rc;
}

/* The server refuses the credential while a lock asks. The client hears of the refusal either
 * before it sends anything, or after. */
static int be_refused(void *arg)
{
    const struct refused *r = arg;
    int rc = ZKL_EAUTH;

    for (long i = test_length(200, 20); i > 0 && rc == ZKL_EAUTH; i--) {
        struct zkl_client *client = NULL;
        rc = zkl_client_open(&client, &r->options);
        if (rc == 0)
            rc = lock_some(client, r->multi);
        if (zkl_client_free(client) != 0)
            rc = 0;
    }
    return rc == ZKL_EAUTH ? 0 : rc - 1000;
}

/* Goal: nothing in memory breaks where a session ends just when something is sent, below a chroot or
 * not, by one operation or several. Method: many of them, side by side; libzookeeper's zoo_amulti then
 * leaks, and frees paths that it put a chroot before twice, and paths that are not its own. */
WORLD_TEST(a_session_that_just_ended_takes_nothing)
{
    struct zkl_client_options options = creator_options();
    struct refused refused[24];
    char deep[128];

    options.auth_scheme = "nonsense";
    options.auth_credential = CREDENTIAL;
    options.connect_timeout_ms = 0;
    snprintf(deep, sizeof deep, "%s/below/a/chroot", zks_connect_string(server));
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        refused[i] = (struct refused){.options = options, .multi = i & 2};
        if (i & 1)
            refused[i].options.servers = deep;
    }
    struct crowd crowd = crowd_begin(be_refused, refused);
    crowd_end(&crowd);
}

/* --- what is wrong with a source -------------------------------------------------------------- */

WORLD_TEST(a_pipe_with_a_silent_writer_is_given_up)
{
    char name[512];

    snprintf(name, sizeof name, "%s/silent", zks_dir(server));
    check_ok(mkfifo(name, 0600));
    int fd = open(name, O_RDWR | O_CLOEXEC);
    check_num(write(fd, "a", 1), ==, 1);
    check_bad_file(name, "");
    check_ok(close(fd));
}

/* Goal: a source that gives no credential is named, with the reason, and not a byte of it is: by the open, and not by an
 * ACL later. */
WORLD_TEST(what_gives_no_credential_is_named)
{
    static char text[MOST + 2], line[MOST + 3]; /* too long by a byte */
    static const struct {
        unsigned sources;
        const char *text;
        size_t size;
        const char *word;
    } cases[] = {
        {BY_FILE | BY_ENV, "", 0, "empty"},
        {BY_FILE, "\n" CREDENTIAL, 0, "empty"},
        {BY_FILE, "\r\n" CREDENTIAL, 0, "empty"},
        {BY_FILE, CREDENTIAL "\0more", sizeof CREDENTIAL "\0more" - 1, "NUL"},
        {BY_FILE | BY_ENV, text, 0, "more than 4096 bytes"},
        {BY_FILE, line, 0, "more than 4096 bytes"},
        {ANY, WORD, 0, "USER:PASSWORD"},
        {ANY, "alice:", 0, "USER:PASSWORD"},
        {ANY, ":" WORD, 0, "USER:PASSWORD"},
        {ANY, "digest::" WORD, 0, "USER:PASSWORD"},
        {ANY, "digest:alice:", 0, "USER:PASSWORD"},
    };
    struct zkl_client_options options;

    memset(text, 's', sizeof text - 1);
    memcpy(text, CREDENTIAL, strlen(CREDENTIAL));
    snprintf(line, sizeof line, "%s\n", text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size = cases[i].size > 0 ? cases[i].size : strlen(cases[i].text);
        for (unsigned source = GIVEN; source <= BY_ENV; source *= 2) {
            if (cases[i].sources & source)
                check_bad(&options, set_source(&options, source, cases[i].text, size),
                          cases[i].word);
        }
    }
    check_ok(unsetenv(VARIABLE));
    options.auth_env = VARIABLE;
    check_bad(&options, VARIABLE, "not set");
    check_bad_file("/no/such/folder/credential", "No such file");
    check_bad_file(zks_dir(server), "directory");
}

/* Method: root may read any file, so that the test's thread reads as another user. */
WORLD_TEST(a_file_that_may_not_be_read_is_named)
{
    const char *name = file_with(CREDENTIAL, strlen(CREDENTIAL));
    struct stat folder;

    check_ok(stat(zks_dir(server), &folder));
    check_ok(chmod(name, 0000));
    check_ok(chmod(zks_dir(server), 0755));
    int self = geteuid() == 0 ? setfsuid(65534) : -1; /* this thread alone */
    struct zkl_client_options options = creator_options();
    struct zkl_client *client = NULL;
    options.auth_file = name;
    int rc = zkl_client_open(&client, &options);
    if (self >= 0)
        setfsuid((uid_t)self);
    check_ok(chmod(zks_dir(server), folder.st_mode & 0777));
    check_num(rc, ==, ZKL_EINVAL);
    check_detail(ZKL_EINVAL, name);
    check_detail(ZKL_EINVAL, "Permission denied");
}

WORLD_TEST(a_scheme_goes_with_exactly_one_source)
{
    const char *name = file_with(CREDENTIAL, strlen(CREDENTIAL));

    check_ok(setenv(VARIABLE, CREDENTIAL, 1));
    for (int i = 0; i < 16; i++) {
        struct zkl_client_options options = cluster_options();
        options.auth_scheme = i & 1 ? "digest" : NULL;
        options.auth_credential = i & 2 ? CREDENTIAL : NULL;
        options.auth_file = i & 4 ? name : NULL;
        options.auth_env = i & 8 ? VARIABLE : NULL;
        if (i == 0 || i == 3 || i == 5 || i == 9)
            world_client_with(&options);
        else
            check_bad(&options, "auth_file and auth_env", "exactly one");
    }
    check_ok(unsetenv(VARIABLE));
}

/* --- how it is written ------------------------------------------------------------------------ */

/* What the first makes is the second's. */
static void check_same_user(const char *one, const char *other)
{
    const char *path = cluster_path("same");
    struct zkl_mutex *mutex = world_mutex(client_from(BY_ENV, one), path);
    struct zkl_mutex *again = world_mutex(client_from(BY_ENV, other), path);

    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_trylock(again), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(mutex));
    cycle(again, 1);
}

/* Goal: the number of colons decides whether a credential has its scheme in front. A user may thus have the scheme's
 * name, and a password may have colons. */
WORLD_TEST(a_user_may_have_the_schemes_name)
{
    static const char *const digests[] = {"digest:" WORD, "digest:digest:" WORD};
    char acl[256];

    check_ok(wire_auth(raw, "digest", "digest:" WORD));
    for (size_t i = 0; i < 2; i++) {
        struct zkl_mutex *mutex =
            world_mutex(client_from(BY_ENV, digests[i]), cluster_path("user-digest"));
        check_ok(zkl_mutex_lock(mutex));
        check_ok(wire_get_acl(raw, node_of(mutex), acl, sizeof acl));
        check_ok(strncmp(acl, "31:digest:digest:", 17));
        check_ok(zkl_mutex_unlock(mutex));
    }
    check_same_user("digest:alice:a:b", "alice:a:b");
}

/* --- memory ----------------------------------------------------------------------------------- */

#define MASK 0x5a
#define REGION_MAX (64 << 20)

/* Not in plain text anywhere in this program: only masked. */
static const unsigned char masked[] = {'m' ^ MASK, 'a' ^ MASK, 'l' ^ MASK, 'l' ^ MASK, 'o' ^ MASK,
                                       'r' ^ MASK, 'y' ^ MASK, ':' ^ MASK, 'x' ^ MASK, 'y' ^ MASK,
                                       'z' ^ MASK, 'z' ^ MASK, 'y' ^ MASK, '7' ^ MASK, '1' ^ MASK};

/* Again and again: the first bytes of freed memory change anyhow, and much of a stack is used again. */
static void unmask(volatile char *out, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[i] = (char)(masked[i % sizeof masked] ^ MASK);
}

static size_t count_in(const unsigned char *bytes, size_t size)
{
    size_t found = 0;

    const unsigned char *at = memchr(bytes, masked[0] ^ MASK, size);
    for (; at; at = memchr(at, masked[0] ^ MASK, (size_t)(bytes + size - at))) {
        size_t i = 1;
        while (i < sizeof masked && at + i < bytes + size && (at[i] ^ MASK) == masked[i])
            i++;
        found += i == sizeof masked;
        at++;
    }
    return found;
}

static size_t count_in_region(int mem, uint64_t start, size_t size)
{
    unsigned char *bytes = malloc(size);
    ssize_t n = bytes ? pread(mem, bytes, size, (off_t)start) : -1;
    size_t found = n > 0 ? count_in(bytes, (size_t)n) : 0;

    if (bytes)
        explicit_bzero(bytes, size); /* or it would be found here next time */
    free(bytes);
    return found;
}

/* How often the masked text is in the memory that this process can write. */
static size_t count_in_memory(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    unsigned long start, end;
    char line[512], rights[8];
    size_t found = 0;

    check_true(maps != NULL && mem >= 0);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 && rights[1] == 'w' &&
            end - start <= REGION_MAX)
            found += count_in_region(mem, start, end - start);
    }
    fclose(maps);
    close(mem);
    return found;
}

/* Goal: after a failed open nothing of the credential is left in this process. Method: a server
 * without an address, so that libzookeeper, which keeps copies of its own, never gets the
 * credential. Then the test searches the memory. It first tries that the search finds what is
 * there. */
WORLD_TEST(a_failed_open_leaves_nothing_in_memory)
{
    struct zkl_client_options options = creator_options();
    struct zkl_client *client = NULL;
    char text[MOST];

#if UNDER_ASAN || UNDER_TSAN
    print_message("skipped: a sanitizer has stacks and a heap of its own\n");
    skip();
#endif
    unmask(text, sizeof text);
    const char *name = file_with(text, sizeof text);
    check_num(count_in_memory(), >=, 1);
    explicit_bzero(text, sizeof text);
    check_num(count_in_memory(), ==, 0);
    options.auth_file = name;
    options.servers = "[1:2:3]:2181";
    check_num(zkl_client_open(&client, &options), ==, ZKL_EBADSERVERS);
    check_num(count_in_memory(), ==, 0);
}
