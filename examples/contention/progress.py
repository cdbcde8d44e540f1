# SPDX-License-Identifier: Apache-2.0
"""What is going on, drawn again and again while it goes on: on a terminal only. With JSON on the standard output all this
is printed on the standard error."""
import os
import sys

from crew import clock_us

STEP_US, RATE_US, BAR_WIDTH = 100000, 1000000, 24


class Progress:
    def __init__(self, crew):
        self.crew = crew
        self.out = sys.stderr if crew.options.json else sys.stdout
        self.draws = self.out.isatty() and os.environ.get('TERM', 'dumb') != 'dumb'
        self.colours = self.draws and not os.environ.get('NO_COLOR')
        self.lines = 0  # that are drawn, above the cursor
        self.begin_us = self.rate_us = clock_us()
        self.next_us = self.rate = self.rate_acquired = 0  # the rate is that of the last second or so

    def colour(self, number, text):
        return f'\033[{number}m{text}\033[0m' if self.colours else text

    def wipe(self):
        if self.lines:
            self.out.write(f'\033[{self.lines}A\r\033[J')
        self.lines = 0

    def rows(self):
        """What a terminal does not show is not worth the redrawing of the wrong lines: a block that is higher than the window
        would scroll at each redraw."""
        try:
            room = os.get_terminal_size(self.out.fileno()).lines or 24
        except OSError:
            room = 24
        return len(self.crew.members) if len(self.crew.members) + 3 <= room else 0

    def measure(self, now_us, count):
        passed_us = now_us - self.rate_us
        if passed_us < RATE_US and self.rate:
            return
        self.rate = (count - self.rate_acquired) * 1000000 // (passed_us or 1)
        self.rate_us, self.rate_acquired = now_us, count

    def holder(self):
        holders = [(number, thread - 1) for number, thread in enumerate(self.crew.board.holding[:len(self.crew.members)])
                   if thread and not self.crew.members[number].paused]
        if len(holders) == 1:
            return 'held by process {} thread {}'.format(*holders[0])
        return f'held by {len(holders)} threads' if holders else 'not held'

    def head(self, now_us, count):
        of = f' of {self.crew.options.seconds}' if self.crew.options.seconds else ''
        return (f'{(now_us - self.begin_us) / 1e6:5.1f} s{of}  {self.colour(1, count)} acquisitions, {self.rate} per second, '
                f'{self.holder()}')

    def row(self, number, most):
        member, thread = self.crew.members[number], self.crew.board.holding[number]
        count = self.crew.board.acquired[number]
        bar = '#' * (count * BAR_WIDTH // most if most else 0)
        state = self.colour(33, 'stopped') if member.paused else self.colour(32, f'thread {thread - 1} holds') if thread else ''
        killed = '  ' + self.colour(31, f'killed {member.life} times') if member.life else ''
        return f'process {number:2} {bar:.<{BAR_WIDTH}} {count:7}  {state}{killed}'

    def step(self):
        now_us = clock_us()
        if not self.draws or now_us < self.next_us:
            return
        self.next_us = now_us + STEP_US
        acquired = self.crew.board.acquired[:len(self.crew.members)]
        self.measure(now_us, sum(acquired))
        lines = [self.head(now_us, sum(acquired))] + [self.row(number, max(acquired)) for number in range(self.rows())]
        self.wipe()
        self.out.write('\n'.join(lines) + '\n')
        self.out.flush()
        self.lines = len(lines)

    def say(self, line):
        """It stays, above what is drawn."""
        self.wipe()
        self.next_us = 0
        print(line, file=self.out, flush=True)

    def end(self):
        self.wipe()
        self.draws = False
        self.out.flush()
