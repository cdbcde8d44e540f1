/* SPDX-License-Identifier: Apache-2.0 */
/* Questions: the calls that answer with yes or no, a count, a time, a token or a state, and that a
 * program uses as conditions. After a wrong call each answers 0, and zkl_error_detail() says why.
 * Otherwise the detail is empty. tests/house/questions.py compares the two lists here with the
 * headers. */
#include "cluster.h"

#include <zklock/async.h>
#include <zklock/metrics.h>

#include "completion.h"
#include "sanitizer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What is asked: NULL and 0 in each is the first wrong call of all. */
struct asked {
    struct zkl_client *client;
    struct zkl_mutex *mutex; /* held and waited for, like the rest */
    struct zkl_semaphore *semaphore;
    struct zkl_permit *permit;
    struct zkl_multi *multi;
    uint64_t op;
    int64_t need_ms;
    struct zkl_standing *standing;
    size_t index;
};

/* 0, and the reason is that the client is closed. */
#define REFUSED (-1)

/* Name, arguments, and the answer that is due: while all is well, and after zkl_client_close, when a hold counts as lost.
 * Above 0 counts as 1. */
#define QUESTIONS(X)                                                                               \
    X(zkl_client_session_id, (a->client), 1, REFUSED)                                              \
    X(zkl_mutex_still_held, (a->mutex, a->need_ms), 1, 0)                                          \
    X(zkl_mutex_hold_count, (a->mutex), 1, 1) /* unlock is still due */                            \
    X(zkl_mutex_token, (a->mutex), 1, 0)                                                           \
    X(zkl_mutex_window_ms, (a->mutex), 1, 0)                                                       \
    X(zkl_mutex_hold_state, (a->mutex, NULL), 1, 1) /* LOST */                                     \
    X(zkl_mutex_waiting, (a->mutex, a->standing), 1, REFUSED)                                      \
    X(zkl_mutex_revoke_requested, (a->mutex), 1, 1)                                                \
    X(zkl_semaphore_permits, (a->semaphore), 1, 1)                                                 \
    X(zkl_semaphore_waiting, (a->semaphore, a->standing), 1, REFUSED)                              \
    X(zkl_permit_still_held, (a->permit, a->need_ms), 1, 0)                                        \
    X(zkl_permit_token, (a->permit), 1, 0)                                                         \
    X(zkl_permit_window_ms, (a->permit), 1, 0)                                                     \
    X(zkl_permit_hold_state, (a->permit, NULL), 1, 1)                                              \
    X(zkl_permit_revoke_requested, (a->permit), 0, 0)                                              \
    X(zkl_multi_still_held, (a->multi, a->need_ms), 1, 0)                                          \
    X(zkl_multi_window_ms, (a->multi), 1, 0)                                                       \
    X(zkl_multi_token, (a->multi, a->index), 1, 0)                                                 \
    X(zkl_multi_hold_state, (a->multi, NULL), 1, 1)                                                \
    X(zkl_op_waiting, (a->client, a->op, a->standing), 1, REFUSED)

/* Those that have to do with no client: they can't be called in a wrong process, and say nothing of a reason. */
#define PLAIN_QUESTIONS(X)                                                                         \
    X(zkl_cancel_is_set, (NULL))                                                                   \
    X(zkl_error_is_retryable, (1))                                                                 \
    X(zkl_error_is_retryable, (INT_MIN))                                                           \
    X(zkl_error_is_retryable, (INT_MAX))                                                           \
    X(zkl_error_is_lost, (1))                                                                      \
    X(zkl_error_is_lost, (INT_MIN))                                                                \
    X(zkl_histogram_percentile_ns, (NULL, 50))

static int64_t sign_of(int64_t said)
{
    return said > 0 ? 1 : said;
}

#define ASK(name, arguments, well, closed)                                                         \
    static int64_t ask_##name(const struct asked *a)                                               \
    {                                                                                              \
        return (int64_t)name arguments;                                                            \
    }
QUESTIONS(ASK)

#define QUESTION(name, arguments, well, closed) {#name, ask_##name, well, closed},
static const struct question {
    const char *name;
    int64_t (*ask)(const struct asked *);
    int64_t well, closed;
} questions[] = {QUESTIONS(QUESTION)};

#define QUESTION_COUNT (sizeof questions / sizeof *questions)

/* As a condition, as a program has it. */
static bool is_yes(const struct question *q, const struct asked *a)
{
    if (q->ask(a))
        return true;
    return false;
}

/* NULL, or what is wrong with the answer to a wrong call. */
static const char *wrong_answer(const struct question *q, const struct asked *a)
{
    check_num(zkl_mutex_lock(NULL), ==, ZKL_EINVAL); /* leaves another detail */
    if (is_yes(q, a))
        return "is a yes";
    if (!strstr(zkl_error_detail(), q->name))
        return "does not say why";
    return NULL;
}

