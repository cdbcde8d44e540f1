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

int interop_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n)
{
    static const struct zks_options options = {.container_check_ms = CONTAINER_CHECK_MS,
                                               .max_session_ms = WIRE_LASTING_MS};
    char why[512];

    if (!languages_available(why, sizeof why)) {
        fprintf(stderr, "skipped: %s\n", why);
        return 77;
    }
    return crowd_main(argc, argv, name, tests, n, &options);
}

/* --- a race ----------------------------------------------------------------------------------- */

static size_t sides_of(const struct race *r)
{
    size_t n = 0;

    while (n < RACE_SIDES_MAX && r->sides[n] != NULL)
        n++;
    return n;
}

static long rounds_of(const struct race *r)
{
    return r->rounds > 0 ? r->rounds : RACE_ROUNDS;
}

/* The nth path of "/a,/b"; NULL: there are fewer. Good until the next call. */
static const char *path_of(const struct race *r, size_t n)
{
    static char path[64];
    const char *at = r->paths;

    for (; n > 0 && at != NULL; n--) {
        at = strchr(at, ',');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at == NULL)
        return NULL;
    snprintf(path, sizeof path, "%.*s", (int)strcspn(at, ","), at);
    return path;
}

/* "c mutex names=kazoo" as "c1 new L mutex PATHS names=kazoo permits=N". */
static void make_handle(const struct race *r, const char *side)
{
    size_t kind = 2 + strcspn(side + 2, " ");
    char at[64];

    check_ok_of("%c1 new L %.*s %s %s permits=%d", side[0], (int)kind - 2, side + 2,
                option_of(side, "at=", at, sizeof at) != NULL ? at : r->paths,
                side[kind] == ' ' ? side + kind + 1 : "", r->permits);
}

/* All workers of all sides. A command names a worker by the letter of its side and its number:
 * "c1". */
#define each_worker(r, side, worker)                                                               \
    for (size_t side = 0; side < sides_of(r); side++)                                              \
        for (int worker = 1; worker <= RACE_WORKERS; worker++)

/* Once through, so that the run begins with everybody connected, compiled and loaded. */
static void warm_up(const struct race *r)
{
    each_worker(r, side, worker)
        check_says("ok", "%c%d run L 1 %d", r->sides[side][0], worker, r->writers);
}

static void drop_handles(const struct race *r)
{
    for (size_t side = 0; side < sides_of(r); side++)
        check_says("ok", "%c1 drop L", r->sides[side][0]);
}

const char *race_run(const struct race *r)
{
    const char *path;

    for (size_t i = 0; (path = path_of(r, i)) != NULL; i++)
        journal_place(&journal, path)->permits = r->permits > 0 ? r->permits : 1;
    for (size_t side = sides_of(r); side-- > 0;)
        make_handle(r, r->sides[side]);
    warm_up(r);
    each_worker(r, side, worker)
        say("%c%d run L %ld %d", r->sides[side][0], worker, rounds_of(r) / RACE_WORKERS,
            r->writers);
    const char *fault = crowd_judge();
    if (fault == NULL)
        drop_handles(r);
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

/* How many visits one side must have left at a place: several a round for one that takes several
 * permits. */
static int visits_due(const struct race *r, const char *side, const struct place *place)
{
    int rounds = (int)rounds_of(r) + RACE_WORKERS; /* and the warm-up */
    char value[64];

    if (option_of(side, "at=", value, sizeof value) != NULL && strcmp(value, place->path) != 0)
        return 0;
    return option_of(side, "count=", value, sizeof value) != NULL ? rounds * atoi(value) : rounds;
}

static void check_place(const struct race *r, const struct place *place)
{
    size_t languages = 0;

    check_num(place->crowd, ==, 0);
    for (size_t side = 0; side < sides_of(r); side++) {
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
    const char *path;

    if (fault != NULL) {
        peers_print_logs();
        fail_msg("%s: %s", r->title, fault);
    }
    for (size_t i = 0; (path = path_of(r, i)) != NULL; i++) {
        const struct place *place = journal_place(&journal, path);
        print_figures(r, place, ms);
        check_place(r, place);
        check_no_contender(path);
    }
}

/* --- nodes ------------------------------------------------------------------------------------ */

void check_no_contender(const char *path)
{
    check_wait(count_ephemerals(path) == 0, GONE_MS);
}
