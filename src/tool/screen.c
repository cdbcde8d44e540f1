/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines for people: in color on a terminal, cut to its width if they are drawn repeatedly. A sheet,
 * which its caller owns, collects lines and prints them in one write, so that a redraw does not
 * flicker. One thread; status, its text form and doctor print by it. */
#include "screen.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "plain.h"

#define RESET "\033[0m"
#define TO_TOP "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_REST "\033[J"

static const char *const sequences[STYLES] = {[STYLE_PLAIN] = "",
                                              [STYLE_TITLE] = "\033[1m",
                                              [STYLE_HOLDER] = "\033[32m",
                                              [STYLE_WARNING] = "\033[33m"};

static char whole[32768]; /* what a terminal shows together */

void screen_init(struct screen *screen, FILE *out)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    bool able = term && strcmp(term, "dumb") != 0;
    screen->out = out;
    screen->is_terminal = isatty(fileno(out)) && able;
    screen->colours = screen->is_terminal && !(no_color && no_color[0]);
    if (screen->is_terminal) /* the C library would write each line by itself */
        setvbuf(out, whole, _IOFBF, sizeof whole);
}

/* --- collecting --------------------------------------------------------- */

bool sheet_open(struct sheet *sheet)
{
    *sheet = (struct sheet){0};
    sheet->lines = open_memstream(&sheet->text, &sheet->size);
    return sheet->lines != NULL;
}

/* Each line begins with its style. */
void sheet_line(struct sheet *sheet, enum style style, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputc('0' + (int)style, sheet->lines);
    plain_vprint(sheet->lines, format, args);
    va_end(args);
    fputc('\n', sheet->lines);
}

void sheet_close(struct sheet *sheet)
{
    fclose(sheet->lines);
    free(sheet->text);
}

/* --- printing ----------------------------------------------------------- */

/* The bytes of the first width characters of UTF-8. */
static size_t cut(const char *text, size_t length, size_t width)
{
    size_t characters = 0;
    for (size_t i = 0; i < length; i++) {
        bool begins = ((unsigned char)text[i] & 0xc0) != 0x80;
        if (begins && characters++ == width)
            return i;
    }
    return length;
}

static void put(const struct screen *screen, const char *line, size_t length, size_t width)
{
    const char *sequence = screen->colours ? sequences[line[0] - '0'] : "";
    fputs(sequence, screen->out);
    fwrite(line + 1, 1, cut(line + 1, length - 1, width), screen->out);
    if (sequence[0])
        fputs(RESET, screen->out);
}

static int flush(const struct screen *screen)
{
    return fflush(screen->out) == 0 && !ferror(screen->out) ? 0 : -1;
}

int sheet_print(struct sheet *sheet, const struct screen *screen)
{
    fflush(sheet->lines);
    for (const char *line = sheet->text; *line;) {
        size_t length = strcspn(line, "\n");
        put(screen, line, length, length);
        fputc('\n', screen->out);
        line += length + 1;
    }
    return flush(screen);
}

static struct winsize size_of(const struct screen *screen)
{
    struct winsize size;
    if (ioctl(fileno(screen->out), TIOCGWINSZ, &size) != 0 || !size.ws_row || !size.ws_col)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    return size;
}

/* The last line of the window stays empty: what is written there may scroll. */
int sheet_draw(struct sheet *sheet, const struct screen *screen)
{
    struct winsize size = size_of(screen);
    fflush(sheet->lines);
    fputs(TO_TOP, screen->out);
    const char *line = sheet->text;
    for (int row = 1; *line && row < size.ws_row; row++) {
        size_t length = strcspn(line, "\n");
        put(screen, line, length, size.ws_col);
        fputs(CLEAR_LINE "\n", screen->out);
        line += length + 1;
    }
    fputs(CLEAR_REST, screen->out);
    return flush(screen);
}
