/* SPDX-License-Identifier: Apache-2.0
 * What a multi-lock's calls and their twins in async.h refuse alike, before anything is begun: 0, or what is wrong
 * with the arguments, said for call; if it blocks also with the thread. */
#ifndef ZKL_API_CHECKS_H
#define ZKL_API_CHECKS_H

#include <stdbool.h>

#include <zklock/zklock.h>

int zkl_multi_check_acquire(struct zkl_multi *multi, const struct zkl_wait *wait,
                            const struct zkl_grant *grants, const char *call, bool blocks);
/* What the calling owner holds is not in the way, or is lost, which the call itself tells. */
int zkl_multi_check_members(const struct zkl_multi *multi);
/* ENOTOWNER too. */
int zkl_multi_check_unlock(struct zkl_multi *multi, const char *call, bool blocks);
/* zkl_multi_unlock, after that. */
int zkl_multi_unlock_checked(struct zkl_multi *multi, int *codes);
/* It can't be freed until it is put as often. */
void zkl_multi_use(struct zkl_multi *multi);
void zkl_multi_put(struct zkl_multi *multi);
struct zkl_client *zkl_multi_client(const struct zkl_multi *multi);

#endif
