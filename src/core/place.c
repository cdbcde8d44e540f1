/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a contender that waits stands in its queue. Nobody is asked: how many are before it its last
 * list said, or its number, and who is next the watch that it waits by, which was armed by reading that node.
 * It owns nothing; whoever asks has the client's mutex. src/api/standing.c does, for callers. */
#include "place.h"

#include <string.h>

#include "watch.h"

static const char *printable(const char *text)
{
    return text && zkl_text_is_printable(text, strlen(text)) ? text : NULL;
}

struct zkl_place zkl_place_of(const struct zkl_contender *contender)
{
    struct zkl_place place = {0};
    const struct zkl_watch *watch = contender->subs[ZKL_SUB_PRED].watch;
    if (contender->machine.state != ZKL_CONTENDER_WAITING)
        return place;
    place.before = contender->machine.before;
    if (!watch)
        return place;
    place.predecessor = strrchr(watch->path, '/') + 1;
    place.owner = printable(zkl_watch_owner(watch));
    return place;
}
