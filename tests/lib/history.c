/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#define INSIDE_MAX 256
#define MS INT64_C(1000000)

static const struct history_place *places;

size_t history_violations(const struct verdict *v)
{
    return v->overlaps + v->disorders + v->wrong_busy + v->wrong_told;
}

static void blame(struct verdict *v, const char *what, const struct record *one,
                  const struct record *other)
{
    static const char *const accesses[] = {"alone", "reading", "permit"};
    const struct record *both[] = {one, other};
    size_t n;

    if (v->first[0] != '\0')
        return;
    n = (size_t)snprintf(v->first, sizeof v->first, "%s at %s:", what, places[one->place].name);
    for (int i = 0; i < 2 && both[i] != NULL && n < sizeof v->first; i++) {
        const struct record *r = both[i];
        n += (size_t)snprintf(v->first + n, sizeof v->first - n,
                              " seat %d (%s, no. %u, token %llx, asked %lld, begun %lld, proved "
                              "until %lld ms, unlock said %d)",
                              r->seat, accesses[r->access], r->serial, (unsigned long long)r->token,
                              (long long)(r->asked_ns / MS), (long long)(r->begun_ns / MS),
                              (long long)(r->until_ns / MS), r->code);
    }
}

/* --- order ------------------------------------------------------------------------------------ */

static int compare(int64_t one, int64_t other)
{
    return (one > other) - (one < other);
}

/* By place, and there by the time of the grant. */
static int by_grant(const void *one, const void *other)
{
    const struct record *a = one, *b = other;
    int order = compare(a->place, b->place);

    order = order != 0 ? order : compare(a->begun_ns, b->begun_ns);
    order = order != 0 ? order : compare(a->seat, b->seat);
    order = order != 0 ? order : compare(a->serial, b->serial);
    return order != 0 ? order : compare(b->until_ns, a->until_ns);
}

/* If the conductor kills a process after it wrote a record, chaos/shared.py may write that record
 * again. */
static size_t without_doubles(struct record *r, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || r[i].kind != HOLD || r[kept - 1].seat != r[i].seat ||
            r[kept - 1].serial != r[i].serial || r[kept - 1].kind != r[i].kind)
            r[kept++] = r[i];
    }
    return kept;
}

static bool is_proved(const struct record *r)
{
    return r->kind == HOLD && r->until_ns > r->begun_ns;
}

/* --- which holders are inside together -------------------------------------------------------- */

static bool may_be_together(const struct record *one, const struct record *other, size_t inside)
{
    if (one->access == PERMIT)
        return inside < (size_t)places[one->place].room;
    if (one->access == READING && other->access == READING)
        return true;
    return (one->below || other->below) && one->seat == other->seat;
}

/* Each was proved while inside. Modes: F8, F65. */
static void judge_overlaps(struct verdict *v, const struct record *r, size_t n)
{
    const struct record *inside[INSIDE_MAX];
    size_t crowd = 0;

    for (size_t i = 0; i < n; i++) {
        size_t stay = 0;
        if (!is_proved(&r[i]))
            continue;
        for (size_t k = 0; k < crowd; k++) {
            if (inside[k]->until_ns > r[i].begun_ns)
                inside[stay++] = inside[k];
        }
        crowd = stay;
        for (size_t k = 0; k < crowd; k++) {
            if (may_be_together(&r[i], inside[k], crowd))
                continue;
            v->overlaps++;
            blame(v, "inside together", inside[k], &r[i]);
            break;
        }
        if (crowd < INSIDE_MAX)
            inside[crowd++] = &r[i];
    }
}

/* --- tokens ----------------------------------------------------------------------------------- */

/* Threads of one process may hand its node on, or acquire with it again; the token stays the
 * same. */
static bool comes_after(const struct record *later, const struct record *before)
{
    bool same = later->seat / SEATS_OF_PROCESS == before->seat / SEATS_OF_PROCESS;
    uint64_t token = later->token + (later->below ? 1 : 0);
    return token > before->token || (same && token == before->token);
}

/* A holder that was granted alone has a larger token than the holders before it. So has a reader after
 * a writer. */
static void judge_succession(struct verdict *v, const struct record *r, size_t n)
{
    const struct record *alone = NULL, *any = NULL;

    for (size_t i = 0; i < n; i++) {
        if (!is_proved(&r[i]) || r[i].access == PERMIT)
            continue;
        if (any != NULL && any->era != r[i].era)
            alone = any = NULL;
        const struct record *before = r[i].access == ALONE ? any : alone;
        if (before != NULL && !comes_after(&r[i], before)) {
            v->disorders++;
            blame(v, "the token of the later holder is not larger", before, &r[i]);
        }
        if (any == NULL || r[i].token > any->token)
            any = &r[i];
        if (r[i].access == ALONE)
            alone = &r[i];
    }
}

