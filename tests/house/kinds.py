#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kind of lock is its rows: nothing in src/core or src/api asks which role a contender has, but the tables do; and
what docs/adding-a-lock-kind.md changes makes a kind that does what its program says.

kinds.py ROOT COMPILER..."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import rules

TABLES = {'role.c', 'kind.c'}
PAGE = 'docs/adding-a-lock-kind.md'


def questions(root):
    """Where a role is compared."""
    found = []
    for path in sorted([*(root / 'src/core').glob('*.[ch]'), *(root / 'src/api').glob('*.[ch]')]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if path.name not in TABLES and re.search(r'([=!]=|case) ZKL_ROLE_(LOCK|READ|WRITE|PERMIT)\b', line):
                found.append(f'{path.relative_to(root)}:{number} asks which kind it is: that belongs into its row '
                             f'({", ".join(sorted(TABLES))})')
    return found


def change(tree, block):
    """One file: the lines with a minus become those with a plus."""
    path = tree / re.search(r'^--- a/(\S+)$', block, re.M)[1]
    lines = [line for line in block.splitlines() if not re.match(r'(---|\+\+\+|@@)', line)]
    old, new = (''.join(line[1:] + '\n' for line in lines if line[0] == sign) for sign in '-+')
    text = path.read_text()
    if text.count(old) != 1:
        sys.exit(f'{PAGE}: these lines are not once in {path.relative_to(tree)}:\n{old}')
    path.write_text(text.replace(old, new))


def exercise(root, compiler):
    page = (root / PAGE).read_text()
    diffs = re.findall(r'```diff\n(.*?)```', page, re.S)
    program = re.search(r'```c\n(.*?)```', page, re.S)[1]
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        for part in ('src/core', 'include'):
            shutil.copytree(root / part, tree / part)
        for block in diffs:
            change(tree, block)
        (tree / 'program.c').write_text(program)
        files = [tree / 'program.c', *(tree / 'src/core').glob('*.c')]
        done = subprocess.run([*compiler, '-std=gnu17', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror', '-I', tree / 'src',
                               '-I', tree / 'include', '-o', tree / 'program', *files], check=False)
        if done.returncode != 0 or subprocess.run([tree / 'program'], check=False).returncode != 0:
            sys.exit(f'{PAGE}: its program does not compile, or an assertion of it fails')
    return len(diffs)


def main(root, *compiler):
    root = pathlib.Path(root)
    return questions(root), f'{exercise(root, compiler)} changes make another kind', True


rules.judge(main, *sys.argv[1:])
