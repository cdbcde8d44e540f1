# SPDX-License-Identifier: Apache-2.0
"""What the programs wrote of their calls (tests/lib/calls.h), as one list of operations for each path.

    ? NS WORKER acquire [try] [sync] HALF=PATH...    a call begins; several of a multi-lock, or permits
    ! NS WORKER CODE [TOKEN:COUNT...]                it returned; 0: one for each that was asked for
    ? NS WORKER release HALF=PATH...
    ! NS WORKER CODE...                                       one for each
    ~ NS WORKER HALF=PATH...                         these holds are proved until then
    < NS WORKER HALF=PATH...                         from here on they are as proved as the next look says
    w NS NS                                          the ensemble has lost its data, between the two

WORKER is PID.THREAD and is in one call at a time. HALF is "alone" (a mutex, or the write half), "shared" (the same, of
a handle whose threads may have one node in turn), "once" (not reentrant), "read", "cached" (the same, of a handle whose
readers may share a node), or "permit3": one of three. CODE is
the library's. A token of 0 is not known. A path's operations are checked by themselves: linearizability is local (Herlihy and Wing
1990), and a multi-lock promises nothing of its members together.

What becomes of a hold. It is whole if the last unlock said 0 (the node stood until that deleted it) or EUNCONFIRMED
(the window was open as unlock began; the node goes at some moment after that). Otherwise - unlock said ELOST or EDOUBT,
or the process was killed - it ends by an operation of its own, LOSE: at any moment from the last one at which it was
proved, but not after unlock began, or never. The first is the library's promise: while a window is open nobody
else is granted. What happened inside a lost hold counts for nothing: entering again asks nobody. But who was told ELOST by an unlock
that was not the last is to hear it at each one that follows, and not to enter again.

A call without an answer is left out if it asked for a lock: it may have been granted, which only keeps others out, and
no answer of another call depends on that but "busy", which it excuses. One that gave a lock back may end the hold from
its beginning on, or never."""
import bisect
import collections

EBUSY, EDEADLK, EUNCONFIRMED, ELOST, EDOUBT = -11, -8, -15, -16, -28
ENDS = (0, EUNCONFIRMED, ELOST, EDOUBT)

NEVER = float("inf")
LAG_NS = 10 * 10**9  # a try may be told busy by a server that lags behind by so much
LINGER_NS = 30 * 10**9  # in which a node goes that nobody has deleted, or that stays with nobody in it

GRANT, ENTER, RELEASE, LOSE, BUSY, REFUSED, WIPE = "grant", "enter again", "release", "lose", "busy", "refused", "wipe"


class Bad(Exception):
    """Not what the programs write."""


class Hold:
    """One grant: of a mutex or one half of a read-write lock, or of one permit."""

    def __init__(self, worker, item, token, begun):
        self.worker = worker
        self.process = worker.partition(".")[0]
        self.half = item.half
        self.limit = item.limit
        self.shared = item.shared
        self.token = token
        self.begun = begun
        self.proved = None  # until when, by the last look
        self.depth = 1  # as its thread counts
        self.told_lost = False  # by an unlock that was not the last one: from then on it is
        self.inside = []  # operations other than the first grant and what ends it


class Operation:
    """One step that the specification may take at a moment between its call and its return."""

    def __init__(self, kind, worker, call, ret, hold=None, holds=(), depth=0, token=0, optional=False):
        self.kind = kind
        self.worker = worker
        self.call = call
        self.ret = ret
        self.hold = hold
        self.holds = holds  # of a grant: of several permits several
        self.depth = depth  # how often its thread has the lock before
        self.token = token  # of entering again
        self.optional = optional  # it need not happen

    def __str__(self):
        hold = self.hold or (self.holds[0] if self.holds else None)
        what = ""
        if hold:
            count = f" {len(self.holds)}" if len(self.holds) > 1 else ""
            what = f" {hold.half}{count} token {hold.token:x}"
        until = "-" if self.ret == NEVER else self.ret // 1000
        return f"{self.kind}{what} of {self.worker} [{self.call // 1000}, {until}] us"


class Path:
    """The operations at one path."""

    def __init__(self, name):
        self.name = name
        self.operations = []
        self.busy = []  # (worker, item, call, return, sync)
        self.present = []  # (call, end, worker): somebody's node may be there, other than that of a holder
        self.holding = []  # (call, end, worker): or that one
        self.grants = self.lost = 0
        self.tokenless = 0  # grants whose token is not known


