/* SPDX-License-Identifier: Apache-2.0 */
/* The credential from a file and from the environment: it opens what belongs to it, whatever is wrong
 * with its source is said by the source's name, and its text is nowhere. */
#include "cluster.h"
#include "creator.h"
#include "nodes.h"
#include "check_error.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sanitizer.h"

#define CREDENTIAL "alice:sesame"
#define WORD "sesame"
#define VARIABLE "ZKL_TEST_CREDENTIAL"
#define MOST 4096

enum { READ = 1, CREATE = 4 };

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

static const char *file_of(const char *text)
{
    return file_with(text, strlen(text));
}

static struct zkl_client_options creator_options(void)
{
    struct zkl_client_options options = cluster_options();

    options.auth_scheme = "digest";
    options.acl = ZKL_ACL_CREATOR;
    return options;
}

static struct zkl_client *client_of_file(const char *name)
{
    struct zkl_client_options options = creator_options();

    options.auth_file = name;
    return world_client_with(&options);
}

static struct zkl_client *client_of_env(const char *text)
{
    struct zkl_client_options options = creator_options();

    check_ok(setenv(VARIABLE, text, 1));
    options.auth_env = VARIABLE;
    struct zkl_client *client = world_client_with(&options);
    check_ok(unsetenv(VARIABLE)); /* it was copied */
    return client;
}

static void check_silent(const char *text)
{
    if (strstr(text, WORD))
        fail_msg("\"%s\" reveals the credential", text);
}

/* --- what belongs to it ----------------------------------------------------------------------- */

/* Lock and unlock what is alice's. */
static void check_is_alice(struct zkl_client *client, const char *path)
{
    struct zkl_mutex *mutex = world_mutex(client, path);
    char node[256];

    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
    check_creators(cluster_at(node));
    check_creators(cluster_at(path));
    check_ok(zkl_mutex_unlock(mutex));
}

/* Goal: a file's first line is the credential, whatever ends that line and comes after it. The text
 * of a variable is read in the same way. The file may be deleted afterwards. */
WORLD_TEST(the_first_line_of_a_file_or_a_variable_is_the_credential)
{
    static const char *const texts[] = {CREDENTIAL "\n", CREDENTIAL, CREDENTIAL "\r\n",
                                        CREDENTIAL "\nbob:builder\n"};
    const char *path = cluster_path("credential");

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *name = file_of(texts[i]);
        struct zkl_client *client = client_of_file(name);
        check_ok(unlink(name));
        check_is_alice(client, path);
    }
    check_is_alice(client_of_env(CREDENTIAL), path);
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
    struct zkl_client *client = NULL;
    char name[512];
    int fds[2];

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    check_ok(pipe(fds));
    snprintf(name, sizeof name, "/dev/fd/%d", fds[0]);
    actor_begin(actor, write_late, &fds[1]);
    client = client_of_file(name);
    check_ok(actor_result(actor));
    check_is_alice(client, cluster_path("pipe"));
    check_ok(close(fds[0]));
    snprintf(name, sizeof name, "%s/fifo", zks_dir(server));
    check_ok(mkfifo(name, 0600));
    options.auth_file = name;
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "empty");
}

static int open_of_file(void *name)
{
    struct zkl_client_options options = creator_options();
    struct zkl_client *client = NULL;

    options.auth_file = name;
    int rc = zkl_client_open(&client, &options);
    return rc == 0 ? zkl_client_free(client) + 1 : rc;
}

/* Goal: an open gives up a pipe whose writer is silent, though the writer never closes it. Method:
 * the test writes one byte to the pipe, and keeps it open. */
WORLD_TEST(a_pipe_with_a_silent_writer_is_given_up)
{
    struct actor *actor = world_actor();
    char name[512];

    snprintf(name, sizeof name, "%s/silent", zks_dir(server));
    check_ok(mkfifo(name, 0600));
    int fd = open(name, O_RDWR | O_CLOEXEC);
    check_num(fd, >=, 0);
    check_num(write(fd, "a", 1), ==, 1);
    check_num(actor_do(actor, open_of_file, name), ==, ZKL_EINVAL);
    check_ok(close(fd));
}

