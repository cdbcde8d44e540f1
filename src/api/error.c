/* SPDX-License-Identifier: Apache-2.0
 *
 * The sentences of the codes, the group that each belongs to, and the detail of a thread's last
 * failure, in a buffer of each thread. No lock. Every call of src/api that fails says why through
 * zkl_fail; users read it. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <zklock/version.h>

/* Each code once: number and sentence side by side. */
#define CODES(X)                                                                                   \
    X(ZKL_OK, "no error")                                                                          \
    X(ZKL_EINVAL, "an argument is NULL, a struct is not initialized, or an option is out of "      \
                  "range: fix the call")                                                           \
    X(ZKL_EBADPATH, "the lock path is invalid: give an absolute ZooKeeper path")                   \
    X(ZKL_EBADTIMEOUT, "a time is out of range, negative or above ZKL_TIMEOUT_MAX_MS: to wait "    \
                       "without a limit, use the call without a timeout")                          \
    X(ZKL_EBADSERVERS, "the server list is invalid: give host:port[,host:port...][/chroot], with " \
                       "IPv6 addresses in brackets")                                               \
    X(ZKL_ECLOSED, "the client is closed: open another one")                                       \
    X(ZKL_EFORK, "the parent process opened the client: open one in this process")                 \
    X(ZKL_EINCALLBACK,                                                                             \
      "a library callback made a call that waits: make it from a thread of your own")              \
    X(ZKL_EDEADLK, "this thread would wait for itself: it holds the path through another handle "  \
                   "or as a reader, or a multi-lock names the path twice")                         \
    X(ZKL_ENOTOWNER,                                                                               \
      "the calling thread does not hold this lock: make the call in the thread that locked it")    \
    X(ZKL_EOVERFLOW, "the thread locked the lock too often: look for a missing unlock")            \
    X(ZKL_EBUSY,                                                                                   \
      "it is in use, because a thread or process holds it or waits for it: try again later")       \
    X(ZKL_ETIMEDOUT,                                                                               \
      "the deadline passed before the call was done: try again, or allow more time")               \
    X(ZKL_ECANCELED, "the wait was canceled")                                                      \
    X(ZKL_EDISCONNECTED,                                                                           \
      "no ZooKeeper server could be reached in time: check the server list, then try again")       \
    X(ZKL_EUNCONFIRMED, "the hold is released, but the server has not confirmed it: no action is " \
                        "needed, the library deletes the node")                                    \
    X(ZKL_ELOST, "the hold was lost: stop writing, unlock, and lock again")                        \
    X(ZKL_ENOMEM, "out of memory")                                                                 \
    X(ZKL_ESYSTEM, "no thread, descriptor or watch is available: check the limits of the "         \
                   "process, or wait for fewer locks with one client")                             \
    X(ZKL_EACCES, "the path's ACL denies a right that the call needs: open the client with a "     \
                  "credential that has the right, or change the ACL")                              \
    X(ZKL_EAUTH, "the server refused the credential: check auth_scheme and the credential")        \
    X(ZKL_ENOCHROOT, "the chroot of the server list does not exist: create it first")              \
    X(ZKL_EEXHAUSTED, "the path's sequence counter is used up, and something keeps the library "   \
                      "from renewing the path: remove the cause")                                  \
    X(ZKL_EPROTO, "the server does not answer as ZooKeeper does: check its version and its data")  \
    X(ZKL_EMISMATCH, "the semaphore has another number of permits: give that number, or set "      \
                     "another one for all clients")                                                \
    X(ZKL_ENONODE, "the node does not exist: list the holders and waiters again")                  \
    X(ZKL_EFOREIGN, "the node does not belong to a lock: to delete it, use ZKL_INSPECT_FORCE")     \
    X(ZKL_EUNPROVED, "no other contender has the lock, but this client's session is not proved "   \
                     "for long enough yet, as after a new link or a pause: try again, or wait")    \
    X(ZKL_EDOUBT, "the hold is released, but nothing proved it for a while, and another "          \
                  "contender may have held the lock: check what was written")                      \
    X(ZKL_EQUOTA, "a quota of the path, or of a path above it, is used up: raise the quota, or "   \
                  "delete nodes there")                                                            \
    X(ZKL_EREADONLY,                                                                               \
      "the server has lost the other servers and answers only reads: try again later")             \
    X(ZKL_EUNIMPLEMENTED,                                                                          \
      "the server does not support the request: check its version and its answer")                 \
    X(ZKL_EUNSUPPORTED, "libzookeeper has no call for what the options ask: use a libzookeeper "   \
                        "that has it, or remove the option")                                       \
    X(ZKL_EFULL, "the client's session owns as many nodes as it may: release other locks, use "    \
                 "another client, or raise ephemeral_bytes_max")

const char *zkl_strerror(int code)
{
    switch (code) {
#define X(name, sentence)                                                                          \
    case name:                                                                                     \
        return sentence;
        CODES(X)
#undef X
    default:
        return "unknown error code";
    }
}

const char *zkl_error_name(int code)
{
    switch (code) {
#define X(name, sentence)                                                                          \
    case name:                                                                                     \
        return #name;
        CODES(X)
#undef X
    default:
        return "unknown";
    }
}

static _Thread_local char detail[768];

const char *zkl_error_detail(void)
{
    return detail;
}

int zkl_fail(int code, const char *what, ...)
{
    va_list args;
    int n = snprintf(detail, sizeof detail, "%s (", zkl_strerror(code));
    va_start(args, what);
    n += vsnprintf(detail + n, sizeof detail - (size_t)n, what, args);
    va_end(args);
    if ((size_t)n < sizeof detail - 1)
        snprintf(detail + n, sizeof detail - (size_t)n, ")");
    return code;
}

void zkl_fail_none(void)
{
    detail[0] = '\0';
}

void zkl_fail_again(const char *text)
{
    snprintf(detail, sizeof detail, "%s", text);
}

int zkl_check_ms(int64_t ms, const char *call)
{
    if (ms < 0 || ms > ZKL_TIMEOUT_MAX_MS)
        return zkl_fail(ZKL_EBADTIMEOUT, "%s: %lld ms", call, (long long)ms);
    return 0;
}

int zkl_error_is_retryable(int code)
{
    return code == ZKL_EBUSY || code == ZKL_ETIMEDOUT || code == ZKL_EDISCONNECTED ||
           code == ZKL_ENOMEM || code == ZKL_ESYSTEM || code == ZKL_EUNPROVED ||
           code == ZKL_EREADONLY || code == ZKL_EFULL;
}

bool zkl_error_is_answer(int code)
{
    return code == ZKL_EPROTO || code == ZKL_EBADPATH || code == ZKL_EQUOTA ||
           code == ZKL_EREADONLY || code == ZKL_EUNIMPLEMENTED;
}

int zkl_error_is_lost(int code)
{
    return code == ZKL_ELOST || code == ZKL_EDOUBT;
}

const char *zkl_version(int *number)
{
    if (number)
        *number = ZKL_VERSION_NUMBER;
    return ZKL_VERSION;
}
