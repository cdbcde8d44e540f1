#!/usr/bin/env python3
"""modes.py ROOT [--write]: each known way to fail has a test that shows that we don't.

Goal: the lists of docs/evidence/failure-modes*.md are what the tests say of themselves. Method: modes.txt beside this file has
the modes; a test names those that it shows in the comment before it ("Modes: F1, F3."), and must be one that is run. The
lists are made of both and compared with those between the two marks in the pages; --write puts them there. The tests
that docs/evidence.md names for the promises are there as well."""
import collections
import functools
import pathlib
import re
import sys
import textwrap

# Each with the number of the first mode that is in it.
PAGES = {'docs/evidence/failure-modes.md': 1, 'docs/evidence/failure-modes-2.md': 35}
BEGIN, END = '<!-- modes: made by tests/house/modes.py ROOT --write -->', '<!-- modes: end -->'
WIDTH = 80
TAG = re.compile(r'\bModes: ([^.]*)\.')
NUMBER = re.compile(r'F[1-9]\d*b?')
# A comment and the function, or the test, that it stands before; a cast in the line above or attributes do no harm.
HEAD = r'(?:(?:static )?[\w ]+[ *]|[A-Z_]*TEST(?:_IN|_OF)?\()'
COMMENTED = re.compile(r'/\*((?:[^*]|\*(?!/))*)\*/\s*(' + HEAD + r'(\w+)[(,)][^;{}]*\{)?')
# The same of a test in a transcript, or in Python.
SAID = re.compile(r'((?:^# .*\n)+)(?:test|def) (\w+)(?:$|\()', re.MULTILINE)
REASONS = ('not ours: ', 'open: ')


def read_modes(text, problems):
    """Number: (sentence, reason why there is no test, or '')."""
    modes = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith('#'):
            continue
        number, sentence, *reason = [part.strip() for part in line.split(' | ')]
        if not NUMBER.fullmatch(number) or number in modes:
            problems.append(f'modes.txt: {number} is no number, or there twice')
        if not sentence.endswith('.') or len(reason) > 1 or (reason and not reason[0].startswith(REASONS)):
            problems.append(f'modes.txt: the line of {number} is not NUMBER | sentence. | reason')
        modes[number] = (sentence, reason[0] if reason else '')
    return modes


@functools.lru_cache(maxsize=None)
class Folder:
    """The sources of one folder below tests/, and what of them is run."""

    def __init__(self, path):
        self.path, self.name = path, path.name
        self.sources = {p: p.read_text(encoding='utf-8') for p in sorted(path.glob('*.[ch]'))}
        texts = {p: p.read_text(encoding='utf-8') for p in sorted([*path.glob('*.txt'), *path.glob('*.py')])}
        self.transcripts = {p: text for p, text in texts.items() if SAID.search(text)}
        self.build = (path / 'meson.build').read_text(encoding='utf-8')
        python = [text for p, text in texts.items() if p.suffix == '.py']
        self.text = '\n'.join([*self.sources.values(), *python])
        self.words = collections.Counter(re.findall(r'\b\w+\b', self.text))
        # Written as tests, named as ones that stand elsewhere, or in a list of cmocka's.
        self.listed = set(re.findall(r'\b\w*(?:TEST(?:_IN|_OF)?|_test)\((\w+)', self.text))

    def is_built(self, path):
        name = re.escape(path.stem.removeprefix('test-'))
        imported = path.suffix == '.py' and re.search(rf'^(import|from) {name}\b', self.text, re.MULTILINE)
        return bool(imported or re.search(rf"'(test-)?{name}(\.c)?'", self.build))

    def is_run(self, function, head):
        """A test of cmocka is in a list, one in Python has its name; what checks in another program is called from somewhere."""
        if 'void **state' in head or 'TEST' in head:
            return function in self.listed
        return function.startswith('test_') or self.words[function] > 1

    def comments(self):
        """(file, its text, [(comment, head, function)]) of each."""
        for path, text in self.sources.items():
            yield path, text, COMMENTED.findall(text)
        for path, text in self.transcripts.items():
            yield path, text, [(comment.replace('\n# ', ' '), '', name) for comment, name in SAID.findall(text)]

    def tags(self, problems):
        """(mode, file, function) of each."""
        for path, text, comments in self.comments():
            found = 0
            for comment, head, function in comments:
                numbers = [n for tag in TAG.findall(' '.join(comment.replace(' * ', ' ').split()))
                           for n in tag.split(', ')]
                if not numbers:
                    continue
                found += 1
                if not function:
                    problems.append(f'{self.name}/{path.name}: modes {numbers} stand before no function')
                elif not self.is_built(path):
                    problems.append(f'{self.name}/{path.name} is not in meson.build')
                elif path.suffix != '.txt' and not self.is_run(function, head):
                    problems.append(f'{self.name}/{path.name}: {function} has modes and is not run')
                else:
                    yield from ((number, path, function) for number in numbers)
            if found != text.count('Modes:'):
                problems.append(f'{self.name}/{path.name}: {text.count("Modes:")} times "Modes:", but {found} read')


