/* SPDX-License-Identifier: Apache-2.0
 * The owners of fuzz target core: they keep to what core.h asks of them, and check their
 * notifications. */
#include <string.h>

#include "core/unlisted_grant.h"
#include "core/feed.h"
#include "core/watch.h"
#include "stream.h"

static const char *const roots[PATHS] = {"/a", "/b/c", "/d"}; /* sorted, as a group wants them */
#define LEASES "/s/leases"
#define GATE "/s/locks"

static struct owner *owner_of(struct zkl_contender *contender)
{
    return (struct owner *)contender;
}

static bool is_single(const struct stream *s, const struct owner *owner)
{
    return owner - s->owners < SINGLES;
}

/* --- their notifications ------------------------------------------------- */

static void on_granted(struct stream *s, struct owner *owner)
{
    const struct zkl_contender_machine *m = &owner->contender.machine;
    struct zkl_node_name place;
    must(owner->phase == WAITING && m->state == ZKL_CONTENDER_HOLDING);
    must(zkl_name_parse(m->node, &m->lock_request.naming, &place) &&
         !zkl_sequence_exhausted(place.sequence));
    must(!is_single(s, owner) || s->now.boot_ns < zkl_session_window_end(&s->core.session));
    owner->phase = GRANTED;
    owner->suspect = m->suspect; /* a member may have had no notification of it */
    owner->revoked = owner->revoked || (!is_single(s, owner) && m->revoked);
}

static bool may_fail(const struct stream *s, const struct owner *owner, int code)
{
    bool stopped = code == ZKL_ETIMEDOUT || code == ZKL_ECANCELED;
    bool allowed = !stopped || owner->stopped;
    allowed = allowed && ((code != ZKL_EBUSY && code != ZKL_EUNPROVED) ||
                          owner->contender.machine.lock_request.try_only);
    allowed = allowed && (code != ZKL_ECLOSED || s->closed);
    allowed = allowed && (code != ZKL_EAUTH || s->failed);
    return allowed && code < 0;
}

static void on_state(struct owner *owner, const struct zkl_notification *news)
{
    must(owner->phase == GRANTED || owner->phase == UNLOCKING || owner->abandoned);
    must(!owner->lost);
    if (news->state == ZKL_HOLD_LOST) {
        owner->lost = true;
    } else if (news->state == ZKL_HOLD_REVOKE_REQUESTED) {
        must(!owner->revoked);
        owner->revoked = true;
    } else {
        /* The core notifies a holder that its node can't be checked even if the holder is
         * SUSPECT already. */
        bool again = news->state == ZKL_HOLD_SUSPECT && news->reason == ZKL_REASON_UNCHECKED;
        must(again || owner->suspect == (news->state == ZKL_HOLD_HELD));
        owner->suspect = news->state == ZKL_HOLD_SUSPECT;
    }
}

void owners_notification(struct stream *s, struct zkl_contender *contender,
                         const struct zkl_notification *news)
{
    struct owner *owner = owner_of(contender);
    say(s, "  #%llu: news %d, code %d, state %d", (unsigned long long)contender->number, news->type,
        news->code, news->state);
    must(owner->phase != IDLE);
    switch (news->type) {
    case ZKL_NOTIFY_GRANTED:
        on_granted(s, owner);
        break;
    case ZKL_NOTIFY_FAILED:
        must(owner->phase == WAITING && may_fail(s, owner, news->code));
        owner->phase = ANSWERED;
        break;
    case ZKL_NOTIFY_RELEASED:
        must(owner->phase == UNLOCKING && (news->code == ZKL_ELOST) == owner->lost);
        must(news->code == ZKL_OK || news->code == ZKL_ELOST || news->code == ZKL_EUNCONFIRMED ||
             news->code == ZKL_EDOUBT || news->code == ZKL_EACCES);
        owner->phase = ANSWERED;
        break;
    case ZKL_NOTIFY_STATE:
        on_state(owner, news);
        break;
    case ZKL_NOTIFY_ENDED:
        must(owner->phase == ANSWERED);
        owner->phase = IDLE;
        break;
    }
}

