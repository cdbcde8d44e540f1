# SPDX-License-Identifier: Apache-2.0
"""Is there an order of the operations in which each takes place at one moment between its call and its return, and in
which each is allowed by the specification?

The search is that of J. M. Wing and C. Gong, "Testing and verifying concurrent objects", Journal of Parallel and
Distributed Computing 17 (1993), as A. Horn and D. Kroening, "Faster linearizability checking via P-compositionality",
FORTE 2015, and A. Athalye's Porcupine write it down: a list of calls and returns in the order of time; the next
operation is one that was called before the first return that is left; at a return nothing is left to choose, so the
last choice is taken back. With the memory of G. Lowe, "Testing for linearizability", Concurrency and Computation:
Practice and Experience 29 (2017): what was chosen and the state it led to are not tried twice.

What was chosen is remembered in short. In the order of returns, all before the frontier are in it, and of those behind
only what is in the mask. Of the operations that need not happen nothing is remembered: each ends a hold, so the state
has it."""
import spec

STATES_MAX = 5_000_000


class Result:
    def __init__(self, fine, tried, deepest=None):
        self.fine = fine  # None: given up
        self.tried = tried
        self.deepest = deepest  # see explain


class Line:
    """Calls and returns in the order of time, doubly linked. Entry 2 i is the call of operation i, 2 i + 1 its
    return; the last is the end."""

    def __init__(self, operations):
        at = []
        for i, operation in enumerate(operations):
            at.append((operation.call, 0, 2 * i))
            if not operation.optional:
                at.append((operation.ret, 1, 2 * i + 1))
        self.end = 2 * len(operations)
        order = [entry for _, _, entry in sorted(at)]
        self.next = [self.end] * (self.end + 1)
        self.before = [self.end] * (self.end + 1)
        for one, other in zip([self.end] + order, order + [self.end]):
            self.next[one], self.before[other] = other, one

    def first(self):
        return self.next[self.end]

    def take(self, entry):
        self.next[self.before[entry]] = self.next[entry]
        self.before[self.next[entry]] = self.before[entry]

    def put_back(self, entry):
        self.next[self.before[entry]] = entry
        self.before[self.next[entry]] = entry


def ranks(operations):
    """Of those that must happen, in the order of their returns."""
    must = [i for i, operation in enumerate(operations) if not operation.optional]
    must.sort(key=lambda i: (operations[i].ret, i))
    return {i: rank for rank, i in enumerate(must)}


def with_rank(frontier, mask, rank):
    mask |= 1 << (rank - frontier)
    while mask & 1:
        mask >>= 1
        frontier += 1
    return frontier, mask


def search(operations, states_max=STATES_MAX):
    line, rank = Line(operations), ranks(operations)
    chosen = None  # (operation, what was so before, the one chosen before it)
    now = 0, 0, spec.START
    seen = {now}
    deepest = -1, None
    entry = line.first()
    while now[0] < len(rank):
        operation = operations[entry >> 1] if entry != line.end and not entry & 1 else None
        if operation is None:  # a return, or the end: the last choice was wrong
            if now[0] > deepest[0]:
                deepest = now[0], (chosen, now)
            if chosen is None:
                return Result(False, len(seen), explain(operations, rank, *deepest[1]))
            last, now, chosen = chosen
            if not operations[last].optional:
                line.put_back(2 * last + 1)
            line.put_back(2 * last)
            entry = line.next[2 * last]
            continue
        i, (frontier, mask, state) = entry >> 1, now
        if spec.why_not(state, operation) is None:
            if not operation.optional:
                frontier, mask = with_rank(frontier, mask, rank[i])
            then = frontier, mask, spec.after(state, operation)
            if then not in seen:
                if len(seen) >= states_max:
                    return Result(None, len(seen))
                seen.add(then)
                chosen, now = (i, now, chosen), then
                line.take(entry)
                if not operation.optional:
                    line.take(entry + 1)
                entry = line.first()
                continue
        entry = line.next[entry]
    return Result(True, len(seen))


def explain(operations, rank, chosen, now):
    """The longest order that was found, the state it leads to, what can't follow, and what else was called by then."""
    frontier, _, state = now
    order = []
    while chosen is not None:
        order.append(chosen[0])
        chosen = chosen[2]
    order.reverse()
    taken = set(order)
    stuck = next(i for i, at in rank.items() if at == frontier)
    left = [operations[i] for i in range(len(operations))
            if i not in taken and operations[i].call <= operations[stuck].ret and i != stuck]
    return [operations[i] for i in order], state, operations[stuck], left


def describe(result, most=8):
    """Lines of text."""
    order, state, stuck, left = result.deepest
    yield f"{len(order)} operations can be put in order, and then {stuck} can't be: {spec.why_not(state, stuck)}"
    for hold, depth in state[0]:
        until = "" if hold.proved is None else f", proved until {hold.proved // 1000} us"
        yield f"  inside: {hold.worker} {hold.half} token {hold.token:x}, {depth} deep{until}"
    for operation in order[-most:]:
        yield f"  before: {operation}"
    for operation in left[:most]:
        yield f"  not yet: {operation}: {spec.why_not(state, operation) or 'leads nowhere'}"
