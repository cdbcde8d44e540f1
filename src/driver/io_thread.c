/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done on libzookeeper's own I/O thread: other addresses are taken, and the socket of a
 * handshake is noted. Callbacks of libzookeeper's log and of OpenSSL say neither for which handle
 * they are called nor for which connection, so the thread's name says it. This file owns the list
 * of all handles, with one mutex, behind which none is taken and only shutdown is called.
 * secure.c, whose callbacks they are, and handle.c call this file. */
#include "io_thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "core/servers.h"
#include "driver.h"
#include "numbers.h"

#define NAME_SIZE 16 /* the kernel's */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct zkl_io *all;

/* A forked child has none of the threads that could unlock it. */
void zkl_io_before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

void zkl_io_after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

/* With the mutex: this thread's, or NULL. It stays, as no handle ends before its threads. */
static struct zkl_io *mine(void)
{
    char name[NAME_SIZE] = "";
    unsigned number;
    struct zkl_io *io = all;
    if (prctl(PR_GET_NAME, name) != 0 || sscanf(name, "zkl-io-%x", &number) != 1)
        return NULL;
    while (io && io->number != number)
        io = io->next;
    return io;
}

/* --- opening ------------------------------------------------------------- */

struct opening {
    struct zkl_io *io;
    zhandle_t *(*make)(void *arg);
    void *arg;
    zhandle_t *zh;
    int error;
};

/* Every signal is blocked here, so it is in libzookeeper's threads. */
static void *opening_main(void *arg)
{
    struct opening *opening = arg;
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "zkl-io-%x", opening->io->number);
    prctl(PR_SET_NAME, name);
    opening->zh = opening->make(opening->arg);
    opening->error = errno;
    return NULL;
}

static void add_to_all(struct zkl_io *io)
{
    static unsigned last_number;
    pthread_mutex_lock(&mutex);
    io->number = ++last_number;
    io->next = all;
    all = io;
    pthread_mutex_unlock(&mutex);
}

zhandle_t *zkl_io_open(struct zkl_io *io, char *addresses, zhandle_t *(*make)(void *arg), void *arg)
{
    struct opening opening = {.io = io, .make = make, .arg = arg};
    pthread_t thread;
    io->addresses = addresses;
    io->handshake = -1;
    add_to_all(io);
    int error = zkl_thread_start(&thread, opening_main, &opening);
    if (error != 0) {
        errno = error;
        return NULL;
    }
    pthread_join(thread, NULL);
    pthread_mutex_lock(&mutex);
    io->zh = opening.zh;
    pthread_mutex_unlock(&mutex);
    errno = opening.error;
    return opening.zh;
}

void zkl_io_end(struct zkl_io *io)
{
    pthread_mutex_lock(&mutex);
    struct zkl_io **at = &all;
    while (*at && *at != io)
        at = &(*at)->next;
    if (*at)
        *at = io->next;
    pthread_mutex_unlock(&mutex);
    free(io->addresses);
    free(io->newest);
}

/* --- other addresses ------------------------------------------------------ */

bool zkl_io_offer(struct zkl_io *io, const char *addresses)
{
    char *newest = strdup(addresses);
    if (!newest)
        return false;
    pthread_mutex_lock(&mutex);
    free(io->newest);
    io->newest = newest;
    pthread_mutex_unlock(&mutex);
    return true;
}

/* In the form for libzookeeper: one of them twice if it would not notice the change otherwise. NULL:
 * no memory. */
static char *given_addresses(const char *before, const char *newest)
{
    char *given = NULL;
    int first = (int)strcspn(newest, ",");
    if (!zkl_addresses_look_alike(before, newest))
        return strdup(newest);
    return asprintf(&given, "%s,%.*s", newest, first, newest) < 0 ? NULL : given;
}

/* If the connection is to none of the new addresses libzookeeper closes it here and now, without a
 * report. It was about to close it anyway. */
static void take(struct zkl_io *io, const char *newest)
{
    bool was_linked = zoo_state(io->zh) == ZOO_CONNECTED_STATE;
    char *given = given_addresses(io->addresses, newest);
    if (!given)
        return;
    if (was_linked) {
        zkl_numbers_take();
        zoo_aexists(io->zh, "/", 0, io->on_move, io->handle);
    }
    zoo_set_servers(io->zh, given);
    if (was_linked && zoo_state(io->zh) != ZOO_CONNECTED_STATE)
        atomic_store(&io->moved, true);
    free(io->addresses);
    io->addresses = given;
}

void zkl_io_failed(void)
{
    char *newest = NULL;
    pthread_mutex_lock(&mutex);
    struct zkl_io *io = mine();
    /* An end of the session is about to be reported: its state would be lost. */
    if (io && io->zh && is_unrecoverable(io->zh) != ZINVALIDSTATE) {
        newest = io->newest;
        io->newest = NULL;
    }
    pthread_mutex_unlock(&mutex);
    if (newest)
        take(io, newest);
    free(newest);
}

/* --- handshakes ----------------------------------------------------------- */

struct zkl_io *zkl_io_handshake(int fd)
{
    pthread_mutex_lock(&mutex);
    struct zkl_io *io = mine();
    if (io)
        io->handshake = fd;
    pthread_mutex_unlock(&mutex);
    return io;
}

void zkl_io_handshake_ends(struct zkl_io *io)
{
    pthread_mutex_lock(&mutex);
    io->handshake = -1;
    pthread_mutex_unlock(&mutex);
}

/* With the mutex, so the number is no other file's yet: the socket is closed after its handshake. */
bool zkl_io_cut(struct zkl_io *io)
{
    pthread_mutex_lock(&mutex);
    bool is_under_way = io->handshake >= 0;
    if (is_under_way)
        shutdown(io->handshake, SHUT_RDWR);
    pthread_mutex_unlock(&mutex);
    return is_under_way;
}
