/* SPDX-License-Identifier: Apache-2.0 */
#include "participants.h"

#include <stdio.h>

struct participants count_participants(struct zkl_client *client, const char *path)
{
    const struct zkl_inspection *inspection = NULL;
    struct participants participants = {0};

    if (zkl_inspect(client, path, WAIT_MS, &inspection) != 0)
        fail_msg("%s", zkl_error_detail());
    participants.kind = inspection->kind;
    participants.permits = inspection->permits;
    participants.total = inspection->count;
    for (size_t i = 0; i < inspection->count; i++)
        participants.count[inspection->entries[i].role][inspection->entries[i].access]++;
    if (inspection->count > 0)
        snprintf(participants.first, sizeof participants.first, "%s",
                 inspection->entries[0].node_path);
    zkl_inspection_free(inspection);
    return participants;
}
