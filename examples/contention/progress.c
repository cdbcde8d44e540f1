/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include "chance.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { STEP_US = 100000, RATE_US = 1000000, BAR_WIDTH = 24 };

/* What a terminal does not show is not worth the redrawing of the wrong lines: a block that is
 * higher than the window would scroll at each redraw. */
static int rows_shown(const struct progress *p)
{
    struct winsize size;
    int room = ioctl(fileno(p->out), TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : 24;
    int rows = p->crew->options->processes;
    return rows + 3 <= room ? rows : 0;
}

static const char *colour(const struct progress *p, const char *sequence)
{
    return p->colours ? sequence : "";
}

void progress_begin(struct progress *p, const struct crew *crew)
{
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    *p = (struct progress){.crew = crew, .out = crew->options->json ? stderr : stdout};
    p->draws = isatty(fileno(p->out)) && term && strcmp(term, "dumb") != 0;
    p->colours = p->draws && !(no_color && *no_color);
    p->begin_us = p->rate_us = clock_us();
}

static void wipe(struct progress *p)
{
    if (p->lines)
        fprintf(p->out, "\033[%dA\r\033[J", p->lines);
    p->lines = 0;
}

static uint64_t acquired(const struct progress *p)
{
    uint64_t sum = 0;
    for (int i = 0; i < p->crew->options->processes; i++)
        sum += atomic_load(&p->crew->board->acquired[i]);
    return sum;
}

/* --- drawing ------------------------------------------------------------------------------------
 */

static void measure(struct progress *p, uint64_t now_us, uint64_t count)
{
    uint64_t passed_us = now_us - p->rate_us;
    if (passed_us < RATE_US && p->rate)
        return;
    if (passed_us)
        p->rate = (count - p->rate_acquired) * 1000000 / passed_us;
    p->rate_us = now_us;
    p->rate_acquired = count;
}

static void holder(const struct progress *p)
{
    int holders = 0;
    unsigned process = 0;
    int thread = 0;
    for (int i = 0; i < p->crew->options->processes; i++) {
        int here = atomic_load(&p->crew->board->holding[i]);
        if (!here || p->crew->members[i].paused)
            continue;
        holders++;
        process = (unsigned)i;
        thread = here - 1;
    }
    if (holders == 1)
        fprintf(p->out, "held by process %u thread %d", process, thread);
    else if (holders)
        fprintf(p->out, "held by %d threads", holders);
    else
        fputs("not held", p->out);
}

static void head(struct progress *p, uint64_t now_us, uint64_t count)
{
    const struct options *o = p->crew->options;
    fprintf(p->out, "%5.1f s", (double)(now_us - p->begin_us) / 1e6);
    if (o->seconds)
        fprintf(p->out, " of %d", o->seconds);
    fprintf(p->out, "  %s%" PRIu64 "%s acquisitions, %" PRIu64 " per second, ",
            colour(p, "\033[1m"), count, colour(p, "\033[0m"), p->rate);
    holder(p);
    fputc('\n', p->out);
    p->lines++;
}

static void state(const struct progress *p, int number)
{
    const struct member *member = &p->crew->members[number];
    int thread = atomic_load(&p->crew->board->holding[number]);
    if (member->paused)
        fprintf(p->out, "%sstopped%s", colour(p, "\033[33m"), colour(p, "\033[0m"));
    else if (thread)
        fprintf(p->out, "%sthread %d holds%s", colour(p, "\033[32m"), thread - 1,
                colour(p, "\033[0m"));
    if (member->life)
        fprintf(p->out, "  %skilled %u times%s", colour(p, "\033[31m"), member->life,
                colour(p, "\033[0m"));
}

static void row(struct progress *p, int number, uint64_t most)
{
    uint64_t count = atomic_load(&p->crew->board->acquired[number]);
    int filled = most ? (int)(count * BAR_WIDTH / most) : 0;
    fprintf(p->out, "process %2d ", number);
    for (int i = 0; i < BAR_WIDTH; i++)
        fputc(i < filled ? '#' : '.', p->out);
    fprintf(p->out, " %7" PRIu64 "  ", count);
    state(p, number);
    fputc('\n', p->out);
    p->lines++;
}

static void draw(struct progress *p, uint64_t now_us)
{
    int rows = rows_shown(p);
    uint64_t count = acquired(p);
    uint64_t most = 0;
    measure(p, now_us, count);
    wipe(p);
    head(p, now_us, count);
    for (int i = 0; i < rows; i++) {
        uint64_t here = atomic_load(&p->crew->board->acquired[i]);
        most = here > most ? here : most;
    }
    for (int i = 0; i < rows; i++)
        row(p, i, most);
    fflush(p->out);
}

void progress_step(struct progress *p)
{
    uint64_t now_us = clock_us();
    if (!p->draws || now_us < p->next_us)
        return;
    p->next_us = now_us + STEP_US;
    draw(p, now_us);
}

void progress_say(struct progress *p, const char *line)
{
    wipe(p);
    p->next_us = 0;
    fprintf(p->out, "%s\n", line);
    fflush(p->out);
}

void progress_end(struct progress *p)
{
    wipe(p);
    p->draws = false;
    fflush(p->out);
}
