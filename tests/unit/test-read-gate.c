/* SPDX-License-Identifier: Apache-2.0
 * The gate of a cached reader under threads that meet in it, a fresh gate each time: a litmus test.
 * It has the real functions of src/core/read_gate.h; with the thread sanitizer it shows, too, that
 * a value was written before a thread that is in reads it.
 *
 * Two readers and a closing thread meet 300,000 times, or as often as 10 s last. With the end looked
 * at before the count 1,010 of 300,000 meetings failed; with a closing that only releases (a plain
 * store on x86) 8. */

#include "tests.h"
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "core/read_gate.h"

#define ROUNDS 300000
#define SECONDS 10 /* fewer rounds where the processors have much else to do */
#define READERS 2

/* One meeting: readers come in or not, and one closes. */
struct meeting {
    struct zkl_read_gate gate;
    int holder;         /* plain memory: written before the gate opens, and when no thread is in */
    atomic_int gone;    /* the node is deleted: no thread may be in */
    atomic_int was_in;  /* a thread was in when it closed */
    atomic_int is_told; /* the last one out said so */
};

static struct meeting meetings[2];
static atomic_llong for_ever = INT64_MAX;
static atomic_int end = ROUNDS; /* set before that round begins, for all */
static atomic_int arrived, wrong_in, entered, refused, lost_node;

/* All are here: so that they go on at the same time. */
static void meet(int round)
{
    int all = (round + 1) * (READERS + 1);
    atomic_fetch_add(&arrived, 1);
    for (int spins = 0; atomic_load(&arrived) < all; spins++) {
        if (spins % 1024 == 1023)
            sched_yield();
    }
}

static void come_in(struct meeting *m)
{
    if (zkl_read_gate_enter(&m->gate, &for_ever) == INT64_MAX - 1) {
        atomic_fetch_add_explicit(&entered, 1, memory_order_relaxed);
        if (atomic_load_explicit(&m->gone, memory_order_relaxed) || m->holder != 1)
            atomic_fetch_add(&wrong_in, 1);
    } else {
        atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
    }
    if (zkl_read_gate_leave(&m->gate))
        atomic_store(&m->is_told, 1);
}

static void close_it(struct meeting *m)
{
    if (zkl_read_gate_close(&m->gate)) {
        atomic_store_explicit(&m->gone, 1, memory_order_relaxed);
        m->holder = 0; /* no thread reads it any more, or the sanitizer says so */
    } else {
        atomic_store(&m->was_in, 1);
    }
}

static void set_up(struct meeting *m)
{
    memset(m, 0, sizeof *m);
    m->holder = 1;
    zkl_read_gate_open(&m->gate, INT64_MAX - 1);
}

static void *reader(void *unused)
{
    for (int round = 0; round < atomic_load(&end); round++) {
        meet(round);
        for (volatile int wait = round * 7 % 23; wait > 0; wait--)
            ;
        come_in(&meetings[round % 2]);
    }
    return unused;
}

/* Goal: no thread is in when the closing one found none; and if it found one, the last one out says
 * so. */
TEST(who_closes_and_who_comes_in_see_each_other)
{
    pthread_t threads[READERS];
    set_up(&meetings[0]);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, NULL), 0);
    time_t until = time(NULL) + SECONDS;
    for (int round = 0; round < atomic_load(&end); round++) {
        struct meeting *m = &meetings[round % 2], *before = &meetings[(round + 1) % 2];
        if (round % 64 == 63 && time(NULL) > until)
            atomic_store(&end, round + 1);
        meet(round);
        for (volatile int wait = round * 5 % 29; wait > 0; wait--)
            ;
        close_it(m);
        if (round > 0 && atomic_load(&before->was_in) && !atomic_load(&before->is_told))
            atomic_fetch_add(&lost_node, 1);
        if (round + 1 < atomic_load(&end))
            set_up(before);
    }
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    print_message("%d rounds: %d came in, %d did not\n", atomic_load(&end), atomic_load(&entered),
                  atomic_load(&refused));
    assert_int_equal(atomic_load(&wrong_in), 0);
    assert_int_equal(atomic_load(&lost_node), 0);
    assert_int_equal(atomic_load(&entered) + atomic_load(&refused), READERS * atomic_load(&end));
    assert_false(zkl_read_gate_any(&meetings[0].gate) || zkl_read_gate_any(&meetings[1].gate));
}
