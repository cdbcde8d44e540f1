#!/usr/bin/env python3
"""No function of the library, of the programs or of their servers is longer than 60 lines.

Goal: a function can be read at a glance. Method: the style puts a function's braces into column 0, so its lines are
counted from the one that begins it to its closing brace; comments before it do not count.

functions.py ROOT           what is too long
functions.py ROOT --list N  the N longest"""
import pathlib
import re
import sys

import rules

LINES_MAX = 60
FOLDERS = ['src/api', 'src/core', 'src/dev', 'src/driver', 'src/make', 'src/secret', 'src/tool']


def functions(path):
    """(name, lines) of each function of the file."""
    head, begin = [], 0
    for number, line in enumerate(rules.text(path).splitlines(), 1):
        if line == '{':
            yield re.findall(r'(\w+)\s*\(', ' '.join(head))[0], begin, number
        elif line == '}' or line.startswith(('};', '#', '/*', ' *')) or not line.strip() or line.endswith((';', '*/')):
            head = []
            continue
        if not head:
            begin = number
        head.append(line)


def lengths(path):
    """(lines, name): from the first line of its head to the closing brace."""
    text = rules.text(path).splitlines()
    for name, begin, brace in functions(path):
        yield text.index('}', brace) + 2 - begin, name


def main(root, *options):
    root = pathlib.Path(root)
    found = sorted(((lines, f'{path.relative_to(root)} {name}') for folder in FOLDERS
                    for path in (root / folder).glob('*.[ch]') for lines, name in lengths(path)), reverse=True)
    if options:
        return [], '\n'.join(f'{lines:4} {name}' for lines, name in found[:int(options[1])]), True
    return ([f'{name}: {lines} lines, of {LINES_MAX} at most' for lines, name in found if lines > LINES_MAX],
            f'{len(found)} functions, the longest of {found[0][0]} lines', len(found) >= 1000)


rules.judge(main, *sys.argv[1:])
