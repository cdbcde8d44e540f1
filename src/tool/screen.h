/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people: in color on a terminal, cut to its width if they are drawn repeatedly. */
#ifndef ZKLOCK_TOOL_SCREEN_H
#define ZKLOCK_TOOL_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

enum style { STYLE_PLAIN, STYLE_TITLE, STYLE_HOLDER, STYLE_WARNING, STYLES };

struct screen {
    FILE *out;
    bool is_terminal;
    bool colours;
};

void screen_init(struct screen *screen, FILE *out);

/* Lines are collected first, so that a redraw does not flicker. */
struct sheet {
    FILE *lines;
    char *text;
    size_t size;
};

/* False: no memory. */
bool sheet_open(struct sheet *sheet);
/* With the text of others made plain. */
void sheet_line(struct sheet *sheet, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Print all lines as they are. 0, or -1 if they could not be written. */
int sheet_print(struct sheet *sheet, const struct screen *screen);
/* Draw them over what the screen has, as many and as much of each as there is room for. 0 or -1. */
int sheet_draw(struct sheet *sheet, const struct screen *screen);
void sheet_close(struct sheet *sheet);

#endif
