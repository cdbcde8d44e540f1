/* SPDX-License-Identifier: Apache-2.0
 * What must be true beside what tests/owners/check.c has, and the end. */
#include "world.h"

#define SESSIONS_APART_MS 1000

static void note_margin(struct world *w, int64_t margin_ns)
{
    struct tally *tally = w->tally;
    if (tally->margins++ == 0 || margin_ns < tally->margin_ns)
        tally->margin_ns = margin_ns;
    if (margin_ns < FAKE_TIMEOUT_MS / 16 * MS)
        happened(w, SIM_EXPIRED_CLOSE);
}

static void session_ends(struct fake *fake, int64_t session)
{
    struct world *w = (struct world *)((char *)fake - offsetof(struct world, fake));
    check_expiry(w, session);
    each_client(w, p) {
        int64_t end_ns = zkl_session_window_end(&p->core.session);
        if (!client_is_gone(p) && p->core.session.id == session && end_ns != 0)
            note_margin(w, now_of(p).boot_ns - end_ns);
    }
}

void check_begin(struct world *w)
{
    w->fake.expires = session_ends;
}

void check_world(struct world *w)
{
    if (w->fake.unreadable)
        wrong("a session ends with more nodes than servers can read again");
    if (w->semaphores)
        permits_note_limit(w);
    check_exclusion(w);
    for (int i = 0; i < CLIENTS; i++)
        check_window(&w->clients[i]);
}

/* Whatever the server does with sessions, they come slowly; one that lived its timeout, be it while
 * its client slept, may be followed at once. */
void check_opening(struct client *p)
{
    int64_t now_ns = now_of(p).boot_ns, timeout_ms = p->core.session.timeout_ms;
    int64_t apart_ms = timeout_ms < SESSIONS_APART_MS ? timeout_ms : SESSIONS_APART_MS;
    must(p->opened_boot_ns == 0 || now_ns - p->opened_boot_ns >= apart_ms * MS);
    p->opened_boot_ns = now_ns;
}

/* With a node that may be checked, and nothing in the way, the session is proved. */
static void check_proof(struct client *p)
{
    int64_t now_ms = p->world->fake.now_ms;
    if (!p->world->calm || !proc_is_awake(p) || p->core.counts[ZKL_COUNT_HEARTBEATS] == 0 ||
        !zkl_session_connected(&p->core.session))
        p->unproved_ms = now_ms;
    int64_t timeout_ns = zkl_session_timeout_ns(&p->core.session);
    if (timeout_ns < FAKE_TIMEOUT_MS * MS)
        timeout_ns = FAKE_TIMEOUT_MS * MS;
    if ((now_ms - p->unproved_ms) * MS > timeout_ns)
        must(now_of(p).boot_ns - p->core.session.proof.newest_proof_boot < timeout_ns / 2);
}

void check_process(struct client *p)
{
    if (p->dead)
        return;
    p->window_end_boot = zkl_session_window_end(&p->core.session);
    check_proof(p);
    check_core(p, p->world->core_steps % 8 == 0);
    queries_check(p);
}

/* --- at the end ----------------------------------------------------------- */

static bool is_done(const struct client *p)
{
    if (p->dead)
        return false;
    if (!core_is_done(&p->core) || !owners_done(p))
        return false;
    /* What a late write leaves is removed by a look. */
    if ((p->current && p->current->late.first) || p->core.leftovers.due_mono_ns != INT64_MAX)
        return false;
    return true;
}

/* No contender waits for anything any more. Modes: F6, F21. */
bool check_done(const struct world *w)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (!is_done(&w->clients[i]))
            return false;
    }
    return true;
}

void check_complain(struct world *w)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct client *p = &w->clients[i];
        say("process %d: session %lld %s, %zu pending, %zu watches%s", i,
            (long long)p->core.session.id, zkl_session_state_name(p->core.session.state),
            p->core.pending_count, p->core.watch_count, p->core.removing ? ", removals" : "");
        for (struct zkl_contender *c = p->core.first; c; c = c->next)
            say("  #%llu %s %s", (unsigned long long)c->number,
                zkl_contender_state_name(c->machine.state), c->machine.lock_request.path->text);
    }
    for (size_t i = 0; i < w->fake.node_count; i++)
        say("  node %s of %lld %s", w->fake.nodes[i].path, (long long)w->fake.nodes[i].owner,
            w->fake.nodes[i].dzxid ? "(deleted)" : "");
    wrong("somebody does not get through");
}
