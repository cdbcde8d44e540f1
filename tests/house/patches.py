#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each planted bug still has its place: what its patch replaces stands in the file, word for word. A change of src that
moves such a place is told here at once, and not after the long run, which builds them (tests/planted, tests/linear).

patches.py ROOT"""
import pathlib
import re
import sys


def hunks(patch):
    """(file, the lines that are to be there)"""
    name = None
    for part in re.split(r'^(?=@@ |--- a/)', patch, flags=re.M):
        if part.startswith('--- a/'):
            name = re.search(r'^--- a/(\S+)', part)[1]
        elif part.startswith('@@ '):
            lines = part.splitlines(keepends=True)[1:]
            yield name, ''.join(line[1:] for line in lines if line[0] in ' -')


def main(root):
    root = pathlib.Path(root)
    patches = sorted(root.glob('tests/*/bugs/*.patch'))
    problems, seen = [], 0
    for patch in patches:
        for name, before in hunks(patch.read_text()):
            seen += 1
            if before not in (root / name).read_text():
                problems.append(f'{patch.stem}: {name} has changed; plant the bug anew, of the same kind:\n{before}')
    print('\n'.join(problems) or f'{seen} places of {len(patches)} planted bugs')
    return 1 if problems or not seen else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
