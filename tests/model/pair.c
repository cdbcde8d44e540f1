/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"

#include "cluster.h"
#include "sim/kinds.h"

#define ASKED_MAX 65536 /* in the life of a pair */
#define TEXT_MAX 16384

/* The requests by their id, and the watches by theirs: an answer has only the ids. */
struct asked {
    enum zkl_request_kind kind;
    char path[128];
    bool child; /* a watch's type */
};

enum { SIMULATED, REAL, SIDES };

struct pair {
    struct side *sides[SIDES];
    struct asked *asked;
    uint64_t last_id;
    char told[SIDES][SIDE_CLIENTS][TEXT_MAX];
    char refused[SIDES][SIDE_CLIENTS][512]; /* refused before it was sent; comes first */
    char *names[SIDE_CLIENTS][64];
    size_t name_count[SIDE_CLIENTS];
};

/* --- tapes ------------------------------------------------------------------------------------ */

void tape_add(struct tape *tape, struct told told)
{
    if (tape->count == tape->room) {
        tape->room = tape->room ? 2 * tape->room : 16;
        tape->list = realloc(tape->list, tape->room * sizeof *tape->list);
        if (!tape->list)
            abort();
    }
    tape->list[tape->count++] = told;
}

void tape_reply(struct tape *tape, const struct zkl_reply *reply)
{
    struct zkl_reply copy = *reply;
    char **names = calloc(reply->child_count + 1, sizeof *names);

    for (size_t i = 0; i < reply->child_count; i++)
        names[i] = strdup(reply->children[i]);
    copy.children = (const char *const *)names;
    copy.name = reply->name ? strdup(reply->name) : NULL;
    copy.data = reply->data ? strndup(reply->data, reply->data_size) : NULL;
    tape_add(tape, (struct told){.type = TOLD_REPLY, .reply = copy});
}

static void forget_told(struct tape *tape)
{
    for (size_t i = 0; i < tape->count; i++) {
        struct zkl_reply *reply = &tape->list[i].reply;

        if (tape->list[i].type != TOLD_REPLY)
            continue;
        for (size_t j = 0; j < reply->child_count; j++)
            free((char *)reply->children[j]);
        free((void *)reply->children);
        free((char *)reply->name);
        free((char *)reply->data);
    }
    tape->count = 0;
}

void tape_clear(struct tape *tape)
{
    forget_told(tape);
    free(tape->list);
    *tape = (struct tape){0};
}

/* --- as text ---------------------------------------------------------------------------------- */

static const char *const answers[] = {
    [ZKL_ANSWER_OK] = "ok",
    [ZKL_ANSWER_LINK] = "link",
    [ZKL_ANSWER_NONODE] = "nonode",
    [ZKL_ANSWER_EXISTS] = "exists",
    [ZKL_ANSWER_NOTEMPTY] = "notempty",
    [ZKL_ANSWER_NOAUTH] = "noauth",
    [ZKL_ANSWER_UNIMPLEMENTED] = "unimplemented",
    [ZKL_ANSWER_NOWATCHER] = "nowatcher",
    [ZKL_ANSWER_QUOTA] = "quota",
    [ZKL_ANSWER_READONLY] = "readonly",
    [ZKL_ANSWER_BADPATH] = "badpath",
    [ZKL_ANSWER_AUTH] = "auth",
    [ZKL_ANSWER_NOMEM] = "nomem",
    [ZKL_ANSWER_FULL] = "full",
    [ZKL_ANSWER_ROLLED_BACK] = "rolled-back",
    [ZKL_ANSWER_OTHER] = "other",
};

static size_t place_of(const int64_t *list, size_t count, int64_t value)
{
    size_t i = 0;

    while (i < count && list[i] != value)
        i++;
    return i;
}

