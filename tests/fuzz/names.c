/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: names on the wire. Two namings, a GUID and lines of text that may be anything; what
 * name.h says of each of them and of any two. The lines are read from memory of exactly their size. */
#include <zklock/zklock.h>

#include "core/name.h"
#include "core/queue.h"
#include "core/servers.h"
#include "fuzz.h"

#define LINES 6
#define LINE_MAX_ 700 /* longer than any path may be */

/* A line as text of its own: nothing lies behind its end. */
static char *own_text(const char *line, size_t length)
{
    char *text = malloc(length + 1);
    must(text);
    memcpy(text, line, length);
    text[length] = '\0';
    return text;
}

static void take_naming(struct fuzz_bytes *in, struct zkl_naming *naming)
{
    const char *line;
    *naming = (struct zkl_naming){.role = (enum zkl_role)fuzz_below(in, ZKL_ROLES),
                                  .names = (enum zkl_names)fuzz_below(in, 3)};
    size_t length = fuzz_line(in, ZKL_LOCK_NAME_MAX, &line);
    if (naming->role == ZKL_ROLE_PERMIT)
        naming->names = ZKL_NAMES_CURATOR; /* there are no others for permits */
    if (naming->names != ZKL_NAMES_NAMED)
        return;
    naming->role = ZKL_ROLE_LOCK;
    memcpy(naming->name, line, length);
    if (zkl_lock_name_fault(naming->name))
        strcpy(naming->name, "name");
}

/* --- what we write, we read ---------------------------------------------- */

/* Kazoo has one marker for a lock and a writer. */
static enum zkl_role role_as_read(const struct zkl_naming *naming)
{
    bool writer = naming->role == ZKL_ROLE_WRITE && naming->names == ZKL_NAMES_KAZOO;
    return writer ? ZKL_ROLE_LOCK : naming->role;
}

static enum zkl_peer peer_as_read(const struct zkl_naming *naming)
{
    return naming->names == ZKL_NAMES_KAZOO ? ZKL_PEER_KAZOO : ZKL_PEER_CURATOR;
}

static void check_own_node(const struct zkl_naming *naming, const char *guid, int32_t sequence,
                           const struct zkl_naming *other)
{
    char child[ZKL_NODE_NAME_MAX + 12], digits[12];
    struct zkl_node_name place;
    struct zkl_naming seen;
    zkl_name_prefix(naming, guid, child);
    must(strlen(child) + 11 <= ZKL_NODE_NAME_MAX);
    must(zkl_queue_find(&(const char *){child}, 1, child) == child);
    snprintf(digits, sizeof digits, "%010d", sequence);
    strcat(child, digits);

    must(zkl_name_parse(child, naming, &place));
    must(place.sequence == sequence && place.role == role_as_read(naming) &&
         place.peer == peer_as_read(naming));
    must(strcmp(zkl_name_digits(child, naming), digits) == 0);
    must(zkl_name_parse(child, other, &place) == zkl_naming_meets(naming, other));
    if (naming->role != ZKL_ROLE_PERMIT) {
        must(zkl_name_recognise(child, &seen, &place));
        must(zkl_naming_meets(&seen, naming) && strcmp(seen.name, naming->name) == 0);
        must(place.sequence == sequence && seen.role == role_as_read(naming));
    }
}

static void check_guid(const unsigned char random[16], char guid[ZKL_GUID_LEN + 1])
{
    zkl_guid_format(random, guid);
    must(strlen(guid) == ZKL_GUID_LEN && guid[14] == '4' && strchr("89ab", guid[19]));
    must(strspn(guid, "0123456789abcdef-") == ZKL_GUID_LEN);
}

/* --- one line ------------------------------------------------------------ */

static void check_number(const char *child, const char *digits, int32_t sequence)
{
    char *end;
    must(digits >= child && digits < child + strlen(child));
    must(strtoll(digits, &end, 10) == sequence && *end == '\0');
    must(strspn(digits, "-0123456789") == strlen(digits));
    must(zkl_sequence_exhausted(sequence) == (sequence < 0 || sequence >= ZKL_SEQUENCE_HARD));
}

static void check_child(const char *child, const struct zkl_naming *naming)
{
    struct zkl_node_name place, again;
    struct zkl_naming seen;
    const char *digits = zkl_name_digits(child, naming);
    must(zkl_name_parse(child, naming, &place) == (digits != NULL));
    if (digits)
        check_number(child, digits, place.sequence);
    if (!zkl_name_recognise(child, &seen, &place))
        return;
    must(zkl_name_parse(child, &seen, &again));
    must(again.sequence == place.sequence && again.role == place.role && again.peer == place.peer);
    must(zkl_naming_meets(&seen, &seen) && seen.role == place.role);
    must(seen.names != ZKL_NAMES_NAMED || !zkl_lock_name_fault(seen.name));
}

