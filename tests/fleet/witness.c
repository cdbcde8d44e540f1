/* SPDX-License-Identifier: Apache-2.0 */
#include "witness.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of these numbers none is ever granted, but to a permit (docs/wire-format.md). */
#define EXHAUSTED 0x7ff00000L

struct line {
    char way, access;
    char thread[8], path[120], node[170];
    unsigned long long token;
};

int witness_open(struct witness *w, const char *path)
{
    *w = (struct witness){.fd = open(path, O_RDONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    return w->fd < 0 ? -1 : 0;
}

void witness_close(struct witness *w)
{
    close(w->fd);
}

struct place *witness_place(struct witness *w, const char *path)
{
    for (size_t i = 0; i < w->count; i++) {
        if (strcmp(w->places[i].path, path) == 0)
            return &w->places[i];
    }
    if (w->count == PLACES_MAX) {
        snprintf(w->fault, sizeof w->fault, "too many places for the witness");
        return &w->places[0];
    }
    struct place *place = &w->places[w->count++];
    *place = (struct place){.permits = 1, .low = INT_MAX};
    snprintf(place->path, sizeof place->path, "%s", path);
    return place;
}

/* --- judging ---------------------------------------------------------------------------------- */

static void blame(struct witness *w, const struct place *place, const struct line *line,
                  const char *what, const char *other)
{
    if (w->fault[0] == '\0')
        snprintf(w->fault, sizeof w->fault, "visit %d of %s: %s (%c, token %llu, %s) %s %s",
                 place->turns, place->path, line->thread, line->access, line->token, line->node,
                 what, other);
}

/* "o1.3" and "o1.12". */
static bool same_process(const char *one, const char *other)
{
    return strncmp(one, other, 3) == 0;
}

/* Readers go with readers, permits with permits up to their number; who writes may read as well. */
static bool may_be_together(const struct place *place, const struct line *line,
                            const struct visitor *other)
{
    if (line->access == 'p' && other->access == 'p')
        return place->crowd < place->permits;
    return line->access == 'r' &&
           (other->access == 'r' || strcmp(line->thread, other->thread) == 0);
}

static void judge_token(struct witness *w, struct place *place, const struct line *line)
{
    uint64_t token = line->token;
    bool again = token == place->newest && same_process(line->thread, place->writer);
    bool own = token == place->written && strcmp(line->thread, place->writer) == 0;

    if (line->access == 'x' && token <= place->newest)
        blame(w, place, line, "has no larger token than before:", place->last);
    if (line->access == 's' && token <= place->newest && !again)
        blame(w, place, line, "has the token of another process:", place->writer);
    if (line->access == 'r' && token <= place->written && !own)
        blame(w, place, line, "reads with a token not above the writer's:", place->writer);
    if (line->access == 'p' && token == 0)
        blame(w, place, line, "has no token", "");
    if (token > place->newest)
        place->newest = token;
    if (line->access == 'x' || line->access == 's') {
        place->written = token;
        memcpy(place->writer, line->thread, sizeof place->writer);
    }
}

static void judge_number(struct witness *w, struct place *place, const struct line *line)
{
    const char *digits = line->node + strlen(line->node);

    while (digits > line->node && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    long number = strtol(digits, NULL, 10);
    bool negative = digits >= line->node + 2 && digits[-1] == '-' &&
                    (digits[-2] == '-' || digits[-2] == '_'); /* "lock--1", "__READ__-1" */
    if ((number >= EXHAUSTED || negative) && strstr(line->node, "lease-") == NULL)
        blame(w, place, line, "was granted an exhausted number", "");
    place->low = (int)number < place->low ? (int)number : place->low;
    place->high = (int)number > place->high ? (int)number : place->high;
}

static void enter(struct witness *w, struct place *place, const struct line *line)
{
    for (int i = 0; i < place->crowd; i++) {
        if (!may_be_together(place, line, &place->inside[i]))
            blame(w, place, line, "comes in beside", place->inside[i].thread);
    }
    judge_token(w, place, line);
    judge_number(w, place, line);
    place->visits[line->thread[0] == 'n']++;
    place->turns++;
    place->handed_over += place->last[0] != '\0' && place->last[0] != line->thread[0];
    memcpy(place->last, line->thread, sizeof place->last);
    if (place->crowd == INSIDE_MAX) {
        blame(w, place, line, "is one too many for the witness", "");
        return;
    }
    struct visitor *visitor = &place->inside[place->crowd++];
    visitor->access = line->access;
    memcpy(visitor->thread, line->thread, sizeof visitor->thread);
    if (place->crowd > place->crowd_max)
        place->crowd_max = place->crowd;
}

static void leave(struct witness *w, struct place *place, const struct line *line)
{
    for (int i = 0; i < place->crowd; i++) {
        struct visitor *visitor = &place->inside[i];
        if (strcmp(visitor->thread, line->thread) == 0 && visitor->access == line->access) {
            *visitor = place->inside[--place->crowd];
            return;
        }
    }
    blame(w, place, line, "leaves without having come in", "");
}

void witness_line(struct witness *w, const char *text)
{
    struct line line = {0};

    if (sscanf(text, "%c%c %7s %119s %llu %169s", &line.way, &line.access, line.thread, line.path,
               &line.token, line.node) != 6 ||
        strchr("+-", line.way) == NULL || strchr("xsrp", line.access) == NULL ||
        strchr("on", line.thread[0]) == NULL) {
        if (w->fault[0] == '\0')
            snprintf(w->fault, sizeof w->fault, "not a line of the journal: %.300s", text);
        return;
    }
    struct place *place = witness_place(w, line.path);
    if (line.way == '+')
        enter(w, place, &line);
    else
        leave(w, place, &line);
}

/* --- reading ---------------------------------------------------------------------------------- */

static void take_bytes(struct witness *w, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n' && w->rest_length < sizeof w->rest - 1) {
            w->rest[w->rest_length++] = bytes[i];
            continue;
        }
        w->rest[w->rest_length] = '\0';
        w->rest_length = 0;
        w->lines++;
        witness_line(w, w->rest);
    }
}

bool witness_read(struct witness *w)
{
    char bytes[4096];
    ssize_t n;

    while ((n = read(w->fd, bytes, sizeof bytes)) > 0)
        take_bytes(w, bytes, (size_t)n);
    return w->fault[0] == '\0';
}
