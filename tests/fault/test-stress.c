/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads of several processes make every public call, on the same paths, over a link that comes and
 * goes, while they close clients, end sessions and delete nodes. Each thread does one thing after the other,
 * drawn by a seed. The test checks that each call returns only what its header says and none hangs, that no
 * two exclusive holders are inside together, and that nothing is left.
 *
 * ZKL_STRESS_SEED decides what each thread does, not when. */

#include "stress.h"

#include "leaks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* To know what is suppressed the thread sanitizer starts a program with two pipes, once. */
#define SYMBOLIZER (UNDER_TSAN ? 2 : 0)

const struct act acts[] = {
    {"figures", act_figures, 1, 5},
    {"wrong", act_wrong, 1, 5},
    {"mutex", act_mutex, 6 * SEATS, 40},
    {"owner", act_owner, 6, 10},
    {"halves", act_halves, 3, 12},
    {"permits", act_permits, 5, 12},
    {"multi", act_multi, 5 * MULTIS, 12},
    {"cancel", act_cancel, 4, 12},
    {"fiber", act_fiber, FIBER_VARIANTS, 30},
    {"look", act_look, 4, 8},
    {"fork", act_fork, 1, 1},
    {"strike", act_strike, 1, 1},
    {"client", act_client, 2, 1},
    {"close", act_close, 3, 1},
};
const size_t acts_count = sizeof acts / sizeof acts[0];

/* --- a process -------------------------------------------------------------------------------- */

static struct player players[PLAYERS + 1]; /* the last one dispatches */

static void play(struct player *p, const struct act *act, int variant)
{
    struct station *s;

    /* It is made anew when the last of its users leaves it. */
    while ((s = station_take(p)) == NULL) {
        net_nap_ms(1);
        if (!p->patient || world->stop)
            return;
    }
    act->fn(p, s, variant);
    station_leave(p, s);
    world->acted++;
}

static const struct act *any_act(struct player *p)
{
    int sum = 0;

    for (size_t i = 0; i < acts_count; i++)
        sum += acts[i].weight;
    int at = chance_between(&p->chance, 1, sum);
    const struct act *act = acts;
    while ((at -= act->weight) > 0)
        act++;
    return act;
}

static void *play_all(void *arg)
{
    struct player *p = arg;

    while (!world->stop) {
        const struct act *act = any_act(p);
        play(p, act, chance_between(&p->chance, 0, act->variants - 1));
        fibers_reap(p);
    }
    fibers_end(p);
    return NULL;
}

/* All that there is, alone, on a good link: each call is called. */
static void play_once(struct player *p)
{
    p->patient = true;
    for (size_t i = 0; i < acts_count && !world->stop; i++) {
        for (int variant = 0; variant < acts[i].variants && !world->stop; variant++) {
            play(p, &acts[i], variant);
            fibers_end(p);
        }
    }
    p->patient = false;
}

static void make_players(int process)
{
    for (int i = 0; i <= PLAYERS; i++) {
        struct player *p = &players[i];
        p->process = process;
        p->number = i;
        p->chance = world->seed * 1000 + (uint64_t)(process * 100 + i);
        fibers_make(p);
    }
}

static void play_with_others(int process)
{
    if (process == 0) {
        play_once(&players[0]);
        world->go = true;
    }
    while (!world->go)
        net_nap_ms(1);
    for (int i = 0; i < PLAYERS; i++)
        pthread_create(&players[i].thread, NULL, play_all, &players[i]);
    for (int i = 0; i < PLAYERS; i++)
        pthread_join(players[i].thread, NULL);
}

/* The watch that a path has as long as it has a handle does not count. */
static void expect_rest(struct player *p, struct station *s)
{
    char text[200];

    if (wait_until(fault_contenders(s->client) == 0 && fault_watches(s->client) == 0 &&
                       fault_calls(s->client) == 0,
                   QUIET_MS))
        return;
    snprintf(text, sizeof text, "left in client %d: %zu contenders, %zu watches, %zu calls",
             s->kind, fault_contenders(s->client), fault_watches(s->client),
             fault_calls(s->client));
    odd(p, text);
}

