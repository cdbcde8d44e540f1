/* SPDX-License-Identifier: Apache-2.0 */
/* What the lines of steps.h can say: handles, calls and questions, nodes, the proxy. */
#include "steps.h"

#include <zklock/metrics.h>

#include "inside.h"
#include "inspection.h"

#define MS INT64_C(1000000)
#define HANDLES_MAX 256
#define PATHS_MAX 8

#define CALL(name, code) DO(name, s->is_call = true; say_code(s, code))

static struct handle handles[HANDLES_MAX]; /* static: what a failed test's callbacks use stays */
static struct {
    char name[32], path[64];
} paths[PATHS_MAX];
static size_t handle_count, path_count;
static struct proxy *proxy;
static struct wire *mortal;

/* --- names ------------------------------------------------------------------------------------ */

void forget_handles(void)
{
    handle_count = path_count = 0;
    proxy = NULL;
}

static struct handle *new_handle(const char *name)
{
    check_num(handle_count, <, HANDLES_MAX);
    struct handle *h = &handles[handle_count++];
    *h = (struct handle){.notes = NOTES_INIT};
    snprintf(h->name, sizeof h->name, "%s", name);
    return h;
}

struct handle *handle_of(const char *word, int *number)
{
    size_t length = strcspn(word, "*");

    *number = word[length] ? atoi(word + length + 1) : 1;
    for (size_t i = handle_count; i-- > 0;) { /* the newest one of that name */
        if (strlen(handles[i].name) == length && strncmp(handles[i].name, word, length) == 0)
            return &handles[i];
    }
    return NULL;
}

static struct handle *named(const char *word)
{
    int number;
    struct handle *h = handle_of(word, &number);

    if (!h)
        fail_msg("there is no %s", word);
    return h;
}

/* Made when it is first asked for. */
static const char *path_called(const char *name)
{
    size_t i = 0;

    while (i < path_count && strcmp(paths[i].name, name) != 0)
        i++;
    if (i == path_count) {
        check_num(path_count++, <, PATHS_MAX);
        snprintf(paths[i].name, sizeof paths[0].name, "%s", name);
        snprintf(paths[i].path, sizeof paths[0].path, "%s", cluster_path("steps"));
    }
    return paths[i].path;
}

/* A path, or one below it: ".", "p", "/name", "p/name", or a handle's. */
static const char *path_of(const char *word)
{
    size_t length = strcspn(word, "/");
    char name[32];
    int number;

    snprintf(name, sizeof name, "%.*s", length > 0 ? (int)length : 1, length > 0 ? word : ".");
    const struct handle *h = handle_of(name, &number);
    if (strncmp(word, "/steps-", 7) == 0) /* one that was kept */
        return word;
    const char *path = h ? h->path : path_called(name);
    return word[length] == '/' ? below(path, word + length + 1) : path;
}

static int own_node(const struct handle *h, char *out, size_t size)
{
    if (h->multi)
        return zkl_multi_node_path(h->multi, 0, out, size);
    return h->out > 0 ? zkl_permit_node_path(h->permits[h->out - 1], out, size)
                      : zkl_mutex_node_path(h->mutex, out, size);
}

/* As a client calls it. */
static const char *node_called(const char *word)
{
    static _Thread_local char nodes[8][700];
    static _Thread_local unsigned last;
    const char *nth = strchr(word, '#');
    int number;
    const struct handle *h = handle_of(word, &number);
    char *node = nodes[++last % 8];

    if (nth) {
        snprintf(node, sizeof nodes[0], "%.*s", (int)(nth - word), word);
        return child_of(path_of(node), (size_t)atoi(nth + 1)) + strlen(cluster_at(""));
    }
    if (!h)
        return path_of(word);
    check_num(own_node(h, node, sizeof nodes[0]), >, 0);
    return node;
}

static const char *node_at(const char *word)
{
    return cluster_at(node_called(word));
}

/* The words from that one on. */
static const char *text_from(const struct step *s, size_t i)
{
    static _Thread_local char text[700];

    text[0] = '\0';
    for (; i < s->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", text[0] ? " " : "",
                 s->words[i]);
    return text;
}

static bool has_word(const struct step *s, const char *word)
{
    size_t i = 0;

    while (i < s->count && strcmp(s->words[i], word) != 0)
        i++;
    return i < s->count;
}

static const char *first_word(const struct step *s)
{
    return s->count > 0 ? s->words[0] : ".";
}

static void say_code(struct step *s, int code)
{
    say(s, "%s", zkl_error_name(code) + strlen("ZKL_"));
    snprintf(s->detail, sizeof s->detail, "%s", code == 0 ? "" : zkl_error_detail());
}

/* --- handles ---------------------------------------------------------------------------------- */

static struct zkl_client *client_for(const struct step *s)
{
    struct zkl_client_options options = cluster_options();
    bool is_brief = has_word(s, "brief");
    char servers[200];

    options.owner = option(s, "owner");
    if (option(s, "of"))
        return named(option(s, "of"))->client;
    if (is_brief || has_word(s, "behind")) {
        proxy = world_proxy_for(&options);
        lie(proxy, option(s, "lies"));
    }
    if (option(s, "root")) {
        snprintf(servers, sizeof servers, "%s%s", options.servers, path_of(option(s, "root")));
        options.servers = servers;
    }
    int session_ms = (int)number(s, "session", is_brief ? BRIEF_MS : 0);
    options.session_timeout_ms = session_ms > 0 ? lag_session_ms(session_ms) : SESSION_MS;
    return world_client_with(&options);
}

