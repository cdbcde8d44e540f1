/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock.h - distributed locks on Apache ZooKeeper, for C and C++: includes the headers of all
 * locks.
 *
 *   error.h      error codes, a sentence for each, the version of the library (version.h: of the
 *                headers)
 *   wait.h       clock, deadlines, cancel objects, the result of an acquire
 *   log.h        events for the program's log
 *   client.h     the connection to an ensemble
 *   lock.h       what all locks share: options, and the state of a hold
 *   mutex.h      one holder              scope.h      a mutex for the length of a block
 *   rwlock.h     readers or one writer   semaphore.h  a number of permits
 *   multi.h      several locks as one
 *
 * A program includes four headers by themselves: async.h (callbacks instead of waits, for event
 * loops), inspect.h (list holders and waiters, take a lock away), metrics.h (counters), guard.h (a
 * check in ZooKeeper's transactions).
 *
 * Terms:
 *
 *   session   What an ensemble keeps for a client. The nodes that make the client's locks live as
 *             long as the session. It ends by zkl_client_close, or when the ensemble has not heard
 *             from the client for the session timeout (10 s, unless session_timeout_ms or the
 *             servers say otherwise). All holds of the client are lost then, and the client makes a
 *             new session.
 *   hold      What a thread has from its first lock of a mutex to its last unlock.
 *   proved    A hold is proved until a moment if the ensemble's answers show that its session
 *             cannot end before that moment, even if the ensemble hears nothing more from the
 *             client.
 *   window    The time from now to that moment, in milliseconds. While the window lasts, no other
 *             client is granted the lock. The window keeps running while the process is stopped or
 *             the machine sleeps (but see docs/guarantees.md if a hypervisor freezes the machine).
 *             0: the window is over, or the hold is lost. The library renews a holder's window in
 *             the background.
 *   token     The number of a hold's node, 64 bits. Every later node of the path has a larger one.
 *             Holds that share a node (local_handoffs_max, retain_ms, retained readers) share its
 *             token.
 *
 * How to use a token: no lock service can stop a process that has checked its window and is
 * suspended before it writes. Send the token along with each write, to a resource that keeps the
 * largest token that it has seen and rejects smaller ones. A late writer then cannot undo its
 * successor's work.
 *
 * A lock with a deadline, from the first call to the last. Build it with
 * cc report.c $(pkg-config --cflags --libs zklock)
 *
 *     #include <stdio.h>
 *     #include <zklock/zklock.h>
 *
 *     static void write_report(uint64_t token)
 *     {
 *         printf("written with token %llu\n", (unsigned long long)token);
 *     }
 *
 *     int main(void)
 *     {
 *         struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
 *         struct zkl_client *client;
 *         struct zkl_mutex *mutex;
 *         int rc;
 *
 *         options.servers = "127.0.0.1:2181";
 *         options.connect_timeout_ms = 5000;
 *         if (zkl_client_open(&client, &options) != 0) {
 *             fprintf(stderr, "%s\n", zkl_error_detail());
 *             return 1;
 *         }
 *         rc = zkl_mutex_new(&mutex, client, "/locks/report", NULL);
 *         if (rc == 0) {
 *             rc = zkl_mutex_lock_for(mutex, 5000);
 *             if (rc == 0) {
 *                 if (zkl_mutex_still_held(mutex, 500))
 *                     write_report(zkl_mutex_token(mutex));
 *                 rc = zkl_mutex_unlock(mutex);
 *             }
 *             zkl_mutex_free(mutex);
 *         }
 *         if (rc != 0)
 *             fprintf(stderr, "%s\n", zkl_strerror(rc));
 *         zkl_client_free(client);
 *         return rc != 0;
 *     }
 *
 * What to know first:
 *
 * - With a connect_timeout_ms of 0, the default, zkl_client_open does not wait for a server: it
 *   returns 0 even where no server answers. The client keeps trying, and a lock without a deadline
 *   then waits forever.
 * - A process that exits, or is killed, without zkl_client_close or zkl_client_free leaves its
 *   locks held until its session times out. The next contender waits for that time, 10 s by
 *   default.
 * - A re-entry is a lock by a thread that holds the lock already. It sends nothing, so it proves
 *   nothing: its window can be 0. zkl_mutex_still_held says how much is proved now.
 * - Any thread may make any call unless the call's comment says otherwise. All threads of a process
 *   can share one client, and one handle for each path. Each thread has its own holds.
 * - The caller must free what zkl_..._new, zkl_client_open, zkl_semaphore_acquire and zkl_inspect
 *   return. Locks may be freed before their client or after it.
 * - In a callback of the library, calls that can wait fail with ZKL_EINCALLBACK.
 * - A process must open its client after it was forked. Its parent may have a client too, but every
 *   call on the parent's client fails in the child, the free calls included: it returns ZKL_EFORK,
 *   or 0 if it returns yes or no, a count, a time or a token. The child need not free anything of
 *   the parent's client, and its exit does not harm that client.
 * - A signal ends no call: the handler runs, and the call continues. There is no EINTR. A handler
 *   that must end a wait calls zkl_cancel_set.
 * - A struct begins with its size, set by its initializer (ZKL_*_INIT, a constant). Later versions
 *   add fields at the end, where 0 keeps the earlier behavior. So a program that was built with an
 *   older header runs with a newer library. A program that was built with a newer header runs with
 *   an older library unless it sets a field that the library does not know (ZKL_EINVAL).
 * - pthread cancellation of the calling thread is off while a call runs.
 *
 * docs/guarantees.md says what a lock promises and what it does not. The pages that these
 * headers name are installed in share/doc/zklock.
 */
#ifndef ZKLOCK_ZKLOCK_H
#define ZKLOCK_ZKLOCK_H

#include <zklock/error.h>
#include <zklock/wait.h>
#include <zklock/log.h>
#include <zklock/client.h>
#include <zklock/lock.h>
#include <zklock/mutex.h>
#include <zklock/scope.h>
#include <zklock/rwlock.h>
#include <zklock/semaphore.h>
#include <zklock/multi.h>

#endif
