/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of a process. */
#ifndef ZKTEST_PROCESS_H
#define ZKTEST_PROCESS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Its state, 'T' if it is stopped, 'Z' if it waits to be waited for; 'X': there is none. parent may be NULL. */
static inline char process_state(pid_t pid, int *parent)
{
    char name[64], state = 'X';
    int above = 0;

    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(name, "re");
    if (file && fscanf(file, "%*d (%*[^)]) %c %d", &state, &above) != 2)
        state = 'X';
    if (file)
        fclose(file);
    if (parent)
        *parent = state == 'X' ? 0 : above;
    return state;
}

/* Neither running nor stopped. */
static inline bool process_gone(pid_t pid)
{
    char state = process_state(pid, NULL);

    return state == 'X' || state == 'Z';
}

/* How many it has, up to room. */
static inline size_t process_children(pid_t pid, pid_t children[], size_t room)
{
    char name[64];
    size_t n = 0;
    int child;

    snprintf(name, sizeof name, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(name, "re");
    while (file && n < room && fscanf(file, "%d", &child) == 1)
        children[n++] = child;
    if (file)
        fclose(file);
    return n;
}

/* Entries of this process's folder of that name there: "task", its threads; "fd", its descriptors and one. */
static inline int process_entries(const char *name)
{
    char folder[64];
    int n = 0;

    snprintf(folder, sizeof folder, "/proc/self/%s", name);
    DIR *dir = opendir(folder);
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n - 2;
}

#endif