static void expect_no_more(struct player *p, const char *what, int (*count)(void), int before)
{
    char text[200];

    if (wait_until(count() <= before, QUIET_MS))
        return;
    snprintf(text, sizeof text, "%d %s, and there were %d", count(), what, before);
    odd(p, text);
}

/* What comes with the first thread and the first client and stays: a sanitizer's own thread, the resolver's
 * and the allocator's descriptors. */
static void warm_up(struct player *p)
{
    act_client(p, NULL, 0);
}

static int worker(int process, int fd)
{
    struct player *loop = &players[PLAYERS];

    if (!world_attach(fd))
        return 1;
    make_players(process);
    warm_up(loop);
    int threads = fault_threads(), open = fault_descriptors();
    called_on = true;
    for (int i = 0; i < STATIONS; i++) {
        stations[i].kind = (enum station_kind)i;
        pthread_mutex_init(&stations[i].mu, NULL);
        station_open(loop, &stations[i]);
    }
    watch_players(players, PLAYERS + 1);
    pthread_create(&loop->thread, NULL, station_loop, loop);
    play_with_others(process);
    loop_stop = true;
    pthread_join(loop->thread, NULL);
    for (int i = 0; i < STATIONS; i++) {
        expect_rest(loop, &stations[i]);
        station_end(loop, &stations[i]);
    }
    watch_end();
    expect_no_more(loop, "threads", fault_threads, threads);
    expect_no_more(loop, "descriptors", fault_descriptors, open + SYMBOLIZER);
    for (int i = 0; i < CALLED_COUNT; i++)
        world->called[i] += called_times[i];
    for (int i = 0; i <= PLAYERS; i++)
        free(players[i].fibers);
    return world->odd > 0;
}

/* --- the parent ------------------------------------------------------------------------------- */

static uint64_t seed;
static long seconds;

static pid_t start_worker(int process, int fd)
{
    char number[20], descriptor[20];
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(number, sizeof number, "%d", process);
    snprintf(descriptor, sizeof descriptor, "%d", fd);
    execl("/proc/self/exe", "test-stress", "--worker", number, descriptor, (char *)NULL);
    _exit(127);
}

static bool ended(pid_t *pid)
{
    int status = 0;

    if (*pid == 0 || waitpid(*pid, &status, WNOHANG) == 0)
        return *pid == 0;
    if (status != 0) {
        fprintf(stderr, "stress: a process ended with status %x\n", (unsigned)status);
        world->odd++;
        world->stop = true;
    }
    *pid = 0;
    return true;
}

static bool all_ended(pid_t *pids)
{
    bool all = true;

    for (int i = 0; i < PROCESSES; i++)
        all = ended(&pids[i]) && all;
    return all;
}

/* One more hole, cut or lost answer, and then a while without. */
static void strike(struct proxy *proxy, uint64_t *state)
{
    static const enum proxy_op ops[] = {PROXY_CREATE, PROXY_DELETE, PROXY_MULTI, PROXY_CHILDREN,
                                        PROXY_EXISTS, PROXY_ANY,    PROXY_EVENT, PROXY_CREATE2};
    enum proxy_op op = ops[chance_between(state, 0, 7)];
    int pause_ms = chance_between(state, 10, 150);

    switch (chance_between(state, 0, 7)) {
    case 0:
        proxy_cut(proxy);
        break;
    case 1:
        proxy_hole(proxy, (enum proxy_dir)chance_between(state, 1, 3));
        net_nap_ms(pause_ms);
        if (chance(state, 50))
            proxy_cut(proxy);
        proxy_heal(proxy);
        break;
    case 2:
        proxy_refuse(proxy, true);
        proxy_cut(proxy);
        net_nap_ms(pause_ms);
        while (proxy_refuse(proxy, false) != 0)
            net_nap_ms(10);
        break;
    case 3:
        proxy_drop_reply(proxy, op, 1, PROXY_THEN_CUT);
        break;
    case 4:
        proxy_drop_request(proxy, op, 1, PROXY_THEN_CUT);
        break;
    case 5:
        proxy_delay_ms(proxy, chance_between(state, 0, 10));
        break;
    case 6:
        proxy_half_open(proxy);
        net_nap_ms(pause_ms);
        proxy_cut(proxy);
        break;
    default:
        proxy_trickle(proxy, chance(state, 50) ? 64 : 0);
    }
    net_nap_ms(chance(state, 25) ? chance_between(state, 1, 200)
                                 : chance_between(state, 200, 2000));
}

