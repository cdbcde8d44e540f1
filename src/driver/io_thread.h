/* SPDX-License-Identifier: Apache-2.0
 * What is done on libzookeeper's own I/O thread, because only there it can be done.
 *
 * The rule: no other thread calls what changes, frees or closes something that the I/O thread uses.
 * That is zoo_set_servers (it frees the text that the I/O thread logs, and closes its socket) and
 * zookeeper_interest (it opens and closes sockets). The I/O thread itself comes by here: in the
 * callback of its log, when an attempt to connect or a link has just failed, and in OpenSSL's, when
 * a handshake begins or ends.
 *
 * So to change the servers of a living handle, publish another list of addresses (resolver.h). The
 * service thread offers it to each handle (zkl_handle_follow), with or without a link, and the I/O
 * thread takes it before its next attempt. A link that is up stays up. */
#ifndef ZKL_DRIVER_IO_THREAD_H
#define ZKL_DRIVER_IO_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>

#ifndef THREADED
#define THREADED
#endif
#include <zookeeper/zookeeper.h>

/* A handle's, in the list of all. */
struct zkl_io {
    struct zkl_io *next;
    unsigned number; /* in the names of libzookeeper's threads */
    zhandle_t *zh;   /* NULL until it is made */
    char *addresses; /* what it has; the I/O thread's own */
    char *newest;    /* what it shall have; NULL: that is taken */
    /* A link that failed as others were taken: libzookeeper does not report that one. The completion
     * comes where its report would come, with the handle as its data. */
    stat_completion_t on_move;
    const void *handle;
    atomic_bool moved;
    int handshake; /* the socket of a handshake of TLS that is under way, or -1 */
};

/* Make a handle whose I/O thread can be told from others: by the name that it inherits from the
 * thread on which this calls make(arg). addresses is taken over. errno says why it returns NULL.
 * Without a lock. */
zhandle_t *zkl_io_open(struct zkl_io *io, char *addresses, zhandle_t *(*make)(void *arg),
                       void *arg);
/* After zookeeper_close. */
void zkl_io_end(struct zkl_io *io);
/* These it takes before its next attempt. False: no memory. */
bool zkl_io_offer(struct zkl_io *io, const char *addresses);

/* On an I/O thread, without a lock of libzookeeper: its attempt or its link has failed, and it has
 * not yet closed the socket. */
void zkl_io_failed(void);
/* On an I/O thread: a handshake has begun on this socket; -1: there is none. Returns whose thread
 * that is, or NULL. */
struct zkl_io *zkl_io_handshake(int fd);
/* It is over, and its socket is open yet. */
void zkl_io_handshake_ends(struct zkl_io *io);
/* From any thread: end the handshake, after which libzookeeper tries the next server. False: there
 * is none. */
bool zkl_io_cut(struct zkl_io *io);

/* Around a fork, in the parent and in the child. */
void zkl_io_before_fork(void);
void zkl_io_after_fork(void);

#endif
