/* SPDX-License-Identifier: Apache-2.0
 * Places of mutexes without a list. ZooKeeper numbers the children of a node by counting those
 * that were ever made there, by any client and of any kind; deletions leave the count (B2). So the
 * number after n belongs to the very next child that is made.
 *
 * The first in the queue. A contender that was first in the queue with number n, released it, and
 * gets n + 1 for its next node is first again: no other node was made in between, and none of
 * those before n was left. The answer to the create says it all.
 *
 * Three things must be sure. The own delete of n has succeeded: its answer comes before that to
 * the create. All contenders before n had left: n was granted. And the path's node is still the
 * one that gave the number n, as one made anew counts from 0: a watch on it, armed over the link
 * that is up since before n was deleted, has not fired, and the server sends that event before it
 * answers the create. (Until n was deleted the path's node had a child, so that no client could
 * delete it.) A client that loses the right to READ that node receives no event (B22): the
 * keepalive finds that out by the ACL's version, a little later; guarantees.md excepts it.
 *
 * The client asks for the watch after ZKL_UNLISTED_FROM acquisitions in a row with no other
 * contender between. There is one for each path, until the path's last handle is freed. All of
 * them get an eighth of the room for watches; beyond that the client lists as ever. From then on
 * the grant does not wait for the list. While other requests of the client are under way it does
 * not even send the list: two requests for a lock and its unlock, not three. If another contender
 * did come between, it sends the list then, which takes one more round trip, and the row begins
 * anew. With nothing else under way the list is sent along with the create: that takes no time,
 * and spares the round trip. (A machine that has nothing to do meanwhile falls asleep, which cost
 * more than the list.) A multi-lock always leaves the lists out, except for the first member's,
 * which may show the transaction's zxid (transaction.h).
 *
 * Behind one's own node. A mutex's node that has the number after that of another mutex's node of
 * this client, in one queue, is just behind that one: no child was made in between, so no
 * contender is between them, nor ever will be (a number is not given again). It waits as if a list
 * had shown the other one last before it, and watches that. Otherwise threads that come one after
 * another to one lock would fetch the names of the whole queue, each.
 *
 * So that nothing rests on a path made anew, which may give the number n + 1 as well, the node n
 * must be seen. Then its parent is the one that gave both numbers, as a node with a child is not
 * deleted, and a name with its GUID is not made twice. One of these shows n:
 * - a watch on it that was armed over the link that is up and has not fired: events come before
 *   answers that are later than what they report, so n existed when n + 1 was made;
 * - or the answer to the watch that the client asks for then. If n does not exist any more nothing
 *   is known: a list (ZKL_PRED_END_UNSEEN in pred_proof.c). Likewise if the link breaks before:
 *   each new link lists.
 *
 * What else could be between: foreign tools' children count like ours, so theirs make the number
 * too high; a transaction that fails uses up no number, and neither does a create that fails. A
 * session's end deletes n as well: no contender waits in a session that is over. Exhausted
 * numbers, which come again, are never waited with. The client does not rely on a node made over
 * an earlier link, or whose owner's delete is out, or whose contender does not know its own place:
 * in doubt it lists. A downgraded reader, whose node gets an old number, comes before n too, if at
 * all: the contender of n is granted behind it, and n + 1 behind n.
 *
 * How many are before it: one more than are before n, and no more than the numbers from the last
 * known first on.
 *
 * The create leaves the list out if ZKL_UNLISTED_FROM of the client's nodes in a row had the
 * number after its node before, and that one exists; the list is sent then if the guess was wrong.
 * Else it is sent along, and decides. A try, a bundle's member, readers and writers, and named
 * locks list as ever: a try does not wait; the others of a bundle would wait with it; readers pass
 * each other, and names share a path. */
#ifndef ZKL_CORE_UNLISTED_GRANT_H
#define ZKL_CORE_UNLISTED_GRANT_H

#include "core.h"

/* Is the create of a contender that begins now to be sent without a list? */
bool zkl_unlisted_expects(const struct zkl_core *core, const struct zkl_contender *c);
/* Its create succeeded. What that alone says goes into the event: whether it is the first in the
 * queue, or just behind which other one. */
void zkl_unlisted_created(struct zkl_core *core, struct zkl_contender *c, const char *name,
                          struct zkl_event *event);
/* Its delete goes out. */
void zkl_unlisted_leaves(const struct zkl_core *core, struct zkl_contender *c);
/* Its delete succeeded. */
void zkl_unlisted_left(struct zkl_contender *c);
/* It ends. */
void zkl_unlisted_forget(struct zkl_contender *c);
/* The path's node was changed or deleted, or could not be watched. */
void zkl_unlisted_unsure(struct zkl_unlisted_grant *unlisted);
/* The owner gives it up: no contender uses it any more. In core.c. */
void zkl_unlisted_end(struct zkl_core *core, struct zkl_time now,
                      struct zkl_unlisted_grant *unlisted);

#endif
