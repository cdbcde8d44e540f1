#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/CONTRIBUTING.md lists each option of the public structs that users fill, and who uses it: every field has a row, every
row has a field, and each file that a row names sets it.

options.py ROOT"""
import pathlib
import re
import sys

import rules

STRUCTS = ('zkl_client_options', 'zkl_lock_options', 'zkl_mutex_options', 'zkl_wait')


def fields(headers, struct):
    body = re.search(rf'^struct {struct} \{{\n(.*?)^\}};', headers, re.M | re.S)[1]
    return [re.search(r'(\w+)$', d.strip())[1] for d in body.split(';') if d.strip()]


def main(root):
    root = pathlib.Path(root)
    headers = '\n'.join(rules.code(f) for f in sorted((root / 'include/zklock').glob('*.h')))
    section = (root / 'docs/CONTRIBUTING.md').read_text()
    problems, seen = [], 0
    for struct in STRUCTS:
        rows = re.findall(rf'^\| `{struct}` \| (.*?) \| .*? \| (.*?) \|$', section, re.M)
        wanted, listed = set(fields(headers, struct)) - {'size'}, []
        if struct == 'zkl_mutex_options':
            wanted -= set(fields(headers, 'zkl_lock_options'))  # what all locks have
        for names, users in rows:
            names, paths = re.findall(r'`(\w+)`', names), re.findall(r'`([\w./-]+)`', users)
            listed += names
            texts = [(p, (root / p).read_text() if (root / p).exists() else '') for p in paths]
            problems += [f'{struct}: {p} does not set {name}' for p, text in texts for name in names
                         if not re.search(rf'[.>]{name}\b', text)]
            if not any(p.startswith('tests/') for p in paths):
                problems.append(f'{struct}: no test is named for {", ".join(names)}')
        problems += [f'{struct}: {name} has no row' for name in sorted(wanted - set(listed))]
        problems += [f'{struct}: {name} is no field' for name in sorted(set(listed) - wanted)]
        seen += len(listed)
    return problems, f'{seen} options have users', seen >= 20


rules.judge(main, *sys.argv[1:])
