/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: lists of children, with the sessions that own them, as one contender looks at
 * them (queue.h) and as zkl_inspect judges them (listing.h). A contender that is granted has
 * nobody before it with whom it must not be in. Everybody else waits for somebody before. Both
 * judges say the same, and the order in which a server lists its children makes no difference. */
#include "core/listing.h"
#include "core/queue.h"
#include "fuzz.h"

#define CHILDREN 24
#define NAME_ROOM 160
#define GUIDS 4

struct child {
    char name[NAME_ROOM];
    enum zkl_listed_in in;
    int64_t session;
};

struct children {
    struct child list[CHILDREN];
    size_t count;
};

/* --- making them up ------------------------------------------------------ */

/* Numbers that are close to each other and to where something changes. */
static int32_t take_sequence(struct fuzz_bytes *in)
{
    static const int32_t bases[] = {0, 9, ZKL_SEQUENCE_HARD - 2, INT32_MAX - 7, -3, INT32_MIN};
    int32_t base = bases[fuzz_below(in, sizeof bases / sizeof *bases)];
    return base + (int32_t)fuzz_below(in, 8);
}

static void take_own_kind(struct fuzz_bytes *in, char *name)
{
    static const struct zkl_naming namings[] = {
        {ZKL_ROLE_LOCK, ZKL_NAMES_CURATOR, ""},   {ZKL_ROLE_READ, ZKL_NAMES_CURATOR, ""},
        {ZKL_ROLE_WRITE, ZKL_NAMES_CURATOR, ""},  {ZKL_ROLE_LOCK, ZKL_NAMES_KAZOO, ""},
        {ZKL_ROLE_READ, ZKL_NAMES_KAZOO, ""},     {ZKL_ROLE_PERMIT, ZKL_NAMES_CURATOR, ""},
        {ZKL_ROLE_LOCK, ZKL_NAMES_NAMED, "one"},  {ZKL_ROLE_LOCK, ZKL_NAMES_NAMED, "two"},
        {ZKL_ROLE_LOCK, ZKL_NAMES_NAMED, "x-1-"},
    };
    const struct zkl_naming *naming = &namings[fuzz_below(in, sizeof namings / sizeof *namings)];
    unsigned char random[16];
    char guid[ZKL_GUID_LEN + 1];
    memset(random, (int)fuzz_below(in, GUIDS), sizeof random);
    zkl_guid_format(random, guid);
    zkl_name_prefix(naming, guid, name);
    size_t length = strlen(name);
    snprintf(name + length, NAME_ROOM - length, "%010d", take_sequence(in));
}

static void take_child(struct fuzz_bytes *in, struct child *child)
{
    unsigned about = fuzz_byte(in);
    *child = (struct child){.in = (enum zkl_listed_in)(about / 4 % 3), .session = about / 16};
    if (about % 4 > 0) {
        take_own_kind(in, child->name);
    } else {
        const char *line;
        size_t length = fuzz_line(in, NAME_ROOM - 1, &line);
        memcpy(child->name, line, length);
    }
}

/* A node has no two children of one name, and none without a name. */
static bool is_possible(const struct children *all, const struct child *child)
{
    bool possible = child->name[0] != '\0';
    for (size_t i = 0; i < all->count; i++)
        possible = possible && strcmp(all->list[i].name, child->name) != 0;
    return possible;
}

static void take_children(struct fuzz_bytes *in, struct children *all)
{
    all->count = 0;
    while (all->count < CHILDREN && fuzz_left(in) > 0) {
        take_child(in, &all->list[all->count]);
        all->count += is_possible(all, &all->list[all->count]);
    }
}

/* Another order, which follows from the input. */
static void shuffle(struct fuzz_bytes in, const struct children *all, struct children *out)
{
    *out = *all;
    for (size_t i = all->count; i > 1; i--) {
        size_t j = (fuzz_byte(&in) + i / 2) % i;
        struct child kept = out->list[i - 1];
        out->list[i - 1] = out->list[j];
        out->list[j] = kept;
    }
}

/* --- one contender's look ------------------------------------------------ */

