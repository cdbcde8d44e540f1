/* SPDX-License-Identifier: Apache-2.0 */
/* Names of nodes: what is written is what is read, by all who meet; and nothing is read or written beside the
 * bytes that are given. Lengths are constants, one run of CBMC for each (run.py): so all places in a text are
 * known, and only its bytes are left open. */
#include "proof.h"

#include <stdlib.h>
#include <string.h>

#include "core/name.h"

#ifndef LENGTH
#define LENGTH 1 /* of what is read: bytes, without the NUL */
#endif
#ifndef ROOM
#define ROOM 1 /* for what is copied, with the NUL */
#endif
#ifndef NAME_BYTES
#define NAME_BYTES 1 /* of a named lock's name */
#endif
#ifndef NAMES
#define NAMES ZKL_NAMES_CURATOR /* the writer's names */
#endif
#ifndef ROLE
#define ROLE ZKL_ROLE_LOCK
#endif
#ifndef MARKER
#define MARKER "lock-"
#endif

/* Any bytes but NUL, as many as that, and then a NUL that ends the memory: an array, as CBMC follows a pointer that
 * may be NULL, as that of malloc(), into both. */
static void any_text(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        text[i] = nondet_char();
        assume(text[i] != '\0');
    }
    text[length] = '\0';
    known_text = text;
    known_length = length;
}

/* The longest of these names is 4 + 36 + 9 + 11 bytes long, except the name of a named lock. */
#define CHILD_ROOM (3 + ZKL_GUID_LEN + 1 + NAME_BYTES + 8 + 11 + 1)

/* --- the specification of a name ---------------------------------------------------------------- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_dash_at(int i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

/* Any UUID; those of nodes that may stay are marked. */
static void any_guid(char guid[ZKL_GUID_LEN + 1], bool retained)
{
    for (int i = 0; i < ZKL_GUID_LEN; i++) {
        guid[i] = is_dash_at(i) ? '-' : nondet_char();
        assume(is_dash_at(i) || is_hex(guid[i]));
    }
    guid[14] = retained ? '8' : '4';
    guid[ZKL_GUID_LEN] = '\0';
}

static struct zkl_naming naming_of(enum zkl_names names, enum zkl_role role)
{
    struct zkl_naming naming = {.role = role, .names = names};

    for (size_t i = 0; names == ZKL_NAMES_NAMED && i < NAME_BYTES; i++) {
        naming.name[i] = nondet_char();
        assume(naming.name[i] != '\0');
    }
    return naming;
}

static size_t append(char *out, size_t at, const char *text)
{
    for (size_t i = 0; text[i] != '\0'; i++)
        out[at++] = text[i];
    return at;
}

/* What stands before the number, and how long it is. */
static size_t specified_prefix(const struct zkl_naming *naming, const char *guid, char *out)
{
    static const char *const curator[] = {"lock-", "__READ__", "__WRIT__", "lease-"};
    static const char *const kazoo[] = {"__lock__", "__rlock__", "__lock__", "lease-"};
    size_t at = 0;

    if (naming->names != ZKL_NAMES_KAZOO)
        at = append(out, at, "_c_");
    for (int i = 0; i < ZKL_GUID_LEN; i++) {
        if (naming->names != ZKL_NAMES_KAZOO || !is_dash_at(i))
            out[at++] = guid[i];
    }
    if (naming->names == ZKL_NAMES_KAZOO)
        return append(out, at, kazoo[naming->role]);
    out[at++] = '-';
    if (naming->names == ZKL_NAMES_CURATOR)
        return append(out, at, curator[naming->role]);
    for (size_t i = 0; i < NAME_BYTES; i++)
        out[at++] = naming->name[i];
    return append(out, at, "_lock_");
}

/* As the server appends it, in Java, "%010d", a minus sign counted: ten digits, a minus and nine, or a minus and
 * ten. Each of the 2^32 numbers is written so in one way. */
#ifndef DIGITS
#define DIGITS 10
#endif
#ifndef MINUS
#define MINUS 0
#endif
#define NUMBER_BYTES (MINUS + DIGITS)
static int32_t append_any_number(char *out)
{
    int64_t number = 0;

    if (MINUS)
        *out++ = '-';
#ifdef VALUE
    int64_t rest = number = VALUE; /* without its sign, and no other */
    for (int i = DIGITS - 1; i >= 0; i--, rest /= 10)
        out[i] = (char)('0' + rest % 10);
    out[DIGITS] = '\0';
    return (int32_t)(MINUS ? -number : number);
#endif
    for (int i = 0; i < DIGITS; i++) {
        out[i] = nondet_char();
        assume(out[i] >= '0' && out[i] <= '9');
        number = 10 * number + (out[i] - '0');
    }
    out[DIGITS] = '\0';
    assume(number <= (MINUS ? -(int64_t)INT32_MIN : INT32_MAX));
    assume(!MINUS || number >= (DIGITS == 10 ? INT64_C(1000000000) : 1));
    return (int32_t)(MINUS ? -number : number);
}

