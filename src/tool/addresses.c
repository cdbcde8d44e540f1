/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of a list of servers, looked up on a separate thread, because a resolver can take
 * seconds. The object has two users, the thread and its starter; the later one frees it. The thread
 * passes the text by one atomic pointer before the descriptor becomes readable. settings.c and
 * raw.c start look-ups. */
#include "addresses.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "signals.h"

struct addresses {
    atomic_int users; /* the thread, which may outlast its starter, is one */
    int done;         /* a descriptor, readable from then on */
    char *servers;
    char *text;                  /* the thread's, and then: */
    _Atomic(const char *) found; /* set before done is readable; NULL: none has an address */
};

void addresses_drop(struct addresses *a)
{
    if (!a || atomic_fetch_sub(&a->users, 1) != 1)
        return;
    if (a->done >= 0)
        close(a->done);
    free(a->servers);
    free(a->text);
    free(a);
}

static void append(struct addresses *a, const struct addrinfo *one)
{
    const char *comma = a->text ? "," : "";
    char host[INET6_ADDRSTRLEN + 32], port[8], *longer;
    if (getnameinfo(one->ai_addr, one->ai_addrlen, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0 ||
        asprintf(&longer, "%s%s%s:%s", a->text ? a->text : "", comma, host, port) < 0)
        return;
    free(a->text);
    a->text = longer;
}

/* entry: "host:port", an IPv6 address in brackets; is changed. One that has no address is left
 * out. */
static void look_up(struct addresses *a, char *entry)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found;
    char *colon = strrchr(entry, ':');
    if (!colon || colon == entry)
        return;
    bool bracket = entry[0] == '[' && colon[-1] == ']';
    colon[-bracket] = '\0';
    if (getaddrinfo(entry + bracket, colon + 1, &hints, &found) != 0)
        return;
    for (const struct addrinfo *one = found; one; one = one->ai_next)
        append(a, one);
    freeaddrinfo(found);
}

static void *look_all_up(void *arg)
{
    struct addresses *a = arg;
    const uint64_t one = 1;
    char *rest;
    for (char *entry = strtok_r(a->servers, ",", &rest); entry; entry = strtok_r(NULL, ",", &rest))
        look_up(a, entry);
    atomic_store(&a->found, a->text); /* that done is readable orders no memory by itself */
    while (write(a->done, &one, sizeof one) < 0) {
    }
    addresses_drop(a);
    return NULL;
}

static bool start(struct addresses *a)
{
    pthread_t thread;
    sigset_t before;
    signals_block_all(&before);
    atomic_fetch_add(&a->users, 1);
    bool started = pthread_create(&thread, NULL, look_all_up, a) == 0;
    signals_restore(&before);
    if (started)
        pthread_detach(thread);
    else
        atomic_fetch_sub(&a->users, 1);
    return started;
}

struct addresses *addresses_look_up(const char *servers)
{
    struct addresses *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->users = 1;
    a->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    a->servers = strndup(servers, strcspn(servers, "/"));
    if (a->done >= 0 && a->servers && start(a))
        return a;
    addresses_drop(a);
    return NULL;
}

const char *addresses_wait(struct addresses *a, int ms, int stop)
{
    struct pollfd from[] = {{.fd = a->done, .events = POLLIN}, {.fd = stop, .events = POLLIN}};
    poll(from, 2, ms);
    return atomic_load(&a->found);
}
