# SPDX-License-Identifier: Apache-2.0
"""The checker: reads journal and record after the run, plays everything once more, and judges.

Each line of an access to the record says what the record held just then. So the checker follows each update: it was
made on the value before it, or on an older one and others' updates were lost. If the record never held it, then its
writer was killed between journal and record, or it was lost.

Two that acted as the holder at a time are an overlap if the second begins before the first has ended. That alone proves
nothing against the lock: a holder whose session is over does not know that, and goes on until it meets the fence. An
overlap counts if both were taken for holders: the first, because the fence accepted its write after the second had
entered, or because its unlock, later still, said that the hold had been whole; the second, because the fence accepted
its entry, or because its unlock said the same."""
import witness

UNCONFIRMED = 15  # ZKL_EUNCONFIRMED without its sign: the hold was whole, too


class Interval:
    """In which somebody acted as the holder: from its first line in the journal to its own last one; that of a killed
    process ends with the last thing that it is known to have done."""

    def __init__(self, line, accepted):
        self.first = self.last = line
        self.write = 0        # the accepted one
        self.accepted = accepted  # the fence accepted its entry
        self.whole = False    # its unlock said so

    def overlaps(self, later):
        return self.last > later.first and (self.whole or self.write > later.first) and (later.whole or later.accepted)


class Thread:
    """What is known of one, in its process's present life."""

    def __init__(self):
        self.life = 0
        self.last_line = 0
        self.inside = False
        self.refused = False   # since it entered last
        self.seen = 0          # the counter that it read when it entered
        self.interval = None   # its last one
        self.in_start = 0      # acquisitions while all threads contend


class Update:
    """The last one, as long as nobody has seen it in the record, or one that the record never held."""

    def __init__(self, thread, line, before):
        self.thread, self.life, self.line, self.before = thread, thread.life, line, before
        self.killed = False  # there: its writer died


class Verdict:
    """updates: that the fence accepted. torn: of these, the writer was killed before the record had it. counter: what the
    record holds in the end. unexplained: refused, although the unlock said that the hold had been whole. holds_lost:
    unlock said lost, or in doubt. corrupt: the record held what nobody had written, or a line makes no sense. fairness:
    Jain's index over threads, while all of them contend. waits, holds: of each process, in us, sorted."""

    def __init__(self, processes, threads):
        self.processes, self.threads = processes, threads
        self.acquisitions = self.updates = self.torn = self.counter = self.lost_updates = self.overlaps = 0
        self.refused_stale = self.unexplained = self.holds_lost = self.corrupt = self.kills = self.pauses = 0
        self.fairness = 0.0
        self.waits = [[] for _ in range(processes)]
        self.holds = [[] for _ in range(processes)]


def percentile(ordered, percent):
    """The nearest rank; 0 if there are none."""
    return ordered[(len(ordered) * percent + 99) // 100 - 1] if ordered else 0


class Check:
    def __init__(self, first):
        self.verdict = Verdict(first.value, first.found)
        self.threads = [[Thread() for _ in range(first.found)] for _ in range(first.value)]
        self.line = 1
        self.all_contend = False
        self.counter = 0     # of the record, as it must be
        self.unseen = None   # Update
        self.torn = []
        self.open = []       # intervals
        self.pairs = []      # of intervals that overlap in time

    def found(self, value):
        """Somebody found this value in the record."""
        if value != self.counter:
            if self.unseen and value == self.unseen.before:
                self.torn.append(self.unseen)
            else:
                self.verdict.corrupt += 1
        self.counter = value
        self.unseen = None

    # --- one thread

    def enter(self, line, thread):
        self.verdict.acquisitions += 1
        self.verdict.waits[line.process].append(line.us)
        thread.in_start += self.all_contend
        thread.inside, thread.refused, thread.seen = True, False, line.found
        thread.interval = Interval(self.line, line.kind == 'enter')
        self.pairs += [(before, thread.interval) for before in self.open]
        self.open.append(thread.interval)

    def write(self, line, thread):
        self.verdict.updates += 1
        self.verdict.corrupt += not thread.inside or line.value != thread.seen + 1
        self.unseen = Update(thread, self.line, self.counter)
        self.counter = line.value
        if thread.inside:
            thread.interval.write = self.line

    def stale(self, line, thread):
        if not thread.inside:  # refused when it entered already
            self.enter(line, thread)
        thread.refused = True
        self.verdict.refused_stale += 1

    def leave(self, line, thread):
        if thread.inside:
            self.open.remove(thread.interval)
        self.verdict.corrupt += not thread.inside
        thread.inside = False
        self.verdict.holds[line.process].append(line.us)

    def freed(self, line, thread):
        """From here on the lock's own word is known: 0, and not confirmed, say that nobody else held before."""
        if line.value not in (0, UNCONFIRMED):
            self.verdict.holds_lost += 1
        elif thread.interval:
            thread.interval.whole = True
            self.verdict.unexplained += thread.refused

    def done(self, _line, _thread):
        self.all_contend = False

    def step_thread(self, line):
        known = line.process < self.verdict.processes and line.thread < self.verdict.threads
        thread = self.threads[line.process][line.thread] if known else None
        if not known or line.life != thread.life:
            self.verdict.corrupt += 1  # among these: a dead process that writes
            return
        if line.kind in ('enter', 'write', 'stale'):
            self.found(line.found)
        getattr(self, line.kind)(line, thread)
        thread.last_line = self.line
        if thread.interval and (thread.inside or line.kind == 'leave'):
            thread.interval.last = self.line

    # --- the parent's lines

    def bury(self, thread):
        """A thread that got no further than to the journal's line: whether the record has the update is known only to those
        who look, before this line or after it."""
        if self.unseen and self.unseen.line == thread.last_line:
            self.unseen.killed = True
        for update in self.torn:
            if update.thread is thread and update.life == thread.life:
                update.killed = update.line == thread.last_line
        if thread.inside:
            self.open.remove(thread.interval)
        thread.inside, thread.interval = False, None
        thread.life += 1

    def step(self, line):
        self.line += 1
        if line.kind == 'run' or (line.kind == 'kill' and line.process >= self.verdict.processes):
            self.verdict.corrupt += 1
        elif line.kind in ('start', 'stop'):
            self.all_contend = line.kind == 'start'
        elif line.kind == 'kill':
            self.verdict.kills += 1
            for thread in self.threads[line.process]:
                self.bury(thread)
        elif line.kind == 'paused':
            self.verdict.pauses += 1
        elif line.kind != 'woken':
            self.step_thread(line)

    def judge(self, counter):
        verdict = self.verdict
        self.found(counter)
        verdict.torn = sum(update.killed for update in self.torn)
        verdict.counter = counter
        verdict.lost_updates = verdict.updates - verdict.torn - counter
        verdict.overlaps = sum(before.overlaps(later) for before, later in self.pairs)
        each = [thread.in_start for threads in self.threads for thread in threads]
        verdict.fairness = sum(each) ** 2 / (len(each) * sum(x * x for x in each)) if any(each) else 0.0
        for samples in verdict.waits + verdict.holds:
            samples.sort()
        return verdict


def run(journal, record):
    """The verdict on what these files hold."""
    lines = witness.read(journal)
    first = next(lines, None)
    if first is None:
        raise witness.BadFile('journal: cannot be read')
    check = Check(first)
    for line in lines:
        check.step(line)
    return check.judge(witness.read_counter(record))