def collect(root, modes, problems):
    """Number: [(file as the table says it, function)]."""
    shown = {number: [] for number in modes}
    for build in sorted((root / 'tests').glob('*/meson.build')):
        for number, path, function in Folder(build.parent).tags(problems):
            test = (f'{path.parent.name}/{path.stem.removeprefix("test-")}', function)
            if number not in modes:
                problems.append(f'{path.name}: {function} names {number}, which is no mode')
            elif test in shown[number]:
                problems.append(f'{path.name}: {function} names {number} twice')
            else:
                shown[number].append(test)
    for number, (_, reason) in modes.items():
        if not shown[number] and not reason:
            problems.append(f'{number} has no test, and no reason in modes.txt')
        if shown[number] and reason:
            problems.append(f'{number} has a test: its reason can leave modes.txt')
    return shown


def check_promises(root, problems):
    """Each test that evidence.md names is there, in the file it is said to be in, and run."""
    text = ' '.join((root / 'docs/evidence.md').read_text(encoding='utf-8').split())
    named = 0
    for file, functions in re.findall(r'\b(\w+/[\w-]+): ((?:`\w+`(?:, )?)+)', text):
        folder = Folder(root / 'tests' / file.split('/')[0])
        bodies = '\n'.join(text for path, text in folder.sources.items()
                           if path.stem.removeprefix('test-') == file.split('/')[1])
        for function in re.findall(r'`(\w+)`', functions):
            named += 1
            named_text = folder.transcripts.get(folder.path / f'{file.split("/")[1]}.txt', '')
            if re.search(rf'^test {function}$', named_text, re.MULTILINE):
                continue
            head = re.search(rf'^{HEAD}{function}[(,)][^;{{}}]*\{{', bodies, re.MULTILINE)
            if not head or not folder.is_run(function, head.group()):
                problems.append(f'docs/evidence.md: {file} has no {function} that is run')
    if named == 0:
        problems.append('docs/evidence.md names no test')


def cell(tests, reason):
    """The tests, file by file."""
    files = {}
    for file, function in tests:
        files.setdefault(file, []).append(f'`{function}`')
    return '; '.join(f'{file}: {", ".join(functions)}' for file, functions in files.items()) or reason


def wrapped(number, sentence, tests):
    """An item of a list, 80 columns wide. Names are longer than a word, and are not broken."""
    lines = [textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent='  ', break_on_hyphens=False,
                           break_long_words=False)
             for first, text in (('- ', f'**{number}.** {sentence}'), ('  ', f'Shown by {tests}.'))]
    return '\n'.join(line for part in lines for line in part)


def items(modes, shown, first, last):
    """Of one page: the modes from one number on to before another."""
    chosen = [number for number in modes if first <= int(re.sub(r'\D', '', number)) < last]
    return '\n'.join(wrapped(number, modes[number][0], cell(shown[number], modes[number][1])) for number in chosen)


def compare(path, new, write, problems):
    """What stands between the two marks of a page, or is put there."""
    text = path.read_text(encoding='utf-8')
    before, begin, rest = text.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not end:
        problems.append(f'{path.name} has not both of the marks {BEGIN} and {END}')
    elif write:
        path.write_text(before + begin + new + end + after, encoding='utf-8')
    elif old != new:
        problems.append(f'the list of {path.name} is not what the tests say: run modes.py ROOT --write')


def main():
    root, write = pathlib.Path(sys.argv[1]), sys.argv[2:] == ['--write']
    if len(sys.argv) < 2 or (sys.argv[2:] and not write):
        sys.exit('usage: modes.py ROOT [--write]')
    problems = []
    modes = read_modes((pathlib.Path(__file__).parent / 'modes.txt').read_text(encoding='utf-8'), problems)
    shown = collect(root, modes, problems)

    bounds = [*PAGES.values(), sys.maxsize]
    for page, first, last in zip(PAGES, bounds, bounds[1:]):
        compare(root / page, f'\n\n{items(modes, shown, first, last)}\n\n', write, problems)
    check_promises(root, problems)
    if not modes:
        problems.append('modes.txt has no mode')

    for problem in problems:
        print('modes:', problem)
    reasons = [reason for _, reason in modes.values()]
    print(f'modes: {len(modes)}, {sum(1 for tests in shown.values() if tests)} shown by '
          f'{len({test for tests in shown.values() for test in tests})} tests, '
          + ', '.join(f'{sum(r.startswith(kind) for r in reasons)} {kind[:-2]}' for kind in REASONS)
          + f', {len(problems)} problems')
    return 1 if problems else 0


sys.exit(main())
