/* SPDX-License-Identifier: Apache-2.0
 *
 * A forked child has its parent's memory and none of its threads, so an inherited client does not
 * work there. This file counts each fork of this process since the first client was made. Every
 * object that must not work in a child keeps the count of its creation. No lock of its own: the
 * count is atomic, and only the child changes it. The process's locks of secure.c stay with the
 * thread that forks. driver.c and src/api compare counts. */
#include "driver.h"

static atomic_uint fork_generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void begin_child(void)
{
    zkl_secure_after_fork();
    atomic_fetch_add(&fork_generation, 1);
}

static void register_fork_handler(void)
{
    pthread_atfork(zkl_secure_before_fork, zkl_secure_after_fork, begin_child);
}

void zkl_fork_watch(void)
{
    pthread_once(&fork_once, register_fork_handler);
}

unsigned zkl_fork_generation(void)
{
    return atomic_load_explicit(&fork_generation, memory_order_relaxed);
}
