/* SPDX-License-Identifier: Apache-2.0
 *
 * error.h - what calls return, and the version of the library.
 *
 * Every call returns 0 or one negative enum zkl_error unless its comment says otherwise; never
 * errno and never a ZooKeeper number. zkl_error_detail() returns a sentence with the particulars:
 *
 *     int rc = zkl_mutex_lock_for(mutex, 5000);
 *     if (rc != 0) {
 *         fprintf(stderr, "report: %s\n", zkl_error_detail());
 *         if (zkl_error_is_retryable(rc))
 *             try_again_later();
 *     }
 *
 * Any thread may make these calls at any time, in callbacks and in a forked child too. They send
 * nothing and change nothing.
 * Illegal: keeping zkl_error_detail's pointer beyond the thread's next zklock call.
 */
#ifndef ZKLOCK_ERROR_H
#define ZKLOCK_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ZKL_API __attribute__((visibility("default")))
#else
#define ZKL_API
#endif

/* --- return the version of the running library ---------------------------- */

/* Returns the version of the loaded library as text, ZKL_VERSION, in static memory. *number, unless
 * number is NULL, receives ZKL_VERSION_NUMBER of the version.h that the library was built with. The
 * program itself has the version.h that it was compiled with. A check for an older library:
 *
 *     #include <zklock/version.h>
 *     #include <zklock/zklock.h>
 *
 *     int library_is_older(void)
 *     {
 *         int number;
 *         zkl_version(&number);
 *         return number < ZKL_VERSION_NUMBER;
 *     }
 */
ZKL_API const char *zkl_version(int *number);

/* --- explain an error code ------------------------------------------------ */

enum zkl_error {
    ZKL_OK = 0,
    /* Programming errors: fix the caller. */

    ZKL_EINVAL = -1,   /* a NULL, a struct without its size, or an option out of range */
    ZKL_EBADPATH = -2, /* the path is not an absolute, normalized ZooKeeper path below "/" */
    /* a time is negative, or above ZKL_TIMEOUT_MAX_MS; a lease is too short; retain_ms is out of
     * range */
    ZKL_EBADTIMEOUT = -3,
    ZKL_EBADSERVERS = -4, /* not HOST:PORT[,HOST:PORT...][/CHROOT], an IPv6 address in brackets */
    ZKL_ECLOSED = -5,     /* the client is closed */
    ZKL_EFORK = -6,       /* the client, owner or cancel object is the parent process's */
    ZKL_EINCALLBACK = -7, /* a call that waits was made from a library callback */
    /* this thread holds the same path through another handle; or has the read lock and asks for the
     * write lock; or a multi-lock names a path twice */
    ZKL_EDEADLK = -8,
    ZKL_ENOTOWNER = -9,  /* the calling thread does not hold the lock */
    ZKL_EOVERFLOW = -10, /* more than ZKL_HOLD_COUNT_MAX re-entries */

    /* Not held, and nothing is wrong: the caller decides what to do next. */

    ZKL_EBUSY = -11,     /* trylock: another thread holds or waits; free: held or waited on */
    ZKL_ETIMEDOUT = -12, /* the deadline passed */
    ZKL_ECANCELED = -13, /* the wait's cancel object was set */

    /* The service: may pass. */

    ZKL_EDISCONNECTED = -14, /* no server could be reached within the bound of this call */
    /* unlock: not held any more, but the server has not answered; the library keeps trying to
     * delete the node. The window was open, so no other client held the lock before, unless one had
     * deleted the node by hand */
    ZKL_EUNCONFIRMED = -15,
    ZKL_ELOST = -16,   /* the hold was lost; unlock once for each lock, then lock again */
    ZKL_ENOMEM = -17,  /* no memory */
    ZKL_ESYSTEM = -18, /* the system gave no thread, descriptor or further watch */

    /* The service: will not pass by itself, except where the comment says so. */

    /* an ACL denies what the call needs: CREATE, READ, DELETE; WRITE for a semaphore's number and
     * for zkl_revoke */
    ZKL_EACCES = -19,
    ZKL_EAUTH = -20,     /* the server refused the credential */
    ZKL_ENOCHROOT = -21, /* the chroot of the server list does not exist */
    /* the path's sequence counter is used up, and a child that is no contender, or a denied DELETE
     * on the parent, prevents the library from renewing the path */
    ZKL_EEXHAUSTED = -22,
    /* the server does not answer as ZooKeeper does; the detail has the number */
    ZKL_EPROTO = -23,
    ZKL_EMISMATCH = -24, /* the semaphore at the path has another number of permits */
    ZKL_ENONODE = -25,   /* inspect.h: there is no such node */
    ZKL_EFOREIGN = -26,  /* inspect.h: the node is not one of a lock; force is needed */
    /* trylock: no other contender has the lock, but too little of the session is proved for a
     * grant, as after a new link or a pause; it will be proved soon. Check: less of the window is
     * left than was asked for */
    ZKL_EUNPROVED = -27,
    /* unlock: not held any more, and in doubt: the window had run empty before, and nothing proved
     * the hold afterwards: another client may have held the lock */
    ZKL_EDOUBT = -28,
    ZKL_EQUOTA = -29,    /* a quota on the path, or above it, is used up */
    ZKL_EREADONLY = -30, /* the server has lost the others and only answers reads; may pass */
    /* the server does not support what the call needs; the detail has its answer */
    ZKL_EUNIMPLEMENTED = -31,
    /* libzookeeper was built without the TLS or SASL that the options want; or they want both,
     * which libzookeeper does not support; the detail names what is missing */
    ZKL_EUNSUPPORTED = -32,
    /* the client's session owns as many nodes, by the bytes of their paths, as it may:
     * ephemeral_bytes_max of client.h; may pass, when other locks of the client are released */
    ZKL_EFULL = -33
};

/* Returns a sentence for a code: what happened and what to do; also for a number that is no code.
 * Never NULL; static memory. Async-signal-safe. */
ZKL_API const char *zkl_strerror(int code);

/* Returns the code's name, such as "ZKL_EBUSY"; "unknown" for a number that is no code. Logs with
 * the name can be searched for it. Static memory. Async-signal-safe. */
ZKL_API const char *zkl_error_name(int code);

/* Returns the last failure of the calling thread in full, with path and cause. Never NULL; valid
 * until the thread's next zklock call. Empty if no call of this thread has failed. A call that
 * returns 0 for success leaves the text as it was, so read it only after a failure.
 * zkl_mutex_still_held and the other calls that answer with yes or no, a count, a time or a token
 * make it empty, unless the call itself was wrong. */
ZKL_API const char *zkl_error_detail(void);

/* 1 if the same call may succeed later without any change: ZKL_EBUSY, ZKL_ETIMEDOUT,
 * ZKL_EDISCONNECTED, ZKL_ENOMEM, ZKL_ESYSTEM, ZKL_EUNPROVED, ZKL_EREADONLY, ZKL_EFULL. 0 otherwise,
 * also for ZKL_EUNCONFIRMED, ZKL_EDOUBT and ZKL_ELOST: an unlock with that result has ended its
 * lock. */
ZKL_API int zkl_error_is_retryable(int code);

/* 1 if the code says that a hold existed and another client may have, or have had, the lock: stop
 * writing. ZKL_ELOST, ZKL_EDOUBT. */
ZKL_API int zkl_error_is_lost(int code);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
