#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""headers.py ROOT MESON BUILD: the public headers can be read one by one.

Goal: who has only the headers needs nothing else. Method: each has at most LINES_MAX lines, and opens with its name,
what is illegal, and an example, which tests/docs compiles. zklock.h includes all but those
of BY_THEMSELVES. The pages that they name are installed. Their names say what they are of: an enumerator has its
type's name in front, no function has a type's, and src/core has none of them for something else. No example waits for
ever: it opens a client with a connect_timeout_ms, and locks with a deadline."""
import json
import pathlib
import re
import sys

import rules

LINES_MAX = 320
COLUMNS_MAX = 100
BARE_CODE = r'(?<![A-Za-z_.])E(?:INVAL|FORK|BUSY|LOST|NOMEM|CLOSED|[A-Z]+OWNER|ACCES|TIMEDOUT|CANCELED|DEADLK|INCALLBACK)\b'
# What the last word of a type says, its enumerators need not.
LAST_WORDS = r'_(?:STATE|TYPE|LEVEL)$'
PREFIXES = {'zkl_error': r'ZKL_(?:E[A-Z]|OK$)'}
WAITS_FOR_EVER = r'\bzkl_\w+_lock\('
BY_THEMSELVES = {'async.h', 'guard.h', 'inspect.h', 'metrics.h'}


def installed(meson, build):
    """The names of all files that are installed."""
    return {pathlib.Path(path).name for path in json.loads(rules.said(meson, 'introspect', '--installed', build)).values()}


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


def code_of(text):
    return re.sub(r'/\*.*?\*/', '', text, flags=re.DOTALL)


def enumerators(text):
    """Pairs of an enumerator and the name of its type."""
    for kind, body in re.findall(r'\benum (\w*) ?\{(.*?)\}', code_of(text), re.DOTALL):
        for name in re.findall(r'^\s*(ZKL_\w+)', body, re.MULTILINE):
            yield name, kind


def badly_named(headers, core):
    of = dict(pair for text in headers.values() for pair in enumerators(text))
    for name, kind in of.items():
        prefix = PREFIXES.get(kind) or re.sub(LAST_WORDS, '', kind.upper()) + '(?:_|S$)'
        if not re.match(prefix, name):
            yield f'{name} does not say that it is of enum {kind}'
    code = '\n'.join(map(code_of, headers.values()))
    types = set(re.findall(r'\b(?:struct|enum) (zkl_\w+)', code))
    for name in re.findall(r'^ZKL_API[^;(]*?\b(zkl_\w+)\s*\(', code, re.MULTILINE):
        if name in types:
            yield f'{name} is a function and a type'
    public = set(of) | set(re.findall(r'^#define (ZKL_\w+)', code, re.MULTILINE))
    inner = {name for text in core for name, _ in enumerators(text)}
    inner |= {name for text in core for name in re.findall(r'^#define (ZKL_\w+)', code_of(text), re.MULTILINE)}
    yield from (f'{name} is public, and another thing in src/core' for name in sorted(public & inner))


def hanging(path, text):
    """Examples in comments that would wait for ever."""
    for comment in re.findall(r'/\*.*?\*/', text, re.DOTALL):
        for block in re.findall(r'(?:^ \*(?:     .*)?\n)+', comment, re.MULTILINE):
            if 'zkl_client_open(' in block and 'connect_timeout_ms' not in block:
                yield 'opens a client in an example without a connect_timeout_ms'
            if re.search(WAITS_FOR_EVER, block):
                yield 'locks without a deadline in an example'
            if '_acquire' in block and 'deadline_ns' not in block:
                yield 'acquires without a deadline in an example'


def main(root, meson, build):
    headers = {path: path.read_text(encoding='utf-8')
               for path in sorted((pathlib.Path(root) / 'include/zklock').glob('*.h'))}
    there = installed(meson, build)
    problems = [f'{path.name} {why}' for path, text in headers.items() for why in wrong(path, text, there)]
    problems += [f'{path.name} {why}' for path, text in headers.items() for why in hanging(path, text)]
    core = [path.read_text(encoding='utf-8') for path in (pathlib.Path(root) / 'src/core').glob('*.[ch]')]
    problems += badly_named(headers, core)
    problems += [f'{path.name} is not installed' for path in headers if path.name not in there]
    over = next(text for path, text in headers.items() if path.name == 'zklock.h')
    included = set(re.findall(r'^#include <zklock/(.*)>', over, re.MULTILINE))
    expected = {path.name for path in headers} - BY_THEMSELVES - {'zklock.h'}
    problems += [f'zklock.h and the headers of its folder differ by {name}' for name in sorted(included ^ expected)]
    return problems, f'{len(headers)} headers', len(headers) >= 10


rules.judge(main, *sys.argv[1:])
