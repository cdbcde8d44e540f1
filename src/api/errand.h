/* SPDX-License-Identifier: Apache-2.0
 * What the command zklock asks of a server that no lock asks: ACLs, counters, and writes of a record beside a lock. These
 * calls are exported for that command alone, which comes from the same sources: no other program may use them, and they
 * change without notice. */
#ifndef ZKL_API_ERRAND_H
#define ZKL_API_ERRAND_H

#include <stddef.h>
#include <stdint.h>

#include <zklock/client.h>
#include <zklock/wait.h>

#include "core/part.h"

enum zkl_errand_kind {
    ZKL_ERRAND_STAT,
    ZKL_ERRAND_GET,
    ZKL_ERRAND_ACL,  /* data: a line "PERMISSIONS SCHEME" for each entry, the bits as a number */
    ZKL_ERRAND_PARTS /* one transaction, which goes to the leader and wants a quorum */
};

enum zkl_errand_answer {
    ZKL_ERRAND_OK,
    ZKL_ERRAND_LOST, /* none: what was to be written may have been */
    ZKL_ERRAND_NO_NODE,
    ZKL_ERRAND_EXISTS,
    ZKL_ERRAND_BAD_VERSION,
    ZKL_ERRAND_NOT_EMPTY,
    ZKL_ERRAND_DENIED,
    ZKL_ERRAND_NO_CHILDREN, /* the node above can have none: it is ephemeral */
    ZKL_ERRAND_OTHER
};

struct zkl_errand {
    enum zkl_errand_kind kind;
    const char *path; /* below the client's chroot; all but PARTS */
    const struct zkl_part *parts;
    size_t part_count;
    char *data; /* GET, ACL: what is read, and a NUL, as far as there is room; may be NULL */
    size_t room;

    /* Set by the call. */
    enum zkl_errand_answer answer;
    int number;       /* ZooKeeper's code for it */
    size_t blamed;    /* PARTS that failed: the part */
    size_t size;      /* of the data, all of it */
    int64_t mtime_ms; /* PARTS: of what the last SET wrote; by the leader's clock */
    int32_t version;
    uint32_t created; /* how many children the node has ever had; not of PARTS */
};

/* Send all together, in this order, and wait for their answers: what is read is not older than what
 * was answered before it (B16, B18). One read by itself goes out again with the next link; with more
 * a link that breaks answers LOST. 0: each has an answer. Else none counts, and what was to be
 * written may have been: ZKL_ETIMEDOUT; ZKL_EDISCONNECTED: the deadline found no link; ZKL_ECANCELED
 * (cancel may be NULL); or as of a lock. Any thread but a callback's. */
ZKL_API int zkl_errands(struct zkl_client *client, struct zkl_errand *errands, size_t count,
                        int64_t deadline_ns, struct zkl_cancel *cancel);

#endif
