#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""headers.py ROOT MESON BUILD: the public headers can be read one by one.

Goal: who has only the headers needs nothing else. Method: each has at most LINES_MAX lines, and opens with its name,
what is illegal, and an example, which tests/docs compiles. zklock.h includes all but those
of BY_THEMSELVES. The pages that they name are installed."""
import json
import pathlib
import re
import subprocess
import sys

LINES_MAX = 200
COLUMNS_MAX = 100
BARE_CODE = r'(?<![A-Za-z_.])E(?:INVAL|FORK|BUSY|LOST|NOMEM|CLOSED|[A-Z]+OWNER|ACCES|TIMEDOUT|CANCELED|DEADLK|INCALLBACK)\b'
BY_THEMSELVES = {'async.h', 'guard.h', 'inspect.h', 'metrics.h'}


def installed(meson, build):
    """The names of all files that are installed."""
    said = subprocess.run([meson, 'introspect', '--installed', build], check=True, capture_output=True, text=True)
    return {pathlib.Path(path).name for path in json.loads(said.stdout).values()}


def wrong(path, text, there):
    lines = text.splitlines()
    if len(lines) > LINES_MAX:
        yield f'has {len(lines)} lines, more than {LINES_MAX}'
    if long := [str(at) for at, line in enumerate(lines, 1) if len(line) > COLUMNS_MAX]:
        yield f'is wider than {COLUMNS_MAX} in line {", ".join(long)}'
    opening = re.match(r'/\*.*?\*/', text, re.DOTALL)[0]
    if not re.search(rf'^ \* {re.escape(path.name)} - ', opening, re.MULTILINE):
        yield 'does not open with its name and what it is'
    if not re.search(r'^ \*\n \*     \S', opening, re.MULTILINE):
        yield 'opens without an example'
    if path.name != 'zklock.h' and not re.search(r'^ \* Illegal', opening, re.MULTILINE):
        yield 'does not say what is illegal'
    if bare := re.findall(BARE_CODE, text):
        yield f'names codes without ZKL_: {", ".join(sorted(set(bare)))}'
    for page in re.findall(r'\bdocs/([\w-]+\.md)', text):
        if page not in there:
            yield f'names docs/{page}, which is not installed'


def main(root, meson, build):
    headers = {path: path.read_text(encoding='utf-8')
               for path in sorted((pathlib.Path(root) / 'include/zklock').glob('*.h'))}
    there = installed(meson, build)
    problems = [f'{path.name} {why}' for path, text in headers.items() for why in wrong(path, text, there)]
    problems += [f'{path.name} is not installed' for path in headers if path.name not in there]
    over = next(text for path, text in headers.items() if path.name == 'zklock.h')
    included = set(re.findall(r'^#include <zklock/(.*)>', over, re.MULTILINE))
    expected = {path.name for path in headers} - BY_THEMSELVES - {'zklock.h'}
    problems += [f'zklock.h and the headers of its folder differ by {name}' for name in sorted(included ^ expected)]
    print('\n'.join(problems) or f'{len(headers)} headers')
    return 1 if problems or len(headers) < 10 else 0


sys.exit(main(*sys.argv[1:]))
