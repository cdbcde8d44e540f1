/* SPDX-License-Identifier: Apache-2.0 */
/* Servers of other makes. Those that do not know create2, containers or removeWatches: they hang up on them, or say so
 * first, as ZooKeeper does. And those that resume no session either, or do not know what has no other way. */
#include "bytes.h"
#include "fault.h"

#include "tool/net.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_SUCH_OP 9999

/* --- the stand-in: a server in front of the real one, in many forms ----------------------------- */

#define STANDIN_SESSION_MS 6000
/* Where there is another way: the sessions on the way there end at once. */
#define CALL_MS lag_session_ms(15000)
#define VAIN_MS 2500 /* where there is none */
#define SLACK_MS lag_session_ms(4000)
#define FREE_CONNECTS                                                                              \
    16              /* one a second is allowed, and these to find out; a storm has ten a second */
#define TOLD_FROM 6 /* as many links in a row tell what it is */
#define NEVER_A_SESSION 0x7e57

#define OPS_MAX 3

/* Operations that it does not know. */
struct gap {
    const char *name;
    enum proxy_op ops[OPS_MAX];
    bool in_vain; /* nothing takes their place */
};

static const struct gap gaps[] = {
    {"create2", {PROXY_CREATE2}, false},
    {"containers", {PROXY_CREATE_CONTAINER}, false},
    {"removal of watches", {PROXY_REMOVE_WATCHES}, false},
    {"all three", {PROXY_CREATE2, PROXY_CREATE_CONTAINER, PROXY_REMOVE_WATCHES}, false},
    {"transactions", {PROXY_MULTI}, true},
    {"sync", {PROXY_SYNC}, true},
    {"lists with a stat", {PROXY_CHILDREN2}, true},
};
#define GAPS (sizeof gaps / sizeof *gaps)

/* LATER: it knows them at first, and hangs up on them then. UNHEARD: it says so, and libzookeeper ends the link for an
 * answer out of order (B117). */
enum how { HANGS_UP, SAYS_SO, LATER, UNHEARD, HOWS };
static const char *const hows[HOWS] = {"hangs up on", "says that it does not know",
                                       "knows at first", "ends the link behind"};

struct form {
    const struct gap *gap; /* NULL: it knows all */
    enum how how;
    bool resumes; /* sessions */
    char path[32];
};

static bool is_unknown(const struct form *form, int op)
{
    bool is = false;

    for (size_t i = 0; form->gap && i < OPS_MAX; i++)
        is = is || (op != 0 && op == (int)form->gap->ops[i]);
    return is;
}

/* It knows none of the sessions that come back, and gives an unknown operation a number that no server knows. */
static size_t be_standin(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    const struct form *form = arg;

    if (dir != PROXY_TO_SERVER)
        return form->how == UNHEARD && is_unknown(form, op) ? 0 : size;
    if (op == PROXY_CONNECT && !form->resumes && size >= 24 && bytes_get64(frame + 16) != 0)
        bytes_put64(frame + 16, NEVER_A_SESSION);
    if ((form->how == SAYS_SO || form->how == UNHEARD) && is_unknown(form, op))
        bytes_put32(frame + 4, NO_SUCH_OP);
    return size;
}

/* In a process of its own, as all forms are tried together. */
struct standin {
    struct form *form;
    struct proxy *proxy;
    struct zkl_client *client;
    int64_t began_ms;
};

static void hang_up(struct standin *s)
{
    for (size_t i = 0; i < OPS_MAX && s->form->gap->ops[i] != 0; i++)
        proxy_hang_up_on(s->proxy, s->form->gap->ops[i]);
}

static const char *const true_of[] = {
    "the server ends each session at once",
    "the server hangs up on",
    "does not know transactions",
    "the server does not support the request",
};

/* A failure names what happens; and comes in time. */
static void check_call(struct standin *s, const char *text, int rc, int64_t took_ms, int most_ms)
{
    const char *detail = zkl_error_detail();

    if (took_ms > most_ms + SLACK_MS)
        fail_msg("%s: %lld ms", text, (long long)took_ms);
    if (rc == 0)
        return;
    /* Behind the node of a session of its own that lives on at the server. */
    bool is_true = is_unknown(s->form, PROXY_CHILDREN2) && !s->form->resumes && rc == ZKL_ETIMEDOUT;
    /* Or so few links that it could be anything, as this machine is busy. */
    is_true = is_true || proxy_counts(s->proxy, PROXY_CONNECT) <= TOLD_FROM || lag_is_slow();
    for (size_t i = 0; i < sizeof true_of / sizeof *true_of; i++)
        is_true = is_true || strstr(detail, true_of[i]);
    if (!s->form->gap->in_vain || !is_true)
        fail_msg("%s: %s", text, detail);
}

