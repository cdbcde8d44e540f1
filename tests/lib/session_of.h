/* SPDX-License-Identifier: Apache-2.0 */
/* The session of a client whose internals the tests may read. */
#ifndef ZKTEST_SESSION_OF_H
#define ZKTEST_SESSION_OF_H

#include <stdbool.h>

#include "driver/handle.h"

/* False while there is none, as between two handles. */
static inline bool session_of(struct zkl_driver *d, clientid_t *id)
{
    zkl_driver_lock(d);
    struct zkl_handle *h = d->current;
    bool found = h != NULL && h->ready && h->zh != NULL;
    if (found)
        *id = *zoo_client_id(h->zh);
    zkl_driver_unlock(d);
    return found && id->client_id != 0;
}

#endif
