#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How large the library is, at some revisions: files, lines of code without comments, fields and flags (bool) of the
structs, states of the machines, and fields of the structs that users fill.

figures.py [REVISION...]   the working tree without one"""
import re
import subprocess
import sys


def files_of(revision):
    if not revision:
        names = subprocess.run(['git', 'ls-files'], capture_output=True, text=True, check=True).stdout.split()
        return {name: open(name, encoding='utf-8').read() for name in names if wanted(name)}
    names = subprocess.run(['git', 'ls-tree', '-r', '--name-only', revision], capture_output=True, text=True,
                           check=True).stdout.split()
    return {name: subprocess.run(['git', 'show', f'{revision}:{name}'], capture_output=True, text=True,
                                 check=True).stdout for name in names if wanted(name)}


def wanted(name):
    return re.match(r'(src|include)/.*\.[ch]$', name) is not None


def code(text):
    """Without comments and empty lines."""
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    return [line for line in text.splitlines() if line.strip()]


def fields(text):
    """Of all structs of a text: declared names."""
    found, flags = 0, 0
    for body in re.findall(r'^struct \w+ \{\n(.*?)^\}', '\n'.join(code(text)), re.M | re.S):
        for declaration in re.sub(r'\{|\}', ';', body).split(';'):
            declaration = ' '.join(declaration.split())
            if not declaration or declaration in ('struct', 'union'):
                continue
            count = declaration.count(',') + 1 if '(' not in declaration else 1
            found += count
            flags += count if re.match(r'(atomic_)?bool\b', declaration) else 0
    return found, flags


def states(files):
    """Enumerators of the machines' states."""
    return sum(len(re.findall(r'\bZKL_\w+', body)) for name, text in files.items() if name.startswith('src/core/')
               for body in re.findall(r'enum zkl_\w*state\w* \{(.*?)\}', '\n'.join(code(text)), re.S))


def row(revision):
    files = files_of(revision)
    per = {}
    for folder in ('src/core', 'src/driver', 'src/api', 'src/tool', 'src/dev', 'include'):
        mine = {name: text for name, text in files.items() if name.startswith(folder + '/')}
        counts = [fields(text) for text in mine.values()]
        per[folder] = (len(mine), sum(len(code(text)) for text in mine.values()), sum(f for f, _ in counts),
                       sum(b for _, b in counts))
    return per, states(files)


def main(revisions):
    for revision in revisions or ['']:
        per, machine_states = row(revision)
        print(f'{revision or "working tree"}: {machine_states} states of the core\'s machines')
        for folder, (count, lines, all_fields, flags) in per.items():
            print(f'  {folder}: {count} files, {lines} lines of code, {all_fields} fields, {flags} of them flags')


if __name__ == '__main__':
    main(sys.argv[1:])