/* A path that is fine has components that are fine, and stays so with one more. */
static void check_path(const char *text)
{
    char longer[LINE_MAX_ + 16], above[LINE_MAX_ + 1];
    bool valid = zkl_node_path_fault(text) == NULL;
    must((zkl_path_fault(text) == NULL) == (valid && strlen(text) <= ZKL_PATH_MAX));
    if (!valid)
        return;
    must(text[0] == '/' && text[strlen(text) - 1] != '/' && !strstr(text, "//"));
    must(zkl_text_is_printable(text, strlen(text)));
    snprintf(longer, sizeof longer, "%s/locks", text);
    must(!zkl_node_path_fault(longer));
    snprintf(above, sizeof above, "%s", text);
    *strrchr(above, '/') = '\0';
    must(above[0] == '\0' || !zkl_node_path_fault(above));
}

static void check_servers(const char *text)
{
    char longer[LINE_MAX_ + 16];
    if (zkl_servers_fault(text))
        return;
    size_t hosts = strcspn(text, "/");
    must(hosts > 2 && memchr(text, ':', hosts));
    must(text[hosts] == '\0' || text[strlen(text) - 1] != '/');
    snprintf(longer, sizeof longer, "h:65535,%s", text);
    must(!zkl_servers_fault(longer));
    size_t at = 0, count = 0;
    for (struct zkl_server server; zkl_servers_next(text, &at, &server); count++) {
        must(server.host >= text && server.host_length > 0 && server.port_length > 0);
        must(server.port + server.port_length <= text + hosts && server.port[-1] == ':');
    }
    must(count > 0 && at == hosts);
}

static void check_lock_name(const char *text)
{
    char path[LINE_MAX_ + 8];
    if (zkl_lock_name_fault(text))
        return;
    must(strlen(text) <= ZKL_LOCK_NAME_MAX && !strchr(text, '/'));
    snprintf(path, sizeof path, "/r/%s", text);
    must(!zkl_node_path_fault(path));
}

/* Data is not terminated. */
static void check_data(const char *line, size_t length)
{
    char *data = malloc(length > 0 ? length : 1), text[16];
    must(data);
    memcpy(data, line, length);
    int permits = zkl_permits_parse(data, length);
    must(permits >= 0 && permits <= ZKL_PERMITS_MAX);
    snprintf(text, sizeof text, "%d", permits);
    must(zkl_permits_parse(text, strlen(text)) == permits);
    must(zkl_is_revocation(data, length) == (length == 10 && strncmp(data, "__REVOKE__", 10) == 0));
    bool printable = zkl_text_is_printable(data, length);
    for (size_t i = 0; i <= length && printable; i++) /* cut in two, both are or none is */
        must(zkl_text_is_printable(data, i) == zkl_text_is_printable(data + i, length - i));
    free(data);
}

/* --- the order ----------------------------------------------------------- */

struct parsed {
    const char *name;
    struct zkl_node_name place;
};

static int compare(const struct parsed *a, const struct parsed *b)
{
    return zkl_queue_compare(a->place.sequence, a->name, b->place.sequence, b->name);
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

/* A total order by the numbers, of which only a name itself is its equal. */
static void check_order(char *const *lines, size_t count, const struct zkl_naming *naming)
{
    struct parsed list[LINES];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        list[n].name = lines[i];
        n += zkl_name_parse(lines[i], naming, &list[n].place);
    }
    for (size_t i = 0; i < n * n * n; i++) {
        const struct parsed *a = &list[i / n / n], *b = &list[i / n % n], *c = &list[i % n];
        must(a->place.sequence >= b->place.sequence || compare(a, b) < 0);
        must(sign(compare(a, b)) == -sign(compare(b, a)));
        must((compare(a, b) == 0) == (strcmp(a->name, b->name) == 0));
        must(!(compare(a, b) < 0 && compare(b, c) < 0) || compare(a, c) < 0);
        must(!(zkl_queue_waits_for(a->place.role, a->place.sequence, a->name, &b->place, b->name) &&
               zkl_queue_waits_for(b->place.role, b->place.sequence, b->name, &a->place, a->name)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes in = {data, data + size};
    struct zkl_naming naming, other;
    unsigned char random[16];
    char guid[ZKL_GUID_LEN + 1], *lines[LINES];
    size_t count = 0;

    take_naming(&in, &naming);
    take_naming(&in, &other);
    uint32_t sequence = fuzz_byte(&in);
    for (int i = 0; i < 3; i++)
        sequence = sequence << 8 | fuzz_byte(&in);
    for (int i = 0; i < 16; i++)
        random[i] = (unsigned char)fuzz_byte(&in);
    check_guid(random, guid);
    check_own_node(&naming, guid, (int32_t)sequence, &other);

    while (count < LINES && fuzz_left(&in) > 0) {
        const char *line;
        size_t length = fuzz_line(&in, LINE_MAX_, &line);
        check_data(line, length);
        char *text = lines[count++] = own_text(line, length);
        check_child(text, &naming);
        check_child(text, &other);
        check_path(text);
        check_servers(text);
        check_lock_name(text);
    }
    check_order(lines, count, &naming);
    while (count > 0)
        free(lines[--count]);
    return 0;
}
