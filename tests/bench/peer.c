/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "room.h"

#define STACK_BYTES (128 * 1024) /* thousands of threads wait in some runs */
#define SAMPLES_MAX (1 << 20)
#define PAGE_BYTES 4096
#define NOTES_MAX 64
#define WARM_THREADS 8 /* at most: a warm-up must not cost what the run is measured by */

/* The file that all processes of a run map: the witness and the samples. board.py has the same. */
struct board {
    _Atomic int64_t samples;
    char rest_of_page[PAGE_BYTES - sizeof(int64_t)];
    struct {
        struct room room; /* its word, first, is 0 while nobody is inside */
        char rest_of_line[64 - sizeof(struct room)];
        int64_t released; /* when its last holder began to give it back */
        char rest_of_page[PAGE_BYTES - 64 - sizeof(int64_t)];
    } lock[LOCKS_MAX];
    int64_t sample[SAMPLES_MAX];
};

enum sampled { NOTHING, HAND_OFFS, CYCLES, TURNS };

struct seat {
    pthread_t thread;
    int number;
    int lock;
    enum kind kind;
    int64_t cycles;
    int64_t released; /* as on the board */
    int64_t ended_ns;
};

static struct settings settings;
static const struct peer *peer;
static struct board *board;
static struct seat *seats;
static int waiting; /* mode drain: how many were started */

/* One run. */
static pthread_barrier_t start;
static int64_t end_ns;              /* no cycle begins after this */
static _Atomic int64_t cycles_left; /* how many cycles may still begin */

void peer_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    _exit(1);
}

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* --- the witness ------------------------------------------------------------------------------ */

static uint32_t number_of(const struct seat *s)
{
    return (uint32_t)(settings.index * 100000 + s->number);
}

/* found: as room.h says it. */
static void check_alone(const struct seat *s, int lock, uint64_t found)
{
    if (found != 0)
        peer_fail("VIOLATION: process %d, thread %d is not alone in lock %d: %llx is inside",
                  settings.index, s->number, lock, (unsigned long long)found);
}

static void enter_one(const struct seat *s, int lock)
{
    struct room *room = &board->lock[lock].room;

    check_alone(s, lock, s->kind == READER ? room_share(room) : room_enter(room, number_of(s)));
}

static void leave_one(const struct seat *s, int lock)
{
    struct room *room = &board->lock[lock].room;

    check_alone(s, lock, s->kind == READER ? room_unshare(room) : room_leave(room, number_of(s)));
}

static void enter(const struct seat *s)
{
    for (int i = 0; i < (s->kind == MULTI ? MEMBERS : 1); i++)
        enter_one(s, s->lock + i);
}

static void leave(const struct seat *s)
{
    for (int i = 0; i < (s->kind == MULTI ? MEMBERS : 1); i++)
        leave_one(s, s->lock + i);
}

static void sample(int64_t ns)
{
    int64_t at = atomic_fetch_add(&board->samples, 1);

    if (at < SAMPLES_MAX)
        board->sample[at] = ns;
}

/* --- cycles ----------------------------------------------------------------------------------- */

static enum sampled sampled(void)
{
    static const char *const names[] = {"none", "handoff", "cycle", "turn"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(settings.sample, names[i]) == 0)
            return (enum sampled)i;
    }
    peer_fail("no sample %s", settings.sample);
}

/* A hand-off is a release to a seat that waited already: it lasts from the moment before the
 * releaser's unlock to the moment after the next one's lock. A turn is the lock of a seat that
 * did not have to wait, but that was not the last one to have it. */
static void cycle(struct seat *s, enum sampled sampled)
{
    int64_t asked = now_ns();

    peer->lock(s->kind, s->number, s->lock);
    int64_t got = now_ns();
    enter(s);
    int64_t released = board->lock[s->lock].released;
    if (sampled == HAND_OFFS && released > asked)
        sample(got - released);
    if (sampled == TURNS && released <= asked && released != s->released)
        sample(got - asked);
    s->cycles++;
    leave(s);
    board->lock[s->lock].released = s->released = now_ns();
    peer->unlock(s->kind, s->number, s->lock);
    if (sampled == CYCLES)
        sample(now_ns() - asked);
}

static void pause_after(struct seat *s)
{
    int64_t share =
        (s->cycles * 7919 + settings.index * 104729) % 1000; /* any, so that they don't keep step */
    int64_t ns = settings.pause_us * (500 + share);

    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

static void *cycles_main(void *seat)
{
    struct seat *s = seat;
    enum sampled what = sampled();

    pthread_barrier_wait(&start);
    while (now_ns() < end_ns && atomic_fetch_sub(&cycles_left, 1) > 0) {
        cycle(s, what);
        if (settings.pause_us > 0)
            pause_after(s);
    }
    s->ended_ns = now_ns();
    return NULL;
}

static void start_thread(struct seat *s, void *(*main)(void *))
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&s->thread, &attributes, main, s) != 0)
        peer_fail("no thread %d", s->number);
    pthread_attr_destroy(&attributes);
}

