/* SPDX-License-Identifier: Apache-2.0
 *
 * The text that names the servers: its faults, its parts, and the addresses of several as one text.
 * This file owns the copies that it makes until the caller frees them. Pure, without a lock.
 * src/api/client.c checks options by it; the driver's handle and resolver parse it. */
#include "servers.h"

#include <stdlib.h>
#include <string.h>

#include "name.h"

/* --- what users write --------------------------------------------------- */

static const char *port_fault(const char *port, size_t length)
{
    static const char fault[] = "has an entry without a port of 1 to 65535";
    long number = 0;
    if (length == 0 || length > 5)
        return fault;
    for (size_t i = 0; i < length; i++) {
        if (port[i] < '0' || port[i] > '9')
            return fault;
        number = number * 10 + (port[i] - '0');
    }
    return number >= 1 && number <= 65535 ? NULL : fault;
}

/* The text between brackets. The look-up shows whether it is an address indeed. */
static bool may_be_ipv6(const char *host, size_t length)
{
    size_t address = 0, colons = 0;
    while (address < length && host[address] != '%')
        colons += host[address++] == ':';
    return colons >= 2 && strspn(host, "0123456789abcdefABCDEF:.") == address &&
           address + 1 != length && !memchr(host, '[', length);
}

/* The host's part of an entry, brackets and all: as far as its last colon. */
static size_t host_part(const char *entry, size_t length)
{
    size_t colon = length;
    while (colon > 0 && entry[colon - 1] != ':')
        colon--;
    return colon == 0 ? length : colon - 1;
}

static const char *host_fault(const char *host, size_t length)
{
    if (length == 0)
        return "has an entry that is not HOST:PORT";
    if (host[0] == '[')
        return length > 2 && host[length - 1] == ']' && may_be_ipv6(host + 1, length - 2)
                   ? NULL
                   : "has brackets that are not around an IPv6 address, as in [::1]:2181";
    if (memchr(host, ':', length))
        return "has an IPv6 address without brackets: write it as in [::1]:2181";
    if (memchr(host, '[', length) || memchr(host, ']', length))
        return "has an entry that is not HOST:PORT";
    return NULL;
}

static const char *entry_fault(const char *entry, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)entry[i] <= 0x20)
            return "has a blank or control character";
    }
    size_t host = host_part(entry, length);
    if (host == length)
        return "has an entry that is not HOST:PORT";
    const char *fault = host_fault(entry, host);
    return fault ? fault : port_fault(entry + host + 1, length - host - 1);
}

/* As in "a:1/app,b:2": ZooKeeper reads all of that as a chroot. */
static bool has_server(const char *chroot)
{
    const char *comma = strchr(chroot, ',');
    while (comma && entry_fault(comma + 1, strcspn(comma + 1, ",/")))
        comma = strchr(comma + 1, ',');
    return comma != NULL;
}

const char *zkl_servers_fault(const char *text)
{
    size_t hosts = strcspn(text, "/");
    if (hosts == 0)
        return "is empty: give host:port[,host:port...][/chroot]";
    for (size_t at = 0; at <= hosts;) {
        size_t length = strcspn(text + at, ",/");
        const char *fault = entry_fault(text + at, length);
        if (fault)
            return fault;
        at += length + 1;
    }
    if (text[hosts] == '\0')
        return NULL;
    if (text[hosts + 1] == '\0')
        return "ends with a slash: write the chroot after it, or leave it out";
    if (has_server(text + hosts))
        return "has a server behind the chroot: write the chroot once, behind the last server";
    return zkl_absolute_fault(text + hosts) ? "has a chroot that is not a normalised path" : NULL;
}

bool zkl_servers_next(const char *text, size_t *at, struct zkl_server *server)
{
    size_t length = strcspn(text + *at, ",/");
    if (length == 0)
        return false;
    const char *entry = text + *at;
    size_t host = host_part(entry, length), bracket = entry[0] == '[';
    *server = (struct zkl_server){.host = entry + bracket,
                                  .host_length = host - 2 * bracket,
                                  .port = entry + host + 1,
                                  .port_length = length - host - 1};
    *at += length + (entry[length] == ',');
    return true;
}

/* --- what servers say ---------------------------------------------------- */

struct part {
    const char *text;
    size_t length;
};

/* The part of a line before the nth ';' behind it. */
static struct part part_of(struct part line, int nth)
{
    const char *end = line.text + line.length;
    for (; nth > 0 && line.text < end; nth--) {
        const char *separator = memchr(line.text, ';', (size_t)(end - line.text));
        line.text = separator ? separator + 1 : end;
    }
    const char *separator = memchr(line.text, ';', (size_t)(end - line.text));
    line.length = (size_t)((separator ? separator : end) - line.text);
    return line;
}

/* An address that stands for all of a machine: any that is of zeros. */
static bool is_any(struct part host)
{
    for (size_t i = 0; i < host.length; i++) {
        if (!strchr("[]0:.", host.text[i]))
            return false;
    }
    return true;
}

