#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How large the library is, at some revisions: files, lines of code without comments, fields and flags (bool) of the
structs, states of the machines, and fields of the structs that users fill; and what it is shown and explained by: files
and all lines of the tests with the contention demo, and of the pages.

figures.py [REVISION...]   the working tree without one"""
import pathlib
import re
import subprocess
import sys


BESIDE = {'tests and contention demo': r'tests/|examples/contention/', 'docs': r'docs/'}


def git(*words):
    return subprocess.run(['git', *words], capture_output=True, check=True).stdout.decode(errors='replace')


def names_of(revision):
    return git('ls-tree', '-r', '--name-only', revision).splitlines() if revision else git('ls-files').splitlines()


def text_of(revision, name):
    if revision:
        return git('show', f'{revision}:{name}')
    return pathlib.Path(name).read_text(encoding='utf-8', errors='replace')


def files_of(revision):
    return {name: text_of(revision, name) for name in names_of(revision) if re.match(r'(src|include)/.*\.[ch]$', name)}


def beside(revision):
    names = names_of(revision)
    for what, pattern in BESIDE.items():
        some = [name for name in names if re.match(pattern, name)]
        yield what, len(some), sum(text_of(revision, name).count('\n') for name in some)


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
        for what, count, lines in beside(revision):
            print(f'  {what}: {count} files, {lines} lines')


if __name__ == '__main__':
    main(sys.argv[1:])