/* Of a request for permits: all of them or none. */
static void told(struct zkl_bundle *bundle, const struct zkl_notification *news)
{
    struct ask *ask = (struct ask *)bundle;
    if (news->type == ZKL_NOTIFY_ENDED) {
        must(ask->phase == ANSWERED);
        ask->phase = IDLE;
        return;
    }
    must(ask->phase == WAITING);
    ask->phase = ANSWERED;
    for (size_t i = 0; news->type == ZKL_NOTIFY_GRANTED && 1 + i < bundle->count; i++) {
        const struct zkl_contender_machine *m = &ask->owners[i].contender.machine;
        must(ask->owners[i].phase == IDLE && m->state == ZKL_CONTENDER_HOLDING);
        ask->owners[i] = (struct owner){.contender = ask->owners[i].contender,
                                        .before = ask->owners[i].before,
                                        .was_gone = ask->owners[i].was_gone,
                                        .phase = GRANTED,
                                        .suspect = m->suspect,
                                        .revoked = m->revoked};
    }
    must(news->type == ZKL_NOTIFY_GRANTED || news->code < 0);
}

static void on_query(struct zkl_query *query, int code, const struct zkl_reply *reply)
{
    struct question *question = (struct question *)query;
    must(question->out && (reply != NULL) == (code == 0));
    must(reply || code == ZKL_ECLOSED || code == ZKL_EAUTH);
    must(!reply || reply->answer != ZKL_ANSWER_LINK || query->once);
    memset(question, 0xee, sizeof *question); /* the core has no use for it any more */
    question->out = false;
}

/* --- what they must have seen -------------------------------------------- */

void owners_note_states(struct stream *s)
{
    for (size_t i = 0; i < OWNERS; i++) {
        struct owner *owner = &s->owners[i];
        const struct zkl_contender_machine *m = &owner->contender.machine;
        owner->before = m->state;
        owner->was_gone = m->state == ZKL_CONTENDER_WAITING && m->pred_proof != ZKL_PRED_PROOF_NONE;
        owner->told = m->state == ZKL_CONTENDER_WAITING && (owner->told || s->passed_on);
    }
    s->listed = NULL;
    s->passed_on = false;
    s->armed = NULL;
    s->numbered = NULL;
}

/* --- what is known of a path -------------------------------------------- */

static uint64_t witness(const struct stream *s, const struct alone *alone)
{
    return alone->link == s->core.link ? alone->watch : 0;
}

/* The path's, or of the path above; NULL: there is none. */
static struct alone *alone_at(struct stream *s, const char *path, bool above)
{
    size_t length = above ? (size_t)(strrchr(path, '/') - path) : strlen(path);
    for (size_t i = 0; i < ALONE; i++) {
        if (strlen(roots[i]) == length && strncmp(roots[i], path, length) == 0)
            return &s->alone[i];
    }
    return NULL;
}

static int32_t number_in(const char *path)
{
    struct zkl_node_name place = {0};
    struct zkl_naming naming;
    must(zkl_name_recognise(strrchr(path, '/') + 1, &naming, &place));
    return place.sequence;
}

uint64_t owners_vouch(const struct stream *s, const struct zkl_request *request)
{
    if (request->kind != ZKL_REQ_DELETE)
        return 0;
    const struct alone *alone = alone_at((struct stream *)s, request->path, true);
    return alone ? witness(s, alone) : 0;
}

static void on_deleted(struct stream *s, const struct request *r)
{
    struct alone *alone = alone_at(s, r->path, true);
    for (size_t i = 0; alone && i < SINGLES; i++) {
        if (!s->owners[i].alone || strcmp(s->owners[i].first, r->path) != 0)
            continue;
        alone->left = number_in(r->path);
        alone->vouched = r->vouched;
    }
}

