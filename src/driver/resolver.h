/* SPDX-License-Identifier: Apache-2.0
 * The servers' addresses. libzookeeper receives addresses only: it would look names up in its I/O
 * thread, for as long as the resolver takes, with a lock held that our calls need. This code looks
 * names up on a thread that no other thread waits for, and that exists only if the list has
 * names. */
#ifndef ZKL_DRIVER_RESOLVER_H
#define ZKL_DRIVER_RESOLVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zkl_driver;

/* One server of the list. */
struct zkl_host {
    char *name;
    char port[6];
    /* its addresses, "address:port,...", as libzookeeper takes them; NULL: none is known */
    char *found;
    int failure; /* of its last look-up, getaddrinfo's code; 0: none */
    bool is_address;
};

struct zkl_hosts {
    struct zkl_host *all;
    size_t count;
};

/* Under the driver's mutex, except what never changes: names and ports. */
struct zkl_resolver {
    struct zkl_hosts hosts;
    struct zkl_hosts replaced;  /* a former list: the thread looks one of it up; or none */
    char *addresses;            /* of all, sorted; NULL: none is known yet */
    unsigned serial;            /* of addresses: counts their changes */
    bool are_new;               /* something was found since addresses was made */
    int64_t not_before_mono_ns; /* there was no memory for it */

    bool has_thread;
    pthread_t thread;
    pthread_cond_t due;
    bool wanted;                    /* look now */
    const struct zkl_host *looking; /* at this one; NULL: the thread sleeps */
    int64_t round_mono_ns;          /* when the look at all of them began; INT64_MAX: it is over */
};

/* The servers of a list without a fault. 0, ZKL_ENOMEM or ZKL_EBADSERVERS (*hosts is empty then).
 * Addresses need no look-up. */
int zkl_hosts_read(struct zkl_hosts *hosts, const char *servers);
void zkl_hosts_free(struct zkl_hosts *hosts);
/* Are there any that need one? */
bool zkl_hosts_have_names(const struct zkl_hosts *hosts);

/* Of config.servers. 0, ZKL_ENOMEM or ZKL_EBADSERVERS. */
int zkl_resolver_init(struct zkl_driver *d);
void zkl_resolver_fini(struct zkl_driver *d);
/* The thread's work, until the driver is closing. */
void zkl_resolver_run(struct zkl_driver *d);
/* Without the mutex, once the driver is closing: detach the thread. A thread that is in a look-up
 * continues until the resolver answers, with a reference on the driver. */
void zkl_resolver_end(struct zkl_driver *d);

/* The rest: with the mutex. */

/* From now on these are the servers. They are taken over. */
void zkl_resolver_replace(struct zkl_driver *d, struct zkl_hosts hosts);
/* No server answers: look again now. */
void zkl_resolver_want(struct zkl_driver *d);
/* Put what was found together, if there is something new and it is time. */
void zkl_resolver_publish(struct zkl_driver *d, int64_t now_mono_ns);
/* When that is; INT64_MAX: not before something is found. */
int64_t zkl_resolver_due(const struct zkl_driver *d);
/* Describe a name that has no address, as a part of a sentence with "; " before it; else "". */
void zkl_resolver_trouble(const struct zkl_driver *d, char *text, size_t size);

#endif
