/* SPDX-License-Identifier: Apache-2.0 */
/* The place in a queue against a specification of ten lines. What names say is left open here: the parser below
 * gives any name any number, role and peer, or none, so what is proved is so for every kind of name. */
#include "proof.h"

#include <string.h>

#include "core/queue.h"

#ifndef CHILDREN
#define CHILDREN 4
#endif

/* Names "a", "b" ...: the last one is no child, and may be ours. */
#define NAMES (CHILDREN + 1)
static char names[NAMES][2];
static struct zkl_node_name places[NAMES];
static bool contends[NAMES], retained[NAMES];

bool zkl_name_parse(const char *child, const struct zkl_naming *naming, struct zkl_node_name *place)
{
    size_t i = (size_t)(child[0] - 'a');

    (void)naming;
    *place = places[i];
    return contends[i];
}

bool zkl_name_is_retained(const char *child)
{
    return retained[child[0] - 'a'];
}

static void any_children(const char *children[CHILDREN])
{
    for (size_t i = 0; i < NAMES; i++) {
        names[i][0] = (char)('a' + i);
        places[i].sequence = nondet_int32();
        places[i].role = (enum zkl_role)any_between(0, ZKL_ROLES - 1);
        places[i].peer = (enum zkl_peer)any_between(0, 2);
        contends[i] = nondet_bool();
        retained[i] = nondet_bool();
    }
    /* Any order of the names, which settles equal numbers: their values are any, too. */
    for (size_t i = 0; i < CHILDREN; i++)
        children[i] = names[i];
}

/* --- the specification ------------------------------------------------------------------------ */

/* The smaller number is first, the name settles equal ones. */
static bool is_first(size_t a, size_t b)
{
    return places[a].sequence < places[b].sequence ||
           (places[a].sequence == places[b].sequence && names[a][0] < names[b][0]);
}

/* Readers go together; so do a reader and the writer of one number, whose nodes are one thread's. */
static bool is_in_the_way(size_t us, size_t other, enum zkl_role role, bool at_the_end)
{
    bool ours_reads = role == ZKL_ROLE_READ, other_reads = places[other].role == ZKL_ROLE_READ;
    bool one_threads = places[us].sequence == places[other].sequence && (ours_reads || other_reads);

    if (!contends[other] || (ours_reads && other_reads))
        return false;
    return at_the_end || (other != us && !one_threads && is_first(other, us));
}

/* --- proofs ----------------------------------------------------------------------------------- */

/* CHILDREN names in each order of their numbers, with every role; ours one of them, another one, or none. */
void a_look_is_what_the_specification_says(void)
{
    const char *children[CHILDREN];
    struct zkl_naming naming = {.role = (enum zkl_role)any_between(0, ZKL_ROLES - 1)};
    size_t count = (size_t)any_between(0, CHILDREN), us = (size_t)any_between(0, NAMES);
    size_t contenders = 0, before = 0, against = 0, nearest = NAMES;
    size_t retained_before = 0, retained_beside = 0;

    any_children(children);
    bool at_the_end = us == NAMES || !contends[us];
    for (size_t i = 0; i < count; i++) {
        bool is_ours = !at_the_end && i == us, reads = places[i].role == ZKL_ROLE_READ;
        contenders += contends[i];
        against += contends[i] && !is_ours && !(reads && naming.role == ZKL_ROLE_READ);
        if (!is_in_the_way(us < NAMES ? us : 0, i, naming.role, at_the_end)) {
            retained_beside +=
                contends[i] && !is_ours && reads && retained[i] && (at_the_end || is_first(i, us));
            continue;
        }
        retained_before += reads && retained[i];
        before++;
        if (nearest == NAMES || is_first(nearest, i))
            nearest = i;
    }
    struct zkl_look look =
        zkl_queue_position(&naming, children, count, us == NAMES ? NULL : names[us]);
    prove(look.contenders == contenders);
    prove(look.before == before);
    prove(look.against == against);
    prove(look.retained_before == retained_before);
    prove(look.retained_beside == retained_beside);
    prove(look.predecessor == (nearest == NAMES ? NULL : names[nearest]));
    prove(look.present == (us < count && contends[us]));
    prove(look.plain ==
          (nearest < NAMES && naming.role == ZKL_ROLE_LOCK &&
           places[nearest].role == ZKL_ROLE_LOCK && places[nearest].peer == ZKL_PEER_CURATOR));
}

/* All 2^32 numbers, with names of up to two bytes. */
void numbers_and_names_are_a_total_order(void)
{
    int32_t number[3];
    char name[3][3] = {{0}};

    for (int i = 0; i < 3; i++) {
        number[i] = nondet_int32();
        name[i][0] = nondet_char();
        name[i][1] = nondet_char();
    }
#define compare(a, b) zkl_queue_compare(number[a], name[a], number[b], name[b])
    int ab = compare(0, 1), ba = compare(1, 0), bc = compare(1, 2), ac = compare(0, 2);
    prove((ab < 0) == (ba > 0) && (ab == 0) == (ba == 0));
    prove(!(ab < 0 && bc < 0) || ac < 0);
    prove(!(ab == 0 && bc == 0) || ac == 0);
    prove((ab == 0) == (number[0] == number[1] && strcmp(name[0], name[1]) == 0));
    prove(number[0] >= number[1] || ab < 0);
}

static bool waits(size_t a, size_t b)
{
    return zkl_queue_waits_for(places[a].role, places[a].sequence, names[a], &places[b], names[b]);
}

/* Of two that exclude each other one waits for the other, and three never wait in a circle. */
void somebody_always_goes_first(void)
{
    const char *children[CHILDREN];

    any_children(children);
    bool one_reads = places[0].role == ZKL_ROLE_READ || places[1].role == ZKL_ROLE_READ;
    bool both_read = places[0].role == ZKL_ROLE_READ && places[1].role == ZKL_ROLE_READ;
    bool one_threads = one_reads && places[0].sequence == places[1].sequence;
    prove(both_read || one_threads ? !waits(0, 1) && !waits(1, 0) : waits(0, 1) != waits(1, 0));
    prove(!(waits(0, 1) && waits(1, 2) && waits(2, 0)));
    prove(!waits(0, 0));
}

void a_found_child_begins_with_the_prefix(void)
{
    const char *children[CHILDREN];
    char prefix[2] = {nondet_char(), '\0'};
    size_t count = (size_t)any_between(0, CHILDREN);

    any_children(children);
    const char *found = zkl_queue_find(children, count, prefix);
    for (size_t i = 0; i < count; i++)
        prove(found != NULL || names[i][0] != prefix[0]);
    prove(found == NULL || prefix[0] == '\0' || found[0] == prefix[0]);
}
