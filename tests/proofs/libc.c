/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the C library that CBMC has no body for, as the standards define them. */
#include "proof.h"

#include <stdlib.h>
#include <string.h>

char *any_text(size_t max)
{
    size_t before = nondet_size();
    char *text = malloc(max + 1);

    assume(text != NULL && before <= max);
    for (size_t i = 0; i < max; i++)
        assume(i < before || text[i] != '\0');
    text[max] = '\0';
    return text + before;
}

static bool is_in(char c, const char *set)
{
    for (; *set != '\0'; set++) {
        if (*set == c)
            return true;
    }
    return false;
}

size_t strspn(const char *text, const char *accept)
{
    size_t n = 0;

    while (text[n] != '\0' && is_in(text[n], accept))
        n++;
    return n;
}

size_t strcspn(const char *text, const char *reject)
{
    size_t n = 0;

    while (text[n] != '\0' && !is_in(text[n], reject))
        n++;
    return n;
}

char *stpcpy(char *to, const char *from)
{
    while ((*to = *from) != '\0') {
        to++;
        from++;
    }
    return to;
}

static bool begins(const char *text, const char *with)
{
    for (; *with != '\0'; text++, with++) {
        if (*text != *with)
            return false;
    }
    return true;
}

char *strstr(const char *text, const char *what)
{
    for (;; text++) {
        if (begins(text, what))
            return (char *)text;
        if (*text == '\0')
            return NULL;
    }
}
