/* SPDX-License-Identifier: Apache-2.0
 * Names on the wire: paths, GUIDs, and the children of a root that stand for contenders. */
#ifndef ZKL_CORE_NAME_H
#define ZKL_CORE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZKL_PATH_MAX 512      /* bytes of a lock path, without the final NUL */
#define ZKL_GUID_LEN 36       /* canonical UUID text */
#define ZKL_LOCK_NAME "lock-" /* Curator's InterProcessMutex */
/* "_c_" GUID "-lock-" and a number of up to 11 characters ("-2147483648") */
#define ZKL_NODE_NAME_MAX (3 + ZKL_GUID_LEN + 1 + 5 + 11)

/* A sequence number at or above this, or a negative one, is exhausted: never granted. ZooKeeper's
 * counter sticks at 2^31-1, from where on all contenders would get one and the same number; renewal
 * starts early enough for peers that don't know this rule to have left by then. */
#define ZKL_SEQUENCE_HARD INT32_C(0x7ff00000)

/* NULL if path is an absolute, normalised ZooKeeper path below "/" of at most ZKL_PATH_MAX bytes,
 * else what is wrong with it, as the end of the sentence "the path ...". */
const char *zkl_path_fault(const char *path);

/* NULL if text is "host:port[,host:port...][/chroot]", else what is wrong with it. */
const char *zkl_servers_fault(const char *text);

/* 16 random bytes as a version 4 UUID; out has room for ZKL_GUID_LEN + 1. */
void zkl_guid_format(const unsigned char random[16], char *out);

/* "_c_<guid>-lock-": what a sequential create is asked with; out has room for ZKL_NODE_NAME_MAX
 * + 1. */
void zkl_name_prefix(const char *guid, char *out);

/* True if the child name is a contender of the mutex: "lock-" and then a decimal number with an
 * optional minus sign up to the end of the name. As Curator does, what stands after the LAST
 * "lock-" counts. */
bool zkl_name_parse(const char *name, int32_t *sequence);

/* True if the name carries this GUID as Curator's protection does. */
bool zkl_name_has_guid(const char *name, const char *guid);

bool zkl_sequence_exhausted(int32_t sequence);

/* FNV-1a (Fowler, Noll, Vo), 32 bit: for hash tables keyed by paths. */
uint32_t zkl_text_hash(const char *text);

#endif
