/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, recorded without the library: one record for each hold, and the rules that all
 * records together must keep, judged in the end. Times are of one clock for all processes, in nanoseconds:
 * CLOCK_BOOTTIME, or that of a witness (fault/witness.h).
 *
 * A hold counts only while it was proved: from the return of the call that got it to the end of the
 * last window that was read, or to the beginning of unlock if that came first, or if unlock said
 * that the hold had stood to the end. So a process that stood still past its session is no holder
 * when it goes on, unless unlock says otherwise. A process that was killed holds to the end of the
 * window that it read last. With that, the rules need no tolerance. */
#ifndef ZKTEST_HISTORY_H
#define ZKTEST_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum access { ALONE, READING, PERMIT };

/* HOLD: all times. BUSY: a try to which the library answered "busy" between asked and begun, and which
 * waited for nothing. THERE: a node of this contender may have stood there from asked to until. TOLD:
 * a callback said that the hold with this token is lost. */
enum record_kind { HOLD, BUSY, THERE, TOLD };

#define NEVER_UNLOCKED INT16_MIN /* instead of unlock's code: the process was killed */
#define SEATS_OF_PROCESS 5

/* Of a size that divides a page's: one write of one record is never cut in two. */
struct record {
    int64_t asked_ns; /* the call that got it began */
    int64_t begun_ns; /* the call had returned */
    int64_t until_ns; /* it was proved until then */
    int64_t left_ns;  /* unlock began; 0: it never did */
    uint64_t token;
    uint32_t serial; /* of its seat: a hold may be recorded twice */
    int32_t seat;
    int16_t code; /* what unlock said */
    uint8_t kind, place, access;
    uint8_t era;    /* tokens grow within one: it ends when the ensemble loses its data */
    uint8_t below;  /* a read lock that its owner took under its write lock */
    uint8_t cached; /* a read lock; readers share its node, which may be older than the call */
    uint8_t unused[8];
};
_Static_assert(sizeof(struct record) == 64, "records do not straddle pages");

struct verdict {
    size_t holds, proved; /* proved: for any time at all */
    size_t tries_busy;
    size_t told, told_on_the_way; /* losses; of members of a multi-lock that was not granted yet */
    size_t overlaps, disorders, wrong_busy, wrong_told;
    char first[500]; /* the first violation */
};

/* The most by which a server may lag behind. Such a server may make a try busy. */
#define LAG_NS (INT64_C(10) * 1000 * 1000 * 1000)

/* Where the holds are: the record has its index. */
struct history_place {
    const char *name;
    int room; /* how many permits; else 1 */
    bool
        shares; /* for fault/witness.h: a hold may have the token of the one before, whoever had it */
};

size_t history_violations(const struct verdict *v);
/* Sorts the records. */
struct verdict history_judge(struct record *records, size_t n, const struct history_place *places);

#endif
