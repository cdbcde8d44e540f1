/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP proxy that understands ZooKeeper's frames, between a client and one server: it loses,
 * holds back, delays and counts exactly the requests, answers and events that a test names.
 *
 *     struct proxy *p;
 *     proxy_start(&p, zks_host(), zks_port(zks, 0));
 *     connect_client(proxy_address(p));
 *     proxy_drop_reply(p, PROXY_CREATE, 1, PROXY_THEN_CUT);
 *     start_a_create();
 *     proxy_wait_dropped(p, 5000);
 *
 * It runs in one thread of its own. All calls may be made from any thread; they take effect before
 * they return: nothing that arrives later passes by the old rule. Connections stay in pairs, one
 * to the client and one to the server; when one side closes, so does the other, after all that was
 * before it.
 *
 * A client matches answers by their order. So where one frame was lost, nothing more passes in
 * that direction of that connection: TCP would not let it either. */
#ifndef ZKTEST_PROXY_H
#define ZKTEST_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Requests by ZooKeeper's numbers, and some of our own. */
enum proxy_op {
    PROXY_ANY = -14,     /* every request but connect, pings included */
    PROXY_CONNECT = -13, /* the first frame of a connection */
    PROXY_CLOSE = -11,
    PROXY_EVENT = -1, /* a watch event: counts as an answer without a request */
    PROXY_CREATE = 1,
    PROXY_DELETE = 2,
    PROXY_EXISTS = 3,
    PROXY_GET = 4,
    PROXY_SET = 5,
    PROXY_GET_ACL = 6,
    PROXY_SET_ACL = 7,
    PROXY_CHILDREN = 8,
    PROXY_SYNC = 9,
    PROXY_PING = 11,
    PROXY_CHILDREN2 = 12,
    PROXY_CHECK = 13,
    PROXY_MULTI = 14,
    PROXY_CREATE2 = 15,
    PROXY_CHECK_WATCHES = 17,
    PROXY_REMOVE_WATCHES = 18,
    PROXY_CREATE_CONTAINER = 19,
    PROXY_CREATE_TTL = 21,
    PROXY_AUTH = 100,
    PROXY_SET_WATCHES = 101
};

enum proxy_dir { PROXY_TO_SERVER = 1, PROXY_TO_CLIENT = 2, PROXY_BOTH = 3 };

/* After a frame was lost. */
enum proxy_then {
    PROXY_THEN_CUT,   /* close the connection once all before the lost frame has been passed on */
    PROXY_THEN_SILENT /* keep it open, with nothing more in that direction, until proxy_cut */
};

struct proxy;

/* 0 or -1. host is an IPv4 address in digits. */
int proxy_start(struct proxy **proxy, const char *host, int port);
/* The same, but it listens at this address, IPv4 or IPv6 in digits, and port. */
int proxy_start_at(struct proxy **proxy, const char *host, int port, const char *address,
                   int listen_port);
/* Close everything, join the thread, free. NULL is ignored. */
void proxy_stop(struct proxy *proxy);

/* Before the first connection: the bytes have no frames, as those of TLS. Bytes that arrive
 * together are then a request for PROXY_ANY, or an event for PROXY_EVENT, to all below and to a
 * hook. */
void proxy_set_opaque(struct proxy *proxy);

/* Likewise: the bytes are packets of another protocol, each as long as size_of says; 0: not all of it is here. A hook
 * may say 0 of one, which is then not passed on. */
void proxy_set_frames(struct proxy *proxy,
                      size_t (*size_of)(const unsigned char *data, size_t size));
/* Likewise: a server that does not listen yet is tried again for this long. */
void proxy_set_patience(struct proxy *proxy, int ms);

int proxy_port(const struct proxy *proxy);
/* "127.0.0.1:PORT", or the listen address that it was given; IPv6 in brackets. */
const char *proxy_address(const struct proxy *proxy);

/* --- faults that strike once ------------------------------------------------------------------ */

/* Each strikes at the nth (1: the next) request of that type, counted from the call that arms it,
 * over all connections. At most 16 may wait to strike: -1 if there are more, else 0. */