static void check_all_wrong(const struct asked *a, const char *how)
{
    for (size_t i = 0; i < QUESTION_COUNT; i++) {
        const char *wrong = wrong_answer(&questions[i], a);
        if (wrong)
            fail_msg("%s, called %s, %s: %s", questions[i].name, how, wrong, zkl_error_detail());
    }
}

/* Only those calls that this says something to. */
static void check_wrong(const struct asked *a, const char *part, const char *how)
{
    int asked = 0;

    for (size_t i = 0; i < QUESTION_COUNT; i++) {
        if (!strstr(questions[i].name, part))
            continue;
        asked++;
        const char *wrong = wrong_answer(&questions[i], a);
        if (wrong)
            fail_msg("%s, called %s, %s: %s", questions[i].name, how, wrong, zkl_error_detail());
    }
    check_num(asked, >, 0);
}

static void check_answer(const struct question *q, const struct asked *a, int64_t due)
{
    bool refused = due == REFUSED;

    check_num(zkl_mutex_lock(NULL), ==, ZKL_EINVAL);
    int64_t said = sign_of(q->ask(a));
    if (said != (refused ? 0 : due))
        fail_msg("%s says %lld, not %lld", q->name, (long long)said, (long long)due);
    const char *why = zkl_error_detail();
    if (refused ? !strstr(why, zkl_strerror(ZKL_ECLOSED)) : why[0] != '\0')
        fail_msg("%s says why: %s", q->name, why);
}

static void check_answers(const struct asked *a, bool closed)
{
    for (size_t i = 0; i < QUESTION_COUNT; i++)
        check_answer(&questions[i], a, closed ? questions[i].closed : questions[i].well);
}

/* --- what is held and waited for --------------------------------------------------------------- */

struct scene {
    struct asked a;
    struct zkl_mutex *other; /* the multi-lock's, beside a semaphore */
    struct zkl_semaphore *others;
    struct zkl_owner *owner;
    struct actor *of_mutex, *of_semaphore;
    struct completion done;
    struct zkl_standing standing;
};

static int lock_and_unlock(void *mutex)
{
    int rc = zkl_mutex_lock(mutex);
    return rc ? rc : zkl_mutex_unlock(mutex);
}

static int acquire_and_release(void *semaphore)
{
    struct zkl_permit *permit;
    int rc = zkl_semaphore_acquire(semaphore, 1, NULL, &permit);
    return rc ? rc : zkl_permit_release(permit);
}

static void scene_begin(struct scene *s)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    char node[300];

    memset(s, 0, sizeof *s);
    s->standing = (struct zkl_standing)ZKL_STANDING_INIT;
    s->a = (struct asked){.client = cluster_client(), .need_ms = 1, .standing = &s->standing};
    options.revocable = 1;
    check_ok(zkl_mutex_new(&s->a.mutex, s->a.client, cluster_path("asked-mutex"), &options));
    check_ok(
        zkl_semaphore_new(&s->a.semaphore, s->a.client, cluster_path("asked-semaphore"), 1, NULL));
    s->other = cluster_mutex(s->a.client, cluster_path("asked-multi"));
    check_ok(zkl_semaphore_new(&s->others, s->a.client, cluster_path("asked-multi"), 2, NULL));
    struct zkl_member members[] = {zkl_member_mutex(s->other), zkl_member_semaphore(s->others, 2)};
    check_ok(zkl_multi_new(&s->a.multi, s->a.client, members, 2));
    check_ok(zkl_mutex_lock(s->a.mutex));
    check_ok(zkl_semaphore_acquire(s->a.semaphore, 1, NULL, &s->a.permit));
    check_ok(zkl_multi_lock(s->a.multi));
    check_num(zkl_mutex_node_path(s->a.mutex, node, sizeof node), >, 0);
    check_ok(wire_set(raw, cluster_at(node), "__REVOKE__", -1));
    check_wait(zkl_mutex_revoke_requested(s->a.mutex) == 1, WAIT_MS);
    s->owner = new_owner();
    check_ok(zkl_mutex_acquire_async(s->owner, s->a.mutex, NULL, NULL, note_completion, &s->done,
                                     &s->a.op));
    s->of_mutex = actor_new();
    s->of_semaphore = actor_new();
    actor_begin(s->of_mutex, lock_and_unlock, s->a.mutex);
    actor_begin(s->of_semaphore, acquire_and_release, s->a.semaphore);
    check_wait(zkl_mutex_waiting(s->a.mutex, NULL) == 2, WAIT_MS);
    check_wait(zkl_semaphore_waiting(s->a.semaphore, NULL) == 1, WAIT_MS);
}

