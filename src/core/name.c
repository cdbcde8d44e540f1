/* SPDX-License-Identifier: Apache-2.0
 *
 * Names on the wire: paths and their faults, GUIDs, and the children of a lock's path that
 * represent contenders, written and read by the markers of role.c. Pure, without a lock: text in,
 * text out, into the caller's memory. The core and src/api call it. */
#include "name.h"

#include <endian.h>
#include <string.h>

#define NOT_UTF8 UINT32_MAX
#define DIGITS "0123456789"
#define NAMED_AT (3 + ZKL_GUID_LEN + 1) /* of the name, or the marker, in "_c_<uuid>-" */

/* The next character of UTF-8 text (RFC 3629), NOT_UTF8 if it is none; *at moves behind it. */
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
    bool is_surrogate = c >= 0xd800 && c <= 0xdfff;
    return more < 0 || c < smallest[more] || c > 0x10ffff || is_surrogate ? NOT_UTF8 : c;
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
        if ((c >= 0xe000 && c <= 0xf8ff) || c >= 0xfff0)
            return "has a character that ZooKeeper refuses (private use, special, or above U+FFFF)";
    }
    return NULL;
}

const char *zkl_absolute_fault(const char *path)
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

const char *zkl_node_path_fault(const char *path)
{
    if (path[0] == '\0')
        return "is empty: give an absolute path such as /locks/report";
    if (path[0] != '/')
        return "does not begin with a slash: give an absolute path such as /locks/report";
    if (path[1] == '\0')
        return "is the root node, which cannot be a lock: give a path below it";
    if (strncmp(path, "/zookeeper", 10) == 0 && (path[10] == '\0' || path[10] == '/'))
        return "is below /zookeeper, which the server reserves";
    return zkl_absolute_fault(path);
}

const char *zkl_path_fault(const char *path)
{
    return strlen(path) > ZKL_PATH_MAX ? "is longer than 512 bytes" : zkl_node_path_fault(path);
}

void zkl_guid_format(const unsigned char random[16], char *out)
{
    static const char hex[] = "0123456789abcdef";
    static const unsigned char at[16] = {0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34};
    for (int i = 0; i < 16; i++) {
        out[at[i]] = hex[random[i] >> 4];
        out[at[i] + 1] = hex[random[i] & 0x0f];
    }
    out[8] = out[13] = out[18] = out[23] = '-';
    out[14] = '4';
    out[19] = hex[0x8 | (random[8] >> 4 & 0x3)];
    out[ZKL_GUID_LEN] = '\0';
}

void zkl_guid_mark_retained(char *guid)
{
    guid[14] = '8';
}

void zkl_name_prefix(const struct zkl_naming *naming, const char *guid, char *out)
{
    const char *marker = zkl_roles[naming->role].markers[naming->names];
    if (naming->names == ZKL_NAMES_KAZOO) {
        for (const char *at = guid; *at; at++) {
            if (*at != '-')
                *out++ = *at;
        }
        strcpy(out, marker);
    } else {
        out = stpcpy(stpcpy(stpcpy(out, "_c_"), guid), "-");
        stpcpy(stpcpy(out, naming->name), marker);
    }
}

size_t zkl_name_length(const struct zkl_naming *naming)
{
    size_t marker = strlen(zkl_roles[naming->role].markers[naming->names]);
    size_t guid =
        naming->names == ZKL_NAMES_KAZOO ? ZKL_GUID_LEN - 4 : NAMED_AT + strlen(naming->name);
    return guid + marker + strlen("-2147483648");
}

static bool parse_number(const char *text, int32_t *sequence)
{
    const char *digits = text + (*text == '-');
    size_t length = strspn(digits, DIGITS);
    if (length == 0 || length > 10 || digits[length] != '\0')
        return false;
    int64_t number = 0;
    for (size_t i = 0; i < length; i++)
        number = 10 * number + (digits[i] - '0');
    if (*text == '-')
        number = -number;
    if (number < INT32_MIN || number > INT32_MAX)
        return false;
    *sequence = (int32_t)number;
    return true;
}

