/* SPDX-License-Identifier: Apache-2.0 */
#include "name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_UTF8 UINT32_MAX

/* The next character of UTF-8 text (RFC 3629), NOT_UTF8 if it is none; *at goes behind it. */
static uint32_t next_character(const char **at, const char *end)
{
    static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)*(*at)++;
    int more = first < 0x80    ? 0
               : first >= 0xf8 ? -1
               : first >= 0xf0 ? 3
               : first >= 0xe0 ? 2
               : first >= 0xc0 ? 1
                               : -1;
    uint32_t c = more <= 0 ? first : first & (0x3fu >> more);
    for (int i = 0; i < more; i++) {
        if (*at == end || ((unsigned char)**at & 0xc0) != 0x80)
            return NOT_UTF8;
        c = c << 6 | ((unsigned char)*(*at)++ & 0x3fu);
    }
    return more < 0 || c < smallest[more] || c > 0x10ffff ? NOT_UTF8 : c;
}

static const char *component_fault(const char *start, size_t length)
{
    if (length == 0)
        return "has an empty component: write single slashes, none at the end";
    if ((length == 1 && start[0] == '.') || (length == 2 && start[0] == '.' && start[1] == '.'))
        return "has a \".\" or \"..\" component: write it out";
    for (const char *at = start; at < start + length;) {
        uint32_t c = next_character(&at, start + length);
        if (c < 0x20 || (c >= 0x7f && c <= 0x9f))
            return "has a control character";
        if (c == NOT_UTF8)
            return "is not valid UTF-8";
        if ((c >= 0xd800 && c <= 0xf8ff) || c >= 0xfff0)
            return "has a character that ZooKeeper refuses (private use, special, or above U+FFFF)";
    }
    return NULL;
}

static const char *absolute_fault(const char *path)
{
    const char *start = path + 1;
    for (;;) {
        size_t length = strcspn(start, "/");
        const char *fault = component_fault(start, length);
        if (fault || start[length] == '\0')
            return fault;
        start += length + 1;
    }
}

const char *zkl_path_fault(const char *path)
{
    if (path[0] == '\0')
        return "is empty: give an absolute path such as /locks/report";
    if (path[0] != '/')
        return "does not begin with a slash: give an absolute path such as /locks/report";
    if (path[1] == '\0')
        return "is the root node, which can't be a lock: give a path below it";
    if (strlen(path) > ZKL_PATH_MAX)
        return "is longer than 512 bytes";
    if (strncmp(path, "/zookeeper", 10) == 0 && (path[10] == '\0' || path[10] == '/'))
        return "lies below /zookeeper, which the server keeps for itself";
    return absolute_fault(path);
}

static const char *server_fault(const char *start, size_t length)
{
    const char *colon = NULL;
    long port = 0;
    for (size_t i = 0; i < length; i++) {
        if (start[i] == ':')
            colon = start + i;
        if ((unsigned char)start[i] <= 0x20)
            return "has a blank or control character";
    }
    if (!colon || colon == start)
        return "has an entry that is not HOST:PORT";
    size_t digits = (size_t)(start + length - colon - 1);
    if (digits == 0 || digits > 5)
        return "has an entry without a port of 1 to 65535";
    for (size_t i = 1; i <= digits; i++) {
        if (colon[i] < '0' || colon[i] > '9')
            return "has an entry without a port of 1 to 65535";
        port = port * 10 + (colon[i] - '0');
    }
    return port >= 1 && port <= 65535 ? NULL : "has an entry without a port of 1 to 65535";
}

const char *zkl_servers_fault(const char *text)
{
    size_t hosts = strcspn(text, "/");
    if (hosts == 0)
        return "is empty: give host:port[,host:port...][/chroot]";
    for (size_t at = 0; at <= hosts;) {
        size_t length = strcspn(text + at, ",/");
        const char *fault = server_fault(text + at, length);
        if (fault)
            return fault;
        at += length + 1;
    }
    if (text[hosts] == '\0')
        return NULL;
    if (text[hosts + 1] == '\0')
        return "ends with a slash: write the chroot after it, or leave it out";
    return absolute_fault(text + hosts) ? "has a chroot that is not a normalised path" : NULL;
}

void zkl_guid_format(const unsigned char random[16], char *out)
{
    static const char hex[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        unsigned char byte = random[i];
        if (i == 6)
            byte = (unsigned char)((byte & 0x0f) | 0x40);
        if (i == 8)
            byte = (unsigned char)((byte & 0x3f) | 0x80);
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = hex[byte >> 4];
        *out++ = hex[byte & 0x0f];
    }
    *out = '\0';
}

void zkl_name_prefix(const char *guid, char *out)
{
    snprintf(out, ZKL_NODE_NAME_MAX + 1, "_c_%s-" ZKL_LOCK_NAME, guid);
}

static bool parse_number(const char *text, int32_t *sequence)
{
    const char *digits = text + (*text == '-');
    size_t length = strlen(digits);
    if (length == 0 || length > 10 || strspn(digits, "0123456789") != length)
        return false;
    long long number = atoll(text);
    if (number < INT32_MIN || number > INT32_MAX)
        return false;
    *sequence = (int32_t)number;
    return true;
}

bool zkl_name_parse(const char *name, int32_t *sequence)
{
    const char *last = NULL;
    for (const char *at = strstr(name, ZKL_LOCK_NAME); at; at = strstr(at + 1, ZKL_LOCK_NAME))
        last = at;
    return last && parse_number(last + strlen(ZKL_LOCK_NAME), sequence);
}

bool zkl_name_has_guid(const char *name, const char *guid)
{
    return strncmp(name, "_c_", 3) == 0 && strncmp(name + 3, guid, ZKL_GUID_LEN) == 0 &&
           name[3 + ZKL_GUID_LEN] == '-';
}

bool zkl_sequence_exhausted(int32_t sequence)
{
    return sequence < 0 || sequence >= ZKL_SEQUENCE_HARD;
}

uint32_t zkl_text_hash(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}
