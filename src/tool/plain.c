/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of others, names and data of nodes, made safe for a line on a terminal: characters that
 * would steer the terminal, reverse or break the line, or be invisible are written as in bash's
 * $'...'. The caller provides the memory. Pure, any thread. Everything that prints text of others
 * calls it. */
#include "plain.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of the character of UTF-8 (RFC 3629) that text begins with; 0 if it is none. */
static size_t character(const char *text, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)text[0];
    size_t size = first < 0x80    ? 1
                  : first < 0xc0  ? 0
                  : first < 0xe0  ? 2
                  : first < 0xf0  ? 3
                  : first <= 0xf4 ? 4
                                  : 0;
    *code = size > 1 ? first & (0x7fu >> size) : first;
    for (size_t i = 1; i < size; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | ((unsigned char)text[i] & 0x3fu);
    }
    bool valid = size > 0 && *code >= smallest[size] && *code <= 0x10ffff &&
                 (*code < 0xd800 || *code > 0xdfff);
    return valid ? size : 0;
}

/* Control characters, line ends, and what Unicode calls ignorable when it is shown, which has those
 * that turn the direction. */
static bool is_hidden(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},
        {0x061c, 0x061c},   {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},
        {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
        {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
        {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (code >= hidden[i].first && code <= hidden[i].last)
            return true;
    }
    return false;
}

void plain(char *out, const char *text)
{
    while (*text) {
        uint32_t code;
        size_t size = character(text, &code);
        if (size > 0 && !is_hidden(code))
            out = mempcpy(out, text, size);
        else if (size == 1 && code == '\n')
            out = stpcpy(out, "\\n");
        else if (size <= 1)
            out += sprintf(out, "\\x%02x", (unsigned char)*text);
        else
            out += sprintf(out, code > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)code);
        text += size > 0 ? size : 1;
    }
    *out = '\0';
}

void plain_vprint(FILE *to, const char *format, va_list args)
{
    char *text = NULL;
    int length = vasprintf(&text, format, args);
    char *out = length >= 0 ? malloc(PLAIN_TIMES * (size_t)length + 1) : NULL;
    bool is_line = out && format[0] && format[strlen(format) - 1] == '\n';
    if (is_line)
        text[length - 1] = '\0';
    if (out) {
        plain(out, text);
        fputs(out, to);
    }
    if (is_line)
        fputc('\n', to);
    free(out);
    if (length >= 0)
        free(text);
}

void plain_print(FILE *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    plain_vprint(to, format, args);
    va_end(args);
}
