/* SPDX-License-Identifier: Apache-2.0 */
/* The peers: processes, each a client of the same server, that obey commands. There is a peer for each language
 * (tests/interop/interop.py); each has the command line PEER SERVERS JOURNAL, that of zklock an optional CREDENTIAL more,
 * with which its nodes are open to their creator only. Whoever tells them: conductor.py; what is below this text, chaos.
 *
 * A peer prints "ready" once it is connected. It then reads commands from standard input, one a line, and answers on
 * standard output. A line is for one worker: a thread of that peer, whose name begins with the peer's: c1 and c2 of
 * the peer c, o1.3 of the peer o1. Each worker does one thing at a time and answers it with one line.
 *
 *     j1 new L mutex /path [OPTION...]   a handle for all workers of this peer; kinds:
 *            mutex, single (a mutex any thread may release), rwlock (with halves L.read, L.write),
 *            semaphore, multi (/path,/path...), none (lets everybody in)
 *     j1 lock L MS            wait at most MS; 0: try only     ok | no: not acquired
 *     j1 unlock L             what this worker has             ok
 *     j1 run L N PERCENT      lock, enter the journal, nap, leave it, unlock, N times;
 *                             of a rwlock PERCENT as a writer  ok
 *     j1 list L               the contenders, in order         ok DATA|DATA...
 *     c1 node L               the node of what it holds        ok PATH
 *     j1 revoke PATH MS       ask PATH's holder to release     ok | no: still there
 *     j1 revoked L MS         wait to be asked for it          ok | no
 *     j1 drop L               free the handle                  ok
 *     j1 version              the release of Curator, Kazoo    ok 5.4.0
 *
 * Of zklock's peer alone, for soak and chaos:
 *
 *     s1.0 roam L multi N MS SEED    N visits, and for MS at least, to sets of L0 to L5 (roam.h), which the seed
 *                             draws; "singly": one by one      ok COUNT... of each enum tally
 *     s1.w calls MS           is a "roam" of this peer in one call for longer?     ok | error, and which
 *     s1.w weigh heap         what the process has in use      ok BYTES
 *     s1.0 leak WHAT          memory, descriptors or threads: it keeps some        ok
 *     p1.0 play S             what chaos/play.c has, S being its handle of the semaphore's mutex: ok in the end
 *
 * Anything unexpected is answered "error WHAT". A peer ends when its input does. An OPTION is NAME or NAME=VALUE, and
 * what a peer does not know it passes over. Of the handle: permits=N, count=N (permits that one lock takes),
 * last=single (the last member of a multi-lock is one), name=TEXT (of a named lock), names=kazoo, owner=TEXT,
 * revocable=poll or callback, retain=MS, local=N, posted, metrics; of Kazoo those in peer.py. How zklock's "run" locks
 * with it: try, sync, timed (short deadlines), each again and again; lease=MS; late (now and then a lease runs out);
 * downgrade (a writer becomes a reader); nap (longer, after each). */
#ifndef ZKCROWD_PEERS_H
#define ZKCROWD_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#define ANSWER_MS 120000 /* for what comes without a wait, on a machine that may be busy */

/* Start a peer, if it does not run, with this command; its output is written to folder, where it is started. The name
 * must not begin another's, and it, folder and the command are kept. 0, or -1 and a sentence. */
int peer_start(const char *name, const char *const *command, const char *folder, char *why,
               size_t size);
int peer_pid(const char *name);
/* In a folder that /proc has of it: "fd", "task". */
int peer_entries(const char *name, const char *folder);
/* Let all end; kill those that don't. False: one ended, or had ended, in another way than with success. */
bool peers_stop(void);
void peer_kill(const char *name);
/* What they wrote on standard error, for the output of a test that failed. */
void peers_print_logs(void);

/* Take what the peers say, for at most ms. */
void peers_listen(int ms);
/* True: some worker has not answered yet. */
bool peers_at_work(void);
/* NULL: all run, and each answer that nobody has asked for begins with "ok". Else one that does not, as a sentence. */
const char *peers_fault(void);

/* Send a command to a worker. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Its answer without its name, once; NULL: none within ms. Good until its next one. */
const char *answer_within(const char *worker, int ms);
/* The same; the test fails if there is none. */
const char *answer(const char *worker);
/* Both. */
const char *ask(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