static void run_cycles(int threads, int64_t cycles, double seconds)
{
    int64_t began, cpu, ended = 0, done = 0, writes = 0;

    atomic_store(&cycles_left, cycles);
    pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        seats[i].cycles = 0;
        start_thread(&seats[i], cycles_main);
    }
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    began = now_ns();
    end_ns = began + (int64_t)(seconds * 1e9);
    pthread_barrier_wait(&start);
    for (int i = 0; i < threads; i++) {
        pthread_join(seats[i].thread, NULL);
        done += seats[i].cycles;
        writes += seats[i].kind == WRITER ? seats[i].cycles : 0;
        ended = seats[i].ended_ns > ended ? seats[i].ended_ns : ended;
    }
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    pthread_barrier_destroy(&start);
    printf("{\"cycles\": %lld, \"writes\": %lld, \"elapsed_ns\": %lld, \"cpu_ns\": %lld}\n",
           (long long)done, (long long)writes, (long long)(ended - began), (long long)cpu);
}

/* --- a queue that is released ----------------------------------------------------------------- */

static struct seat *holder(void)
{
    return &seats[settings.threads];
}

static void *waiter_main(void *seat)
{
    struct seat *s = seat;

    s->cycles = 0;
    cycle(s, NOTHING);
    s->ended_ns = now_ns();
    return NULL;
}

static void fill_queue(int count)
{
    int most = settings.threads - waiting;

    if (waiting == 0 && settings.index == 0) {
        peer->lock(MUTEX, holder()->number, 0);
        enter(holder());
    }
    for (int left = count > 0 && count < most ? count : most; left > 0; left--)
        start_thread(&seats[waiting++], waiter_main);
    printf("{\"filled\": %d}\n", waiting);
}

static void drain_queue(void)
{
    int64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), began = now_ns(), ended = 0, done = 0;

    if (settings.index == 0) {
        leave(holder());
        peer->unlock(MUTEX, holder()->number, 0);
    }
    for (int i = 0; i < settings.threads; i++) {
        pthread_join(seats[i].thread, NULL);
        done += seats[i].cycles;
        ended = seats[i].ended_ns > ended ? seats[i].ended_ns : ended;
    }
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("{\"cycles\": %lld, \"elapsed_ns\": %lld, \"cpu_ns\": %lld, \"ended_ns\": %lld}\n",
           (long long)done, (long long)(ended - began), (long long)cpu, (long long)ended);
}

/* --- entering again, idle handles, idle clients ----------------------------------------------- */

static void enter_again(void)
{
    int64_t t0, t1, t2;

    peer->lock(MUTEX, 0, 0);
    t0 = now_ns();
    for (int i = 0; i < settings.count; i++)
        peer->lock(MUTEX, 0, 0);
    t1 = now_ns();
    for (int i = 0; i < settings.count; i++)
        peer->unlock(MUTEX, 0, 0);
    t2 = now_ns();
    peer->unlock(MUTEX, 0, 0);
    printf("{\"lock_ns\": %.2f, \"unlock_ns\": %.2f}\n", (double)(t1 - t0) / settings.count,
           (double)(t2 - t1) / settings.count);
}

static double heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();

    return (double)(m.uordblks + m.hblkhd);
}

static void make_handles(void)
{
    double before = heap_bytes(), made, held, used;

    peer->handles(settings.count, HANDLES_MAKE);
    made = heap_bytes();
    peer->handles(settings.count, HANDLES_LOCK);
    held = heap_bytes();
    peer->handles(settings.count, HANDLES_UNLOCK);
    used = heap_bytes();
    printf("{\"handle_bytes\": %.1f, \"held_bytes\": %.1f, \"used_handle_bytes\": %.1f}\n",
           (made - before) / settings.count, (held - before) / settings.count,
           (used - before) / settings.count);
}

static void make_clients(void)
{
    peer->make_clients(settings.count);
    printf("{\"clients\": %d}\n", settings.count);
}

/* --- an outage -------------------------------------------------------------------------------- */

static pthread_mutex_t notes_mu = PTHREAD_MUTEX_INITIALIZER; /* protects notes and note_count */
static struct {
    const char *told;
    int64_t at_ns;
} notes[NOTES_MAX];
static int note_count;

void peer_note(const char *told)
{
    pthread_mutex_lock(&notes_mu);
    if (note_count < NOTES_MAX) {
        notes[note_count].told = told;
        notes[note_count++].at_ns = now_ns();
    }
    pthread_mutex_unlock(&notes_mu);
}