/* What a stall of this machine can make of a call that would have come through. */
static bool may_be_a_stall(const struct standin *s, int rc)
{
    return !s->form->gap->in_vain &&
           (rc == ZKL_EUNPROVED || rc == ZKL_EDISCONNECTED || rc == ZKL_ETIMEDOUT);
}

/* Not at the first time, perhaps, but within three. */
#define call(s, most_ms, rc)                                                                       \
    __extension__({                                                                                \
        int64_t began_ms_;                                                                         \
        int rc_, left_ = 3;                                                                        \
        do {                                                                                       \
            began_ms_ = net_now_ms();                                                              \
            rc_ = rc;                                                                              \
        } while (--left_ > 0 && may_be_a_stall(s, rc_));                                           \
        check_call(s, #rc, rc_, net_now_ms() - began_ms_, most_ms);                                \
        rc_;                                                                                       \
    })

static const char *path_at(const struct standin *s, const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", s->form->path, name);
    return path;
}

static void lock_and_unlock(struct standin *s, struct zkl_mutex *mutex, int ms)
{
    if (call(s, ms, zkl_mutex_lock_for(mutex, ms)) == 0)
        zkl_mutex_unlock(mutex);
}

static void lock_mutexes(struct standin *s, int ms)
{
    struct zkl_mutex_options retains = ZKL_MUTEX_OPTIONS_INIT;
    struct zkl_wait try = ZKL_WAIT_INIT;

    retains.retain_ms = 1000;
    try.flags = ZKL_WAIT_TRY | ZKL_WAIT_SYNC;
    struct zkl_mutex *mutex = world_mutex(s->client, path_at(s, "deep/m"));
    lock_and_unlock(s, mutex, ms);
    lock_and_unlock(s, world_mutex_with(s->client, path_at(s, "kept"), &retains), ms);
    if (call(s, STANDIN_SESSION_MS, zkl_mutex_acquire(mutex, &try, NULL)) == 0)
        zkl_mutex_unlock(mutex);
    lock_and_unlock(s, world_mutex(s->client, path_at(s, "kept")), ms);
}

static void lock_rwlock(struct standin *s, int ms)
{
    struct zkl_rwlock *rwlock = world_rwlock(s->client, path_at(s, "rw"), NULL);
    struct zkl_mutex *writer = zkl_rwlock_writer(rwlock), *reader = zkl_rwlock_reader(rwlock);

    if (call(s, ms, zkl_mutex_lock_for(writer, ms)) != 0)
        return;
    int rc = zkl_mutex_lock_for(reader, ms);
    if (rc != 0 && rc != ZKL_ELOST && !s->form->gap->in_vain)
        fail_msg("read lock: %s", zkl_error_detail());
    zkl_mutex_unlock(writer);
    if (rc == 0)
        zkl_mutex_unlock(reader);
}

static int take_two(struct zkl_semaphore *semaphore, int ms, struct zkl_permit *permits[2])
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.deadline_ns = zkl_now_ns() + ms * INT64_C(1000000);
    return zkl_semaphore_acquire(semaphore, 2, &wait, permits);
}

static void lock_permits(struct standin *s, int ms)
{
    struct zkl_semaphore *semaphore = world_semaphore(s->client, path_at(s, "s"), 2, NULL);
    struct zkl_permit *permits[2];

    if (call(s, ms, take_two(semaphore, ms, permits)) == 0) {
        zkl_permit_release(permits[0]);
        zkl_permit_release(permits[1]);
    }
}

static void lock_several(struct standin *s, int ms)
{
    const struct zkl_member members[2] = {
        zkl_member_mutex(world_mutex(s->client, path_at(s, "one"))),
        zkl_member_mutex(world_mutex(s->client, path_at(s, "two")))};
    struct zkl_multi *multi = world_multi(s->client, members, 2);

    if (call(s, ms, zkl_multi_lock_for(multi, ms)) == 0)
        zkl_multi_unlock(multi, NULL);
}

static void lock_each_kind(struct standin *s, int ms)
{
    static void (*const kinds[])(struct standin *, int) = {lock_mutexes, lock_rwlock, lock_permits,
                                                           lock_several};
    int of_permits =
        is_unknown(s->form, PROXY_CHILDREN2) ? TOLD_FROM : 0; /* which list by it alone */

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        kinds[i](s, ms);
        check_num(proxy_counts(s->proxy, PROXY_CONNECT), <=,
                  FREE_CONNECTS + of_permits + (net_now_ms() - s->began_ms) / 1000);
    }
}