void owners_answered(struct stream *s, const struct request *r, enum zkl_answer answer,
                     const struct zkl_reply *reply)
{
    struct alone *watched = alone_at(s, r->path, false);
    if (r->kind == ZKL_REQ_WATCH && watched) {
        struct zkl_watch *watch = s->paths[watched - s->alone].unlisted.lock_path.watch;
        watched->watch = answer == ZKL_ANSWER_OK && watch ? watch->id : 0;
        watched->link = s->core.link;
    }
    if (r->kind == ZKL_REQ_DELETE && answer == ZKL_ANSWER_OK)
        on_deleted(s, r);
    if (r->kind != ZKL_REQ_CREATE || answer != ZKL_ANSWER_OK || !reply->name || r->check_count > 0)
        return;
    const struct alone *alone = alone_at(s, r->path, true);
    char path[2 * PATH_ROOM];
    snprintf(path, sizeof path, "/%s", reply->name);
    if (alone && witness(s, alone) != 0 && witness(s, alone) == alone->vouched &&
        number_in(path) == alone->left + 1)
        s->numbered = r->path;
}

void owners_fired(struct stream *s, uint64_t watch)
{
    for (size_t i = 0; i < ALONE; i++) {
        if (s->alone[i].watch == watch)
            s->alone[i].watch = 0;
    }
}

static bool is_first_state(enum zkl_contender_state state)
{
    return state == ZKL_CONTENDER_CONFIRMING || state == ZKL_CONTENDER_HOLDING;
}

static bool was_shown(const struct stream *s, const struct zkl_contender_machine *m)
{
    if (!s->listed || strcmp(s->listed_root, m->lock_request.path->text) != 0)
        return false;
    struct zkl_look look = zkl_queue_position(&m->lock_request.naming, s->listed->children,
                                              s->listed->child_count, m->node);
    if (m->lock_request.naming.role == ZKL_ROLE_PERMIT)
        return look.present && look.contenders <= (size_t)m->limit.permits;
    return look.present && look.before == 0;
}

static bool is_own_node(const struct zkl_contender *c, const char *path)
{
    char own[ZKL_NODE_PATH_MAX + 1];
    zkl_core_node_path(c, c->machine.node, own);
    return path && strcmp(path, own) == 0;
}

/* Without a list: to a waiter for a mutex, by the deletion of what it waited for, or, where that was
 * known, by the answer that its own node is there. */
static bool was_passed_on(const struct stream *s, const struct owner *owner)
{
    const struct zkl_contender_machine *m = &owner->contender.machine;
    return (s->passed_on || (owner->was_gone && is_own_node(&owner->contender, s->armed))) &&
           owner->before == ZKL_CONTENDER_WAITING && m->state == ZKL_CONTENDER_HOLDING &&
           m->lock_request.naming.role == ZKL_ROLE_LOCK && m->pred_is_exclusive_mutex;
}

/* By its own number: nobody came between, at a path that is the same one as ever. */
static bool was_numbered(const struct stream *s, const struct owner *owner)
{
    char own[ZKL_NODE_PATH_MAX + 1];
    zkl_core_node_path(&owner->contender, owner->contender.machine.node, own);
    return s->numbered && owner->alone && strncmp(own, s->numbered, strlen(s->numbered)) == 0;
}

void owners_check(struct stream *s)
{
    for (size_t i = 0; i < OWNERS; i++) {
        struct owner *owner = &s->owners[i];
        const struct zkl_contender_machine *m = &owner->contender.machine;
        if (is_first_state(m->state) && !is_first_state(owner->before))
            must(m->downgrade_from[0] || was_shown(s, m) || was_passed_on(s, owner) ||
                 was_numbered(s, owner));
        if (m->state == ZKL_CONTENDER_HOLDING && owner->before != ZKL_CONTENDER_HOLDING)
            zkl_core_node_path(&owner->contender, m->node, owner->first);
        if (m->state == ZKL_CONTENDER_WAITING && m->pred_proof != ZKL_PRED_PROOF_NONE)
            must(owner->told || s->passed_on);
    }
    owners_note_states(s);
}

/* --- what they do -------------------------------------------------------- */

