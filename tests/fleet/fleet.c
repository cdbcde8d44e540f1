/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EACH_LIBRARY 2 /* processes */
#define PROCESSES (2 * EACH_LIBRARY)
#define GONE_MS 10000
#define EXPIRED_MS 60000  /* for those of a run that failed, whose processes were killed */
#define HEAD_START_MS 300 /* for a worker that must queue behind the guard */
#define CONTAINER_CHECK_MS 300

/* Of the old library and of the new one. */
static const char *const names[PROCESSES] = {"o1.", "n1.", "o2.", "n2."};

/* --- a run ------------------------------------------------------------------------------------ */

static void start_all(const struct fleet *f)
{
    const char *journal_path = crowd_journal("on");
    char why[512] = "";
    int rc = 0;

    for (int i = 0; rc == 0 && i < PROCESSES; i++) {
        const char *const command[] = {names[i][0] == 'o' ? getenv("FLEET_OLD") : FLEET_NEW,
                                       zks_connect_string(crowd_server), journal_path,
                                       f->creators_only ? CREDENTIAL : NULL, NULL};
        rc = peer_start(names[i], command, zks_dir(crowd_server), why, sizeof why);
    }
    if (rc != 0 || peers_await(why, sizeof why) != 0)
        fail_msg("%s: %s", f->title, why);
}

/* Each worker, in each process; how many threads that is. */
static int add_workers(const struct fleet *f)
{
    int threads = 0;

    crowd_clear();
    for (int i = 0; i < PROCESSES; i++) {
        for (int k = 0; k < WORKERS_MAX && f->workers[k] != NULL; k++)
            threads += crowd_add(names[i], f->workers[k], 1);
    }
    if (f->trespasser != NULL)
        crowd_add(names[1], f->trespasser, 1);
    return threads;
}

static void take_the_guard_away(const char *path)
{
    char guard[160];

    net_nap_ms(HEAD_START_MS);
    snprintf(guard, sizeof guard, "%s/" GUARD, path);
    check_ok(wire_delete(raw, guard, -1));
}

const char *fleet_run(const struct fleet *f)
{
    start_all(f);
    int threads = add_workers(f) / 2; /* of each library */
    crowd_go((EACH_SIDE + threads - 1) / threads);
    if (f->guarded != NULL)
        take_the_guard_away(f->guarded);
    const char *fault = crowd_judge();
    if (fault != NULL) {
        peers_kill();
        return fault;
    }
    crowd_drop();
    return peers_stop() ? NULL : "a process did not end well";
}

/* --- what has to be true of it ---------------------------------------------------------------- */

static int64_t birth(const char *path)
{
    struct wire_stat stat = {0};
    int rc = wire_exists(raw, path, &stat);

    return rc == 0 ? stat.czxid : rc;
}

static void check_place(const struct fleet *f, const struct place *place, int64_t ms)
{
    double share = journal_share(place);

    print_message(
        "%s, %s: %d visits by the old library, %d by the new one in %.1f s, %.0f %% of the "
        "hand-offs between them, at most %d inside, numbers %d to %d\n",
        f->title, place->path, place->visits_of[0], place->visits_of[1], (double)ms / 1000, share,
        place->crowd_max, place->low, place->high);
    check_num(place->crowd, ==, 0);
    check_num(place->visits_of[0], ==, place->visits_of[1]);
    check_num(share, >=, f->share_min);
}

void fleet_check(const struct fleet *f)
{
    int64_t before[PATHS_MAX] = {0}, begin_ms = net_now_ms();
    int visits = 0;

    crowd_keep_raw();
    check_wait(wire_ephemerals(raw, "/") == 0, EXPIRED_MS);
    for (int i = 0; i < PATHS_MAX && f->renewed[i] != NULL; i++)
        before[i] = birth(f->renewed[i]);
    const char *fault = fleet_run(f);
    if (fault != NULL) {
        peers_print_logs();
        fail_msg("%s: %s", f->title, fault);
    }
    for (size_t i = 0; i < journal.places_count; i++) {
        check_place(f, &journal.places[i], net_now_ms() - begin_ms);
        visits += journal.places[i].visits_of[1];
    }
    check_num(visits, >=, EACH_SIDE);
    for (int i = 0; i < PATHS_MAX && f->renewed[i] != NULL; i++) {
        check_num(before[i], >, 0);
        check_num(birth(f->renewed[i]), !=, before[i]);
    }
    check_wait(wire_ephemerals(raw, "/") == 0, GONE_MS);
}

/* --- the program ------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    static const struct zks_options options = {.container_check_ms = CONTAINER_CHECK_MS,
                                               .max_session_ms = WIRE_LASTING_MS,
                                               .no_digest = true};
    const char *old = getenv("FLEET_OLD");

    if (old == NULL || access(old, X_OK) != 0) {
        fprintf(stderr,
                "skipped: the library of the old commit is not built: sh tests/run.sh fleet\n");
        return 77;
    }
    return crowd_main(argc, argv, &options);
}
