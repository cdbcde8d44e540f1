/* SPDX-License-Identifier: Apache-2.0 */
/* The peers: one process for each language, a client of the same server, that obeys commands.
 *
 * All have the same command line, PEER SERVERS JOURNAL. A peer prints "ready" once it is connected.
 * It then reads commands from standard input, one a line, and answers on standard output. A line is
 * for one worker: a thread of that peer, whose first letter is the language (c: zklock, j: Curator,
 * k: Kazoo, g: go-zookeeper, with a mutex alone, and without a bound). Each worker does one thing
 * at a time and answers it with one line.
 *
 *     j1 new L mutex /path [name=value...]   a handle for all workers of this peer; kinds:
 *            mutex, single (a mutex any thread may release), rwlock (with halves L.read, L.write),
 *            semaphore (permits=N), multi (/path,/path...; last=single: the last
 *            member is one), none (lets everybody in)
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
 * Anything unexpected is answered "error WHAT". A peer ends when its input does. */
#ifndef ZKINTEROP_PEERS_H
#define ZKINTEROP_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#define ANSWER_MS 120000 /* for what comes without a wait, on a machine that may be busy */

/* False, and a sentence that names the package, if a peer can't run here. */
bool peers_available(char *why, size_t size);
/* Start all peers that do not run, and wait until they are connected. Their output is written to
 * folder. 0, or -1 and a sentence. */
int peers_start(const char *servers, const char *journal, const char *folder, char *why,
                size_t size);
/* True: it takes part; go-zookeeper need not be there. Known once they were started. */
bool peers_have(char language);
/* Of the process that runs this language. */
int peer_pid(char language);
/* True: none is at work, and none has ended. */
bool peers_idle(void);
/* Let them end; kill those that don't. */
void peers_stop(void);
void peers_kill(void);
/* What they wrote on standard error, for the output of a test that failed. */
void peers_print_logs(void);

/* Send a command to a worker. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Its answer without its name, NULL: none within ms. Good until its next one. */
const char *answer_within(const char *worker, int ms);
/* The same; the test fails if there is none. */
const char *answer(const char *worker);
/* Both. */
const char *ask(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define check_says(expected, ...) assert_string_equal(ask(__VA_ARGS__), expected)
#define check_answers(expected, worker) assert_string_equal(answer(worker), expected)
/* It begins with the text. */
#define check_ok_of(...) check_begins(ask(__VA_ARGS__), "ok")
void check_begins(const char *text, const char *start);

#endif
