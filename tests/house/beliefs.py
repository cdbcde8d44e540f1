#!/usr/bin/env python3
"""beliefs.py ROOT: docs/beliefs.md names tests that are there, and each switch of the simulation.

Each test in its table is FOLDER/FILE, with or without the names of functions in it; each switch of tests/sim/touches.c
stands in some row, and no other does. No two rows have one number."""
import pathlib
import re
import sys

CELLS = 6
ROW = re.compile(r'^\| (B\d+) \| (.*) \|$', re.MULTILINE)
FILE = re.compile(r'\b([a-z]+)/(test-[a-z-]+)')
QUOTED = re.compile(r'`([a-z_0-9]+)`')
SWITCH = re.compile(r'`([a-z-]+)`')


def missing_tests(root, cell):
    """Of "folder/file: `function`, `function`; folder/file ..." what is not there."""
    for part in cell.split(';'):
        named = FILE.search(part)
        if not named:
            continue
        source = root / 'tests' / named[1] / (named[2] + '.c')
        if not source.exists():
            yield f'{named[0]} is no test'
            continue
        text = ''.join(p.read_text(encoding='utf-8') for p in source.parent.glob('*.c'))
        yield from (f'{named[0]} has no {name}' for name in QUOTED.findall(part) if not re.search(rf'\b{name}\b', text))


def main(root):
    problems, named = [], set()
    rows = ROW.findall((root / 'docs/beliefs.md').read_text(encoding='utf-8'))
    numbers = [number for number, _ in rows]
    problems += [f'{number} is the number of more than one' for number in sorted(set(numbers)) if numbers.count(number) > 1]
    for number, rest in rows:
        cells = [number] + rest.split(' | ')
        if len(cells) != CELLS:
            problems.append(f'{number} has {len(cells)} columns instead of {CELLS}')
            continue
        problems += [f'{number}: {what}' for what in missing_tests(root, cells[3])]
        named.update(SWITCH.findall(cells[5]))
    there = set(re.findall(r'\[FAKE_\w+\] = "([a-z-]+)"', (root / 'tests/sim/touches.c').read_text(encoding='utf-8')))
    problems += [f'the switch {name} is named, and there is none' for name in sorted(named - there)]
    problems += [f'the switch {name} stands in no row' for name in sorted(there - named)]
    print('\n'.join(problems) or f'{len(rows)} beliefs, {len(there)} switches')
    return 1 if problems or not rows or not there else 0


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1])))
