#!/usr/bin/env python3
"""beliefs.py ROOT: docs/evidence/beliefs*.md name tests that are there, and each switch of the simulation.

Each belief is a section "### B1" with its lines "Read in", "Tests", "If false" and, where the simulation can turn it off,
"Switch". Each test is FOLDER/FILE, with or without the names of functions in it; each switch of tests/sim/touches.h stands
in some section, and no other does. No two sections have one number."""
import functools
import pathlib
import re
import sys

import rules

SECTION = re.compile(r'^### (B\d+)\n(.*?)(?=^##|\Z)', re.MULTILINE | re.DOTALL)
LINE = re.compile(r'^- ([A-Z][a-z ]+): (.*?)(?=^- |\Z)', re.MULTILINE | re.DOTALL)
WANTED = {'Read in', 'Tests', 'If false'}
FILE = re.compile(r'\b([a-z]+)/(test-[a-z-]+)')
QUOTED = re.compile(r'`([a-z_0-9]+)`')
SWITCH = re.compile(r'`([a-z-]+)`')


@functools.lru_cache(maxsize=None)
def words(folder):
    return set(re.findall(r'\b\w+\b', ''.join(path.read_text(encoding='utf-8') for end in ('c', 'txt') for path in folder.glob('*.' + end))))


def missing_tests(root, cell):
    """Of "folder/file: `function`, `function`; folder/file ..." what is not there."""
    for part in cell.split(';'):
        named = FILE.search(part)
        if not named:
            continue
        folder = root / 'tests' / named[1]
        if not (folder / (named[2] + '.c')).exists() and not (folder / (named[2].removeprefix('test-') + '.txt')).exists():
            yield f'{named[0]} is no test'
            continue
        yield from (f'{named[0]} has no {name}' for name in QUOTED.findall(part) if name not in words(folder))


def main(root):
    problems, named = [], set()
    sections = [section for page in sorted((root / 'docs/evidence').glob('beliefs*.md'))
                for section in SECTION.findall(page.read_text(encoding='utf-8'))]
    numbers = [number for number, _ in sections]
    problems += [f'{number} is the number of more than one' for number in sorted(set(numbers)) if numbers.count(number) > 1]
    for number, text in sections:
        lines = {name: ' '.join(said.split()) for name, said in LINE.findall(text)}
        if lines.keys() - {'Switch'} != WANTED:
            problems.append(f'{number} has not the lines {", ".join(sorted(WANTED))}, with or without Switch')
            continue
        problems += [f'{number}: {what}' for what in missing_tests(root, lines['Tests'])]
        named.update(SWITCH.findall(lines.get('Switch', '')))
    there = set(re.findall(r'X\(FAKE_\w+, "([a-z-]+)"\)', (root / 'tests/sim/touches.h').read_text(encoding='utf-8')))
    problems += [f'the switch {name} is named, and there is none' for name in sorted(named - there)]
    problems += [f'the switch {name} stands in no section' for name in sorted(there - named)]
    return problems, f'{len(sections)} beliefs, {len(there)} switches', len(sections) >= 50 and there


rules.judge(main, pathlib.Path(sys.argv[1]))
