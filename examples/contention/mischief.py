# SPDX-License-Identifier: Apache-2.0
"""What --crash and --pause do to holders: one at a time, and the next one when other holders have had the lock again."""
import random

from crew import clock_us

WORKING, STATIONS = 1, 4  # of worker.c
GAP_US = 50000, 350000
PAUSE_SESSIONS = 2     # how many session timeouts a pause lasts, ...
PATIENCE_SESSIONS = 6  # ... and at most, if the others do not go on
CRASH, PAUSE = 'crash', 'pause'  # of options.py
QUIET, ASKED, PAUSED, RECOVERING = 'quiet', 'asked', 'paused', 'recovering'


class Mischief:
    def __init__(self, crew):
        self.crew, self.options = crew, crew.options
        self.chance = random.Random(crew.options.seed)
        self.killing = False  # else pausing
        self.missing = {kind for kind in (CRASH, PAUSE) if getattr(crew.options, kind)}  # a short run on a slow machine
        self.number = 0
        self._enter(QUIET)

    def _enter(self, state):
        """Quiet: until next_us. Asked: for a holder to stand still. Paused: one is, until next_us or later. Recovering: until
        somebody has updated the record again."""
        self.state = state
        self.since_us = self.next_us = clock_us()
        self.updates = self.crew.updates()
        if state == QUIET:
            self.next_us += self.chance.randint(*GAP_US)

    def _session_us(self):
        return 1000 * self.options.session_timeout

    def _ask(self):
        self.killing = self.options.crash and (not self.options.pause or not self.killing)  # with both, by turns
        self._enter(ASKED)
        self.crew.board.station = self.chance.randint(WORKING, STATIONS) if self.killing else WORKING

    def _strike(self):
        """A holder stands still."""
        self.number, _ = self.crew.standing
        self.crew.standing = None
        if self.killing:
            self.missing.discard(CRASH)
            self._enter(RECOVERING)
            self.crew.replace(self.number)
            return
        self.crew.pause(self.number)
        self._enter(PAUSED)
        self.updates = self.crew.updates(without=self.number)
        self.next_us += PAUSE_SESSIONS * self._session_us()

    def _wake(self):
        """A line for the user, or None: not yet."""
        made, lasted_us = self.crew.updates(without=self.number) - self.updates, clock_us() - self.since_us
        if not made and lasted_us < PATIENCE_SESSIONS * self._session_us():
            return None
        if made:
            self.missing.discard(PAUSE)
        self.crew.board.parole = 1
        self.crew.wake(self.number)
        self._enter(RECOVERING)
        return (f'process {self.number} was stopped while it held the lock, for {lasted_us / 1e6:.1f} s; the others made '
                f'{made} updates; now it goes on')

    def step(self):
        """What there is to say, or None."""
        due = clock_us() >= self.next_us
        if self.state == ASKED and self.crew.standing:
            self._strike()
        elif self.state == PAUSED and due:
            return self._wake()
        elif self.state == RECOVERING and self.crew.updates() != self.updates and not self.crew.board.parole:
            self._enter(QUIET)
        elif self.state == QUIET and due and (self.options.crash or self.options.pause):
            self._ask()
        if self.state != ASKED:
            self.crew.let_go()
        return None

    def rest(self):
        """Begin nothing new. True if nothing is under way any more."""
        if self.state == ASKED and not self.crew.standing:
            self.crew.board.station = 0
            self._enter(QUIET)
        return self.state in (QUIET, RECOVERING)
