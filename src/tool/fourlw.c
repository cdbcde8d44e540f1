/* SPDX-License-Identifier: Apache-2.0
 *
 * ZooKeeper's four-letter words: one connection for each, the answer read to its end, and the
 * figures found in it. fourlw.h says what the counters count. The caller owns the answers. No lock:
 * any thread may make the calls. The tests count packets by it; zklock doctor and zkserver.c query
 * servers. */
#include "fourlw.h"

#include "net.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOME ((size_t)16 << 10)
#define MANY ((size_t)16 << 20) /* some 100,000 watches */

/* --- asking ----------------------------------------------------------------------------------- */

/* Read to the end of the stream, into more and more room up to max. The server closes the connection after its
 * answer. */
static long read_answer(int fd, char **buf, size_t size, size_t max, int64_t deadline_ms)
{
    size_t have = 0;

    for (;;) {
        long n = net_recv_some(fd, *buf + have, size - 1 - have, deadline_ms);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        have += (size_t)n;
        if (have < size - 1)
            continue;
        char *more = 2 * size <= max ? realloc(*buf, 2 * size) : NULL;
        if (more == NULL) /* no room to see the end: the answer is not whole */
            return -1;
        *buf = more;
        size *= 2;
    }
    (*buf)[have] = '\0';
    return have > 0 ? (long)have : -1;
}

static long query(const char *host, int port, const char *word, char **buf, size_t size, size_t max,
                  int timeout_ms)
{
    int64_t deadline_ms = net_now_ms() + timeout_ms;
    int fd = net_connect(host, port, deadline_ms);
    long n = -1;

    if (fd < 0 || size < 2) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (net_send(fd, word, strlen(word), deadline_ms) == 0)
        n = read_answer(fd, buf, size, max, deadline_ms);
    close(fd);
    return n;
}

long flw_query_within(const char *host, int port, const char *word, char *buf, size_t size,
                      int timeout_ms)
{
    return query(host, port, word, &buf, size, size, timeout_ms);
}

long flw_query(const char *host, int port, const char *word, char *buf, size_t size)
{
    return flw_query_within(host, port, word, buf, size, FLW_TIMEOUT_MS);
}

char *flw_ask(const char *host, int port, const char *word)
{
    char *buf = malloc(SOME);

    if (buf != NULL && query(host, port, word, &buf, SOME, MANY, FLW_TIMEOUT_MS) >= 0)
        return buf;
    free(buf);
    return NULL;
}

/* --- reading the answers ---------------------------------------------------------------------- */

/* The next line without its end, or NULL; *at moves behind it. */
static char *next_line(char **at)
{
    char *line = *at;
    char *end = strchr(line, '\n');

    if (*line == '\0')
        return NULL;
    *at = end != NULL ? end + 1 : line + strlen(line);
    if (end != NULL)
        *end = '\0';
    return line;
}

/* The number behind a name, as in "Received: 17" or "recved=17". */
static int number_after(const char *text, const char *name, int64_t *number)
{
    const char *at = strstr(text, name);
    char *end;

    if (at == NULL)
        return -1;
    at += strlen(name);
    *number = strtoll(at, &end, 10);
    return end == at ? -1 : 0;
}

enum flw_mode flw_mode(const char *host, int port, int timeout_ms)
{
    char buf[4096];

    if (flw_query_within(host, port, "srvr", buf, sizeof buf, timeout_ms) < 0)
        return FLW_NO_ANSWER;
    if (strstr(buf, "Mode: standalone") != NULL)
        return FLW_STANDALONE;
    if (strstr(buf, "Mode: leader") != NULL)
        return FLW_LEADER;
    if (strstr(buf, "Mode: follower") != NULL)
        return FLW_FOLLOWER;
    if (strstr(buf, "Mode: observer") != NULL)
        return FLW_OBSERVER;
    return FLW_NO_QUORUM;
}

int flw_version(const char *host, int port)
{
    char buf[4096];
    unsigned major, minor, patch;

    if (flw_query(host, port, "srvr", buf, sizeof buf) < 0 ||
        sscanf(buf, "Zookeeper version: %3u.%2u.%2u", &major, &minor, &patch) != 3)
        return -1;
    return (int)(major * 10000 + minor * 100 + patch);
}

