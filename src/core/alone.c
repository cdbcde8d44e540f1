/* SPDX-License-Identifier: Apache-2.0 */
#include "alone.h"

#include "watch.h"

/* Of the watch on the path's node; 0: what it would tell may have been missed. */
static uint64_t witness(const struct zkl_core *core, const struct zkl_alone *alone)
{
    const struct zkl_watch *watch = alone->root.watch;
    return zkl_watch_is_reliable(core, watch) ? watch->id : 0;
}

static bool number_of(const struct zkl_contender *c, const char *name, int32_t *number)
{
    struct zkl_place place;
    bool known = zkl_name_parse(name, &c->machine.naming, &place);
    *number = known ? place.sequence : 0;
    return known;
}

/* A new one where it was armed over an earlier link; one that is being armed is taken up again. */
static void watch_root(struct zkl_core *core, struct zkl_alone *alone, const char *path)
{
    enum zkl_answer why;
    zkl_watch_unsubscribe(core, &alone->root);
    alone->root.alone = alone;
    if (zkl_watch_data(core, &alone->root, NULL, path, &why) == ZKL_SUBSCRIBED_REFUSED)
        zkl_alone_unsure(alone);
}

bool zkl_alone_expects(const struct zkl_core *core, const struct zkl_contender *c)
{
    const struct zkl_alone *alone = c->alone;
    bool busy = core->pending_count > 0 || c->batch;
    return alone && busy && alone->row >= core->alone_from && alone->here == 0 &&
           witness(core, alone) != 0;
}

bool zkl_alone_created(struct zkl_core *core, struct zkl_contender *c, const char *name)
{
    struct zkl_alone *alone = c->alone;
    int32_t number;
    if (!alone || !name || !number_of(c, name, &number))
        return false;
    bool next = alone->left && number > 0 && number - 1 == alone->number;
    uint64_t seen_by = witness(core, alone);
    alone->row = next ? alone->row + 1 : 0;
    if (next && alone->row >= core->alone_from && seen_by == 0)
        watch_root(core, alone, c->machine.root);
    return next && seen_by != 0 && seen_by == alone->seen_by;
}

void zkl_alone_leaves(const struct zkl_core *core, struct zkl_contender *c)
{
    if (c->alone)
        c->seen_by = witness(core, c->alone);
}

void zkl_alone_left(struct zkl_contender *c)
{
    struct zkl_alone *alone = c->alone;
    int32_t number;
    if (!alone || !c->machine.was_first || !number_of(c, c->machine.node, &number))
        return;
    alone->left = true;
    alone->number = number;
    alone->seen_by = c->seen_by;
}

void zkl_alone_unsure(struct zkl_alone *alone)
{
    alone->row = 0;
}
