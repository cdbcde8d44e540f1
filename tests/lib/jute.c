/* SPDX-License-Identifier: Apache-2.0 */
#include "jute.h"

#include "wire.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- writing ---------------------------------------------------------------------------------- */

static void put(struct jute_out *out, const void *data, size_t n)
{
    if (out->n + n > out->room) {
        size_t room = (out->n + n) * 2;
        unsigned char *grown = realloc(out->data, room);
        if (grown == NULL) {
            out->failed = true;
            return;
        }
        out->data = grown;
        out->room = room;
    }
    if (n > 0)
        memcpy(out->data + out->n, data, n);
    out->n += n;
}

static void put_int(struct jute_out *out, int32_t value)
{
    unsigned char bytes[4];

    bytes_put32(bytes, value);
    put(out, bytes, sizeof bytes);
}

static void put_long(struct jute_out *out, int64_t value)
{
    unsigned char bytes[8];

    bytes_put64(bytes, value);
    put(out, bytes, sizeof bytes);
}

static void put_buffer(struct jute_out *out, const void *data, size_t n)
{
    put_int(out, (int32_t)n);
    put(out, data, n);
}

static void put_acl(struct jute_out *out, const struct wire_acl *acl, size_t n)
{
    put_int(out, (int32_t)n);
    for (size_t i = 0; i < n; i++)
        jute_put(out, "itt", acl[i].perms, acl[i].scheme, acl[i].id);
}

void jute_vput(struct jute_out *out, const char *fields, va_list args)
{
    for (; *fields; fields++) {
        if (*fields == 'i')
            put_int(out, va_arg(args, int32_t));
        else if (*fields == 'l')
            put_long(out, va_arg(args, int64_t));
        else if (*fields == 'b')
            put(out, va_arg(args, int) ? "\1" : "\0", 1);
        else if (*fields == 'p')
            put_buffer(out, va_arg(args, const char *), WIRE_PASSWORD);
        else if (*fields == 't') {
            const char *text = va_arg(args, const char *);
            put_buffer(out, text, strlen(text));
        } else if (*fields == 'a') {
            const struct wire_acl *acl = va_arg(args, const struct wire_acl *);
            put_acl(out, acl, va_arg(args, size_t));
        } else
            abort();
    }
}

void jute_put(struct jute_out *out, const char *fields, ...)
{
    va_list args;

    va_start(args, fields);
    jute_vput(out, fields, args);
    va_end(args);
}

/* --- reading ---------------------------------------------------------------------------------- */

unsigned char *jute_bytes(struct jute_in *in, size_t n)
{
    if (in->failed || in->n - in->at < n) {
        in->failed = true;
        return NULL;
    }
    in->at += n;
    return in->data + in->at - n;
}

int32_t jute_int(struct jute_in *in)
{
    unsigned char *at = jute_bytes(in, 4);

    return at != NULL ? bytes_get32(at) : 0;
}

static int64_t take_long(struct jute_in *in)
{
    unsigned char *at = jute_bytes(in, 8);

    return at != NULL ? bytes_get64(at) : 0;
}

size_t jute_buffer(struct jute_in *in, unsigned char **data)
{
    int32_t n = jute_int(in);

    *data = n > 0 ? jute_bytes(in, (size_t)n) : NULL;
    return *data != NULL ? (size_t)n : 0;
}

static void take_text(struct jute_in *in, char *text, size_t size)
{
    unsigned char *data;
    size_t n = jute_buffer(in, &data);

    if (text == NULL || size == 0)
        return;
    n = n < size ? n : size - 1;
    if (n > 0)
        memcpy(text, data, n);
    text[n] = '\0';
}

void jute_take(struct jute_in *in, const char *fields, ...)
{
    va_list args;

    va_start(args, fields);
    for (; *fields; fields++) {
        void *to = islower((unsigned char)*fields) ? va_arg(args, void *) : NULL;
        unsigned char *data;
        if (strchr("iI", *fields)) {
            int32_t value = jute_int(in);
            if (to != NULL)
                *(int32_t *)to = value;
        } else if (strchr("lL", *fields)) {
            int64_t value = take_long(in);
            if (to != NULL)
                *(int64_t *)to = value;
        } else if (*fields == 'p') {
            if (jute_buffer(in, &data) == WIRE_PASSWORD)
                memcpy(to, data, WIRE_PASSWORD);
        } else if (strchr("tT", *fields))
            take_text(in, to, *fields == 't' ? va_arg(args, size_t) : 0);
        else
            abort();
    }
    va_end(args);
}