/* --- format and parse ----------------------------------------------------------------------------- */

/* All 2^122 GUIDs are UUIDs of version 4, or 8 if they are marked. */
void a_formatted_guid_is_a_uuid(void)
{
    unsigned char random[16];
    char guid[ZKL_GUID_LEN + 1];
    bool retained = nondet_bool();

    for (int i = 0; i < 16; i++)
        random[i] = nondet_byte();
    zkl_guid_format(random, guid);
    if (retained)
        zkl_guid_mark_retained(guid);
    for (int i = 0; i < ZKL_GUID_LEN; i++)
        prove(is_dash_at(i) ? guid[i] == '-' : is_hex(guid[i]));
    prove(guid[14] == (retained ? '8' : '4') && guid[ZKL_GUID_LEN] == '\0');
    prove(guid[19] == '8' || guid[19] == '9' || guid[19] == 'a' || guid[19] == 'b');
}

/* The longest one, too, which fits. */
void a_prefix_is_as_specified(void)
{
    char guid[ZKL_GUID_LEN + 1], expected[ZKL_NODE_NAME_MAX + 1] = {0};
    char out[ZKL_NODE_NAME_MAX + 1];

    any_guid(guid, nondet_bool());
    struct zkl_naming naming = naming_of(NAMES, ROLE);
    size_t length = specified_prefix(&naming, guid, expected);
    prove(length + 11 <= ZKL_NODE_NAME_MAX);
    zkl_name_prefix(&naming, guid, out);
    for (size_t i = 0; i <= length; i++)
        prove(out[i] == expected[i]);
}

/* Kazoo calls writers as it calls mutexes. */
static enum zkl_role role_read(void)
{
    return NAMES == ZKL_NAMES_KAZOO && ROLE == ZKL_ROLE_WRITE ? ZKL_ROLE_LOCK : ROLE;
}

/* A name of that naming with any GUID and any number. */
static int32_t any_child(const struct zkl_naming *naming, bool retained, char *child)
{
    char guid[ZKL_GUID_LEN + 1];

    any_guid(guid, retained);
    known_text = child;
    known_length = specified_prefix(naming, guid, child) + NUMBER_BYTES;
    return append_any_number(child + known_length - NUMBER_BYTES);
}

/* All 2^32 numbers, behind the shortest text that is a name. */
void each_number_is_read(void)
{
    char child[6 + NUMBER_BYTES + 1];
    struct zkl_naming reader = {.role = ZKL_ROLE_PERMIT};
    struct zkl_node_name place;

    append(child, 0, "lease-");
    known_text = child;
    known_length = 6 + NUMBER_BYTES;
    int32_t number = append_any_number(child + 6);
    prove(zkl_name_parse(child, &reader, &place));
    prove(place.sequence == number);
}

/* The writer of a name, and every reader that meets the writer, finds the number where it was
 * written, and the role. What is read there is proved above. */
void parse_of_format_is_the_identity(void)
{
    char child[CHILD_ROOM];
    struct zkl_naming writer = naming_of(NAMES, ROLE), reader = writer;
    struct zkl_node_name place;

    /* Only a lock of the same name meets a named lock. */
    if (NAMES != ZKL_NAMES_NAMED)
        reader = (struct zkl_naming){.names = (enum zkl_names)any_between(0, ZKL_NAMES_KAZOO),
                                     .role = (enum zkl_role)any_between(0, ZKL_ROLES - 1)};
    assume(zkl_naming_meets(&writer, &reader));
    any_child(&writer, nondet_bool(), child);
    prove(zkl_name_digits(child, &reader) == child + known_length - NUMBER_BYTES);
    prove(zkl_name_parse(child, &reader, &place) && place.role == role_read());
}

void a_mark_is_read(void)
{
    char child[CHILD_ROOM];
    struct zkl_naming writer = naming_of(NAMES, ROLE);
    bool retained = nondet_bool();

    any_child(&writer, retained, child);
    prove(zkl_name_is_retained(child) == retained);
}

/* So does a reader that does not know yet what it meets; the name of a named lock must be one. */
void what_was_written_is_recognised(void)
{
    char child[CHILD_ROOM];
    struct zkl_naming writer = naming_of(NAMES, ROLE), seen;
    struct zkl_node_name place;

    assume(NAMES != ZKL_NAMES_NAMED || zkl_lock_name_fault(writer.name) == NULL);
    int32_t number = any_child(&writer, nondet_bool(), child);
    prove(zkl_name_recognise(child, &seen, &place));
    prove(place.sequence == number && zkl_naming_meets(&seen, &writer));
}

/* --- any bytes -------------------------------------------------------------------------------- */

/* parse_number(), after_last() and parse(), which are static, in the copies that run.py makes. */
bool called_number(const char *text, int32_t *sequence);
const char *called_after_last(const char *child, const char *marker, int32_t *sequence);
const char *called_parse(const char *child, const struct zkl_naming *naming,
                         struct zkl_node_name *place);