static struct zkl_mutex_options options_of(const struct step *s)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.name = option(s, "name");
    options.names = option(s, "kazoo") ? ZKL_NAMES_KAZOO
                    : options.name     ? ZKL_NAMES_NAMED
                                       : options.names;
    options.owner = option(s, "of") ? option(s, "owner") : NULL; /* or it is the client's */
    options.retain_ms = number(s, "retain", 0);
    options.local_handoffs_max = (int)number(s, "handoffs", 0);
    options.revocable = has_word(s, "revocable");
    options.posted_unlock = has_word(s, "posted");
    options.metrics = has_word(s, "metrics");
    return options;
}

static void make_half(const struct handle *whole, const char *name, struct zkl_mutex *mutex)
{
    char both[64];

    snprintf(both, sizeof both, "%s.%s", whole->name, name);
    struct handle *half = new_handle(both);
    half->path = whole->path;
    half->client = whole->client;
    half->mutex = mutex;
}

static void make(const struct step *s, struct handle *h)
{
    struct zkl_mutex_options options = options_of(s);

    if (strcmp(s->verb, "mutex") == 0)
        h->mutex = world_mutex_with(h->client, h->path, &options);
    if (strcmp(s->verb, "any") == 0)
        h->mutex = world_semaphore_mutex(h->client, h->path);
    if (strcmp(s->verb, "semaphore") == 0)
        h->semaphore = world_semaphore(h->client, h->path, (int)number(s, "permits", 0), NULL);
    if (strcmp(s->verb, "owner") == 0) {
        h->owner = world_owner();
        h->op = UINT64_MAX; /* of none */
        h->grant = (struct zkl_grant)ZKL_GRANT_INIT;
    }
    if (strcmp(s->verb, "rwlock") != 0)
        return;
    h->rwlock = world_rwlock(h->client, h->path, NULL);
    make_half(h, "read", zkl_rwlock_reader(h->rwlock));
    make_half(h, "write", zkl_rwlock_writer(h->rwlock));
    check_ok(zkl_rwlock_retain_readers(h->rwlock, number(s, "retain", 0)));
}

static void make_each(const struct step *s)
{
    static const char *const flags[] = {"behind", "brief", "revocable", "posted", "metrics"};

    for (size_t i = 0; i < s->count; i++) {
        bool is_name = !strchr(s->words[i], '=');
        for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++)
            is_name = is_name && strcmp(s->words[i], flags[k]) != 0;
        if (!is_name)
            continue;
        struct handle *h = new_handle(s->words[i]);
        h->path = path_of(option(s, "at") ? option(s, "at") : ".");
        h->path = strcpy(world_alloc(strlen(h->path) + 1), h->path);
        h->client = client_for(s);
        make(s, h);
    }
}

/* Of the handles that its words name from the second one on. */
static struct handle multi_of(const struct step *s)
{
    struct handle h = {.count = s->count - 1};

    for (size_t i = 0; i < h.count; i++) {
        int count;
        const struct handle *member = handle_of(s->words[i + 1], &count);
        h.client = named(s->words[i + 1])->client;
        h.path = member->path;
        h.members[i] = member->semaphore ? zkl_member_semaphore(member->semaphore, count)
                                         : zkl_member_mutex(member->mutex);
    }
    return h;
}

static int new_multi(struct handle *h)
{
    return zkl_multi_new(&h->multi, h->client, h->members, h->count);
}

static int free_multi(void *multi)
{
    return zkl_multi_free(multi);
}

static void make_multi(const struct step *s)
{
    struct handle *h = new_handle(s->words[0]), whole = multi_of(s);

    check_ok(new_multi(&whole));
    world_keep(whole.multi, WORLD_MULTI, free_multi);
    strcpy(whole.name, h->name);
    *h = whole;
}

static int make_bad_multi(const struct step *s)
{
    struct handle h = multi_of(s);

    return new_multi(&h);
}

/* use OWNER, or nobody: its thread has that one from now on, in place of the one that is said. */
static void use_owner(struct step *s)
{
    const struct zkl_owner *before = zkl_owner_use(s->count > 0 ? named(s->words[0])->owner : NULL);

    say(s, "nobody");
    for (size_t i = 0; i < handle_count && before; i++) {
        if (handles[i].owner == before)
            say(s, "%s", handles[i].name);
    }
}

static bool obey_handles(struct step *s)
{
    DO("path", for (size_t i = 0; i < s->count; i++) path_called(s->words[i]));
    DO("mutex", make_each(s));
    DO("any", make_each(s));
    DO("rwlock", make_each(s));
    DO("semaphore", make_each(s));
    DO("client", make_each(s));
    DO("owner", make_each(s));
    DO("use", use_owner(s));
    DO("multi", make_multi(s));
    DO("new_multi", s->is_call = true; say_code(s, make_bad_multi(s)));
    DO("cancel", new_handle(s->words[0])->cancel = world_cancel());
    return false;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* for: ms from now, a deadline that has passed, or one that can't be; room: so many, and more on a slow machine. */
static struct zkl_wait wait_of(const struct step *s, unsigned flags)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    int64_t ms = option(s, "room") ? lag_room_ms(number(s, "room", 0)) : number(s, "for", 0);

    wait.flags = option(s, "try") ? ZKL_WAIT_TRY : flags;
    wait.flags |= option(s, "sync") ? ZKL_WAIT_SYNC : 0;
    wait.lease_ms = number(s, "lease", 0);
    if (option(s, "for") || option(s, "room"))
        wait.deadline_ns = ms <= 0 ? ms : zkl_now_ns() + ms * MS;
    if (option(s, "cancel"))
        wait.cancel = named(option(s, "cancel"))->cancel;
    return wait;
}

