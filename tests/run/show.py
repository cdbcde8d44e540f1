#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""show.py NAME SECONDS COMMAND...: how far a command of ninja or `meson test` is, whose output goes to NAME.log.

On a terminal a bar with the time left, by what the last one took (NAME.seconds), or else SECONDS; elsewhere, of tests, a
line for each suite at the end. Failed tests are told at once, and of tests that fail what they said. Exit status: the
command's."""
import collections
import pathlib
import re
import signal
import subprocess
import sys
import time

STEP = re.compile(r'\s*\[?(\d+)/(\d+)\]? +(.*)')
TEST = re.compile(r'\w+:([\w-]+)\S* / (.*\S) +(OK|FAIL|SKIP|TIMEOUT|ERROR|EXPECTEDFAIL|UNEXPECTEDPASS) +([\d.]+)s')
GOOD = ('OK', 'SKIP', 'EXPECTEDFAIL')
WIDTH = 30


class Shown:
    def __init__(self, before):
        self.began = time.monotonic()
        self.before = before
        self.is_terminal = sys.stdout.isatty()
        self.suites = collections.defaultdict(collections.Counter)

    def line(self, text):
        print('\r\x1b[K' * self.is_terminal + text, flush=True)

    def bar(self, done, of, name):
        left = max(0, self.before - (time.monotonic() - self.began))
        full = WIDTH * done // of
        print(f'\r\x1b[K[{"#" * full}{"." * (WIDTH - full)}] {done}/{of}, about {left:.0f} s left: {name[:30]}',
              end='', flush=True)

    def step(self, done, of, rest):
        test = TEST.match(rest)
        if test:
            suite, name, word, _ = test.groups()
            self.suites[suite][word if word in ('OK', 'SKIP') else 'OK' if word in GOOD else 'FAIL'] += 1
            if word not in GOOD:
                self.line(f'{word}: {suite} / {name}')
        if self.is_terminal:
            self.bar(int(done), int(of), test[2] if test else rest.split('/')[-1])

    def end(self):
        self.line(f'{time.monotonic() - self.began:.0f} s')
        for suite, words in sorted(self.suites.items()):
            said = ', '.join(f'{words[word]} {what}' for word, what in
                             (('OK', 'passed'), ('FAIL', 'failed'), ('SKIP', 'skipped')) if words[word])
            print(f'{suite:10} {said}')


def main():
    kept = pathlib.Path(sys.argv[1] + '.seconds')
    shown = Shown(float(kept.read_text() if kept.exists() else sys.argv[2]))
    others = []
    with open(sys.argv[1] + '.log', 'w', encoding='utf-8') as log, \
            subprocess.Popen(sys.argv[3:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors='replace') as command:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: command.terminate())
        for line in command.stdout:
            log.write(line)
            step = STEP.match(line)
            if step:
                shown.step(*step.groups())
            else:
                others.append(line)
    shown.end()
    if command.returncode != 0 and shown.suites:
        print(''.join(others), end='')
    if command.returncode == 0:
        kept.write_text(f'{time.monotonic() - shown.began:.0f}')
    return command.returncode if command.returncode >= 0 else 128 - command.returncode


sys.exit(main())
