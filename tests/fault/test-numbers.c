/* SPDX-License-Identifier: Apache-2.0 */
/* libzookeeper numbers the requests of a process with 32 bits, of which some are special: nobody
 * notices when they come. The tests set the number, in libzookeeper's memory: it is the word there
 * that rises by one with each call that takes one. */
#include "bench.h"

#include <limits.h>
#include <link.h>

#include "driver/numbers.h"

#define SESSION_MS 10000 /* no session ends by itself */
#define FIRST_SPECIAL (-8)
#define ROUNDS 100

static const char *const path = "/numbers/m";
static int *number; /* the next one; NULL: not found */

/* --- where it is ------------------------------------------------------------------------------ */

struct words {
    int *first;
    size_t count;
};

static bool has_address(const struct dl_phdr_info *object, uintptr_t address)
{
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && address - object->dlpi_addr - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

/* Of the object that has zoo_adelete: what it may write. */
static int note_words(struct dl_phdr_info *object, size_t size, void *words)
{
    struct words *w = words;

    (void)size;
    if (!has_address(object, (uintptr_t)zoo_adelete))
        return 0;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_W) != 0) {
            uintptr_t from = (object->dlpi_addr + part->p_vaddr + 3) & ~(uintptr_t)3;
            *w = (struct words){(int *)from, (part->p_memsz - 3) / sizeof(int)};
        }
    }
    return 1;
}

/* Sanitizers have words between the variables that nobody else may read. */
__attribute__((no_sanitize("address", "thread"))) static int word(const int *at)
{
    return *(const volatile int *)at;
}

/* Words whose difference to before is not by are none of it: before[i] becomes 0. How many are. */
static size_t sift(const struct words *words, int *before, int by, int **found)
{
    size_t count = 0;

    for (int i = 0; i < by; i++)
        zoo_adelete(NULL, "/", -1, NULL, NULL);
    for (size_t i = 0; i < words->count; i++) {
        int now = word(words->first + i);
        bool is_it = before[i] != 0 && (unsigned)now - (unsigned)before[i] == (unsigned)by;
        before[i] = is_it ? now : 0;
        if (is_it)
            *found = words->first + i;
        count += is_it;
    }
    return count;
}

static void find_number(void)
{
    struct words words = {NULL, 0};
    int *found = NULL;

    dl_iterate_phdr(note_words, &words);
    int *before = calloc(words.count + 1, sizeof *before);
    for (size_t i = 0; before && i < words.count; i++)
        before[i] = word(words.first + i);
    if (before && sift(&words, before, 1000, &found) > 0 && sift(&words, before, 77, &found) == 1)
        number = found;
    free(before);
}

/* --- helpers ---------------------------------------------------------------------------------- */

static void need_number(void)
{
    if (number)
        return;
    print_message("skipped: libzookeeper's number was not found in its memory\n");
    skip();
}

static int get(void)
{
    return __atomic_load_n(number, __ATOMIC_SEQ_CST);
}

/* The next number, and how many the library believes are left. */
static void set(int next, int64_t left)
{
    zkl_numbers_left = left;
    __atomic_store_n(number, next, __ATOMIC_SEQ_CST);
}

static int64_t distance(int from)
{
    return (unsigned)FIRST_SPECIAL - (unsigned)from;
}

static int rounds(struct zkl_mutex *mutex, void *unused)
{
    int rc = 0;

    (void)unused;
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        rc = zkl_mutex_lock_for(mutex, WAIT_MS);
        if (rc == 0)
            rc = zkl_mutex_unlock(mutex);
    }
    return rc;
}

/* Two clients contend, as one of them holds another lock: no link ends, and nothing is lost. */
static void contend(struct bench *b, int next, int64_t left)
{
    struct zkl_mutex *held = world_mutex(b->client, "/numbers/held");
    check_ok(zkl_mutex_lock_for(held, WAIT_MS));
    uint64_t token = zkl_mutex_token(held);
    uint64_t links = fault_metrics(b->client).connections;

    set(next, left);
    act_begin(b->actor, rounds, b->mutex, NULL);
    check_ok(rounds(b->rival, NULL));
    check_ok(act_end(b->actor, WAIT_MS));
    check_num(zkl_mutex_token(held), ==, token);
    check_true(zkl_mutex_still_held(held, 0));
    check_num(fault_metrics(b->client).connections, ==, links);
    check_num(fault_metrics(b->direct).disconnections, ==, 0);
    check_ok(zkl_mutex_unlock(held));
}

/* --- tests ------------------------------------------------------------------------------------ */

#define NUMBERS_TEST(name) BENCH_TEST(name, path, SESSION_MS, SESSION_MS)

/* What the library counts is what libzookeeper takes. Modes: F92. */
NUMBERS_TEST(a_request_takes_one_number)
{
    need_number();
    set(1000000, distance(1000000));
    check_ok(rounds(b->mutex, NULL));
    check_ok(rounds(b->rival, NULL));
    check_num(get(), >=, 1000000 + 2 * ROUNDS);
    check_wait(distance(get()) == zkl_numbers_left, WAIT_MS);
    check_num(fault_metrics(b->client).request_numbers_left, <=, distance(1000000 + 2 * ROUNDS));
    check_num(fault_metrics(b->client).request_numbers_left, >, distance(1000000) - 100000);
}

/* Beyond 2^31 they are negative. Modes: F92. */
NUMBERS_TEST(negative_numbers_are_as_good_as_others)
{
    need_number();
    contend(b, INT_MAX - ROUNDS, distance(INT_MAX - ROUNDS));
    check_num(get(), <, INT_MIN + 100000);
}

/* No request has one of the special ones, where the library knows how many are left, and where it is
 * wrong as others have taken some, or fewer were taken. Modes: F92. */
NUMBERS_TEST(the_special_numbers_are_passed_by)
{
    static const struct {
        int before; /* from the next number to the first special one */
        int64_t left;
    } cases[] = {
        {ROUNDS, (1 << 21) - 1}, {ROUNDS, -(1 << 21) + 1}, {ROUNDS + 10, (1 << 21) + 10},
        {30, 50 << 20},          {200000, -(50 << 20)},    {3, (1 << 27) - 1},
    };

    need_number();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        contend(b, FIRST_SPECIAL - cases[i].before, cases[i].left);
        check_num(get(), >, 0); /* it has begun anew */
    }
}

/* Behind them the library counts anew, once. Modes: F92. */
NUMBERS_TEST(the_row_begins_anew)
{
    need_number();
    contend(b, 2000000000, -(1 << 27) + (1 << 18));
    check_num(zkl_numbers_left, >, 1 << 27);
    check_num(fault_metrics(b->client).request_numbers_left, >, 1 << 27);
}

FAULT_MAIN(find_number())
