/* SPDX-License-Identifier: Apache-2.0 */
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

struct zkl_look zkl_queue_look(const char *const *children, size_t count, const char *own)
{
    struct zkl_look look = {0};
    int32_t own_sequence = 0, nearest = 0;
    bool last = !own || !zkl_name_parse(own, &own_sequence);

    for (size_t i = 0; i < count; i++) {
        const char *name = children[i];
        int32_t sequence;
        if (!zkl_name_parse(name, &sequence)) {
            look.foreign = name;
            continue;
        }
        look.contenders++;
        int order = last ? -1 : zkl_queue_compare(sequence, name, own_sequence, own);
        if (order == 0)
            look.present = true;
        if (order >= 0)
            continue;
        look.before++;
        if (!look.predecessor || zkl_queue_compare(sequence, name, nearest, look.predecessor) > 0) {
            look.predecessor = name;
            nearest = sequence;
        }
    }
    return look;
}

const char *zkl_queue_find_guid(const char *const *children, size_t count, const char *guid)
{
    for (size_t i = 0; i < count; i++) {
        if (zkl_name_has_guid(children[i], guid))
            return children[i];
    }
    return NULL;
}
