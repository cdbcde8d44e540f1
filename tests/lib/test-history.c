/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of the history: each rule, kept and broken. Times are in seconds. */
#include "history.h"

#include "check.h"

#include <zklock/zklock.h>

#define S INT64_C(1000000000)

enum { RWLOCK, PERMITS, RARE };
static const struct history_place places[] = {[RWLOCK] = {"rwlock", 1, false},
                                              [PERMITS] = {"permits", 3, false},
                                              [RARE] = {"rare", 1, false}};

#define JUDGE(...)                                                                                 \
    judge((struct record[]){__VA_ARGS__},                                                          \
          sizeof(struct record[]){__VA_ARGS__} / sizeof(struct record))

static struct verdict judge(struct record *records, size_t n)
{
    return history_judge(records, n, places);
}

static struct record hold(int seat, enum access access, int64_t begun, int64_t until,
                          uint64_t token)
{
    static uint32_t serial;

    return (struct record){.kind = HOLD,
                           .place = access == PERMIT ? PERMITS : RWLOCK,
                           .access = (uint8_t)access,
                           .seat = seat,
                           .asked_ns = begun * S - 1,
                           .begun_ns = begun * S,
                           .until_ns = until * S,
                           .token = token,
                           .serial = ++serial};
}

static struct record told(int seat, uint64_t token)
{
    return (struct record){
        .kind = TOLD, .place = RWLOCK, .seat = seat, .token = token, .begun_ns = 9 * S};
}

static struct record at_rare(enum record_kind kind, int seat, int64_t from, int64_t until)
{
    struct record r = hold(seat, ALONE, from, until, 0);

    r.kind = (uint8_t)kind;
    r.place = RARE;
    return r;
}

/* Goal: one after the other is right, and the moment of the change is nobody's; any shared time is an
 * overlap, unless all read. */
TEST(alone_is_alone)
{
    struct verdict v = JUDGE(hold(1, ALONE, 1, 3, 10), hold(2, ALONE, 3, 5, 11));
    check_num(history_violations(&v), ==, 0);
    check_num(v.proved, ==, 2);
    v = JUDGE(hold(1, ALONE, 1, 4, 10), hold(2, ALONE, 3, 5, 11));
    check_num(v.overlaps, ==, 1);
    v = JUDGE(hold(1, ALONE, 1, 4, 10), hold(2, READING, 3, 5, 11));
    check_num(v.overlaps, ==, 1);
    v = JUDGE(hold(1, READING, 1, 4, 10), hold(2, ALONE, 3, 5, 11));
    check_num(v.overlaps, ==, 1);
    v = JUDGE(hold(1, READING, 1, 4, 10), hold(2, READING, 3, 5, 11));
    check_num(history_violations(&v), ==, 0);
    v = JUDGE(hold(1, ALONE, 1, 9, 10), hold(2, ALONE, 3, 3, 11), hold(3, ALONE, 5, 6, 12));
    check_num(v.overlaps, ==, 1);
}

/* Goal: a writer that becomes a reader is with itself, and with nobody else. */
TEST(a_downgrade_is_with_itself)
{
    struct record below = hold(1, READING, 2, 5, 10);

    below.below = 1;
    struct verdict v = JUDGE(hold(1, ALONE, 1, 3, 10), below, hold(2, READING, 4, 5, 11));
    check_num(history_violations(&v), ==, 0);
    v = JUDGE(hold(1, ALONE, 1, 3, 10), below, hold(2, ALONE, 4, 5, 11));
    check_num(v.overlaps, ==, 1);
    below.seat = 2;
    v = JUDGE(hold(1, ALONE, 1, 3, 10), below);
    check_num(v.overlaps, ==, 1);
}

/* Goal: as many holds overlap as there are permits, and not one more. Permits of one transaction
 * share a token. */