static struct zkl_naming take_naming(struct fuzz_bytes *in)
{
    static const struct zkl_naming namings[] = {
        {ZKL_ROLE_LOCK, ZKL_NAMES_CURATOR, ""},   {ZKL_ROLE_READ, ZKL_NAMES_CURATOR, ""},
        {ZKL_ROLE_WRITE, ZKL_NAMES_CURATOR, ""},  {ZKL_ROLE_LOCK, ZKL_NAMES_KAZOO, ""},
        {ZKL_ROLE_LOCK, ZKL_NAMES_NAMED, "mine"},
    };
    return namings[fuzz_below(in, sizeof namings / sizeof *namings)];
}

/* Somebody's held write lock, for a reader of the same owner. */
static const struct zkl_contender *find_writer(const struct stream *s, const char *root)
{
    for (size_t i = 0; i < SINGLES; i++) {
        const struct zkl_contender *c = &s->owners[i].contender;
        if (s->owners[i].phase == GRANTED && c->machine.state == ZKL_CONTENDER_HOLDING &&
            c->machine.lock_request.naming.role == ZKL_ROLE_WRITE &&
            strcmp(c->machine.lock_request.path->text, root) == 0)
            return c;
    }
    return NULL;
}

static struct zkl_lock_request take_lock_request(struct stream *s, struct zkl_path *path)
{
    unsigned how = fuzz_byte(&s->in);
    return (struct zkl_lock_request){.path = path,
                                     .data = "owner",
                                     .naming = take_naming(&s->in),
                                     .try_only = (how & 3) == 3,
                                     .try_sync = how & 4,
                                     .watch_own = how & 8,
                                     .posted = how & 16,
                                     .lease_ns = (how & 48) == 48 ? (1 + how / 64) * 400 * MS : 0};
}

static void acquire(struct stream *s, struct owner *owner)
{
    unsigned root = fuzz_below(&s->in, ALONE);
    struct zkl_lock_request lock_request = take_lock_request(s, &s->paths[root]);
    *owner = (struct owner){.phase = WAITING};
    if (lock_request.naming.role == ZKL_ROLE_LOCK && lock_request.naming.names != ZKL_NAMES_NAMED) {
        owner->alone = true;
        lock_request.unlisted = true;
    }
    if (lock_request.naming.role == ZKL_ROLE_READ && lock_request.naming.names == ZKL_NAMES_CURATOR)
        lock_request.downgrade_from = find_writer(s, lock_request.path->text);
    zkl_core_acquire(&s->core, s->now, &owner->contender, &lock_request);
}

static void release(struct stream *s, struct owner *owner)
{
    owner->phase = UNLOCKING;
    zkl_core_release(&s->core, s->now, &owner->contender);
    must(owner->phase != UNLOCKING || owner->contender.machine.state == ZKL_CONTENDER_RELEASING);
}

static void stop(struct stream *s, struct owner *owner)
{
    owner->stopped = true;
    zkl_core_stop(&s->core, s->now, &owner->contender,
                  fuzz_flag(&s->in) ? ZKL_ETIMEDOUT : ZKL_ECANCELED);
    must(owner->phase != WAITING);
}

static void abandon(struct stream *s, struct owner *owner)
{
    owner->abandoned = true;
    owner->phase = ANSWERED;
    zkl_core_abandon(&s->core, s->now, &owner->contender, ZKL_REASON_OWNER_EXITED);
}

static void renew(struct stream *s, struct owner *owner)
{
    int64_t end = owner->contender.machine.lease_end_boot;
    bool held = owner->contender.machine.state == ZKL_CONTENDER_HOLDING;
    bool renewed = zkl_core_renew(&s->core, s->now, &owner->contender, 500 * MS);
    must(renewed == (held && (end == 0 || s->now.boot_ns < end)));
}

static void act_as_owner(struct stream *s, struct owner *owner)
{
    unsigned how = fuzz_below(&s->in, 6);
    if (owner->phase == IDLE && is_single(s, owner))
        acquire(s, owner);
    else if (owner->phase == WAITING && is_single(s, owner))
        stop(s, owner);
    else if (owner->phase == GRANTED && how == 5)
        abandon(s, owner);
    else if (owner->phase == GRANTED && how == 4)
        renew(s, owner);
    else if (owner->phase == GRANTED)
        release(s, owner);
}