static void hold(void)
{
    peer->hold();
    puts("{\"held\": 1}");
}

static void tell_hold(void)
{
    printf("{\"held\": %d, \"told\": [", peer->still_holds());
    pthread_mutex_lock(&notes_mu);
    for (int i = 0; i < note_count; i++)
        printf("%s[\"%s\", %lld]", i > 0 ? ", " : "", notes[i].told, (long long)notes[i].at_ns);
    pthread_mutex_unlock(&notes_mu);
    puts("]}");
}

/* --- orders ----------------------------------------------------------------------------------- */

static bool has_mode(const char *mode)
{
    return strcmp(settings.mode, mode) == 0;
}

static void fill(int count)
{
    if (has_mode("drain"))
        fill_queue(count);
    else if (has_mode("handles") && peer->handles != NULL)
        make_handles();
    else if (has_mode("clients") && peer->make_clients != NULL)
        make_clients();
    else if (has_mode("outage") && peer->hold != NULL)
        hold();
    else
        peer_fail("mode %s has nothing to fill", settings.mode);
}

static void warm(int64_t cycles)
{
    bool few = has_mode("drain") && settings.threads > WARM_THREADS;

    run_cycles(few ? WARM_THREADS : settings.threads, cycles, 3600);
}

static void go(double seconds)
{
    if (has_mode("drain"))
        drain_queue();
    else if (has_mode("entry"))
        enter_again();
    else if (has_mode("outage"))
        tell_hold();
    else
        run_cycles(settings.threads, INT64_MAX, seconds);
}

static void obey(char *line)
{
    double value = 0;
    char verb[16] = "";

    if (sscanf(line, "%15s %lf", verb, &value) < 1)
        return;
    if (strcmp(verb, "warm") == 0)
        warm((int64_t)value);
    else if (strcmp(verb, "fill") == 0)
        fill((int)value);
    else if (strcmp(verb, "go") == 0)
        go(value);
    else
        peer_fail("no order %s", verb);
    fflush(stdout);
}

/* --- the program ------------------------------------------------------------------------------ */

#define WORD(name, is_text)                                                                        \
    {                                                                                              \
#name, offsetof(struct settings, name), is_text                                            \
    }

static void set(const char *word)
{
    static const struct {
        const char *name;
        size_t at;
        bool is_text;
    } words[] = {WORD(servers, true),  WORD(path, true),     WORD(mode, true),
                 WORD(variant, true),  WORD(board, true),    WORD(sample, true),
                 WORD(threads, false), WORD(locks, false),   WORD(index, false),
                 WORD(count, false),   WORD(writers, false), WORD(pause_us, false),
                 WORD(clients, false), WORD(own, false),     WORD(session_ms, false)};
    size_t length = strcspn(word, "=");

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char *at = (char *)&settings + words[i].at;
        if (strlen(words[i].name) != length || strncmp(words[i].name, word, length) != 0)
            continue;
        if (words[i].is_text)
            *(const char **)(void *)at = word + length + 1;
        else
            *(int *)(void *)at = atoi(word + length + 1);
        return;
    }
    peer_fail("no setting %s", word);
}

static void map_board(void)
{
    int fd = open(settings.board, O_RDWR | O_CLOEXEC);
    void *at =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        peer_fail("no board %s", settings.board);
    close(fd);
    board = at;
}

static enum kind kind_of(int thread)
{
    if (has_mode("rw"))
        return thread < settings.writers ? WRITER : READER;
    return has_mode("multi") ? MULTI : MUTEX;
}

static void make_seats(void)
{
    seats = calloc((size_t)settings.threads + 1, sizeof *seats);
    if (seats == NULL)
        peer_fail("no memory");
    for (int i = 0; i <= settings.threads; i++)
        seats[i] = (struct seat){.number = i, .lock = i % settings.locks, .kind = kind_of(i)};
    holder()->lock = 0;
}

int peer_main(int argc, char **argv, const struct peer *given)
{
    char line[256];

    peer = given;
    settings = (struct settings){.variant = "", .sample = "none", .threads = 1, .locks = 1};
    for (int i = 1; i < argc; i++)
        set(argv[i]);
    if (settings.servers == NULL || settings.path == NULL || settings.mode == NULL ||
        settings.board == NULL || settings.threads < 1 || settings.locks < 1 ||
        settings.locks > LOCKS_MAX)
        peer_fail("servers, path, mode and board are needed; threads and locks are from 1");
    map_board();
    make_seats();
    peer->open(&settings);
    puts("{\"ready\": 1}");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL)
        obey(line);
    peer->close();
    free(seats);
    return 0;
}