TEST(permits_are_counted)
{
    struct record four[] = {hold(1, PERMIT, 1, 5, 10), hold(1, PERMIT, 1, 5, 10),
                            hold(2, PERMIT, 1, 5, 11), hold(3, PERMIT, 5, 6, 12)};

    struct verdict v = judge(four, 4);
    check_num(history_violations(&v), ==, 0);
    four[3].begun_ns = 4 * S;
    v = judge(four, 4);
    check_num(v.overlaps, ==, 1);
}

/* Goal: tokens grow in the order of holders, and of questions behind grants; not where all data were
 * lost. */
TEST(tokens_grow)
{
    struct verdict v = JUDGE(hold(1, ALONE, 1, 2, 10), hold(7, ALONE, 3, 5, 10));
    check_num(v.disorders, >=, 1);
    v = JUDGE(hold(1, ALONE, 1, 2, 10), hold(2, ALONE, 3, 5, 10)); /* handed on in one process */
    check_num(history_violations(&v), ==, 0);
    v = JUDGE(hold(1, PERMIT, 1, 2, 10), hold(2, PERMIT, 3, 5, 9));
    check_num(v.disorders, ==, 1);
    struct record late = hold(2, ALONE, 3, 5, 9);
    late.era = 1;
    v = JUDGE(hold(1, ALONE, 1, 2, 10), late);
    check_num(history_violations(&v), ==, 0);
    struct record waited = hold(2, PERMIT, 3, 5, 9); /* asked before the other was granted */
    waited.asked_ns = 0;
    v = JUDGE(hold(1, PERMIT, 1, 2, 10), waited);
    check_num(history_violations(&v), ==, 0);
}

/* Goal: readers may share a node that is older than others' nodes; a writer's is not. */
TEST(shared_readers_are_behind_writers)
{
    struct record late = hold(7, READING, 4, 5, 10);

    late.cached = 1;
    struct verdict v = JUDGE(hold(1, READING, 1, 2, 11), late);
    check_num(history_violations(&v), ==, 0);
    v = JUDGE(hold(1, ALONE, 1, 2, 11), late);
    check_num(v.disorders, >=, 1);
    late.cached = 0;
    v = JUDGE(hold(1, READING, 1, 2, 11), late);
    check_num(v.disorders, ==, 1);
}

/* Goal: "busy" is right while somebody may be there, and for a while after. */
TEST(busy_has_a_reason)
{
    struct verdict v = JUDGE(at_rare(THERE, 1, 1, 2), at_rare(BUSY, 2, 11, 0));
    check_num(history_violations(&v), ==, 0);
    v = JUDGE(at_rare(THERE, 1, 1, 2), at_rare(BUSY, 2, 13, 0));
    check_num(v.wrong_busy, ==, 1);
    v = JUDGE(at_rare(BUSY, 2, 11, 0), at_rare(THERE, 1, 12, 20));
    check_num(v.wrong_busy, ==, 1);
    struct record busy = at_rare(BUSY, 2, 11, 0), own = at_rare(THERE, 2, 11, 41);
    own.serial = busy.serial;
    v = JUDGE(busy, own);
    check_num(v.wrong_busy, ==, 1);
}

/* Goal: a holder that a callback reported lost gets the same from unlock, or was killed before. */
TEST(losses_agree)
{
    struct record lost = hold(1, ALONE, 1, 2, 10);

    struct verdict v = JUDGE(lost, told(0, 10));
    check_num(v.wrong_told, ==, 1);
    lost.code = ZKL_ELOST;
    v = JUDGE(lost, told(0, 10));
    check_num(history_violations(&v), ==, 0);
    lost.code = NEVER_UNLOCKED;
    v = JUDGE(lost, told(0, 10), told(0, 11));
    check_num(history_violations(&v), ==, 0);
    check_num(v.told, ==, 2);
    check_num(v.told_on_the_way, ==, 1);
}

/* Goal: what a killed process left, and had written down already, counts once. */
TEST(told_of_twice_counts_once)
{
    struct record one = hold(1, ALONE, 1, 2, 10), again = one;

    again.until_ns = 3 * S;
    struct verdict v = JUDGE(one, again);
    check_num(history_violations(&v), ==, 0);
    check_num(v.holds, ==, 1);
}