int flw_packets(const char *host, int port, int64_t *received, int64_t *sent)
{
    char buf[4096];

    if (flw_query(host, port, "srvr", buf, sizeof buf) < 0)
        return -1;
    return number_after(buf, "Received: ", received) == 0 && number_after(buf, "Sent: ", sent) == 0
               ? 0
               : -1;
}

int flw_requests_received(const char *host, int port, int64_t *received)
{
    int64_t sent;

    return flw_packets(host, port, received, &sent);
}

/* A line of "cons": " /127.0.0.1:40000[1](queued=0,recved=1,sent=1,sid=0x1000,...)". */
static int session_of_line(const char *line, int64_t *session)
{
    const char *at = strstr(line, ",sid=0x");

    if (at == NULL)
        return -1;
    *session = (int64_t)strtoull(at + strlen(",sid=0x"), NULL, 16);
    return 0;
}

int flw_session_packets(const char *host, int port, int64_t session, int64_t *received,
                        int64_t *sent)
{
    char *text = flw_ask(host, port, "cons");
    char *at = text;
    char *line;
    int rc = -1;

    while (rc != 0 && text != NULL && (line = next_line(&at)) != NULL) {
        int64_t id;
        if (session_of_line(line, &id) == 0 && id == session &&
            number_after(line, "recved=", received) == 0)
            rc = number_after(line, "sent=", sent);
    }
    free(text);
    return rc;
}

/* The connections that have a session: all, or those with the one given. */
static int count_sessions(const char *host, int port, const int64_t *session)
{
    char *text = flw_ask(host, port, "cons");
    char *at = text;
    char *line;
    int n = 0;

    if (text == NULL)
        return -1;
    while ((line = next_line(&at)) != NULL) {
        int64_t id;
        if (session_of_line(line, &id) == 0 && (session == NULL || id == *session))
            n++;
    }
    free(text);
    return n;
}

int flw_connections(const char *host, int port)
{
    return count_sessions(host, port, NULL);
}

int flw_all_connections(const char *host, int port)
{
    char buf[4096];
    int64_t n = 0;

    if (flw_query(host, port, "srvr", buf, sizeof buf) < 0 ||
        number_after(buf, "Connections: ", &n) != 0)
        return -1;
    return (int)n - 1;
}

int flw_has_session(const char *host, int port, int64_t session)
{
    int n = count_sessions(host, port, &session);

    return n > 0 ? 1 : n;
}

/* --- watches ---------------------------------------------------------------------------------- */

/* "wchp" has a line for each path, and below it a line for each session, indented. The
 * number of watches on the path (NULL: any) of the session (NULL: any). */
static int count_watches(const char *host, int port, const char *path, const int64_t *session)
{
    char *text = flw_ask(host, port, "wchp");
    char *at = text;
    char *line;
    int matches = 0;
    int n = 0;

    if (text == NULL)
        return -1;
    while ((line = next_line(&at)) != NULL) {
        if (line[0] == '/')
            matches = path == NULL || strcmp(line, path) == 0;
        else if (line[0] == '\t' && matches &&
                 (session == NULL || (int64_t)strtoull(line + 1, NULL, 16) == *session))
            n++;
    }
    free(text);
    return n;
}

int flw_watch_count(const char *host, int port, const char *path)
{
    return count_watches(host, port, path, NULL);
}

int flw_session_watches(const char *host, int port, int64_t session)
{
    return count_watches(host, port, NULL, &session);
}

int flw_watch_paths(const char *host, int port, char *buf, size_t size)
{
    char *text = flw_ask(host, port, "wchp");
    char *at = text;
    char *line;
    size_t used = 0;
    int n = 0;

    if (text == NULL || size == 0) {
        free(text);
        return -1;
    }
    buf[0] = '\0';
    while ((line = next_line(&at)) != NULL) {
        if (line[0] != '/')
            continue;
        n++;
        if (used < size)
            used += (size_t)snprintf(buf + used, size - used, "%s\n", line);
    }
    free(text);
    return used < size ? n : -1;
}