/* The host of "HOST:...", brackets and all. */
static struct part first_host(struct part entry)
{
    const char *bracket =
        entry.length > 0 && entry.text[0] == '[' ? memchr(entry.text, ']', entry.length) : NULL;
    const char *end = bracket ? bracket + 1 : memchr(entry.text, ':', entry.length);
    if (end)
        entry.length = (size_t)(end - entry.text);
    return entry;
}

static char *put(char *out, struct part part, char separator)
{
    memcpy(out, part.text, part.length);
    out += part.length;
    *out++ = separator;
    return out;
}

/* Where one server is for clients, with a comma behind it; NULL: it does not say. */
static char *put_server(char *out, struct part line, bool tls)
{
    struct part client = part_of(line, tls ? 2 : 1), host = client, port = client;
    if (client.length == 0)
        return NULL;
    host.length = host_part(client.text, client.length);
    if (host.length == client.length) { /* the port alone */
        host.length = 0;
    } else {
        port.text += host.length + 1;
        port.length -= host.length + 1;
    }
    if (is_any(host))
        host = first_host(part_of(line, 0));
    out = put(out, host, ':');
    return put(out, port, ',');
}

/* What is behind the '=' of a line "server.N=..."; its text is NULL: it is another line. */
static struct part server_line(const char *text, size_t length)
{
    static const char key[] = "server.";
    const char *equals = memchr(text, '=', length);
    if (!equals || length < strlen(key) || memcmp(text, key, strlen(key)) != 0)
        return (struct part){NULL, 0};
    return (struct part){equals + 1, (size_t)(text + length - equals - 1)};
}

/* NULL, or what is wrong. */
static const char *put_servers(char *out, const char *text, size_t length, bool tls)
{
    char *const begin = out;
    while (length > 0) {
        const char *newline = memchr(text, '\n', length);
        size_t used = newline ? (size_t)(newline - text) : length;
        struct part line = server_line(text, used);
        if (line.text && !(out = put_server(out, line, tls)))
            return tls ? "it does not name a port for TLS of each server"
                       : "it does not name a client port of each server";
        used += newline != NULL;
        text += used;
        length -= used;
    }
    if (out == begin)
        return "it names no servers";
    out[-1] = '\0';
    return zkl_servers_fault(begin) || strchr(begin, '/') ? "it has an entry that is not HOST:PORT"
                                                          : NULL;
}

char *zkl_servers_of_ensemble(const char *text, size_t length, bool tls, const char **fault)
{
    char *list = malloc(2 * length + 3); /* a colon and a comma for each line */
    const char *wrong = list ? put_servers(list, text, length, tls) : NULL;
    if (!wrong)
        return list;
    *fault = wrong;
    free(list);
    return NULL;
}

/* --- what libzookeeper is given ------------------------------------------ */

static size_t count_entries(const char *list)
{
    size_t count = *list != '\0';
    for (; *list; list++)
        count += *list == ',';
    return count;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The entries of text, which is cut up. */
static size_t split(char *text, char **entries)
{
    size_t count = 0;
    while (*text) {
        size_t length = strcspn(text, ",");
        char *next = text + length + (text[length] == ',');
        text[length] = '\0';
        if (length > 0)
            entries[count++] = text;
        text = next;
    }
    return count;
}

static void join(char *out, char *const *entries, size_t count)
{
    *out = '\0';
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(entries[i], entries[i - 1]) == 0)
            continue;
        if (i > 0)
            out = stpcpy(out, ",");
        out = stpcpy(out, entries[i]);
    }
}

char *zkl_addresses_merge(const char *const *lists, size_t count)
{
    size_t size = 1, entries = 0;
    for (size_t i = 0; i < count; i++) {
        size += lists[i] ? strlen(lists[i]) + 1 : 0;
        entries += lists[i] ? count_entries(lists[i]) : 0;
    }
    char *all = malloc(size), *merged = malloc(size);
    char **sorted = calloc(entries + 1, sizeof *sorted);
    if (all && merged && sorted) {
        char *end = all;
        *end = '\0';
        for (size_t i = 0; i < count; i++) {
            if (lists[i])
                end = stpcpy(stpcpy(end, lists[i]), ",");
        }
        entries = split(all, sorted);
        qsort(sorted, entries, sizeof *sorted, by_text);
        join(merged, sorted, entries);
    } else {
        free(merged);
        merged = NULL;
    }
    free(all);
    free(sorted);
    return merged;
}

static bool has_address(const char *list, const char *address, size_t length)
{
    while (*list) {
        size_t entry = strcspn(list, ",");
        if (host_part(list, entry) == length && memcmp(list, address, length) == 0)
            return true;
        list += entry + (list[entry] == ',');
    }
    return false;
}

bool zkl_addresses_look_alike(const char *before, const char *after)
{
    if (count_entries(before) != count_entries(after))
        return false;
    while (*before) {
        size_t entry = strcspn(before, ",");
        if (!has_address(after, before, host_part(before, entry)))
            return false;
        before += entry + (before[entry] == ',');
    }
    return true;
}
