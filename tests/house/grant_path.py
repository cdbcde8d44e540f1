#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/contender.md is the code's: each function that a table names is defined in that file, and names what the row
says that it calls; and what it calls is the next row's function, unless the row says another way.

grant_path.py ROOT"""
import pathlib
import re
import sys

ROW = re.compile(r'^\| (src/\S+\.c) \| `(\w+)` \| (.*?) \|$', re.M)


def body_of(text, function):
    """From its name to the brace in the first column."""
    match = re.search(rf'^[a-z][^\n;{{}}=]*\b{function}\([^;{{}}]*\)\n{{\n.*?^}}', text, re.M | re.S)
    return match and match[0]


def main(root):
    root = pathlib.Path(root)
    rows = ROW.findall((root / 'docs/contender.md').read_text())
    problems = []
    for (path, function, calls), after in zip(rows, rows[1:] + [None]):
        body = body_of((root / path).read_text(), function) if (root / path).exists() else None
        if not body:
            problems.append(f'{path} does not define {function}')
            continue
        names = re.findall(r'`(\w+)`', calls)
        inner = body.split('{\n', 1)[1]
        problems += [f'{path}: {function} does not name {name}' for name in names
                     if not re.search(rf'\b{name}\b', inner)]
        direct = re.fullmatch(r'`(zkl_)?\w+`', calls)
        if direct and after and names[0] != after[1] and names[0] not in END:
            problems.append(f'{path}: {function} calls {names[0]}, but the next row is {after[1]}')
    files = {path for path, _, _ in rows}
    print('\n'.join(problems) or f'{len(rows)} steps through {len(files)} files')
    return 1 if problems or len(rows) < 30 else 0


# Where a table ends, or goes on with what this one leads to.
END = {'zoo_acreate2', 'zkl_core_feed', 'zkl_place_wake', 'zkl_step_grant'}

if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
