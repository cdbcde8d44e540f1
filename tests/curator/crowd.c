/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

void crowd_begin_sized(struct crowd *crowd, actor_fn fn, void *members, size_t size, size_t count)
{
    check_num(count, <=, CROWD_MAX);
    crowd->count = count;
    for (size_t i = 0; i < count; i++) {
        crowd->actors[i] = world_actor();
        actor_begin(crowd->actors[i], fn, (char *)members + i * size);
    }
}

void crowd_end(struct crowd *crowd)
{
    int64_t ms = test_length(30, 3) * WAIT_MS;

    for (size_t i = 0; i < crowd->count; i++) {
        check_wait(actor_is_done(crowd->actors[i]), ms);
        check_ok(actor_result(crowd->actors[i]));
    }
}
