# SPDX-License-Identifier: Apache-2.0
"""What a worker of the soak does: visits to sets of locks that it draws, by multi-locks or singly, with cancels, deadlines,
tries, re-entries and downgrades. A visit is one command of the crowd, whose steps the worker takes by itself."""
import collections
import random
import time

from conductor import check

MUTEXES, PATHS, PERMITS = 4, 6, 3  # L0 to L3; L4 and L5 are read-write locks; Lp1 to Lp3 take so many permits
KINDS = ['mutex' if n < MUTEXES else 'rwlock' for n in range(PATHS)]
GUEST_EACH, PERMITS_EACH = 20, 7  # visits
READING, WRITING = '.read', '.write'
FOREVER, DEADLINE, CANCEL, TRY = 'no deadline', 'a deadline', 'a cancel object', 'a try'
# Half of the waits have no end but the grant: a deadlock among those is for ever.
PATIENCE = [FOREVER] * 5 + [DEADLINE] * 2 + [CANCEL] * 2 + [TRY]
# What such a wait may hear beside a grant, and how that is counted.
MAY_HEAR = {FOREVER: {}, DEADLINE: {'ZKL_ETIMEDOUT': 'timeouts'}, CANCEL: {'ZKL_ECANCELED': 'cancels'},
            TRY: {'ZKL_EBUSY': 'tries that found somebody', 'ZKL_EUNPROVED': 'tries that found somebody'}}
# What each run must have had.
TALLIES = ['multi-locks granted', 'single locks granted', 'members of those multi-locks', 'held before and entered again',
           'downgrades', 'visits with a client of their own', 'requests for permits granted', 'upgrades refused', 'timeouts',
           'cancels']
MULTI, SINGLE, MEMBERS, AGAIN, DOWNGRADES, GUESTS, OF_PERMITS, REFUSED = TALLIES[:8]
EMPTY, WANTED = 'grants with an empty window', 'places wanted'
TALLIES_MORE = ['tries that found somebody', EMPTY, WANTED]
SKIPPED = '-'  # a step that was not taken, as what was asked for before it was not granted


