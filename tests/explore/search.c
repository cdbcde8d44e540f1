/* SPDX-License-Identifier: Apache-2.0
 * The search stores no state, only a digest of it of 128 bits (digest.c). The path to where the search is lies
 * as copies of the arena, one for each choice taken. A path is a list of choices, by their places in what
 * choices_of says. To print a trace, the search runs the path again from its beginning: Godefroid, Model
 * Checking for Programming Languages using VeriSoft, POPL 1997.
 *
 * From each state in which nothing goes on by itself, and from each that leads to no new one, the search runs
 * the world to its end without faults, in one order: all lock requests must end. Such a run stops early at a state from
 * which another one got to the end. */
#include "search.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#include "arena.h"

#define DEEP 500 /* choices, where no run is expected to be */
#define CALM_STEPS_MAX 4000
#define CALM_MS 60000
#define CALM_PATH 512    /* digests of one run that are remembered */
#define STUCK_SECONDS 60 /* of the processor, for some steps */

static sigjmp_buf went_wrong;
static char sentence[SENTENCE];

void wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    siglongjmp(went_wrong, 1);
}

/* An assert of the core, a crash, an endless loop. */
static void on_signal(int number)
{
    snprintf(sentence, sizeof sentence, "%s",
             number == SIGABRT     ? "an assertion of the core failed"
             : number == SIGVTALRM ? "it does not end"
                                   : "it crashed");
    siglongjmp(went_wrong, 1);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGFPE, SIGVTALRM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

/* If the next steps take longer than STUCK_SECONDS of the processor, they count as an endless
 * loop. */
static void begin_steps(void)
{
    struct itimerval most = {.it_value.tv_sec = STUCK_SECONDS};
    setitimer(ITIMER_VIRTUAL, &most, NULL);
}

/* Of the processor: machines are busy. */
static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* --- the digests of states that were met ---------------------------------- */

struct met {
    uint64_t a, b; /* a 0: nothing is here */
    uint32_t next; /* digest of its successors, for the audit */
    uint16_t depth;
};

struct table {
    struct met *list;
    size_t count, room; /* a power of two */
};

static void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("explore: memory");
        exit(2);
    }
    return memory;
}

static void table_init(struct table *t)
{
    *t = (struct table){.room = (size_t)1 << 16};
    t->list = map(t->room * sizeof *t->list);
}

static void table_fini(struct table *t)
{
    munmap(t->list, t->room * sizeof *t->list);
}

static struct met *find(const struct table *t, struct digest key)
{
    size_t i = key.a & (t->room - 1);
    while (t->list[i].a != 0 && (t->list[i].a != key.a || t->list[i].b != key.b))
        i = (i + 1) & (t->room - 1);
    return &t->list[i];
}

static void grow(struct table *t)
{
    struct table larger = {.count = t->count, .room = 2 * t->room};
    larger.list = map(larger.room * sizeof *larger.list);
    each_of(t->list, t->room, old) {
        if (old->a != 0)
            *find(&larger, (struct digest){old->a, old->b}) = *old;
    }
    table_fini(t);
    *t = larger;
}

/* Its place; *is_new: it was not there. */
static struct met *meet(struct table *t, struct digest key, bool *is_new)
{
    if (t->count * 2 > t->room)
        grow(t);
    struct met *at = find(t, key);
    *is_new = at->a == 0;
    if (*is_new) {
        at->a = key.a;
        at->b = key.b;
        t->count++;
    }
    return at;
}

/* --- depth first ---------------------------------------------------------- */

struct frame {
    void *arena;
    struct choice choices[CHOICES];
    size_t count, next;
    struct digest key;
    uint64_t successors;
    bool found_new, quiet, audited;
};

static struct {
    const struct bounds *bounds;
    struct limits limits;
    struct result *result;
    struct frame *frames;
    char *copies; /* of the arena, one for each frame */
    int depth;
    struct table met, calm;
    double began;
} s;

static void save(struct frame *f, int depth)
{
    f->arena = s.copies + (size_t)depth * ARENA_MAX;
    arena_save(f->arena);
}

