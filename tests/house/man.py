#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""man.py WHAT SOURCE_DIR ...: the manual pages say what the headers say.

man.py names SOURCE_DIR MESON BUILD_DIR    each public function has a page under its name, and each page's
                                           names are in the headers. Looked up in an installed tree.
                                           It has each code that the header's comment on the call names.
                                           A call that tests/cluster/refused_calls.c shows to be refused in
                                           callbacks has that code on its page
man.py code SOURCE_DIR COMPILER BUILD_DIR  the prototypes in the SYNOPSIS sections are those of the headers,
                                           and there is an example; tests/docs compiles it
man.py lint SOURCE_DIR                     mandoc has nothing to say

Goal: no call without a page, no page that lies about a call. Method: the pages' own sources are read, no
list of them is kept here."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WHAT, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
PAGES = sorted(SOURCE.glob('docs/man/*.[137]'))
HEADERS = sorted(SOURCE.glob('include/zklock/*.h'))

# Inline functions behind a macro that has a page.
BEHIND_MACROS = re.compile(r'zkl_\w+_(init|begin|cleanup)')


def header_text():
    text = '\n'.join(h.read_text(encoding='utf-8') for h in HEADERS)
    return re.sub(r'/\*.*?\*/', '', text, flags=re.DOTALL)


def sections(page):
    """The page's lines by section."""
    found, lines = {}, []
    for line in page.read_text(encoding='utf-8').splitlines():
        if line.startswith('.Sh '):
            lines = found.setdefault(line[4:].strip('"'), [])
        else:
            lines.append(line)
    return found


def words(text):
    """The arguments of a macro line."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', text)]


def names(page):
    return [words(line)[1] for line in sections(page)['NAME'] if line.startswith('.Nm ')]


def prototypes(page):
    """The SYNOPSIS as C, with its includes first."""
    includes, functions, kind, arguments = [], [], None, []
    for line in sections(page).get('SYNOPSIS', []):
        macro, *rest = words(line) if line.strip() else ['']
        if macro == '.In':
            includes.append(f'#include <{rest[0]}>')
        elif macro == '.Ft':
            kind = rest[0]
        elif macro == '.Fn' and kind:
            functions.append((kind, rest[0], rest[1:]))
            kind = None
        elif macro == '.Fo':
            name, arguments = rest[0], []
        elif macro == '.Fa':
            arguments += rest
        elif macro == '.Fc':
            functions.append((kind, name, arguments))
            kind = None
    return includes, functions


def has_example(page):
    return any(line.startswith('.Bd -literal') for line in sections(page).get('EXAMPLES', []))


def finish(problems, summary):
    for problem in problems:
        print('man:', problem)
    print(f'man: {len(PAGES)} pages, {summary}, {len(problems)} problems')
    sys.exit(1 if problems or not PAGES else 0)


def missing_codes():
    """Codes that a header's comment names for a call, and the call's page does not."""
    pages = {name: page for page in PAGES if page.suffix == '.3' for name in names(page)}
    for header in HEADERS:
        text = header.read_text(encoding='utf-8')
        for comment, calls in re.findall(r'(/\*(?:(?!\*/).)*\*/)\n((?:(?:ZKL_API|static inline)[^;{]*[;{][^\n]*\n)+)',
                                         text, re.DOTALL):
            codes = set(re.findall(r'\bZKL_E[A-Z]+\b', re.sub(r'except\b[^.]*\.', '', comment, flags=re.DOTALL)))
            for name in sorted(set(re.findall(r'\b(zkl_\w+)\(', calls)) & set(pages)):
                said = pages[name].read_text(encoding='utf-8')
                yield from (f'{pages[name].name} lacks {code}, which {header.name} names for {name}'
                            for code in sorted(codes) if code not in said)


def check_names(meson, build):
    problems = []
    text = header_text()
    declared = set(re.findall(r'^ZKL_API[^;(]*?\b(\w+)\s*\(', text, re.MULTILINE))
    inline = set(re.findall(r'^static inline [^;({]*?\b(\w+)\s*\(', text, re.MULTILINE))
    wanted = declared | {name for name in inline if not BEHIND_MACROS.fullmatch(name)}

    with tempfile.TemporaryDirectory(prefix='zkl-man-') as root:
        subprocess.run([meson, 'install', '-C', build, '--no-rebuild', '--tags', 'man', '--destdir', root],
                       check=True, stdout=subprocess.DEVNULL)
        installed = {path.name: path for path in pathlib.Path(root).rglob('man?/*')}
        problems += [f'{name} is in the headers and has no page'
                     for name in sorted(wanted) if f'{name}.3' not in installed]
        for name, path in sorted(installed.items()):
            if not path.exists():
                problems.append(f'{name} is a link to nowhere')
            elif path.stem not in names(path):
                problems.append(f'{name} is a page whose NAME section does not have that name')
    for page in PAGES:
        for name in names(page):
            if f'{name}{page.suffix}' not in installed:
                problems.append(f'{name} of {page.name} is not installed')
            if page.suffix == '.3' and not re.search(rf'\b{name}\b', text):
                problems.append(f'{name} of {page.name} is not in the headers')
        for _, name, _ in prototypes(page)[1]:
            if name not in wanted:
                problems.append(f'{page.name} describes {name}, which is not in the headers')
            if name not in names(page):
                problems.append(f'{page.name} has a prototype of {name} but not the name')
        for name, section in re.findall(r'^\.Xr (z[\w-]+) (\d)', page.read_text(encoding='utf-8'), re.MULTILINE):
            if f'{name}.{section}' not in installed:
                problems.append(f'{page.name} points to {name}({section}), which is not there')
    problems += missing_codes()
    every = (SOURCE / 'tests/cluster/refused_calls.c').read_text(encoding='utf-8')
    refused = set(re.findall(r'\bREFUSED\((zkl_\w+)\(', every))
    for page in PAGES:
        if page.suffix == '.3' and refused & set(names(page)) and 'ZKL_EINCALLBACK' not in page.read_text(encoding='utf-8'):
            problems.append(f'{page.name} does not say that its calls are refused in callbacks')
    if not refused:
        problems.append('tests/cluster/refused_calls.c has no refused calls')
    finish(problems, f'{len(installed)} names for {len(wanted)} functions, {len(refused)} refused in callbacks')


def check_code(compiler, build):
    problems, count = [], 0
    for page in PAGES:
        includes, functions = prototypes(page)
        if page.suffix != '.3':
            continue
        if not functions or not has_example(page):
            problems.append(f'{page.name} has no prototype or no example')
        program = '\n'.join(includes + [f'{kind} {name}({", ".join(arguments)});'
                                        for kind, name, arguments in functions if name.islower()]) + '\n'
        command = [compiler, '-std=c11', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-fsyntax-only',
                   '-I', SOURCE / 'include', '-I', pathlib.Path(build) / 'include', '-x', 'c', '-']
        done = subprocess.run(command, input=program, text=True, stderr=subprocess.PIPE)
        count += 1
        if done.returncode != 0:
            problems.append(f'{page.name}: this does not compile:\n{program}{done.stderr}')
    finish(problems, f'prototypes of {count}')


def check_lint():
    if not shutil.which('mandoc'):
        print('mandoc is not installed: the pages are not checked')
        sys.exit(77)
    done = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning', *PAGES], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    finish(done.stdout.splitlines(), 'all linted')


def main():
    {'names': check_names, 'code': check_code, 'lint': check_lint}[WHAT](*sys.argv[3:])


main()