/* Goal: the longest credential that is allowed works. */
WORLD_TEST(the_longest_credential_works)
{
    char text[MOST + 1] = "alice:";

    memset(text + 6, 's', MOST - 6);
    text[MOST] = '\0';
    struct zkl_client *client = client_of_file(file_of(text));
    struct zkl_mutex *mutex = world_mutex(client, cluster_path("longest"));
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_unlock(mutex));
}

/* Goal: as in Curator's TestLockACLs, the path of a lock and its nodes have the client's ACL if the
 * client makes them. A node that was there keeps its own ACL. Method: another client's parent,
 * which lets others make nodes below it. */
WORLD_TEST(what_is_made_gets_the_acl_and_what_was_there_keeps_its_own)
{
    const char *parent = cluster_path("parent-of-others");
    struct wire_acl acl = {READ | CREATE, "ip", "127.0.0.1"};
    struct zkl_client *client = client_of_env(CREDENTIAL);
    char path[128], node[256], text[256];

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    check_ok(wire_create_acl(raw, cluster_at(parent), "", WIRE_PERSISTENT, &acl, 1, NULL, 0));
    snprintf(path, sizeof path, "%s/bar", parent);
    struct zkl_mutex *mutex = world_mutex(client, path);
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
    check_creators(cluster_at(path));
    check_creators(cluster_at(node));
    check_ok(wire_get_acl(raw, cluster_at(parent), text, sizeof text));
    check_text(text, "5:ip:127.0.0.1");
    check_ok(zkl_mutex_unlock(mutex));
}

/* --- what does not ---------------------------------------------------------------------------- */

static void check_belongs_to_others(struct zkl_client *client, const char *path)
{
    struct zkl_mutex *mutex = world_mutex(client, path);

    check_fails(zkl_mutex_lock(mutex), ZKL_EACCES, path);
    check_detail(ZKL_EACCES, "denies CREATE");
    check_true(strstr(zkl_error_detail(), "a credential that has the right") != NULL);
    check_silent(zkl_error_detail());
    check_fails(zkl_mutex_trylock(mutex), ZKL_EACCES, "denies READ");
    check_silent(zkl_error_detail());
}

/* Goal: with another credential, or with none, a call refuses a path that belongs to another
 * client. It says what is denied and what to do. The right credential still works. */
WORLD_TEST(a_path_of_somebody_else_says_what_is_denied_and_what_to_do)
{
    const char *path = cluster_path("somebody-elses");

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    struct zkl_client *client = client_of_file(file_of(CREDENTIAL));
    struct zkl_mutex *mutex = world_mutex(client, path);
    check_ok(zkl_mutex_lock(mutex));
    check_belongs_to_others(client_of_file(file_of("alice:Sesame\n")), path);
    check_belongs_to_others(client_of_env("bob:" WORD), path);
    check_belongs_to_others(world_client(), path);
    check_num(cluster_children(path), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
    check_is_alice(client_of_env(CREDENTIAL), path);
}

static void on_event(const struct zkl_log_event *event, void *told)
{
    if (strstr(event->message, WORD))
        *(int *)told = 1;
}

/* Goal: a credential that the server refuses says so, in open and in every call, with not a word of
 * it in a sentence or a line. */
WORLD_TEST(a_refused_credential_is_not_told)
{
    struct zkl_client_options options = creator_options();
    struct zkl_client *client = NULL;
    char why[512] = "";
    int told = 0;

    options.auth_scheme = "nonsense";
    options.auth_file = file_of(CREDENTIAL);
    options.errbuf = why;
    options.errbuf_size = sizeof why;
    options.log_fn = on_event;
    options.log_level = ZKL_LOG_DEBUG;
    options.log_arg = &told;
    check_fails(zkl_client_open(&client, &options), ZKL_EAUTH, "zkl_client_open");
    check_text(why, zkl_error_detail());
    check_silent(why);
    options.connect_timeout_ms = 0;
    client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, cluster_path("not-told"));
    check_num(zkl_mutex_lock(mutex), ==, ZKL_EAUTH);
    check_silent(zkl_error_detail());
    world_clear();
    check_num(told, ==, 0);
}

/* Of a client behind a proxy that has just been refused, or accepted, without hearing of it: the first answer to
 * the credential was lost with its link, the second one is held back. */