/* What a number is read from, and that nothing but a number is; each_number_is_read says which one. */
void any_text_is_a_number_or_none(void)
{
    char text[LENGTH + 1];
    int32_t sequence;
    size_t minus = LENGTH > 1;
    bool digits = true;

    any_text(text, LENGTH);
    minus = minus && text[0] == '-';
    for (size_t i = minus; i < LENGTH; i++)
        digits = digits && text[i] >= '0' && text[i] <= '9';
    bool is_one = called_number(text, &sequence);
    prove(!is_one || (digits && LENGTH > 0 && LENGTH - minus <= 10));
    prove(is_one || !digits || LENGTH - minus == 0 || LENGTH - minus >= 10);
}

/* In the place of parse_number(), where run.py has it so: any answer that is true of some text behind its beginning. */
bool assumed_number(const char *text, int32_t *sequence)
{
    bool is_one = nondet_bool();

    prove(__CPROVER_same_object(text, known_text));
    prove(text >= known_text && text <= known_text + known_length);
    assume(!is_one || *text != '\0');
    *sequence = nondet_int32();
    return is_one;
}

void any_text_is_looked_at_for_a_marker(void)
{
    char child[LENGTH + 1];
    int32_t sequence;

    any_text(child, LENGTH);
    const char *digits = called_after_last(child, MARKER, &sequence);
    prove(!digits || (digits > child && digits < child + LENGTH));
}

/* In the place of after_last(): any answer that is true of some text. */
const char *assumed_after_last(const char *child, const char *marker, int32_t *sequence)
{
    size_t at = (size_t)any_between(0, (int64_t)known_length);

    prove(child == known_text && marker != NULL);
    *sequence = nondet_int32();
    return at == 0 || at == known_length ? NULL : child + at;
}

/* The reader's role counts only where permits are; Curator's and Kazoo's contenders read alike. */
void any_child_is_parsed_without_an_overrun(void)
{
    struct zkl_naming naming = naming_of(NAMES, ROLE);
    struct zkl_node_name place;
    char child[LENGTH + 1];

    any_text(child, LENGTH);
    const char *digits = called_parse(child, &naming, &place);
    prove(!digits || (digits > child && digits < child + LENGTH));
    prove(!digits || (place.role < ZKL_ROLES && place.peer <= ZKL_PEER_ZOOKEEPER));
}

void any_mark_is_looked_for_without_an_overrun(void)
{
    char child[LENGTH + 1];

    any_text(child, LENGTH);
    prove(!zkl_name_is_retained(child) || LENGTH >= 32);
}

/* Long enough for a named lock's. */
void any_named_child_is_recognised_without_an_overrun(void)
{
    struct zkl_naming naming;
    struct zkl_node_name place;
    char child[LENGTH + 1];

    any_text(child, LENGTH);
    bool is_one = zkl_name_recognise(child, &naming, &place);
    prove(!is_one || naming.names != ZKL_NAMES_NAMED || zkl_lock_name_fault(naming.name) == NULL);
}

void any_path_is_judged_without_an_overrun(void)
{
    char path[LENGTH + 1];

    any_text(path, LENGTH);
    const char *fault = zkl_path_fault(path);

    prove(fault != NULL || (path[0] == '/' && LENGTH > 1 && path[LENGTH - 1] != '/'));
}

void any_lock_name_is_judged_without_an_overrun(void)
{
    char name[LENGTH + 1];

    any_text(name, LENGTH);
    const char *fault = zkl_lock_name_fault(name);

    prove(fault != NULL || LENGTH > 0);
    for (size_t i = 0; i < LENGTH; i++)
        prove(fault != NULL || name[i] != '/');
}

void any_text_is_copied_without_an_overrun(void)
{
    char text[LENGTH + 1], out[ROOM];
    size_t copied = LENGTH < ROOM ? LENGTH : ROOM - 1;

    any_text(text, LENGTH);
    zkl_text_copy(out, ROOM, text);
    for (size_t i = 0; i < copied; i++)
        prove(out[i] == text[i]);
    prove(out[copied] == '\0');
    zkl_text_copy(out, ROOM, NULL);
    prove(out[0] == '\0');
}

void any_text_is_looked_at_without_an_overrun(void)
{
    char text[LENGTH + 1];

    any_text(text, LENGTH);
    zkl_text_hash(text);
    zkl_text_is_printable(text, LENGTH);
    zkl_is_revocation(text, LENGTH);
}

/* Data need not end with a NUL. */
void any_data_is_a_number_of_permits_or_none(void)
{
    size_t size = (size_t)any_between(0, 8);
    char *data = malloc(size);
    int64_t number = 0;
    bool digits = size > 0 && size <= 6;

    assume(data != NULL);
    int permits = zkl_permits_parse(data, size);
    for (size_t i = 0; i < size; i++) {
        digits = digits && data[i] >= '0' && data[i] <= '9';
        number = number * 10 + (data[i] - '0');
    }
    prove(permits == (digits && number <= ZKL_PERMITS_MAX ? number : 0));
}