static int acquire(const struct step *s, unsigned flags)
{
    struct handle *h = s->handle;
    struct zkl_wait wait = wait_of(s, flags);

    if (h->multi) {
        int rc = zkl_multi_acquire(h->multi, &wait, NULL);
        return rc == 0 && !zkl_multi_still_held(h->multi, 1) ? ZKL_EUNPROVED : rc;
    }
    if (!h->semaphore)
        return zkl_mutex_acquire(h->mutex, &wait, NULL);
    int rc = zkl_semaphore_acquire(h->semaphore, s->number, &wait, h->permits + h->out);
    h->out += rc == 0 ? s->number : 0;
    return rc;
}

/* Of permits those that have been out for the longest time. */
static int give(struct handle *h, int count)
{
    int rc = 0;

    for (int i = 0; i < count && rc == 0; i++)
        rc = zkl_permit_release(h->permits[i]);
    h->out -= count;
    memmove(h->permits, h->permits + count, (size_t)h->out * sizeof h->permits[0]);
    return rc;
}

/* Of a multi-lock the detail has the code of each member. */
static void unlock_multi(struct step *s)
{
    const struct handle *h = s->handle;
    int codes[WORDS_MAX] = {[0 ... WORDS_MAX - 1] = 1}, rc = zkl_multi_unlock(h->multi, codes);

    say_code(s, rc);
    snprintf(s->detail, sizeof s->detail, "codes:");
    for (size_t i = 0; i < h->count; i++) {
        if (rc == 0 && codes[i] != 0)
            say_code(s, codes[i]);
        snprintf(s->detail + strlen(s->detail), 40, " %s",
                 zkl_error_name(codes[i]) + strlen("ZKL_"));
    }
}

/* Does the nth member have what its own questions say, and a node that is there? */
static bool is_granted(const struct handle *h, size_t n, const struct zkl_grant *grant)
{
    struct zkl_mutex *mutex = h->members[n].mutex;
    char node[700], same[700];
    int length = zkl_multi_node_path(h->multi, n, node, sizeof node);

    if (grant->token == 0 || grant->token != zkl_multi_token(h->multi, n) ||
        grant->hold_count != 1 || grant->window_ms <= 0 || length != (int)strlen(node) ||
        !node_is_there(node))
        return false;
    return !mutex || (zkl_mutex_token(mutex) == grant->token &&
                      zkl_mutex_node_path(mutex, same, sizeof same) > 0 && strcmp(node, same) == 0);
}

/* What was free is acquired, and looked at. */
static int lock_alone(const struct handle *h)
{
    struct zkl_grant grants[WORDS_MAX];

    for (size_t i = 0; i < h->count; i++)
        grants[i] = (struct zkl_grant)ZKL_GRANT_INIT;
    int rc = zkl_multi_acquire(h->multi, NULL, grants);
    for (size_t i = 0; i < h->count && rc == 0; i++)
        rc = is_granted(h, i, &grants[i]) ? 0 : ZKL_EPROTO;
    check_true(zkl_multi_token(h->multi, h->count) == 0);
    check_num(zkl_multi_node_path(h->multi, h->count, NULL, 0), ==, ZKL_EINVAL);
    return rc;
}

static int unlock(struct step *s)
{
    struct handle *h = s->handle;

    return h->semaphore ? give(h, s->number) : zkl_mutex_unlock(h->mutex);
}

static int do_cycles(struct step *s)
{
    int64_t end = net_now_ms() + number(s, "ms", 0);
    int rc = 0;

    for (int64_t i = number(s, "n", 1); rc == 0 && (i > 0 || net_now_ms() < end); i--) {
        rc = acquire(s, 0);
        if (rc == 0)
            rc = unlock(s);
    }
    return rc;
}

static uint64_t token_of_a_turn(struct zkl_mutex *mutex)
{
    check_ok(zkl_mutex_lock(mutex));
    uint64_t token = zkl_mutex_token(mutex);
    check_ok(zkl_mutex_unlock(mutex));
    return token;
}

/* Lock, but not the hold of this token again. */
static int lock_anew(const struct step *s)
{
    int rc = zkl_mutex_lock(s->handle->mutex);

    if (rc != 0 || zkl_mutex_token(s->handle->mutex) > (uint64_t)number(s, "than", 0))
        return rc;
    rc = zkl_mutex_unlock(s->handle->mutex);
    return rc != 0 ? rc : ZKL_EBUSY;
}

static int make_badly(const struct step *s)
{
    struct zkl_mutex_options options = options_of(s);
    struct zkl_mutex *mutex = NULL;

    return zkl_mutex_new(&mutex, s->handle->client, "/x", &options);
}

