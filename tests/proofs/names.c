/* SPDX-License-Identifier: Apache-2.0 */
/* Names of nodes: what is written is what is read, by all who meet; and nothing is read or written beside the
 * bytes that are given. */
#include "proof.h"

#include <stdlib.h>
#include <string.h>

#include "core/name.h"

/* As the server appends it, in Java: "%010d", a minus sign counted. */
static size_t append_number(char *out, int32_t number)
{
    char digits[12];
    int64_t rest = number < 0 ? -(int64_t)number : number;
    size_t count = 0, at = 0;

    for (int i = 0; i < 10; i++) {
        if (rest > 0 || (size_t)i < (number < 0 ? 9 : 10))
            digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    }
    if (number < 0)
        out[at++] = '-';
    while (count > 0)
        out[at++] = digits[--count];
    out[at] = '\0';
    return at;
}

#ifndef NAME_BYTES
#define NAME_BYTES 6
#endif

/* Every role; the name of a named lock has no fault and at most NAME_BYTES bytes. */
static struct zkl_naming any_naming(void)
{
    struct zkl_naming naming = {.role = (enum zkl_role)any_between(0, ZKL_ROLES - 1),
                                .names = (enum zkl_names)any_between(0, 2)};

    if (naming.names == ZKL_NAMES_NAMED) {
        assume(naming.role == ZKL_ROLE_LOCK);
        for (size_t i = 0; i < NAME_BYTES; i++)
            naming.name[i] = nondet_char();
        assume(zkl_lock_name_fault(naming.name) == NULL);
    }
    return naming;
}

static bool any_guid(char *guid)
{
    unsigned char random[16];
    bool retained = nondet_bool();

    for (int i = 0; i < 16; i++)
        random[i] = (unsigned char)nondet_char();
    zkl_guid_format(random, guid);
    if (retained)
        zkl_guid_mark_retained(guid);
    return retained;
}

/* Kazoo calls writers as it calls mutexes. */
static enum zkl_role role_read(const struct zkl_naming *naming)
{
    return naming->names == ZKL_NAMES_KAZOO && naming->role == ZKL_ROLE_WRITE ? ZKL_ROLE_LOCK
                                                                              : naming->role;
}

static void check_reader(const char *child, const struct zkl_naming *reader,
                         const struct zkl_naming *writer, int32_t number)
{
    struct zkl_place place;

    prove(zkl_name_parse(child, reader, &place));
    prove(place.sequence == number);
    prove(place.role == role_read(writer));
}

/* Who wrote it, and who meets him, reads the number, the role and the mark that were written. */
void parse_of_format_is_the_identity(void)
{
    struct zkl_naming writer = any_naming(), reader = any_naming(), seen;
    char guid[ZKL_GUID_LEN + 1], child[ZKL_NODE_NAME_MAX + 1];
    struct zkl_place place;
    int32_t number = nondet_int32();

    bool retained = any_guid(guid);
    zkl_name_prefix(&writer, guid, child);
    size_t length = strlen(child);
    append_number(child + length, number);
    check_reader(child, &writer, &writer, number);
    if (zkl_naming_meets(&writer, &reader))
        check_reader(child, &reader, &writer, number);
    prove(zkl_name_digits(child, &writer) == child + length);
    prove(zkl_name_is_retained(child) == retained);
    if (writer.role != ZKL_ROLE_PERMIT) {
        prove(zkl_name_recognise(child, &seen, &place));
        prove(place.sequence == number && zkl_naming_meets(&seen, &writer));
    }
}

/* The longest name there is fits, and is read. */
void the_longest_name_fits(void)
{
    struct zkl_naming naming = {.names = ZKL_NAMES_NAMED};
    char guid[ZKL_GUID_LEN + 1];
    struct zkl_place place;
    int32_t number = nondet_int32();

    for (size_t i = 0; i < ZKL_LOCK_NAME_MAX; i++) {
        naming.name[i] = nondet_char();
        assume(naming.name[i] >= '0' && naming.name[i] <= 'z' && naming.name[i] != '_');
    }
    prove(zkl_lock_name_fault(naming.name) == NULL);
    any_guid(guid);
    char *child = malloc(ZKL_NODE_NAME_MAX + 1);
    assume(child != NULL);
    zkl_name_prefix(&naming, guid, child);
    append_number(child + strlen(child), number);
    prove(zkl_name_parse(child, &naming, &place) && place.sequence == number);
}

/* --- any bytes -------------------------------------------------------------------------------- */

#ifndef CHILD_BYTES
#define CHILD_BYTES 16
#endif

void any_child_is_parsed_without_an_overrun(void)
{
    struct zkl_naming naming = any_naming();
    struct zkl_place place;
    char *child = any_text(CHILD_BYTES);

    bool is_one = zkl_name_parse(child, &naming, &place);
    const char *digits = zkl_name_digits(child, &naming);
    prove(is_one == (digits != NULL));
    prove(!is_one || (digits > child && digits < child + strlen(child)));
    prove(!is_one || place.role < ZKL_ROLES);
    zkl_name_is_retained(child);
}

/* The shape of a named lock's, with any bytes in it. */
void any_named_child_is_recognised_without_an_overrun(void)
{
    struct zkl_naming naming;
    struct zkl_place place;
    char *child = any_text(3 + ZKL_GUID_LEN + 1 + CHILD_BYTES);

    bool is_one = zkl_name_recognise(child, &naming, &place);
    prove(!is_one || zkl_name_parse(child, &naming, &place));
    prove(!is_one || naming.names != ZKL_NAMES_NAMED || zkl_lock_name_fault(naming.name) == NULL);
}

void any_path_is_judged_without_an_overrun(void)
{
    char *path = any_text(CHILD_BYTES);
    const char *fault = zkl_path_fault(path);

    prove(fault != NULL || (path[0] == '/' && path[1] != '\0' && path[strlen(path) - 1] != '/'));
    zkl_lock_name_fault(path);
}

void any_text_is_copied_without_an_overrun(void)
{
    char *text = any_text(CHILD_BYTES);
    size_t size = (size_t)any_between(1, CHILD_BYTES + 2), length = strlen(text);
    char *out = malloc(size);

    assume(out != NULL);
    zkl_text_copy(out, size, nondet_bool() ? text : NULL);
    prove(strlen(out) < size && strlen(out) <= length);
    zkl_text_hash(text);
    zkl_text_is_printable(text, length);
    zkl_is_revocation(text, length);
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