class Worker:
    def __init__(self):
        self.pending = None  # (NS, verb, flags, items)
        self.holds = collections.defaultdict(list)  # by (path, half); the last is the newest


Item = collections.namedtuple("Item", "half limit shared path")


def split_item(word):
    half, _, path = word.partition("=")
    if half.startswith("permit"):
        return Item("permit", int(half[6:]), False, path)
    if half in ("shared", "cached"):
        return Item("alone" if half == "shared" else "read", 0, True, path)
    if half not in ("alone", "once", "read"):
        raise Bad(f"no half {half}")
    return Item(half, 0, False, path)


class Reader:
    def __init__(self):
        self.paths = {}
        self.workers = collections.defaultdict(Worker)
        self.wipes = []

    def path(self, name):
        if name not in self.paths:
            self.paths[name] = Path(name)
        return self.paths[name]

    # --- lines ------------------------------------------------------------------------------------------------------

    def line(self, text):
        way, at, name, *words = text.split()
        if way == "w":
            self.wipes.append((int(at), int(name)))
            return
        worker = self.workers[name]
        if way == "?":
            if worker.pending:
                raise Bad(f"{name} is in a call")
            items = [split_item(word) for word in words if "=" in word]
            worker.pending = int(at), words[0], [word for word in words[1:] if "=" not in word], items
        elif way == "!":
            if not worker.pending:
                raise Bad(f"{name} is in no call")
            call, verb, flags, items = worker.pending
            worker.pending = None
            if verb == "acquire":
                self.acquired(name, call, int(at), flags, items, words)
            else:
                self.released(name, call, int(at), items, words)
        elif way in "~<":
            for item in map(split_item, words):
                for hold in worker.holds[item.path, item.half]:
                    hold.proved = (max if way == "~" else min)(hold.proved or int(at), int(at))
        else:
            raise Bad(f"no line begins with {way}")

    def acquired(self, name, call, ret, flags, items, words):
        code = int(words[0])
        if code == 0:
            if len(words) != 1 + len(items):
                raise Bad("as many grants as were asked for")
            self.granted(name, call, ret, items, words[1:])
            return
        for item in items:
            path = self.path(item.path)
            if code == EBUSY and len(items) == 1:
                path.busy.append((name, item, call, ret, "sync" in flags))
            path.present.append((call, ret + LINGER_NS, name))
        if code == EDEADLK and len(items) == 1:
            hold = Hold(name, items[0], 0, call)
            self.path(items[0].path).operations.append(Operation(REFUSED, name, call, ret, hold))

    def granted(self, name, call, ret, items, words):
        together = collections.defaultdict(list)
        for item, word in zip(items, words):
            token, _, count = word.partition(":")
            path, held = self.path(item.path), self.workers[name].holds[item.path, item.half]
            path.grants += 1
            path.tokenless += int(token, 16) == 0
            path.present.append((call, ret, name))
            hold = Hold(name, item, int(token, 16), call)
            if held and int(count) > 1:
                self.entered(held[-1], path, call, ret, int(token, 16), int(count))
                continue
            held.append(hold)
            if int(count) > 1:  # nobody has entered what it is said to enter again
                self.impossible(ENTER, hold, path, call, ret)
            together[item.path].append(hold)
        for where, holds in together.items():
            self.path(where).operations.append(Operation(GRANT, name, call, ret, holds=tuple(holds)))

    @staticmethod
    def impossible(kind, hold, path, call, ret):
        """What no lock may have answered, whatever else was the case."""
        never = Hold(hold.worker, Item(hold.half, hold.limit, hold.shared, path.name), hold.token, call)
        path.operations.append(Operation(kind, hold.worker, call, ret, never, depth=1))

    def entered(self, hold, path, call, ret, token, count):
        if hold.told_lost:
            self.impossible(ENTER, hold, path, call, ret)
        operation = Operation(ENTER, hold.worker, call, ret, hold, depth=count - 1, token=token)
        hold.depth += 1
        hold.inside.append(operation)
        path.operations.append(operation)

    def released(self, name, call, ret, items, words):
        if len(words) != len(items):
            raise Bad("as many codes as were given back")
        for (half, _, _, where), word in zip(items, words):
            held = self.workers[name].holds[where, half]
            if int(word) not in ENDS:
                raise Bad(f"{name} is told {word} by unlock of {where}")
            if not held:
                raise Bad(f"{name} unlocks {where} and has nothing")
            hold, code, path = held[-1], int(word), self.path(where)
            if hold.told_lost and code != ELOST:
                self.impossible(RELEASE, hold, path, call, ret)
            if hold.depth > 1:
                operation = Operation(RELEASE, name, call, ret, hold, depth=hold.depth)
                hold.depth -= 1
                hold.inside.append(operation)
                hold.told_lost |= code == ELOST
                path.operations.append(operation)
            else:
                held.pop()
                self.end(path, hold, code, call, ret)

    # --- the ends of holds ------------------------------------------------------------------------------------------

    def end(self, path, hold, code, call, ret):
        """The last unlock; code None: it was not answered, or (call None) never begun."""
        whole = code in (0, EUNCONFIRMED)
        gone = ret if code == 0 and not hold.shared else (ret or call or hold.proved or hold.begun) + LINGER_NS
        path.holding.append((hold.begun, gone, hold.worker))
        if call is not None:
            path.present.append((call, gone, hold.worker))
        elif code != 0:
            path.present.append((hold.proved or hold.begun, gone, hold.worker))
        if whole:
            path.operations.append(Operation(RELEASE, hold.worker, call, ret if code == 0 else NEVER, hold,
                                             depth=1, optional=code != 0))
            return
        since = hold.begun if hold.proved is None else hold.proved
        if call is not None:
            since = min(since, call)
        path.lost += 1
        path.operations.append(Operation(LOSE, hold.worker, since, NEVER, hold, optional=True))

    def finish(self):
        """What was never given back, and who never came back from a call."""
        for name, worker in self.workers.items():
            call, verb, _, items = worker.pending or (None, "", [], [])
            leaving = collections.Counter((item.path, item.half) for item in items if verb == "release")
            if verb == "acquire":
                for item in items:
                    self.path(item.path).present.append((call, NEVER, name))
            for (where, half), held in worker.holds.items():
                for hold in reversed(held):
                    leaves = leaving[where, half] > 0 and hold.depth == 1
                    leaving[where, half] -= leaves
                    self.end(self.path(where), hold, None, call if leaves else None, None)
        for path in self.paths.values():
            inside_lost = {id(operation) for operation in path.operations if operation.kind == LOSE
                           for operation in operation.hold.inside}
            path.operations = [each for each in path.operations if id(each) not in inside_lost]
            path.operations += [Operation(WIPE, "-", *wipe) for wipe in self.wipes]
            add_busy(path)


