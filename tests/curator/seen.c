/* SPDX-License-Identifier: Apache-2.0 */
#include "seen.h"

#include <stdio.h>

struct seen look(struct zkl_client *client, const char *path)
{
    const struct zkl_inspection *inspection = NULL;
    struct seen seen = {0};

    if (zkl_inspect(client, path, WAIT_MS, &inspection) != 0)
        fail_msg("%s", zkl_error_detail());
    seen.kind = inspection->kind;
    seen.permits = inspection->permits;
    seen.total = inspection->count;
    for (size_t i = 0; i < inspection->count; i++)
        seen.count[inspection->entries[i].role][inspection->entries[i].access]++;
    if (inspection->count > 0)
        snprintf(seen.first, sizeof seen.first, "%s", inspection->entries[0].node_path);
    zkl_inspection_free(inspection);
    return seen;
}