static void scene_close(struct scene *s)
{
    check_closed(zkl_client_close(s->a.client, WAIT_MS));
    check_num(actor_result(s->of_mutex), ==, ZKL_ECLOSED);
    check_num(actor_result(s->of_semaphore), ==, ZKL_ECLOSED);
    check_num(completion_code(&s->done), ==, ZKL_ECLOSED);
}

static void scene_end(struct scene *s)
{
    check_num(zkl_mutex_unlock(s->a.mutex), ==, ZKL_ELOST);
    check_num(zkl_permit_release(s->a.permit), ==, ZKL_ELOST);
    check_num(zkl_multi_unlock(s->a.multi, NULL), ==, ZKL_ELOST);
    check_ok(zkl_multi_free(s->a.multi));
    check_ok(zkl_semaphore_free(s->a.semaphore));
    check_ok(zkl_semaphore_free(s->others));
    check_wait(zkl_owner_free(s->owner) == 0, WAIT_MS);
    actor_end(s->of_mutex);
    actor_end(s->of_semaphore);
    cluster_free(s->a.client, s->a.mutex, s->other);
}

/* --- the tests --------------------------------------------------------------------------------- */

/* Goal: none of them is a yes with NULL, and each says what is NULL. */
static void no_question_is_a_yes_with_null(void **state)
{
    struct zkl_standing standing = ZKL_STANDING_INIT;
    const struct asked nothing = {.need_ms = 1, .standing = &standing}, bare = {.need_ms = -1};

    (void)state;
    check_all_wrong(&nothing, "with NULL");
    check_all_wrong(&bare, "with NULL and a bad number");
#define ASK_PLAIN(name, arguments) check_num(name arguments, ==, 0);
    PLAIN_QUESTIONS(ASK_PLAIN)
#undef ASK_PLAIN
}

/* Goal: each question has its answer while all is well. With a number out of range, or a standing
 * without its size, no answer is a yes. After close each answers as for a lost hold, and no answer
 * is negative. */
static void questions_answer_and_refuse(void **state)
{
    static const int64_t bad_needs[] = {-1, INT64_MIN, INT32_MIN, ZKL_TIMEOUT_MAX_MS + 1,
                                        INT64_MAX};
    struct zkl_standing without = {.size = 0};
    struct asked a;
    struct scene s;

    (void)state;
    scene_begin(&s);
    check_answers(&s.a, false);
    for (size_t i = 0; i < sizeof bad_needs / sizeof *bad_needs; i++) {
        a = s.a;
        a.need_ms = bad_needs[i];
        check_wrong(&a, "_still_held", "with a bad number");
    }
    a = s.a;
    a.standing = &without;
    check_wrong(&a, "_waiting", "without a size");
    /* What does not exist is a plain no. */
    a = s.a;
    a.op = UINT64_MAX;
    check_num(zkl_op_waiting(a.client, a.op, NULL), ==, 0);
    check_num(zkl_multi_token(a.multi, 2), ==, 0);
    check_num(zkl_multi_token(a.multi, SIZE_MAX), ==, 0);
    check_num(zkl_mutex_still_held(a.mutex, ZKL_TIMEOUT_MAX_MS), ==, 0);
    scene_close(&s);
    check_answers(&s.a, true);
    scene_end(&s);
}

/* In the child: how many answers are wrong, the first one said. */
static int ask_in_child(const struct asked *a)
{
    int wrong = 0;

    for (size_t i = 0; i < QUESTION_COUNT; i++) {
        zkl_mutex_lock(NULL);
        bool yes = is_yes(&questions[i], a);
        bool told = strstr(zkl_error_detail(), questions[i].name) &&
                    strstr(zkl_error_detail(), zkl_strerror(ZKL_EFORK));
        if (yes || !told)
            fprintf(stderr, "%s in a child %s\n", questions[i].name,
                    yes ? "is a yes" : "explains nothing");
        wrong += yes || !told;
    }
    return wrong;
}

/* Goal: of what a child has inherited no question is a yes, while each is one for its parent. Modes: F53. */
static void no_question_is_a_yes_in_a_child(void **state)
{
    struct scene s;
    int status = -1;

    (void)state;
    skip_under_gcc_tsan();
    if (UNDER_ASAN)
        skip(); /* children of a busy process hang under it */
    scene_begin(&s);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(300);
        _exit(ask_in_child(&s.a));
    }
    check_num(waitpid(pid, &status, 0), ==, pid);
    check_num(status, ==, 0);
    check_answers(&s.a, false);
    scene_close(&s);
    scene_end(&s);
}

static const struct CMUnitTest tests[] = {
    cluster_test(no_question_is_a_yes_with_null),
    cluster_test(questions_answer_and_refuse),
    cluster_test(no_question_is_a_yes_in_a_child),
};

int main(int argc, char **argv)
{
    return CLUSTER_MAIN(argc, argv, "questions", tests);
}
