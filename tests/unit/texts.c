/* SPDX-License-Identifier: Apache-2.0
 * Commands for what is decided by text alone: names, server lists, queues, listings. */
#include "core/bundle.h"
#include "core/listing.h"
#include "core/queue.h"
#include "core/read_cache.h"
#include "core/servers.h"
#include "driver/zkmap.h"
#include "script.h"

#define CHILDREN_MAX 40

static const char *const roles[ZKL_ROLES] = {"lock", "read", "write", "permit"};

static const char *text(const struct command *c, size_t i)
{
    char out[TEXT_MAX];
    read_text(word(c, i), out);
    return keep(out);
}

/* --- names ------------------------------------------------------------------ */

static const char *fault_of(const char *kind, const char *of, size_t size)
{
    if (strcmp(kind, "path") == 0)
        return zkl_path_fault(of);
    if (strcmp(kind, "node_path") == 0)
        return zkl_node_path_fault(of);
    if (strcmp(kind, "lock_name") == 0)
        return zkl_lock_name_fault(of);
    if (strcmp(kind, "servers") == 0)
        return zkl_servers_fault(of);
    if (strcmp(kind, "printable") == 0)
        return zkl_text_is_printable(of, size) ? NULL : "is not";
    if (strcmp(kind, "retained") == 0)
        return zkl_name_is_retained(of) ? NULL : "is not";
    fail_here("what is %s?", kind);
}

/* good KIND WORDS; bad KIND WORDS [: WHY]: each of them is, or has a fault, and that says why. */
static void judge_each(const struct command *c, bool good)
{
    char of[TEXT_MAX];
    const char *why = strstr(rest(c, 2), " : ");
    for (size_t i = 2; i < c->count && strcmp(c->words[i], ":") != 0; i++) {
        const char *fault = fault_of(word(c, 1), of, read_text(c->words[i], of));
        if (!fault != good || (fault && why && !strstr(fault, why + 3)))
            fail_here("%s: %s", c->words[i], fault ? fault : "accepted");
    }
}

/* A role, with ",kazoo" or ",named=NAME". */
static struct zkl_naming naming(const char *from)
{
    char role[20];
    const char *name = strchr(from, '=');
    struct zkl_naming result = {0};
    snprintf(role, sizeof role, "%.*s", (int)strcspn(from, ","), from);
    result.role = (enum zkl_role)INDEX_OF(roles, role);
    result.names = strstr(from, ",kazoo") ? ZKL_NAMES_KAZOO
                   : name                 ? ZKL_NAMES_NAMED
                                          : (enum zkl_names)0;
    if (name) {
        char out[TEXT_MAX];
        read_text(name + 1, out);
        zkl_text_copy(result.name, sizeof result.name, out);
    }
    return result;
}

/* guid BYTES [retained]: 16 as hexadecimal digits */
static void say_guid(const struct command *c)
{
    unsigned char bytes[16];
    char guid[ZKL_GUID_LEN + 1];
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(sscanf(word(c, 1) + 2 * i, "%2hhx", &bytes[i]), 1);
    zkl_guid_format(bytes, guid);
    if (c->count > 2 && strcmp(word(c, 2), "retained") == 0)
        zkl_guid_mark_retained(guid);
    says(c, "%s", guid);
}

/* prefix NAMING GUID|nil; length NAMING -> bytes of a whole name, of so many at most */
static void say_prefix(const struct command *c, bool length)
{
    char prefix[ZKL_NODE_NAME_MAX + 1];
    struct zkl_naming of = naming(word(c, 1));
    bool nil = length || strcmp(word(c, 2), "nil") == 0;
    zkl_name_prefix(&of, nil ? NIL_GUID : word(c, 2), prefix);
    if (!length) {
        says(c, "%s", prefix);
        return;
    }
    assert_int_equal(zkl_name_length(&of), strlen(prefix) + strlen("-2147483648"));
    says(c, "%zu of %d", zkl_name_length(&of), ZKL_NODE_NAME_MAX);
}

static const char *peer_name(enum zkl_peer peer)
{
    return peer == ZKL_PEER_CURATOR ? "curator" : peer == ZKL_PEER_KAZOO ? "kazoo" : "zookeeper";
}

/* parse NAME [NAMING]: what such a contender takes it for */
static void say_parsed(const struct command *c)
{
    struct zkl_naming of = naming(c->count > 2 ? word(c, 2) : "lock");
    struct zkl_node_name place = {0};
    const char *name = text(c, 1);
    if (!zkl_name_parse(name, &of, &place)) {
        says(c, "foreign");
        return;
    }
    assert_int_equal(strtol(zkl_name_digits(name, &of), NULL, 10), place.sequence);
    says(c, "%s of %s %d", roles[place.role], peer_name(place.peer), (int)place.sequence);
}