static void make_well(struct proxy *proxy)
{
    proxy_disarm(proxy);
    proxy_release(proxy);
    proxy_trickle(proxy, 0);
    proxy_delay_ms(proxy, 0);
    proxy_heal(proxy);
}

static bool is_left(struct wire *wire, const char *path)
{
    return fault_children(wire, path) > 0;
}

/* Of a semaphore, the nodes two levels below. */
static bool place_is_empty(struct wire *wire, enum place at)
{
    static const char *const parts[] = {"/locks", "/leases"};
    bool some = false;

    if (place_room(at) == 1 && at != AT_ONE)
        return !is_left(wire, place_path[at]);
    for (int i = 0; i < 2; i++) {
        char path[100];
        snprintf(path, sizeof path, "%s%s", place_path[at], parts[i]);
        some = some || is_left(wire, path);
    }
    return !some;
}

static void check_no_nodes(void)
{
    struct wire *wire = fault_wire();

    for (int at = 0; at < PLACES; at++) {
        if (!wait_until(place_is_empty(wire, (enum place)at), QUIET_MS))
            fail_msg("nodes are left below %s", place_path[at]);
    }
    wire_close(wire);
}

static void flap_until_all_is_said(struct proxy *proxy, pid_t *pids)
{
    uint64_t state = seed;

    while (!world->go && !world->stop && !all_ended(pids))
        net_nap_ms(5);
    int64_t end_ms = net_now_ms() + seconds * 1000;
    while (net_now_ms() < end_ms && !world->stop && !all_ended(pids))
        strike(proxy, &state);
    make_well(proxy);
    world->stop = true;
    check_wait(all_ended(pids), 4 * HANG_MS);
}

static void tell_figures(const struct sentence *sentence)
{
    print_message("%ld acts, %ld grants, %ld lost; %ld visits, of which %zu count;", world->acted,
                  world->granted, world->lost, world->witness.visits, sentence->counted);
    for (int i = 0; i < CODES; i++) {
        if (world->codes[i] > 0)
            print_message(" %d: %d", -i, world->codes[i]);
    }
    print_message("\n");
}

static void check_called(void)
{
    for (int i = 0; i < CALLED_COUNT; i++)
        called_times[i] = world->called[i];
    check_num(called_missing(), ==, 0);
}

/* Every call, by every player, in one run. */
TEST(all_at_once)
{
    pid_t pids[PROCESSES];
    int fd = world_make();

    check_num(fd, >=, 0);
    struct proxy *proxy = proxy_before(server, 0);
    world->seed = seed;
    world->port = zks_port(server, 0);
    snprintf(world->proxied, sizeof world->proxied, "%s", proxy_address(proxy));
    snprintf(world->direct, sizeof world->direct, "%s", zks_connect_string(server));
    print_message("seed %llu, %ld s\n", (unsigned long long)seed, seconds);
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = start_worker(i, fd);
    flap_until_all_is_said(proxy, pids);
    struct sentence sentence = world_judge();
    tell_figures(&sentence);
    check_num(world->odd, ==, 0);
    check_num(sentence.overlaps, ==, 0);
    check_num(sentence.disorder, ==, 0);
    check_no_nodes();
    check_called();
    proxy_stop(proxy);
    close(fd);
}

/* --- main ------------------------------------------------------------------------------------- */

static uint64_t given(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--worker") == 0)
        return worker(atoi(argv[2]), atoi(argv[3]));
    seed = given("ZKL_STRESS_SEED", (uint64_t)(net_boot_ns() % 1000000));
    seconds = (long)given("ZKL_STRESS_SECONDS", (uint64_t)test_length(600, 8));
    return fault_main(argc, argv, NULL);
}
