/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LEFT = 150, /* of the rows; before it stand their names */
    WIDTH = 820,
    MARGIN = 20,
    TITLE_Y = 24,
    LEGEND_Y = 48,
    TOP = 70,
    ROW = 20,
    GAP = 8, /* between processes */
    AXIS = 40,
};

static const char *const bar_class[BARS] = {
    [BAR_WAITING] = "waiting", [BAR_HOLDING] = "holding", [BAR_STOPPED] = "stopped"};
static const int bar_height[BARS] = {[BAR_WAITING] = 6, [BAR_HOLDING] = 14, [BAR_STOPPED] = 14};
static const char *const mark_id[MARKS] = {
    [MARK_CRASH] = "crash", [MARK_PAUSE] = "pause", [MARK_REFUSED] = "refused"};

/* A mark stands on a white ground of its own, to the right of its moment, so that what ended there
 * is seen. */
static const char definitions[] =
    "<style>text{font:12px sans-serif;fill:#111}.title{font-weight:bold}.axis{stroke:#999}"
    ".waiting{fill:#bbb}.holding{fill:#111}.stopped{fill:url(#stripes)}"
    ".ground{fill:#fff}.mark{fill:none;stroke:#b00000;stroke-width:2}</style>\n"
    "<defs>\n"
    "<pattern id=\"stripes\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
    "<rect width=\"6\" height=\"6\" class=\"ground\"/>"
    "<path d=\"M0 6L6 0M-1 1L1 -1M5 7L7 5\" stroke=\"#111\"/></pattern>\n"
    "<g id=\"crash\"><rect y=\"-7\" width=\"14\" height=\"14\" class=\"ground\"/>"
    "<path d=\"M2 -5L12 5M2 5L12 -5\" class=\"mark\"/></g>\n"
    "<g id=\"pause\"><rect y=\"-8\" width=\"10\" height=\"16\" class=\"ground\"/>"
    "<path d=\"M3 -6V6M7 -6V6\" class=\"mark\"/></g>\n"
    "<g id=\"refused\"><circle cx=\"8\" r=\"8\" class=\"ground\"/>"
    "<circle cx=\"8\" r=\"6\" class=\"mark\"/><path d=\"M4 4L12 -4\" class=\"mark\"/></g>\n"
    "</defs>\n";

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '<')
            fputs("&lt;", out);
        else
            fputc(*text, out);
    }
}

static int row_y(const struct timeline *t, unsigned row)
{
    return TOP + (int)row * ROW + (int)(row / t->threads) * GAP;
}

static int bottom(const struct timeline *t)
{
    return row_y(t, t->processes * t->threads) - GAP;
}

static double x_of(const struct timeline *t, uint64_t us)
{
    return LEFT + (double)us * WIDTH / (double)t->end_us;
}

/* --- head ---------------------------------------------------------------------------------------
 */

static void title(FILE *out, const struct options *o, const struct timeline *t)
{
    fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"title\">%u processes x %u threads, ", MARGIN,
            TITLE_Y, t->processes, t->threads);
    if (o->lock) {
        fputs("one lock: ", out);
        put_escaped(out, o->path);
    } else {
        fputs("without a lock", out);
    }
    fputs("</text>\n", out);
}

static void legend_text(FILE *out, int *x, const char *text, int width)
{
    fprintf(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", *x, LEGEND_Y + 4, text);
    *x += width;
}

static void legend_bar(FILE *out, int *x, enum bar_kind kind, const char *text, int width)
{
    fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"28\" height=\"%d\" class=\"%s\"/>\n", *x,
            LEGEND_Y - bar_height[kind] / 2, bar_height[kind], bar_class[kind]);
    *x += 34;
    legend_text(out, x, text, width);
}

static void legend_mark(FILE *out, int *x, enum mark_kind kind, const char *text, int width)
{
    fprintf(out, "<use href=\"#%s\" x=\"%d\" y=\"%d\"/>\n", mark_id[kind], *x, LEGEND_Y);
    *x += 20;
    legend_text(out, x, text, width);
}

/* What a run cannot have is not explained. */
static void legend(FILE *out, const struct options *o)
{
    int x = LEFT;
    fputs("<g id=\"legend\">\n", out);
    if (o->lock)
        legend_bar(out, &x, BAR_WAITING, "waits", 48);
    legend_bar(out, &x, BAR_HOLDING, o->lock ? "holds the lock" : "reads, works, writes", 104);
    if (o->pause)
        legend_bar(out, &x, BAR_STOPPED, "process stopped", 112);
    if (o->crash)
        legend_mark(out, &x, MARK_CRASH, "process killed", 98);
    if (o->pause)
        legend_mark(out, &x, MARK_PAUSE, "stop begins", 82);
    if (o->lock)
        legend_mark(out, &x, MARK_REFUSED, "stale write refused", 0);
    fputs("</g>\n", out);
}

