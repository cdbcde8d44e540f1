/* SPDX-License-Identifier: Apache-2.0 */
#include "play.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chance.h"
#include "clock.h"
#include "secure.h"
#include "tool/net.h"

static struct client me;

/* --- the client ------------------------------------------------------------------------------- */

/* The log helps a reader to find the reason of a failure. It is line-buffered, so that a killed
 * process has written all its lines. */
static void write_event(const struct zkl_log_event *event, void *log)
{
    fprintf(log, "[%lld] %d: session %llx: %s\n", (long long)(net_boot_ns() / 1000000), getpid(),
            (unsigned long long)event->session, event->message);
}

/* One file for all lives of a process, in the folder that ZKL_CHAOS_LOGS names; none without. */
static void open_log(struct zkl_client_options *options)
{
    const char *dir = getenv("ZKL_CHAOS_LOGS");
    char path[400];

    if (dir == NULL)
        return;
    snprintf(path, sizeof path, "%s/process-%d.log", dir, me.number);
    options->log_arg = fopen(path, "a");
    if (options->log_arg == NULL) {
        shared_odd(me.shared, "process %d: no log at %s", me.number, path);
        return;
    }
    setvbuf(options->log_arg, NULL, _IOLBF, 0);
    options->log_fn = write_event;
    options->log_level = ZKL_LOG_DEBUG;
}

void peer_prepare(struct zkl_client_options *options, int fd, int number)
{
    me = (struct client){.fd = fd, .number = number, .shared = shared_map(fd)};
    if (me.shared == NULL)
        abort();
    me.process = &me.shared->process[number];
    clock_step_by(&me.process->clock_ns);
    open_log(options);
    options->session_timeout_ms = me.process->session_ms;
    options->connect_timeout_ms = 0;
    if (me.shared->tls[0] != '\0')
        secure_client(me.shared->tls, options);
}

void peer_told_lost(const struct zkl_hold_event *event)
{
    struct record r = {.kind = TOLD,
                       .place = (uint8_t)place_of(event->node_path),
                       .token = event->token,
                       .seat = me.number * CHAOS_THREADS,
                       .begun_ns = net_boot_ns()};

    record_write(me.fd, &r);
    me.process->told[r.place]++;
    me.shared->tally[TOLD_LOST]++;
}

/* --- a worker --------------------------------------------------------------------------------- */

/* Until the next round. One of the workers says meanwhile what the process has in use. */
static void rest(struct player *p)
{
    p->seat->rested = p->shared->round;
    while (p->shared->phase == REST) {
        if (p->number % CHAOS_THREADS == 0)
            p->client->process->heap = (long long)mallinfo2().uordblks;
        net_nap_ms(20);
    }
}

/* SINGLE: its own handle of the semaphore's mutex. */
void peer_play(struct worker *w, const char *single)
{
    int seat = me.number * CHAOS_THREADS + atoi(strchr(w->name, '.') + 1);

    struct player p = {.worker = w,
                       .client = &me,
                       .shared = me.shared,
                       .seat = &me.shared->seat[seat],
                       .number = seat,
                       .role = (enum role)(seat % ROLES),
                       .chance = me.shared->seed + (uint64_t)seat,
                       .single = handle_find(single)};
    p.chance += (uint64_t)p.seat->serial << 32; /* in another life other choices */
    p.seat->doing = (int)p.role;
    while (p.shared->phase != END) {
        bool granted = role_play(&p);
        net_nap_ms(chance_between(&p.chance, 0, 20));
        if (granted && p.shared->phase == REST)
            rest(&p);
    }
    answer(w, "ok", "");
}
