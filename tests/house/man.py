#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""man.py WHAT SOURCE_DIR ...: the manual pages are there and clean.

man.py names SOURCE_DIR MESON BUILD_DIR    in an installed tree each public call and macro has a page under its name, with
                                           an example, which tests/docs compiles; no page points to one that is not there;
                                           a call that is refused in callbacks (tests/lib/called.py; cluster/callback calls
                                           them) says so. A paragraph of a header ends as a sentence does: docs/man/comments.py tells
                                           them apart by how full their lines are
man.py lint SOURCE_DIR BUILD_DIR           mandoc has nothing to say

Goal: no call without a page. That a page says what the header says is how it is made. Method: the headers are read here
once more, by the declarations alone."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # in docs, where tests look at all files
WHAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
HEADERS = sorted(SOURCE.glob('include/zklock/*.h'))

# Inline functions behind a macro that has a page.
BEHIND_MACROS = re.compile(r'zkl_\w+_(init|begin|cleanup)')


def finish(problems, summary):
    for problem in problems:
        print('man:', problem)
    print(f'man: {summary}, {len(problems)} problems')
    sys.exit(1 if problems else 0)


def public():
    """The calls and macros that a program may use."""
    text = '\n'.join(re.sub(r'/\*.*?\*/', '', h.read_text(encoding='utf-8'), flags=re.DOTALL) for h in HEADERS)
    calls = re.findall(r'^(?:ZKL_API|static inline) [^;({]*?\b(\w+)\s*\(', text, re.MULTILINE)
    macros = re.findall(r'^#define (ZKL_\w+)\(', text, re.MULTILINE)
    return {name for name in calls if not BEHIND_MACROS.fullmatch(name)} | set(macros)


def refused():
    """The calls that are refused in callbacks."""
    sys.path.insert(0, str(SOURCE / 'tests/lib'))
    from called import read
    return {name for name, call in read(HEADERS).items() if call.waits()}


def unfinished():
    """Paragraphs of the headers that do not end as a sentence does."""
    sys.path.insert(0, str(SOURCE / 'docs/man'))
    from comments import paragraphs
    for header in HEADERS:
        comments = re.findall(r'^/\*(?! ---).*?\*/', header.read_text(encoding='utf-8'), re.MULTILINE | re.DOTALL)
        for found in map(paragraphs, comments[1:]):
            yield from (f'{header.name}: a line is not full, and begins no paragraph behind it: "{text[-60:]}"'
                        for kind, text in found if kind != 'code' and not re.search(r'[.:]\)?$', text))


def check_names(meson, build):
    problems = [*unfinished()]
    wanted, in_callbacks = public(), refused()
    with tempfile.TemporaryDirectory(prefix='zkl-man-') as root:
        subprocess.run([meson, 'install', '-C', build, '--no-rebuild', '--tags', 'man', '--destdir', root],
                       check=True, stdout=subprocess.DEVNULL)
        installed = {path.name: path for path in pathlib.Path(root).rglob('man?/*')}
        problems += [f'{name} is in the headers and has no page' for name in sorted(wanted) if f'{name}.3' not in installed]
        for name, path in sorted(installed.items()):
            if not path.exists():
                problems.append(f'{name} is a link to nowhere')
                continue
            text = path.read_text(encoding='utf-8')
            if path.stem not in re.findall(r'^\.Nm (\S+)', text.partition('.Sh SYNOPSIS')[0], re.MULTILINE):
                problems.append(f'{name} is a page whose NAME section does not have that name')
            if path.suffix == '.3' and path.stem not in wanted:
                problems.append(f'{name} is not in the headers')
            if path.suffix == '.3' and '.Bd -literal' not in text.partition('.Sh EXAMPLES')[2]:
                problems.append(f'{name} has no example')
            if path.stem in in_callbacks and 'ZKL_EINCALLBACK' not in text:
                problems.append(f'{name} does not say that it is refused in callbacks')
            problems += [f'{name} points to {other}({section}), which is not there'
                         for other, section in re.findall(r'^\.Xr (z[\w-]+) (\d)', text, re.MULTILINE)
                         if f'{other}.{section}' not in installed]
    finish(problems, f'{len(installed)} names for {len(wanted)} calls, {len(in_callbacks)} refused in callbacks')


def check_lint(build):
    if not shutil.which('mandoc'):
        print('mandoc is not installed: the pages are not checked')
        sys.exit(77)
    pages = [*SOURCE.glob('docs/man/*.[137]'), *pathlib.Path(build).glob('docs/man/*.3')]
    done = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning', *pages], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    finish(done.stdout.splitlines(), f'{len(pages)} pages')


def main():
    {'names': check_names, 'lint': check_lint}[WHAT](*sys.argv[3:])


main()