static size_t names_of(const struct children *all, const char **names)
{
    for (size_t i = 0; i < all->count; i++)
        names[i] = all->list[i].name;
    return all->count;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The predecessor is before us and in our way, and nobody else that is in our way stands
 * between. */
static void check_predecessor(const struct children *all, const struct zkl_naming *naming,
                              const char *own, const struct zkl_node_name *us,
                              const struct zkl_look *look)
{
    struct zkl_node_name place, nearest;
    size_t before = 0;
    if (look->predecessor) {
        must(zkl_name_parse(look->predecessor, naming, &nearest));
        must(zkl_queue_compare(nearest.sequence, look->predecessor, us->sequence, own) < 0);
    }
    for (size_t i = 0; i < all->count; i++) {
        const char *name = all->list[i].name;
        if (!zkl_name_parse(name, naming, &place) ||
            !zkl_queue_waits_for(naming->role, us->sequence, own, &place, name))
            continue;
        before++;
        must(look->predecessor &&
             zkl_queue_compare(place.sequence, name, nearest.sequence, look->predecessor) <= 0);
    }
    must(before == look->before && (before > 0) == (look->predecessor != NULL));
}

static struct zkl_look check_look(const struct children *all, const struct children *shuffled,
                                  const struct zkl_naming *naming, const char *own)
{
    const char *names[CHILDREN], *others[CHILDREN];
    struct zkl_node_name us;
    names_of(shuffled, others);
    struct zkl_look look = zkl_queue_position(naming, names, names_of(all, names), own);
    struct zkl_look again = zkl_queue_position(naming, others, all->count, own);
    must(look.contenders == again.contenders && look.before == again.before);
    must(look.present == again.present && same_text(look.predecessor, again.predecessor));
    must(look.contenders <= all->count);
    must(look.before + look.present <= look.contenders);
    must(!look.predecessor || !same_text(look.predecessor, own));
    if (own && zkl_name_parse(own, naming, &us))
        check_predecessor(all, naming, own, &us, &look);
    return look;
}

/* May both be in? Readers may, and a writer with the reader that it becomes. */
static bool may_share(const struct zkl_node_name *a, const struct zkl_node_name *b)
{
    bool read_a = a->role == ZKL_ROLE_READ, read_b = b->role == ZKL_ROLE_READ;
    return (read_a && read_b) || ((read_a || read_b) && a->sequence == b->sequence);
}

/* Those who find nobody before them exclude each other, and there is one in each queue. */
static void check_looks(const struct children *all, const struct children *shuffled)
{
    struct zkl_naming naming[CHILDREN];
    struct zkl_node_name place[CHILDREN];
    bool known[CHILDREN], granted[CHILDREN];
    for (size_t i = 0; i < all->count; i++) {
        const char *own = all->list[i].name;
        known[i] = zkl_name_recognise(own, &naming[i], &place[i]);
        granted[i] = known[i] && check_look(all, shuffled, &naming[i], own).before == 0;
        if (known[i])
            check_look(all, shuffled, &naming[i], NULL);
    }
    for (size_t i = 0; i < all->count; i++) {
        size_t of_this_queue = 0;
        for (size_t j = 0; j < all->count && known[i]; j++) {
            bool meets = known[j] && zkl_naming_meets(&naming[i], &naming[j]);
            of_this_queue += meets && granted[j];
            must(!(meets && i != j && granted[i] && granted[j]) || may_share(&place[i], &place[j]));
        }
        must(!known[i] || of_this_queue > 0);
    }
}

/* --- all of them, judged ------------------------------------------------- */

static void judge(const struct children *all, struct zkl_listed *list, int permits,
                  enum zkl_lock_kind *kind)
{
    for (size_t i = 0; i < all->count; i++)
        list[i] = (struct zkl_listed){.name = all->list[i].name,
                                      .in = all->list[i].in,
                                      .session = all->list[i].session,
                                      .given = i};
    *kind = zkl_listing_judge(list, all->count, permits);
}

/* What a look at the children of the same place says. */
static void check_entry(const struct children *all, const struct zkl_listed *list, size_t i)
{
    const struct zkl_listed *e = &list[i];
    const char *names[CHILDREN];
    size_t count = 0;
    for (size_t j = 0; j < all->count; j++) {
        if (all->list[j].in == e->in)
            names[count++] = all->list[j].name;
    }
    struct zkl_look look = zkl_queue_position(&e->naming, names, count, e->name);
    must(look.present && (look.before == 0) == (e->waits_for == ZKL_NO_ENTRY));
    must(look.before == 0 || same_text(look.predecessor, list[e->waits_for].name));
    must(e->in == ZKL_IN_LOCKS || (look.before == 0) == (e->role == ZKL_ENTRY_ROLE_HOLDER));
}

static void check_judgement(const struct children *all, const struct zkl_listed *list, int permits)
{
    size_t holders_of_leases = 0;
    bool seen[CHILDREN] = {false};
    for (size_t i = 0; i < all->count; i++) {
        const struct zkl_listed *e = &list[i];
        must(e->given < all->count && !seen[e->given]);
        seen[e->given] = true;
        must(e->name == all->list[e->given].name);
        must(i == 0 || list[i - 1].role <= e->role);
        must((e->role == ZKL_ENTRY_ROLE_FOREIGN) == (e->access == ZKL_ENTRY_ACCESS_NONE));
        must(e->waits_for == ZKL_NO_ENTRY || (e->waits_for < all->count && e->waits_for != i));
        if (e->role != ZKL_ENTRY_ROLE_FOREIGN && e->in != ZKL_IN_LEASES)
            check_entry(all, list, i);
        must(e->in != ZKL_IN_LEASES || e->waits_for == ZKL_NO_ENTRY);
        must(e->in != ZKL_IN_LOCKS || e->role != ZKL_ENTRY_ROLE_HOLDER);
        holders_of_leases += e->in == ZKL_IN_LEASES && e->role == ZKL_ENTRY_ROLE_HOLDER;
    }
    must(permits == 0 || holders_of_leases <= (size_t)permits);
}

static void check_listing(const struct children *all, const struct children *shuffled, int permits)
{
    struct zkl_listed list[CHILDREN], other[CHILDREN];
    enum zkl_lock_kind kind, other_kind;
    judge(all, list, permits, &kind);
    judge(shuffled, other, permits, &other_kind);
    check_judgement(all, list, permits);
    must(kind == other_kind);
    for (size_t i = 0; i < all->count; i++) {
        must(strcmp(list[i].name, other[i].name) == 0 && list[i].role == other[i].role);
        must(list[i].waits_for == other[i].waits_for && list[i].access == other[i].access);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int numbers[] = {0, 1, 2, 3, ZKL_PERMITS_MAX};
    struct fuzz_bytes in = {data, data + size};
    struct children all, shuffled;
    int permits = numbers[fuzz_below(&in, sizeof numbers / sizeof *numbers)];
    take_children(&in, &all);
    shuffle((struct fuzz_bytes){data, data + size}, &all, &shuffled);
    check_looks(&all, &shuffled);
    check_listing(&all, &shuffled, permits);
    return 0;
}