/* The last of those in the order of grants that had been granted at that time; n: none. */
static size_t granted_by(const struct record *r, size_t n, int64_t time_ns)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (r[middle].begun_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : n;
}

static bool is_hold(const struct record *r, bool alone)
{
    return r->kind == HOLD && (!alone || r->access == ALONE);
}

/* With the largest token of all up to each, or of those that were alone. */
static void fill_newest(size_t *newest, const struct record *r, size_t n, bool alone)
{
    for (size_t i = 0; i < n; i++) {
        size_t last = i > 0 ? newest[i - 1] : i;
        bool larger = r[i].era > r[last].era || r[i].token > r[last].token;
        newest[i] = is_hold(&r[i], alone) && (larger || !is_hold(&r[last], alone)) ? i : last;
    }
}

/* A hold that was asked for after another grant has the larger token, whatever the kind, and whether
 * or not the other one was still held. Readers of one handle may share a node: against them only
 * writers count. */
static void judge_tokens_of(struct verdict *v, const struct record *r, size_t n, size_t *newest,
                            bool cached)
{
    fill_newest(newest, r, n, cached);
    for (size_t i = 0; i < n; i++) {
        bool judged = r[i].kind == HOLD && (r[i].cached != 0) == cached;
        size_t at = judged ? granted_by(r, n, r[i].asked_ns) : n;
        if (at == n)
            continue;
        const struct record *before = &r[newest[at]];
        if (is_hold(before, cached) && before->era == r[i].era && !comes_after(&r[i], before)) {
            v->disorders++;
            blame(v, "a later request has no larger token", before, &r[i]);
        }
    }
}

static void judge_tokens(struct verdict *v, const struct record *r, size_t n)
{
    size_t *newest = malloc((n + 1) * sizeof *newest);

    if (newest == NULL)
        abort();
    judge_tokens_of(v, r, n, newest, false);
    judge_tokens_of(v, r, n, newest, true);
    free(newest);
}

/* --- tries ------------------------------------------------------------------------------------ */

/* Another contender may have been there, within the time by which a server may lag behind. */
static bool somebody_was_there(const struct record *r, size_t n, const struct record *busy)
{
    for (size_t i = 0; i < n; i++) {
        bool own = r[i].seat == busy->seat && r[i].serial == busy->serial;
        if (r[i].kind == THERE && !own && r[i].asked_ns <= busy->begun_ns &&
            r[i].until_ns >= busy->asked_ns - LAG_NS)
            return true;
    }
    return false;
}

static void judge_tries(struct verdict *v, const struct record *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (r[i].kind != BUSY)
            continue;
        v->tries_busy++;
        if (!somebody_was_there(r, n, &r[i])) {
            v->wrong_busy++;
            blame(v, "a try was busy and nobody was there", &r[i], NULL);
        }
    }
}

/* --- losses ----------------------------------------------------------------------------------- */

static bool is_of(const struct record *hold, const struct record *told)
{
    return hold->kind == HOLD && hold->token == told->token &&
           hold->seat / SEATS_OF_PROCESS == told->seat / SEATS_OF_PROCESS;
}

/* Unlock must say so too. No hold is recorded for a member that a multi-lock lost while it waited
 * for others. */
static void judge_told(struct verdict *v, const struct record *r, size_t n,
                       const struct record *told)
{
    const struct record *hold = NULL;
    bool lost = false;

    for (size_t i = 0; i < n; i++) {
        if (!is_of(&r[i], told))
            continue;
        hold = &r[i];
        lost = lost || hold->code == ZKL_ELOST || hold->code == NEVER_UNLOCKED;
    }
    v->told++;
    v->told_on_the_way += hold == NULL;
    /* A reader of a shared node may leave before the callback runs. */
    if (hold != NULL && !hold->cached && !lost) {
        v->wrong_told++;
        blame(v, "a callback reported a loss, which unlock denied", hold, told);
    }
}

static void judge_losses(struct verdict *v, const struct record *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (r[i].kind == TOLD)
            judge_told(v, r, n, &r[i]);
    }
}

/* --- all -------------------------------------------------------------------------------------- */

static void judge_place(struct verdict *v, const struct record *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        v->holds += r[i].kind == HOLD;
        v->proved += is_proved(&r[i]);
    }
    judge_overlaps(v, r, n);
    judge_succession(v, r, n);
    judge_tokens(v, r, n);
    judge_tries(v, r, n);
    judge_losses(v, r, n);
}

struct verdict history_judge(struct record *records, size_t n, const struct history_place *of)
{
    struct verdict v = {0};

    places = of;
    qsort(records, n, sizeof *records, by_grant);
    n = without_doubles(records, n);
    for (size_t from = 0, to; from < n; from = to) {
        to = from;
        while (to < n && records[to].place == records[from].place)
            to++;
        judge_place(&v, records + from, to - from);
    }
    return v;
}
