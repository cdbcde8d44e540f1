/* SPDX-License-Identifier: Apache-2.0
 *
 * The place of a waiting contender in its queue. This file sends nothing: the contender's last
 * list, or its number, said how many are before it; the nearest is the node that it watches, whose
 * owner text the arming read returned. It owns nothing; the caller has the client's mutex.
 * src/api/standing.c calls it, for users. */
#include "place.h"

#include <string.h>

#include "watch.h"

static const char *printable(const char *text)
{
    return text && zkl_text_is_printable(text, strlen(text)) ? text : NULL;
}

struct zkl_queue_place zkl_queue_place_of(const struct zkl_contender *contender)
{
    struct zkl_queue_place place = {0};
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