static size_t zxid_number(struct side *side, int64_t zxid)
{
    size_t i = place_of(side->zxids, side->zxid_count, zxid);

    if (i == side->zxid_count) {
        check_num(i, <, SIDE_ZXIDS);
        side->zxids[side->zxid_count++] = zxid;
    }
    return i;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void write_reply(FILE *to, struct side *side, const struct asked *asked,
                        const struct zkl_reply *reply)
{
    fprintf(to, "%s %s%s%s", request_kinds[asked->kind], asked->path, asked->path[0] ? " " : "",
            answers[reply->answer]);
    if (reply->name)
        fprintf(to, " %s", reply->name);
    if (reply->czxid)
        fprintf(to, " z%zu", zxid_number(side, reply->czxid));
    if (reply->node_session)
        fprintf(to, " s%zu", place_of(side->sessions, side->session_count, reply->node_session));
    if (reply->version)
        fprintf(to, " v%d", reply->version);
    if (reply->node_children)
        fprintf(to, " n%d", reply->node_children);
    if (asked->kind == ZKL_REQ_LIST && reply->pzxid)
        fprintf(to, " c%d p%zu", reply->cversion, zxid_number(side, reply->pzxid));
    if (reply->data)
        fprintf(to, " \"%s\"", reply->data);
    if (reply->child_count > 0) {
        /* The order of a transaction's names is that of its parts. */
        if (asked->kind != ZKL_REQ_CREATE_ALL)
            qsort((void *)reply->children, reply->child_count, sizeof *reply->children, by_text);
        for (size_t i = 0; i < reply->child_count; i++)
            fprintf(to, "%s%s", i == 0 ? " [" : " ", reply->children[i]);
        fprintf(to, "]");
    }
    if (reply->failed_check)
        fprintf(to, " @%zu", reply->failed_check);
}

static void write_told(FILE *to, struct pair *pair, struct side *side, const struct told *told)
{
    const struct asked *watched = &pair->asked[told->watch_id];

    if (told->type == TOLD_REPLY)
        write_reply(to, side, &pair->asked[told->reply.id], &told->reply);
    else if (told->type == TOLD_FIRED)
        fprintf(to, "fired %s %s %s", told->fired == ZKL_FIRED_DELETED ? "deleted" : "changed",
                watched->child ? "child" : "data", watched->path);
    else if (told->type == TOLD_UP)
        fprintf(to, "up s%zu", place_of(side->sessions, side->session_count, told->session));
    else
        fprintf(to, "%s", told->type == TOLD_DOWN ? "down" : "expired");
    fprintf(to, "\n");
}

/* --- in which order --------------------------------------------------------------------------- */

static const struct pair *sorting;
static bool after_link;

/* The server fires the watches of one path in any order. After a reconnect, and when it removes the
 * nodes of a session, it fires those of all paths in any order. */
static bool is_one_run(const struct pair *pair, const struct told *a, const struct told *b)
{
    return a->type == TOLD_FIRED && b->type == TOLD_FIRED &&
           (after_link || pair->sides[SIMULATED]->session_ended ||
            strcmp(pair->asked[a->watch_id].path, pair->asked[b->watch_id].path) == 0);
}

static int by_watch(const void *a, const void *b)
{
    uint64_t left = ((const struct told *)a)->watch_id, right = ((const struct told *)b)->watch_id;
    int type = sorting->asked[left].child - sorting->asked[right].child;

    return type != 0 ? type : (left > right) - (left < right);
}

static void sort_runs(const struct pair *pair, struct tape *tape)
{
    sorting = pair;
    after_link = false;
    for (size_t i = 0, n; i < tape->count; i += n) {
        if (tape->list[i].type != TOLD_FIRED)
            after_link = tape->list[i].type == TOLD_UP;
        n = 1;
        while (i + n < tape->count && is_one_run(pair, &tape->list[i], &tape->list[i + n]))
            n++;
        qsort(&tape->list[i], n, sizeof *tape->list, by_watch);
    }
}

static int sign(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static bool zxids_agree(const struct pair *pair, size_t from)
{
    const struct side *a = pair->sides[SIMULATED], *b = pair->sides[REAL];

    for (size_t i = from; i < a->zxid_count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (sign(a->zxids[i], a->zxids[j]) == sign(b->zxids[i], b->zxids[j]))
                continue;
            print_error("czxids z%zu and z%zu: simulated %lld and %lld, real %lld and %lld\n", i, j,
                        (long long)a->zxids[i], (long long)a->zxids[j], (long long)b->zxids[i],
                        (long long)b->zxids[j]);
            return false;
        }
    }
    return true;
}

/* --- comparing -------------------------------------------------------------------------------- */

static void keep_names(struct pair *pair, size_t client, const struct tape *tape)
{
    for (size_t i = 0; i < pair->name_count[client]; i++)
        free(pair->names[client][i]);
    pair->name_count[client] = 0;
    for (size_t i = 0; i < tape->count; i++) {
        const struct zkl_reply *reply = &tape->list[i].reply;
        bool one = tape->list[i].type == TOLD_REPLY && reply->name;

        for (size_t j = 0; j < reply->child_count + one && pair->name_count[client] < 64; j++)
            pair->names[client][pair->name_count[client]++] =
                strdup(j < reply->child_count ? reply->children[j] : reply->name);
    }
}

static void write_tape(struct pair *pair, size_t which, size_t client)
{
    struct side *side = pair->sides[which];
    struct tape *tape = &side->tapes[client];
    char *out = pair->told[which][client];
    FILE *to = fmemopen(out, TEXT_MAX, "w");

    check_true(to);
    fprintf(to, "%s", pair->refused[which][client]);
    pair->refused[which][client][0] = '\0';
    sort_runs(pair, tape);
    for (size_t i = 0; i < tape->count; i++)
        write_told(to, pair, side, &tape->list[i]);
    fputc('\0', to);
    fclose(to);
    if (which == SIMULATED)
        keep_names(pair, client, tape);
    forget_told(tape);
}

void pair_settle(struct pair *pair)
{
    pair_do(pair, settle);
    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        check_num(pair->sides[SIMULATED]->linked[i], ==, pair->sides[REAL]->linked[i]);
        for (size_t which = 0; which < SIDES; which++)
            write_tape(pair, which, i);
    }
    pair->sides[SIMULATED]->session_ended = false;
}

