/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline as a picture (SVG): waiting light, holding dark, what went wrong marked. Shapes tell
 * everything, so it can be read without colors. */
#ifndef CONTENTION_PICTURE_H
#define CONTENTION_PICTURE_H

#include "options.h"
#include "timeline.h"

/* 0, or -1 and one line on stderr. */
int picture_draw(const struct options *options, const struct timeline *timeline);

#endif
