/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "world.h"

const char *const root_paths[ROOTS] = {"/a", "/b", "/c", "/leases"};

#define LOCK(of, times, ...) {.kind = PART_LOCK, .client = (of), .cycles = (times), __VA_ARGS__}

/* Behind the parts of two clients those of a third. */
const struct scenario scenarios[] = {
    {.name = "mutex",
     .says = "a mutex, default options; the first client twice",
     .parts = {LOCK(0, 2), LOCK(1, 1), LOCK(2, 1)},
     .faults = USUAL},
    {.name = "fresh",
     .says = "a mutex whose path is not there",
     .parts = {LOCK(0, 1), LOCK(1, 1), LOCK(2, 1)},
     .faults = USUAL,
     .rootless = true},
    {.name = "posted",
     .says = "posted unlock",
     .parts = {LOCK(0, 2, .posted = true), LOCK(1, 1, .posted = true), LOCK(2, 1)},
     .faults = USUAL},
    {.name = "event",
     .says = "grants by event: own nodes watched, lookahead",
     .parts = {LOCK(0, 1, .watch_own = true), LOCK(1, 2, .watch_own = true, .lookahead = true),
               LOCK(2, 1, .lookahead = true)},
     .faults = USUAL | BIT(FAULT_WRITE)},
    {.name = "unlisted",
     .says = "grants by the number alone, from the first lock on",
     .parts = {LOCK(0, 3, .alone = true, .posted = true), LOCK(1, 1), LOCK(2, 1)},
     .faults = USUAL},
    {.name = "rwlock",
     .says = "a writer that downgrades, a writer, a reader",
     .parts = {LOCK(0, 1, .role = ZKL_ROLE_WRITE), LOCK(0, 1, .role = ZKL_ROLE_READ, .under = 1),
               LOCK(1, 1, .role = ZKL_ROLE_WRITE), LOCK(2, 1, .role = ZKL_ROLE_READ)},
     .faults = USUAL},
    {.name = "readers",
     .says = "a reader behind a writer, twice",
     .parts = {LOCK(0, 1, .role = ZKL_ROLE_WRITE), LOCK(1, 2, .role = ZKL_ROLE_READ),
               LOCK(2, 1, .role = ZKL_ROLE_WRITE)},
     .faults = USUAL | BIT(FAULT_WRITE)},
    {.name = "multi",
     .says = "a multi-lock of two paths, single lockers",
     .parts = {{.kind = PART_MULTI, .client = 0, .cycles = 1, .count = 2},
               LOCK(1, 1, .root = 1), LOCK(2, 1, .root = 0)},
     .faults = USUAL},
    {.name = "try",
     .says = "a try beside a lock",
     .parts = {LOCK(0, 2, .try_only = true), LOCK(1, 1), LOCK(2, 1, .try_only = true, .try_sync = true)},
     .faults = USUAL},
    {.name = "retained",
     .says = "a lock that is kept with nobody in it, and others",
     .parts = {{.kind = PART_TURN, .client = 0, .cycles = 2}, LOCK(1, 1), LOCK(2, 1, .try_only = true)},
     .faults = USUAL,
     .retain_ms = 1000},
    {.name = "turns",
     .says = "two threads that hand a lock on, and others",
     .parts = {{.kind = PART_TURN, .client = 0, .cycles = 1}, {.kind = PART_TURN, .client = 0, .cycles = 1},
               LOCK(1, 1), LOCK(2, 1)},
     .faults = USUAL | BIT(FAULT_EXIT),
     .handoffs_max = 1},
};
const size_t scenario_count = sizeof scenarios / sizeof *scenarios;

const struct scenario *scenario_find(const char *name)
{
    for (size_t i = 0; i < scenario_count; i++) {
        if (strcmp(scenarios[i].name, name) == 0)
            return &scenarios[i];
    }
    return NULL;
}