bool pair_agrees(struct pair *pair)
{
    size_t known = pair->sides[SIMULATED]->zxid_count;
    bool agrees = true;

    pair_settle(pair);
    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        if (strcmp(pair->told[SIMULATED][i], pair->told[REAL][i]) == 0)
            continue;
        print_error("reports to client %zu, simulated ensemble:\n%sreal server:\n%s", i,
                    pair->told[SIMULATED][i], pair->told[REAL][i]);
        agrees = false;
    }
    return agrees && zxids_agree(pair, known);
}

const char *pair_told(const struct pair *pair, size_t client)
{
    return pair->told[REAL][client];
}

const char *pair_name(const struct pair *pair, size_t client, size_t n)
{
    return n < pair->name_count[client] ? pair->names[client][n] : NULL;
}

/* --- steps ------------------------------------------------------------------------------------ */

struct side *pair_side(struct pair *pair, size_t which)
{
    return which < SIDES ? pair->sides[which] : NULL;
}

static void number(struct pair *pair, struct zkl_request *request)
{
    struct asked *asked = &pair->asked[++pair->last_id];

    check_num(pair->last_id, <, ASKED_MAX);
    request->id = pair->last_id;
    asked->kind = request->kind;
    asked->child = request->kind == ZKL_REQ_LIST_LOCK_PATH;
    snprintf(asked->path, sizeof asked->path, "%s", request->path ? request->path : "");
    if (request->watch_id != 0) /* whatever it is, one of our own */
        request->watch_id = request->id;
}

bool pair_send(struct pair *pair, size_t client, struct zkl_request request)
{
    bool sent = true;

    number(pair, &request);
    for (size_t which = 0; which < SIDES; which++) {
        struct side *side = pair->sides[which];
        enum zkl_answer answer = side->calls->send(side, client, &request);
        char *out = pair->refused[which][client];
        size_t used = strlen(out);

        sent = sent && answer == ZKL_ANSWER_OK;
        if (answer != ZKL_ANSWER_OK)
            snprintf(out + used, sizeof pair->refused[0][0] - used, "%s %s refused: %s\n",
                     request_kinds[request.kind], request.path, answers[answer]);
    }
    return sent;
}

void pair_lose(struct pair *pair, size_t client, struct zkl_request request, bool carried_out)
{
    number(pair, &request);
    pair_do(pair, lose, client, &request, carried_out);
}

/* --- its life --------------------------------------------------------------------------------- */

struct pair *pair_new(void)
{
    struct pair *pair = calloc(1, sizeof *pair);

    check_true(pair);
    pair->asked = calloc(ASKED_MAX, sizeof *pair->asked);
    check_true(pair->asked);
    pair->sides[SIMULATED] = simulated_new();
    pair->sides[REAL] = real_new(cluster_path("model"));
    return pair;
}

void pair_free(struct pair *pair)
{
    pair_do(pair, free);
    for (size_t client = 0; client < SIDE_CLIENTS; client++) {
        for (size_t i = 0; i < pair->name_count[client]; i++)
            free(pair->names[client][i]);
    }
    free(pair->asked);
    free(pair);
}