static void unheard(struct zkl_client_options *options, struct proxy **proxy, struct actor *actor,
                    struct zkl_mutex **mutex)
{
    *proxy = world_proxy_for(options);
    options->session_timeout_ms = BRIEF_MS;
    options->connect_timeout_ms = 0;
    options->auth_file = file_of(CREDENTIAL);
    check_ok(proxy_drop_reply(*proxy, PROXY_AUTH, 1, PROXY_THEN_SILENT));
    *mutex = world_mutex(world_client_with(options), cluster_path("unheard"));
    actor_begin(actor, do_lock, *mutex);
    check_ok(proxy_wait_dropped(*proxy, WAIT_MS));
    check_ok(proxy_refuse(*proxy, true));
    proxy_cut(*proxy);
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
    int code; /* the first that is not ZKL_EAUTH */
};

static int lock_one(struct zkl_client *client)
{
    struct zkl_mutex *mutex = NULL;
    int rc = zkl_mutex_new(&mutex, client, "/refused", NULL);

    if (rc == 0)
        rc = zkl_mutex_lock(mutex);
    zkl_mutex_free(mutex);
    return rc;
}

static int lock_three(struct zkl_client *client)
{
    struct zkl_mutex *mutexes[3] = {NULL};
    struct zkl_member members[3];
    struct zkl_multi *multi = NULL;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < 3; i++) {
        char path[] = "/refused-0";
        path[sizeof path - 2] += (char)i;
        rc = zkl_mutex_new(&mutexes[i], client, path, NULL);
        members[i] = zkl_member_mutex(mutexes[i]);
    }
    if (rc == 0)
        rc = zkl_multi_new(&multi, client, members, 3);
    if (rc == 0)
        rc = zkl_multi_lock(multi);
    zkl_multi_free(multi);
    for (size_t i = 0; i < 3; i++)
        zkl_mutex_free(mutexes[i]);
    return rc;
}

/* The server refuses the credential while a lock asks. The client hears of the refusal either
 * before it sends anything, or after. */
static void *be_refused(void *arg)
{
    struct refused *r = arg;
    long rounds = test_length(200, 20);

    for (long i = 0; i < rounds && r->code == ZKL_EAUTH; i++) {
        struct zkl_client *client = NULL;
        r->code = zkl_client_open(&client, &r->options);
        if (r->code == 0)
            r->code = r->multi ? lock_three(client) : lock_one(client);
        if (zkl_client_free(client) != 0)
            r->code = 0;
    }
    return NULL;
}

/* Goal: nothing in memory breaks where a session ends just when something is sent, below a chroot or
 * not, by one operation or several. Method: many of them, side by side; libzookeeper's zoo_amulti then
 * leaks, and frees paths that it put a chroot before twice, and paths that are not its own. */
WORLD_TEST(a_session_that_just_ended_takes_nothing)
{
    enum { THREADS = 24 };
    struct zkl_client_options options = creator_options();
    struct refused refused[THREADS];
    pthread_t threads[THREADS];
    char below[128];

    options.auth_scheme = "nonsense";
    options.auth_file = file_of(CREDENTIAL);
    options.connect_timeout_ms = 0;
    snprintf(below, sizeof below, "%s/below/a/chroot", zks_connect_string(server));
    for (size_t i = 0; i < THREADS; i++) {
        refused[i] = (struct refused){.options = options, .multi = i & 2, .code = ZKL_EAUTH};
        if (i & 1)
            refused[i].options.servers = below;
        check_ok(pthread_create(&threads[i], NULL, be_refused, &refused[i]));
    }
    for (size_t i = 0; i < THREADS; i++)
        check_ok(pthread_join(threads[i], NULL));
    for (size_t i = 0; i < THREADS; i++)
        check_num(refused[i].code, ==, ZKL_EAUTH);
}

/* --- what is wrong with a source -------------------------------------------------------------- */

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

static void check_bad_bytes(const char *bytes, size_t size, const char *word)
{
    check_bad_file(file_with(bytes, size), word);
}

/* Goal: a file that gives no credential is named, with the reason, and not a byte of it is. */
WORLD_TEST(a_file_without_a_credential_is_named)
{
    char text[MOST + 2];

    memset(text, 's', sizeof text);
    memcpy(text, CREDENTIAL, strlen(CREDENTIAL));
    check_bad_file("/no/such/folder/credential", "No such file");
    check_bad_file(zks_dir(server), "directory");
    check_bad_bytes("", 0, "empty");
    check_bad_bytes("\n" CREDENTIAL, strlen(CREDENTIAL) + 1, "empty");
    check_bad_bytes("\r\n" CREDENTIAL, strlen(CREDENTIAL) + 2, "empty");
    check_bad_bytes(CREDENTIAL "\0more", sizeof CREDENTIAL "\0more" - 1, "NUL");
    check_bad_bytes(text, MOST + 1, "more than 4096 bytes");
    text[MOST + 1] = '\n';
    check_bad_bytes(text, MOST + 2, "more than 4096 bytes");
}

