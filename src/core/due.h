/* SPDX-License-Identifier: Apache-2.0
 * The list of what to check when the event is over. Code that notices that something may follow for
 * a bundle, a handle's local queue or cached readers puts it here;
 * the one loop in core.c takes it out and has it settled. The entry is the first member of the object that it stands for, and is in
 * the list once at most. */
#ifndef ZKL_CORE_DUE_H
#define ZKL_CORE_DUE_H

#include "core.h"

static inline void zkl_due_add(struct zkl_core *core, struct zkl_due *due, enum zkl_due_kind kind)
{
    if (due->listed)
        return;
    due->listed = true;
    due->next = core->due[kind];
    core->due[kind] = due;
}

/* The last that was put there, of the first kind that has any; NULL: nothing is due. */
static inline struct zkl_due *zkl_due_take(struct zkl_core *core, enum zkl_due_kind *kind)
{
    *kind = 0;
    while (*kind < ZKL_DUE_KINDS && !core->due[*kind])
        ++*kind;
    struct zkl_due *due = *kind < ZKL_DUE_KINDS ? core->due[*kind] : NULL;
    if (due) {
        core->due[*kind] = due->next;
        due->listed = false;
    }
    return due;
}

static inline bool zkl_due_any(const struct zkl_core *core)
{
    size_t kind = 0;
    while (kind < ZKL_DUE_KINDS && !core->due[kind])
        kind++;
    return kind < ZKL_DUE_KINDS;
}

/* It is about to be freed. */
static inline void zkl_due_forget(struct zkl_core *core, const struct zkl_due *due,
                                  enum zkl_due_kind kind)
{
    struct zkl_due **at = &core->due[kind];
    while (*at && *at != due)
        at = &(*at)->next;
    if (*at)
        *at = due->next;
}

#endif
