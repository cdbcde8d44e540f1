/* SPDX-License-Identifier: Apache-2.0 */
#include "interop.h"

#include "languages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTAINER_CHECK_MS 200
#define GONE_MS 60000

/* --- the program ------------------------------------------------------------------------------ */

int interop_setup(void **state)
{
    char why[512];

    (void)state;
    crowd_keep_raw();
    if (languages_start(zks_connect_string(crowd_server), crowd_journal(LANGUAGES),
                        zks_dir(crowd_server), why, sizeof why) == 0)
        return 0;
    print_error("%s\n", why);
    return -1;
}

/* A test that fails leaves workers in the middle of something. */
int interop_teardown(void **state)
{
    (void)state;
    if (!peers_idle())
        peers_kill();
    return 0;
}

int main(int argc, char **argv)
{
    static const struct zks_options options = {.container_check_ms = CONTAINER_CHECK_MS,
                                               .max_session_ms = WIRE_LASTING_MS};
    char why[512];

    if (!languages_available(why, sizeof why)) {
        fprintf(stderr, "skipped: %s\n", why);
        return 77;
    }
    return crowd_main(argc, argv, &options);
}

/* --- a race ----------------------------------------------------------------------------------- */

static long rounds_of(const struct race *r)
{
    return RACE_ROUNDS / (1 + r->is_short);
}

#define each_side(r, side)                                                                         \
    for (size_t side = 0; side < RACE_SIDES_MAX && (r)->sides[side] != NULL; side++)

const char *race_run(const struct race *r)
{
    crowd_clear();
    each_side(r, side)
        crowd_add((char[]){r->sides[side][0], '\0'}, r->sides[side] + 2, RACE_WORKERS);
    crowd_go(1); /* so that the run begins with everybody connected, compiled and loaded */
    const char *fault = crowd_judge();
    if (fault != NULL)
        return fault;
    crowd_go(rounds_of(r) / RACE_WORKERS);
    fault = crowd_judge();
    if (fault == NULL)
        crowd_drop();
    return fault;
}

static void print_figures(const struct race *r, const struct place *place, int64_t ms)
{
    print_message(
        "%s, %s: %d visits (C %d, Java %d, Python %d, Go %d) in %.1f s, %.1f %% of the hand-offs "
        "between languages",
        r->title, place->path, place->visits, place->visits_of[0], place->visits_of[1],
        place->visits_of[2], place->visits_of[3], (double)ms / 1000, journal_share(place));
    if (place->crowd_max > 1)
        print_message(", at most %d inside, %d visits beside another language", place->crowd_max,
                      place->mixed);
    print_message("\n");
}

/* "c multi /a,/b" is at "/b". */
static bool is_at(const char *side, const struct place *place)
{
    size_t length = strlen(place->path);
    const char *at = strstr(side, place->path);

    return at != NULL && strchr(" ,", at[length]) != NULL; /* or its end */
}

/* How many visits one side must have left at a place: several a round for one that takes several
 * permits. */
static int visits_due(const struct race *r, const char *side, const struct place *place)
{
    int rounds = (int)rounds_of(r) + RACE_WORKERS; /* and the warm-up */

    return is_at(side, place) ? rounds * crowd_number(side, "count=", 1) : 0;
}

static void check_place(const struct race *r, const struct place *place)
{
    size_t languages = 0;

    check_num(place->crowd, ==, 0);
    each_side(r, side) {
        int due = visits_due(r, r->sides[side], place);
        check_num(journal_visits_of(&journal, place, r->sides[side][0]), ==, due);
        languages += due > 0;
    }
    double share_min = r->share_min > 0 ? r->share_min : RACE_SHARE_MIN;
    if (languages > 1 && journal_share(place) < share_min)
        fail_msg("%.1f %% of the hand-offs between languages, %.1f are due", journal_share(place),
                 share_min);
    if (r->together > 0) {
        check_num(place->crowd_max, >=, r->together);
        check_num(place->mixed, >, 0);
    }
}

void skip_without_go(void)
{
    if (!languages_have('g')) {
        print_message(
            "skipped: there is no go-zookeeper: apt-get install golang-go and "
            "golang-github-go-zookeeper-zk-dev, or golang-github-samuel-go-zookeeper-dev\n");
        skip();
    }
}

void race(const struct race *r)
{
    int64_t begin_ms = net_now_ms();
    const char *fault = race_run(r);
    int64_t ms = net_now_ms() - begin_ms;

    if (fault != NULL) {
        peers_print_logs();
        fail_msg("%s: %s", r->title, fault);
    }
    for (size_t i = 0; i < journal.places_count; i++) {
        print_figures(r, &journal.places[i], ms);
        check_place(r, &journal.places[i]);
        check_no_contender(journal.places[i].path);
    }
}

/* --- nodes ------------------------------------------------------------------------------------ */

void check_no_contender(const char *path)
{
    check_wait(wire_ephemerals(raw, path) == 0, GONE_MS);
}
