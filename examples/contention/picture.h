/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline as a picture (SVG): waiting light, holding dark, what went wrong marked. A reader
 * can read it without colors, because shapes say everything. */
#ifndef CONTENTION_PICTURE_H
#define CONTENTION_PICTURE_H

#include "options.h"
#include "timeline.h"

/* 0, or -1 and one line on stderr. */
int picture_draw(const struct options *options, const struct timeline *timeline);

#endif
