/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of a queue and the predicate "granted, or whom to watch", over one list of children.
 * Only this file decides which contender waits for which, by the rows of role.c. Pure, without a
 * lock. step.c calls it for a contender, listing.c for an inspection. */
#include "queue.h"

#include <string.h>

#include "name.h"

int zkl_queue_compare(int32_t sequence_a, const char *name_a, int32_t sequence_b,
                      const char *name_b)
{
    if (sequence_a != sequence_b)
        return sequence_a < sequence_b ? -1 : 1;
    return strcmp(name_a, name_b);
}

/* Has a contender to wait for one of that role? */
static bool in_the_way(enum zkl_role ours, enum zkl_role other)
{
    return (zkl_roles[ours].beside & ZKL_ROLE_BIT(other)) == 0;
}

bool zkl_queue_waits_for(enum zkl_role role, int32_t sequence, const char *own,
                         const struct zkl_node_name *place, const char *other)
{
    /* An owner's write node and the read node that it got under it have the same number. */
    bool one_shares = (zkl_roles[role].beside | zkl_roles[place->role].beside) != 0;
    if (place->sequence == sequence && one_shares)
        return false;
    return in_the_way(role, place->role) &&
           zkl_queue_compare(place->sequence, other, sequence, own) < 0;
}

/* Kazoo's writers are called as its mutexes are. */
static bool is_plain(const struct zkl_node_name *place)
{
    return zkl_roles[place->role].mutual && place->peer == ZKL_PEER_CURATOR;
}

/* Than the one we have, if we have one. */
static bool is_nearer(const struct zkl_node_name *place, const char *name,
                      const struct zkl_node_name *than, const char *than_name)
{
    return !than_name || zkl_queue_compare(place->sequence, name, than->sequence, than_name) > 0;
}

struct zkl_look zkl_queue_position(const struct zkl_naming *naming, const char *const *children,
                                   size_t count, const char *own)
{
    struct zkl_look look = {0};
    struct zkl_node_name us, nearest = {0};
    bool last = !own || !zkl_name_parse(own, naming, &us);

    for (size_t i = 0; i < count; i++) {
        const char *name = children[i];
        struct zkl_node_name place;
        if (!last && strcmp(name, own) == 0) {
            look.contenders++;
            look.present = true;
            continue;
        }
        if (!zkl_name_parse(name, naming, &place))
            continue; /* no contender's */
        look.contenders++;
        bool ahead = last || zkl_queue_compare(place.sequence, name, us.sequence, own) < 0;
        bool retained = ahead && zkl_roles[place.role].beside != 0 && zkl_name_is_retained(name);
        look.against += in_the_way(naming->role, place.role);
        if (last ? !in_the_way(naming->role, place.role)
                 : !zkl_queue_waits_for(naming->role, us.sequence, own, &place, name)) {
            look.retained_beside += retained;
            continue;
        }
        look.before++;
        look.retained_before += retained;
        if (is_nearer(&place, name, &nearest, look.predecessor)) {
            look.predecessor = name;
            nearest = place;
        }
    }
    look.plain = look.predecessor && zkl_roles[naming->role].mutual && is_plain(&nearest);
    return look;
}

const char *zkl_queue_find(const char *const *children, size_t count, const char *prefix)
{
    size_t length = strlen(prefix);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(children[i], prefix, length) == 0)
            return children[i];
    }
    return NULL;
}