/* Without faults from here on. */
static void run_calm(const struct frame *f)
{
    static struct digest path[CALM_PATH];
    int length = 0;
    arena_load(f->arena);
    world->calm = true;
    world->faults = world->waits = 0;
    world->delays = world->bounds->delays >= 0 ? 0 : -1;
    world->last = 0;
    int64_t began_ms = world->fake.now_ms;
    s.result->in_calm = true;
    for (int i = 0; !check_done(world); i++) {
        struct digest key = digest_of(world);
        if (find(&s.calm, key)->a != 0)
            break;
        if (length < CALM_PATH)
            path[length++] = key;
        if (!calm_step(world) || i > CALM_STEPS_MAX || world->fake.now_ms - began_ms > CALM_MS)
            wrong("somebody does not get through");
    }
    if (check_done(world))
        check_nothing_left(world);
    s.result->in_calm = false;
    for (int i = 0; i < length; i++) {
        bool is_new;
        (void)meet(&s.calm, path[i], &is_new);
    }
}

/* What the world is now, to be tried in all ways. */
static void push(struct digest key, bool audited)
{
    struct frame *f = &s.frames[s.depth];
    *f = (struct frame){.key = key, .audited = audited};
    f->count = choices_of(world, f->choices);
    f->quiet = world_is_quiet(world);
    save(f, s.depth++);
    if (s.depth > s.result->depth)
        s.result->depth = s.depth;
    if (s.depth >= PATH_MAX_LENGTH)
        wrong("too deep");
    if (s.depth % DEEP == 0) /* it may go on for ever */
        run_calm(f);
}

static void pop(struct frame *f)
{
    struct met *at = find(&s.met, f->key);
    uint32_t next = (uint32_t)(f->successors ^ f->successors >> 32) | 1;
    if (f->audited && at->next != 0 && at->next != next) {
        s.result->key = f->key;
        wrong("two states with one digest go on in different ways");
    }
    if (!f->audited)
        at->next = next;
    if (!f->audited && (f->quiet || !f->found_new))
        run_calm(f);
    s.depth--;
}

static bool is_worth_it(const struct met *at, bool is_new)
{
    if (is_new)
        return true;
    return s.limits.depth > 0 && s.depth < at->depth;
}

static void step(struct frame *f)
{
    struct choice choice = f->choices[f->next];
    s.result->path.choices[s.depth - 1] = (unsigned char)f->next;
    s.result->path.length = s.depth;
    f->next++;
    arena_load(f->arena);
    choice_take(world, choice);
    if (s.result->steps++ % 1024 == 0)
        begin_steps();
    struct digest key = digest_of(world);
    f->successors = mix(f->successors, key.a);
    if (f->audited)
        return;
    if (s.limits.depth > 0 && s.depth >= s.limits.depth)
        return;
    bool is_new;
    struct met *at = meet(&s.met, key, &is_new);
    if (s.limits.wanted.a != 0 && key.a == s.limits.wanted.a && key.b == s.limits.wanted.b)
        wrong("met");
    f->found_new = f->found_new || is_new;
    if (is_worth_it(at, is_new)) {
        at->depth = (uint16_t)s.depth;
        push(key, false);
    } else if (s.limits.audit && at->next != 0) {
        push(key, true);
    }
}

static bool is_over_limits(void)
{
    if (s.limits.states != 0 && s.met.count > s.limits.states)
        return true;
    return s.limits.seconds > 0 && s.result->steps % 1024 == 0 &&
           seconds_now() - s.began > s.limits.seconds;
}

static bool go_through(void)
{
    world_begin(s.bounds);
    struct digest key = digest_of(world);
    bool is_new;
    (void)meet(&s.met, key, &is_new);
    push(key, false);
    while (s.depth > 0) {
        struct frame *f = &s.frames[s.depth - 1];
        s.result->path.length = s.depth - 1;
        if (is_over_limits())
            return false;
        if (f->next < f->count)
            step(f);
        else
            pop(f);
    }
    return true;
}

static void begin(const struct bounds *bounds, const struct limits *limits, struct result *result)
{
    struct path path = result->path;
    *result = (struct result){.path = path};
    if (!s.frames) {
        s.frames = map(PATH_MAX_LENGTH * sizeof *s.frames);
        s.copies = map(PATH_MAX_LENGTH * ARENA_MAX);
    }
    s.bounds = bounds;
    s.limits = *limits;
    s.result = result;
    s.depth = 0;
    s.began = seconds_now();
    table_init(&s.met);
    table_init(&s.calm);
    catch_signals();
    begin_steps();
}

