/* SPDX-License-Identifier: Apache-2.0
 *
 * The descendants of this process: it finds them in /proc whatever group or session they are in
 * now, as long as this process is their subreaper. This file keeps nothing between two searches.
 * One thread; the guard and zklock's side of a job call it. */
#include "family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "syscalls.h"

enum { NAP_MS_MIN = 2, NAP_MS_MAX = 100 };

struct process {
    pid_t pid, parent, group;
    bool dead; /* and not yet waited for */
    bool runs; /* not stopped; false for one whose first thread has ended */
    bool ours; /* a descendant */
};

struct list {
    size_t count, size;
    struct process *all;
};

/* --- what is there ------------------------------------------------------ */

bool family_can_look(void)
{
    char name[32];
    ssize_t n = readlink("/proc/self", name, sizeof name - 1);
    name[n > 0 ? n : 0] = '\0';
    return strtol(name, NULL, 10) == getpid();
}

/* "PID (COMMAND) STATE PARENT GROUP ...", the 20th field being the number of threads. A process
 * whose first thread has ended is shown as a zombie while others of its threads go on. */
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
                                .dead = (state == 'Z' || state == 'X') && threads <= 1,
                                .runs = strchr("TtZX", state) == NULL};
    return true;
}

static bool look_at(pid_t pid, struct process *process)
{
    char name[64], text[1024];
    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
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

/* The caller must call free(list.all). */
static struct list look(void)
{
    struct list list = {0};
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && (entry = readdir(proc)) != NULL;) {
        struct process process;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && look_at(pid, &process))
            add(&list, &process);
    }
    if (proc)
        closedir(proc);
    mark_descendants(&list);
    return list;
}

/* --- signals ------------------------------------------------------------ */

/* Is each process from this one up to us now the child of the next? If a parent's number is still
 * the child's parent after a look at the parent, it was that parent's number all the while. */
static bool is_descendant(pid_t pid)
{
    struct process process, again, parent;
    if (!look_at(pid, &process))
        return false;
    while (process.parent != getpid()) {
        if (process.parent <= 1 || !look_at(process.parent, &parent) ||
            !look_at(process.pid, &again))
            return false;
        if (again.parent == process.parent)
            process = parent;
        else
            process = again; /* it has lost that parent, and got another one */
    }
    return true;
}

/* A number in the list may belong to another process by now. So open the process behind it first,
 * then check it, then signal it. Without a pidfd, on old kernels or with no descriptor left, only
 * check it just before. */
static void signal_descendant(pid_t pid, int signal)
{
    int fd = sys_pidfd_open(pid);
    if (fd < 0 && errno == ESRCH)
        return;
    if (is_descendant(pid)) {
        if (fd < 0)
            kill(pid, signal);
        else
            sys_pidfd_kill(fd, signal);
    }
    if (fd >= 0)
        close(fd);
}

/* The number of a group cannot belong to another one as long as one of our own children is in it
 * that we have not waited for. */
static bool is_pinned(const struct list *list, pid_t group)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->all[i].group == group && list->all[i].parent == getpid())
            return true;
    }
    return false;
}

/* The group's own signal reaches all of it at one moment, forks included. Its number alone is not
 * enough: the kernel may give it to a new group once the old one is empty. */
void family_signal(pid_t group, int signal)
{
    struct list list = look();
    bool pinned = is_pinned(&list, group);
    if (pinned)
        kill(-group, signal);
    for (size_t i = 0; i < list.count; i++) {
        const struct process *process = &list.all[i];
        if (process->ours && !process->dead && (process->group != group || !pinned))
            signal_descendant(process->pid, signal);
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

/* A later round catches a process that forks faster than /proc can be read. Orphans become our
 * children, so once we have no child, no descendant is left. */
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

/* --- one process --------------------------------------------------------- */

bool family_runs(pid_t pid)
{
    struct process process;
    return look_at(pid, &process) && process.runs;
}

/* A file of /proc/PID, the caller's to free; NULL: it cannot be read. */
static char *read_proc(pid_t pid, const char *file)
{
    char name[64], *text = NULL;
    size_t size = 0;
    snprintf(name, sizeof name, "/proc/%d/%s", (int)pid, file);
    FILE *from = fopen(name, "re");
    ssize_t n = from ? getdelim(&text, &size, '\0', from) : -1;
    if (from)
        fclose(from);
    if (n >= 0)
        return text;
    free(text);
    return NULL;
}

static bool is_in_our_cgroup(pid_t pid)
{
    char *ours = read_proc(getpid(), "cgroup"), *its = read_proc(pid, "cgroup");
    bool same = !ours || !its || strcmp(ours, its) == 0;
    free(ours);
    free(its);
    return same;
}

/* A line such as "SigCgt:\t0000000000004000". */
static bool has_signal(const char *status, const char *set, int signal)
{
    const char *line = strstr(status, set);
    return line && (strtoull(line + strlen(set), NULL, 16) >> (signal - 1) & 1);
}

static bool would_live(pid_t pid, int signal)
{
    char *status = read_proc(pid, "status");
    bool lives = !status || strstr(status, "\nCoreDumping:\t1") ||
                 has_signal(status, "\nSigBlk:", signal) ||
                 has_signal(status, "\nSigIgn:", signal) || has_signal(status, "\nSigCgt:", signal);
    free(status);
    return lives;
}

bool family_can_have_got(pid_t pid, int signal)
{
    struct process process;
    if (!look_at(pid, &process) || process.dead)
        return true;
    return is_in_our_cgroup(pid) && would_live(pid, signal);
}
