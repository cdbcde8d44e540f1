/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "peers.h"
#include "tool/net.h"

#define CLOSE_MS 60000

/* Each third of the processes uses one path in another way. */
static const char *const shares[] = {"retain=200", "local=4", "local=4 retain=200"};
static const char *const caches[] = {"", "", "retain=200"};
static const char *const plain[] = {"", "", ""}; /* where leases are used, or tries */

/* What worker 0 makes first. */
static const struct {
    const char *name, *row, *const *more;
} handles[] = {
    {"mutex", "mutex /chaos/mutex", shares},
    {"lease", "mutex /chaos/lease", plain},
    {"rwlock", "rwlock /chaos/rwlock", caches},
    {"permits", "semaphore /chaos/permits permits=3", plain},
    {"pair", "semaphore /chaos/permits permits=3 count=2", plain},
    {"revoked", "mutex /chaos/revoked", shares},
    {"rare", "mutex /chaos/rare", plain},
    {"single0", "single /chaos/single", plain},
    {"single1", "single /chaos/single", plain},
    {"single2", "single /chaos/single", plain},
    {"single3", "single /chaos/single", plain},
    {"single4", "single /chaos/single", plain},
};
#define HANDLES (int)(sizeof handles / sizeof handles[0])
_Static_assert(PERMITS_MAX == 3 && CHAOS_THREADS == 5, "as the handles have it");

static const char *const names[CHAOS_PROCESSES] = {"p0.", "p1.", "p2.", "p3.",
                                                   "p4.", "p5.", "p6.", "p7."};

void client_process_start(struct testbed *s, int client)
{
    struct body *body = &s->client[client];
    struct process *p = &s->shared->process[client];
    static char journal[32], numbers[CHAOS_PROCESSES][2];
    const char *const command[] = {CHAOS_PEER, p->servers, journal, numbers[client], NULL};
    char why[200];

    snprintf(journal, sizeof journal, "/proc/self/fd/%d", s->fd);
    snprintf(numbers[client], sizeof numbers[client], "%d", client);
    for (int i = 0; i < PLACES; i++)
        p->told[i] = p->owed[i] = 0;
    body->made = 0;
    body->condition = RUNNING;
    if (peer_start(names[client], command, zks_dir(s->zks), why, sizeof why) != 0)
        shared_odd(s->shared, "process %d: %s", client, why);
    body->pid = peer_pid(names[client]);
}

/* The next handle, once the last one is there; then all play. */
static void go_on_making(struct body *body, int client)
{
    char worker[8];

    snprintf(worker, sizeof worker, "%s0", names[client]);
    if (body->made > HANDLES || (body->made > 0 && answer_within(worker, 0) == NULL))
        return;
    if (body->made < HANDLES)
        say("%s new %s %s revocable=callback %s", worker, handles[body->made].name,
            handles[body->made].row, handles[body->made].more[client % 3]);
    for (int i = 0; body->made == HANDLES && i < CHAOS_THREADS; i++)
        say("%s%d play single%d", names[client], i, i);
    body->made++;
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
    peer_kill(names[client]);
    bury(s, client);
}

int client_process_threads(int client)
{
    return peer_entries(names[client], "task");
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

void client_processes_tick(struct testbed *s)
{
    peers_listen(0);
    if (peers_fault() != NULL && !s->shared->failed)
        shared_odd(s->shared, "%s", peers_fault());
    for (int i = 0; i < CHAOS_PROCESSES && !s->shared->failed; i++) {
        if (s->client[i].pid > 0)
            go_on_making(&s->client[i], i);
    }
}

bool client_processes_close(struct testbed *s)
{
    int64_t end_ms = net_now_ms() + CLOSE_MS;

    s->shared->phase = END;
    while (peers_at_work() && net_now_ms() < end_ms) {
        peers_listen(20);
        client_processes_tick(s);
    }
    if (peers_at_work() || s->shared->failed)
        return false;
    for (int i = 0; i < CHAOS_PROCESSES * HANDLES; i++) {
        const char *name = handles[i % HANDLES].name;
        const char *said = ask("%s0 drop %s", names[i / HANDLES], name);
        if (strcmp(said, "ok") != 0)
            shared_odd(s->shared, "process %d: drop %s: %s", i / HANDLES, name, said);
    }
    bool well = peers_stop();
    for (int i = 0; i < CHAOS_PROCESSES; i++)
        bury(s, i);
    return well;
}
