#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every .c file of src opens with 5 to 15 lines: what it is for, what it owns, under which lock, who calls it.

openings.py ROOT"""
import pathlib
import re
import sys

LEAST, MOST = 5, 15
PROOFS = {'pred_proof.c'}  # opens with its argument, which takes more


def wrong(path):
    comment = re.match(r'/\*.*?\*/\n', path.read_text(), re.S)
    lines = comment[0].count('\n') if comment else 0
    most = 27 if path.name in PROOFS else MOST
    if LEAST <= lines <= most and 'SPDX-License-Identifier: Apache-2.0' in comment[0]:
        return None
    return f'opens with {lines} lines of comment, not {LEAST} to {most}'


def main(root):
    root = pathlib.Path(root)
    files = sorted((root / 'src').rglob('*.c'))
    problems = [f'{path.relative_to(root)} {why}' for path in files if (why := wrong(path))]
    print('\n'.join(problems) or f'{len(files)} files')
    return 1 if problems or len(files) < 100 else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