static int do_free(const struct handle *h)
{
    return h->rwlock      ? zkl_rwlock_free(h->rwlock)
           : h->semaphore ? zkl_semaphore_free(h->semaphore)
                          : zkl_mutex_free(h->mutex);
}

static void drop(const struct handle *h)
{
    world_drop(h->multi       ? (void *)h->multi
               : h->rwlock    ? (void *)h->rwlock
               : h->semaphore ? (void *)h->semaphore
               : h->mutex     ? (void *)h->mutex
               : h->cancel    ? (void *)h->cancel
                              : (void *)h->client);
}

static const char *asked_node(const struct step *s)
{
    return option(s, "exact") ? option(s, "exact") : node_called(option(s, "node"));
}

static unsigned flags_of(const struct step *s)
{
    return option(s, "force") ? ZKL_INSPECT_FORCE : (unsigned)number(s, "flags", 0);
}

static int do_revoke(const struct step *s)
{
    struct zkl_wait wait = wait_of(s, 0);

    return zkl_revoke(s->handle->client, asked_node(s), s->count > 2 ? &wait : NULL, flags_of(s));
}

static int do_break(const struct step *s)
{
    return zkl_break(s->handle->client, asked_node(s), (uint64_t)number(s, "czxid", 0), flags_of(s),
                     number(s, "for", WAIT_MS));
}

/* for=MS: what it says then, if the machine is slow or not. */
static int do_close(const struct step *s)
{
    int rc = zkl_client_close(s->handle->client, number(s, "for", WAIT_MS));

    return rc == ZKL_ETIMEDOUT && !option(s, "for") && lag_is_slow() ? 0 : rc; /* closed.h */
}

/* notes HANDLE into=HANDLE: its callback writes them, into another's. */
static int set_notes(const struct step *s)
{
    const struct handle *h = s->handle;
    struct notes *notes = option(s, "into") ? &named(option(s, "into"))->notes : &s->handle->notes;

    return h->semaphore ? zkl_semaphore_set_callback(h->semaphore, take_note, notes)
                        : zkl_mutex_set_callback(h->mutex, take_note, notes);
}

static int set_permits(const struct step *s)
{
    struct zkl_wait wait = wait_of(s, 0);

    return zkl_semaphore_set_permits(s->handle->semaphore, (int)number(s, "n", 0), &wait);
}

static int check_hold(const struct step *s)
{
    const struct handle *h = s->handle;

    return h->out > 0 ? zkl_permit_check(h->permits[s->number - 1], 1)
                      : zkl_mutex_check(h->mutex, number(s, "need", 1));
}

/* start HANDLE by=OWNER: an operation, with the options of a wait. Its end is awaited by "done OWNER". */
static int start(const struct step *s)
{
    const struct handle *h = s->handle;
    struct handle *by = named(option(s, "by"));
    struct zkl_wait wait = wait_of(s, 0);

    return h->multi ? zkl_multi_acquire_async(by->owner, h->multi, &wait, NULL, note_completion,
                                              &by->done, &by->op)
                    : zkl_mutex_acquire_async(by->owner, h->mutex, &wait, &by->grant,
                                              note_completion, &by->done, &by->op);
}

/* leave HANDLE by=OWNER: the other way, to its end. */
static int leave(const struct step *s)
{
    const struct handle *h = s->handle;
    struct handle *by = named(option(s, "by"));
    int codes[WORDS_MAX];

    if (!h->multi)
        return async_unlock(by->owner, h->mutex);
    int rc = zkl_multi_unlock_async(by->owner, h->multi, codes, note_completion, &by->done);
    rc = rc == 0 ? completion_code(&by->done) : rc;
    for (size_t i = 0; i < h->count && rc == 0; i++)
        rc = codes[i];
    return rc;
}

static bool obey_call(struct step *s)
{
    struct handle *h = s->handle;

    if (h->multi)
        DO("unlock", s->is_call = true; unlock_multi(s));
    CALL("lock", acquire(s, 0));
    CALL("try", acquire(s, ZKL_WAIT_TRY));
    CALL("unlock", unlock(s));
    CALL("cycle", do_cycles(s));
    CALL("check", check_hold(s));
    CALL("free", do_free(h));
    CALL("renew", zkl_mutex_renew(h->mutex, number(s, "ms", 0)));
    CALL("retain", zkl_rwlock_retain_readers(h->rwlock, number(s, "ms", 0)));
    CALL("set_permits", set_permits(s));
    CALL("close", do_close(s));
    CALL("revoke", do_revoke(s));
    CALL("break", do_break(s));
    CALL("lock_alone", lock_alone(h));
    CALL("lock_anew", lock_anew(s));
    CALL("new", make_badly(s));
    CALL("notes", set_notes(s));
    CALL("start", start(s));
    CALL("done", completion_code(&h->done));
    CALL("leave", leave(s));
    CALL("cancel_op", zkl_op_cancel(h->client, h->op));
    return false;
}

/* --- questions -------------------------------------------------------------------------------- */

static int is_held(const struct step *s)
{
    const struct handle *h = s->handle;

    return h->out > 0 ? zkl_permit_still_held(h->permits[h->out - 1], 1)
           : h->multi ? zkl_multi_still_held(h->multi, 1)
                      : zkl_mutex_still_held(h->mutex, number(s, "need", 1));
}

