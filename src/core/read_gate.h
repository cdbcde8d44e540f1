/* SPDX-License-Identifier: Apache-2.0
 * The gate of a cached reader: threads come in and leave without a lock while it is open, and whoever closes it
 * knows whether somebody is in.
 *
 * Who enters counts itself first and looks at the end then; who closes takes the end away first and looks at the
 * count then. All four are sequentially consistent, so that there is one order of them: if the one who enters has
 * found the gate open, its count came before the closing, and the one who closes has seen it. Nothing weaker will do:
 * a store that releases may pass a load behind it that acquires (also on x86, which keeps it in the store buffer), and then both
 * read what was before. Leaving is the same question the other way round: who counts itself out looks whether the
 * gate is closed, so that the last one out or the one who closes finds nobody in; both may, and the client's mutex
 * settles it.
 *
 * Both words are in one cache line: who counts itself has the line for the look that follows. */
#ifndef ZKL_CORE_READ_GATE_H
#define ZKL_CORE_READ_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct zkl_read_gate {
    _Alignas(16) atomic_llong inside; /* how many are in, or are looking whether they may */
    atomic_llong until_boot;          /* who is in before that may be; 0: it is closed */
};

/* Count up, then look. The end, by CLOCK_BOOTTIME, before which the caller is in: to be compared with a clock that is
 * read after this. 0, or over: it has to leave again. fresh_until_boot: of the proofs of the session, read before the gate is:
 * that of the next session can't be taken for one of this node's, as the gate is closed before there is one. */
static inline int64_t zkl_read_gate_enter(struct zkl_read_gate *gate,
                                          const atomic_llong *fresh_until_boot)
{
    atomic_fetch_add(&gate->inside, 1);
    int64_t fresh = atomic_load(fresh_until_boot);
    int64_t until = atomic_load(&gate->until_boot);
    return fresh < until ? fresh : until;
}

/* True: the last one out of a closed gate, which is to tell the core. */
static inline bool zkl_read_gate_leave(struct zkl_read_gate *gate)
{
    return atomic_fetch_sub(&gate->inside, 1) == 1 && atomic_load(&gate->until_boot) == 0;
}

/* With the client's mutex. One is in, and nobody else may yet. */
static inline void zkl_read_gate_begin(struct zkl_read_gate *gate)
{
    atomic_fetch_add(&gate->inside, 1);
}

static inline void zkl_read_gate_open(struct zkl_read_gate *gate, int64_t until_boot)
{
    atomic_store(&gate->until_boot, until_boot);
}

/* Nobody comes in from here on; true: nobody is in. */
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
