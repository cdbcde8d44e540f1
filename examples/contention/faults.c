/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <stdbool.h>

static void add(struct faults *f, bool present, const char *text, uint64_t number)
{
    if (present)
        f->all[f->count++] = (struct fault){number, text};
}

static void of_the_lock(struct faults *f, const struct verdict *v)
{
    add(f, v->lost_updates != 0, "updates are missing in the record", (uint64_t)v->lost_updates);
    add(f, v->overlaps > 0, "times two held the lock at once", v->overlaps);
    add(f, v->unexplained > 0, "writes were refused as stale, but the lock's holds were whole",
        v->unexplained);
}

void faults_find(struct faults *f, const struct options *o, const struct verdict *v, unsigned odd)
{
    f->count = 0;
    if (o->lock)
        of_the_lock(f, v);
    /* One now and then is the lot of a loaded machine; a lock that is always lost is none. */
    add(f, v->holds_lost > 10 + v->acquisitions / 10, "holds were lost, more than one in ten",
        v->holds_lost);
    add(f, v->corrupt > 0, "entries of journal and record contradict each other", v->corrupt);
    add(f, odd > 0, "calls returned what they should not", odd);
    add(f, v->acquisitions == 0, "acquisitions", 0);
    if (o->crash)
        add(f, v->kills < (unsigned)o->kills_min, "kills were too few; --kills set the least",
            v->kills);
    if (o->pause)
        add(f, !v->refused_stale, "stale writes were refused; a pause should have caused some", 0);
}
