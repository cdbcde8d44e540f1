/* SPDX-License-Identifier: Apache-2.0 */
/* The witness in memory: which workers are inside a lock, without the library's help. A room lies
 * where all workers can see it: in one process, in memory that several share, or in a file that
 * they map. All zeros is an empty one. A worker reports its entry once the lock is granted, and its
 * exit before the lock is released. The calls return 0, or what was inside and should not have
 * been: the word below. A worker that is turned away has not entered, and changes nothing that
 * others see. A worker that leaves without an entry changes nothing either: it receives 1 if none
 * was inside. */
#ifndef ZKTEST_ROOM_H
#define ZKTEST_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct room {
    /* 1 + the number of the worker that is alone << 32, or how many share */
    _Atomic uint64_t word;
    _Atomic uint64_t newest;       /* token of all that came in */
    _Atomic uint64_t newest_alone; /* of those who came in alone */
};

static inline uint64_t room_word_of(uint32_t number)
{
    return ((uint64_t)number + 1) << 32;
}

static inline uint64_t room_enter(struct room *room, uint32_t number)
{
    uint64_t found = 0;

    atomic_compare_exchange_strong(&room->word, &found, room_word_of(number));
    return found;
}

static inline uint64_t room_leave(struct room *room, uint32_t number)
{
    uint64_t found = room_word_of(number);

    return atomic_compare_exchange_strong(&room->word, &found, 0) ? 0 : found + (found == 0);
}

/* As one of several. */
static inline uint64_t room_share(struct room *room)
{
    uint64_t found = room->word;

    do {
        if (found >> 32 != 0)
            return found;
    } while (!atomic_compare_exchange_weak(&room->word, &found, found + 1));
    return 0;
}

static inline uint64_t room_unshare(struct room *room)
{
    uint64_t found = room->word;

    do {
        if ((uint32_t)found == 0)
            return found + (found == 0);
    } while (!atomic_compare_exchange_weak(&room->word, &found, found - 1));
    return 0;
}

/* The worker that was alone stays as the first of several. */
static inline uint64_t room_downgrade(struct room *room, uint32_t number)
{
    uint64_t found = room_word_of(number);

    return atomic_compare_exchange_strong(&room->word, &found, 1) ? 0 : found + (found == 0);
}

static inline uint32_t room_sharing(const struct room *room)
{
    return (uint32_t)room->word;
}

/* A worker reports its token as it enters: 0, or the token that it should have been above. A worker
 * that enters alone is newer than all before; one that shares only than those that were alone. */
static inline uint64_t room_token(struct room *room, bool alone, uint64_t token)
{
    uint64_t before = alone ? room->newest : room->newest_alone, newest = room->newest;

    if (token <= before)
        return before + (before == 0);
    while (newest < token && !atomic_compare_exchange_weak(&room->newest, &newest, token))
        continue;
    if (alone)
        room->newest_alone = token;
    return 0;
}

#endif
