/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char journal_languages[] = "cjk";

int journal_open(struct journal *j, const char *path)
{
    *j = (struct journal){.fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600)};
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
    *place = (struct place){.permits = 1};
    snprintf(place->path, sizeof place->path, "%s", path);
    return place;
}

double journal_share(const struct place *place)
{
    return place->turns < 2 ? 0 : 100.0 * place->handed_over / (place->turns - 1);
}

/* --- judging ---------------------------------------------------------------------------------- */

static void blame(struct journal *j, const struct place *place, const struct visitor *who,
                  const char *what, const struct visitor *other)
{
    if (j->fault[0] == '\0')
        snprintf(j->fault, sizeof j->fault, "visit %d of %s: %s (%c) %s%s%s", place->visits,
                 place->path, who->worker, who->access, what, other != NULL ? " " : "",
                 other != NULL ? other->worker : "");
}

/* Readers go with readers, permits with permits up to their number, nobody else with anybody. */
static bool may_be_together(const struct place *place, char one, char other)
{
    if (one == 'p' && other == 'p')
        return place->crowd < place->permits;
    return one == 'r' && other == 'r';
}

static void count_visit(struct place *place, const struct visitor *who)
{
    const char *language = strchr(journal_languages, who->worker[0]);
    bool mixed = false, again = false;

    for (int i = 0; i < place->crowd; i++) {
        mixed |= place->inside[i].worker[0] != who->worker[0];
        again |= strcmp(place->inside[i].worker, who->worker) == 0;
    }
    place->visits++;
    if (language != NULL && *language != '\0')
        place->visits_of[language - journal_languages]++;
    place->mixed += mixed;
    if (again)
        return;
    place->turns++;
    place->handed_over += place->last != '\0' && place->last != who->worker[0];
    place->last = who->worker[0];
}

static void enter(struct journal *j, struct place *place, const struct visitor *who)
{
    for (int i = 0; i < place->crowd; i++) {
        if (!may_be_together(place, who->access, place->inside[i].access))
            blame(j, place, who, "comes in beside", &place->inside[i]);
    }
    count_visit(place, who);
    if (place->crowd == JOURNAL_INSIDE_MAX) {
        blame(j, place, who, "is one too many for the journal", NULL);
        return;
    }
    place->inside[place->crowd++] = *who;
    if (place->crowd > place->crowd_max)
        place->crowd_max = place->crowd;
}

static void leave(struct journal *j, struct place *place, const struct visitor *who)
{
    for (int i = 0; i < place->crowd; i++) {
        struct visitor *visitor = &place->inside[i];
        if (strcmp(visitor->worker, who->worker) == 0 && visitor->access == who->access) {
            *visitor = place->inside[--place->crowd];
            return;
        }
    }
    blame(j, place, who, "leaves without having come in", NULL);
}

void journal_line(struct journal *j, const char *line)
{
    struct visitor who = {.worker = ""};
    char way;
    char path[64];

    if (sscanf(line, "%c%c %7s %63s", &way, &who.access, who.worker, path) != 4 ||
        strchr("+-", way) == NULL || strchr("xrp", who.access) == NULL) {
        if (j->fault[0] == '\0')
            snprintf(j->fault, sizeof j->fault, "not a line of the journal: %.100s", line);
        return;
    }
    if (way == '+')
        enter(j, journal_place(j, path), &who);
    else
        leave(j, journal_place(j, path), &who);
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