/* --- the group ----------------------------------------------------------- */

static struct owner *group_owner(struct stream *s, size_t i)
{
    return &s->owners[SINGLES + i];
}

static void acquire_group(struct stream *s)
{
    s->group = (struct zkl_bundle){.count = 1 + fuzz_below(&s->in, MEMBERS), .members = s->members};
    s->group.lease_ns = fuzz_below(&s->in, 4) == 3 ? 500 * MS : 0;
    for (size_t i = 0; i < s->group.count; i++) {
        struct owner *owner = group_owner(s, i);
        *owner = (struct owner){.phase = WAITING, .stopped = true};
        s->members[i] = (struct zkl_bundle_member){
            .contender = &owner->contender, .lock_request = take_lock_request(s, &s->paths[i])};
        s->members[i].lock_request.lease_ns = 0; /* it counts from the grant of all */
        s->members[i].lock_request.try_only = s->members[0].lock_request.try_only;
    }
    zkl_bundle_acquire(&s->core, s->now, &s->group);
}

/* Those that are held, of the group or of a request for permits, in one go. */
static void release_some(struct stream *s, size_t first, size_t count)
{
    struct zkl_contender *list[MEMBERS];
    size_t n = 0;
    for (size_t i = first; i < first + count; i++) {
        if (s->owners[i].phase != GRANTED)
            continue;
        s->owners[i].phase = UNLOCKING;
        list[n++] = &s->owners[i].contender;
    }
    if (n > 0)
        zkl_bundle_release(&s->core, s->now, list, n);
}

static void act_as_group(struct stream *s)
{
    bool idle = true, waiting = false;
    for (size_t i = 0; i < MEMBERS; i++) {
        idle = idle && group_owner(s, i)->phase == IDLE;
        waiting = waiting || group_owner(s, i)->phase == WAITING;
    }
    if (idle)
        acquire_group(s);
    else if (waiting)
        zkl_bundle_stop(&s->core, s->now, &s->group, ZKL_ETIMEDOUT);
    else
        release_some(s, SINGLES, MEMBERS);
    for (size_t i = 0; i < MEMBERS && waiting; i++)
        must(group_owner(s, i)->phase != WAITING);
}

/* --- permits ------------------------------------------------------------- */

static void acquire_permits(struct stream *s, struct ask *ask)
{
    *ask = (struct ask){.owners = ask->owners, .phase = WAITING};
    struct zkl_lock_request lock_request = take_lock_request(s, &s->leases);
    lock_request.quota.view = &s->view;
    lock_request.naming = (struct zkl_naming){.role = ZKL_ROLE_PERMIT};
    ask->bundle = (struct zkl_bundle){.members = ask->members,
                                      .count = 2 + fuzz_below(&s->in, MEMBERS),
                                      .gated = true,
                                      .lease_ns = lock_request.lease_ns,
                                      .told = told};
    lock_request.lease_ns = 0; /* it counts from the grant of all */
    ask->members[0] = (struct zkl_bundle_member){
        .contender = &ask->gate, .lock_request = {.path = &s->gate, .data = lock_request.data}};
    for (size_t i = 0; i < MEMBERS; i++)
        ask->members[1 + i] = (struct zkl_bundle_member){.contender = &ask->owners[i].contender,
                                                         .lock_request = lock_request};
    for (size_t i = 0; i < MEMBERS; i++)
        ask->owners[i] = (struct owner){.phase = IDLE};
    zkl_bundle_acquire(&s->core, s->now, &ask->bundle);
}

static void act_as_ask(struct stream *s, struct ask *ask)
{
    bool idle = ask->phase == IDLE;
    for (size_t i = 0; i < MEMBERS; i++)
        idle = idle && ask->owners[i].phase == IDLE;
    if (idle)
        acquire_permits(s, ask);
    else if (ask->phase == WAITING)
        zkl_bundle_stop(&s->core, s->now, &ask->bundle, ZKL_ECANCELED);
    else
        release_some(s, (size_t)(ask->owners - s->owners), MEMBERS);
    (void)zkl_bundle_is_behind(&ask->bundle);
}

