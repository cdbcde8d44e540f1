/* SPDX-License-Identifier: Apache-2.0
 * Owners of a semaphore's permits: in each process a handle on one semaphore, and some owners that
 * acquire a few permits together. A request gets all of them or none, in the order of the inner
 * mutex. */
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "world.h"

#define USUAL 3

void permits_init(struct world *w)
{
    w->semaphores = chance(w, 2);
    if (!w->semaphores)
        return;
    w->mismatch = chance(w, 6);
    if (w->mismatch)
        happened(w, SIM_MISMATCH);
    w->limit_changes = chance(w, 3);
    if (chance(w, 3)) { /* as Curator makes it */
        fake_create(&w->fake, SIM_SEMAPHORE, 0, 0);
        fake_create(&w->fake, SIM_LEASES, 0, 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        w->clients[i].view.permits = USUAL + (w->mismatch && i == 0);
}

bool permits_is_one(const struct zkl_contender *contender)
{
    return contender->machine.lock_request.naming.role == ZKL_ROLE_PERMIT;
}

/* --- notifications ----------------------------------------------------------- */

static struct permit *permit_of(struct zkl_contender *contender)
{
    return (struct permit *)contender;
}

static size_t count_of(const struct ask *ask)
{
    return ask->bundle.count - 1;
}

static void check_number(struct world *w, const struct ask *ask);

static void on_granted(struct ask *ask)
{
    struct world *w = ask->client->world;
    must(ask->phase == WAITING);
    for (size_t i = 0; i < count_of(ask); i++) {
        struct permit *permit = permit_of(ask->members[1 + i].contender);
        must(permit->contender.machine.state == ZKL_CONTENDER_HOLDING);
        permit->in_core = true; /* by itself, from here on */
        permit->suspect = permit->contender.machine.suspect;
    }
    /* First come, first served, unless the place of one was taken away. */
    must(w->strangers || w->wiped || ask->gate.machine.czxid > w->last_gate);
    if (ask->gate.machine.czxid > w->last_gate)
        w->last_gate = ask->gate.machine.czxid;
    w->tally->grants++;
    ask->phase = GRANTED;
    check_number(w, ask);
    ask->until_ms = w->fake.now_ms + rnd(w, chance(w, 3) ? FAKE_TIMEOUT_MS : 60);
}

static void on_failed(struct ask *ask, int code)
{
    struct world *w = ask->client->world;
    must(ask->phase == WAITING);
    must(code < 0 && code > -TALLY_CODES);
    w->tally->failures[-code]++;
    bool ends_try = code == ZKL_EBUSY || code == ZKL_EUNPROVED;
    bool right =
        code == ask->stop_code || (ends_try && ask->members[1].lock_request.try_only) ||
        (code == ZKL_ENOMEM && w->out_of_memory) || (code == ZKL_ESYSTEM && w->few_watches) ||
        (code == ZKL_EFULL && w->few_nodes) || (code == ZKL_ECLOSED && ask->client->closed) ||
        (code == ZKL_EAUTH && ask->client->refused) || (code == ZKL_EACCES && may_be_denied(w)) ||
        may_be_refused(w, code) || (code == ZKL_EMISMATCH && w->mismatch) ||
        (code == ZKL_EMISMATCH && w->limit_changes && !ask->client->view.agreed) ||
        (code == ZKL_EINVAL && w->limit_changes);
    if (!right) {
        say("failed with %d: %s", code, ask->bundle.detail);
        wrong("permits failed for no reason");
    }
    ask->phase = ANSWERED;
}

static void told(struct zkl_bundle *bundle, const struct zkl_notification *news)
{
    struct ask *ask = (struct ask *)bundle;
    if (ask->client->dead)
        return; /* no process receives it */
    must(!ask->over);
    if (news->type == ZKL_NOTIFY_ENDED) {
        must(ask->phase != WAITING);
        ask->over = true;
        return;
    }
    if (news->type == ZKL_NOTIFY_GRANTED)
        on_granted(ask);
    else
        on_failed(ask, news->code);
}

void permits_notification(struct client *p, struct zkl_contender *contender,
                          const struct zkl_notification *news)
{
    struct permit *permit = permit_of(contender);
    must(permit->in_core && news->type != ZKL_NOTIFY_GRANTED && news->type != ZKL_NOTIFY_FAILED);
    if (news->type == ZKL_NOTIFY_ENDED) {
        permit->in_core = false;
    } else if (news->type == ZKL_NOTIFY_RELEASED) {
        must(permit->released && (news->code == ZKL_ELOST) == permit->lost);
        check_unlocked(p->world, &permit->unlocked, news->code);
    } else if (news->state == ZKL_HOLD_LOST) {
        must(!permit->lost);
        permit->lost = true;
        p->world->tally->losses++;
    } else if (news->state != ZKL_HOLD_REVOKE_REQUESTED) {
        must(!permit->lost);
        check_state(p->world, permit->suspect, news);
        permit->suspect = news->state == ZKL_HOLD_SUSPECT;
    }
}

/* --- what they do --------------------------------------------------------- */

static void start(struct ask *ask)
{
    struct client *p = ask->client;
    struct world *w = p->world;
    size_t count = 1 + rnd(w, chance(w, 2) ? 1 : AT_ONCE_MAX);
    *ask = (struct ask){.client = p, .phase = WAITING};
    int64_t lease_ns = chance(w, 6) ? (1 + rnd(w, 100)) * MS : 0;
    struct zkl_lock_request lock_request = {.path = &p->leases,
                                            .data = "owner",
                                            .naming.role = ZKL_ROLE_PERMIT,
                                            .quota.view = &p->view,
                                            .try_only = chance(w, 5),
                                            .try_sync = chance(w, 2),
                                            .watch_own = chance(w, 3),
                                            .posted = chance(w, 4)};
    ask->members[0] = (struct zkl_bundle_member){
        .contender = &ask->gate, .lock_request = {.path = &p->gate, .data = "owner"}};
    for (size_t i = 0; i < count; i++)
        ask->members[1 + i] = (struct zkl_bundle_member){.contender = &ask->list[i].contender,
                                                         .lock_request = lock_request};
    ask->bundle = (struct zkl_bundle){.members = ask->members,
                                      .count = 1 + count,
                                      .gated = true,
                                      .lease_ns = lease_ns,
                                      .told = told};
    if (ask->members[1].lock_request.try_only)
        ask->stop_code = ZKL_EBUSY;
    if (count > 1)
        happened(w, SIM_SEVERAL_PERMITS);
    ask->until_ms = chance(w, 3) ? w->fake.now_ms + rnd(w, 600) : INT64_MAX;
    say("[%6lld] %d acquires %zu permits%s", (long long)w->fake.now_ms, name_of(p), count,
        ask->members[1].lock_request.try_only ? " (try)" : "");
    zkl_bundle_acquire(core_of(p), now_of(p), &ask->bundle);
}

static void stop(struct ask *ask)
{
    struct world *w = ask->client->world;
    ask->stop_code = chance(w, 2) ? ZKL_ETIMEDOUT : ZKL_ECANCELED;
    happened(w, ask->stop_code == ZKL_ETIMEDOUT ? SIM_DEADLINE : SIM_CANCEL);
    say("[%6lld] %d stops its permits", (long long)w->fake.now_ms, name_of(ask->client));
    zkl_bundle_stop(core_of(ask->client), now_of(ask->client), &ask->bundle, ask->stop_code);
    must(ask->phase != WAITING);
}

/* One by one; true: all of them are. */
static bool release(struct ask *ask)
{
    struct world *w = ask->client->world;
    bool all = true;
    for (size_t i = 0; i < count_of(ask); i++) {
        struct permit *permit = &ask->list[i];
        if (!permit->released && (w->calm || chance(w, 2))) {
            permit->released = true;
            permit->unlocked = check_unlock(ask->client, &permit->contender, permit->deleted_guid);
            if (permit->in_core)
                zkl_core_release(core_of(ask->client), now_of(ask->client), &permit->contender);
        }
        all = all && permit->released;
    }
    return all;
}

static bool is_gone(const struct ask *ask)
{
    bool gone = ask->over;
    for (size_t i = 0; i < count_of(ask); i++)
        gone = gone && !ask->list[i].in_core;
    return gone;
}

void permits_run(struct client *p)
{
    struct world *w = p->world;
    for (int i = 0; w->semaphores && i < ASKS; i++) {
        struct ask *ask = &p->asks[i];
        bool due = ask->until_ms <= w->fake.now_ms;
        due = due || (ask->bundle.state == ZKL_BUNDLE_BACKING && chance(w, 4));
        if (ask->phase == WAITING && (due || (w->calm && ask->until_ms != INT64_MAX)))
            stop(ask);
        else if (ask->phase == GRANTED && due && release(ask))
            ask->phase = ANSWERED;
        else if (ask->phase == ANSWERED && is_gone(ask))
            ask->phase = IDLE;
        else if (ask->phase == IDLE && proc_is_lively(p) && chance(w, 8))
            start(ask);
    }
}

bool permits_done(const struct client *p)
{
    bool done = true;
    for (int i = 0; i < ASKS; i++)
        done = done && p->asks[i].phase == IDLE;
    return done;
}

int permits_out(const struct client *p, const struct ask *ask)
{
    int out = 0;
    for (size_t i = 0; ask->phase == GRANTED && i < count_of(ask); i++) {
        const struct permit *permit = &ask->list[i];
        const char *guid = permit->contender.machine.guid;
        out += permit->in_core && !permit->lost && !permit->released &&
               strcmp(permit->deleted_guid, guid) != 0 && is_proved(p, &permit->contender);
    }
    return out;
}

void permits_note_limit(struct world *w)
{
    const struct fake_node *leases = fake_find(&w->fake, SIM_LEASES);
    int number = leases && leases->text ? atoi(leases->text) : 0;
    size_t last = (w->limit_count + LIMITS_KEPT - 1) % LIMITS_KEPT;
    if (w->limit_count > 0 && w->limits[last].number == number)
        return;
    w->limits[w->limit_count % LIMITS_KEPT].zxid = w->fake.zxid;
    w->limits[w->limit_count++ % LIMITS_KEPT].number = number;
}

void permits_note_list(struct client *p, int64_t zxid)
{
    for (int i = 0; i < ASKS; i++) {
        struct ask *ask = &p->asks[i];
        bool undecided = false;
        for (size_t j = 0; ask->phase == WAITING && j < count_of(ask); j++) {
            enum zkl_contender_state state = ask->list[j].contender.machine.state;
            undecided |= state != ZKL_CONTENDER_HOLDING && state != ZKL_CONTENDER_CONFIRMING;
        }
        if (undecided)
            ask->listed_zxid = zxid;
    }
}

/* Between the list that decided and now there was a moment at which as many were allowed as are out: what was lowered
 * since then takes back no grant. */
static int most_allowed(const struct world *w, int64_t since)
{
    int most = 0;
    for (size_t i = 0; i < LIMITS_KEPT && i < w->limit_count; i++) {
        size_t at = (w->limit_count - 1 - i) % LIMITS_KEPT;
        most = w->limits[at].number > most ? w->limits[at].number : most;
        if (w->limits[at].zxid <= since)
            break;
    }
    return most;
}

static void check_number(struct world *w, const struct ask *ask)
{
    int out = 0;
    permits_note_limit(w);
    for (int i = 0; i < CLIENTS; i++) {
        for (int j = 0; j < ASKS && fake_alive(&w->fake, w->clients[i].core.session.id); j++)
            out += permits_out(&w->clients[i], &w->clients[i].asks[j]);
    }
    if (out > most_allowed(w, ask->listed_zxid))
        wrong("more permits are out than there are");
}

/* --- what others do ------------------------------------------------------- */

void permits_note_deletion(struct world *w, const char *path)
{
    for (int i = 0; i < CLIENTS * ASKS * AT_ONCE_MAX; i++) {
        struct ask *ask = &w->clients[i / (ASKS * AT_ONCE_MAX)].asks[i / AT_ONCE_MAX % ASKS];
        struct permit *permit = &ask->list[i % AT_ONCE_MAX];
        const char *guid = permit->contender.machine.guid;
        if (ask->phase != IDLE && guid[0] && strstr(path, guid))
            memcpy(permit->deleted_guid, guid, sizeof permit->deleted_guid);
    }
}

static void remove_empty(struct world *w, struct fake_node *node)
{
    happened(w, SIM_COLLECTED);
    fake_delete(&w->fake, node);
}

void permits_interfere(struct world *w)
{
    static const char *const numbers[] = {"1", "2", "3", "4", "5", "", "note"};
    struct fake_node *leases = fake_find(&w->fake, SIM_LEASES);
    struct fake_node *gate = fake_find(&w->fake, SIM_GATE);
    const char *number = numbers[rnd(w, sizeof numbers / sizeof *numbers)];
    if (leases && chance(w, 2)) {
        happened(w, SIM_LIMIT_CHANGED);
        say("[%6lld] the number of permits is \"%s\" now", (long long)w->fake.now_ms, number);
        fake_write(&w->fake, leases, number);
    } else if (leases && !fake_has_children(&w->fake, SIM_LEASES)) {
        remove_empty(w, leases);
    } else if (gate && !fake_has_children(&w->fake, SIM_GATE)) {
        remove_empty(w, gate);
    }
}
