/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock.h - distributed locks on Apache ZooKeeper, for C and C++: the headers of all locks.
 *
 *   error.h      codes, sentences for them, the version that runs (version.h: that of the headers)
 *   wait.h       clock, deadlines, cancel objects, what an acquire gives
 *   log.h        events for the program's log
 *   client.h     the connection to an ensemble
 *   lock.h       what all locks have: options, what happens to a hold
 *   mutex.h      one holder              scope.h      a mutex for the length of a block
 *   rwlock.h     readers or one writer   semaphore.h  a number of permits
 *   multi.h      several locks as one
 *
 * By themselves: async.h (callbacks instead of waits, for event loops), inspect.h (who holds, who
 * waits; taking a lock away), metrics.h (counters), guard.h (a check in ZooKeeper's transactions).
 *
 * Words:
 *
 *   session   What an ensemble keeps for a client: while it lasts, so do the nodes that make the
 *             client's locks. It ends by zkl_client_close, or when the ensemble has not heard of
 *             the client for the session timeout (10 s, unless session_timeout_ms or the servers
 *             say otherwise). All holds of the client are lost then, and it makes a new session.
 *   hold      What a thread has from its first lock of a mutex to its last unlock.
 *   proved    A hold is proved until a moment if, by what the ensemble has answered, its session
 *             can't end before that moment, even if nothing more is heard of the client.
 *   window    The time from now to that moment, in milliseconds. While it lasts no other client is
 *             granted the lock. It runs on while the process is stopped or the machine sleeps. 0:
 *             it is over, or the hold is lost. A holder's window is renewed in the background.
 *   token     The number of a hold's node: 64 bits. Who holds the path after this node is gone has
 *             a larger one.
 *
 * What to do with a token: no lock service can stop a process that has looked at its window and is
 * stopped before it writes. Give the token along with each write, to a resource that keeps the
 * largest token that it has seen and refuses smaller ones: then a late writer can't undo its
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
 *   returns 0 even where none answers. The client goes on trying, and a lock without a deadline
 *   then waits for ever.
 * - A process that exits, or is killed, without zkl_client_close or zkl_client_free leaves its
 *   locks held until its session times out: the next one in line waits so long, 10 s by default.
 * - A re-entry, a lock by a thread that holds already, sends nothing and so proves nothing: its
 *   window can be 0. Ask zkl_mutex_still_held, which says how much is proved now.
 * - Any call may be made from any thread unless its comment says otherwise. All threads of a
 *   process can share one client, and one handle for each path; each thread has holds of its own.
 * - What zkl_..._new, zkl_client_open, zkl_semaphore_acquire and zkl_inspect give is the caller's
 *   to free. Locks may be freed before their client or after it.
 * - In a callback of the library, calls that can wait are refused (ZKL_EINCALLBACK).
 * - A process opens its client after it was forked. Its parent may have one too: with that one
 *   every call in the child is refused (ZKL_EFORK), the free calls too. The child needs to free
 *   nothing of it, and does it no harm when it exits.
 * - A signal ends no call: the handler runs, and the call goes on. There is no EINTR. A handler
 *   that is to end a wait calls zkl_cancel_set.
 * - A struct begins with its size, set by its initializer (ZKL_*_INIT, a constant). Later versions
 *   add fields at the end, where 0 means what was so before. So a program that was built with an
 *   older header runs with a newer library; one that was built with a newer header runs with an
 *   older library unless it sets a field that this does not know (ZKL_EINVAL).
 * - pthread cancellation of the calling thread is off while a call runs.
 *
 * What a lock promises, and what it does not, is in docs/guarantees.md; the folder docs is
 * installed as share/doc/zklock.
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
