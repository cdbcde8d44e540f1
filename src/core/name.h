/* SPDX-License-Identifier: Apache-2.0
 * Names on the wire: paths, GUIDs, and the children of a lock path that represent contenders. */
#ifndef ZKL_CORE_NAME_H
#define ZKL_CORE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zklock/inspect.h>

#define ZKL_PATH_MAX 512 /* bytes of a lock path, without the final NUL */
#define ZKL_GUID_LEN 36  /* canonical UUID text */
/* "_c_" GUID "-" a named lock's name "_lock_" and a number of up to 11 characters
 * ("-2147483648") */
#define ZKL_NODE_NAME_MAX (3 + ZKL_GUID_LEN + 1 + ZKL_LOCK_NAME_MAX + 6 + 11)

/* The place that a contender asks for: a row of zkl_roles. */
enum zkl_role { ZKL_ROLE_LOCK, ZKL_ROLE_READ, ZKL_ROLE_WRITE, ZKL_ROLE_PERMIT, ZKL_ROLES };

#define ZKL_ROLE_BIT(role) (1u << (role))

#define ZKL_NAMED_MARKER "_lock_" /* behind the name of a named lock */

/* A row of role.c: how the nodes of a role are called, and for whom it waits. What it does beyond
 * waiting in the queue is a row of kind.c. */
struct zkl_role_row {
    const char *markers[ZKL_NAMES_NAMED + 1]; /* the text before the number */
    enum zkl_entry_access access;             /* what an inspection calls it */
    /* ZKL_ROLE_BIT of those that hold together with it: neither waits for the other */
    unsigned beside;
    /* no contender at its path holds together with another, unless a peer calls others so, too */
    bool mutual;
    bool counted; /* the count of them decides, not their numbers; it sees its own role only */
};

extern const struct zkl_role_row zkl_roles[ZKL_ROLES];

/* How a contender calls itself, and with that whom it sees. */
struct zkl_naming {
    enum zkl_role role;
    enum zkl_names names;
    char name[ZKL_LOCK_NAME_MAX + 1]; /* with ZKL_NAMES_NAMED */
};

/* The library that uses such names. */
enum zkl_peer { ZKL_PEER_CURATOR, ZKL_PEER_KAZOO, ZKL_PEER_ZOOKEEPER };

/* The contents of a child's name. */
struct zkl_node_name {
    enum zkl_role role;
    int32_t sequence;
    enum zkl_peer peer;
};

/* A sequence number at or above this, or a negative one, is exhausted: never granted. ZooKeeper's
 * counter sticks at 2^31-1, from where on all contenders would get one and the same number; renewal
 * starts early enough for peers that don't know this rule to have left by then. */
#define ZKL_SEQUENCE_HARD INT32_C(0x7ff00000)
#define ZKL_SEQUENCE_NEAR INT32_C(0x100000) /* this many before it */
/* A name that has none: no number is this one. */
#define ZKL_SEQUENCE_NONE INT64_MIN

/* NULL if path, which begins with a slash, is normalized and has only characters that ZooKeeper
 * takes. */
const char *zkl_absolute_fault(const char *path);

/* NULL if path is an absolute, normalized ZooKeeper path below "/", of any length; else as
 * zkl_path_fault. */
const char *zkl_node_path_fault(const char *path);

/* NULL if path is an absolute, normalized ZooKeeper path below "/" of at most ZKL_PATH_MAX bytes,
 * else its fault, as the end of the sentence "the path ...". */
const char *zkl_path_fault(const char *path);

/* 16 random bytes as a version 4 UUID; out has room for ZKL_GUID_LEN + 1. */
void zkl_guid_format(const unsigned char random[16], char *out);
/* As version 8, "custom": the node may stay without a holder, and its client deletes it when
 * another contender queues. */
void zkl_guid_mark_retained(char *guid);

/* "_c_<guid>-lock-" or another naming's: the prefix of a sequential create, and what distinguishes
 * our node from all others; out has room for ZKL_NODE_NAME_MAX + 1. */
void zkl_name_prefix(const struct zkl_naming *naming, const char *guid, char *out);

/* Bytes of such a name with its number, which has ten digits, and a minus once the counter is used
 * up. */
size_t zkl_name_length(const struct zkl_naming *naming);

/* True if the child is a contender for one with this naming: a known marker ("lock-", "__READ__"
 * ...) and then a decimal number with an optional minus sign up to the end of the name. As in
 * Curator, the text after the LAST marker counts. A named lock sees its own name only, and a permit
 * only permits. */
bool zkl_name_parse(const char *child, const struct zkl_naming *naming,
                    struct zkl_node_name *place);

/* True if contenders of the two namings at one path see each other. */
bool zkl_naming_meets(const struct zkl_naming *a, const struct zkl_naming *b);

/* True if the child is a contender for any library, permits aside: with *naming it sees those that
 * it must wait for, and they see it. */
bool zkl_name_recognise(const char *child, struct zkl_naming *naming, struct zkl_node_name *place);

/* True if the child's GUID is marked so. */
bool zkl_name_is_retained(const char *child);

/* Its number, or ZKL_SEQUENCE_NONE: it does not parse. */
int64_t zkl_name_sequence(const char *child, const struct zkl_naming *naming);

/* The digits at the end of a name that parses. */
const char *zkl_name_digits(const char *child, const struct zkl_naming *naming);

#define ZKL_OWNER_TEXT_MAX 512 /* bytes of a node's data that says whose it is */

/* A node's data when its owner is asked to release the lock. */
#define ZKL_REVOCATION "__REVOKE__"
bool zkl_is_revocation(const char *data, size_t size);

/* NULL if name can be that of a named lock, else what is wrong with it, as the end of the sentence
 * "the name ...". */
const char *zkl_lock_name_fault(const char *name);

bool zkl_sequence_exhausted(int32_t sequence);

/* The number of a semaphore's permits in the data of its "leases"; 0: that is none. */
int zkl_permits_parse(const char *data, size_t size);

/* True if it is UTF-8 without control characters. */
bool zkl_text_is_printable(const char *text, size_t length);

/* Copies as much as fits, terminated; NULL is "". */
void zkl_text_copy(char *out, size_t size, const char *text);

/* For hash tables keyed by paths: multiplicative hashing (Knuth, TAOCP 3, 6.4) of eight bytes at a
 * time. */
uint32_t zkl_text_hash(const char *text);

#endif
