/* SPDX-License-Identifier: Apache-2.0 */
#include "family.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAP_MS_MIN = 2, NAP_MS_MAX = 100 };

struct process {
    pid_t pid, parent, group;
    bool dead; /* and not yet waited for */
    bool ours; /* a descendant */
};

struct list {
    size_t count, size;
    struct process *all;
};

/* --- what is there ------------------------------------------------------ */

/* "PID (COMMAND) STATE PARENT GROUP ...", the 20th field being the number of threads. A process whose
 * first thread has ended is shown as a zombie while others of its threads go on. */
static bool parse(const char *text, struct process *process)
{
    char state;
    int parent, group;
    long threads;
    const char *rest = strrchr(text, ')'); /* a command's name may have one too */
    if (!rest ||
        sscanf(rest + 1, " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld",
               &state, &parent, &group, &threads) != 4)
        return false;
    *process = (struct process){.pid = (pid_t)strtol(text, NULL, 10),
                                .parent = parent,
                                .group = group,
                                .dead = (state == 'Z' || state == 'X') && threads <= 1};
    return true;
}

static bool look_at(const char *pid, struct process *process)
{
    char name[64], text[1024];
    snprintf(name, sizeof name, "/proc/%.32s/stat", pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return parse(text, process);
}

static void add(struct list *list, const struct process *process)
{
    if (list->count == list->size) {
        size_t size = list->size ? 2 * list->size : 512;
        struct process *all = realloc(list->all, size * sizeof *all);
        if (!all)
            return; /* the next look may be luckier, and the group needs no list */
        list->all = all;
        list->size = size;
    }
    list->all[list->count++] = *process;
}

static bool mark_children(struct list *list, pid_t parent)
{
    bool any = false;
    for (size_t i = 0; i < list->count; i++) {
        struct process *process = &list->all[i];
        if (!process->ours && process->parent == parent)
            any = process->ours = true;
    }
    return any;
}

static void mark_descendants(struct list *list)
{
    bool more = mark_children(list, getpid());
    while (more) {
        more = false;
        for (size_t i = 0; i < list->count; i++) {
            if (list->all[i].ours)
                more = mark_children(list, list->all[i].pid) || more;
        }
    }
}

/* To be freed with free(list.all). */
static struct list look(void)
{
    struct list list = {0};
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && (entry = readdir(proc)) != NULL;) {
        struct process process;
        if (isdigit((unsigned char)entry->d_name[0]) && look_at(entry->d_name, &process))
            add(&list, &process);
    }
    if (proc)
        closedir(proc);
    mark_descendants(&list);
    return list;
}

/* --- signals ------------------------------------------------------------ */

/* The group's own signal reaches all of it at one moment, forks included. By its number alone it is sent
 * only while somebody is in it: a number without a process may be given to a new one. */
void family_signal(pid_t group, int signal)
{
    struct list list = look();
    bool in_group = false;
    for (size_t i = 0; i < list.count; i++)
        in_group = in_group || list.all[i].group == group;
    if (in_group)
        kill(-group, signal);
    for (size_t i = 0; i < list.count; i++) {
        const struct process *process = &list.all[i];
        if (process->ours && process->group != group && !process->dead)
            kill(process->pid, signal);
    }
    free(list.all);
}

bool family_in_group(pid_t group, pid_t except)
{
    struct list list = look();
    bool found = false;
    for (size_t i = 0; !found && i < list.count; i++) {
        const struct process *process = &list.all[i];
        found = process->group == group && !process->dead && process->parent != except;
    }
    free(list.all);
    return found;
}

static void nap_ms(int ms)
{
    struct timespec time = {.tv_nsec = ms * 1000000L};
    nanosleep(&time, NULL);
}

/* True while there are children left. */
static bool reap(pid_t child, int *status)
{
    int said;
    pid_t pid;
    while ((pid = waitpid(-1, &said, WNOHANG)) > 0) {
        if (pid == child)
            *status = said;
    }
    return pid == 0;
}

/* Who forks faster than /proc can be read is caught by a later round; orphans become our children, so
 * that nobody is left once we have none. */
void family_kill(pid_t group, pid_t child, int *status)
{
    int nap = NAP_MS_MIN;
    family_signal(group, SIGKILL);
    while (reap(child, status)) {
        nap_ms(nap);
        nap = nap * 2 < NAP_MS_MAX ? nap * 2 : NAP_MS_MAX;
        family_signal(group, SIGKILL);
    }
}