static bool ends_with(const char *start, const char *end, const char *marker)
{
    size_t length = strlen(marker);
    return (size_t)(end - start) >= length && memcmp(end - length, marker, length) == 0;
}

/* The text after the last marker, NULL if that is no number. Long lists are parsed here, so it
 * reads only the few bytes at the end. */
static const char *after_last(const char *child, const char *marker, int32_t *sequence)
{
    const char *number = child + strlen(child);
    while (number > child && number[-1] >= '0' && number[-1] <= '9')
        number--;
    bool found = ends_with(child, number, marker);
    if (!found && number > child && number[-1] == '-')
        found = ends_with(child, --number, marker);
    return found && parse_number(number, sequence) ? number : NULL;
}

/* "x-<session>-<number>": ZooKeeper's own recipes, in C (hexadecimal) and Java (decimal). */
static const char *after_session(const char *child, int32_t *sequence)
{
    if (strncmp(child, "x-", 2) != 0)
        return NULL;
    const char *at = child + 2 + (child[2] == '-');
    size_t digits = strspn(at, "0123456789abcdefABCDEF");
    return digits > 0 && at[digits] == '-' && parse_number(at + digits + 1, sequence)
               ? at + digits + 1
               : NULL;
}

/* "_c_<uuid>-<name>_lock_<number>": the digits, and how long the name is that stands at
 * NAMED_AT. */
static const char *after_any_name(const char *child, size_t *length, int32_t *sequence)
{
    const char *digits = after_last(child, ZKL_NAMED_MARKER, sequence);
    size_t around = NAMED_AT + strlen(ZKL_NAMED_MARKER);
    if (!digits || (size_t)(digits - child) < around || strncmp(child, "_c_", 3) != 0)
        return NULL;
    if (strspn(child + 3, "0123456789abcdef-") < ZKL_GUID_LEN + 1 || child[NAMED_AT - 1] != '-')
        return NULL;
    *length = (size_t)(digits - child) - around;
    return digits;
}

/* 32 digits, in Kazoo's names alone, in all others with the dashes of a UUID. */
bool zkl_name_is_retained(const char *child)
{
    static const char digits[] = "0123456789abcdef-";
    bool dashed = strncmp(child, "_c_", 3) == 0;
    const char *guid = dashed ? child + 3 : child;
    if (!dashed)
        return strspn(guid, digits) == 32 && guid[12] == '8';
    return strspn(guid, digits) > ZKL_GUID_LEN && guid[8] == '-' && guid[13] == '-' &&
           guid[14] == '8';
}

static const char *after_name(const char *child, const char *name, int32_t *sequence)
{
    size_t length;
    const char *digits = after_any_name(child, &length, sequence);
    bool ours = digits && length == strlen(name) && memcmp(child + NAMED_AT, name, length) == 0;
    return ours ? digits : NULL;
}

/* The name of a named lock and its number, whatever it is. */
static bool parse_named(const char *child, char *name, int32_t *sequence)
{
    size_t length;
    if (!after_any_name(child, &length, sequence) || length > ZKL_LOCK_NAME_MAX)
        return false;
    memcpy(name, child + NAMED_AT, length);
    name[length] = '\0';
    return zkl_lock_name_fault(name) == NULL;
}

/* The first role whose marker, in these names, is the last thing before a number. */
static const char *after_marker(const char *child, enum zkl_names names,
                                struct zkl_node_name *place)
{
    const char *digits = NULL;
    for (size_t role = 0; !digits && role < ZKL_ROLES; role++) {
        place->role = (enum zkl_role)role;
        if (!zkl_roles[role].counted)
            digits = after_last(child, zkl_roles[role].markers[names], &place->sequence);
    }
    return digits;
}