/* Goal: an open also names a file that it may not read. Method: root may read any file, so that the
 * test's thread reads as another user. */
WORLD_TEST(a_file_that_may_not_be_read_is_named)
{
    const char *name = file_of(CREDENTIAL);
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

/* Goal: a variable that is not set, is empty or too long is named. */
WORLD_TEST(a_variable_without_a_credential_is_named)
{
    struct zkl_client_options options = creator_options();
    char text[MOST + 2];

    options.auth_env = VARIABLE;
    check_ok(unsetenv(VARIABLE));
    check_bad(&options, VARIABLE, "not set");
    check_ok(setenv(VARIABLE, "", 1));
    check_bad(&options, VARIABLE, "empty");
    memset(text, 's', MOST + 1);
    memcpy(text, CREDENTIAL, strlen(CREDENTIAL));
    text[MOST + 1] = '\0';
    check_ok(setenv(VARIABLE, text, 1));
    check_bad(&options, VARIABLE, "more than 4096 bytes");
    check_ok(unsetenv(VARIABLE));
}

/* Goal: a scheme needs exactly one source, and a source needs a scheme. Method: every
 * combination. */
WORLD_TEST(a_scheme_goes_with_exactly_one_source)
{
    const char *name = file_of(CREDENTIAL);

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
    struct zkl_client *first = client_of_env(one), *second = client_of_env(other);
    struct zkl_mutex *mutex = world_mutex(first, path), *again = world_mutex(second, path);

    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_trylock(again), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_mutex_lock(again));
    check_ok(zkl_mutex_unlock(again));
}

/* Goal: a credential from any source may have its scheme in front, as the command zklock writes it.
 * The number of colons decides which of the two forms it has. A user may thus have the scheme's
 * name, and a password may have colons. */
WORLD_TEST(a_credential_may_have_its_scheme_in_front)
{
    static const char *const alices[] = {CREDENTIAL, "digest:" CREDENTIAL};
    static const char *const digests[] = {"digest:" WORD, "digest:digest:" WORD};
    struct zkl_client_options options = creator_options();
    const char *path = cluster_path("schemed");
    char acl[256], node[256];

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    for (size_t i = 0; i < 2; i++) {
        check_is_alice(client_of_file(file_of(alices[i])), path);
        check_is_alice(client_of_env(alices[i]), path);
        options.auth_credential = alices[i];
        check_is_alice(world_client_with(&options), path);
    }
    check_ok(wire_auth(raw, "digest", "digest:" WORD));
    for (size_t i = 0; i < 2; i++) {
        struct zkl_client *client = client_of_env(digests[i]);
        struct zkl_mutex *mutex = world_mutex(client, cluster_path("user-digest"));
        check_ok(zkl_mutex_lock(mutex));
        check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
        check_ok(wire_get_acl(raw, cluster_at(node), acl, sizeof acl));
        check_ok(strncmp(acl, "31:digest:digest:", 17));
        check_ok(zkl_mutex_unlock(mutex));
    }
    check_same_user("digest:alice:a:b", "alice:a:b");
}

/* Goal: what can't be a credential is refused by the open, and not by an ACL later, without its text. */
WORLD_TEST(what_is_no_credential_is_told_at_once)
{
    static const char *const texts[] = {WORD, "alice:", ":" WORD,
                                        "digest:"
                                        ":" WORD,
                                        "digest:alice:"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct zkl_client_options options = creator_options();
        options.auth_credential = texts[i];
        check_bad(&options, "auth_credential", "USER:PASSWORD");
        check_bad_file(file_of(texts[i]), "USER:PASSWORD");
        options.auth_credential = NULL;
        options.auth_env = VARIABLE;
        check_ok(setenv(VARIABLE, texts[i], 1));
        check_bad(&options, VARIABLE, "USER:PASSWORD");
        check_ok(unsetenv(VARIABLE));
    }
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