/* s*2: of its second permit. */
static int64_t window_of(const struct step *s)
{
    const struct handle *h = s->handle;

    return h->out > 0 ? zkl_permit_window_ms(h->permits[s->number - 1])
                      : zkl_mutex_window_ms(h->mutex);
}

static const char *hold_states[] = {"none", "HELD", "SUSPECT", "LOST", "REVOKE_REQUESTED"};

static const char *const reasons[] = {"NONE",    "LINK",         "WINDOW",
                                      "EXPIRED", "NODE_DELETED", "LEASE_ENDED",
                                      "CLOSED",  "OWNER_EXITED", "UNCHECKED"};

static const char *client_states[] = {"",        "CONNECTING",  "CONNECTED", "SUSPENDED",
                                      "EXPIRED", "AUTH_FAILED", "CLOSED"};

/* A lock: the window that is in the grant. */
static void say_acquired(struct step *s)
{
    struct zkl_wait wait = wait_of(s, 0);
    struct zkl_grant grant = ZKL_GRANT_INIT;

    int rc = zkl_mutex_acquire(s->handle->mutex, &wait, &grant);
    say(s, "%s %lld", zkl_error_name(rc) + strlen("ZKL_"), (long long)grant.window_ms);
}

/* NULL: none. */
static const struct note *last_note(struct notes *notes)
{
    size_t n = noted(notes);

    check_num(n, <=, NOTES_MAX);
    return n > 0 ? &notes->list[n - 1] : NULL;
}

static void say_note(struct step *s)
{
    const struct note *note = last_note(&s->handle->notes);

    say(s, "%s", "none");
    if (note)
        say(s, "%s %s", hold_states[note->state], reasons[note->reason]);
}

static uint64_t noted_token(struct notes *notes)
{
    const struct note *note = last_note(notes);

    return note ? note->token : 0;
}

/* What is behind the last '/', or '_', of the path of the hold's node. */
static void say_name(struct step *s, char before)
{
    char node[700] = "/_";

    own_node(s->handle, node, sizeof node);
    say(s, "%s", strrchr(node, before) + 1);
}

static int hold_state(const struct handle *h, enum zkl_reason *why)
{
    return h->multi ? zkl_multi_hold_state(h->multi, why) : zkl_mutex_hold_state(h->mutex, why);
}

static const char *reason_of(const struct handle *h)
{
    enum zkl_reason why = ZKL_REASON_NONE;

    hold_state(h, &why);
    return reasons[why];
}

static int waiting(const struct handle *h, struct zkl_standing *standing)
{
    return h->owner       ? zkl_op_waiting(h->client, h->op, standing)
           : h->semaphore ? zkl_semaphore_waiting(h->semaphore, standing)
                          : zkl_mutex_waiting(h->mutex, standing);
}

/* How many wait through the handle, how many are before the one that has waited longest, and who is the last of those; or
 * "nobody", or why there is no answer, which has written nothing. */
static struct zkl_standing say_standing(struct step *s)
{
    struct zkl_standing standing = ZKL_STANDING_INIT;

    standing.before = UINT64_MAX;
    int n = waiting(s->handle, &standing);
    if (n > 0)
        say(s, "%d %llu%s%s", n, (unsigned long long)standing.before, standing.owner[0] ? " " : "",
            standing.owner);
    else if (standing.before == UINT64_MAX)
        say(s, "%s", zkl_error_detail()[0] ? zkl_error_detail() : "nobody");
    return standing;
}

/* Nothing is under way for this client. */
static bool is_at_rest(struct zkl_client *client)
{
    zkl_driver_lock(client->driver);
    bool rest = !client->driver->core.first && client->driver->core.pending_count == 0;
    zkl_driver_unlock(client->driver);
    return rest;
}

static void add_figure(struct step *s, const char *name, uint64_t value)
{
    size_t length = strlen(s->value);

    if (value > 0)
        snprintf(s->value + length, sizeof s->value - length, "%s%s=%llu", length > 0 ? " " : "",
                 name, (unsigned long long)value);
}

/* Of the handle's path, or of all of the client's: those that are not 0, and failures by their code. */
static void say_figures(struct step *s)
{
    const struct handle *h = s->handle;
    struct zkl_lock_metrics m = ZKL_LOCK_METRICS_INIT;
    int rc =
        h->mutex ? zkl_mutex_get_metrics(h->mutex, &m) : zkl_client_get_lock_metrics(h->client, &m);

    say(s, "%s", rc == 0 ? "" : zkl_error_detail());
    add_figure(s, "acquired", m.acquisitions);
    add_figure(s, "waits", m.wait.count);
    add_figure(s, "reentries", m.reentries);
    add_figure(s, "released", m.releases);
    add_figure(s, "holds", m.hold.count);
    add_figure(s, "unconfirmed", m.unconfirmed);
    add_figure(s, "held", m.held);
    add_figure(s, "waiting", m.waiting);
    add_figure(s, "before", m.queue_before);
    for (int code = 0; code < ZKL_METRICS_CODES; code++)
        add_figure(s, zkl_error_name(-code) + strlen("ZKL_"), m.failures[code]);
}

