/* SPDX-License-Identifier: Apache-2.0
 *
 * What zklock run -v says while it waits, and tells a service manager: behind whom, since when, at
 * which place. The waiting thread is in a call of the library, so a second thread asks for the
 * place from time to time; that sends no request. It never waits for a reader of standard error, as
 * its end is waited for when the lock is held already. run.c starts and ends it. */
#include "standing.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "describe.h"
#include "notify.h"
#include "say.h"
#include "signals.h"

enum {
    LOOK_MS = 100,
    UNKNOWN_MS = 1000, /* after that a place is reported without an owner */
    REPEAT_MS = 60000,
    WELL_MS = 5000,
};

/* Where the state stays, an event is about the server, but for a session that ended before it began.
 */
void standing_log(const struct zkl_log_event *event, void *unused)
{
    (void)unused;
    if (event->kind == ZKL_LOG_KIND_SESSION && strcmp(event->from, event->to) == 0 &&
        strcmp(event->from, "STARTING") != 0)
        say("%s", event->why);
}

struct seen {
    int64_t at_ns; /* 0: nothing yet */
    int member;
    struct zkl_standing place;
};

static const char *who(const struct zkl_standing *place, char text[DESCRIBE_SIZE])
{
    char host[256];
    int64_t pid;
    int length = 0;
    bool is_usual = sscanf(place->owner, "%255s %" SCNd64 " %*d%n", host, &pid, &length) == 2;
    if (is_usual && length > 0 && place->owner[length] == '\0')
        snprintf(text, DESCRIBE_SIZE, "behind %s pid %" PRId64, host, pid);
    else if (place->before == 0)
        snprintf(text, DESCRIBE_SIZE, "for a permit");
    else
        snprintf(text, DESCRIBE_SIZE, "behind %s",
                 place->owner[0]         ? place->owner
                 : place->predecessor[0] ? place->predecessor
                                         : "another contender");
    return text;
}

static const char *in_line(uint64_t before, char text[64])
{
    static const char *const words[] = {"first", "second", "third"};
    if (before < sizeof words / sizeof words[0])
        snprintf(text, 64, "%s", words[before]);
    else
        snprintf(text, 64, "number %" PRIu64, before + 1);
    return text;
}

static void tell_place(const struct claim *claim, const struct seen *r, bool says)
{
    char behind[DESCRIBE_SIZE], line[64], text[2 * DESCRIBE_SIZE];
    bool many = claim->options.count > 1;
    int64_t waited_ns = zkl_now_ns() - r->place.since_ns;
    snprintf(text, sizeof text, "waits %s%s%s, since %" PRId64 " s, %s in line",
             who(&r->place, behind), many ? " at " : "",
             many ? claim->options.paths[r->member] : "", waited_ns / SECOND_NS,
             in_line(r->place.before, line));
    if (says)
        say("%s", text);
    notify_waits(text);
}

static bool is_same(const struct seen *a, const struct seen *b)
{
    return a->at_ns != 0 && a->member == b->member && a->place.before == b->place.before &&
           strcmp(a->place.predecessor, b->place.predecessor) == 0;
}

/* The owner of a node becomes known a moment after its name, and a permit that is free comes before
 * anything is said of it. */
static void look(const struct standing *s, struct seen *seen, struct seen *reported)
{
    struct seen now = {.at_ns = zkl_now_ns(), .place = ZKL_STANDING_INIT};
    now.member = claim_waits_at(s->claim, &now.place);
    if (now.member < 0)
        return;
    if (!is_same(seen, &now))
        *seen = now;
    bool is_complete = now.place.owner[0] || now.at_ns - seen->at_ns >= UNKNOWN_MS * MS_NS;
    bool is_due = now.at_ns - reported->at_ns >= REPEAT_MS * MS_NS;
    if (!is_complete || (is_same(reported, &now) && !is_due))
        return;
    tell_place(s->claim, &now, s->says);
    *reported = now;
}

static void *report(void *arg)
{
    const struct standing *s = arg;
    struct seen seen = {0}, reported = {0};
    struct pollfd over = {.fd = s->over, .events = POLLIN};
    int64_t well_ns = 0;
    while (poll(&over, 1, LOOK_MS) <= 0) {
        if (zkl_now_ns() - well_ns >= WELL_MS * MS_NS) {
            well_ns = zkl_now_ns();
            notify_waits(NULL);
        }
        look(s, &seen, &reported);
    }
    return NULL;
}

void standing_report(struct standing *s, const struct claim *claim, bool says)
{
    sigset_t before;
    *s = (struct standing){.claim = claim, .says = says, .over = eventfd(0, EFD_CLOEXEC)};
    s->waited_ms = say_waits_ms;
    say_waits_ms = 0;
    signals_block_all(&before); /* a signal is for the thread that waits */
    s->is_reported = s->over >= 0 && pthread_create(&s->thread, NULL, report, s) == 0;
    signals_restore(&before);
}

void standing_end(struct standing *s)
{
    if (s->is_reported && eventfd_write(s->over, 1) == 0)
        pthread_join(s->thread, NULL);
    if (s->over >= 0)
        close(s->over);
    say_waits_ms = s->waited_ms;
}