void search(const struct bounds *bounds, const struct limits *limits, struct result *result)
{
    begin(bounds, limits, result);
    sentence[0] = '\0';
    if (sigsetjmp(went_wrong, 1) == 0) {
        result->complete = go_through();
    } else {
        result->violated = true;
        memcpy(result->sentence, sentence, sizeof sentence);
    }
    arena_on = false;
    result->states = s.met.count;
    result->calm_states = s.calm.count;
    result->seconds = seconds_now() - s.began;
    table_fini(&s.met);
    table_fini(&s.calm);
}

/* --- the audit ------------------------------------------------------------ */

static void go(const struct bounds *bounds, const struct path *path, int more)
{
    struct choice choices[CHOICES];
    world_begin(bounds);
    for (int i = 0; i < path->length + (more >= 0); i++) {
        int which = i < path->length ? path->choices[i] : more;
        must((size_t)which < choices_of(world, choices));
        choice_take(world, choices[which]);
    }
}

static void tell_difference(const struct bounds *bounds, const struct path *a, const struct path *b)
{
    static struct digest_word words[2][8192];
    struct choice choices[CHOICES];
    char text[512];
    go(bounds, a, -1);
    size_t count = choices_of(world, choices);
    go(bounds, b, -1);
    size_t other = choices_of(world, choices);
    printf("%zu and %zu choices\n", count, other);
    for (size_t i = 0; i < count && i < other; i++) {
        go(bounds, a, -1);
        (void)choices_of(world, choices);
        choice_tell(world, choices[i], text, sizeof text);
        go(bounds, a, (int)i);
        size_t n = digest_words(world, words[0], 8192);
        go(bounds, b, (int)i);
        size_t m = digest_words(world, words[1], 8192), j = 0;
        while (j < n && j < m && words[0][j].value == words[1][j].value)
            j++;
        if (j == n && j == m)
            continue;
        printf("after %s: digest.c:%d: %" PRId64 " here, %" PRId64 " there\n", text,
               words[0][j].line, words[0][j].value, words[1][j].value);
    }
}

void explain_audit(const struct bounds *bounds, struct result *result)
{
    static struct result first;
    struct limits limits = {.wanted = result->key};
    search(bounds, &limits, &first);
    if (sigsetjmp(went_wrong, 1) == 0)
        tell_difference(bounds, &first.path, &result->path);
    else
        printf("%s\n", sentence);
    arena_on = false;
    printf("the first: ");
    for (int i = 0; i < first.path.length; i++)
        printf("%d,", first.path.choices[i]);
    printf("\n");
}

/* --- paths ---------------------------------------------------------------- */

bool replay(const struct bounds *bounds, const struct path *path, struct result *result)
{
    char text[512];
    struct limits none = {0};
    volatile bool violated = false;
    begin(bounds, &none, result);
    sentence[0] = '\0';
    if (sigsetjmp(went_wrong, 1) == 0) {
        world_begin(bounds);
        for (int i = 0; i < path->length; i++) {
            struct choice choices[CHOICES];
            size_t count = choices_of(world, choices);
            if (path->choices[i] >= count)
                wrong("there are %zu choices at place %d of the path", count, i + 1);
            choice_tell(world, choices[path->choices[i]], text, sizeof text);
            say("[%5lld] %d. %s", (long long)world->fake.now_ms, i + 1, text);
            choice_take(world, choices[path->choices[i]]);
        }
        push(digest_of(world), false);
        say("[%5lld] and on without faults", (long long)world->fake.now_ms);
        run_calm(&s.frames[0]);
    } else {
        violated = true;
    }
    arena_on = false;
    memcpy(result->sentence, sentence, sizeof sentence);
    table_fini(&s.met);
    table_fini(&s.calm);
    return violated;
}

void shorten(const struct bounds *bounds, struct result *result, double seconds)
{
    double until = seconds_now() + seconds;
    static struct result shorter;
    while (result->path.length > 0 && seconds_now() < until) {
        struct limits limits = {.seconds = until - seconds_now(), .depth = result->path.length};
        search(bounds, &limits, &shorter);
        if (!shorter.violated || shorter.path.length >= result->path.length)
            return;
        *result = shorter;
    }
}