# --- "busy" ---------------------------------------------------------------------------------------------------------

class Intervals:
    """Does any of them, of another worker, have a moment in common with one from here to there?"""

    def __init__(self, intervals):
        self.sorted = sorted(intervals)
        self.begins = [begin for begin, _, _ in self.sorted]
        self.latest = []  # end of those up to each
        for _, end, _ in self.sorted:
            self.latest.append(max(end, self.latest[-1] if self.latest else end))

    def meets(self, begin, end, worker):
        at = bisect.bisect_right(self.begins, end) - 1
        while at >= 0 and self.latest[at] >= begin:
            _, until, who = self.sorted[at]
            if until >= begin and who != worker:
                return True
            at -= 1
        return False


def add_busy(path):
    """A try reads the server it is connected to, which lags behind, and that is not linearizable: it is right if
    anybody else's node may have stood there within that time. One behind a sync is right at once if somebody queues or a
    node may have been left; otherwise somebody has to hold at some moment of the call, which the search decides."""
    if not path.busy:
        return
    present, holding = Intervals(path.present), Intervals(path.holding)
    for worker, item, call, ret, sync in path.busy:
        since = call if sync else call - LAG_NS
        if not present.meets(since, ret, worker) and (sync or not holding.meets(since, ret, worker)):
            path.operations.append(Operation(BUSY, worker, call, ret, Hold(worker, item, 0, call)))


def read(lines):
    """The paths by name."""
    reader = Reader()
    for number, text in enumerate(lines, 1):
        try:
            reader.line(text)
        except (Bad, ValueError, IndexError) as fault:
            raise Bad(f"line {number}: {fault}: {text.strip()}") from fault
    reader.finish()
    return reader.paths
