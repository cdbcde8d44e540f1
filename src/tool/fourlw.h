/* SPDX-License-Identifier: Apache-2.0 */
/* ZooKeeper's four-letter words: what the server itself says about its clients, packets and
 * watches.
 *
 * What the packet counters count, as measured with 3.8.0 (tests/lib/wire.txt holds it down):
 * - The server's own ("srvr") also count four-letter words, each one as a packet received and one
 *   sent, the asking one included in "received" of its own answer, and the packets of every
 *   client. Between two queries on a quiet server "received" therefore grows by exactly 1.
 * - A connection's ("cons") count its connect request, every request, and every ping as received;
 *   the answers of all these and every watch event as sent. They start at 0 with each connection:
 *   after a reconnect they are those of the new one.
 * To count the packets of a piece of work use flw_session_packets before and after, with a session
 * timeout that lets no ping fall in between (the client pings after a third of it without a
 * request). An answer is counted when it is written: read the counter after the client has it. */
#ifndef ZKLOCK_SERVERS_FOURLW_H
#define ZKLOCK_SERVERS_FOURLW_H

#include <stddef.h>
#include <stdint.h>

#define FLW_TIMEOUT_MS 15000

/* The answer to a word, with a final NUL. Its length, or -1: no answer within the time, or it did
 * not fit. host is an IPv4 address in digits. */
long flw_query_within(const char *host, int port, const char *word, char *buf, size_t size,
                      int timeout_ms);
long flw_query(const char *host, int port, const char *word, char *buf, size_t size);
/* The same in memory of its own, of any length; to be freed. NULL: no answer. */
char *flw_ask(const char *host, int port, const char *word);

enum flw_mode {
    FLW_NO_ANSWER = -1,
    FLW_NO_QUORUM,
    FLW_STANDALONE,
    FLW_LEADER,
    FLW_FOLLOWER,
    FLW_OBSERVER
};
/* What the server is now. FLW_NO_QUORUM: it answers, but serves no client. */
enum flw_mode flw_mode(const char *host, int port, int timeout_ms);

/* The server's version as a number, 30903 for 3.9.3, without a distribution's suffix. -1: no
 * answer. */
int flw_version(const char *host, int port);

/* The packet counters of the server. 0 or -1. */
int flw_requests_received(const char *host, int port, int64_t *received);
int flw_packets(const char *host, int port, int64_t *received, int64_t *sent);
/* The packet counters of the connection that has this session. 0, or -1: no such connection
 * here. */
int flw_session_packets(const char *host, int port, int64_t session, int64_t *received,
                        int64_t *sent);

/* Connections that have a session (the query's own has none), or -1. */
int flw_connections(const char *host, int port);
/* All connections of the server but the query's own, those of its port for TLS too; or -1. */
int flw_all_connections(const char *host, int port);
/* 1 if this server has a connection with the session, 0 if not, -1 if it does not answer. */
int flw_has_session(const char *host, int port, int64_t session);

/* Watches on this server: of all sessions on one path, or, with path NULL, on all. -1: no answer.
 * The server has one watch for each session and path, however many the client registered. */
int flw_watch_count(const char *host, int port, const char *path);
/* Watches of one session on this server, on all paths. */
int flw_session_watches(const char *host, int port, int64_t session);
/* The watched paths, one in a line. Their number, or -1. */
int flw_watch_paths(const char *host, int port, char *buf, size_t size);

#endif
