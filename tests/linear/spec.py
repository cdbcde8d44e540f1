# SPDX-License-Identifier: Apache-2.0
"""What a lock is to whoever uses it, as one step after the other: the sequential specification.

A state is who is inside (each hold with its depth), the largest token that was given, the process that may be
given it again, and the largest token that was given to one alone.

- grant alone: nobody is inside. Grant to read: nobody is but readers of other threads; or the thread's own writer,
  whose token it then has. Grant of permits: with them no more are out than there are.
- Each grant's token is larger than all before; only where threads of one process may have one node in turn, the token
  of the last grant comes again, in the same process, if that hold was given back whole and nobody had one in between.
  Where readers of one process may share a node, a reader's token is larger than all that were granted alone.
- enter again: its thread is inside so deep, the token is the hold's, the count one more. Not with "once".
- release: one less, and at the last one it is not inside any more. lose: likewise, at once.
- busy: somebody else is inside, and in its way: a reader is in no reader's, and permits while there are enough. refused (EDEADLK): a reader that asks to write.
- wipe: nobody is inside; tokens begin anew."""
import calls

START = (frozenset(), 0, None, 0)
NO_TOKEN = float("inf")  # none of them is known


def of_thread(inside, worker):
    return [hold for hold, _ in inside if hold.worker == worker]


def why_not_inside(inside, holds):
    hold = holds[0]
    if hold.half == "permit":
        return "no permit is left" if len(inside) + len(holds) > hold.limit else None
    for other, _ in inside:
        if hold.half != "read":
            return "somebody is inside"
        if other.half == "read":
            if other.worker == hold.worker:
                return "it reads already"
        elif other.worker != hold.worker:
            return "a writer is inside"
    return None


def under(inside, hold):
    """The write lock under which it reads."""
    return next((other for other, _ in inside if other.worker == hold.worker and other.half == "alone"), None)


def why_no_token(state, operation):
    inside, last, process, last_alone = state
    hold = operation.holds[0]
    writer = under(inside, hold) if hold.half == "read" else None
    if writer:
        return None if 0 in (hold.token, writer.token) or hold.token == writer.token else "not its write lock's token"
    least = min((each.token for each in operation.holds if each.token), default=NO_TOKEN)
    if least > (last_alone if hold.shared and hold.half == "read" else last):
        return None
    if hold.shared and hold.half == "alone" and least == last and process == hold.process:
        return None
    return "the token is not larger"


def why_not(state, operation):
    """Why it can't happen now; None: it can."""
    inside = state[0]
    kind = operation.kind
    if kind == calls.GRANT:
        return why_not_inside(inside, operation.holds) or why_no_token(state, operation)
    if kind in (calls.RELEASE, calls.ENTER):
        if kind == calls.ENTER and (operation.hold.half not in ("alone", "read") or
                                    operation.token not in (0, operation.hold.token)):
            return "another token" if operation.hold.half in ("alone", "read") else "it is not reentrant"
        return None if (operation.hold, operation.depth) in inside else "it is not so deep inside"
    if kind == calls.LOSE:
        return None if (operation.hold, 1) in inside else "it is not inside"
    if kind == calls.BUSY:
        if all(hold.worker == operation.worker for hold, _ in inside):
            return "nobody is inside"
        return None if why_not_inside(inside, (operation.hold,)) else "nobody is in its way"
    if kind == calls.REFUSED:
        halves = [hold.half for hold in of_thread(inside, operation.worker)]
        return None if operation.hold.half == "alone" and halves == ["read"] else "it may wait"
    return "somebody is inside" if inside else None


def after(state, operation):
    inside, last, process, last_alone = state
    kind, hold = operation.kind, operation.hold
    if kind == calls.GRANT:
        first = operation.holds[0]
        below = first.half == "read" and under(inside, first)
        newest = max(each.token for each in operation.holds)
        again = first.shared and first.half == "alone" and newest
        process = process if below else first.process if again else None
        last_alone = last_alone if first.half == "read" else max(last_alone, newest)
        return inside | {(each, 1) for each in operation.holds}, max(last, newest), process, last_alone
    if kind == calls.ENTER:
        return inside - {(hold, operation.depth)} | {(hold, operation.depth + 1)}, last, process, last_alone
    if kind == calls.RELEASE:
        rest = {(hold, operation.depth - 1)} if operation.depth > 1 else set()
        return inside - {(hold, operation.depth)} | rest, last, None if operation.optional else process, last_alone
    if kind == calls.LOSE:
        return inside - {(hold, 1)}, last, None, last_alone
    if kind == calls.WIPE:
        return START
    return state