/* --- queries ------------------------------------------------------------- */

static void withdraw(struct stream *s, struct question *question)
{
    zkl_core_withdraw(&s->core, s->now, &question->query);
    memset(question, 0xee, sizeof *question);
    question->out = false;
}

static void act_as_question(struct stream *s, struct question *question)
{
    static const enum zkl_request_kind kinds[] = {
        ZKL_REQ_GET,    ZKL_REQ_STAT, ZKL_REQ_LIST_LOCK_PATH, ZKL_REQ_SYNC, ZKL_REQ_SET,
        ZKL_REQ_DELETE, ZKL_REQ_MAKE, ZKL_REQ_WATCH,          ZKL_REQ_WATCH};
    if (question->out) {
        withdraw(s, question);
        return;
    }
    const struct zkl_contender_machine *m =
        &s->owners[fuzz_below(&s->in, OWNERS)].contender.machine;
    *question = (struct question){.out = true};
    question->query =
        (struct zkl_query){.kind = kinds[fuzz_below(&s->in, sizeof kinds / sizeof *kinds)],
                           .path = m->lock_request.path ? m->lock_request.path->text : "/a",
                           .data = "text",
                           .flag = fuzz_flag(&s->in),
                           .version = (int32_t)fuzz_below(&s->in, 3),
                           .czxid = fuzz_below(&s->in, 3),
                           .once = fuzz_flag(&s->in),
                           .answered = on_query};
    zkl_core_query(&s->core, s->now, &question->query);
}

/* --- all of them --------------------------------------------------------- */

void owners_act(struct stream *s)
{
    unsigned who = fuzz_below(&s->in, OWNERS + 1 + ASKS + QUERIES);
    if (who < OWNERS)
        act_as_owner(s, &s->owners[who]);
    else if (who == OWNERS)
        act_as_group(s);
    else if (who <= OWNERS + ASKS)
        act_as_ask(s, &s->asks[who - OWNERS - 1]);
    else
        act_as_question(s, &s->questions[who - OWNERS - 1 - ASKS]);
}

void owners_init(struct stream *s)
{
    for (size_t i = 0; i < PATHS; i++)
        s->paths[i] = zkl_path_of(roots[i]);
    s->gate = zkl_path_of(GATE);
    s->leases = zkl_path_of(LEASES);
}

/* As the last handles of all paths are freed. */
static void give_up_paths(struct stream *s)
{
    for (size_t i = 0; i < ALONE; i++) {
        must(s->paths[i].unlisted.live_count == 0);
        zkl_unlisted_end(&s->core, s->now, &s->paths[i].unlisted);
        s->paths[i].unlisted = (struct zkl_unlisted_grant){0};
        s->alone[i] = (struct alone){0};
    }
}

void owners_go(struct stream *s)
{
    if (s->group.count > 0)
        zkl_bundle_stop(&s->core, s->now, &s->group, ZKL_ECANCELED);
    for (size_t i = 0; i < ASKS; i++) {
        if (s->asks[i].phase == WAITING)
            zkl_bundle_stop(&s->core, s->now, &s->asks[i].bundle, ZKL_ECANCELED);
    }
    for (size_t i = 0; i < OWNERS; i++) {
        if (s->owners[i].phase == GRANTED)
            release(s, &s->owners[i]);
        else if (s->owners[i].phase == WAITING)
            stop(s, &s->owners[i]);
    }
    for (size_t i = 0; i < QUERIES; i++) {
        if (s->questions[i].out)
            withdraw(s, &s->questions[i]);
    }
    if (owners_are_gone(s))
        give_up_paths(s);
}

bool owners_are_gone(const struct stream *s)
{
    bool gone = true;
    for (size_t i = 0; i < OWNERS; i++)
        gone = gone && s->owners[i].phase == IDLE;
    for (size_t i = 0; i < ASKS; i++)
        gone = gone && s->asks[i].phase == IDLE;
    for (size_t i = 0; i < QUERIES; i++)
        gone = gone && !s->questions[i].out;
    return gone;
}