static struct zkl_client_metrics client_figures(const struct handle *h)
{
    struct zkl_client_metrics m = ZKL_CLIENT_METRICS_INIT;

    check_ok(zkl_client_get_metrics(h->client, &m));
    return m;
}

/* But what may be put off, and keepalives. */
static uint64_t requests_counted(const struct handle *h)
{
    struct zkl_client_metrics m = client_figures(h);
    uint64_t sum = 0;

    for (int kind = 0; kind < ZKL_METRICS_REQUESTS; kind++) {
        if (kind != ZKL_METRICS_REQUEST_KEEPALIVE && kind != ZKL_METRICS_REQUEST_WATCH)
            sum += m.requests[kind];
    }
    return sum;
}

/* That the client has figures of. */
static size_t paths_counted(struct zkl_client *client)
{
    size_t n = 0;

    zkl_driver_lock(client->driver);
    for (size_t i = 0; i < ZKL_LOCK_PATH_BUCKETS; i++) {
        for (const struct zkl_lock_path *root = client->lock_paths[i]; root; root = root->next)
            n++;
    }
    zkl_driver_unlock(client->driver);
    return n;
}

static bool obey_question(struct step *s)
{
    struct handle *h = s->handle;

    DO("count", say(s, "%d", zkl_mutex_hold_count(h->mutex)));
    DO("held", say(s, "%d", is_held(s)));
    DO("token", say(s, "%llu",
                    (unsigned long long)(h->multi ? zkl_multi_token(h->multi, (size_t)s->number)
                                                  : zkl_mutex_token(h->mutex))));
    DO("window", say(s, "%lld", (long long)window_of(s)));
    DO("state", say(s, "%s", hold_states[hold_state(h, NULL)]));
    DO("why", say(s, "%s", reason_of(h)));
    DO("waiting", say(s, "%d", waiting(h, NULL)));
    DO("stands", say_standing(s));
    DO("since", say(s, "%lld", (long long)say_standing(s).since_ns));
    DO("predecessor", say(s, "%s/%s", h->path, say_standing(s).predecessor));
    DO("acquired", say_acquired(s));
    DO("granted",
       say(s, "%llu %lld", (unsigned long long)h->grant.token, (long long)h->grant.hold_count));
    DO("figures", say_figures(s));
    DO("backlog", say(s, "%llu", (unsigned long long)client_figures(h).janitor_backlog));
    DO("outstanding", say(s, "%llu", (unsigned long long)client_figures(h).outstanding));
    DO("requests", say(s, "%llu", (unsigned long long)requests_counted(h)));
    DO("paths", say(s, "%zu", paths_counted(h->client)));
    DO("session_id", say(s, "%lld", (long long)zkl_client_session_id(h->client)));
    DO("requested", say(s, "%d", zkl_mutex_revoke_requested(h->mutex)));
    DO("permits", say(s, "%d", zkl_semaphore_permits(h->semaphore)));
    DO("knows_request", say(s, "%d", inside_knows_request(h->client)));
    DO("in_line", say(s, "%zu", inside_waiting(h->mutex)));
    DO("client_state", say(s, "%s", client_states[zkl_client_get_state(h->client)]));
    DO("at_rest", say(s, "%d", is_at_rest(h->client)));
    DO("name", say_name(s, '/'));
    DO("digits", say_name(s, '_'));
    DO("noted", say(s, "%zu", noted(&h->notes)));
    DO("note", say_note(s));
    DO("noted_token", say(s, "%llu", (unsigned long long)noted_token(&h->notes)));
    DO("set", zkl_cancel_set(h->cancel));
    DO("keep", check_wait(token_of_a_turn(h->mutex) == token_of_a_turn(h->mutex), WAIT_MS));
    DO("gets", check_try_gets(h->mutex));
    DO("drop", drop(h));
    DO("drop_client", world_drop(h->client));
    return false;
}

bool obey_handle(struct step *s)
{
    return obey_call(s) || obey_question(s) || obey_fault(s);
}

/* --- nodes ------------------------------------------------------------------------------------ */

static void say_data(struct step *s)
{
    if (wire_get(raw, node_at(s->words[0]), s->value, sizeof s->value, NULL) != 0)
        say(s, "no node");
}

/* How many there are of each path. */
static void say_children(struct step *s)
{
    say(s, "%d", cluster_children(path_of(first_word(s))));
    for (size_t i = 1; i < s->count; i++)
        snprintf(s->value + strlen(s->value), 20, " %d", cluster_children(path_of(s->words[i])));
}

/* Those with the mark that a try of a writer asks for. */
static void say_marked(struct step *s)
{
    const char *path = path_of(first_word(s));
    int count = 0;

    for (int i = 0; i < cluster_children(path); i++)
        count += zkl_name_is_retained(strrchr(child_of(path, (size_t)i), '/') + 1);
    say(s, "%d", count);
}

static struct wire_stat stat_of(const char *word)
{
    struct wire_stat stat;

    check_ok(wire_exists(raw, node_at(word), &stat));
    return stat;
}

static void create(struct step *s, int flags)
{
    char made[700];

    check_ok(wire_create(raw, cluster_at(path_of(s->words[0])), text_from(s, 1), flags, made,
                         sizeof made));
    say(s, "%s", made + strlen(cluster_at("")));
}

