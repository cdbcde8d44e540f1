/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A program of its own, not a fork: the conductor has threads. */
static void become_client(int fd, int client)
{
    char descriptor[16], number[16];

    snprintf(descriptor, sizeof descriptor, "%d", fd);
    snprintf(number, sizeof number, "%d", client);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl("/proc/self/exe", "chaos", "--client", number, "--shared", descriptor, NULL);
    _exit(127);
}

void client_process_start(struct testbed *s, int client)
{
    struct body *body = &s->client[client];
    struct process *p = &s->shared->process[client];

    for (int i = 0; i < PLACES; i++)
        p->told[i] = p->owed[i] = 0;
    p->threads = 0;
    body->pid = fork();
    if (body->pid == 0)
        become_client(s->fd, client);
    body->condition = RUNNING;
    if (body->pid < 0)
        shared_odd(s->shared, "process %d was not forked", client);
}

static void bury(struct testbed *s, int client)
{
    for (int i = 0; i < CHAOS_THREADS; i++)
        seat_bury(&s->shared->seat[client * CHAOS_THREADS + i], s->fd);
    s->client[client].pid = 0;
    s->client[client].condition = DEAD;
}

void client_process_kill(struct testbed *s, int client)
{
    if (s->client[client].pid <= 0)
        return;
    kill(s->client[client].pid, SIGKILL);
    waitpid(s->client[client].pid, NULL, 0);
    bury(s, client);
}

void client_process_pause(struct testbed *s, int client)
{
    kill(s->client[client].pid, SIGSTOP);
    s->client[client].condition = STOPPED;
}

void client_process_resume(struct testbed *s, int client)
{
    kill(s->client[client].pid, SIGCONT);
    s->client[client].condition = RUNNING;
}

int client_processes_reap(struct testbed *s)
{
    int running = 0;

    for (int i = 0; i < CHAOS_PROCESSES; i++) {
        int status = 0;
        pid_t pid = s->client[i].pid;
        if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid) {
            if (s->shared->phase != END || status != 0)
                shared_odd(s->shared, "process %d ended with status 0x%x", i, (unsigned)status);
            bury(s, i);
        }
        running += s->client[i].pid > 0;
    }
    return running;
}