/* recognise NAME: by itself */
static void say_recognised(const struct command *c)
{
    struct zkl_naming of;
    struct zkl_node_name place;
    if (!zkl_name_recognise(text(c, 1), &of, &place)) {
        says(c, "foreign");
        return;
    }
    assert_int_equal(of.role, place.role);
    assert_true(zkl_name_parse(text(c, 1), &of, &place));
    says(c, "%s %d %s", roles[place.role], (int)place.sequence,
         of.names == ZKL_NAMES_NAMED ? of.name : "-");
}

/* spread BEFORE AFTER: of 2,560 paths with a number between none of 256 buckets has more than 30 */
static void spread(const char *before, const char *after)
{
    int in[256] = {0};
    for (int i = 0; i < 2560; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s%d%s", before, i, after);
        in[zkl_text_hash(path) % 256]++;
    }
    for (int i = 0; i < 256; i++)
        assert_in_range(in[i], 0, 30);
}

static void say_copy(const struct command *c)
{
    char out[5] = "zzzz";
    zkl_text_copy(out, sizeof out, c->count > 1 ? word(c, 1) : NULL);
    says(c, "%s", out);
}

static bool names_do(const struct command *c)
{
    DO("good", judge_each(c, true));
    DO("bad", judge_each(c, false));
    DO("guid", say_guid(c));
    DO("prefix", say_prefix(c, false));
    DO("length", say_prefix(c, true));
    DO("parse", say_parsed(c));
    DO("recognise", say_recognised(c));
    DO("exhausted", says_whether(c, zkl_sequence_exhausted((int32_t)number(c, 1))));
    DO("permits", says(c, "%d", zkl_permits_parse(text(c, 1), strlen(text(c, 1)))));
    DO("spread", spread(text(c, 1), text(c, 2)));
    DO("copy", say_copy(c));
    return false;
}

/* --- servers ---------------------------------------------------------------- */

static void say_servers(const struct command *c)
{
    char all[TEXT_MAX] = "";
    struct zkl_server server;
    size_t at = 0;
    while (zkl_servers_next(word(c, 1), &at, &server))
        sprintf(all + strlen(all), "%s%.*s %.*s", all[0] ? ", " : "", (int)server.host_length,
                server.host, (int)server.port_length, server.port);
    assert_false(zkl_servers_next(word(c, 1), &at, &server));
    says(c, "%s", all);
}

/* merge LISTS: "none" is NULL */
static void say_merged(const struct command *c)
{
    const char *lists[WORDS_MAX];
    for (size_t i = 1; i < c->count; i++)
        lists[i - 1] = strcmp(word(c, i), "none") == 0 ? NULL : text(c, i);
    char *all = zkl_addresses_merge(lists, c->count - 1);
    says(c, "%s", all);
    free(all);
}

/* ensemble TEXT: what servers say -> the list for clients, and that for those with TLS; "-": it has a fault. */
static void say_ensemble(const struct command *c)
{
    char all[TEXT_MAX] = "", from[TEXT_MAX];
    size_t length = read_text(word(c, 1), from);
    char *bytes = malloc(length + 1); /* nothing behind it; one byte, as 0 may be NULL */
    memcpy(bytes + 1, from, length);
    for (int tls = 0; tls < 2; tls++) {
        const char *fault = NULL;
        char *list = zkl_servers_of_ensemble(bytes + 1, length, tls, &fault);
        assert_int_equal(!list, fault != NULL);
        sprintf(all + strlen(all), "%s%s", tls ? " " : "", list ? list : "-");
        free(list);
    }
    free(bytes);
    says(c, "%s", all);
}

static bool servers_do(const struct command *c)
{
    DO("servers", say_servers(c));
    DO("merge", say_merged(c));
    DO("alike", says_whether(c, zkl_addresses_look_alike(word(c, 1), word(c, 2))));
    DO("ensemble", say_ensemble(c));
    return false;
}

/* --- queues and listings ---------------------------------------------------- */

/* From that word on. */
static size_t read_children(const struct command *c, size_t from, const char **children)
{
    size_t count = 0;
    for (; from < c->count; from++) {
        assert_true(count < CHILDREN_MAX);
        children[count++] = text(c, from);
    }
    return count;
}