/* denied NODE RIGHTS DATA: nobody else has these rights there, of "rwcd". */
static void make_without(const struct step *s, int flags)
{
    static const char letters[] = "rwcd";
    int rights = 0;

    for (const char *at = letters; *at; at++)
        rights |= strchr(s->words[1], *at) ? 1 << (at - letters) : 0;
    make_denied(path_of(s->words[0]), rights, text_from(s, 2), flags);
}

/* Another session's, which may be abandoned. */
static void make_mortal(const struct step *s)
{
    check_ok(wire_open(&mortal, zks_host(), zks_port(server, 0), 1000));
    check_ok(wire_create(mortal, cluster_at(path_of(s->words[0])), "", WIRE_EPHEMERAL_SEQUENTIAL,
                         NULL, 0));
}

/* since=TIME until=MS: so many have passed. */
static bool is_over(const struct step *s)
{
    return option(s, "until") && net_now_ms() - number(s, "since", 0) >= number(s, "until", 0);
}

/* entry HANDLE N FIELD: what a look says of one. */
static void say_entry(struct step *s)
{
    const struct zkl_inspection *seen = inspect_lock(named(s->words[0])->client, path_of("."));
    size_t n = (size_t)atoi(s->words[1]);
    check_num(n, <, seen->count);
    const struct zkl_entry *e = &seen->entries[n];
    const struct {
        const char *name;
        long long value;
    } fields[] = {
        {"session", e->session}, {"czxid", (long long)e->czxid},
        {"age", e->age_ms},      {"revoked", e->revoke_requested},
        {"pid", e->pid},         {"children", (long long)e->children},
        {"thread", e->thread},   {"denied", e->denied},
    };

    say(s, "%s", strcmp(s->words[2], "host") == 0 ? e->host : e->owner);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(fields[i].name, s->words[2]) == 0)
            say(s, "%lld", fields[i].value);
    }
}

/* entry_is_so HANDLE N: what the server says of the node is what a look says, and this process made it. */
static void check_entry(const struct step *s)
{
    const struct zkl_inspection *seen = inspect_lock(named(s->words[0])->client, path_of("."));
    const struct zkl_entry *e = &seen->entries[atoi(s->words[1])];
    char data[600], host[80], text[160];
    struct wire_stat stat;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    check_ok(wire_get(raw, cluster_at(e->node_path), data, sizeof data, &stat));
    int64_t age = (int64_t)now.tv_sec * 1000 + now.tv_nsec / MS - stat.ctime_ms;
    check_num(e->czxid, ==, stat.czxid);
    check_num(e->session, ==, stat.ephemeral_owner);
    check_text(e->owner, data);
    check_num(e->age_ms, >=, 0);
    check_num(e->age_ms, <=, age);
    check_num(e->age_ms, >=, age - 20000);
    check_ok(gethostname(host, sizeof host));
    check_text(e->host, host);
    check_num(e->pid, ==, getpid());
    snprintf(text, sizeof text, "%s %d %lld", host, getpid(), (long long)e->thread);
    check_text(text, data);
    check_num(e->revoke_requested, ==, 0);
    check_text(e->name, "");
    check_text(e->peer, "curator");
}

/* look HANDLE at=PATH exact=PATH for=MS */
static void look(struct step *s)
{
    const char *at = option(s, "at") ? option(s, "at") : ".";

    say_inspection(named(s->words[0])->client,
                   option(s, "exact") ? option(s, "exact") : path_of(at), number(s, "for", WAIT_MS),
                   s->value, sizeof s->value);
}

static bool obey_nodes(struct step *s)
{
    DO("nodes", say_children(s));
    DO("marked", say_marked(s));
    DO("permits_of", say(s, "%d %d", cluster_children(below(path_of(s->words[0]), "leases")),
                         cluster_children(below(path_of(s->words[0]), "locks"))));
    DO("watches", say(s, "%d", node_watches(s->count > 0 ? node_called(s->words[0]) : NULL)));
    DO("all_watches", say(s, "%d", all_watches()));
    DO("exists", say(s, "%d", node_is_there(node_called(s->words[0])) || is_over(s)));
    DO("data", say_data(s));
    DO("czxid", say(s, "%lld", (long long)stat_of(s->words[0]).czxid));
    DO("session_of", say(s, "%lld", (long long)stat_of(s->words[0]).ephemeral_owner));
    DO("node", say(s, "%s", node_called(s->words[0])));
    DO("make",
       say(s, "%llu", (unsigned long long)make_node(path_of(s->words[0]), text_from(s, 1))));
    DO("root", create(s, WIRE_PERSISTENT));
    DO("container", create(s, WIRE_CONTAINER));
    DO("sequential", create(s, WIRE_EPHEMERAL_SEQUENTIAL));
    DO("mortal", make_mortal(s));
    DO("abandon", wire_abandon(mortal));
    DO("denied", make_without(s, WIRE_EPHEMERAL));
    DO("denied_root", make_without(s, WIRE_PERSISTENT));
    DO("write", check_ok(wire_set(raw, node_at(s->words[0]), text_from(s, 1), -1)));
    DO("delete",
       for (size_t i = 0; i < s->count; i++) check_ok(wire_delete(raw, node_at(s->words[i]), -1)));
    DO("delete_all", check_ok(wire_delete_tree(raw, cluster_at(path_of(first_word(s))))));
    DO("entry", say_entry(s));
    DO("entry_is_so", check_entry(s));
    DO("look", look(s));
    DO("session", say(s, "%lld", (long long)wire_session(raw)));
    return false;
}

