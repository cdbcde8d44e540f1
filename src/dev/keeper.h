/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: a process of its own session that starts the servers, and that ends them and removes
 * their folder on request, or when the process that made it has ended, in any way. It watches its
 * maker through a pidfd, not through the end of a pipe: children that the maker forks inherit pipes
 * and would keep them open. The servers are the keeper's children, so the maker's own wait() never
 * meets them, and the kernel kills them if the keeper itself is killed. */
#ifndef ZKLOCK_SERVERS_KEEPER_H
#define ZKLOCK_SERVERS_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define KEEPER_NODES_MAX 8

/* What the keeper may start. keeper_start reads all of it before it returns; the folder is last. */
struct keeper_plan {
    size_t nodes;
    char *const *argv[KEEPER_NODES_MAX]; /* argv[i][0] is an absolute path */
    const char *log[KEEPER_NODES_MAX];   /* standard output and error are added to this file */
    const char *dir;                     /* made by the keeper; must not be there yet */
    bool keep_dir;                       /* do not remove it */
};

struct keeper_state {
    bool running;
    pid_t pid;  /* 0: never started */
    int status; /* of waitpid, once it is not running any more */
};

struct keeper;

/* 0: the keeper runs and the folder is there. Otherwise -1 and errno. */
int keeper_start(struct keeper **keeper, const struct keeper_plan *plan);

/* All of these: 0, or -1 if the keeper has ended, did not answer, or refused; also -1, with nothing
 * done, in a forked child of the maker. From any thread. */
int keeper_spawn(struct keeper *keeper, size_t node);
/* SIGKILL returns when the process is dead, SIGSTOP when it has stopped, others immediately. */
int keeper_signal(struct keeper *keeper, size_t node, int sig);
int keeper_look(struct keeper *keeper, size_t node, struct keeper_state *state);

/* Kill all servers, remove the folder, end the keeper. 0, or -1 if it had ended already. Frees. */
int keeper_end(struct keeper *keeper);

/* Remove a folder and all below it. 0 or -1. Safe between fork and exec. */
int keeper_remove_tree(const char *path);

#endif