/* The server carries the request out; the client never hears of it. PROXY_EVENT: lose the nth
 * event. */
int proxy_drop_reply(struct proxy *proxy, enum proxy_op op, int nth, enum proxy_then then);
/* The request never reaches the server. */
int proxy_drop_request(struct proxy *proxy, enum proxy_op op, int nth, enum proxy_then then);
/* Hold the answer (PROXY_EVENT: the event) back, and all behind it in that direction, in order. */
int proxy_hold_reply(struct proxy *proxy, enum proxy_op op, int nth);
/* Hold the request back, and all behind it. */
int proxy_hold_request(struct proxy *proxy, enum proxy_op op, int nth);
/* Let pass what is held, and forget hold faults that have not struck. */
void proxy_release(struct proxy *proxy);
/* Forget every fault that has not struck. */
void proxy_disarm(struct proxy *proxy);

/* Wait until every drop, or every hold, that was armed has struck. 0, or -1 after the timeout. */
int proxy_wait_dropped(struct proxy *proxy, int timeout_ms);
int proxy_wait_held(struct proxy *proxy, int timeout_ms);
/* Wait until n requests (PROXY_EVENT: events) have come since the last proxy_reset_counts. */
int proxy_wait_count(struct proxy *proxy, enum proxy_op op, int64_t n, int timeout_ms);

/* --- faults that last ------------------------------------------------------------------------- */

/* A partition, in one direction or both: what comes is kept, closing included, and passed on after
 * proxy_heal, as TCP does. Connections that are begun meanwhile hear nothing and never reach the
 * server; they are closed by proxy_heal. To have everything lost: proxy_cut before proxy_heal. */
void proxy_hole(struct proxy *proxy, enum proxy_dir dirs);
void proxy_heal(struct proxy *proxy);
/* Close every connection now. Kept and held frames are lost. The client may come again
 * immediately. */
void proxy_cut(struct proxy *proxy);
/* The server's side of every connection is closed, the client's stays, with nothing in it any more:
 * the client has to find out for itself. It is closed by proxy_heal or proxy_cut. */
void proxy_half_open(struct proxy *proxy);
/* The server hears the end of the connections that clients have closed, also where a fault keeps it back. */
void proxy_end_abandoned(struct proxy *proxy);
/* Do not listen: new connections are refused; those that are open stay. 0, or -1 if the port could
 * not be had back. */
int proxy_refuse(struct proxy *proxy, bool refuse);
/* Close a connection at each request of that type, which the server does not get: as servers do that do not know
 * it. */
void proxy_hang_up_on(struct proxy *proxy, enum proxy_op op);
/* Pass every frame on so much later, each direction. */
void proxy_delay_ms(struct proxy *proxy, int ms);
/* Pass frames on in pieces of this many bytes, one in a millisecond, each direction; 0: whole. */
void proxy_trickle(struct proxy *proxy, size_t bytes);

/* Pass these bytes on behind all that came so far, over the newest connection, if there is one. */
void proxy_send(struct proxy *proxy, enum proxy_dir dir, const void *data, size_t size);

/* --- looking ---------------------------------------------------------------------------------- */

/* Requests of the type that came from clients, lost and held ones too, since the start or the last
 * reset. PROXY_EVENT: events that came from the server. */
int64_t proxy_counts(struct proxy *proxy, enum proxy_op op);
void proxy_reset_counts(struct proxy *proxy);
/* Connections that are open towards a client. */
int proxy_connections(struct proxy *proxy);

/* See, and maybe change, each frame before it is counted or judged: op is the type of the request,
 * also for its answer. frame is what follows the four bytes of the length. The result is the new
 * length, at most size. Runs in the proxy's thread under its lock: no proxy call is allowed in
 * it. */
typedef size_t (*proxy_hook_fn)(enum proxy_dir dir, int op, unsigned char *frame, size_t size,
                                void *arg);
void proxy_set_hook(struct proxy *proxy, proxy_hook_fn hook, void *arg);

#endif
