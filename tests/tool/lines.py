#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lines.py FILE [NAME]: the tests that are text: all of the file, or those of that name, with wildcards. What it needs
in the environment it has from meson: meson test 'tool run' --test-args NAME.

    # A comment.
    test NAME                       begins with no settings but the server's address
    1 status /a | held | !waits     sh ends zklock, with these words or whole line of its own, by this status, and it
                                    says this and not that: has() of words.py
    SIGTERM run /a -c 'kill $$'     or by that signal
    past 69 0 status /a             likewise, by whatever end that is not 69
    begin A run /a -- true          likewise, in the background
    hold A -s /a                    the same with a command that works until it gets a signal; it works by now
    count A -s /a                   and one that counts signals, and ends by SIGTERM with 5
    await sh [ -e $DIR/a ]          must be 0, or become it, or with "not" something else
    node /a; exists /a              other lines have words of words.py, as sh reads them; all variables are in the
    says A | held                   environment, for sh as well
    await exists /a                 a question's answer must be yes, or become it
    await not exists /a             or no
    open c; c get /a = text         what a raw connection does, as wires.py has it
    a line that ends so: \\           goes on in the next one
    steps NAME a b                  what several tests say: "NAME 1 2"
    for a b in 1 2 3 4              up to "end"; on a line of its own
    server wall no_digest           before the first test: its clock can be set, and options of zkserver.h that it has
"""
import collections
import fnmatch
import os
import pathlib
import re
import signal
import subprocess
import sys
import traceback

from hooks import Clocks
from words import DEFAULT, Job, Words
from world import Failure, LASTING_MS, LIB, Options, Servers, Skipped, WAIT_MS, wait_until

Line = collections.namedtuple('Line', 'number text body')  # body: of a "for"
Part = collections.namedtuple('Part', 'variables body')


def read(path):
    """The tests and the steps by their names, and the words behind "server"."""
    tests, steps, settings, open_ = {}, {}, [], []
    lines = enumerate(pathlib.Path(path).read_text(encoding='utf-8').split('\n'), 1)
    for number, text in lines:
        while text.endswith('\\'):
            text = text[:-1] + next(lines)[1].lstrip(' ')
        word, *rest = text.split() or ['#']
        if word == 'server':
            settings = rest
        elif word in ('test', 'steps'):
            if word == 'steps' and hasattr(Words, rest[0]):
                raise Failure(f'{path}:{number}: {rest[0]} is a word')
            part = Part(rest[1:], [])
            (tests if word == 'test' else steps)[rest[0]] = part
            open_ = [part.body]
        elif word == 'end':
            open_.pop()
        elif word != '#':
            open_[-1].append(Line(number, text.lstrip(' '), []))
            if word == 'for':
                open_.append(open_[-1][-1].body)
    return tests, steps, settings


def words_of(text):
    """As sh reads them."""
    if not re.search(r'[^-\w/.:= ]', text):
        return text.split()
    done = subprocess.run(['sh', '-uc', f'printf "%s\\0" {text}'], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failure(f'sh does not understand "{text}"')
    return os.fsdecode(done.stdout).split('\0')[:-1]


def expanded(text):
    """$NAME and \\n in what stands behind a bar."""
    return re.sub(r'\$(\w+)|\\n', lambda found: os.environ[found[1]] if found[1] else '\n', text)


class Test:
    def __init__(self, steps, words):
        self.steps, self.words = steps, words
        self.at = []  # the line that is being carried out, behind those whose steps it is one of

    def run(self, lines):
        for line in lines:
            self.at.append(line)
            if line.text.startswith('for '):
                self.run_for_each(line)
            else:
                self.carry_out(line.text)
            self.at.pop()

    def run_for_each(self, line):
        _, *words = words_of(line.text)
        names = words[:words.index('in')]
        values = words[len(names) + 1:]
        for i in range(0, len(values), len(names)):
            os.environ.update(zip(names, values[i:i + len(names)], strict=True))
            self.run(line.body)

    def carry_out(self, text):
        text, *said = text.split(' | ')
        self.words.said = [expanded(word) for word in said]
        word, _, rest = text.partition(' ')
        name, _, behind = rest.partition(' ')
        found = re.fullmatch('(await )?(not )?sh (.*)', text)
        if found:
            self.ask(bool(found[1]), not found[2], lambda: subprocess.call(['sh', '-c', found[3]]) == 0)
        elif re.fullmatch(r'\d.*|SIG.*|any', word):
            Job(rest).check_end(word, self.words.said)
        elif word == 'past':
            self.words.end_past_(*rest.split(' ', 2))
        elif word == 'begin':
            self.words.begin_(words_of(name)[0], behind)
        elif word in ('hold', 'count'):
            self.words.work_(name, behind, word)
        else:
            # At "; " outside of quotes.
            for one in re.findall(r"""(?:'[^']*'|"[^"]*"|(?!; ).)+""", text, re.DOTALL):
                self.obey(words_of(one.lstrip('; ')))

    def obey(self, words):
        waits = words[0] == 'await'
        wanted = words[waits] != 'not'
        word, *rest = words[waits + (not wanted):]
        act = getattr(self.words, word, None) if hasattr(Words, word) else None
        if word in self.words.named:
            act, rest = self.words.wire_, [word, *rest]
        if act:
            self.ask(waits, wanted, lambda: act(*rest))
            return
        part = self.steps[word]
        os.environ.update(zip(part.variables, rest, strict=True))
        self.run(part.body)

    @staticmethod
    def ask(waits, wanted, question):
        """What is no question answers nothing."""
        def is_so():
            return question() in (wanted, None)
        if not (wait_until(is_so) or LIB.lag_is_slow() and wait_until(is_so, WAIT_MS) if waits else is_so()):
            raise Failure('it is not so')


def run(path, name, part, steps, make_words):
    """What it came to."""
    result, test = 'OK', None
    try:
        test = Test(steps, make_words())
        test.run(part.body)
    except Skipped as why:
        print(f'skipped: {why}')
        result = 'SKIPPED'
    except Exception:
        result = 'FAILED'
        lines = ''.join(f'{path}:{line.number}: in "{line.text}"\n' for line in reversed(test.at)) if test else ''
        print(f'{lines}{traceback.format_exc()}', file=sys.stderr)
    overlaps = test.words.end_all() if test else 0
    if overlaps and result == 'OK':
        result = 'FAILED'
        print(f'{name}: {overlaps} commands found another one at work', file=sys.stderr)
    return result


def main(path, pattern='*'):
    tests, steps, settings = read(path)
    for number in DEFAULT:
        signal.signal(number, signal.SIG_DFL)
    os.environ['ZKL_TEST_PATH'] = os.environ['PATH']
    clocks = Clocks() if 'wall' in settings else None
    try:
        server = Servers(Options(container_check_ms=200, max_session_ms=LASTING_MS,
                                 **{name: True for name in settings if name != 'wall'}))
    except Skipped as why:
        print(f'skipped: {why}')
        return 77
    results = []
    for name in fnmatch.filter(tests, pattern):
        print(f'[ RUN      ] {name}', flush=True)
        results.append(run(path, name, tests[name], steps, lambda: Words(server, clocks)))
        print(f'[ {results[-1]:>8} ] {name}', flush=True)
    server.stop()
    return 0 if results and 'FAILED' not in results else 1


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
