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
    X(ZKL_EINVAL, "an argument is NULL, a struct's size is not set, or an option is out of range") \
    X(ZKL_EBADPATH, "the lock path is not usable: give an absolute ZooKeeper path")                \
    X(ZKL_EBADTIMEOUT,                                                                             \
      "a time is out of range, negative or above ZKL_TIMEOUT_MAX_MS: to wait without a "           \
      "limit use the call without a timeout")                                                      \
    X(ZKL_EBADSERVERS,                                                                             \
      "the server list is not usable: give host:port[,host:port...][/chroot], an IPv6 "            \
      "address in brackets")                                                                       \
    X(ZKL_ECLOSED, "the client is closed: open another one")                                       \
    X(ZKL_EFORK, "the client was opened by the parent process: open one in this process")          \
    X(ZKL_EINCALLBACK,                                                                             \
      "a call that waits was made from a library callback: make it from a thread of "              \
      "your own")                                                                                  \
    X(ZKL_EDEADLK, "this thread would wait for itself: it holds the path through another handle, " \
                   "or as a reader, "                                                              \
                   "or a multi-lock names it twice")                                               \
    X(ZKL_ENOTOWNER, "the calling thread does not hold this lock")                                 \
    X(ZKL_EOVERFLOW, "the lock was locked again too often: is an unlock missing?")                 \
    X(ZKL_EBUSY, "it is in use: somebody holds it, or waits for it")                               \
    X(ZKL_ETIMEDOUT, "the deadline passed before it was done")                                     \
    X(ZKL_ECANCELED, "the wait was canceled")                                                      \
    X(ZKL_EDISCONNECTED,                                                                           \
      "no ZooKeeper server could be reached in time: check the server list, then "                 \
      "try again")                                                                                 \
    X(ZKL_EUNCONFIRMED,                                                                            \
      "not held any more, but the server has not confirmed it: the library goes on "               \
      "deleting the node")                                                                         \
    X(ZKL_ELOST, "the hold was lost: stop writing, unlock, and lock again")                        \
    X(ZKL_ENOMEM, "out of memory")                                                                 \
    X(ZKL_ESYSTEM, "a thread, a descriptor or one more watch could not be had: check the "         \
                   "process's limits, or wait for fewer locks with one client")                    \
    X(ZKL_EACCES,                                                                                  \
      "the path's ACL denies what is needed: open the client with its owner's credential, or "     \
      "have the right granted to this one")                                                        \
    X(ZKL_EAUTH, "the credential was refused: check auth_scheme and the credential")               \
    X(ZKL_ENOCHROOT, "the chroot of the server list does not exist: create it first")              \
    X(ZKL_EEXHAUSTED, "the path's sequence counter is used up and something keeps it from being "  \
                      "renewed: remove what is named")                                             \
    X(ZKL_EPROTO, "the server's answer was not understood")                                        \
    X(ZKL_EMISMATCH,                                                                               \
      "the semaphore has another number of permits: name that one, or 0, or set it for all")       \
    X(ZKL_ENONODE, "there is no such node: look again who holds and who waits")                    \
    X(ZKL_EFOREIGN, "the node is not one of a lock: to have it deleted use ZKL_INSPECT_FORCE")     \
    X(ZKL_EUNPROVED, "nobody else has it, but this client's session is not proved for long "       \
                     "enough yet, as after a new link or a pause: try again, or wait")             \
    X(ZKL_EDOUBT, "not held any more, and for a while nothing proved the hold: somebody else may " \
                  "have held the lock meanwhile, so look after what was written")                  \
    X(ZKL_EQUOTA, "a quota of the path, or of one above it, is used up: raise it, or remove what " \
                  "is not needed there")                                                           \
    X(ZKL_EREADONLY, "the server has lost the others and only answers reads: try again later")     \
    X(ZKL_EUNIMPLEMENTED, "the server does not do what was asked: look at its version, and at "    \
                          "what it says")                                                          \
    X(ZKL_EUNSUPPORTED, "libzookeeper has no call for what the options ask: have one that has "    \
                        "what is named, or leave it out")

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
           code == ZKL_EREADONLY;
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
#define TEXT(x) #x
#define VERSION(a, b, c) TEXT(a) "." TEXT(b) "." TEXT(c)
    if (number)
        *number = ZKL_VERSION_NUMBER;
    return VERSION(ZKL_VERSION_MAJOR, ZKL_VERSION_MINOR, ZKL_VERSION_PATCH);
}
