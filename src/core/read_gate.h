/* SPDX-License-Identifier: Apache-2.0
 * The gate of a cached reader: threads enter and leave without a lock while it is open, and the
 * thread that closes it knows whether another one is in. An entering thread first counts itself and
 * then reads the end; the closing thread first takes the end away and then reads the count. All
 * four are sequentially consistent, so that there is one order of them: if the entering thread has
 * found the gate open, its count came before the closing, and the closing thread has seen it.
 * Nothing weaker will do: a store that releases may pass a load behind it that acquires (also on
 * x86, which keeps it in the store buffer), and then both read the earlier values. Leaving is the
 * same question the other way round: a leaving thread uncounts itself and then reads whether the
 * gate is closed, so that the last thread out or the closing one finds the node empty. Both may,
 * and the client's mutex settles it. Both words are in one cache line: a thread that counts itself
 * has the line for the read that follows. tests/unit/test-read-gate.c lets both threads meet in a
 * fresh gate, and in most runs detects a reader that looks before it counts up, and a closing
 * store that only releases. */
#ifndef ZKL_CORE_READ_GATE_H
#define ZKL_CORE_READ_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct zkl_read_gate {
    _Alignas(16) atomic_llong inside; /* how many are in, or are looking whether they may */
    /* a thread that is in before that may be; 0: the gate is closed */
    atomic_llong until_boot;
};

/* Count up, then look. The end, by CLOCK_BOOTTIME, before which the caller is in: to be compared
 * with a clock that is read after this. 0, or over: it has to leave again. fresh_until_boot: of the
 * proofs of the session, read before the gate is: that of the next session can't be taken for one
 * of this node's, as the gate is closed before there is one. */
static inline int64_t zkl_read_gate_enter(struct zkl_read_gate *gate,
                                          const atomic_llong *fresh_until_boot)
{
    atomic_fetch_add(&gate->inside, 1);
    int64_t fresh = atomic_load(fresh_until_boot);
    int64_t until = atomic_load(&gate->until_boot);
    return fresh < until ? fresh : until;
}

/* True: the last one out of a closed gate, which must notify the core. */
static inline bool zkl_read_gate_leave(struct zkl_read_gate *gate)
{
    return atomic_fetch_sub(&gate->inside, 1) == 1 && atomic_load(&gate->until_boot) == 0;
}

/* With the client's mutex. One reader is in, and no other may enter yet. */
static inline void zkl_read_gate_begin(struct zkl_read_gate *gate)
{
    atomic_fetch_add(&gate->inside, 1);
}

static inline void zkl_read_gate_open(struct zkl_read_gate *gate, int64_t until_boot)
{
    atomic_store(&gate->until_boot, until_boot);
}

/* No reader enters from here on; true: none is in. */
static inline bool zkl_read_gate_close(struct zkl_read_gate *gate)
{
    atomic_store(&gate->until_boot, 0);
    return atomic_load(&gate->inside) == 0;
}

static inline bool zkl_read_gate_any(const struct zkl_read_gate *gate)
{
    return atomic_load(&gate->inside) > 0;
}

#endif
