/* SPDX-License-Identifier: Apache-2.0 */
/* What world.py and hooks.py have written again of C's structs: a changed one is noticed by its size. */
#include "shared.h"
#include "wall.h"

#include "lag.h"
#include "wire.h"
#include "dev/zkserver.h"

extern const size_t sizes[];
/* In the order of hooks.py. */
const size_t sizes[] = {
    sizeof(struct zks_options), sizeof(struct wire_stat), sizeof(struct wire_acl),
    sizeof(struct wire_names),  sizeof(struct lag),       sizeof(struct shared),
    sizeof(struct wall),
};
