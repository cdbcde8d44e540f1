#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""debian.py ROOT VERSION: the Debian package is that of this version.

Goal: what Debian's tools believe of the library is true of the sources, without a build of packages. Method: the symbols file of
docs/packaging/debian is compared with src/libzklock.map, each function with the release that its node is named for;
the newest entry of the changelog is of VERSION, with a ~ where a release candidate has a dash; the names of packages have the soname's number."""
import pathlib
import re
import sys

ROOT, VERSION = pathlib.Path(sys.argv[1]), sys.argv[2]
DEBIAN = ROOT / 'docs/packaging/debian'
MAJOR = VERSION.partition('.')[0]
PACKAGE = f'libzklock{MAJOR}'


def read(path):
    return path.read_text(encoding='utf-8')


def mapped():
    """The lines that the symbols file should have: name@node, and the first release that has it."""
    wanted = {}
    text = re.sub(r'/\*.*?\*/', '', read(ROOT / 'src/libzklock.map'), flags=re.DOTALL)
    for node, release, body in re.findall(r'(\w+_([\d.]+))\s*\{(.*?)\}', text, re.DOTALL):
        for name in [node, *re.findall(r'(\w+)\s*;', body.partition('local:')[0].partition('global:')[2])]:
            wanted[f'{name}@{node}'] = f'{release}.0~'
    private = read(ROOT / 'src/private.map').partition('global:')[2]  # for zklock, which depends on the very same version
    for name in ['ZKLOCK_PRIVATE', *re.findall(r'(\w+)\s*;', private)]:
        wanted[f'{name}@ZKLOCK_PRIVATE'] = '1.0.0~'
    return wanted


def check_symbols():
    path = DEBIAN / f'{PACKAGE}.symbols'
    if not path.exists():
        return [f'there is no {path.name}']
    head, *lines = read(path).splitlines()
    wanted = mapped()
    found = dict(line.split() for line in lines if line.startswith(' '))
    problems = [] if head == f'libzklock.so.{MAJOR} {PACKAGE} #MINVER#' else [f'{path.name} begins with {head}']
    problems += [f'{name} is in the map and not in {path.name}' for name in sorted(wanted.keys() - found.keys())]
    problems += [f'{name} is in {path.name} and not in the map' for name in sorted(found.keys() - wanted.keys())]
    problems += [f'{path.name}: {name} is there since {wanted[name]}, not {found[name]}'
                 for name in sorted(wanted.keys() & found.keys()) if wanted[name] != found[name]]
    return problems if wanted else ['the map has no function']


def check_version():
    newest = read(DEBIAN / 'changelog').partition('\n')[0]
    found = re.match(r'zklock \(([^-)]*)-', newest)
    problems = [] if found and found[1] == VERSION.replace('-', '~') else [f'the changelog begins with "{newest}", and this is {VERSION}']
    if f'Package: {PACKAGE}\n' not in read(DEBIAN / 'control'):
        problems.append(f'control has no package {PACKAGE}')
    return problems


def main():
    problems = check_symbols() + check_version()
    for problem in problems:
        print('debian:', problem)
    print(f'debian: {len(mapped())} symbols, {len(problems)} problems')
    return 1 if problems else 0


sys.exit(main())