static const char *parse(const char *child, const struct zkl_naming *naming,
                         struct zkl_node_name *place)
{
    const struct zkl_role_row *ours = &zkl_roles[naming->role];
    place->role = naming->role;
    place->peer = ZKL_PEER_CURATOR;
    if (ours->counted)
        return after_last(child, ours->markers[naming->names], &place->sequence);
    if (naming->names == ZKL_NAMES_NAMED)
        return after_name(child, naming->name, &place->sequence);
    const char *digits = after_marker(child, ZKL_NAMES_CURATOR, place);
    if (digits)
        return digits;
    place->peer = ZKL_PEER_KAZOO;
    digits = after_marker(child, ZKL_NAMES_KAZOO, place);
    if (digits)
        return digits;
    place->role = ZKL_ROLE_LOCK;
    place->peer = ZKL_PEER_ZOOKEEPER;
    return after_session(child, &place->sequence);
}

bool zkl_name_parse(const char *child, const struct zkl_naming *naming, struct zkl_node_name *place)
{
    return parse(child, naming, place) != NULL;
}

int64_t zkl_name_sequence(const char *child, const struct zkl_naming *naming)
{
    struct zkl_node_name place;
    return parse(child, naming, &place) ? place.sequence : ZKL_SEQUENCE_NONE;
}

bool zkl_naming_meets(const struct zkl_naming *a, const struct zkl_naming *b)
{
    bool named = a->names == ZKL_NAMES_NAMED;
    return named == (b->names == ZKL_NAMES_NAMED) &&
           zkl_roles[a->role].counted == zkl_roles[b->role].counted &&
           (!named || strcmp(a->name, b->name) == 0);
}

const char *zkl_name_digits(const char *child, const struct zkl_naming *naming)
{
    struct zkl_node_name place;
    return parse(child, naming, &place);
}

bool zkl_name_recognise(const char *child, struct zkl_naming *naming, struct zkl_node_name *place)
{
    *naming = (struct zkl_naming){.role = ZKL_ROLE_LOCK};
    if (zkl_name_parse(child, naming, place)) {
        naming->role = place->role;
        return true;
    }
    naming->names = ZKL_NAMES_NAMED;
    return parse_named(child, naming->name, &place->sequence) &&
           zkl_name_parse(child, naming, place);
}

bool zkl_is_revocation(const char *data, size_t size)
{
    return size == strlen(ZKL_REVOCATION) && memcmp(data, ZKL_REVOCATION, size) == 0;
}

const char *zkl_lock_name_fault(const char *name)
{
    if (name[0] == '\0')
        return "is empty";
    if (strlen(name) > ZKL_LOCK_NAME_MAX)
        return "is longer than 64 bytes";
    if (strchr(name, '/'))
        return "has a slash";
    if (strstr(name, ZKL_NAMED_MARKER))
        return "has \"" ZKL_NAMED_MARKER "\" in it, which ends a lock's name on the wire";
    return component_fault(name, strlen(name));
}

bool zkl_sequence_exhausted(int32_t sequence)
{
    return sequence < 0 || sequence >= ZKL_SEQUENCE_HARD;
}

int zkl_permits_parse(const char *data, size_t size)
{
    int number = 0;
    if (size == 0 || size > 6)
        return 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] < '0' || data[i] > '9')
            return 0;
        number = number * 10 + (data[i] - '0');
    }
    return number <= ZKL_PERMITS_MAX ? number : 0;
}

bool zkl_text_is_printable(const char *text, size_t length)
{
    for (const char *at = text; at < text + length;) {
        uint32_t c = next_character(&at, text + length);
        if (c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == NOT_UTF8)
            return false;
    }
    return true;
}

void zkl_text_copy(char *out, size_t size, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length >= size)
        length = size - 1;
    memcpy(out, text ? text : "", length);
    out[length] = '\0';
}

/* The lower bits of a product know of the factors' lower bits alone, so the upper ones are folded
 * in, and a word of a few bytes has them in its lower bits on every machine. */
uint32_t zkl_text_hash(const char *text)
{
    uint64_t h = 0;
    for (size_t left = strlen(text); left > 0;) {
        size_t size = left < sizeof h ? left : sizeof h;
        uint64_t word = 0;
        memcpy(&word, text, size);
        h = (h ^ le64toh(word)) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
        text += size;
        left -= size;
    }
    return (uint32_t)h;
}
