/* SPDX-License-Identifier: Apache-2.0 */
/* The scenarios that Curator's mutex, its multi-lock and its semaphore's mutex have in common
 * (TestInterProcessMutexBase). A program of this suite says what its lock is, and names them. */
#ifndef ZKTEST_BASE_H
#define ZKTEST_BASE_H

#include "cluster.h"

struct lock_kind {
    const char *name;
    /* A handle that locks what path stands for; the test fails if there is none. */
    void *(*make)(struct zkl_client *client, const char *path);
    void (*unmake)(void *lock);
    int (*lock_for)(void *lock, int64_t ms);
    int (*unlock)(void *lock);
    int (*held)(void *lock); /* 1 if the calling thread holds it */
    /* Nodes of who holds and of who waits; with two of them. */
    int (*contenders)(const char *path);
};

/* The program's own. */
extern const struct lock_kind lock_kind;

/* For those whose handle is a struct zkl_mutex *. */
void base_unmake_mutex(void *mutex);
int base_lock_mutex_for(void *mutex, int64_t ms);
int base_mutex_held(void *mutex);
void a_scope_holds_to_its_end(void **state); /* a test */

/* For actors. */
int base_lock(void *lock);
int base_unlock(void *lock);

#define BASE_TEST(name) TEST_OF(name, name, cluster_raw_open, cluster_raw_close, NULL)
void a_waiter_survives_a_killed_server(void **state);
void a_killed_session_frees_the_lock_for_its_own_waiter(void **state);
void the_container_goes_after_many_threads(void **state);
void a_lock_works_in_a_namespace(void **state);
void many_threads_share_one_handle(void **state);
void two_clients_exclude_each_other(void **state);

#define BASE_TESTS                                                                                 \
    BASE_TEST(a_waiter_survives_a_killed_server)                                                   \
    BASE_TEST(a_killed_session_frees_the_lock_for_its_own_waiter)                                  \
    BASE_TEST(the_container_goes_after_many_threads)                                               \
    BASE_TEST(a_lock_works_in_a_namespace)                                                         \
    BASE_TEST(many_threads_share_one_handle)                                                       \
    BASE_TEST(two_clients_exclude_each_other)

void nested_calls_enter_again(void **state);
void another_thread_does_not_enter_a_nested_lock(void **state);

#define REENTRANT_TESTS                                                                            \
    BASE_TEST(nested_calls_enter_again)                                                            \
    BASE_TEST(another_thread_does_not_enter_a_nested_lock)

#endif