class Roamer:
    """One worker. A place is a path's number and the half of it."""

    def __init__(self, name, listens, seed):
        self.name, self.listens = name, listens
        self.chance = random.Random(seed)
        self.home = 'L'  # what the names of its locks begin with
        self.visited = self.longest_ms = 0
        self.tally = collections.Counter()
        self.steps = []  # of the next visit: (the command, what judges the answer)
        self.units = []  # what its calls acquire, if all are granted: (handle, places)
        self.holds = collections.Counter()  # how often it has each place

    def percent(self, percent):
        return self.chance.randrange(100) < percent

    def handle(self, place):
        return f'{self.home}{place[0]}' + (place[1] if place[0] >= MUTEXES else '')

    # --- what came of a step

    def well(self, said):
        check(said == 'ok', f'{self.name}: {said}')

    def entered(self, said, handle, places, patience, kind):
        if said == SKIPPED:
            return
        self.tally[WANTED] += sum(not self.holds[place] for place in places)
        window, *counts = said.split(',')
        if not counts:
            check(window in MAY_HEAR[patience], f'{self.name}, {patience}: {window}')
            self.tally[MAY_HEAR[patience][window]] += 1
            return
        self.tally[kind] += 1
        self.tally[EMPTY] += int(window) <= 0
        if kind == MULTI:
            self.tally[MEMBERS] += len(places)
            self.tally[AGAIN] += sum(self.holds[place] > 0 for place in places)
        self.holds.update(places)
        check(kind == OF_PERMITS or counts == [str(self.holds[place]) for place in places],
              f'{self.name}: entered {handle} so often: {counts}')

    def refused(self, said):
        check(said in (SKIPPED, 'ZKL_EDEADLK'), f'{self.name}, an upgrade: {said}')
        self.tally[REFUSED] += said != SKIPPED

    def left(self, said, places):
        if said == SKIPPED:
            return
        self.well(said)
        self.holds.subtract(places)
        self.tally[DOWNGRADES] += sum(half == WRITING and not self.holds[path, half] and self.holds[path, READING] > 0
                                      for path, half in places)

    # --- steps

    def must(self, command):
        self.steps.append((command, self.well))

    def enter(self, handle, places, patience, kind):
        wait = {FOREVER: '-1', DEADLINE: self.chance.randint(1, 60), CANCEL: '-1 cancel', TRY: '0'}[patience]
        self.steps.append((f'enter {handle} {wait}', lambda said: self.entered(said, handle, places, patience, kind)))
        self.units.append((handle, places))

    def enter_one(self, place):
        self.enter(self.handle(place), [place], self.patience(), SINGLE)

    def leave(self):
        """In any order: a write lock may be released before the read lock under it, a single lock before or after the multi-lock
        that entered it again."""
        self.chance.shuffle(self.units)
        for handle, places in self.units:
            self.steps.append((f'leave {handle}', lambda said, places=places: self.left(said, places)))
        self.units = []

    # --- by chance

    def half(self, path):
        return path, READING if path >= MUTEXES and self.percent(50) else WRITING

    def places(self):
        paths = self.chance.sample(range(PATHS), self.chance.randint(1, PATHS))
        return [self.half(path) for path in paths]

    def patience(self):
        return self.chance.choice(PATIENCE)

    # --- visits

    def enter_some_before(self, places, is_any):
        """Some members singly, before. The first ones in order, so that the multi-lock waits only for what comes after them; or any,
        if it does not wait for ever. The other half of a read-write lock now and then."""
        halves = dict(places)
        paths = sorted(halves)
        first = self.chance.randrange(len(paths)) if is_any else 0
        for path in paths[first:self.chance.randint(first, len(paths) - 1) + 1]:
            self.enter_one(self.half(path) if self.percent(30) else (path, halves[path]))

    def upgrades(self, places):
        """A reader that asks for the write lock: its call fails immediately, whoever else is there."""
        had = {place for _, places in self.units for place in places}
        return any(half == WRITING and (path, WRITING) not in had and (path, READING) in had for path, half in places)

    def one_by_one(self):
        """In the order of the paths; of a read-write lock the other half too, now and then."""
        for path, half in sorted(self.places()):
            self.enter_one((path, half))
            if path >= MUTEXES and self.percent(30):
                self.enter_one((path, READING))
        self.rest()
        self.leave()

    def some_permits(self):
        """What waits for permits watches the children of a path, which stay when others are done."""
        self.enter(f'Lp{self.chance.randint(1, PERMITS)}', [], self.patience(), OF_PERMITS)
        self.rest()
        self.leave()

    def rest(self):
        """For some ms, seldom: mostly what is under way elsewhere decides who comes next."""
        if self.percent(10):
            self.must(f'nap {self.chance.randint(1, 3)}')

    def as_guest(self):
        """With a client of its own: connections, threads and sessions come and go."""
        self.must('guest comes')
        self.home = f'G{self.name}.'
        for n, kind in enumerate(KINDS):
            self.must(f'new {self.home}{n} {kind} /soak/{n}{self.listens}')
        self.one_by_one()
        for n in range(PATHS):
            self.must(f'drop {self.home}{n}')
        self.home = 'L'
        self.must('guest leaves')
        self.tally[GUESTS] += 1

    def draw(self, way):
        if self.visited % PERMITS_EACH == 1:
            self.some_permits()
        elif way == 'multi':
            one_multi(self)
        elif self.visited % GUEST_EACH == 0:
            self.as_guest()
        else:
            self.one_by_one()

    def visits(self, way, count, seconds):
        """So many, and for so long, at least: commands, each of which gets its answer."""
        end, last = time.monotonic() + seconds, self.visited + count
        while self.visited < last or time.monotonic() < end:
            self.draw(way)
            begun = time.monotonic()
            said = yield f'{self.name} do ' + ' ; '.join(command for command, _ in self.steps)
            self.longest_ms = max(self.longest_ms, int(1000 * (time.monotonic() - begun)))
            word, *answers = said.split(' ', len(self.steps))
            check(word == 'ok' and len(answers) == len(self.steps), f'{self.name}: {said}')
            for (command, judge), answer in zip(self.steps, answers):
                judge(answer)
            self.visited += 1
            self.steps = []


# Some of it held before, or entered again: no wait in a circle, nothing half held. Modes: F25, F26.
def one_multi(r):
    places, handle = r.places(), 'M' + r.name
    before, is_any, patience = r.percent(30), r.percent(30), r.patience()
    if before and is_any and patience in (FOREVER, CANCEL):
        patience = r.chance.choice([DEADLINE, TRY])
    r.must(f'join {handle} {",".join(map(r.handle, places))}')
    if before:
        r.enter_some_before(places, is_any)
    if r.upgrades(places):
        r.steps.append((f'enter {handle} -1', r.refused))
    else:
        r.enter(handle, places, patience, MULTI)
        if r.percent(10):
            r.enter(handle, places, r.patience(), MULTI)
        if r.percent(20):
            r.enter_one(r.chance.choice(places))
    r.rest()
    r.leave()
    r.must(f'drop {handle}')