/* --- rows ---------------------------------------------------------------------------------------
 */

/* One path for all bars of a kind. Within it a unit to the right is a microsecond, so that the
 * picture has the journal's times as they are. */
static void bars(FILE *out, const struct row *row, enum bar_kind kind)
{
    int height = bar_height[kind];
    fprintf(out, "<path class=\"%s\" d=\"", bar_class[kind]);
    for (size_t i = 0; i < row->bar_count; i++) {
        const struct bar *bar = &row->bars[i];
        if (bar->kind == kind)
            fprintf(out, "M%" PRIu64 " %dH%" PRIu64 "v%dH%" PRIu64 "z", bar->from_us,
                    (ROW - height) / 2, bar->to_us, height, bar->from_us);
    }
    fputs("\"/>\n", out);
}

/* A pattern would be stretched with the microseconds, so stops are drawn in the picture's units. */
static void stops(FILE *out, const struct timeline *t, const struct row *row, int y)
{
    int height = bar_height[BAR_STOPPED];
    for (size_t i = 0; i < row->bar_count; i++) {
        const struct bar *bar = &row->bars[i];
        double x = x_of(t, bar->from_us);
        if (bar->kind == BAR_STOPPED)
            fprintf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"/>\n",
                    bar_class[BAR_STOPPED], x, y + (ROW - height) / 2, x_of(t, bar->to_us) - x,
                    height);
    }
}

static void marks(FILE *out, const struct timeline *t, const struct row *row, int y)
{
    for (size_t i = 0; i < row->mark_count; i++)
        fprintf(out, "<use href=\"#%s\" x=\"%.2f\" y=\"%d\"/>\n", mark_id[row->marks[i].kind],
                x_of(t, row->marks[i].at_us), y + ROW / 2);
}

static void draw_row(FILE *out, const struct timeline *t, unsigned number)
{
    const struct row *row = &t->rows[number];
    int y = row_y(t, number);
    fprintf(out,
            "<g class=\"row\">\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\">process %u thread "
            "%u</text>\n<g transform=\"translate(%d,%d) scale(%.9g,1)\">\n",
            LEFT - 8, y + ROW / 2 + 4, number / t->threads, number % t->threads, LEFT, y,
            (double)WIDTH / (double)t->end_us);
    bars(out, row, BAR_WAITING);
    bars(out, row, BAR_HOLDING);
    fputs("</g>\n", out);
    stops(out, t, row, y);
    marks(out, t, row, y);
    fputs("</g>\n", out);
}

/* --- axis ---------------------------------------------------------------------------------------
 */

/* 1, 2 or 5 times a power of ten, and about ten of them in the picture. */
static uint64_t tick_us(uint64_t end_us)
{
    static const uint64_t steps[] = {1, 2, 5};
    for (uint64_t power = 1;; power *= 10) {
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            if (steps[i] * power * 10 >= end_us)
                return steps[i] * power;
        }
    }
}

static void axis(FILE *out, const struct timeline *t)
{
    int y = bottom(t) + 6;
    uint64_t step = tick_us(t->end_us);
    fprintf(out, "<path class=\"axis\" d=\"M%d %dh%d\"/>\n", LEFT, y, WIDTH);
    for (uint64_t us = 0; us <= t->end_us; us += step)
        fprintf(out,
                "<path class=\"axis\" d=\"M%.2f %dv5\"/><text x=\"%.2f\" y=\"%d\" "
                "text-anchor=\"middle\">%.6g s</text>\n",
                x_of(t, us), y, x_of(t, us), y + 18, (double)us / 1e6);
}

static void draw(FILE *out, const struct options *o, const struct timeline *t)
{
    int width = LEFT + WIDTH + MARGIN;
    int height = bottom(t) + AXIS;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n%s<rect width=\"%d\" height=\"%d\" class=\"ground\"/>\n",
            width, height, width, height, definitions, width, height);
    title(out, o, t);
    legend(out, o);
    for (unsigned i = 0; i < t->processes * t->threads; i++)
        draw_row(out, t, i);
    axis(out, t);
    fputs("</svg>\n", out);
}

int picture_draw(const struct options *o, const struct timeline *timeline)
{
    FILE *out = fopen(o->svg, "we");
    if (out) {
        draw(out, o, timeline);
        int failed = ferror(out);
        if (fclose(out) == 0 && !failed)
            return 0;
    }
    fprintf(stderr, "contention: --svg %s: %s\n", o->svg, strerror(errno));
    return -1;
}