/* The token is the node's czxid. */
static uint64_t one_cycle(struct zkl_mutex *mutex, struct wire *wire, const char *path)
{
    struct wire_stat stat;
    char node[512];

    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    uint64_t token = zkl_mutex_token(mutex);
    fault_only_child(wire, path, node, sizeof node, &stat);
    check_num(token, ==, stat.czxid);
    check_ok(zkl_mutex_unlock(mutex));
    return token;
}

/* True tokens, also behind waits that were given up; and by then the client knows what the server does not. */
static void check_learned(struct standin *s)
{
    char path[64];
    struct wire *wire = fault_wire();
    struct actor *other = world_actor();

    snprintf(path, sizeof path, "%s", path_at(s, "learned/m"));
    struct zkl_mutex *mutex = world_mutex(s->client, path);
    struct zkl_mutex *rival = world_mutex(world_direct(STANDIN_SESSION_MS), path);
    uint64_t before = one_cycle(mutex, wire, path);
    check_ok(act_do(other, act_lock, rival, NULL));
    for (int i = 0; i < 4; i++)
        check_num(zkl_mutex_lock_for(mutex, 300), ==, ZKL_ETIMEDOUT);
    check_ok(act_do(other, act_unlock, rival, NULL));
    check_num(one_cycle(mutex, wire, path), >, before);
    int64_t links = proxy_counts(s->proxy, PROXY_CONNECT);
    /* An earlier answer may be lost with the link, which blames that one. */
    check_true(links <= 1 + 4 * OPS_MAX || lag_is_slow());
    for (int i = 0; i < 3; i++)
        one_cycle(mutex, wire, path);
    check_true(proxy_counts(s->proxy, PROXY_CONNECT) == links || lag_is_slow());
    wire_close(wire);
}

/* In the child. */
static void try_form(void **state)
{
    struct standin s = {.form = *state, .proxy = world_proxy()};
    bool in_vain = s.form->gap->in_vain;

    proxy_set_hook(s.proxy, be_standin, s.form);
    if (s.form->how == HANGS_UP)
        hang_up(&s);
    s.began_ms = net_now_ms();
    s.client = world_through(s.proxy, STANDIN_SESSION_MS);
    if (s.form->how == LATER) {
        lock_each_kind(&s, CALL_MS);
        hang_up(&s);
    }
    lock_each_kind(&s, in_vain ? VAIN_MS : CALL_MS);
    if (s.form->resumes && !in_vain && (s.form->how == HANGS_UP || s.form->how == SAYS_SO))
        check_learned(&s);
}

/* In a process of its own, as a test of its own. */
static pid_t fork_form(struct form *form)
{
    char name[100];
    pid_t pid = fork();

    check_num(pid, >=, 0);
    if (pid > 0)
        return pid;
    snprintf(name, sizeof name, "it %s %s, %s", hows[form->how], form->gap->name,
             form->resumes ? "resumes" : "forgets");
    const struct CMUnitTest one = {name, try_form, NULL, world_end, form};
    cmocka_set_test_filter(NULL);
    _exit(_cmocka_run_group_tests(name, &one, 1, NULL, NULL) == 0 ? 0 : 1);
}

/* Goal: whatever a server does not know, and whether it resumes sessions or not, each kind of lock is had where there is
 * another way, and else fails in time with the reason; and the client does not storm it. Method: each form in a process
 * of its own, all together. What ZooKeeper does not know UnimplementedRequestProcessor answers, and hangs up. Seen red:
 * without opcode.c it comes back for ever; with what was learned forgotten at the end of a session, 300 connections a
 * second, and "the deadline passed" as the reason; with links that end by an answer out of order not counted, 10. */
TEST(the_standin_is_not_stormed)
{
    static struct form forms[GAPS * HOWS * 2];
    pid_t children[GAPS * HOWS * 2];
    size_t n = sizeof forms / sizeof *forms;
    int failed = 0, status;

    for (size_t i = 0; i < n; i++) {
        forms[i] = (struct form){&gaps[i / HOWS / 2], (enum how)(i / 2 % HOWS), i % 2, ""};
        snprintf(forms[i].path, sizeof forms[i].path, "/standin%zu", i);
        children[i] = fork_form(&forms[i]);
    }
    for (size_t i = 0; i < n; i++) {
        check_num(waitpid(children[i], &status, 0), ==, children[i]);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    check_num(failed, ==, 0);
    struct wire *wire = fault_wire();
    for (size_t i = 0; i < n; i++)
        wire_delete_tree(wire, forms[i].path);
    wire_close(wire);
}