/* --- the proxy -------------------------------------------------------------------------------- */

static enum proxy_op op_of(const char *word)
{
    static const struct {
        const char *name;
        enum proxy_op op;
    } ops[] = {
        {"GET", PROXY_GET},
        {"SET", PROXY_SET},
        {"ANY", PROXY_ANY},
        {"SYNC", PROXY_SYNC},
        {"PING", PROXY_PING},
        {"EVENT", PROXY_EVENT},
        {"MULTI", PROXY_MULTI},
        {"DELETE", PROXY_DELETE},
        {"EXISTS", PROXY_EXISTS},
        {"CREATE", PROXY_CREATE},
        {"CONNECT", PROXY_CONNECT},
        {"CREATE2", PROXY_CREATE2},
        {"CHILDREN", PROXY_CHILDREN},
        {"LIST", PROXY_CHILDREN2},
        {"CONTAINER", PROXY_CREATE_CONTAINER},
        {"UNWATCH", PROXY_REMOVE_WATCHES},
    };
    size_t i = 0;

    while (i < sizeof ops / sizeof ops[0] && strcmp(ops[i].name, word) != 0)
        i++;
    check_num(i, <, sizeof ops / sizeof ops[0]);
    return ops[i].op;
}

/* Of all of them together; without words of all but keepalives, pings and heartbeats. */
static void say_counts(struct step *s)
{
    int64_t n = s->count == 0 ? requests(proxy) : 0;

    for (size_t i = 0; i < s->count; i++)
        n += proxy_counts(proxy, op_of(s->words[i]));
    say(s, "%lld", (long long)n);
}

/* hold, lose: request|reply OP, nth=N and silent=1 may follow */
static void catch_frame(const struct step *s, bool hold)
{
    bool reply = strcmp(s->words[0], "reply") == 0;
    enum proxy_op op = op_of(s->words[1]);
    int nth = (int)number(s, "nth", 1);

    if (hold)
        check_ok(reply ? proxy_hold_reply(proxy, op, nth) : proxy_hold_request(proxy, op, nth));
    else
        check_ok((reply ? proxy_drop_reply : proxy_drop_request)(
            proxy, op, nth, option(s, "silent") ? PROXY_THEN_SILENT : PROXY_THEN_CUT));
}

/* A watch event is: xid -1, zxid, error, then type, state, and the path behind its length. The hook changes the path of
 * an event if it begins with start, so that the client does not hear of it. */
static size_t mute(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *start)
{
    const size_t head = 4 + 8 + 4 + 4 + 4 + 4, length = strlen(start);

    if (dir == PROXY_TO_CLIENT && op == PROXY_EVENT && size >= head + length &&
        memcmp(frame + head, start, length) == 0)
        frame[size - 1] = '!';
    return size;
}

static void mute_events_of(const char *word)
{
    static char start[700];

    snprintf(start, sizeof start, "%s", node_at(word));
    proxy_set_hook(proxy, mute, start);
}

static bool obey_proxy(struct step *s)
{
    DO("hold", catch_frame(s, true));
    DO("lose", catch_frame(s, false));
    DO("holds", check_ok(proxy_wait_held(proxy, WAIT_MS)));
    DO("has_lost", check_ok(proxy_wait_dropped(proxy, WAIT_MS)));
    DO("let_go", proxy_release(proxy));
    DO("cut", proxy_cut(proxy));
    DO("unlink", lose_link(proxy));
    DO("link", check_ok(proxy_refuse(proxy, false)));
    DO("silence", proxy_hole(proxy, PROXY_BOTH));
    DO("heal", proxy_heal(proxy));
    DO("delay", proxy_delay_ms(proxy, atoi(s->words[0])));
    DO("deny_exists", deny_exists(proxy, "steps-"));
    DO("mute", mute_events_of(s->words[0]));
    DO("unmute", proxy_set_hook(proxy, NULL, NULL));
    DO("reset", proxy_reset_counts(proxy));
    DO("counts", say_counts(s));
    return false;
}

/* --- time ------------------------------------------------------------------------------------- */

/* soon TIME MS: so few have passed since then, or the machine is slow. */
static bool obey_time(struct step *s)
{
    int64_t since = s->count > 0 ? strtoll(s->words[0], NULL, 10) : 0;

    DO("tid", say(s, "%d", gettid()));
    DO("nap", net_nap_ms((int)since));
    DO("clock", say(s, "%lld", (long long)zkl_now_ns()));
    DO("now", say(s, "%lld", (long long)(net_now_ms() - since)));
    DO("intervals",
       say(s, "%lld", (long long)((net_now_ms() - since) / atoi(s->words[1]) + atoi(s->words[2]))));
    DO("lag", lag_begin());
    DO("counted", say(s, "%lld", (long long)lag_end_ms()));
    DO("soon", check_true(net_now_ms() - since < atoi(s->words[1]) || lag_is_slow()));
    return false;
}

bool obey_words(struct step *s)
{
    return obey_handles(s) || obey_nodes(s) || obey_proxy(s) || obey_lies(s, proxy) || obey_time(s);
}
