/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of these numbers none is ever granted, but to a permit (docs/wire-format.md). */
#define EXHAUSTED 0x7ff00000L

struct line {
    char way;
    struct visitor who;
    char path[120], node[170];
    unsigned long long token;
};

int journal_open(struct journal *j, const char *path, const char *parties)
{
    *j = (struct journal){.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
                          .parties = parties};
    return j->fd < 0 ? -1 : 0;
}

void journal_close(struct journal *j)
{
    close(j->fd);
}

struct place *journal_place(struct journal *j, const char *path)
{
    for (size_t i = 0; i < j->places_count; i++) {
        if (strcmp(j->places[i].path, path) == 0)
            return &j->places[i];
    }
    if (j->places_count == JOURNAL_PLACES_MAX) {
        snprintf(j->fault, sizeof j->fault, "too many paths in the journal");
        return &j->places[0];
    }
    struct place *place = &j->places[j->places_count++];
    *place = (struct place){.permits = 1, .low = INT_MAX};
    snprintf(place->path, sizeof place->path, "%s", path);
    return place;
}

static size_t index_of(const struct journal *j, char party)
{
    return (size_t)(strchr(j->parties, party) - j->parties);
}

int journal_visits_of(const struct journal *j, const struct place *place, char party)
{
    return place->visits_of[index_of(j, party)];
}

double journal_share(const struct place *place)
{
    return place->turns < 2 ? 0 : 100.0 * place->handed_over / (place->turns - 1);
}

/* --- judging ---------------------------------------------------------------------------------- */

static void blame(struct journal *j, const struct place *place, const struct line *line,
                  const char *what, const char *other)
{
    char with[200] = "";

    if (j->fault[0] != '\0')
        return;
    if (line->node[0] != '\0')
        snprintf(with, sizeof with, ", token %llu, %s", line->token, line->node);
    snprintf(j->fault, sizeof j->fault, "visit %d of %s: %s (%c%s) %s%s%s", place->visits,
             place->path, line->who.worker, line->who.access, with, what, other[0] ? " " : "",
             other);
}

/* "o1.3" and "o1.12". */
static bool same_process(const char *one, const char *other)
{
    return strncmp(one, other, 3) == 0;
}

static bool same_worker(const struct visitor *one, const struct visitor *other)
{
    return strcmp(one->worker, other->worker) == 0;
}

/* Readers hold with readers, permits with permits up to their number; a writer may also read. */
static bool may_be_together(const struct place *place, const struct visitor *who,
                            const struct visitor *other)
{
    if (who->access == 'p' && other->access == 'p')
        return place->crowd < place->permits;
    return who->access == 'r' && (other->access == 'r' || same_worker(who, other));
}

static void judge_token(struct journal *j, struct place *place, const struct line *line)
{
    uint64_t token = line->token;
    char access = line->who.access;
    bool again = token == place->newest && same_process(line->who.worker, place->writer);
    bool own = token == place->written && strcmp(line->who.worker, place->writer) == 0;

    if (access == 'x' && token <= place->newest)
        blame(j, place, line, "has no larger token than before:", place->last);
    if (access == 's' && token <= place->newest && !again)
        blame(j, place, line, "has the token of another process:", place->writer);
    if (access == 'r' && token <= place->written && !own)
        blame(j, place, line, "reads with a token not above the writer's:", place->writer);
    if (access == 'p' && token == 0)
        blame(j, place, line, "has no token", "");
    if (token > place->newest)
        place->newest = token;
    if (access == 'x' || access == 's') {
        place->written = token;
        memcpy(place->writer, line->who.worker, sizeof place->writer);
    }
}

static void judge_number(struct journal *j, struct place *place, const struct line *line)
{
    const char *digits = line->node + strlen(line->node);

    while (digits > line->node && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    long number = strtol(digits, NULL, 10);
    bool negative = digits >= line->node + 2 && digits[-1] == '-' &&
                    (digits[-2] == '-' || digits[-2] == '_'); /* "lock--1", "__READ__-1" */
    if ((number >= EXHAUSTED || negative) && strstr(line->node, "lease-") == NULL)
        blame(j, place, line, "was granted an exhausted number", "");
    place->low = (int)number < place->low ? (int)number : place->low;
    place->high = (int)number > place->high ? (int)number : place->high;
}

static void count_visit(struct journal *j, struct place *place, const struct visitor *who)
{
    bool mixed = false, again = false;

    for (int i = 0; i < place->crowd; i++) {
        mixed |= place->inside[i].worker[0] != who->worker[0];
        again |= same_worker(&place->inside[i], who);
    }
    place->visits++;
    place->visits_of[index_of(j, who->worker[0])]++;
    place->mixed += mixed;
    if (again)
        return;
    place->turns++;
    place->handed_over += place->last[0] != '\0' && place->last[0] != who->worker[0];
    memcpy(place->last, who->worker, sizeof place->last);
}

static void enter(struct journal *j, struct place *place, const struct line *line)
{
    for (int i = 0; i < place->crowd; i++) {
        if (!may_be_together(place, &line->who, &place->inside[i]))
            blame(j, place, line, "comes in beside", place->inside[i].worker);
    }
    if (line->node[0] != '\0') {
        judge_token(j, place, line);
        judge_number(j, place, line);
    }
    count_visit(j, place, &line->who);
    if (place->crowd == JOURNAL_INSIDE_MAX) {
        blame(j, place, line, "is one too many for the journal", "");
        return;
    }
    place->inside[place->crowd++] = line->who;
    if (place->crowd > place->crowd_max)
        place->crowd_max = place->crowd;
}

static void leave(struct journal *j, struct place *place, const struct line *line)
{
    for (int i = 0; i < place->crowd; i++) {
        struct visitor *visitor = &place->inside[i];
        if (same_worker(visitor, &line->who) && visitor->access == line->who.access) {
            *visitor = place->inside[--place->crowd];
            return;
        }
    }
    blame(j, place, line, "leaves without having come in", "");
}

static bool parse(const struct journal *j, const char *text, struct line *line)
{
    int n = sscanf(text, "%c%c %7s %119s %llu %169s", &line->way, &line->who.access,
                   line->who.worker, line->path, &line->token, line->node);

    return (n == 4 || n == 6) && strchr("+-", line->way) != NULL &&
           strchr("xsrp", line->who.access) != NULL &&
           strchr(j->parties, line->who.worker[0]) != NULL;
}

void journal_line(struct journal *j, const char *text)
{
    struct line line = {0};

    if (!parse(j, text, &line)) {
        if (j->fault[0] == '\0')
            snprintf(j->fault, sizeof j->fault, "not a line of the journal: %.300s", text);
        return;
    }
    struct place *place = journal_place(j, line.path);
    (line.way == '+' ? enter : leave)(j, place, &line);
}

/* --- reading ---------------------------------------------------------------------------------- */

static void take_bytes(struct journal *j, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n' && j->rest_length < sizeof j->rest - 1) {
            j->rest[j->rest_length++] = bytes[i];
            continue;
        }
        j->rest[j->rest_length] = '\0';
        j->rest_length = 0;
        j->lines++;
        journal_line(j, j->rest);
    }
}

bool journal_read(struct journal *j)
{
    char bytes[4096];
    ssize_t n;

    while ((n = read(j->fd, bytes, sizeof bytes)) > 0)
        take_bytes(j, bytes, (size_t)n);
    return j->fault[0] == '\0';
}

void journal_forget(struct journal *j)
{
    if (ftruncate(j->fd, 0) != 0 || lseek(j->fd, 0, SEEK_SET) != 0)
        abort();
}