/* position NAMING OWN|- : CHILDREN -> [absent] BEFORE of CONTENDERS behind PREDECESSOR */
static void say_position(const struct command *c)
{
    const char *children[CHILDREN_MAX], *own = NULL;
    struct zkl_naming of = naming(word(c, 1));
    if (strcmp(word(c, 2), "-") != 0)
        own = text(c, 2);
    assert_string_equal(word(c, 3), ":");
    size_t count = read_children(c, 4, children);
    struct zkl_look look = zkl_queue_position(&of, children, count, own);
    const char *behind = "-";
    for (size_t i = 0; i < count; i++) {
        if (children[i] == look.predecessor)
            behind = c->words[4 + i];
    }
    says(c, "%s%zu of %zu behind %s", look.present ? "" : "absent ", look.before, look.contenders,
         behind);
}

/* find COUNT CHILDREN -> which of the first ones has the GUID of zeros */
static void say_found(const struct command *c)
{
    const char *children[CHILDREN_MAX];
    read_children(c, 2, children);
    const char *found = zkl_queue_find(children, (size_t)number(c, 1), "_c_" NIL_GUID "-lock-");
    size_t i = 0;
    while (found && children[i] != found)
        i++;
    says(c, "%s", found ? c->words[2 + i] : "-");
}

/* judge PERMITS NAMES -> the kind of lock. A name has "leases/" or "locks/" before it, "@session" behind it. What each is
 * is recorded. */
static void judge(const struct command *c)
{
    static const char *const kinds[] = {"none", "mutex", "rwlock", "semaphore"};
    static const char *const does[] = {"", "holds", "waits", "foreign"};
    static const char *const accesses[] = {"", " lock", " read", " write", " permit", " entry"};
    struct zkl_listed list[CHILDREN_MAX];
    const char *names[CHILDREN_MAX];
    size_t count = read_children(c, 2, names);
    for (size_t i = 0; i < count; i++) {
        const char *slash = strchr(names[i], '/'), *session = strchr(names[i], '@');
        char name[SCRIPT_NAME_MAX];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(slash ? slash + 1 : names[i], "@"),
                 slash ? slash + 1 : names[i]);
        list[i] = (struct zkl_listed){.name = keep(name),
                                      .in = !slash                 ? ZKL_IN_LOCK_PATH
                                            : slash - names[i] > 5 ? ZKL_IN_LEASES
                                                                   : ZKL_IN_LOCKS,
                                      .session = session ? atoll(session + 1) : 0,
                                      .given = i};
    }
    says(c, "%s", kinds[zkl_listing_judge(list, count, (int)number(c, 1))]);
    for (size_t i = 0; i < count; i++) {
        const char *name = list[i].name;
        bool ours = strncmp(name, "_c_", 3) == 0;
        char waits[30] = "";
        if (list[i].waits_for != ZKL_NO_ENTRY)
            snprintf(waits, sizeof waits, " for %zu", list[i].waits_for);
        script_record("%s%s %s%s%s%s%s", ours ? "\\G" : "", name + (ours ? 4 + ZKL_GUID_LEN : 0),
                      does[list[i].role], accesses[list[i].access], waits,
                      list[i].naming.name[0] ? ", name " : "", list[i].naming.name);
    }
}

/* --- names of states, and codes --------------------------------------------- */

/* Each has a name of its own. */
static void names_differ(const char *(*name)(int state), int count)
{
    for (int i = 0; i < count; i++) {
        assert_non_null(name(i));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(name(i), name(j));
    }
}

static const char *bundle_state(int state)
{
    return zkl_bundle_state_name((enum zkl_bundle_state)state);
}

/* Of each a single one follows, and its name is that of traces. */
static void check_cache_states(void)
{
    for (int from = 0; from < ZKL_READ_CACHE_STATES; from++) {
        int follow = 0;
        for (int to = 0; to < ZKL_READ_CACHE_STATES; to++)
            follow += zkl_read_cache_may_move((enum zkl_read_cache_state)from,
                                              (enum zkl_read_cache_state)to);
        assert_int_equal(follow, 1);
        assert_string_equal(zkl_trace_state_name(ZKL_TRACE_CACHE, from),
                            zkl_read_cache_state_name((enum zkl_read_cache_state)from));
    }
}

bool obey_texts(const struct command *c)
{
    DO("position", say_position(c));
    DO("find", say_found(c));
    DO("judge", judge(c));
    DO("bundle_states", names_differ(bundle_state, ZKL_BUNDLE_STATES));
    DO("cache_states", check_cache_states());
    DO("code_of",
       says(c, "%s",
            script_code(zkl_answer_code((enum zkl_answer)INDEX_OF(script_answers, word(c, 1))))));
    return names_do(c) || servers_do(c);
}
